//! Items that began on a thread and have not ended: for trackers that join a start with its stop, which nest on a
//! thread.

use std::collections::BTreeMap;

/// The largest number of open items on one thread.
const MAX_DEPTH: usize = 256;

/// Bytes of text that all open items keep, at most, unless the last one alone has more.
const MAX_TEXT: usize = 16 << 20;

/// An item that waits for its end.
pub trait Item {
    /// When it began: nanoseconds since the recording began.
    fn start_ts_ns(&self) -> i64;

    /// Bytes of the texts that it keeps.
    fn text_bytes(&self) -> usize {
        0
    }
}

/// Open items by thread, the innermost last, each with the bytes of its texts; `MAX` of them in all.
#[derive(Debug)]
pub struct Nested<T, const MAX: usize> {
    threads: BTreeMap<u32, Vec<(T, usize)>>,
    count: usize,
    text_bytes: usize,
    dropped: u64,
}

impl<T, const MAX: usize> Default for Nested<T, MAX> {
    fn default() -> Self {
        Nested { threads: BTreeMap::new(), count: 0, text_bytes: 0, dropped: 0 }
    }
}

impl<T: Item, const MAX: usize> Nested<T, MAX> {
    /// Something begins on a thread. While too much is open, the outermost item of this thread (or of another one) is
    /// handed to `evicted`: its end will not be looked for.
    pub fn begin(&mut self, thread: u32, item: T, mut evicted: impl FnMut(T)) {
        let text_bytes = item.text_bytes();
        loop {
            let is_deep = self.threads.get(&thread).is_some_and(|open| open.len() >= MAX_DEPTH);
            let is_full = self.count >= MAX || self.count > 0 && self.text_bytes.saturating_add(text_bytes) > MAX_TEXT;
            let victim = match (is_deep, is_full) {
                (true, _) => Some(thread),
                (false, true) => self.threads.keys().next().copied(),
                (false, false) => None,
            };
            match victim.and_then(|victim| self.remove(victim, 0)) {
                Some(item) => {
                    self.dropped += 1;
                    evicted(item);
                }
                None => break,
            }
        }
        self.threads.entry(thread).or_default().push((item, text_bytes));
        self.count += 1;
        self.text_bytes = self.text_bytes.saturating_add(text_bytes);
    }

    /// Items whose end was not looked for any more, because too much was open.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The innermost open item of a thread.
    pub fn innermost(&mut self, thread: u32) -> Option<&mut T> {
        self.threads.get_mut(&thread)?.last_mut().map(|(item, _)| item)
    }

    /// The open items on a thread, the outermost first. Texts of items stay as they are.
    pub fn of_thread(&mut self, thread: u32) -> impl DoubleEndedIterator<Item = &mut T> + ExactSizeIterator {
        self.threads.get_mut(&thread).map(|open| open.iter_mut()).unwrap_or_default().map(|(item, _)| item)
    }

    /// Takes what is open on a thread from a place on, the outermost first.
    pub fn take_from(&mut self, thread: u32, place: usize) -> Vec<T> {
        let Some(open) = self.threads.get_mut(&thread) else { return Vec::new() };
        let taken = open.split_off(place.min(open.len()));
        if open.is_empty() {
            self.threads.remove(&thread);
        }
        self.count -= taken.len();
        self.text_bytes -= taken.iter().map(|(_, text_bytes)| text_bytes).sum::<usize>();
        taken.into_iter().map(|(item, _)| item).collect()
    }

    /// The innermost item that `is_it` ends at a time. Items inside it were not seen to end: they are handed to
    /// `unended`. Nothing ends before it began: where time goes back, the end is that of something else.
    pub fn end(
        &mut self,
        thread: u32,
        ts_ns: i64,
        is_it: impl Fn(&T) -> bool,
        mut unended: impl FnMut(T),
    ) -> Option<T> {
        let open = self.threads.get_mut(&thread)?;
        let index = open.iter().rposition(|(item, _)| item.start_ts_ns() <= ts_ns && is_it(item))?;
        let inner = open.split_off(index + 1);
        self.count -= inner.len();
        for (item, text_bytes) in inner {
            self.text_bytes -= text_bytes;
            unended(item);
        }
        self.remove(thread, index)
    }

