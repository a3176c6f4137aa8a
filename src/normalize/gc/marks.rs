//! Marking by kinds of roots: how long it takes and how much it finds.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::event_collections::EventGcTracker;
use crate::normalize::enum_names;
use crate::normalize::fact::{FactSink, GcId, GcMark};
use crate::normalize::tracker::{self, Hears, Input, RUNTIME};

/// What an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// One kind of roots is done.
    Marked,
}

/// The event.
pub const HEARS: &[Hears<Action>] = &[Hears { provider: RUNTIME, events: &[("GCMarkWithType", Action::Marked)] }];

impl tracker::Action for Action {}

/// Heaps of all runtimes, at most.
const MAX_HEAPS: usize = 1 << 14;

/// When each heap was done with a kind, and in which collection.
#[derive(Debug, Default)]
pub struct Marks {
    last: HashMap<(usize, u32), (GcId, i64), RandomState>,
}

impl Marks {
    /// GCMarkWithType.
    pub fn event(
        &mut self,
        Action::Marked: Action,
        input: &Input<'_>,
        runtime: Option<(usize, &mut EventGcTracker)>,
        sink: &mut impl FactSink,
    ) {
        let Some((index, collections)) = runtime else { return };
        let gc_id = collections.current().map_or(0, |row| row.gc_id);
        let (ts_ns, heap_index) = (input.ts_ns(), input.number("HeapNum") as u32);
        if self.last.len() >= MAX_HEAPS {
            self.last.clear();
        }
        let before = self.last.insert((index, heap_index), (gc_id, ts_ns));
        let kind = input.number("Type");
        sink.add(&GcMark {
            gc_id,
            ts_ns,
            thread_id: input.thread_id(),
            heap_index,
            root_kind_number: kind as u32,
            root_kind: enum_names::event_root_kind(kind),
            promoted_bytes: input.number("Bytes"),
            duration_ns: before
                .filter(|(of, at)| gc_id != 0 && *of == gc_id && *at <= ts_ns)
                .map(|(_, at)| ts_ns.saturating_sub(at)),
        });
    }

    /// Events were lost: no time is measured across the gap.
    pub fn forget(&mut self) {
        self.last.clear();
    }
}
