//! Pairs starts and ends of collections in callbacks.
//!
//! Three cases are not plain pairs of GarbageCollectionStarted and GarbageCollectionFinished. A background collection
//! (generation 2) starts, the program continues, and others run inside of it. Just before it, in the same pause, a
//! collection of generation 0 or 1 may run that has no start but an end ("hidden"). And the process may end, or the
//! profiler may be attached, in mid-collection.
//!
//! ```text
//!   suspend(GC)  Started(2)  [Finished: hidden]  resume   Started(0) Finished   suspend(GCPrep) .. resume   Finished
//!   suspend(GC)  Started(2)   Finished: its own  resume
//! ```
//! Whether the end that comes before the first resume is the hidden one's is seen only later: when a suspension for
//! GCPrep follows before generation 2 starts again.

use super::ranges::{RangeAnomalies, Ranges};
use super::tracked::{OpenGc, Tracked};
use crate::enum_names;
use crate::fact::{FactSink, Gc, GcGenerationRange, GcId};

/// Collections open within each other, at most.
const MAX_OPEN: usize = 16;
const FOR_GC_PREP: u32 = 7;

/// A collection that is not over.
#[derive(Default)]
pub struct OpenCollection {
    /// The row as far as it is known.
    pub row: Gc,
    /// The ranges of the collection.
    pub ranges: Ranges,
    /// Objects that wait for their finalizers, by their addresses before.
    pub queue: Vec<u64>,
    started: bool,
    resumed: bool,
    background: bool,
    nested: bool,
    /// Neither its start nor its end is in the recording.
    is_outside: bool,
    /// The runtime's own events have it, too: it is not reported from here.
    pub(super) joined: bool,
    /// An end that is its own unless it turns out to be a background collection.
    pub(super) provisional_end: Option<(i64, Vec<GcGenerationRange>)>,
}

impl OpenGc for OpenCollection {
    fn row(&mut self) -> &mut Gc {
        &mut self.row
    }
}

/// Facts that the runtime's own events add, where a recording has both (see [`super::profiled`]).
#[derive(Default)]
pub(super) struct Shared {
    /// The runtime's own events have a collection that starts now, too.
    pub(super) starts_joined: bool,
    /// Ends of joined collections are provisional: more events of the runtime about them may come.
    pub(super) end_is_provisional: bool,
    /// Joined collections that are over.
    pub(super) closed: Vec<Gc>,
}

/// The collections of one recording.
#[derive(Default)]
pub struct CallbackGcTracker {
    /// Whether background collections are possible.
    concurrent: bool,
    /// Whether suspensions are recorded.
    suspends: bool,
    /// Number of the collection that began last.
    pub last_id: GcId,
    /// Facts that the runtime's own events have, too.
    pub(super) shared: Shared,
    /// Collections that are not reported yet, and the pauses around them.
    pub(crate) all: Tracked<OpenCollection>,
    /// Objects that wait for their finalizers after the collection that was closed last, sorted.
    pub waiting: Option<Vec<u64>>,
    /// Collections whose end never came.
    pub abandoned: u64,
    /// Collections that were running when the recording ended.
    pub running: u64,
    /// Facts without a collection: neither its start nor its end came.
    pub outside: u64,
    /// Ends that may belong to another collection.
    pub uncertain: u64,
    /// An error of a spill file.
    pub failed: Option<std::io::Error>,
    /// Anomalies of closed collections that are not yet reported.
    pub anomalies: RangeAnomalies,
}

impl CallbackGcTracker {
    /// For one process.
    pub fn new(process_id: u64, clr_instance_id: u16, concurrent: bool, suspends: bool) -> CallbackGcTracker {
        let all = Tracked::new(process_id, clr_instance_id, 0);
        CallbackGcTracker { all, concurrent, suspends, ..CallbackGcTracker::default() }
    }

    /// Whether a collection is open that has begun and not ended.
    pub fn runs(&self) -> bool {
        self.all.open.last().is_some_and(|top| top.started && top.provisional_end.is_none())
    }

