//! Collections from start to end, and the pauses around them, of one runtime.
//!
//! ```text
//!  SuspendEEBegin  SuspendEEEnd   GCStart ... bounds, ranges, roots ... GCEnd  HeapStats  RestartEEEnd
//!  |-- suspend ----|                                                                      |
//!  |------------------------------------ pause -------------------------------------------|
//! ```
//! Collections nest: foreground collections run inside a background one. Facts go to the innermost open collection. A
//! collection whose start is not in the recording is opened by its first fact, and counts as incomplete.

use std::collections::VecDeque;

use super::fact::{Collection, Fact, FactSink, GcId, Pause};
use super::ranges::Ranges;
use crate::reader::ProcessKey;

/// Closed collections that wait for an older one to end, at most.
const MAX_WAITING: usize = 4096;
/// Threads that stop all others at once, at most.
const MAX_PAUSES: usize = 64;

/// A collection that is not reported yet.
#[derive(Debug, Default)]
pub struct OpenCollection {
    /// What is known of it.
    pub row: Collection,
    /// Its ranges.
    pub ranges: Ranges,
    /// Whether the bounds that come now are those of the start: until its thread says something else.
    starting_on: Option<u32>,
    started: bool,
}

/// The collections of one runtime of one process.
#[derive(Debug, Default)]
pub struct Collections {
    process: ProcessKey,
    clr_instance_id: u16,
    open: Vec<OpenCollection>,
    closed: VecDeque<OpenCollection>,
    last_ended: Option<GcId>,
    pauses: Vec<OpenPause>,
    /// Collections whose end never came.
    pub abandoned: u64,
    /// An error of a spill file.
    pub failed: Option<std::io::Error>,
    spare: Vec<Ranges>,
}

#[derive(Debug)]
struct OpenPause {
    /// The thread that stops the others; several may try at once, and one after the other succeeds.
    thread: u32,
    reason: Option<&'static str>,
    start_ns: i64,
    stopped_ns: Option<i64>,
    /// First collection that started in it, else the innermost that was open when it began.
    gc_id: GcId,
    started_here: bool,
    is_background: bool,
}

/// What GCStart says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// The runtime's count.
    pub number: u32,
    /// Condemned generation; version 0 of the event does not say.
    pub generation: Option<u8>,
    /// GCReasonMap.
    pub reason: Option<&'static str>,
    /// `blocking`, `background` or `foreground`.
    pub kind: Option<&'static str>,
}

impl Collections {
    /// For one runtime of one process.
    pub fn new(process: ProcessKey, clr_instance_id: u16) -> Collections {
        Collections { process, clr_instance_id, ..Collections::default() }
    }

    /// Whether this is the state of that runtime.
    pub fn is_of(&self, process: ProcessKey, clr_instance_id: u16) -> bool {
        self.process == process && self.clr_instance_id == clr_instance_id
    }

    /// A collection starts. `next_id` is taken when it is a new one: old runtimes announce each start twice.
    pub fn start(&mut self, start: Start, ts_ns: i64, thread: u32, next_id: &mut GcId, sink: &mut impl FactSink) {
        if let Some(open) = self.open.last_mut()
            && open.started
            && open.row.gc_number == start.number
        {
            open.row.generation = start.generation.or(open.row.generation);
            open.row.kind = start.kind.or(open.row.kind);
            return;
        }
        // Only a background collection goes on while another starts.
        while self.open.last().is_some_and(|o| o.row.kind != Some("background") || start.kind == Some("background")) {
            self.abandon(sink);
        }
        self.report(false, sink);
        *next_id += 1;
        self.open.push(OpenCollection {
            row: Collection {
                gc_id: *next_id,
                process_id: self.process.id,
                clr_instance_id: self.clr_instance_id,
                gc_number: start.number,
                generation: start.generation,
                reason: start.reason,
                kind: start.kind,
                start_ns: ts_ns,
                ..Collection::default()
            },
            ranges: self.spare.pop().unwrap_or_default(),
            starting_on: Some(thread),
            started: true,
        });
        // A sampling profiler may be about to stop the same threads: that is no pause for this collection.
        let for_gc = self.pauses.iter().position(|p| p.reason.is_none_or(|r| r.starts_with("SuspendForGC")));
        if let Some(pause) = self.pauses.get_mut(for_gc.unwrap_or_default())
            && (!pause.started_here || pause.is_background)
        {
            // Of a background collection and a blocking one that start in the same pause, the blocking one takes it up.
            pause.gc_id = *next_id;
            pause.started_here = true;
            pause.is_background = start.kind == Some("background");
        }
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
        let known = self.open.iter().rposition(|o| o.started && o.row.gc_number == number);
        let index = match known.or(self.open.iter().rposition(|o| !o.started)) {
            Some(index) => index,
            None => {
                self.innermost(ts_ns, next_id);
                self.open.len() - 1
            }
        };
        let mut closed = self.open.remove(index);
        closed.row.end_ns = Some(ts_ns);
        closed.row.gc_number = number;
        closed.row.generation = closed.row.generation.or(generation);
        closed.row.complete = closed.started;
        self.last_ended = Some(closed.row.gc_id);
        self.close(closed, sink);
    }

