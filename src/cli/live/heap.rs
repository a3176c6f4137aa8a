//! The heap of a process: which collection lists it, and how long that stopped the process.

use std::sync::{Arc, Mutex, PoisonError};

use tracequet::event::{Event, EventInfo};

use super::fields::{RUNTIME, field_number};

const GC_START: u32 = 1;
const GC_END: u32 = 2;
const RESTART_END: u32 = 3;
const SUSPEND_BEGIN: u32 = 9;
/// Type of a collection beside which threads run: not the one that lists the heap.
const BACKGROUND: u64 = 1;
/// The whole heap.
const OLDEST_GENERATION: u64 = 2;

/// What is known of the dump so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// Number of the collection that lists the heap.
    pub collection: Option<u64>,
    /// Whether that collection has ended: the heap is whole.
    pub is_whole: bool,
    /// How long all threads stood still for it, nanoseconds.
    pub pause_ns: Option<i64>,
}

/// Looks for the collection that lists the heap.
#[derive(Debug, Default)]
pub struct HeapWatch {
    suspended_ns: Option<i64>,
    dump: Arc<Mutex<Dump>>,
}

impl HeapWatch {
    /// What others see of it.
    pub fn dump(&self) -> Arc<Mutex<Dump>> {
        self.dump.clone()
    }

    /// Whether events of this kind say something about it.
    pub fn wants(&self, info: &EventInfo) -> bool {
        info.provider == RUNTIME && [GC_START, GC_END, RESTART_END, SUSPEND_BEGIN].contains(&info.event_type.event_id)
    }

    /// Whether the heap is whole with this event.
    ///
    /// The runtime is told to collect when the session begins. The collection is the first of the whole heap that is no
    /// background one; its list is whole at its end.
    pub fn event(&mut self, event: &Event<'_>) -> bool {
        let number = |name| field_number(event, name);
        let mut dump = self.dump.lock().unwrap_or_else(PoisonError::into_inner);
        match event.info.event_type.event_id {
            SUSPEND_BEGIN => self.suspended_ns = Some(event.ts_ns),
            GC_START => {
                let of_heap = number("Depth") == Some(OLDEST_GENERATION) && number("Type") != Some(BACKGROUND);
                if dump.collection.is_none() && of_heap {
                    dump.collection = number("Count");
                }
            }
            GC_END if !dump.is_whole && dump.collection.is_some() && number("Count") == dump.collection => {
                dump.is_whole = true;
                return true;
            }
            RESTART_END if dump.collection.is_some() && dump.pause_ns.is_none() => {
                dump.pause_ns = self.suspended_ns.take().map(|begin| event.ts_ns - begin);
            }
            _ => {}
        }
        false
    }
}
