//! Walks of the heap: objects and their references, which come as two separate lists in the same order.
//!
//! GCBulkNode lists objects with the number of references each holds; GCBulkEdge lists the targets of all of them, one
//! after the other. Both are cut into events independently, so whichever is ahead waits for the other: an array of
//! millions of references fills many events before its own. What waits is bounded in memory, not on disk.

use std::collections::hash_map::Entry;
use std::io;

use super::moment::Moment;
use super::runtimes::Runtime;
use super::spill_queue::{MAX_IN_MEMORY, SpillQueue};
use crate::fact::{GcId, HeapObject, HeapReference};
use crate::prelude::*;

/// The parts of the heap that an event lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapWalkAction {
    /// Objects.
    Nodes,
    /// Targets of references.
    Edges,
}

/// The walks of all runtimes.
#[derive(Default)]
pub struct HeapWalks {
    /// By the place of the runtime.
    walks: Map<usize, Walk>,
}

impl HeapWalks {
    fn walk_event(
        &mut self,
        action: HeapWalkAction,
        input: &Input<'_>,
        runtime: &mut Runtime<'_>,
        sink: &mut impl FactSink,
    ) {
        let Some(rows) = input.rows else { return };
        if let Entry::Vacant(place) = self.walks.entry(runtime.index) {
            place.insert(Walk::default());
            let walks = self.walks.len();
            self.walks.values_mut().for_each(|walk| walk.share(walks));
        }
        let Some(walk) = self.walks.get_mut(&runtime.index) else { return };
        let row = &mut runtime.open_collection().row;
        let gc_id = row.gc_id;
        walk.gc_id = gc_id;
        match action {
            HeapWalkAction::Nodes => {
                walk.node_event(input.index, gc_id, sink);
                row.heap_object_count += rows.len() as u64;
                for [object_id, size_bytes, type_id, reference_count] in rows.values() {
                    walk.object(HeapObject { gc_id, object_id, size_bytes, type_id, reference_count }, sink);
                }
            }
            HeapWalkAction::Edges => {
                walk.edge_event(input.index, gc_id, sink);
                for [target, field] in rows.values() {
                    walk.target(gc_id, target, field, sink);
                }
            }
        }
        walk.hand_on(sink);
        walk.report_failure(input.offset(), sink);
    }
}

impl Tracker for HeapWalks {
    type Action = HeapWalkAction;
    const EVENTS: Events<HeapWalkAction> =
        &[(RUNTIME, "GCBulkNode", HeapWalkAction::Nodes), (RUNTIME, "GCBulkEdge", HeapWalkAction::Edges)];

    fn needs(action: HeapWalkAction) -> Needs {
        match action {
            HeapWalkAction::Nodes => Needs::Rows(&["Address", "Size", "TypeID", "EdgeCount"]),
            HeapWalkAction::Edges => Needs::Rows(&["Value", "ReferencingFieldID"]),
        }
    }

    fn event(&mut self, action: HeapWalkAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let Shared { runtimes, profiled, .. } = shared;
        runtimes.event(input, Moment::Within, profiled, sink, |runtime, sink| {
            self.walk_event(action, input, runtime, sink)
        });
    }

    fn finish(&mut self, position: u64, sink: &mut impl FactSink) {
        let mut lost = 0u64;
        for walk in self.walks.values_mut() {
            walk.end(walk.gc_id, sink);
            walk.report_failure(position, sink);
            lost = lost.saturating_add(walk.lost_references);
        }
        let message = "references of heap objects could not be attributed: a part of the walk is missing";
        sink.problems(Problem::loss("lost_references", position, message), lost);
    }
}

/// Rows that are handed on at once.
const BATCH: usize = 1024;

