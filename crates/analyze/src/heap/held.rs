//! Heap dumps that are held in memory while a recording is converted, to compute retained sizes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
use tracequet_facts::fact::{Fact, HeapDominator};
use tracequet_trace::error::Result;

use super::build::{BYTES_PER_OBJECT, BYTES_PER_REFERENCE, RootRow, WalkRows, build};
use super::graph::HeapGraph;
use super::snapshots::Snapshot;
use super::types::Retention;
use crate::allowance::Allowance;

/// Memory that a stored object or root takes beside that of the graph, in a list that doubles when it grows.
const OBJECT_STORED: u64 = 48;

/// The same for a reference: the addresses of its two ends.
const REFERENCE_STORED: u64 = 32;

/// The walks of a recording.
#[derive(Debug)]
pub struct HeldWalks {
    allowance: Allowance,
    walks: BTreeMap<u32, Walk>,
    names: HashMap<u64, Arc<str>, RandomState>,
}

#[derive(Debug, Default)]
struct Walk {
    /// Address, size, type.
    objects: Vec<[u64; 3]>,
    references: Vec<[u64; 2]>,
    dependents: Vec<[u64; 2]>,
    /// Objects with strong roots. The roots are not shown here, so that their kinds are not kept.
    roots: Vec<(u64, bool, u32)>,
}

impl HeldWalks {
    /// For walks that take at most this many bytes together.
    pub fn new(memory: u64) -> HeldWalks {
        HeldWalks { allowance: Allowance::new(memory), walks: BTreeMap::new(), names: HashMap::default() }
    }

    /// Takes what is part of a walk. Beyond the memory, all walks are dropped.
    pub fn fact(&mut self, fact: &Fact<'_>) {
        if self.allowance.is_spent() {
            return;
        }
        match fact {
            Fact::HeapObject(rows) => {
                for row in rows.iter() {
                    self.walk(row.gc_id, BYTES_PER_OBJECT + OBJECT_STORED).objects.push([
                        row.object_id,
                        row.size_bytes,
                        row.type_id,
                    ]);
                }
            }
            Fact::HeapReference(rows) => {
                for row in rows.iter() {
                    let walk = self.walk(row.gc_id, BYTES_PER_REFERENCE + REFERENCE_STORED);
                    walk.references.push([row.object_id, row.target_object_id]);
                }
            }
            Fact::GcWeakElement(rows) => {
                for row in rows.iter() {
                    let walk = self.walk(row.gc_id, BYTES_PER_REFERENCE + REFERENCE_STORED);
                    walk.dependents.push([row.key_object_id, row.value_object_id]);
                }
            }
            Fact::GcRoot(rows) => {
                for row in rows.iter() {
                    let is_static = row.root_kind == "static";
                    self.walk(row.gc_id, BYTES_PER_OBJECT + OBJECT_STORED).roots.push((
                        row.object_id,
                        is_static,
                        row.root_flags,
                    ));
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

    fn walk(&mut self, gc_id: u32, bytes: u64) -> &mut Walk {
        self.allowance.take(bytes);
        self.walks.entry(gc_id).or_default()
    }

    /// What is to be said when the walks were too large.
    pub fn refused(&self) -> Option<String> {
        self.allowance.refused("heap_dominator stays empty", "--dominators")
    }

    /// Calls `each` with the rows of `heap_dominator` of all walks; with none when they were too large.
    pub fn finish(mut self, mut each: impl FnMut(&HeapDominator) -> Result<()>) -> Result<()> {
        while let Some((gc_id, walk)) = self.walks.pop_first() {
            let snapshot = Snapshot::stored(gc_id, walk.objects.len() as u64);
            let graph = build(&Rows { walk: &walk, names: &self.names }, &snapshot, u64::MAX)?;
            drop(walk);
            dominators(&graph, &mut each)?;
        }
        Ok(())
    }
}

/// The rows of one walk, in the order of addresses.
fn dominators(graph: &HeapGraph, each: &mut impl FnMut(&HeapDominator) -> Result<()>) -> Result<()> {
    let retention = Retention::of(graph)?;
    let address = |node: u32| graph.addresses.get(node as usize).copied().unwrap_or_default();
    let rows = graph.addresses.iter().zip(&retention.bytes).zip(&retention.counts);
    let rows = rows.zip(&retention.distances).zip(&retention.outermost).zip(0u32..);
    for (((((object_id, retained_bytes), retained_count), root_distance), is_outermost), node) in rows {
        each(&HeapDominator {
            gc_id: graph.snapshot.gc_id,
            object_id: *object_id,
            dominator_id: retention.dominators.dominator(node).map_or(0, address),
            retained_bytes: *retained_bytes,
            retained_count: *retained_count,
            root_distance: *root_distance,
            is_outermost: *is_outermost,
        })?;
    }
    Ok(())
}

/// The rows of one walk.
struct Rows<'w> {
    walk: &'w Walk,
    names: &'w HashMap<u64, Arc<str>, RandomState>,
}

impl WalkRows for Rows<'_> {
    fn objects(&self, each: &mut dyn FnMut(u64, u64, u64) -> Result<()>) -> Result<()> {
        self.walk.objects.iter().try_for_each(|[address, size, kind]| each(*address, *size, *kind))
    }

    fn references(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
        self.walk.references.iter().try_for_each(|[object, target]| each(*object, *target))
    }

    fn dependents(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
        self.walk.dependents.iter().try_for_each(|[key, value]| each(*key, *value))
    }

    fn roots(&self, each: &mut dyn FnMut(RootRow<'_>) -> Result<()>) -> Result<()> {
        self.walk.roots.iter().try_for_each(|(object_id, is_static, flags)| {
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
