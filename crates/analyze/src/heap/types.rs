//! The bytes that each object retains, and the sums by type.
#![allow(clippy::indexing_slicing, reason = "every index is a node of the graph, or a place among its types")]

use crate::prelude::*;

use super::dominators::Dominators;
use super::graph::HeapGraph;

/// The bytes that each object of a heap graph retains.
#[derive(Clone, Debug)]
pub struct Retention {
    /// The dominator tree.
    pub dominators: Dominators,
    /// Of each number of the tree.
    sums: Vec<Sum>,
    /// A bit for each object that an object of its type dominates.
    inner: Vec<u64>,
}

/// The sum of an object and all that it dominates, and its type.
#[derive(Clone, Copy, Debug)]
struct Sum {
    bytes: u64,
    objects: u32,
    kind: u32,
}

/// The objects of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeRow {
    /// Name of the type.
    pub name: Arc<str>,
    /// The number of objects.
    pub objects: u64,
    /// Their bytes.
    pub size_bytes: u64,
    /// Bytes of its objects and of all that they dominate, each counted once.
    pub retained_bytes: u64,
    /// The objects that this counts.
    pub retained_objects: u64,
    /// Objects that are unreachable: no root leads to them.
    pub unreachable: u64,
    /// The object of it that retains most, the first of several; `None` of a type without objects.
    pub largest: Option<u32>,
}

impl Retention {
    /// Finds the dominators and adds up. An object that no root leads to retains itself.
    pub fn of(graph: &HeapGraph) -> Retention {
        let roots = graph.root_nodes();
        let dominators = Dominators::of(&graph.references, &roots);
        let mut sums = Vec::with_capacity(dominators.numbers() as usize);
        sums.push(Sum { bytes: 0, objects: 0, kind: u32::MAX });
        sums.extend((1..dominators.numbers()).map(|number| {
            let (kind, bytes) = graph.object(dominators.node(number));
            Sum { bytes, objects: 1, kind }
        }));
        let mut add = |above: u32, bytes: u64, objects: u32| {
            let sum = &mut sums[above as usize];
            sum.bytes = sum.bytes.saturating_add(bytes);
            sum.objects += objects;
            *sum
        };
        for (node, above) in dominators.leaves() {
            add(above, graph.size(node), 1);
        }
        // A number dominates only larger ones.
        for number in (1..dominators.numbers()).rev() {
            let Sum { bytes, objects, .. } = add(number, 0, 0);
            add(dominators.above_number(number), bytes, objects);
        }
        let inner = inner(graph, &dominators, &sums);
        Retention { dominators, sums, inner }
    }

    fn sum(&self, node: u32) -> Option<Sum> {
        self.dominators.number(node).map(|number| self.sums[number as usize])
    }

    /// Bytes of an object and of all that it dominates. An object that no root leads to retains itself.
    pub fn bytes(&self, graph: &HeapGraph, node: u32) -> u64 {
        self.sum(node).map_or_else(|| graph.size(node), |sum| sum.bytes)
    }

    /// Objects that an object dominates, and itself.
    pub fn count(&self, node: u32) -> u32 {
        self.sum(node).map_or(1, |sum| sum.objects)
    }

    /// Whether no object of the same type dominates it: the retained bytes of a type are the sum over these.
    pub fn is_outermost(&self, node: u32) -> bool {
        self.inner[node as usize / 64] >> (node % 64) & 1 == 0
    }

    /// Objects that no root leads to, and their bytes.
    pub fn unreachable(&self, graph: &HeapGraph) -> (u64, u64) {
        let nodes = self.dominators.unreachable();
        nodes.fold((0, 0), |(count, sum), node| (count + 1, sum.saturating_add(graph.size(node))))
    }

    /// The types, those that retain most first.
    pub fn by_type(&self, graph: &HeapGraph) -> Vec<TypeRow> {
        let row = |name: &Arc<str>| TypeRow { name: name.clone(), ..TypeRow::default() };
        let mut rows: Vec<TypeRow> = graph.type_names.iter().map(row).collect();
        let mut most: Vec<u64> = vec![0; rows.len()];
        let mut retains = |rows: &mut [TypeRow], node: u32, Sum { bytes, objects, kind }: Sum| {
            let (row, most) = (&mut rows[kind as usize], &mut most[kind as usize]);
            if row.largest.is_none_or(|first| (bytes, first) > (*most, node)) {
                (row.largest, *most) = (Some(node), bytes);
            }
            if self.is_outermost(node) {
                row.retained_bytes = row.retained_bytes.saturating_add(bytes);
                row.retained_objects += u64::from(objects);
            }
        };
        // In the order in which they lie in memory here: by numbers, and then those that have none.
        for (number, sum) in (0..).zip(&self.sums).skip(1) {
            retains(&mut rows, self.dominators.node(number), *sum);
        }
        for (node, (kind, bytes)) in (0..).zip(graph.objects()) {
            let row = &mut rows[kind as usize];
            row.objects += 1;
            row.size_bytes = row.size_bytes.saturating_add(bytes);
            if self.dominators.number(node).is_none() {
                retains(&mut rows, node, Sum { bytes, objects: 1, kind });
            }
        }
        for node in self.dominators.unreachable() {
            rows[graph.kind(node) as usize].unreachable += 1;
        }
        rows.sort_by(|a, b| (b.retained_bytes, b.size_bytes, &a.name).cmp(&(a.retained_bytes, a.size_bytes, &b.name)));
        rows
    }

