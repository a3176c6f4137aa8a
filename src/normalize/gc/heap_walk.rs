//! Walks of the heap: objects and their references, which come as two separate lists in the same order.
//!
//! GCBulkNode lists objects with the number of references each holds; GCBulkEdge lists the targets of all of them, one
//! after the other. Both are cut into events independently, so whichever is ahead waits for the other.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;

use super::runtimes::Runtime;
use crate::error::{Problem, Severity};
use crate::normalize::fact::{FactSink, GcId, HeapObject, HeapReference};
use crate::normalize::tracker::{self, Hears, Input, Needs, RUNTIME};

/// What an event lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Objects.
    Nodes,
    /// Targets of references.
    Edges,
}

/// The events.
pub const HEARS: &[Hears<Action>] =
    &[Hears { provider: RUNTIME, events: &[("GCBulkNode", Action::Nodes), ("GCBulkEdge", Action::Edges)] }];

impl tracker::Action for Action {
    fn needs(self) -> Needs {
        match self {
            Action::Nodes => Needs::Rows(&["Address", "Size", "TypeID", "EdgeCount"]),
            Action::Edges => Needs::Rows(&["Value", "ReferencingFieldID"]),
        }
    }
}

/// The walks of all runtimes.
#[derive(Default)]
pub struct HeapWalks {
    /// By the place of the runtime.
    walks: HashMap<usize, Walk, RandomState>,
}

impl HeapWalks {
    /// An event of a walk.
    pub fn event(&mut self, action: Action, input: &Input<'_>, runtime: &mut Runtime<'_>, sink: &mut impl FactSink) {
        let Some(rows) = input.rows else { return };
        let sharers = self.walks.len();
        let walk = self.walks.entry(runtime.index).or_default();
        walk.sharers = sharers;
        let row = &mut runtime.open_collection().row;
        let gc_id = row.gc_id;
        match action {
            Action::Nodes => {
                walk.node_event(input.index);
                row.heap_object_count += rows.len() as u64;
                for [object_id, size_bytes, type_id, reference_count] in rows.values() {
                    walk.object(&HeapObject { gc_id, object_id, size_bytes, type_id, reference_count }, sink);
                }
            }
            Action::Edges => {
                walk.edge_event(input.index);
                for [target, field] in rows.values() {
                    walk.target(gc_id, target, field, sink);
                }
            }
        }
    }

    /// The end of the recording.
    pub fn finish(&mut self, position: u64, sink: &mut impl FactSink) {
        let lost = self.walks.values_mut().map(Walk::finish).fold(0, u64::saturating_add);
        if lost > 0 {
            let message = "references of heap objects could not be attributed: a part of the walk is missing";
            sink.problem(&Problem::new(Severity::DataLoss, "lost_references", position, message).count(lost));
        }
    }
}

/// Objects or targets that wait at most; a walk that exceeds it has lost one of its lists.
const MAX_WAITING: usize = 2 << 20;

/// References of the current walk of one runtime that are not joined yet.
#[derive(Debug, Default)]
struct Walk {
    /// Objects with references that are still to come.
    objects: VecDeque<(u64, u64)>,
    /// Targets (and fields) whose objects are still to come.
    targets: VecDeque<(u64, u64)>,
    next_node_event: u64,
    next_edge_event: u64,
    /// Lists are out of step: targets are no longer attributed to objects.
    broken: bool,
    /// How many walks share the memory: those of several processes in one recording.
    sharers: usize,
    /// References that could not be attributed.
    lost_references: u64,
}

impl Walk {
    /// Takes note of the number of a GCBulkNode event; a gap means that objects are missing.
    fn node_event(&mut self, index: u64) {
        if index == 0 {
            self.restart();
        }
        self.broken |= index != self.next_node_event;
        self.next_node_event = index + 1;
    }

    /// Takes note of the number of a GCBulkEdge event; a gap means that targets are missing.
    fn edge_event(&mut self, index: u64) {
        self.broken |= index != self.next_edge_event && index != 0;
        self.next_edge_event = index + 1;
    }

    /// A new walk begins.
    fn restart(&mut self) {
        let left: u64 = self.objects.iter().map(|(_, count)| *count).sum();
        self.lost_references += left + self.targets.len() as u64;
        self.objects.clear();
        self.targets.clear();
        (self.next_node_event, self.next_edge_event, self.broken) = (0, 0, false);
    }

    /// An object.
    #[inline]
    fn object(&mut self, object: &HeapObject, sink: &mut impl FactSink) {
        sink.add(object);
        if object.reference_count == 0 {
            return;
        }
        if self.broken {
            self.lost_references += object.reference_count;
            return;
        }
        self.objects.push_back((object.object_id, object.reference_count));
        self.join(object.gc_id, sink);
    }

    /// A target.
    #[inline]
    fn target(&mut self, gc_id: GcId, target: u64, field: u64, sink: &mut impl FactSink) {
        if self.broken {
            sink.add(&HeapReference { gc_id, object_id: 0, target_object_id: target, field_id: field });
            return;
        }
        self.targets.push_back((target, field));
        self.join(gc_id, sink);
    }

    fn join(&mut self, gc_id: GcId, sink: &mut impl FactSink) {
        while let (Some((object_id, left)), Some((target, field))) = (self.objects.front_mut(), self.targets.front()) {
            sink.add(&HeapReference { gc_id, object_id: *object_id, target_object_id: *target, field_id: *field });
            self.targets.pop_front();
            *left -= 1;
            if *left == 0 {
                self.objects.pop_front();
            }
        }
        if self.objects.len().max(self.targets.len()) > MAX_WAITING / self.sharers.max(1) {
            self.restart();
            self.broken = true;
        }
    }

    /// The end of the recording: what waits is lost.
    fn finish(&mut self) -> u64 {
        self.restart();
        std::mem::take(&mut self.lost_references)
    }
}
