//! The heap of the last walk: types by what they retain, and what keeps them, as a tree to open.

use tracequet_analyze::heap::{self, Branch, HeapGraph, KeptWalk, Paths, Retention, TypeRow};
use tracequet_analyze::profile::{self, Profile};
use tracequet_dataset::error::Error;

use crate::prelude::*;

/// Memory of the graph in bytes: a larger one is for `tracequet heap`.
pub const MAX_HEAP: u64 = 1 << 30;

/// Rows of the table, types with a path, and steps of a path.
const MAX_TYPES: usize = 100;
const MAX_PATHS: usize = 25;
const MAX_STEPS: usize = 24;

/// Branches of the tree that the page has; each has this share of the heap at least.
const MAX_BRANCHES: usize = 500;
const MIN_SHARE: f64 = 0.005;
const MAX_DEPTH: u32 = 40;

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
        out += &format!(
            "<details><summary>{} <span class=\"figure\">{}</span> {}</summary><ol>",
            escaped(&row.name),
            size(row.retained_bytes),
            counted(row.objects, "object", "objects"),
        );
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
            out += &format!(
                "<li>{open}{}{close} <code>{:x}</code> retains {}</li>",
                escaped(&step.type_name),
                step.address,
                size(step.retained_bytes)
            );
        }
        out.push_str("</ol></details>\n");
    }
    out.push_str("</div>\n");
    out
}

/// The dominator tree merged by types.
fn tree(graph: &HeapGraph, retention: &Retention, all: u64) -> String {
    let branches = retention.branches(graph, MAX_DEPTH);
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); branches.len()];
    for (place, branch) in branches.iter().enumerate().skip(1) {
        below.get_mut(branch.above as usize).into_iter().for_each(|below| below.push(place));
    }
    let least = ((all as f64 * MIN_SHARE) as u64).max(1);
    let out = String::from("<div class=\"tree\">\n");
    let mut tree = Tree { out, graph, branches, below, least, all, left: MAX_BRANCHES };
    tree.write_below(0);
    tree.out + "</div>\n"
}

/// The tree in the making.
struct Tree<'g> {
    out: String,
    graph: &'g HeapGraph,
    branches: Vec<Branch>,
    /// The places of those below each branch.
    below: Vec<Vec<usize>>,
    /// The bytes of a branch that is shown, at least, and of all.
    least: u64,
    all: u64,
    /// Branches that there is room for.
    left: usize,
}

impl Tree<'_> {
    /// Writes the branches below one, the largest first.
    fn write_below(&mut self, at: usize) {
        let places = self.below.get_mut(at).map(std::mem::take).unwrap_or_default();
        let branches = places.into_iter().filter_map(|place| Some((place, *self.branches.get(place)?)));
        let mut branches: Vec<(usize, Branch)> = branches.collect();
        branches.sort_by_key(|(place, branch)| (std::cmp::Reverse(branch.bytes), *place));
        let (mut others, mut other_bytes) = (0u64, 0u64);
        for (place, Branch { kind, bytes, objects, .. }) in branches {
            if bytes < self.least || self.left == 0 {
                others += 1;
                other_bytes = other_bytes.saturating_add(bytes);
                continue;
            }
            self.left -= 1;
            let name = self.graph.type_names.get(kind as usize).map_or("", |name| &**name);
            let (name, size, share) = (escaped(name), size(bytes), share(bytes as f64 / self.all.max(1) as f64));
            let objects = counted(objects, "object", "objects");
            let words = format!("{name} <span class=\"figure\">{size}</span> {share}, {objects}");
            if self.below.get(place).is_some_and(|below| !below.is_empty()) {
                self.out += &format!("<details><summary>{words}</summary><div>");
                self.write_below(place);
                self.out += "</div></details>\n";
            } else {
                self.out += &format!("<p>{words}</p>\n");
            }
        }
        if others > 0 {
            let types = counted(others, "smaller type", "smaller types");
            self.out += &format!("<p>{types} with {}</p>\n", size(other_bytes));
        }
    }
}