    fn new_open(&mut self, start_ts_ns: i64) -> OpenCollection {
        self.last_id += 1;
        let row = self.all.new_row(self.last_id, start_ts_ns);
        let mut open = OpenCollection { row, joined: self.shared.starts_joined, ..OpenCollection::default() };
        open.ranges.tagged = true;
        open
    }

    /// GarbageCollectionStarted.
    pub fn start(
        &mut self,
        generation: Option<u8>,
        reason: Option<&'static str>,
        ts_ns: i64,
        sink: &mut impl FactSink,
    ) {
        let is_full = generation == Some(2);
        while let Some(top) = self.all.open.last() {
            let goes_on = self.concurrent
                && top.started
                && top.row.generation == Some(2)
                && !is_full
                && (top.provisional_end.is_some() || top.resumed || !self.suspends)
                && self.all.open.len() < MAX_OPEN;
            if goes_on {
                break;
            }
            self.abandon(true, sink);
        }
        self.report(sink);
        let mut open = self.new_open(ts_ns);
        // An end without a start may come first, left over from the other side of the gap.
        self.all.lost_before_start = false;
        open.row.generation = generation;
        open.row.reason = reason;
        open.started = true;
        open.nested = !self.all.open.is_empty();
        let gc_id = open.row.gc_id;
        self.all.open.push(open);
        self.all.begun(gc_id, false, ts_ns, sink);
    }

    /// Bounds that came with the start.
    pub fn bounds_at_start(&mut self, bounds: Vec<GcGenerationRange>) {
        if let Some(open) = self.all.open.last_mut() {
            bounds.into_iter().for_each(|bound| open.ranges.bound(bound));
        }
    }

    /// GarbageCollectionFinished. Returns whether its start is not in the recording.
    pub fn finished(&mut self, ts_ns: i64, bounds: Vec<GcGenerationRange>, sink: &mut impl FactSink) -> bool {
        if self.shared.end_is_provisional
            && let Some(top) = self.all.open.last_mut().filter(|top| top.joined && top.provisional_end.is_none())
        {
            top.provisional_end = Some((ts_ns, bounds));
            return !top.started;
        }
        let is_full = |o: &&mut OpenCollection| o.started && o.row.generation == Some(2);
        if self.concurrent && self.all.open.last_mut().filter(is_full).is_some() {
            self.uncertain += u64::from(!self.suspends);
            if self.all.open.last().is_some_and(|top| top.provisional_end.is_some()) {
                // A second end: the first was the hidden one's.
                self.hidden(sink);
            }
            let suspends = self.suspends;
            if let Some(top) = self.all.open.last_mut() {
                if suspends && !top.resumed {
                    top.provisional_end = Some((ts_ns, bounds));
                    return false;
                }
                top.background |= suspends;
            }
        }
        let known = self.all.open.pop();
        let started = known.as_ref().is_some_and(|open| open.started);
        let mut top = known.unwrap_or_else(|| self.new_open(ts_ns));
        bounds.into_iter().for_each(|bound| top.ranges.bound(bound));
        top.row.end_ts_ns = Some(ts_ns);
        top.row.complete = started;
        self.close(top, sink);
        !started
    }

    /// The end of the innermost collection, which continues in the background, was that of a hidden one.
    fn hidden(&mut self, sink: &mut impl FactSink) {
        let Some(top) = self.all.open.last_mut() else { return };
        top.background = true;
        let (start_ns, outer) = (top.row.start_ts_ns, top.row.gc_id);
        let Some((end_ns, bounds)) = top.provisional_end.take() else { return };
        self.decided(outer, "foreground");
        let mut open = self.new_open(start_ns);
        open.row.end_ts_ns = Some(end_ns);
        bounds.into_iter().for_each(|bound| open.ranges.bound(bound));
        self.close(open, sink);
    }

    /// Settles the kinds of the collections that came behind `outer`, of which it was not known whether it was over.
    fn decided(&mut self, outer: GcId, kind: &'static str) {
        let behind = self.all.closed.iter_mut().filter(|row| row.gc_id > outer && row.complete);
        behind.for_each(|row| row.kind = row.kind.or(Some(kind)));
    }

