//! Collections from start to end, and the pauses around them, of one runtime.
//!
//! ```text
//!  SuspendEEBegin  SuspendEEEnd   GCStart ... bounds, ranges, roots ... GCEnd  HeapStats  RestartEEEnd
//!  |-- suspend ----|                                                                      |
//!  |------------------------------------ pause -------------------------------------------|
//! ```
//! Collections nest: foreground collections run inside a background one. Facts go to the innermost open collection. A
//! collection whose start is not in the recording is opened by its first fact, and counts as incomplete.

use tracequet_trace::reader::ProcessKey;

use super::last_sizes::LastSizes;
use super::pauses::is_for_gc;
use super::ranges::Ranges;
use super::tracked::{OpenGc, Tracked};
use crate::fact::{CallsiteId, FactSink, Gc, GcId};

/// A collection that is not reported yet.
#[derive(Debug, Default)]
pub struct OpenCollection {
    /// The row as far as it is known.
    pub row: Gc,
    /// The ranges of the collection.
    pub ranges: Ranges,
    /// Whether the bounds that come now are those of the start: until its thread says something else.
    starting_on: Option<u32>,
    pub(super) started: bool,
    /// Whether it is a walk of the heap without the collection around it.
    is_walk: bool,
}

impl OpenGc for OpenCollection {
    fn row(&mut self) -> &mut Gc {
        &mut self.row
    }
}

/// The collections of one runtime of one process.
#[derive(Debug, Default)]
pub struct EventGcTracker {
    pub(super) process: ProcessKey,
    clr_instance_id: u16,
    /// Collections that are not reported yet, and the pauses around them.
    pub(super) all: Tracked<OpenCollection>,
    last_ended: Option<GcId>,
    /// The collection that summaries are of until threads are suspended again or another one starts: later ones are of
    /// another.
    to_be_summed_up: Option<GcId>,
    /// The trigger of the next collection, and whether one has started since.
    trigger: Option<(Trigger, bool)>,
    sizes: LastSizes,
    /// Collections whose end never came.
    pub abandoned: u64,
    /// Collections that were running when the recording ended.
    pub running: u64,
    /// Bounds that were too many.
    pub bounds_left_out: u64,
    /// An error of a spill file.
    pub failed: Option<std::io::Error>,
    /// Ranges whose memory is used again.
    spare: Option<Ranges>,
}

/// Collections that are held back so that a gap in them can be reported, where readers report gaps of single
/// threads.
const HELD_FOR_GAPS: usize = 256;

/// The content of GCTriggered: a thread asks for a collection. The event comes before all threads are stopped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trigger {
    /// When.
    pub ts_ns: i64,
    /// OS thread.
    pub thread_id: u64,
    /// The call stack.
    pub callsite_id: CallsiteId,
    /// GCReasonMap.
    pub reason: Option<&'static str>,
}

/// The content of GCStart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// The runtime's count; 0 where it has none.
    pub number: u32,
    /// Condemned generation; version 0 of the event does not say.
    pub generation: Option<u8>,
    /// GCReasonMap.
    pub reason: Option<&'static str>,
    /// `blocking`, `background` or `foreground`.
    pub kind: Option<&'static str>,
}

impl EventGcTracker {
    /// For one runtime of one process.
    pub fn new(process: ProcessKey, clr_instance_id: u16, tells_gaps: bool) -> EventGcTracker {
        let all = Tracked::new(process.id, clr_instance_id, if tells_gaps { HELD_FOR_GAPS } else { 0 });
        EventGcTracker { process, clr_instance_id, all, ..EventGcTracker::default() }
    }

    /// Whether this is a runtime of that process.
    pub fn is_in(&self, process: ProcessKey) -> bool {
        self.process == process
    }

    /// Events of a thread (`None`: of any) were lost, all of them later than `since_ns`. What was going on meanwhile
    /// may lack something.
    pub fn events_lost(&mut self, thread: Option<u32>, since_ns: i64) {
        for row in self.all.closed.iter_mut().filter(|row| row.end_ts_ns.is_none_or(|end| end >= since_ns)) {
            row.touches_gap = true;
        }
        self.trigger = None;
        self.sizes.forget();
        self.all.events_lost(thread);
    }

