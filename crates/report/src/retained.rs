//! The heap of the last walk: types by what they retain, and what keeps them, as a tree to open.

use tracequet_analyze::heap::{self, HeapGraph, KeptWalk, Paths, Retention, TypeRow};
use tracequet_analyze::profile::{self, Profile};
use tracequet_dataset::error::Error;

use crate::prelude::*;

/// Memory of the graph in bytes: a larger one is for `tracequet heap`.
pub const MAX_HEAP: u64 = 1 << 30;

/// Rows of the table, types with a path, and steps of a path.
const MAX_TYPES: usize = 100;
const MAX_PATHS: usize = 25;
const MAX_STEPS: usize = 24;

/// Branches of the tree that are merged, and that the page has; each has this share of the heap at least.
const MAX_MERGED: usize = 1 << 20;
const MAX_BRANCHES: usize = 500;
const MIN_SHARE: f64 = 0.005;
const MAX_DEPTH: usize = 40;

/// The part of the page, and the profile of the heap. `None` when the recording has no walk of the heap. `allocated` has the bytes that samples say of types,
/// `walk` the objects and references where the dataset has no rows of them.
pub(crate) fn retained(
    recording: &Recording<'_>,
    allocated: &Map<String, u64>,
    walk: Option<KeptWalk>,
) -> Result<Option<(String, Option<Profile>)>> {
    let is_there = |name: &str| recording.tables().any(|table| table.name == name);
    let is_kept = |name: &&str| walk.is_some() && heap::LARGE_TABLES.contains(name);
    if !heap::TABLES.iter().all(|name| is_there(name) || is_kept(name)) {
        return Ok(None);
    }
    let Some(snapshot) = heap::snapshots(recording)?.pop() else { return Ok(None) };
    let graph = match walk {
        Some(walk) => walk.graph(recording, &snapshot),
        None => heap::read(recording, &snapshot, MAX_HEAP),
    };
    let graph = match graph {
        Ok(graph) => graph,
        Err(Error::TooLarge(_) | Error::OverMemory(_)) => {
            let objects = counted(snapshot.objects, "object", "objects");
            let html = format!(
                "<p class=\"note\">The heap has {objects}, more than a page reads. <code>tracequet heap IN</code> shows it.</p>\n"
            );
            return Ok(Some((html, None)));
        }
        Err(other) => return Err(other),
    };
    let retention = Retention::of(&graph);
    let types = retention.by_type(&graph);
    let mut by_size: Vec<&TypeRow> = types.iter().collect();
    by_size.sort_by(|a, b| b.retained_bytes.cmp(&a.retained_bytes).then_with(|| a.name.cmp(&b.name)));
    let all = types.iter().fold(0u64, |sum, row| sum.saturating_add(row.size_bytes));
    let mut out = String::new();
    let (unreachable, bytes) = retention.unreachable(&graph);
    let mut about = format!(
        "{} of {} in {}, at collection {}.",
        counted(graph.len().into(), "object", "objects"),
        counted(types.len() as u64, "type", "types"),
        size(all),
        snapshot.gc_id
    );
    if unreachable > 0 {
        about += &format!(" No root leads to {} of {}.", counted(unreachable, "object", "objects"), size(bytes));
    }
    if by_size.len() > MAX_TYPES {
        about += &format!(" The {MAX_TYPES} types that retain most.");
    }
    out += &note(&about);
    let mut table = table!("retained-table", by_size.iter().take(MAX_TYPES), |row| {
        words("type", "Of the objects") => Cell::text(&row.name),
        numbers("allocated", "Bytes that samples of allocations stand for, where they are recorded") =>
            Cell::size(allocated.get(&*row.name).copied()),
        numbers("objects", "That the walk found") => Cell::count(row.objects),
        numbers("bytes", "Of these objects") => Cell::size(row.size_bytes),
        numbers("retained", "Bytes that would be freed with them, each counted once") => Cell::size(row.retained_bytes),
        numbers("unreachable", "Objects that no root leads to") => Cell::count(row.unreachable),
    });
    table.without_empty();
    out += &table.html("Types by what they retain");
    out += "<h3>What keeps them</h3>\n";
    out += &note(
        "The objects of the types that retain most, each with the path from a root to the one that retains most. What every path leads through is bold.",
    );
    out += &paths(&graph, &retention, &by_size);
    out += "<h3>Who holds the memory</h3>\n";
    out += &note(
        "Objects below those without which they would be freed, merged by type: bytes of all below, and how many objects.",
    );
    out += &tree(&graph, &retention, all);
    let profile = profile::of_heap(&graph, &retention, &snapshot, Profile::default());
    Ok(Some((out, Some(profile))))
}