    fn kind(&self, closed: &OpenCollection) -> Option<&'static str> {
        let is_full = closed.row.generation == Some(2);
        match (closed.started, self.concurrent) {
            (false, _) => None,
            (true, false) => Some("blocking"),
            (true, true) if closed.background => Some("background"),
            (true, true) if !self.suspends && (is_full || closed.nested) => None,
            (true, true) if closed.nested => match self.all.open.last() {
                Some(outer) if outer.provisional_end.is_some() && !outer.background => None,
                Some(_) => Some("foreground"),
                None => Some("blocking"),
            },
            (true, true) => Some("blocking"),
        }
    }

    fn close(&mut self, mut closed: OpenCollection, sink: &mut impl FactSink) {
        self.outside += u64::from(closed.is_outside);
        closed.row.kind = self.kind(&closed);
        // Where time goes back, the end is that of another collection.
        if closed.row.end_ts_ns.is_some_and(|end| end < closed.row.start_ts_ns) {
            (closed.row.end_ts_ns, closed.row.complete) = (None, false);
        }
        // Objects that wait for their finalizers, where they are now.
        closed.queue.sort_unstable();
        closed.queue.dedup();
        let (queue, mut at) = (std::mem::take(&mut closed.queue), 0);
        let mut now = queue.clone();
        let each = |old: u64, new: u64, length: u64| {
            while let Some(address) = queue.get(at).filter(|a| **a < old.saturating_add(length)) {
                if let (Some(offset), Some(place)) = (address.checked_sub(old), now.get_mut(at)) {
                    *place = new.wrapping_add(offset);
                }
                at += 1;
            }
        };
        if let Err(e) = closed.ranges.finish(&mut closed.row, sink, each) {
            closed.row.touches_gap = true;
            self.failed = Some(e);
        }
        now.sort_unstable();
        self.waiting = Some(now);
        let anomalies = closed.ranges.anomalies;
        self.anomalies.overlapping += anomalies.overlapping;
        self.anomalies.empty += anomalies.empty;
        self.anomalies.survived_and_moved += anomalies.survived_and_moved;
        self.anomalies.one_target += anomalies.one_target;
        self.anomalies.wrapping += anomalies.wrapping;
        self.anomalies.overlapping_bounds += anomalies.overlapping_bounds;
        self.anomalies.beyond_bounds += anomalies.beyond_bounds;
        if closed.joined {
            return self.shared.closed.push(closed.row);
        }
        self.all.closed.push(closed.row);
    }

    /// The innermost collection stays without an end: it is lost, or (`false`) the recording ends before it.
    pub(super) fn abandon(&mut self, is_lost: bool, sink: &mut impl FactSink) {
        let Some(mut lost) = self.all.open.pop() else { return };
        if let Some((end_ns, bounds)) = lost.provisional_end.take() {
            // The collection started and ended without ever working in the background.
            bounds.into_iter().for_each(|bound| lost.ranges.bound(bound));
            lost.row.end_ts_ns = Some(end_ns);
            lost.row.complete = lost.started;
            self.decided(lost.row.gc_id, "blocking");
        } else {
            let count = if is_lost { &mut self.abandoned } else { &mut self.running };
            *count += u64::from(lost.started);
            // Whether a joined one is complete is decided by the runtime's events.
            lost.row.touches_gap |= is_lost && !lost.joined;
            lost.is_outside = !lost.started;
        }
        self.close(lost, sink);
    }

    /// The innermost collection that is not over; one without a start is opened when there is none.
    #[allow(clippy::indexing_slicing, reason = "there is one: it was opened when there was none")]
    pub fn innermost(&mut self, ts_ns: i64) -> &mut OpenCollection {
        if self.all.open.last().is_none_or(|top| top.provisional_end.is_some()) {
            let open = self.new_open(ts_ns);
            self.all.open.push(open);
        }
        let last = self.all.open.len() - 1;
        &mut self.all.open[last]
    }

    /// RuntimeSuspendStarted.
    pub fn suspend_started(&mut self, reason: u32, ts_ns: i64, thread: u32, sink: &mut impl FactSink) {
        if reason == FOR_GC_PREP && self.concurrent {
            // Only a background collection asks for this.
            if let Some(outer) = self.all.open.iter().rposition(|o| o.started && o.row.generation == Some(2)) {
                let inner = self.all.open.split_off(outer + 1);
                self.hidden(sink);
                self.all.open.extend(inner);
            }
        }
        let gc_id = match reason {
            FOR_GC_PREP => self.all.open.iter().rev().find(|o| o.background).map_or(0, |o| o.row.gc_id),
            _ => 0,
        };
        let reason = enum_names::callback_suspend_reason(reason);
        self.all.suspended(thread, reason, gc_id, ts_ns);
        self.report(sink);
    }

    /// RuntimeResumeStarted: what has no start has, by now, no end either.
    pub fn resume_started(&mut self, ts_ns: i64, sink: &mut impl FactSink) {
        while self.all.open.last().is_some_and(|top| !top.started) {
            if let Some(mut open) = self.all.open.pop() {
                open.is_outside = true;
                open.row.end_ts_ns = Some(ts_ns);
                self.close(open, sink);
            }
        }
        self.all.open.iter_mut().for_each(|open| open.resumed = true);
    }

    /// Hands on collections that are over, as far as no older one is open, nor the pause of an older one.
    pub fn report(&mut self, sink: &mut impl FactSink) {
        self.all.report(sink);
    }

    /// Ends open collections without an end: the ends are lost, or (`false`) the recording ends before them.
    pub fn finish(&mut self, is_lost: bool, sink: &mut impl FactSink) {
        while !self.all.open.is_empty() {
            self.abandon(is_lost, sink);
        }
        self.all.pauses.finish();
        self.all.mark_lost_pauses();
        self.all.closed.finish(sink);
    }
}