    /// The dominator tree of the objects that a root leads to, merged by type: objects of one type below the same branch are one branch. A branch
    /// stands behind the branch above it. The first entry is the top of the tree and has no objects. Objects deeper than `deepest` branches count
    /// for the branch above them.
    pub fn branches(&self, graph: &HeapGraph, deepest: u32) -> Vec<Branch> {
        let mut branches = vec![Branch::default()];
        let mut places: Map<(u32, u32), u32> = Map::default();
        // A cache in front of the map: the pairs that were looked up last.
        let mut recent = [((u32::MAX, u32::MAX), 0); 1 << 10];
        self.dominators.fold_numbered(0u32, |node, number, above| {
            let sum = number.map(|number| self.sums[number as usize]);
            let (kind, bytes) = sum.map_or_else(|| graph.object(node), |sum| (sum.kind, sum.bytes));
            let slot = (above as usize * 31 + kind as usize) % recent.len();
            let known = Some(recent[slot]).filter(|(pair, _)| *pair == (above, kind)).map(|(_, at)| at);
            let depth = branches[above as usize].depth + 1;
            let at = match known.or_else(|| places.get(&(above, kind)).copied()) {
                Some(known) => known,
                None if branches.len() >= MOST_BRANCHES || depth > deepest => above,
                None => {
                    places.insert((above, kind), branches.len() as u32);
                    branches.push(Branch { above, kind, depth, ..Branch::default() });
                    branches.len() as u32 - 1
                }
            };
            recent[slot] = ((above, kind), at);
            let branch = &mut branches[at as usize];
            branch.objects += 1;
            // The bytes of the branch above include those of an object without a branch of its own.
            branch.bytes = branch.bytes.saturating_add(if at == above { 0 } else { bytes });
            at
        });
        branches
    }
}

/// Branches of a tree of types.
const MOST_BRANCHES: usize = 1 << 20;

/// Objects of a type below those of another branch, without which they would be freed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Branch {
    /// The branch above.
    pub above: u32,
    /// The type.
    pub kind: u32,
    depth: u32,
    /// The bytes of its objects and of all below.
    pub bytes: u64,
    /// The number of its objects.
    pub objects: u64,
}

/// A bit for each object that an object of its type dominates.
///
/// Objects get places in the order of a walk of the dominator tree, so that an object and all that it dominates have
/// the places behind each other. Of those without edges only the dominator's are looked at: they have the places behind
/// the others that it dominates.
fn inner(graph: &HeapGraph, dominators: &Dominators, sums: &[Sum]) -> Vec<u64> {
    let mut inner = vec![0u64; graph.len().div_ceil(64) as usize];
    let mut mark = |node: u32| inner[node as usize / 64] |= 1 << (node % 64);
    // The next free place among those of each number, and the number at each place. That of 0 is no object.
    let mut free = vec![0u32; sums.len()];
    let mut numbers = vec![0u32; sums[0].objects as usize];
    for number in 1..dominators.numbers() {
        let above = dominators.above_number(number) as usize;
        let place = free[above];
        free[above] += sums[number as usize].objects;
        free[number as usize] = place + 1;
        numbers[place as usize] = number;
    }
    let mut has_leaves = vec![false; graph.type_names.len()];
    for (node, _) in dominators.leaves() {
        has_leaves[graph.kind(node) as usize] = true;
    }
    // Behind the places of the last object of each type that none of it dominates; and all of them, of types that
    // leaves have, too.
    let mut ends = vec![0u32; graph.type_names.len()];
    let mut outermost: Vec<Vec<(u32, u32)>> = vec![Vec::new(); graph.type_names.len()];
    for (place, number) in (0u32..).zip(numbers).filter(|(_, number)| *number != 0) {
        let Sum { objects, kind, .. } = sums[number as usize];
        let end = &mut ends[kind as usize];
        if place < *end {
            mark(dominators.node(number));
            continue;
        }
        *end = place + objects;
        if has_leaves[kind as usize] && objects > 1 {
            outermost[kind as usize].push((place, *end));
        }
    }
    for (node, above) in dominators.leaves().filter(|(_, above)| *above != 0) {
        let of_type = &outermost[graph.kind(node) as usize];
        let place = free[above as usize];
        let before = of_type.partition_point(|(begin, _)| *begin <= place);
        if before.checked_sub(1).is_some_and(|last| place < of_type[last].1) {
            mark(node);
        }
    }
    inner
}
