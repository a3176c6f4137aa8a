//! The rows of a heap dump (`.gcdump`): a collection, its objects and references, types and roots.

use std::borrow::Cow;

use crate::prelude::*;
use tracequet_trace::reader::gcdump::{GcDump, Graph, Node, NodeType};

use super::enum_names;
use super::fact::{FactSink, Gc, GcRoot, HeapObject, HeapReference, Process, Type};
use super::generic_names::as_in_runtime;

/// The collection that represents the dump.
const GC_ID: u32 = 1;

/// Name of the type of nodes that are referred to and were not dumped.
const UNDEFINED: &str = "UNDEFINED";

/// The kind of the roots below a node.
#[derive(Clone, Copy)]
struct Group {
    kind: &'static str,
    flags: u32,
}

/// Hands all facts of a dump to `sink`. Nodes that are no objects are groups of roots: their objects become rows of
/// `gc_root`.
pub fn facts(dump: &GcDump, sink: &mut impl FactSink) {
    let graph = &dump.graph;
    let type_ids = type_ids(graph);
    let process_id = u64::from(dump.about.process_id);
    let process = dump.about.process.as_deref().unwrap_or_default();
    sink.add(&Process { process_id, name: process, ..Process::default() });
    let mut gc = Gc {
        gc_id: GC_ID,
        process_id,
        generation: Some(2),
        reason: Some("Induced"),
        end_ts_ns: Some(0),
        complete: dump.problem.is_none(),
        ..Gc::default()
    };
    let (mut unreadable, mut references) = (0u64, 0u64);
    let mut of_objects = vec![false; graph.types.len()];
    let type_id = |node: &Node<'_>| type_ids.get(node.type_index as usize).copied().unwrap_or_default();
    for index in 0..graph.nodes() {
        let object_id = graph.address(index);
        let Some(node) = graph.node(index) else {
            unreadable += 1;
            continue;
        };
        references += u64::from(node.children.total());
        // Overlapping nodes could expand to more than the file has bytes.
        if references > graph.blob_bytes() {
            unreadable += u64::from(graph.nodes() - index);
            break;
        }
        if object_id != 0 && !is_undefined(graph, &node) {
            gc.heap_object_count += 1;
            let place = (type_id(&node) as usize).wrapping_sub(1);
            of_objects.get_mut(place).into_iter().for_each(|is_one| *is_one = true);
            object(graph, object_id, &node, type_id(&node), sink);
        }
    }
    types(graph, process_id, &type_ids, &of_objects, sink);
    gc.root_count = roots(graph, sink);
    if unreadable > 0 {
        gc.complete = false;
        sink.problem(&Problem::error("damaged_dump", 0, "nodes of the heap dump cannot be read").count(unreadable));
    }
    if dump.count_multiplier > 1.0 {
        let message = format!(
            "the dump has only a part of the objects: each represents {:.2} on average, and paths may be missing",
            dump.count_multiplier
        );
        sink.problem(&Problem::loss("sampled_dump", 0, message));
    }
    sink.add(&gc);
}

fn is_undefined(graph: &Graph, node: &Node<'_>) -> bool {
    node.type_index == 0 && graph.types.first().is_some_and(|first| first.name == UNDEFINED)
}

/// The ids of the types, their places from 1 on: a dump has no method tables. Wrappers that COM has of objects of one type are one type,
/// though each has an address in its name.
fn type_ids(graph: &Graph) -> Vec<u64> {
    let mut of_wrappers: Map<String, u64> = Map::default();
    let id = |(own, found): (u64, &NodeType)| match without_address(&found.name) {
        Cow::Owned(name) => *of_wrappers.entry(name).or_insert(own),
        Cow::Borrowed(_) => own,
    };
    (1..).zip(&graph.types).map(id).collect()
}

/// The name of a type without the address of the one object that it is about: `[CCW 0x1000 for type App.Thing]`.
fn without_address(name: &str) -> Cow<'_, str> {
    const WRAPPER: &str = "[CCW 0x";
    let Some(rest) = name.strip_prefix(WRAPPER) else { return Cow::Borrowed(name) };
    format!("[CCW{}", rest.trim_start_matches(|digit: char| digit.is_ascii_hexdigit())).into()
}

