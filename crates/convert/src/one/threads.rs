//! Counts of each thread of a recording.

use tracequet_facts::fact;
use tracequet_trace::reader::Thread;
use tracequet_trace::time::Clock;

/// The counts of one thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadCounts {
    /// Events about it.
    pub(crate) events: u64,
    /// Events that it recorded.
    pub(crate) captured: u64,
    /// Time of its first event.
    pub(crate) first_ns: i64,
    /// Time of its last event.
    pub(crate) last_ns: i64,
}

impl ThreadCounts {
    /// Counts an event about the thread.
    #[inline]
    pub(crate) fn event(&mut self, ts_ns: i64) {
        if self.events == 0 {
            (self.first_ns, self.last_ns) = (ts_ns, ts_ns);
        }
        self.events += 1;
        // Where blocks are damaged or late, time goes back.
        self.first_ns = self.first_ns.min(ts_ns);
        self.last_ns = self.last_ns.max(ts_ns);
    }

    /// The row of the thread that was counted.
    pub(crate) fn row<'t>(&self, thread: &'t Thread, clock: &Clock) -> fact::Thread<'t> {
        let time = |ticks: Option<i64>| ticks.and_then(|ticks| clock.since_start(ticks));
        fact::Thread {
            process_id: thread.process_id,
            thread_id: thread.thread_id,
            name: thread.name.as_deref(),
            start_ts_ns: time(thread.start_ticks),
            end_ts_ns: time(thread.end_ticks),
            start_address: thread.start_address,
            event_count: self.events,
            capture_count: self.captured,
            first_ts_ns: self.first_ns,
            last_ts_ns: self.last_ns,
        }
    }
}
