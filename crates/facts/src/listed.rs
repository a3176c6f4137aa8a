//! Things that are loaded or opened, each once: known from their load, their unload, and the rundown.

use crate::prelude::*;

/// A recording has tens of thousands at most; further ones are left out and counted.
const MAX_ITEMS: usize = 1 << 17;

/// Bytes of text, at most.
const MAX_TEXT: usize = 32 << 20;

/// The items in the order of first sight.
#[derive(Debug)]
pub struct Listed<T> {
    items: Vec<T>,
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
    /// The thing with an id; `new` makes it when it is not known, from `text` bytes of text.
    pub fn known(&mut self, id: (ProcessKey, u64), text: usize, new: impl FnOnce() -> T) -> Option<&mut T> {
        let index = match self.by_id.get(&id) {
            Some(index) => *index,
            None if self.items.len() >= MAX_ITEMS || self.text.saturating_add(text) > MAX_TEXT => {
                self.lost += 1;
                return None;
            }
            None => {
                self.text += text;
                self.items.push(new());
                self.by_id.insert(id, self.items.len() - 1);
                self.items.len() - 1
            }
        };
        self.items.get_mut(index)
    }

    /// The item that has an id now.
    pub fn get(&self, id: (ProcessKey, u64)) -> Option<&T> {
        self.items.get(*self.by_id.get(&id)?)
    }

    /// The id is given to something else.
    pub fn gone(&mut self, id: (ProcessKey, u64)) {
        self.by_id.remove(&id);
    }

    /// Each thing, in the order of first sight.
    pub fn each(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    /// Everything.
    pub fn take(&mut self) -> Vec<T> {
        self.by_id.clear();
        std::mem::take(&mut self.items)
    }
}
