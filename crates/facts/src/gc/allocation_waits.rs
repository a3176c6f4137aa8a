//! Waits of threads that allocate while a background collection runs.

use crate::fact::GcAllocationWait;
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationWaitsAction {
    /// A thread begins to wait.
    Begin,
    /// The thread continues.
    End,
}

impl Item for GcAllocationWait {
    fn start_ts_ns(&self) -> i64 {
        self.start_ts_ns
    }
}

/// Why a thread waits. Source: `alloc_wait_reason` in the runtime's `gcpriv.h`; the last one was `loh_alloc_during_bgc`
/// before .NET 5.
fn reason(code: u64) -> Option<&'static str> {
    const REASONS: [&str; 12] = [
        "low_memory", "low_ephemeral", "gen0_alloc", "loh_alloc", "alloc_loh_low_mem", "loh_oos", "gen0_oos_bgc",
        "loh_oos_bgc", "fgc_wait_for_bgc", "get_loh_seg", "loh_alloc_during_plan", "uoh_alloc_during_bgc",
    ];
    usize::try_from(code).ok().and_then(|code| REASONS.get(code)).copied()
}

/// The open waits.
#[derive(Debug, Default)]
pub struct AllocationWaits {
    open: Nested<GcAllocationWait, { 1 << 16 }>,
}

impl Tracker for AllocationWaits {
    type Action = AllocationWaitsAction;
    const EVENTS: Events<AllocationWaitsAction> = &[
        (PRIVATE, "BGCAllocWaitBegin", AllocationWaitsAction::Begin),
        (PRIVATE, "BGCAllocWaitEnd", AllocationWaitsAction::End),
    ];

    fn event(&mut self, action: AllocationWaitsAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        let (thread, ts_ns) = (input.capture_thread(), input.ts_ns());
        let reason = input.fields.number("Reason").and_then(reason);
        match action {
            AllocationWaitsAction::Begin => {
                let row = GcAllocationWait { reason, ..input.row() };
                // A thread has one wait at a time: the end of the one before is lost.
                sink.add(self.open.take(Some(thread)).as_slice());
                self.open.begin(thread, row, |evicted| sink.add(&evicted));
            }
            AllocationWaitsAction::End => {
                if let Some(mut row) =
                    self.open.end(thread, ts_ns, |open| open.reason == reason, |inner| sink.add(&inner))
                {
                    row.end_ts_ns = Some(ts_ns);
                    sink.add(&row);
                }
            }
        }
    }

    fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
        let mut open = self.open.take(cut.thread);
        open.iter_mut().for_each(|row| row.touches_gap |= cut.is_lost());
        sink.add(open.as_slice());
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message =
            "too many concurrent waits for background collections; ends missing in the table gc_allocation_wait";
        vec![Dropped { code: "too_many_waits", count: self.open.dropped(), message }]
    }
}
