//! Marking by kinds of roots: how long it takes and how much it finds.

use crate::fact::{GcId, GcMark};
use crate::prelude::*;

/// Heaps of all runtimes, at most.
const MAX_HEAPS: usize = 1 << 14;

/// When each heap was done with a kind, and in which collection: a background one and another that may run within it.
#[derive(Debug, Default)]
pub struct Marks {
    last: Map<(usize, u32, bool), (GcId, i64)>,
    /// The collection in which times were forgotten, because there were too many heaps.
    forgotten_in: GcId,
}

impl Tracker for Marks {
    type Action = ();
    const EVENTS: Events<()> = &[(RUNTIME, "GCMarkWithType", ())];

    fn event(&mut self, _: (), input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let runtime = shared.runtimes.runtime_of(input);
        let Some((index, collections)) = runtime else { return };
        let gc_id = collections.current().map_or(0, |row| row.gc_id);
        let (began, is_background) = (collections.marking_since(), collections.is_background());
        let (ts_ns, heap_index) = (input.ts_ns(), input.number("HeapNum") as u32);
        if self.last.len() >= MAX_HEAPS {
            self.last.clear();
            self.forgotten_in = gc_id;
        }
        let before =
            self.last.insert((index, heap_index, is_background), (gc_id, ts_ns)).filter(|(of, _)| *of == gc_id);
        let before = before.map(|(_, at)| at).or(began.filter(|_| gc_id != self.forgotten_in));
        let kind = input.number("Type");
        sink.add(&GcMark {
            gc_id,
            ts_ns,
            thread_id: input.thread_id(),
            heap_index,
            root_kind_number: kind as u32,
            root_kind: enum_names::event_root_kind(kind),
            promoted_bytes: input.number("Bytes"),
            duration_ns: before.filter(|at| gc_id != 0 && *at <= ts_ns).map(|at| ts_ns.saturating_sub(at)),
        });
    }

    fn cut(&mut self, _: &Cut, _: &mut impl FactSink) {
        self.last.clear();
    }
}
