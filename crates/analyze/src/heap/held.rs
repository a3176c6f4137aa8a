//! Heap dumps that are held in memory while a recording is converted, to compute retained sizes.

use std::collections::HashMap;

use tracequet_facts::fact::{Fact, HeapDominator};

use super::build::{Names, RootRow, build};
use super::graph::HeapGraph;
use super::limit::{BYTES_PER_OBJECT, Limit, needed};
use super::snapshots::Snapshot;
use super::types::Retention;
use super::walk::{Walk, parts};
use crate::allowance::Allowance;
use crate::prelude::*;

/// Memory of a root that waits for its graph, in a list that doubles when it grows.
const ROOT_STORED: u64 = 48;

/// The walks of a recording.
#[derive(Debug)]
pub struct HeldWalks {
    allowance: Allowance,
    walks: BTreeMap<u32, Held>,
    /// The memory of the largest graph beside its walk, in bytes.
    graph: u64,
    names: Map<u64, Arc<str>>,
}

#[derive(Debug, Default)]
struct Held {
    walk: Walk,
    /// Objects with strong roots. The roots are not shown here, so that their kinds are not kept.
    roots: Vec<(u64, bool, u32)>,
}

impl HeldWalks {
    /// For walks that take at most this many bytes together.
    pub fn new(memory: u64) -> HeldWalks {
        HeldWalks { allowance: Allowance::new(memory), walks: BTreeMap::new(), graph: 0, names: HashMap::default() }
    }

    /// Takes what is part of a walk. Beyond the memory, all walks are dropped.
    pub fn fact(&mut self, fact: &Fact<'_>) {
        if self.allowance.is_spent {
            return;
        }
        parts(fact, &mut |gc_id, add| self.add(gc_id, |held| add(&mut held.walk)));
        match fact {
            Fact::GcRoot(rows) => {
                self.allowance.take(rows.len() as u64 * ROOT_STORED);
                for rows in rows.chunk_by(|a, b| a.gc_id == b.gc_id) {
                    let roots = rows.iter().map(|row| (row.object_id, row.root_kind == "static", row.root_flags));
                    self.add(rows.first().map_or(0, |row| row.gc_id), |held| held.roots.extend(roots));
                }
            }
            Fact::Type(rows) => {
                for row in rows.iter().filter(|row| !row.name.is_empty()) {
                    self.allowance.take(BYTES_PER_OBJECT + row.name.len() as u64);
                    self.names.insert(row.type_id, row.name.into());
                }
            }
            _ => {}
        }
        if self.allowance.is_exceeded() {
            self.walks.clear();
            self.names.clear();
        }
    }

    /// Adds to a walk. All walks wait while the graph of one of them is there.
    fn add(&mut self, gc_id: u32, add: impl FnOnce(&mut Held)) {
        let held = self.walks.entry(gc_id).or_default();
        let before = held.walk.bytes();
        add(held);
        let bytes = held.walk.bytes();
        let beside = needed(&held.walk, held.roots.len() as u64) - bytes;
        self.allowance.take(bytes - before + beside.saturating_sub(self.graph));
        self.graph = self.graph.max(beside);
    }

    /// The message when the walks were too large.
    pub fn refused(&self) -> Option<String> {
        self.allowance.refused("heap_dominator stays empty", "--dominators")
    }

    /// Calls `each` with the rows of `heap_dominator` of all walks; with none when they were too large.
    pub fn finish(mut self, mut each: impl FnMut(&HeapDominator) -> Result<()>) -> Result<()> {
        while let Some((gc_id, Held { walk, roots })) = self.walks.pop_first() {
            let snapshot = Snapshot::stored(gc_id, walk.object_count);
            let limit = Limit { gc_id, memory: u64::MAX };
            let graph = build(walk, &Stored { roots: &roots, names: &self.names }, &snapshot, &limit)?;
            dominators(&graph, &mut each)?;
        }
        Ok(())
    }
}

/// The rows of one walk, in the order of addresses.
fn dominators(graph: &HeapGraph, each: &mut impl FnMut(&HeapDominator) -> Result<()>) -> Result<()> {
    let retention = Retention::of(graph);
    for ((node, object_id), root_distance) in (0..).zip(graph.addresses.iter()).zip(graph.distances()) {
        each(&HeapDominator {
            gc_id: graph.snapshot.gc_id,
            object_id,
            dominator_id: retention.dominators.dominator(node).map_or(0, |node| graph.address(node)),
            retained_bytes: retention.bytes(graph, node),
            retained_count: retention.count(node),
            root_distance,
            is_outermost: retention.is_outermost(node),
        })?;
    }
    Ok(())
}

/// A walk that is stored while its recording is converted.
struct Stored<'w> {
    roots: &'w [(u64, bool, u32)],
    names: &'w Map<u64, Arc<str>>,
}

impl Names for Stored<'_> {
    fn roots(&self, each: &mut dyn FnMut(RootRow<'_>) -> Result<()>) -> Result<()> {
        self.roots.iter().try_for_each(|(object_id, is_static, flags)| {
            let kind = if *is_static { "static" } else { "other" };
            each(RootRow { object_id: *object_id, kind, flags: *flags, root_id: 0, name: None })
        })
    }

    fn type_names(&self, ids: &[u64]) -> Result<Vec<Option<Arc<str>>>> {
        Ok(ids.iter().map(|id| self.names.get(id).cloned()).collect())
    }

    fn method_names(&self, _: &mut HashMap<u64, Option<Arc<str>>>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tracequet_facts::fact::{HeapObject, HeapReference};

    use super::*;
    use crate::heap::limit::BYTES_PER_REFERENCE;

    /// Whether these collections with 1,000 objects each, each of which refers to the next one, are held in this
    /// memory.
    fn is_held(memory: u64, collections: u32) -> bool {
        let mut walks = HeldWalks::new(memory);
        for gc_id in 0..collections {
            let address = |number: u64| 0x1000 + number * 24;
            let object = |n| HeapObject { gc_id, object_id: address(n), size_bytes: 24, ..HeapObject::default() };
            let reference = |n| HeapReference {
                gc_id,
                object_id: address(n),
                target_object_id: address(n + 1),
                ..HeapReference::default()
            };
            walks.fact(&Fact::HeapObject(&(0..1000).map(object).collect::<Vec<_>>()));
            walks.fact(&Fact::HeapReference(&(0..1000).map(reference).collect::<Vec<_>>()));
        }
        walks.refused().is_none()
    }

    #[test]
    fn walks_wait_packed_for_one_graph() {
        let least = |collections: u32| (0..1 << 20).find(|step| is_held(step * 256, collections)).unwrap() * 256;
        let (one, three) = (least(1), least(3));
        assert!((1000 * (BYTES_PER_OBJECT + BYTES_PER_REFERENCE)..80_000).contains(&one), "{one}");
        assert!(three < one + 2 * 40_000, "{one} {three}");
    }
}