/// For collections that the runtime's own events report, too.
impl CallbackGcTracker {
    /// The innermost collection, if it is not over and the runtime's own events are not known to report it.
    pub(super) fn not_joined(&self) -> Option<GcId> {
        self.all.open.last().filter(|top| !top.joined && top.provisional_end.is_none()).map(|top| top.row.gc_id)
    }

    /// The runtime's own events report the innermost collection, too.
    pub(super) fn join(&mut self) {
        if let Some(top) = self.all.open.last_mut() {
            top.joined = true;
        }
    }

    /// Whether a joined collection is open.
    pub(super) fn has_joined(&self) -> bool {
        self.all.open.iter().any(|open| open.joined)
    }

    /// The runtime's own events of a joined collection end. Returns how many ranges they lack.
    pub(super) fn joined_ends(&mut self, gc_id: GcId, other: &Ranges, sink: &mut impl FactSink) -> u64 {
        let Some(top) = self.all.open.last_mut().filter(|top| top.joined && top.row.gc_id == gc_id) else { return 0 };
        let lacking = top.ranges.also_reported(other);
        if top.provisional_end.is_some() {
            self.abandon(true, sink);
        }
        lacking
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::tests::made_up::Each;

    /// The rows of collections with these starts and ends, with a loss behind the first one.
    fn collections<T>(times: &[(i64, i64)], row: impl Fn(&Gc) -> T) -> Vec<T> {
        let mut rows = Vec::new();
        let mut sink = Each(|fact: &Fact<'_>| {
            if let Fact::Gc(gcs) = fact {
                rows.extend(gcs.iter().map(&row));
            }
        });
        let mut tracker = CallbackGcTracker::new(7, 0, false, false);
        for (nth, (start_ns, end_ns)) in times.iter().enumerate() {
            tracker.start(Some(0), None, *start_ns, &mut sink);
            tracker.finished(*end_ns, Vec::new(), &mut sink);
            if nth == 0 {
                tracker.all.events_lost(None);
            }
        }
        tracker.finish(false, &mut sink);
        rows
    }

    #[test]
    fn no_collection_ends_before_it_begins() {
        for (end_ns, expected) in [(150, (Some(150), true)), (50, (None, false))] {
            let rows = collections(&[(100, end_ns)], |gc| (gc.start_ts_ns, gc.end_ts_ns, gc.complete));
            assert_eq!(rows, [(100, expected.0, expected.1)]);
        }
    }

    #[test]
    fn a_loss_between_collections_touches_the_next_one_only() {
        let rows = collections(&[(100, 150), (200, 250), (300, 350)], |gc| gc.touches_gap);
        assert_eq!(rows, [false, true, false]);
    }
}