    fn close(&mut self, mut closed: OpenCollection, sink: &mut impl FactSink) {
        if let Err(e) = closed.ranges.finish(&mut closed.row, sink, |_, _, _| {}) {
            self.failed = Some(e);
        }
        self.spare.push(std::mem::take(&mut closed.ranges));
        let at = self.closed.partition_point(|c| c.row.gc_id < closed.row.gc_id);
        self.closed.insert(at, closed);
    }

    fn abandon(&mut self, sink: &mut impl FactSink) {
        if let Some(lost) = self.open.pop() {
            self.abandoned += u64::from(lost.started);
            self.close(lost, sink);
        }
    }

    /// The innermost open collection; one without a start is opened when there is none.
    #[allow(clippy::indexing_slicing, reason = "one was pushed if there was none")]
    pub fn innermost(&mut self, ts_ns: i64, next_id: &mut GcId) -> &mut OpenCollection {
        if self.open.is_empty() {
            *next_id += 1;
            let row = Collection {
                gc_id: *next_id,
                process_id: self.process.id,
                clr_instance_id: self.clr_instance_id,
                start_ns: ts_ns,
                ..Collection::default()
            };
            self.open.push(OpenCollection { row, ..OpenCollection::default() });
        }
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    /// The innermost open collection, or the one that ended last: some summaries come before the end, some behind it.
    pub fn current(&mut self) -> Option<&mut Collection> {
        if self.open.is_empty() { self.ended() } else { self.open.last_mut().map(|o| &mut o.row) }
    }

    /// The collection that ended last, if it is not reported yet.
    pub fn ended(&mut self) -> Option<&mut Collection> {
        let id = self.last_ended?;
        self.closed.iter_mut().map(|c| &mut c.row).find(|row| row.gc_id == id)
    }

    /// Number of the innermost open collection, or of the one that ended last.
    pub fn latest_id(&self) -> GcId {
        self.open.last().map(|o| o.row.gc_id).or(self.last_ended).unwrap_or_default()
    }

    /// An event that is no bound came from a thread: its collection is past its start.
    #[inline]
    pub fn spoke(&mut self, thread: u32) {
        if let Some(open) = self.open.last_mut()
            && open.starting_on == Some(thread)
        {
            open.starting_on = None;
        }
    }

    /// Whether bounds from this thread are those of the start of the innermost collection.
    pub fn is_starting(&self, thread: u32) -> bool {
        self.open.last().is_some_and(|o| o.starting_on == Some(thread))
    }

    /// A thread asks the others to stop.
    pub fn suspend_begin(&mut self, reason: Option<&'static str>, ts_ns: i64, thread: u32, sink: &mut impl FactSink) {
        self.report(false, sink);
        let for_gc = reason.is_none_or(|r| r.starts_with("SuspendForGC"));
        let gc_id = self.open.last().filter(|_| for_gc).map_or(0, |o| o.row.gc_id);
        self.pauses.retain(|p| p.thread != thread);
        if self.pauses.len() < MAX_PAUSES {
            self.pauses.push(OpenPause {
                thread,
                reason,
                start_ns: ts_ns,
                stopped_ns: None,
                gc_id,
                started_here: false,
                is_background: false,
            });
        }
    }

    /// The open pause that a thread began, or else the one that began last.
    fn pause_of(&self, thread: u32) -> Option<usize> {
        let own = self.pauses.iter().position(|p| p.thread == thread);
        own.or(self.pauses.len().checked_sub(1))
    }

    /// All threads stand still.
    pub fn suspend_end(&mut self, ts_ns: i64, thread: u32) {
        if let Some(pause) = self.pause_of(thread).and_then(|index| self.pauses.get_mut(index)) {
            pause.stopped_ns.get_or_insert(ts_ns);
        }
    }

    /// All threads run again.
    pub fn restart_end(&mut self, ts_ns: i64, thread: u32, sink: &mut impl FactSink) {
        let Some(index) = self.pause_of(thread) else { return };
        let open = self.pauses.remove(index);
        let pause = Pause {
            gc_id: open.gc_id,
            process_id: self.process.id,
            reason: open.reason,
            start_ns: open.start_ns,
            duration_ns: ts_ns.saturating_sub(open.start_ns),
            suspend_ns: open.stopped_ns.map_or(0, |at| at.saturating_sub(open.start_ns)),
        };
        let rows = self.open.iter_mut().chain(&mut self.closed).map(|c| &mut c.row);
        if let Some(row) = rows.into_iter().find(|row| row.gc_id == pause.gc_id) {
            row.pause_ns = row.pause_ns.saturating_add(pause.duration_ns);
            row.pause_count += 1;
        }
        sink.fact(Fact::Pause(&pause));
    }

    /// Hands on closed collections in the order of their numbers, as far as no older one is open.
    fn report(&mut self, all: bool, sink: &mut impl FactSink) {
        let oldest_open = self.open.first().map_or(GcId::MAX, |o| o.row.gc_id);
        while let Some(closed) = self.closed.front() {
            if closed.row.gc_id > oldest_open && !all && self.closed.len() < MAX_WAITING {
                break;
            }
            sink.fact(Fact::Collection(&closed.row));
            self.closed.pop_front();
        }
    }

    /// The end of the recording: what is open is incomplete.
    pub fn finish(&mut self, sink: &mut impl FactSink) {
        while !self.open.is_empty() {
            self.abandon(sink);
        }
        self.report(true, sink);
    }
}