    /// Whether this is the state of that runtime.
    pub fn is_of(&self, process: ProcessKey, clr_instance_id: u16) -> bool {
        self.process == process && self.clr_instance_id == clr_instance_id
    }

    /// Where the collection that an end of this number ends is in the list of open ones.
    pub(super) fn ended_by(&self, number: u32) -> Option<usize> {
        let known = self.all.open.iter().rposition(|o| o.started && o.row.gc_number == number);
        known.or(self.all.open.iter().rposition(|o| !o.started))
    }

    /// A collection starts. `next_id` is taken when it is a new one: old runtimes announce each start twice.
    pub fn start(&mut self, start: Start, ts_ns: i64, thread: u32, next_id: &mut GcId, sink: &mut impl FactSink) {
        if let Some(open) = self.all.open.last_mut()
            && open.started
            && open.row.gc_number == start.number
            && start.number != 0
        {
            open.row.generation = start.generation.or(open.row.generation);
            open.row.kind = start.kind.or(open.row.kind);
            return;
        }
        // Only a background collection continues while another starts.
        while self.all.open.last().is_some_and(|o| o.row.kind != Some("background") || start.kind == Some("background"))
        {
            self.abandon(true, sink);
        }
        self.report(sink);
        *next_id += 1;
        let trigger = self.trigger.as_mut().map(|(trigger, is_used)| {
            *is_used = true;
            *trigger
        });
        let trigger = trigger.filter(|trigger| trigger.ts_ns <= ts_ns);
        self.all.open.push(OpenCollection {
            row: Gc {
                gc_number: start.number,
                generation: start.generation,
                reason: start.reason,
                kind: start.kind,
                trigger_ts_ns: trigger.map(|trigger| trigger.ts_ns),
                trigger_reason: trigger.and_then(|trigger| trigger.reason),
                trigger_thread_id: trigger.map_or(0, |trigger| trigger.thread_id),
                trigger_callsite_id: trigger.map_or(0, |trigger| trigger.callsite_id),
                ..self.all.new_row(*next_id, ts_ns)
            },
            ranges: self.spare.take().unwrap_or_default(),
            starting_on: Some(thread),
            started: true,
            is_walk: false,
        });
        self.all.lost_before_start = false;
        self.all.begun(*next_id, start.kind == Some("background"), ts_ns, sink);
    }

    /// The heap is walked at the end of a collection, whose start the recording does not have: a generational-aware analysis has a session
    /// of its own. Its bounds are those of the end.
    pub fn walk_begins(&mut self, number: u32, ts_ns: i64, next_id: &mut GcId) {
        let is_known = self.ended().is_some_and(|row| row.gc_number == number);
        if is_known || !self.all.open.is_empty() {
            return;
        }
        let mut open = self.without_start(ts_ns, next_id);
        open.row.gc_number = number;
        (open.started, open.is_walk) = (true, true);
        self.all.open.push(open);
    }

    /// Whether the innermost open collection is such a walk, of this number.
    pub fn is_walk(&self, number: u32) -> bool {
        self.all.open.last().is_some_and(|open| open.is_walk && open.row.gc_number == number)
    }

    /// A collection ends.
    pub fn end(
        &mut self,
        number: u32,
        generation: Option<u8>,
        ts_ns: i64,
        next_id: &mut GcId,
        sink: &mut impl FactSink,
    ) {
        // Where time goes back, the end is that of another collection.
        let is_before = |open: &OpenCollection| open.row.start_ts_ns <= ts_ns;
        let index = match self.ended_by(number) {
            Some(index) if self.all.open.get(index).is_some_and(is_before) => index,
            _ => {
                // The start of this one is lost, and so are the ends of those that started before it.
                let is_older = |o: &OpenCollection| o.row.kind != Some("background") && o.row.gc_number < number;
                while self.all.open.last().is_some_and(is_older) {
                    self.abandon(true, sink);
                }
                self.all.open.push(self.without_start(ts_ns, next_id));
                self.all.open.len() - 1
            }
        };
        let mut closed = self.all.open.remove(index);
        closed.row.end_ts_ns = Some(ts_ns);
        closed.row.gc_number = number;
        closed.row.generation = closed.row.generation.or(generation);
        closed.row.complete |= closed.started;
        self.last_ended = Some(closed.row.gc_id);
        self.to_be_summed_up = self.last_ended;
        self.close(closed, sink);
    }

