//! Pauses: one thread asks all others to stop, they stop, and they are resumed.
//!
//! A stop may hold two collections: a background one and, before it runs beside the program, a blocking one. Then it is
//! two pauses, as in PerfView: the first until the GCStart of the inner collection, the second from there.
//!
//! ```text
//!  SuspendEEBegin   GCStart 12 (background)   GCStart 13 (gen 0)   GCEnd 13   RestartEEEnd
//!  |-- pause of 12 --------------------------|-- pause of 13 -----------------|
//! ```

use crate::fact::{FactSink, Gc, GcId, GcPause};

/// Threads that stop all others at once, at most.
const MAX_OPEN: usize = 64;

/// The report of pauses whose ends were not waited for.
pub const TOO_MANY_PAUSES: &str = "too many concurrent pauses; pauses missing in the table gc_pause";

#[derive(Debug)]
struct OpenPause {
    /// The thread that stops the others; several may try at once, and one after the other succeeds.
    thread: u32,
    reason: Option<&'static str>,
    start_ts_ns: i64,
    stopped_ns: Option<i64>,
    /// First collection that started in it, else the one it was begun for.
    gc_id: GcId,
    started_here: bool,
    /// `gc_id` goes on behind a collection that starts in it, and the time before that is its own.
    is_background: bool,
    /// Events of another thread were lost meanwhile.
    touches_gap: bool,
}

/// The open pauses of one runtime, in the order in which they began.
#[derive(Debug, Default)]
pub struct Pauses {
    open: Vec<OpenPause>,
    /// Pauses whose end is lost; what they were for.
    lost: Vec<GcId>,
    /// Pauses whose ends were not looked for any more, because too many were open.
    pub dropped: u64,
    /// Whether events were lost: then an end is only joined with a beginning on the same thread.
    has_gaps: bool,
}

/// Whether a collection may ask for a pause with this reason; an unknown one may be.
pub fn is_for_gc(reason: Option<&str>) -> bool {
    reason.is_none_or(|reason| reason.starts_with("SuspendForGC"))
}

/// Whether a background collection stops the threads with this reason in its course.
fn is_of_background(reason: Option<&str>) -> bool {
    reason == Some("SuspendForGCPrep")
}

/// The purpose of a pause: a collection (`gc`), or the sampler, a debugger, the end of the process and so on (`other`).
fn kind(reason: Option<&str>, gc_id: GcId) -> &'static str {
    match reason {
        None if gc_id == 0 => "unknown",
        reason if is_for_gc(reason) => "gc",
        _ => "other",
    }
}

impl Pauses {
    /// A thread asks the others to stop, for the sake of this collection as far as known (0: none). If it did so
    /// before, the end of that pause is lost.
    pub fn begin(&mut self, thread: u32, reason: Option<&'static str>, gc_id: GcId, start_ts_ns: i64) {
        self.lose(|open| open.thread == thread);
        if self.open.len() >= MAX_OPEN {
            let oldest = self.open.first().map_or(0, |open| open.thread);
            self.lose(|open| open.thread == oldest);
            self.dropped += 1;
        }
        self.open.push(OpenPause {
            thread,
            reason,
            start_ts_ns,
            stopped_ns: None,
            gc_id,
            started_here: false,
            is_background: gc_id != 0 && is_of_background(reason),
            touches_gap: false,
        });
    }

    /// The thread gives it up.
    pub fn abort(&mut self, thread: u32) {
        self.open.retain(|open| open.thread != thread);
    }

    /// Events of a thread were lost (`None`: of any). A pause that it began may have ended in the gap.
    pub fn events_lost(&mut self, thread: Option<u32>) {
        self.has_gaps = true;
        self.lose(|open| thread.is_none_or(|thread| open.thread == thread));
        self.open.iter_mut().for_each(|open| open.touches_gap = true);
    }

    fn lose(&mut self, which: impl Fn(&OpenPause) -> bool) {
        for open in self.open.extract_if(.., |open| which(open)) {
            if open.gc_id != 0 && self.lost.len() < MAX_OPEN {
                self.lost.push(open.gc_id);
            }
        }
    }

