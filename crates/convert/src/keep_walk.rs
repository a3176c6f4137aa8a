//! A walk of the heap that a conversion keeps for the caller.

use std::sync::{Arc, Mutex, PoisonError};

use tracequet_analyze::heap::KeptWalk;

/// Asks a conversion of one recording to keep the objects and references of a heap dump in memory, so that the tables
/// with a row for each need not be written and read again. Clones are the same request.
#[derive(Clone, Debug)]
pub struct KeepWalk {
    memory: u64,
    gc_id: Option<u32>,
    kept: Arc<Mutex<Option<KeptWalk>>>,
}

impl KeepWalk {
    /// Of a collection by its `gc_id`, or of the last one with a heap dump; for a graph that takes at most `memory`
    /// bytes.
    pub fn new(memory: u64, gc_id: Option<u32>) -> KeepWalk {
        KeepWalk { memory, gc_id, kept: Arc::default() }
    }

    /// The walk that the conversion kept, once it is done.
    pub fn take(&self) -> Option<KeptWalk> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// For a recording that begins.
    pub(super) fn begin(&self) -> KeptWalk {
        KeptWalk::new(self.memory, self.gc_id)
    }

    /// At its end.
    pub(super) fn put(&self, walk: KeptWalk) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(walk);
    }
}
