//! Pauses: one thread asks all others to stop, they stand still, and they run again.

use crate::normalize::fact::{FactSink, Gc, GcId, GcPause};

/// Threads that stop all others at once, at most.
const MAX_OPEN: usize = 64;

#[derive(Debug)]
struct Open {
    /// The thread that stops the others; several may try at once, and one after the other succeeds.
    thread: u32,
    reason: Option<&'static str>,
    start_ns: i64,
    stopped_ns: Option<i64>,
    /// First collection that started in it, else the one it was begun for.
    gc_id: GcId,
    started_here: bool,
    is_background: bool,
}

/// The open pauses of one runtime, in the order in which they began.
#[derive(Debug, Default)]
pub struct Pauses(Vec<Open>);

/// Whether a collection may ask for a pause with this reason; an unknown one may be.
pub fn is_for_gc(reason: Option<&str>) -> bool {
    reason.is_none_or(|reason| reason.starts_with("SuspendForGC"))
}

impl Pauses {
    /// A thread asks the others to stop, for the sake of this collection as far as known (0: none).
    pub fn begin(&mut self, thread: u32, reason: Option<&'static str>, gc_id: GcId, ts_ns: i64) {
        self.abort(thread);
        if self.0.len() < MAX_OPEN {
            let (start_ns, stopped_ns) = (ts_ns, None);
            let (started_here, is_background) = (false, false);
            self.0.push(Open { thread, reason, start_ns, stopped_ns, gc_id, started_here, is_background });
        }
    }

    /// The thread gives it up.
    pub fn abort(&mut self, thread: u32) {
        self.0.retain(|open| open.thread != thread);
    }

    /// A collection starts.
    pub fn collection(&mut self, gc_id: GcId, is_background: bool) {
        // A sampling profiler may be about to stop the same threads: that is no pause for this collection.
        let for_gc = self.0.iter().position(|open| is_for_gc(open.reason));
        if let Some(open) = self.0.get_mut(for_gc.unwrap_or_default())
            && (!open.started_here || open.is_background)
        {
            // Of a background collection and a blocking one that start in the same pause, the blocking one takes it up.
            (open.gc_id, open.started_here, open.is_background) = (gc_id, true, is_background);
        }
    }

    /// The pause that a thread began, or else the one that began last.
    fn index(&self, thread: u32) -> Option<usize> {
        let own = self.0.iter().position(|open| open.thread == thread);
        own.or(self.0.len().checked_sub(1))
    }

    /// All threads stand still.
    pub fn stopped(&mut self, thread: u32, ts_ns: i64) {
        if let Some(open) = self.index(thread).and_then(|index| self.0.get_mut(index)) {
            open.stopped_ns.get_or_insert(ts_ns);
        }
    }

    /// All threads run again: the pause is counted into its collection, if that is among `rows`.
    pub fn end<'r>(
        &mut self,
        thread: u32,
        ts_ns: i64,
        process_id: u64,
        mut rows: impl Iterator<Item = &'r mut Gc>,
        sink: &mut impl FactSink,
    ) {
        let Some(index) = self.index(thread) else { return };
        let open = self.0.remove(index);
        let pause = GcPause {
            gc_id: open.gc_id,
            process_id,
            reason: open.reason,
            start_ts_ns: open.start_ns,
            duration_ns: ts_ns.saturating_sub(open.start_ns),
            suspend_ns: open.stopped_ns.map_or(0, |at| at.saturating_sub(open.start_ns)),
        };
        if let Some(row) = rows.find(|row| row.gc_id == pause.gc_id) {
            row.pause_ns = row.pause_ns.saturating_add(pause.duration_ns);
            row.pause_count += 1;
        }
        sink.add(&pause);
    }
}