/// References of the current walk of one runtime that are not joined yet.
///
/// Of the two lists at most one waits: what comes is joined with what waits, or waits itself.
///
/// A missing event of one list leaves a gap in its numbers. What came before it is joined still; objects behind a gap
/// of theirs, and targets behind a gap of theirs, cannot be: such objects keep only their count, such targets have
/// object 0.
#[derive(Debug, Default)]
struct Walk {
    /// Objects with the number of their references that are still to come.
    objects: SpillQueue,
    /// Targets and fields whose objects are still to come.
    targets: SpillQueue,
    /// Rows that are not handed on yet: objects, and references.
    object_rows: Vec<HeapObject>,
    reference_rows: Vec<HeapReference>,
    next_node_event: u64,
    next_edge_event: u64,
    nodes_have_gap: bool,
    edges_have_gap: bool,
    /// Whether any reference of this walk is joined.
    has_joined: bool,
    /// References of objects without a target, and targets without an object.
    without_target: u64,
    without_object: u64,
    /// References of earlier walks that could not be attributed.
    lost_references: u64,
    /// The collection of its last event.
    gc_id: GcId,
    /// An error of a temporary file.
    failed: Option<io::Error>,
}

impl Walk {
    /// Other walks share the memory: those of several processes in one recording.
    fn share(&mut self, walks: usize) {
        let rows = MAX_IN_MEMORY / walks.max(1);
        self.objects.limit(rows);
        self.targets.limit(rows);
    }

    /// Takes note of the number of a GCBulkNode event; a gap means that objects are missing.
    fn node_event(&mut self, index: u64, gc_id: GcId, sink: &mut impl FactSink) {
        if index == 0 && self.next_node_event > 0 {
            // The first targets of a walk may come before its first objects, and wait already.
            if self.has_joined || self.nodes_have_gap || !self.objects.is_empty() {
                self.end(gc_id, sink);
            }
            self.next_node_event = 0;
        }
        self.nodes_have_gap |= index != self.next_node_event;
        self.next_node_event = index + 1;
    }

    /// Takes note of the number of a GCBulkEdge event; a gap means that targets are missing.
    fn edge_event(&mut self, index: u64, gc_id: GcId, sink: &mut impl FactSink) {
        if index == 0 && self.next_edge_event > 0 {
            self.end(gc_id, sink);
        }
        self.edges_have_gap |= index != self.next_edge_event;
        self.next_edge_event = index + 1;
    }

    /// An object.
    #[inline]
    fn object(&mut self, object: HeapObject, sink: &mut impl FactSink) {
        let HeapObject { gc_id, object_id, reference_count, .. } = object;
        self.object_rows.push(object);
        if self.object_rows.len() >= BATCH {
            sink.add(self.object_rows.as_slice());
            self.object_rows.clear();
        }
        if reference_count == 0 {
            return;
        }
        if self.nodes_have_gap {
            self.without_target = self.without_target.saturating_add(reference_count);
            return;
        }
        let joined = self.join_object(gc_id, object_id, reference_count, sink);
        self.done(joined);
    }

    /// Joins an object with the targets that wait; it waits for the others.
    #[inline]
    fn join_object(&mut self, gc_id: GcId, object_id: u64, mut left: u64, sink: &mut impl FactSink) -> io::Result<()> {
        while left > 0 {
            let Some([target_object_id, field_id]) = self.targets.pop()? else {
                return self.objects.push([object_id, left]);
            };
            self.has_joined = true;
            self.reference(HeapReference { gc_id, object_id, target_object_id, field_id }, sink);
            left -= 1;
        }
        Ok(())
    }

    /// A target.
    #[inline]
    fn target(&mut self, gc_id: GcId, target: u64, field: u64, sink: &mut impl FactSink) {
        if self.edges_have_gap || self.nodes_have_gap && self.objects.is_empty() {
            self.orphan(gc_id, target, field, sink);
            return;
        }
        let joined = self.join_target(gc_id, target, field, sink);
        self.done(joined);
    }

