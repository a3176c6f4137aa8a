//! Joins: the points at which the threads of the collector wait for each other.
//!
//! ```text
//!  heap 0   Join ......................................... end      a wait
//!  heap 1              LastJoin ........ Restart ... end            works alone, then wakes the others
//! ```
//! Source: `t_join` in the runtime's `gc.cpp`. Who comes last (or, where the first one does the work, first) works
//! alone.

use super::event_collections::EventGcTracker;
use crate::fact::GcJoin;
use crate::prelude::*;

impl Item for GcJoin {
    fn start_ts_ns(&self) -> i64 {
        self.start_ts_ns
    }
}

/// Values of GCJoinType and GCJoinTime.
const LAST_JOIN: u64 = 0;
const JOIN: u64 = 1;
const RESTART: u64 = 2;
const FIRST_JOIN: u64 = 3;
const START: u64 = 0;

/// The open joins.
#[derive(Debug, Default)]
pub struct Joins {
    open: Nested<GcJoin, { 1 << 14 }>,
}

impl Tracker for Joins {
    type Action = ();
    const EVENTS: Events<()> = &[(RUNTIME, "GCJoin", ()), (PRIVATE, "GCJoin", ())];

    fn event(&mut self, _: (), input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let (thread, ts_ns) = (input.capture_thread(), input.ts_ns());
        let runtime = shared.runtimes.runtime_of(input).map(|(_, runtime)| runtime);
        let (gc_id, is_uncertain) = runtime.map_or((0, false), EventGcTracker::current_id);
        let join_id = input.fields.small("JoinID").filter(|id| *id != u32::MAX);
        let row = |kind| GcJoin {
            gc_id,
            kind,
            // Of a restart it says that it is one.
            heap_index: if kind == "restart" { None } else { input.fields.small("Heap") },
            join_id,
            touches_gap: is_uncertain,
            ..input.row()
        };
        let is_start = input.number("JoinTime") == START;
        let begins = match (input.number("JoinType"), is_start) {
            (JOIN, true) => Some("wait"),
            (LAST_JOIN | FIRST_JOIN, true) => Some("alone"),
            (RESTART, true) => Some("restart"),
            _ => None,
        };
        let ends = match (input.number("JoinType"), is_start) {
            (JOIN, false) => Some("wait"),
            (RESTART, true) => Some("alone"),
            (RESTART, false) => Some("restart"),
            _ => None,
        };
        if let Some(kind) = ends {
            let is_it = |open: &GcJoin| open.kind == kind && (kind != "wait" || open.join_id == join_id);
            if let Some(mut ended) = self.open.end(thread, ts_ns, is_it, |unended| sink.add(&unended)) {
                ended.gc_id = gc_id;
                ended.touches_gap |= is_uncertain;
                ended.end_ts_ns = Some(ts_ns);
                sink.add(&ended);
            }
        }
        if let Some(kind) = begins {
            // A thread is at one join at a time.
            sink.add(self.open.take(Some(thread)).as_slice());
            self.open.begin(thread, row(kind), |evicted| sink.add(&evicted));
        }
    }

    fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
        let mut open = self.open.take(cut.thread);
        open.iter_mut().for_each(|row| row.touches_gap |= cut.is_lost());
        sink.add(open.as_slice());
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many concurrent waits of the collector's threads; ends missing in the table gc_join";
        vec![Dropped { code: "too_many_joins", count: self.open.dropped(), message }]
    }
}