/// The types. Names in brackets are those of groups of roots, unless there are objects of them: wrappers of COM are called
/// `[RCW App.Thing]` and `[CCW for type App.Thing]`.
fn types(graph: &Graph, process_id: u64, type_ids: &[u64], of_objects: &[bool], sink: &mut impl FactSink) {
    for (((type_id, found), is_of_objects), id) in (1..).zip(&graph.types).zip(of_objects).zip(type_ids) {
        if type_id != *id {
            continue;
        }
        let is_bracketed = found.name.starts_with('[') && !found.name.starts_with("[]") && found.name.ends_with(']');
        if (*is_of_objects || !is_bracketed) && found.name != UNDEFINED {
            // Dumpers sort large objects under names of their own: `System.String (Bytes > 10K)`.
            let name = without_address(found.name.split(" (Bytes > ").next().unwrap_or_default());
            let name = as_in_runtime(&name);
            sink.add(&Type { process_id, type_id, name: &name, ..Type::default() });
        }
    }
}

fn object(graph: &Graph, object_id: u64, node: &Node<'_>, type_id: u64, sink: &mut impl FactSink) {
    let mut reference_count = 0;
    for child in node.children {
        let target_object_id = graph.address(child);
        if target_object_id != 0 {
            reference_count += 1;
            sink.add(&HeapReference { gc_id: GC_ID, object_id, target_object_id, field_id: 0 });
        }
    }
    sink.add(&HeapObject { gc_id: GC_ID, object_id, type_id, size_bytes: node.size.into(), reference_count });
}

/// Walks the groups below the root, and returns how many roots there are.
fn roots(graph: &Graph, sink: &mut impl FactSink) -> u64 {
    let mut seen = vec![false; graph.nodes() as usize];
    // A node is open once, so that a list of the same child again and again takes no memory.
    let mut is_new = |index: u32| seen.get_mut(index as usize).is_some_and(|seen| !std::mem::replace(seen, true));
    let mut open = Vec::new();
    if is_new(graph.root) {
        open.push((graph.root, Group { kind: "other", flags: 0 }));
    }
    let (mut count, mut steps) = (0, 0u64);
    while let Some((index, above)) = open.pop() {
        let Some(node) = graph.node(index) else { continue };
        let name = graph.types.get(node.type_index as usize).map_or("", |found| found.name.as_str());
        let group = group(name, above);
        let field = name.strip_prefix("[static var ").and_then(|rest| rest.strip_suffix(']'));
        for child in node.children {
            steps += 1;
            if steps > graph.blob_bytes() {
                return count;
            }
            match graph.address(child) {
                0 if is_new(child) => open.push((child, group)),
                0 => {}
                object_id => {
                    let Group { kind: root_kind, flags: root_flags } = group;
                    let name = field.filter(|_| root_kind == "static");
                    let root_flags_text = enum_names::root_flags(root_kind, root_flags);
                    let row =
                        GcRoot { gc_id: GC_ID, object_id, root_kind, root_flags, root_flags_text, root_id: 0, name };
                    sink.add(&row);
                    count += 1;
                }
            }
        }
    }
    count
}

/// The kind that the name of a group says, or else that of the group above it.
fn group(name: &str, above: Group) -> Group {
    let group = |kind, flags| Group { kind, flags };
    match name {
        "[static vars]" => group("static", 0),
        "[thread static vars]" => group("static", 1),
        "[local vars]" => group("stack", 0),
        "[COM/WinRT Objects]" => group("com", 0),
        "[finalizer Handles]" => group("finalizer", 0),
        "[strong Handles]" => group("handle", 0),
        "[pinning Handles]" => group("handle", 1),
        "[SizeRef Handles]" => group("sized_ref", 0),
        "[Dependent Handles]" => group("dependent_handle", 0),
        _ => above,
    }
}