    /// A collection of which a pause is lost cannot be trusted: marks those of `rows` that lost one since this was
    /// asked last.
    pub fn mark_lost<'r>(&mut self, rows: impl Iterator<Item = &'r mut Gc>) {
        if self.lost.is_empty() {
            return;
        }
        rows.filter(|row| self.lost.contains(&row.gc_id)).for_each(|row| row.touches_gap = true);
        self.lost.clear();
    }

    /// The oldest collection that an open pause is for.
    pub fn oldest_collection(&self) -> Option<GcId> {
        self.open.iter().map(|open| open.gc_id).filter(|gc_id| *gc_id != 0).min()
    }

    /// A collection starts: a pause of a background collection, of which `rows` has the row, ends there.
    pub fn collection<'r>(
        &mut self,
        gc_id: GcId,
        is_background: bool,
        ts_ns: i64,
        process_id: u64,
        rows: impl Iterator<Item = &'r mut Gc>,
        sink: &mut impl FactSink,
    ) {
        // A sampling profiler may be about to stop the same threads: that is no pause for this collection. Of several
        // threads that want to collect, the one that stopped the others last does.
        let for_gc = self.open.iter_mut().filter(|open| is_for_gc(open.reason));
        let stopped = for_gc.enumerate().max_by_key(|(index, open)| (open.stopped_ns, std::cmp::Reverse(*index)));
        let Some((_, open)) = stopped.filter(|(_, open)| !open.started_here || open.is_background) else { return };
        if open.is_background && open.start_ts_ns <= ts_ns {
            open.report(ts_ns, process_id, rows, sink);
            (open.start_ts_ns, open.stopped_ns) = (ts_ns, Some(ts_ns));
        }
        (open.gc_id, open.started_here, open.is_background) = (gc_id, true, is_background);
        // No collection starts in two pauses at once: where the ends may be lost, the other one is over.
        if self.has_gaps {
            self.lose(|open| open.started_here && open.gc_id != gc_id && is_for_gc(open.reason));
        }
    }

    /// The recording ends. Where events were lost, ends of pauses may be among them.
    pub fn finish(&mut self) {
        if self.has_gaps {
            self.lose(|_| true);
        }
    }

    /// The pause that a thread began. Where nothing is lost, the one that began last stands in for it: on some systems
    /// another thread reports the end.
    fn index(&self, thread: u32, ts_ns: i64) -> Option<usize> {
        let own = self.open.iter().position(|open| open.thread == thread);
        let index = own.or(self.open.len().checked_sub(1).filter(|_| !self.has_gaps));
        // Where time goes back, what comes is about another pause.
        index.filter(|index| self.open.get(*index).is_some_and(|open| open.start_ts_ns <= ts_ns))
    }

    /// All threads are stopped.
    pub fn stopped(&mut self, thread: u32, ts_ns: i64) {
        if let Some(open) = self.index(thread, ts_ns).and_then(|index| self.open.get_mut(index)) {
            open.stopped_ns.get_or_insert(ts_ns);
        }
    }

    /// All threads run again: the pause is counted into its collection, if that is among `rows`.
    pub fn end<'r>(
        &mut self,
        thread: u32,
        ts_ns: i64,
        process_id: u64,
        rows: impl Iterator<Item = &'r mut Gc>,
        sink: &mut impl FactSink,
    ) {
        let Some(index) = self.index(thread, ts_ns) else { return };
        self.open.remove(index).report(ts_ns, process_id, rows, sink);
    }
}