    /// Joins a target with the first object that waits, or lets it wait.
    #[inline]
    fn join_target(
        &mut self,
        gc_id: GcId,
        target_object_id: u64,
        field_id: u64,
        sink: &mut impl FactSink,
    ) -> io::Result<()> {
        let Some([object_id, left]) = self.objects.front()? else {
            return self.targets.push([target_object_id, field_id]);
        };
        let object_id = *object_id;
        *left -= 1;
        if *left == 0 {
            self.objects.pop()?;
        }
        self.has_joined = true;
        self.reference(HeapReference { gc_id, object_id, target_object_id, field_id }, sink);
        Ok(())
    }

    #[inline]
    fn reference(&mut self, reference: HeapReference, sink: &mut impl FactSink) {
        self.reference_rows.push(reference);
        if self.reference_rows.len() >= BATCH {
            sink.add(self.reference_rows.as_slice());
            self.reference_rows.clear();
        }
    }

    fn orphan(&mut self, gc_id: GcId, target_object_id: u64, field_id: u64, sink: &mut impl FactSink) {
        self.without_object = self.without_object.saturating_add(1);
        self.reference(HeapReference { gc_id, object_id: 0, target_object_id, field_id }, sink);
    }

    /// Hands the last rows on.
    fn hand_on(&mut self, sink: &mut impl FactSink) {
        if !self.object_rows.is_empty() {
            sink.add(self.object_rows.as_slice());
            self.object_rows.clear();
        }
        if !self.reference_rows.is_empty() {
            sink.add(self.reference_rows.as_slice());
            self.reference_rows.clear();
        }
    }

