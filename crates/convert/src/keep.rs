//! Requests that a conversion keeps some of a recording for the caller.

use std::sync::{Arc, Mutex, PoisonError};

use tracequet_analyze::collection::{RANGE_TABLES, SpilledCollections};
use tracequet_analyze::heap::{self, KeptWalk};
use tracequet_analyze::kept::Kept;

/// Asks a conversion of one recording to keep some of it for the caller, so that the tables with a row for each object, reference or range need
/// not be written and read again. Clones are the same request.
#[derive(Clone, Debug)]
pub struct Keep {
    memory: u64,
    gc_id: Option<u32>,
    pub(super) ranges: Option<u64>,
    kept: Arc<Mutex<Kept>>,
}

impl Keep {
    /// The objects and references of a heap dump, in memory: of a collection by its `gc_id`, or of the last one with a heap dump; for a graph
    /// that takes at most `memory` bytes.
    pub fn walk(memory: u64, gc_id: Option<u32>) -> Keep {
        Keep { memory, gc_id, ranges: None, kept: Arc::default() }
    }

    /// The ranges of all collections, too, packed in memory and in a temporary file. Limits memory as [`crate::Convert::lifetimes`] does.
    pub fn with_ranges(self, memory: u64) -> Keep {
        Keep { ranges: Some(memory), ..self }
    }

    /// Takes out the rows that were kept, once the conversion is done.
    pub fn take(&self) -> Kept {
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the rows of a table are kept in place of the table.
    pub(super) fn replaces(&self, table: &str) -> bool {
        heap::LARGE_TABLES.contains(&table) || self.ranges.is_some() && RANGE_TABLES.contains(&table)
    }

    /// An empty walk, for a recording that begins.
    pub(super) fn begin(&self) -> KeptWalk {
        KeptWalk::new(self.memory, self.gc_id)
    }

    /// Hands over what was kept, at the end of the recording.
    pub(super) fn put(&self, walk: KeptWalk, collections: Option<SpilledCollections>) {
        let collections = collections.filter(|_| self.ranges.is_some());
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Kept { walk: Some(walk), collections };
    }
}
