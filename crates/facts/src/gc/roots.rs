//! Roots, COM objects, static fields, and pairs of a key and a value (dependent handles), which keep objects alive.
//!
//! The runtime reports them on its walk of the heap (GCHeapDump keyword), each time within a collection.

use super::moment::Moment;
use super::runtimes::Runtime;
use crate::fact::{GcId, GcRoot, GcWeakElement};
use crate::prelude::*;

/// The subject of an event about roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootsAction {
    /// Stacks, handles, the finalizer queue.
    Roots,
    /// COM callable wrappers.
    ComRoots,
    /// Static fields.
    StaticRoots,
    /// Keys and the values that they keep alive.
    WeakElements,
}

/// Roots and weak references.
#[derive(Debug, Default)]
pub struct Roots;

impl Tracker for Roots {
    type Action = RootsAction;
    const EVENTS: Events<RootsAction> = &[
        (RUNTIME, "GCBulkRootEdge", RootsAction::Roots),
        (RUNTIME, "GCBulkRootCCW", RootsAction::ComRoots),
        (RUNTIME, "GCBulkRootStaticVar", RootsAction::StaticRoots),
        (RUNTIME, "GCBulkRootConditionalWeakTableElementEdge", RootsAction::WeakElements),
    ];

    fn needs(action: RootsAction) -> Needs {
        match action {
            RootsAction::Roots => Needs::Rows(&["RootedNodeAddress", "GCRootKind", "GCRootFlag", "GCRootID"]),
            RootsAction::ComRoots => Needs::Rows(&["GCRootID", "ObjectID"]),
            RootsAction::WeakElements => Needs::Rows(&["GCKeyNodeID", "GCValueNodeID", "GCRootID"]),
            // Static roots hold names, so that their rows vary in size.
            RootsAction::StaticRoots => Needs::Fields,
        }
    }

    fn event(&mut self, action: RootsAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let Shared { runtimes, profiled, .. } = shared;
        runtimes.event(input, Moment::Within, profiled, sink, |runtime, sink| event(action, input, runtime, sink));
    }
}

/// An event of a walk of the heap.
fn event(action: RootsAction, input: &Input<'_>, runtime: &mut Runtime<'_>, sink: &mut impl FactSink) {
    if action == RootsAction::StaticRoots {
        return static_roots(input, runtime, sink);
    }
    let Some(rows) = input.rows else { return };
    let row = &mut runtime.open_collection().row;
    let gc_id = row.gc_id;
    match action {
        RootsAction::Roots => {
            row.root_count += rows.len() as u64;
            for [object_id, kind, flags, root_id] in rows.values() {
                let (root_kind, root_flags) = (enum_names::event_root_kind(kind), flags as u32);
                let root_flags_text = enum_names::root_flags(root_kind, root_flags);
                let name = None;
                sink.add(&GcRoot { gc_id, object_id, root_kind, root_flags, root_flags_text, root_id, name });
            }
        }
        RootsAction::ComRoots => {
            row.root_count += rows.len() as u64;
            for [root_id, object_id] in rows.values() {
                sink.add(&GcRoot { gc_id, object_id, root_kind: "com", root_id, ..GcRoot::default() });
            }
        }
        RootsAction::WeakElements => {
            for [key_object_id, value_object_id, root_id] in rows.values() {
                sink.add(&GcWeakElement { gc_id, key_object_id, value_object_id, root_id });
            }
        }
        RootsAction::StaticRoots => {}
    }
}

fn static_roots(input: &Input<'_>, runtime: &mut Runtime<'_>, sink: &mut impl FactSink) {
    let row = &mut runtime.open_collection().row;
    for value in input.fields.get("Values").as_list() {
        row.root_count += 1;
        sink.add(&static_root(row.gc_id, value));
    }
}

/// A row of GCBulkRootStaticVar: GCRootID, ObjectID, TypeID, Flags, FieldName.
fn static_root(gc_id: GcId, value: &Value) -> GcRoot<'_> {
    let Value::Struct(fields) = value else { return GcRoot { gc_id, root_kind: "static", ..GcRoot::default() } };
    let number = |index: usize| fields.get(index).and_then(Value::as_u64).unwrap_or_default();
    let root_flags = u32::try_from(number(3)).unwrap_or_default();
    GcRoot {
        gc_id,
        object_id: number(1),
        root_kind: "static",
        root_flags,
        root_flags_text: enum_names::root_flags("static", root_flags),
        root_id: number(0),
        name: fields.get(4).and_then(Value::as_str),
    }
}