    /// Takes note of an error: rows in the file are lost, and with them the order.
    #[inline]
    fn done(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.failed = Some(error);
            self.objects.clear();
            self.targets.clear();
            (self.nodes_have_gap, self.edges_have_gap) = (true, true);
        }
    }

    fn report_failure(&mut self, offset: u64, sink: &mut impl FactSink) {
        if let Some(error) = self.failed.take() {
            let message = format!("references are missing, the temporary file failed: {error}");
            sink.problem(&Problem::loss("spill_failed", offset, message));
        }
    }

    fn empty(&mut self, gc_id: GcId, sink: &mut impl FactSink) -> io::Result<()> {
        while let Some([target, field]) = self.targets.pop()? {
            self.orphan(gc_id, target, field, sink);
        }
        while let Some([_, left]) = self.objects.pop()? {
            self.without_target = self.without_target.saturating_add(left);
        }
        Ok(())
    }

    /// The walk is over: what waits has lost its other half. Targets become references of no known object.
    fn end(&mut self, gc_id: GcId, sink: &mut impl FactSink) {
        let emptied = self.empty(gc_id, sink);
        self.done(emptied);
        self.hand_on(sink);
        // A reference is lost once, whichever of its halves is missing.
        let lost = self.without_target.max(self.without_object);
        *self = Walk {
            lost_references: self.lost_references.saturating_add(lost),
            gc_id: self.gc_id,
            failed: self.failed.take(),
            objects: std::mem::take(&mut self.objects),
            targets: std::mem::take(&mut self.targets),
            object_rows: std::mem::take(&mut self.object_rows),
            reference_rows: std::mem::take(&mut self.reference_rows),
            ..Walk::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;

    #[derive(Default)]
    struct References {
        joined: u64,
        orphans: u64,
        wrong: u64,
    }

    impl FactSink for References {
        fn fact(&mut self, fact: Fact<'_>) {
            let Fact::HeapReference(rows) = fact else { return };
            for row in rows {
                self.joined += u64::from(row.object_id != 0);
                self.orphans += u64::from(row.object_id == 0);
                // In these tests object n holds targets n * 10,000,000 + 1, 2, 3 and so on.
                self.wrong += u64::from(row.object_id != 0 && row.target_object_id / 10_000_000 != row.object_id);
            }
        }
    }

    fn object(object_id: u64, reference_count: u64) -> HeapObject {
        HeapObject { gc_id: 1, object_id, reference_count, ..HeapObject::default() }
    }

    fn targets(walk: &mut Walk, sink: &mut References, of: u64, numbers: std::ops::Range<u64>) {
        for number in numbers {
            walk.target(1, of * 10_000_000 + number, 0, sink);
        }
        walk.hand_on(sink);
    }

    #[test]
    fn one_list_may_run_ahead_of_the_other_as_far_as_it_likes() {
        const MANY: u64 = 3_000_000;
        let (mut walk, mut sink) = (Walk::default(), References::default());
        // Targets first: one array of three million, and an object behind it.
        walk.edge_event(0, 1, &mut sink);
        targets(&mut walk, &mut sink, 1, 0..MANY);
        targets(&mut walk, &mut sink, 2, 0..5);
        assert_eq!(sink.joined, 0);
        walk.node_event(0, 1, &mut sink);
        walk.object(object(1, MANY), &mut sink);
        walk.object(object(2, 5), &mut sink);
        // Then objects first.
        for _ in 0..MANY {
            walk.object(object(3, 1), &mut sink);
        }
        targets(&mut walk, &mut sink, 3, 0..MANY);
        walk.end(1, &mut sink);
        assert_eq!((sink.joined, sink.orphans, sink.wrong), (2 * MANY + 5, 0, 0));
        assert_eq!(walk.lost_references, 0);
    }

    /// Counts are what the recording says, and no references need to come.
    #[test]
    fn counts_beyond_64_bits_are_the_largest_number() {
        let (mut walk, mut sink) = (Walk::default(), References::default());
        for _ in 0..2 {
            walk.node_event(0, 1, &mut sink);
            walk.object(object(1, u64::MAX), &mut sink);
            walk.object(object(2, u64::MAX), &mut sink);
            walk.node_event(2, 1, &mut sink);
            walk.object(object(3, u64::MAX), &mut sink);
            walk.object(object(4, u64::MAX), &mut sink);
            walk.end(1, &mut sink);
        }
        assert_eq!((walk.lost_references, sink.joined), (u64::MAX, 0));
    }

    #[test]
    fn a_gap_costs_what_is_behind_it_and_is_counted_once() {
        let (mut walk, mut sink) = (Walk::default(), References::default());
        walk.node_event(0, 1, &mut sink);
        walk.object(object(1, 10), &mut sink);
        walk.edge_event(0, 1, &mut sink);
        targets(&mut walk, &mut sink, 1, 0..4);
        // The second event of objects is missing, with object 2 in it.
        walk.node_event(2, 1, &mut sink);
        walk.object(object(3, 7), &mut sink);
        walk.edge_event(1, 1, &mut sink);
        targets(&mut walk, &mut sink, 1, 4..10);
        targets(&mut walk, &mut sink, 2, 0..5);
        targets(&mut walk, &mut sink, 3, 0..7);
        // The next walk begins.
        walk.node_event(0, 1, &mut sink);
        assert_eq!((sink.joined, sink.orphans, sink.wrong), (10, 12, 0));
        assert_eq!(walk.lost_references, 12);
        walk.edge_event(0, 1, &mut sink);
        walk.object(object(4, 1), &mut sink);
        targets(&mut walk, &mut sink, 4, 0..1);
        walk.hand_on(&mut sink);
        assert_eq!((sink.joined, sink.wrong), (11, 0));
    }

    #[test]
    fn made_up_counts_do_not_overflow() {
        let (mut walk, mut sink) = (Walk::default(), References::default());
        for index in [0, 7, 9] {
            walk.node_event(index, 1, &mut sink);
            walk.object(object(1, u64::MAX), &mut sink);
            walk.object(object(2, u64::MAX - 1), &mut sink);
        }
        walk.end(1, &mut sink);
        assert_eq!(walk.lost_references, u64::MAX);
    }
}