/// Of each of the largest types the object that retains most, and the way to it.
fn paths(graph: &HeapGraph, retention: &Retention, by_size: &[&TypeRow]) -> String {
    let largest = || by_size.iter().take(MAX_PATHS).filter_map(|row| row.largest.map(|node| (row, node)));
    // For an object that no root leads to the search would go through the whole graph.
    let wanted = largest().map(|(_, node)| node).filter(|node| retention.dominators.is_reachable(*node));
    let all_paths = Paths::of(&graph.references, &graph.root_nodes(), &wanted.collect::<Vec<_>>());
    let mut out = String::from("<div class=\"tree\">\n");
    for (row, node) in largest() {
        let explained = heap::explain_by(graph, retention, &all_paths, node);
        write!(
            out,
            "<details><summary>{} <span class=\"figure\">{}</span> {}</summary><ol>",
            escaped(&row.name),
            size(row.retained_bytes),
            counted(row.objects, "object", "objects"),
        )
        .ok();
        match &explained.root {
            Some(root) => write!(out, "<li>root: {}</li>", escaped(&root.describe())).ok(),
            None => write!(out, "<li>No root leads to it.</li>").ok(),
        };
        let steps = explained.shortest.len();
        for (place, step) in explained.shortest.iter().enumerate() {
            if place >= MAX_STEPS - 1 && place + 1 < steps {
                if place == MAX_STEPS - 1 {
                    write!(out, "<li>… {} more …</li>", steps - MAX_STEPS).ok();
                }
                continue;
            }
            let is_dominator = explained.dominators.iter().any(|dominator| dominator.node == step.node);
            let (open, close) = if is_dominator { ("<b>", "</b>") } else { ("", "") };
            write!(
                out,
                "<li>{open}{}{close} <code>{:x}</code> retains {}</li>",
                escaped(&step.type_name),
                step.address,
                size(step.retained_bytes)
            )
            .ok();
        }
        out.push_str("</ol></details>\n");
    }
    out.push_str("</div>\n");
    out
}

#[derive(Debug, Default)]
struct Branch {
    kind: u32,
    depth: usize,
    /// Of its objects and of all below.
    bytes: u64,
    objects: u64,
    children: Vec<u32>,
}

/// The dominator tree merged by types.
fn tree(graph: &HeapGraph, retention: &Retention, all: u64) -> String {
    let mut branches = vec![Branch { kind: u32::MAX, ..Branch::default() }];
    let mut children: Map<(u32, u32), u32> = Map::default();
    // A cache in front of the map: the pairs that were looked up last.
    let mut recent = [((u32::MAX, u32::MAX), 0); 1 << 10];
    retention.fold_down(graph, 0u32, |kind, bytes, parent| {
        let depth = branches.get(parent as usize).map_or(0, |parent| parent.depth) + 1;
        let has_room = branches.len() < MAX_MERGED && depth <= MAX_DEPTH;
        let slot = (parent as usize * 31 + kind as usize) % recent.len();
        let of_slot = recent.get(slot).filter(|((of, known), _)| (*of, *known) == (parent, kind));
        let at = match of_slot.map(|(_, at)| at).or_else(|| children.get(&(parent, kind))) {
            Some(known) => *known,
            None if !has_room => parent,
            None => {
                let new = branches.len() as u32;
                branches.push(Branch { kind, depth, ..Branch::default() });
                if let Some(parent) = branches.get_mut(parent as usize) {
                    parent.children.push(new);
                }
                children.insert((parent, kind), new);
                new
            }
        };
        if let Some(branch) = branches.get_mut(at as usize) {
            branch.objects += 1;
            // An object without a branch of its own counts for the branch of its dominator, whose bytes include it.
            branch.bytes = branch.bytes.saturating_add(if at == parent { 0 } else { bytes });
        }
        if let Some(slot) = recent.get_mut(slot) {
            *slot = ((parent, kind), at);
        }
        at
    });
    let least = ((all as f64 * MIN_SHARE) as u64).max(1);
    let mut out = String::from("<div class=\"tree\">\n");
    let mut left = MAX_BRANCHES;
    write_branch(&mut out, &branches, 0, graph, least, all, &mut left, 0);
    out.push_str("</div>\n");
    out
}

#[allow(clippy::too_many_arguments, reason = "what a walk carries along")]
fn write_branch(
    out: &mut String,
    branches: &[Branch],
    at: usize,
    graph: &HeapGraph,
    least: u64,
    all: u64,
    left: &mut usize,
    depth: usize,
) {
    let Some(branch) = branches.get(at) else { return };
    let mut below: Vec<(u64, u32)> =
        branch.children.iter().map(|child| (branches.get(*child as usize).map_or(0, |b| b.bytes), *child)).collect();
    below.sort_by_key(|(bytes, child)| (std::cmp::Reverse(*bytes), *child));
    let (mut others, mut other_bytes) = (0u64, 0u64);
    for (bytes, child) in below {
        let Some(of_child) = branches.get(child as usize) else { continue };
        if bytes < least || *left == 0 || depth >= MAX_DEPTH {
            others += 1;
            other_bytes = other_bytes.saturating_add(bytes);
            continue;
        }
        *left -= 1;
        let name = graph.type_names.get(of_child.kind as usize).map_or("", |name| &**name);
        let share = share(bytes as f64 / all.max(1) as f64);
        let words = format!(
            "{} <span class=\"figure\">{}</span> {share}, {}",
            escaped(name),
            size(bytes),
            counted(of_child.objects, "object", "objects")
        );
        let has_more = !of_child.children.is_empty();
        if has_more {
            write!(out, "<details><summary>{words}</summary><div>").ok();
            write_branch(out, branches, child as usize, graph, least, all, left, depth + 1);
            out.push_str("</div></details>\n");
        } else {
            writeln!(out, "<p>{words}</p>").ok();
        }
    }
    if others > 0 {
        writeln!(out, "<p>{} with {}</p>", counted(others, "smaller type", "smaller types"), size(other_bytes)).ok();
    }
}
