//! What each object retains, and the sums by type.
#![allow(clippy::indexing_slicing, reason = "every index is a node of the graph, or a place among its types")]

use std::sync::Arc;

use super::dominators::Dominators;
use super::graph::HeapGraph;

/// What each object of a heap graph retains.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Retention {
    /// The dominator tree.
    pub dominators: Dominators,
    /// Bytes of what each number of the tree and all that it dominates have, and how many objects they are.
    bytes: Vec<u64>,
    counts: Vec<u32>,
    /// A bit for each object that an object of its type dominates.
    inner: Vec<u64>,
}

/// The objects of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeRow {
    /// Name of the type.
    pub name: Arc<str>,
    /// Its objects.
    pub objects: u64,
    /// Their bytes.
    pub size_bytes: u64,
    /// Bytes of its objects and of all that they dominate, each counted once.
    pub retained_bytes: u64,
    /// The objects that this counts.
    pub retained_objects: u64,
    /// Its objects that no root leads to.
    pub unreachable: u64,
}

impl Retention {
    /// Finds the dominators and adds up. An object that no root leads to retains itself.
    pub fn of(graph: &HeapGraph) -> Retention {
        let roots = graph.root_nodes();
        let dominators = Dominators::of(&graph.references, &roots);
        let count = dominators.numbers();
        let own = |number: u32| if number == 0 { 0 } else { graph.size(dominators.node(number)) };
        let mut bytes: Vec<u64> = (0..count).map(own).collect();
        let mut counts = vec![1u32; count as usize];
        for (node, above) in dominators.numbered_from_behind().filter(|(_, above)| *above != 0) {
            let (size, objects) = match dominators.number(node) {
                Some(number) => (bytes[number as usize], counts[number as usize]),
                None => (graph.size(node), 1),
            };
            bytes[above as usize] = bytes[above as usize].saturating_add(size);
            counts[above as usize] += objects;
        }
        let mut inner = vec![0u64; graph.len().div_ceil(64) as usize];
        // Objects of each type on the way from the root of the tree.
        let above = std::cell::RefCell::new(vec![0u32; graph.type_names.len()]);
        dominators.walk(
            |node| {
                let place = &mut above.borrow_mut()[graph.kind(node) as usize];
                inner[node as usize / 64] |= u64::from(*place != 0) << (node % 64);
                *place += 1;
            },
            |node| above.borrow_mut()[graph.kind(node) as usize] -= 1,
        );
        Retention { dominators, bytes, counts, inner }
    }

    /// Bytes of an object and of all that it dominates. An object that no root leads to retains itself.
    pub fn bytes(&self, graph: &HeapGraph, node: u32) -> u64 {
        self.dominators.number(node).map_or_else(|| graph.size(node), |number| self.bytes[number as usize])
    }

    /// Objects that an object dominates, and itself.
    pub fn count(&self, node: u32) -> u32 {
        self.dominators.number(node).map_or(1, |number| self.counts[number as usize])
    }

    /// Whether no object of the same type dominates it: the retained bytes of a type are the sum over these.
    pub fn is_outermost(&self, node: u32) -> bool {
        self.inner[node as usize / 64] >> (node % 64) & 1 == 0
    }

    /// Objects that no root leads to, and their bytes.
    pub fn unreachable(&self, graph: &HeapGraph) -> (u64, u64) {
        let nodes = (0..graph.len()).filter(|node| !self.dominators.is_reachable(*node));
        nodes.fold((0, 0), |(count, sum), node| (count + 1, sum.saturating_add(graph.size(node))))
    }

    /// The types, those that retain most first.
    pub fn by_type(&self, graph: &HeapGraph) -> Vec<TypeRow> {
        let row = |name: &Arc<str>| TypeRow {
            name: name.clone(),
            objects: 0,
            size_bytes: 0,
            retained_bytes: 0,
            retained_objects: 0,
            unreachable: 0,
        };
        let mut rows: Vec<TypeRow> = graph.type_names.iter().map(row).collect();
        for (node, (kind, size)) in (0..).zip(graph.objects()) {
            let row = &mut rows[kind as usize];
            row.objects += 1;
            row.size_bytes = row.size_bytes.saturating_add(size);
            row.unreachable += u64::from(!self.dominators.is_reachable(node));
            if self.is_outermost(node) {
                row.retained_bytes = row.retained_bytes.saturating_add(self.bytes(graph, node));
                row.retained_objects += u64::from(self.count(node));
            }
        }
        rows.sort_by(|a, b| (b.retained_bytes, b.size_bytes, &a.name).cmp(&(a.retained_bytes, a.size_bytes, &b.name)));
        rows
    }
}
