//! The hashes of the inputs of a batch. Of two equal inputs the first is converted, independent of timing.

use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tracequet_dataset::error::{Error, Result};
use tracequet_trace::source::FileIdentity;

/// The hashes of the inputs as they become known.
#[derive(Debug, Default)]
pub(crate) struct Hashes {
    known: Mutex<Known>,
    published: Condvar,
}

#[derive(Debug, Default)]
struct Known {
    /// The first input with each hash, of those that were published.
    first: HashMap<String, usize>,
    /// The first input with each key, and its hash.
    keys: HashMap<String, (usize, String)>,
    /// All inputs before this one were published.
    all_before: usize,
    /// The published recordings behind it.
    others: HashSet<usize>,
}

impl Known {
    fn publish(&mut self, index: usize, key: String, hash: &str) {
        if !hash.is_empty() {
            let first = self.first.entry(hash.to_owned()).or_insert(index);
            *first = index.min(*first);
            let owner = self.keys.entry(key).or_insert_with(|| (index, hash.to_owned()));
            if index < owner.0 {
                *owner = (index, hash.to_owned());
            }
        }
        self.others.insert(index);
        while self.others.remove(&self.all_before) {
            self.all_before += 1;
        }
    }
}

impl Hashes {
    /// Takes a hash, and hands its result to all that wait for it. `key` makes a key of it.
    pub(crate) fn publish(
        &self,
        index: usize,
        key: impl FnOnce(&str) -> String,
        hash: impl FnOnce() -> Result<FileIdentity>,
    ) -> Result<FileIdentity> {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(hash))
            .unwrap_or_else(|_| Err(Error::Internal("hashing a file panicked".into())));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = result.as_ref().map_or("", |identity| identity.hash());
        known.publish(index, key(hash), hash);
        self.published.notify_all();
        result
    }

    /// The first of the inputs before this one that has the same content. Waits until theirs are known; they were begun
    /// before this one.
    pub(crate) fn earlier(&self, index: usize, hash: &str) -> Option<usize> {
        if hash.is_empty() {
            return None;
        }
        self.all_before(index).first.get(hash).copied().filter(|first| *first < index)
    }

    /// Whether one of the inputs before this one has the same key and another content. Waits as [`Hashes::earlier`]
    /// does.
    pub(crate) fn is_taken(&self, index: usize, key: &str, hash: &str) -> bool {
        let known = self.all_before(index);
        known.keys.get(key).is_some_and(|(owner, own)| *owner < index && own != hash)
    }

    fn all_before(&self, index: usize) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        while known.all_before < index {
            known = self.published.wait(known).unwrap_or_else(PoisonError::into_inner);
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(hashes: &Hashes, index: usize, hash: &str) {
        let key = |hash: &str| hash.chars().take(1).collect();
        hashes
            .publish(index, key, || {
                Ok(FileIdentity { size_bytes: 1, blake3: hash.to_owned(), ..FileIdentity::default() })
            })
            .unwrap();
    }

    #[test]
    fn the_first_of_equal_inputs_is_known_to_the_others_whoever_is_faster() {
        let hashes = Hashes::default();
        std::thread::scope(|scope| {
            let third = scope.spawn(|| {
                publish(&hashes, 3, "a");
                hashes.earlier(3, "a")
            });
            publish(&hashes, 2, "a");
            publish(&hashes, 1, "b");
            publish(&hashes, 0, "");
            assert_eq!(third.join().unwrap(), Some(2));
        });
        let earlier = [(0, "", None), (1, "b", None), (2, "a", None)];
        assert!(earlier.into_iter().all(|(index, hash, first)| hashes.earlier(index, hash) == first));
    }

    /// The keys of these inputs are the first letters of their hashes.
    #[test]
    fn a_key_belongs_to_the_first_input_that_has_it() {
        let hashes = Hashes::default();
        for (index, hash) in [(2, "ac"), (1, "ab"), (0, "ab")] {
            publish(&hashes, index, hash);
        }
        let taken = |index, hash| hashes.is_taken(index, "a", hash);
        assert_eq!([taken(0, "ab"), taken(1, "ab"), taken(2, "ac")], [false, false, true]);
        assert!(!hashes.is_taken(2, "b", "bc"));
    }

    #[test]
    fn many_inputs_take_time_in_proportion() {
        let hashes = Hashes::default();
        for index in 0..50_000 {
            publish(&hashes, index, &format!("{index:x}"));
            assert_eq!(hashes.earlier(index, &format!("{index:x}")), None);
        }
        let known = hashes.known.lock().unwrap();
        assert_eq!((known.all_before, known.others.len()), (50_000, 0));
    }
}