    fn close(&mut self, mut closed: OpenCollection, sink: &mut impl FactSink) {
        if let Err(e) = closed.ranges.finish(&mut closed.row, sink, |_, _, _| {}) {
            closed.row.touches_gap = true;
            self.failed = Some(e);
        }
        self.bounds_left_out += closed.ranges.anomalies.bounds_left_out;
        self.spare = Some(closed.ranges);
        self.all.closed.push(closed.row);
    }

    /// The end of the innermost collection is lost (`false`: it is still running when the recording ends).
    fn abandon(&mut self, is_lost: bool, sink: &mut impl FactSink) {
        if let Some(mut open) = self.all.open.pop() {
            let count = if is_lost { &mut self.abandoned } else { &mut self.running };
            *count += u64::from(open.started);
            // A profiler may have reported all of it.
            open.row.touches_gap |= is_lost && !open.row.complete;
            self.close(open, sink);
        }
    }

    fn without_start(&self, ts_ns: i64, next_id: &mut GcId) -> OpenCollection {
        *next_id += 1;
        OpenCollection { row: self.all.new_row(*next_id, ts_ns), ..OpenCollection::default() }
    }

    /// The innermost open collection; one without a start is opened when there is none.
    #[allow(clippy::indexing_slicing, reason = "one was pushed if there was none")]
    pub fn innermost(&mut self, ts_ns: i64, next_id: &mut GcId) -> &mut OpenCollection {
        if self.all.open.is_empty() {
            self.all.open.push(self.without_start(ts_ns, next_id));
        }
        let last = self.all.open.len() - 1;
        &mut self.all.open[last]
    }

    /// The innermost open collection, or the one that ended last: some summaries come before the end, some behind it.
    pub fn current(&mut self) -> Option<&mut Gc> {
        if self.all.open.is_empty() { self.ended() } else { self.all.open.last_mut().map(|o| &mut o.row) }
    }

    /// The current collection, with the sizes of the heap at the end of the previous one that reported them.
    pub fn current_with_sizes(&mut self) -> Option<(&mut Gc, &mut LastSizes)> {
        let row = match self.all.open.last_mut() {
            Some(open) => Some(&mut open.row),
            None => {
                let id = self.to_be_summed_up?;
                self.all.closed.iter_mut().find(|row| row.gc_id == id)
            }
        };
        row.map(|row| (row, &mut self.sizes))
    }

    /// Number of the innermost open collection, or of the one that ended last (0: none), and whether events are lost
    /// that may have been of another one.
    pub fn current_id(&mut self) -> (GcId, bool) {
        let is_lost = self.all.lost_before_start;
        self.current().map_or((0, is_lost), |row| (row.gc_id, is_lost || row.touches_gap))
    }

    /// The collection that ended last, as long as its summaries may come.
    pub fn ended(&mut self) -> Option<&mut Gc> {
        let id = self.to_be_summed_up?;
        self.all.closed.iter_mut().find(|row| row.gc_id == id)
    }

    /// Number of the innermost open collection, or of the one that ended last.
    pub fn latest_id(&self) -> GcId {
        self.all.open.last().map(|o| o.row.gc_id).or(self.last_ended).unwrap_or_default()
    }

    /// When the innermost open collection started; `None` when that, or something of it, is lost.
    pub fn marking_since(&self) -> Option<i64> {
        let open = self.all.open.last().filter(|open| open.started && !open.row.touches_gap)?;
        Some(open.row.start_ts_ns)
    }

    /// Whether a collection is open.
    pub fn is_collecting(&self) -> bool {
        !self.all.open.is_empty()
    }

    /// Whether the innermost open collection is one in the background, in which others may run.
    pub fn is_background(&self) -> bool {
        self.all.open.last().is_some_and(|open| open.row.kind == Some("background"))
    }