    fn remove(&mut self, thread: u32, index: usize) -> Option<T> {
        let open = self.threads.get_mut(&thread)?;
        let (item, text_bytes) = (index < open.len()).then(|| open.remove(index))?;
        if open.is_empty() {
            self.threads.remove(&thread);
        }
        self.count -= 1;
        self.text_bytes -= text_bytes;
        Some(item)
    }

    /// Takes what is open on a thread (`None`: on any), the outermost first: events were lost, or the recording ends.
    pub fn take(&mut self, thread: Option<u32>) -> Vec<T> {
        let taken: Vec<(T, usize)> = match thread {
            Some(thread) => self.threads.remove(&thread).unwrap_or_default(),
            None => std::mem::take(&mut self.threads).into_values().flatten().collect(),
        };
        self.count -= taken.len();
        self.text_bytes -= taken.iter().map(|(_, text_bytes)| text_bytes).sum::<usize>();
        taken.into_iter().map(|(item, _)| item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Item for u32 {
        fn start_ts_ns(&self) -> i64 {
            i64::from(*self)
        }
    }

    impl Item for (u32, &str) {
        fn start_ts_ns(&self) -> i64 {
            i64::from(self.0)
        }
    }

    impl Item for String {
        fn start_ts_ns(&self) -> i64 {
            0
        }

        fn text_bytes(&self) -> usize {
            self.len()
        }
    }

    #[test]
    fn texts_are_kept_up_to_a_bound() {
        let mut open: Nested<String, 1000> = Nested::default();
        let mut evicted = 0;
        for thread in 0..100 {
            open.begin(thread, "x".repeat(1 << 20), |_| evicted += 1);
        }
        assert_eq!((evicted, open.count, open.text_bytes), (84, 16, 16 << 20));
        // One that has more than all may have is kept alone.
        open.begin(7, "x".repeat(17 << 20), |_| evicted += 1);
        assert_eq!((evicted, open.count), (100, 1));
        assert_eq!((open.take(None).len(), open.text_bytes), (1, 0));
    }

    #[test]
    fn an_end_belongs_to_the_innermost_start_of_its_thread() {
        let mut open: Nested<(u32, &str), 8> = Nested::default();
        for (thread, item) in [(1, (10, "a")), (2, (20, "a")), (1, (11, "b")), (1, (12, "a")), (1, (13, "c"))] {
            open.begin(thread, item, |evicted| panic!("{evicted:?}"));
        }
        let mut unended = Vec::new();
        assert_eq!(open.end(1, 100, |item| item.1 == "a", |item| unended.push(item.0)), Some((12, "a")));
        assert_eq!(unended, [13]);
        assert_eq!(open.end(2, 100, |item| item.1 == "b", |_| {}), None);
        assert_eq!(open.innermost(1), Some(&mut (11, "b")));
        assert_eq!(open.take(Some(1)), [(10, "a"), (11, "b")]);
        assert_eq!(open.end(1, 100, |_| true, |_| {}), None);
        assert_eq!(open.take(None), [(20, "a")]);
        assert_eq!(open.count, 0);
    }

    #[test]
    fn no_more_is_kept_than_the_bound() {
        let mut open: Nested<u32, 4> = Nested::default();
        let mut evicted = Vec::new();
        (0..10).for_each(|item| open.begin(item % 3, item, |item| evicted.push(item)));
        assert_eq!((evicted.len(), open.dropped(), open.take(None).len()), (6, 6, 4));
        let mut open: Nested<u32, 100_000> = Nested::default();
        evicted.clear();
        (0..MAX_DEPTH as u32 + 5).for_each(|item| open.begin(7, item, |item| evicted.push(item)));
        assert_eq!((evicted, open.dropped()), (vec![0, 1, 2, 3, 4], 5));
    }
}
