//! Things that are loaded or opened, each once: known from their load, their unload, and the rundown.

use crate::prelude::*;

/// A recording has tens of thousands at most; further ones are left out and counted.
const MAX_ITEMS: usize = 1 << 17;

/// Bytes of text, at most.
const MAX_TEXT: usize = 32 << 20;

/// A step in the life of a thing, which an event reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// The thing is loaded, or gets its id.
    Begin,
    /// The thing is unloaded, or its id is free.
    End,
    /// The thing is listed by a rundown, at the start or at the end of the session.
    Rundown,
}

/// A thing, and when it came and went, where that was seen.
#[derive(Debug)]
pub struct Timed<T> {
    /// The thing.
    pub item: T,
    /// When it was loaded, or got its id.
    pub begun_ns: Option<i64>,
    /// When it was unloaded, or its id was free.
    pub ended_ns: Option<i64>,
}

/// The items in the order of first sight.
#[derive(Debug)]
pub struct Listed<T> {
    items: Vec<Timed<T>>,
    /// The thing that has an id now; the id is given out again after it went.
    by_id: Map<(ProcessKey, u64), usize>,
    text: usize,
    /// The number of items that were left out.
    pub lost: u64,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Listed { items: Vec::new(), by_id: Map::default(), text: 0, lost: 0 }
    }
}

impl<T> Listed<T> {
    /// Notes a step of the thing with an id. `is_same` is false for another thing, which had the id before; `new` makes
    /// the thing when it is not known, from `text` bytes of text.
    pub fn note(
        &mut self,
        step: Lifecycle,
        (id, ts_ns): ((ProcessKey, u64), i64),
        is_same: impl Fn(&T) -> bool,
        text: usize,
        new: impl FnOnce() -> T,
    ) {
        if step == Lifecycle::Begin || self.get(id).is_some_and(|known| !is_same(known)) {
            self.gone(id);
        }
        match (step, self.known(id, text, new)) {
            (Lifecycle::Begin, Some(known)) => known.begun_ns = Some(ts_ns),
            (Lifecycle::End, Some(known)) => known.ended_ns = Some(ts_ns),
            _ => {}
        }
    }

    fn known(&mut self, id: (ProcessKey, u64), text: usize, new: impl FnOnce() -> T) -> Option<&mut Timed<T>> {
        let index = match self.by_id.get(&id) {
            Some(index) => *index,
            None if self.items.len() >= MAX_ITEMS || self.text.saturating_add(text) > MAX_TEXT => {
                self.lost += 1;
                return None;
            }
            None => {
                self.text += text;
                self.items.push(Timed { item: new(), begun_ns: None, ended_ns: None });
                self.by_id.insert(id, self.items.len() - 1);
                self.items.len() - 1
            }
        };
        self.items.get_mut(index)
    }

    /// The item that has an id now.
    pub fn get(&self, id: (ProcessKey, u64)) -> Option<&T> {
        self.items.get(*self.by_id.get(&id)?).map(|known| &known.item)
    }

    /// The id is given to something else.
    pub fn gone(&mut self, id: (ProcessKey, u64)) {
        self.by_id.remove(&id);
    }

    /// All of them with their times, in the order of first sight.
    pub fn all(&self) -> &[Timed<T>] {
        &self.items
    }

    /// Each thing, in the order of first sight.
    pub fn each(&self) -> impl Iterator<Item = &T> {
        self.items.iter().map(|known| &known.item)
    }

    /// Everything.
    pub fn take(&mut self) -> Vec<Timed<T>> {
        self.by_id.clear();
        std::mem::take(&mut self.items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_and_their_texts_have_a_bound() {
        let mut listed = Listed::default();
        let mut load = |id: u64, text: usize| {
            listed.note(Lifecycle::Begin, ((ProcessKey::default(), id), 7), |()| true, text, || ());
            (listed.items.len(), listed.lost)
        };
        assert_eq!(load(1, MAX_TEXT), (1, 0));
        assert_eq!(load(2, 1), (1, 1), "32 MB of paths");
        assert_eq!((2..).map(|id| load(id, 0)).find(|(_, lost)| *lost == 2), Some((MAX_ITEMS, 2)));
    }
}