    /// An event that is no bound came from a thread: its collection is past its start.
    #[inline]
    pub fn end_start_phase(&mut self, thread: u32) {
        if let Some(open) = self.all.open.last_mut()
            && open.starting_on == Some(thread)
        {
            open.starting_on = None;
        }
    }

    /// Whether bounds from this thread are those of the start of the innermost collection.
    pub fn is_starting(&self, thread: u32) -> bool {
        self.all.open.last().is_some_and(|o| o.starting_on == Some(thread))
    }

    /// A thread asks for a collection.
    pub fn triggered(&mut self, trigger: Trigger) {
        self.trigger = Some((trigger, false));
    }

    /// A thread asks the others to stop.
    pub fn suspend_begin(&mut self, reason: Option<&'static str>, ts_ns: i64, thread: u32, sink: &mut impl FactSink) {
        self.report(sink);
        // A background collection and the one that precedes it start within one suspension, and have one trigger.
        self.trigger.take_if(|(_, is_used)| *is_used);
        let gc_id = self.all.open.last().filter(|_| is_for_gc(reason)).map_or(0, |o| o.row.gc_id);
        self.all.suspended(thread, reason, gc_id, ts_ns);
    }

    fn report(&mut self, sink: &mut impl FactSink) {
        let oldest_open = self.all.open.first().map(|o| o.row.gc_id);
        if oldest_open.is_none_or(|open| self.to_be_summed_up <= Some(open)) {
            self.to_be_summed_up = None;
        }
        self.all.report(sink);
    }

    /// Hands on the collections that ended before a time, though a gap in them could still be seen.
    pub fn settle(&mut self, ended_before_ns: i64, sink: &mut impl FactSink) {
        let oldest = self.all.oldest_unfinished();
        self.all.closed.settle(oldest, ended_before_ns, sink);
    }

    /// The end of the recording: what is open is incomplete.
    pub fn finish(&mut self, sink: &mut impl FactSink) {
        while !self.all.open.is_empty() {
            self.abandon(false, sink);
        }
        self.all.closed.finish(sink);
    }
}

/// For collections that a profiler reports, too.
impl EventGcTracker {
    /// The innermost open collection of a process and its ranges so far, unless it runs beside the program.
    pub(super) fn open_in(&self, process: ProcessKey) -> Option<(GcId, &Ranges)> {
        let open = self.all.open.last().filter(|o| self.process == process && o.row.kind != Some("background"))?;
        Some((open.row.gc_id, &open.ranges))
    }

    /// The collection that an end of this number ends, if it is open.
    pub(super) fn ending(&self, number: u32) -> Option<(GcId, &Ranges)> {
        let open = self.all.open.get(self.ended_by(number)?)?;
        Some((open.row.gc_id, &open.ranges))
    }

    /// The collection that is given up when one of this number starts.
    pub(super) fn given_up(&self, number: u32) -> Option<(GcId, &Ranges)> {
        let open = self.all.open.last().filter(|o| !(o.started && o.row.gc_number == number))?;
        (open.row.kind != Some("background")).then_some((open.row.gc_id, &open.ranges))
    }

    /// Adds what a profiler reports of a collection that is not reported yet. Returns whether there is one of its
    /// number.
    pub(super) fn add(&mut self, other: &Gc) -> bool {
        let Some(row) = self.all.rows().find(|row| row.gc_id == other.gc_id) else { return false };
        row.generation = row.generation.or(other.generation);
        row.reason = row.reason.or(other.reason);
        row.kind = row.kind.or(other.kind);
        if other.complete && row.end_ts_ns.is_none() {
            // That the runtime's end is lost does no harm.
            row.touches_gap = false;
        }
        row.end_ts_ns = row.end_ts_ns.or(other.end_ts_ns);
        row.complete |= other.complete;
        row.touches_gap |= other.touches_gap;
        row.surviving_range_count += other.surviving_range_count;
        row.surviving_bytes = row.surviving_bytes.saturating_add(other.surviving_bytes);
        row.moved_range_count += other.moved_range_count;
        row.moved_bytes = row.moved_bytes.saturating_add(other.moved_bytes);
        row.root_count += other.root_count;
        row.heap_object_count += other.heap_object_count;
        true
    }
}