impl OpenPause {
    /// The pause up to a time, counted into its collection, if that is among `rows`.
    fn report<'r>(
        &self,
        end_ns: i64,
        process_id: u64,
        mut rows: impl Iterator<Item = &'r mut Gc>,
        sink: &mut impl FactSink,
    ) {
        let pause = GcPause {
            gc_id: self.gc_id,
            process_id,
            kind: kind(self.reason, self.gc_id),
            reason: self.reason,
            start_ts_ns: self.start_ts_ns,
            duration_ns: end_ns.saturating_sub(self.start_ts_ns),
            suspend_ns: self.stopped_ns.map_or(0, |at| at.saturating_sub(self.start_ts_ns)),
            touches_gap: self.touches_gap,
        };
        if let Some(row) = rows.find(|row| row.gc_id == pause.gc_id) {
            row.pause_ns = row.pause_ns.saturating_add(pause.duration_ns);
            row.pause_count += 1;
        }
        sink.add(&pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;

    #[derive(Default)]
    struct Reported(Vec<GcPause>);

    impl FactSink for Reported {
        fn fact(&mut self, fact: Fact<'_>) {
            if let Fact::GcPause(rows) = fact {
                self.0.extend_from_slice(rows);
            }
        }
    }

    const FOR_GC: Option<&str> = Some("SuspendForGC");

    /// The collections that are marked, of the first ten.
    fn take_lost(pauses: &mut Pauses) -> Vec<GcId> {
        let mut rows = Vec::from_iter((1..=10).map(|gc_id| Gc { gc_id, ..Gc::default() }));
        pauses.mark_lost(rows.iter_mut());
        rows.iter().filter(|row| row.touches_gap).map(|row| row.gc_id).collect()
    }

    fn start(pauses: &mut Pauses, gc_id: GcId) {
        pauses.collection(gc_id, false, 1 << 40, 5, std::iter::empty(), &mut Reported::default());
    }

    #[test]
    fn a_stop_that_holds_a_background_collection_and_an_inner_one_is_split_where_the_inner_one_starts() {
        let mut rows = Vec::from_iter((11..=14).map(|gc_id| Gc { gc_id, ..Gc::default() }));
        let (mut pauses, mut reported) = (Pauses::default(), Reported::default());
        let mut collection = |pauses: &mut Pauses, gc_id, is_background, ts_ns, reported: &mut Reported| {
            pauses.collection(gc_id, is_background, ts_ns, 5, rows.iter_mut(), reported);
        };
        // The first stop of a background collection, with one of generation 0 inside.
        pauses.begin(1, FOR_GC, 0, 100);
        pauses.stopped(1, 110);
        collection(&mut pauses, 12, true, 120, &mut reported);
        collection(&mut pauses, 13, false, 150, &mut reported);
        pauses.end(1, 200, 5, std::iter::empty(), &mut reported);
        // A later one of its stops, in which another collection starts.
        pauses.begin(1, Some("SuspendForGCPrep"), 12, 300);
        pauses.stopped(1, 305);
        collection(&mut pauses, 14, false, 330, &mut reported);
        pauses.end(1, 390, 5, std::iter::empty(), &mut reported);
        // A stop for a collection inside of the background one is all of that collection.
        pauses.begin(1, FOR_GC, 12, 400);
        pauses.stopped(1, 405);
        collection(&mut pauses, 11, false, 430, &mut reported);
        pauses.end(1, 490, 5, std::iter::empty(), &mut reported);
        let all: Vec<_> =
            reported.0.iter().map(|p| (p.gc_id, p.start_ts_ns, p.duration_ns, p.suspend_ns, p.kind)).collect();
        assert_eq!(
            all,
            [
                (12, 100, 50, 10, "gc"),
                (13, 150, 50, 0, "gc"),
                (12, 300, 30, 5, "gc"),
                (14, 330, 60, 0, "gc"),
                (11, 400, 90, 5, "gc")
            ]
        );
        // Of the pauses that ended where a collection started, the background collection has the sum.
        let counted: Vec<_> = rows.iter().map(|row| (row.gc_id, row.pause_ns, row.pause_count)).collect();
        assert_eq!(counted, [(11, 0, 0), (12, 80, 2), (13, 0, 0), (14, 0, 0)]);
    }

    #[test]
    fn no_pause_is_joined_across_a_gap() {
        let (mut pauses, mut reported) = (Pauses::default(), Reported::default());
        pauses.begin(1, FOR_GC, 0, 100);
        pauses.stopped(1, 110);
        start(&mut pauses, 7);
        pauses.events_lost(Some(1));
        pauses.end(1, 900, 5, std::iter::empty(), &mut reported);
        assert_eq!(reported.0, []);
        assert_eq!(take_lost(&mut pauses), [7]);
        // A gap of another thread leaves the pause, which says so.
        pauses.begin(2, FOR_GC, 0, 1000);
        pauses.events_lost(Some(1));
        pauses.end(1, 1100, 5, std::iter::empty(), &mut reported);
        assert_eq!(reported.0, [], "an end on another thread");
        pauses.end(2, 1200, 5, std::iter::empty(), &mut reported);
        let [pause] = reported.0.as_slice() else { panic!("{:?}", reported.0) };
        assert!(pause.touches_gap);
        assert_eq!((pause.start_ts_ns, pause.duration_ns), (1000, 200));
    }

    #[test]
    fn a_second_beginning_on_a_thread_shows_that_an_end_is_lost() {
        let (mut pauses, mut reported) = (Pauses::default(), Reported::default());
        pauses.begin(1, FOR_GC, 0, 100);
        start(&mut pauses, 3);
        pauses.begin(1, FOR_GC, 0, 500);
        assert_eq!(take_lost(&mut pauses), [3]);
        start(&mut pauses, 4);
        pauses.end(1, 600, 5, std::iter::empty(), &mut reported);
        assert_eq!(reported.0.iter().map(|p| (p.gc_id, p.duration_ns)).collect::<Vec<_>>(), [(4, 100)]);
    }

    #[test]
    fn a_collection_in_another_pause_shows_that_an_end_is_lost() {
        for has_gaps in [true, false] {
            let mut pauses = Pauses { has_gaps, ..Pauses::default() };
            pauses.begin(1, FOR_GC, 0, 100);
            pauses.stopped(1, 110);
            start(&mut pauses, 3);
            pauses.begin(2, FOR_GC, 0, 500);
            pauses.stopped(2, 510);
            start(&mut pauses, 4);
            assert_eq!(
                (take_lost(&mut pauses).as_slice(), pauses.open.len()),
                if has_gaps { (&[3][..], 1) } else { (&[][..], 2) }
            );
            pauses.finish();
            assert_eq!((take_lost(&mut pauses).len(), pauses.open.len()), if has_gaps { (1, 0) } else { (0, 2) });
        }
    }

    #[test]
    fn suspensions_of_others_are_told_apart() {
        let (mut pauses, mut reported) = (Pauses::default(), Reported::default());
        pauses.begin(1, Some("SuspendOther"), 0, 1);
        start(&mut pauses, 9);
        pauses.end(1, 2, 5, std::iter::empty(), &mut reported);
        pauses.begin(1, Some("SuspendForGCPrep"), 9, 3);
        pauses.end(1, 4, 5, std::iter::empty(), &mut reported);
        pauses.begin(1, None, 0, 5);
        pauses.end(1, 6, 5, std::iter::empty(), &mut reported);
        let kinds: Vec<_> = reported.0.iter().map(|p| (p.kind, p.gc_id)).collect();
        assert_eq!(kinds, [("other", 0), ("gc", 9), ("unknown", 0)]);
    }

    #[test]
    fn a_collection_goes_to_the_thread_that_stopped_the_others() {
        let (mut pauses, mut reported) = (Pauses::default(), Reported::default());
        pauses.begin(1, FOR_GC, 0, 1);
        pauses.begin(2, FOR_GC, 0, 2);
        pauses.stopped(2, 3);
        start(&mut pauses, 8);
        pauses.end(2, 4, 5, std::iter::empty(), &mut reported);
        assert_eq!(reported.0[0].gc_id, 8);
    }

    #[test]
    fn open_pauses_and_those_that_are_lost_have_a_bound() {
        let mut pauses = Pauses::default();
        for thread in 1..=200 {
            pauses.begin(thread, FOR_GC, thread, thread.into());
            assert!(pauses.open.len() <= 64 && pauses.lost.len() <= 64, "{} {}", pauses.open.len(), pauses.lost.len());
        }
        assert_eq!(pauses.open.iter().map(|open| open.thread).collect::<Vec<_>>(), (137..=200).collect::<Vec<_>>());
        assert_eq!(pauses.lost, (1..=64).collect::<Vec<GcId>>());
    }
}
