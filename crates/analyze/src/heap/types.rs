//! What each object retains, and the sums by type.
#![allow(clippy::indexing_slicing, reason = "every index is a node of the graph, or a place among its types")]

use std::sync::Arc;

use tracequet_trace::error::{Error, Result};

use super::distance;
use super::dominators::Dominators;
use super::graph::HeapGraph;

/// What each object of a heap graph retains.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Retention {
    /// The dominator tree.
    pub dominators: Dominators,
    /// Bytes of each object and of all that it dominates.
    pub bytes: Vec<u64>,
    /// Objects that it dominates, and itself.
    pub counts: Vec<u32>,
    /// References from a root: 1 for a root's own object, 0 when no root leads to it.
    pub distances: Vec<u32>,
    /// Whether no object of the same type dominates it: the retained bytes of a type are the sum over these.
    pub outermost: Vec<bool>,
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
    pub fn of(graph: &HeapGraph) -> Result<Retention> {
        let roots = graph.root_nodes();
        let dominators = Dominators::of(&graph.references, &roots)
            .ok_or_else(|| Error::Internal("more references than numbers".into()))?;
        let (mut bytes, mut counts) = (graph.sizes.clone(), vec![1u32; graph.sizes.len()]);
        for (node, dominator) in dominators.from_behind() {
            if let Some(dominator) = dominator {
                bytes[dominator as usize] = bytes[dominator as usize].saturating_add(bytes[node as usize]);
                counts[dominator as usize] += counts[node as usize];
            }
        }
        let mut outermost = vec![true; graph.sizes.len()];
        // Objects of each type on the way from the root of the tree.
        let above = std::cell::RefCell::new(vec![0u32; graph.type_names.len()]);
        dominators.walk(
            |node| {
                let place = &mut above.borrow_mut()[graph.types[node as usize] as usize];
                outermost[node as usize] = *place == 0;
                *place += 1;
            },
            |node| above.borrow_mut()[graph.types[node as usize] as usize] -= 1,
        );
        let distances = distance::distances(&graph.references, &roots);
        Ok(Retention { dominators, bytes, counts, distances, outermost })
    }

    /// Objects that no root leads to, and their bytes.
    pub fn unreachable(&self, graph: &HeapGraph) -> (u64, u64) {
        let bytes =
            self.distances.iter().zip(&graph.sizes).filter(|(distance, _)| **distance == 0).map(|(_, size)| *size);
        bytes.fold((0, 0), |(count, sum), size| (count + 1, sum.saturating_add(size)))
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
        for (node, kind) in graph.types.iter().enumerate() {
            let row = &mut rows[*kind as usize];
            row.objects += 1;
            row.size_bytes = row.size_bytes.saturating_add(graph.sizes[node]);
            row.unreachable += u64::from(self.distances[node] == 0);
            if self.outermost[node] {
                row.retained_bytes = row.retained_bytes.saturating_add(self.bytes[node]);
                row.retained_objects += u64::from(self.counts[node]);
            }
        }
        rows.sort_by(|a, b| (b.retained_bytes, b.size_bytes, &a.name).cmp(&(a.retained_bytes, a.size_bytes, &b.name)));
        rows
    }
}
