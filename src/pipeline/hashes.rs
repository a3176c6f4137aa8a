//! The hashes of the inputs of a batch, so that of two equal ones the first is converted, whoever is faster.

use std::sync::{Condvar, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::source::FileIdentity;

/// The hashes of the inputs as they become known.
#[derive(Debug)]
pub(super) struct Hashes {
    known: Mutex<Vec<Option<String>>>,
    published: Condvar,
}

impl Hashes {
    /// Of so many inputs.
    pub(super) fn new(inputs: usize) -> Hashes {
        Hashes { known: Mutex::new(vec![None; inputs]), published: Condvar::new() }
    }

    /// Takes a hash, and says it to all, whatever comes of it.
    pub(super) fn publish(&self, index: usize, hash: impl FnOnce() -> Result<FileIdentity>) -> Result<FileIdentity> {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(hash))
            .unwrap_or_else(|_| Err(Error::Internal("hashing a file panicked".into())));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = known.get_mut(index) {
            *place = Some(result.as_ref().map_or_else(|_| String::new(), |identity| identity.sha256.clone()));
        }
        self.published.notify_all();
        result
    }

    /// The first of the inputs before this one that has the same content. Waits until theirs are known; they were begun
    /// before this one.
    pub(super) fn earlier(&self, index: usize, sha256: &str) -> Option<usize> {
        if sha256.is_empty() {
            return None;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let before = known.get(..index).unwrap_or_default();
            if before.iter().all(Option::is_some) {
                return before.iter().position(|hash| hash.as_deref() == Some(sha256));
            }
            known = self.published.wait(known).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
