//! What began on a thread and has not ended: for trackers that join a start with its stop, which nest on a thread.

use std::collections::BTreeMap;

/// What is open on one thread, at most.
const MAX_DEPTH: usize = 256;

/// Open items by thread, the innermost last; `MAX` of them in all.
#[derive(Debug)]
pub struct Nested<T, const MAX: usize> {
    threads: BTreeMap<u32, Vec<T>>,
    count: usize,
}

impl<T, const MAX: usize> Default for Nested<T, MAX> {
    fn default() -> Self {
        Nested { threads: BTreeMap::new(), count: 0 }
    }
}

impl<T, const MAX: usize> Nested<T, MAX> {
    /// Something begins on a thread. When too much is open, the outermost item of this thread (or of another one) is given
    /// back: its end will not be looked for.
    pub fn begin(&mut self, thread: u32, item: T) -> Option<T> {
        let is_deep = self.threads.get(&thread).is_some_and(|open| open.len() >= MAX_DEPTH);
        let victim = match (is_deep, self.count >= MAX) {
            (true, _) => Some(thread),
            (false, true) => self.threads.keys().next().copied(),
            (false, false) => None,
        };
        let evicted = victim.and_then(|victim| self.remove(victim, 0));
        self.threads.entry(thread).or_default().push(item);
        self.count += 1;
        evicted
    }

    /// The innermost open item of a thread.
    pub fn innermost(&mut self, thread: u32) -> Option<&mut T> {
        self.threads.get_mut(&thread)?.last_mut()
    }

    /// The innermost item that `is_it` ends. Items inside it were not seen to end: they are handed to `unended`.
    pub fn end(&mut self, thread: u32, is_it: impl Fn(&T) -> bool, mut unended: impl FnMut(T)) -> Option<T> {
        let open = self.threads.get_mut(&thread)?;
        let index = open.iter().rposition(is_it)?;
        let inner = open.split_off(index + 1);
        self.count -= inner.len();
        inner.into_iter().for_each(&mut unended);
        self.remove(thread, index)
    }

    fn remove(&mut self, thread: u32, index: usize) -> Option<T> {
        let open = self.threads.get_mut(&thread)?;
        let item = (index < open.len()).then(|| open.remove(index))?;
        if open.is_empty() {
            self.threads.remove(&thread);
        }
        self.count -= 1;
        Some(item)
    }

    /// Takes what is open on a thread (`None`: on any), the outermost first: events were lost, or the recording ends.
    pub fn take(&mut self, thread: Option<u32>) -> Vec<T> {
        let taken: Vec<T> = match thread {
            Some(thread) => self.threads.remove(&thread).unwrap_or_default(),
            None => std::mem::take(&mut self.threads).into_values().flatten().collect(),
        };
        self.count -= taken.len();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_belongs_to_the_innermost_start_of_its_thread() {
        let mut open: Nested<(u32, &str), 8> = Nested::default();
        for (thread, item) in [(1, (10, "a")), (2, (20, "a")), (1, (11, "b")), (1, (12, "a")), (1, (13, "c"))] {
            assert_eq!(open.begin(thread, item), None);
        }
        let mut unended = Vec::new();
        assert_eq!(open.end(1, |item| item.1 == "a", |item| unended.push(item.0)), Some((12, "a")));
        assert_eq!(unended, [13]);
        assert_eq!(open.end(2, |item| item.1 == "b", |_| {}), None);
        assert_eq!(open.innermost(1), Some(&mut (11, "b")));
        assert_eq!(open.take(Some(1)), [(10, "a"), (11, "b")]);
        assert_eq!(open.end(1, |_| true, |_| {}), None);
        assert_eq!(open.take(None), [(20, "a")]);
        assert_eq!(open.count, 0);
    }

    #[test]
    fn no_more_is_kept_than_the_bound() {
        let mut open: Nested<u32, 4> = Nested::default();
        let evicted: Vec<u32> = (0..10).filter_map(|item| open.begin(item % 3, item)).collect();
        assert_eq!((evicted.len(), open.take(None).len()), (6, 4));
        let mut open: Nested<usize, 100_000> = Nested::default();
        let evicted = (0..MAX_DEPTH + 5).filter_map(|item| open.begin(7, item)).collect::<Vec<_>>();
        assert_eq!(evicted, [0, 1, 2, 3, 4]);
    }
}
