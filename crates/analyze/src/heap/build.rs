//! Makes the heap graph from a walk.
#![allow(clippy::indexing_slicing, reason = "every index is a node of the graph, or a place among the shapes or types")]

use std::collections::HashMap;
use std::sync::Arc;

use tracequet_trace::error::{Error, Result};

use super::addresses::Addresses;
use super::csr::{Counted, Csr, NOWHERE};
use super::graph::{HeapGraph, Objects, Unresolved};
use super::limit::Limit;
use super::roots::Root;
use super::snapshots::Snapshot;
use super::texts::Texts;
use super::walk::{References, Walk};

/// Stretches of rising addresses that are put in order as they are. A walk has one for each part of each generation.
const MAX_STRETCHES: usize = 1 << 16;

/// A row of `gc_root`.
#[derive(Clone, Copy, Debug)]
pub(super) struct RootRow<'r> {
    pub object_id: u64,
    pub kind: &'r str,
    pub flags: u32,
    pub root_id: u64,
    pub name: Option<&'r str>,
}

/// What belongs to a walk beside its objects and references.
pub(super) trait Names {
    /// Roots.
    fn roots(&self, each: &mut dyn FnMut(RootRow<'_>) -> Result<()>) -> Result<()>;
    /// The names of types, in the order of these ids; `None` where it is not known.
    fn type_names(&self, ids: &[u64]) -> Result<Vec<Option<Arc<str>>>>;
    /// Fills in the names of methods.
    fn method_names(&self, wanted: &mut HashMap<u64, Option<Arc<str>>>) -> Result<()>;
}

/// Makes the graph of a walk.
pub(super) fn build(walk: Walk, names: &dyn Names, snapshot: &Snapshot, limit: &Limit) -> Result<HeapGraph> {
    limit.check(&walk, 0)?;
    let (addresses, places, repeated_objects) = objects(&walk)?;
    limit.check_parts(&walk, &addresses)?;
    let (type_names, kinds) = type_names(names, walk.types())?;
    let mut shapes = walk.shapes().to_vec();
    shapes.iter_mut().for_each(|shape| shape.kind = kinds[shape.kind as usize]);
    let mut unresolved = Unresolved { repeated_objects, ..Unresolved::default() };
    let (references, [plain, dependent]) = references(&walk, &addresses, &mut unresolved)?;
    let mut graph = HeapGraph {
        snapshot: snapshot.clone(),
        addresses,
        objects: Objects::new(shapes, places),
        type_names,
        references,
        roots: Vec::new(),
        weak_roots: 0,
        reference_count: plain + dependent,
        dependent_count: dependent,
        unresolved,
    };
    roots(&mut graph, names, limit, &walk)?;
    Ok(graph)
}

/// Part of a walk in which addresses rise.
struct Stretch {
    first: u64,
    last: u64,
    objects: u32,
}

/// The addresses in their order, the shape of each, and how many objects are left out because they are listed before.
fn objects(walk: &Walk) -> Result<(Addresses, Vec<u32>, u64)> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for (address, _) in walk.objects() {
        if let Some(stretch) = stretches.last_mut().filter(|stretch| stretch.last < address) {
            stretch.last = address;
            stretch.objects += 1;
            continue;
        }
        if stretches.len() == MAX_STRETCHES {
            return sorted(walk);
        }
        stretches.push(Stretch { first: address, last: address, objects: 1 });
    }
    let mut order: Vec<usize> = (0..stretches.len()).collect();
    order.sort_unstable_by_key(|at| stretches[*at].first);
    if order.windows(2).any(|pair| stretches[pair[0]].last >= stretches[pair[1]].first) {
        return sorted(walk);
    }
    let mut begins = vec![0u32; stretches.len()];
    let mut count = 0;
    for at in order {
        begins[at] = count;
        count += stretches[at].objects;
    }
    let (mut low, mut places) = (vec![0u32; count as usize], vec![0u32; count as usize]);
    let mut heads: Vec<(u32, u32)> = Vec::new();
    let mut objects = walk.objects();
    for (stretch, begin) in stretches.iter().zip(begins) {
        let mut high = None;
        for (node, (address, shape)) in (begin..begin + stretch.objects).zip(objects.by_ref()) {
            low[node as usize] = address as u32;
            places[node as usize] = shape;
            let now = (address >> 32) as u32;
            if high != Some(now) {
                high = Some(now);
                heads.push((now, node));
            }
        }
    }
    heads.sort_unstable_by_key(|(_, node)| *node);
    heads.dedup_by_key(|(high, _)| *high);
    Ok((Addresses::with(low, &heads), places, 0))
}

/// The same of objects in any order, some of them listed again.
fn sorted(walk: &Walk) -> Result<(Addresses, Vec<u32>, u64)> {
    let mut objects: Vec<(u64, u32)> = Vec::with_capacity(usize::try_from(walk.object_count()).unwrap_or_default());
    objects.extend(walk.objects());
    // Of those at one address the first one stays.
    objects.sort_by_key(|(address, _)| *address);
    objects.dedup_by_key(|(address, _)| *address);
    let repeated = walk.object_count() - objects.len() as u64;
    let places = objects.iter().map(|(_, shape)| *shape).collect();
    let addresses = Addresses::of(objects.iter().map(|(address, _)| *address));
    Ok((addresses.ok_or_else(|| Error::Internal("addresses that do not rise".into()))?, places, repeated))
}

/// The names of the types without repetition, and for each place of a type the place of its name.
fn type_names(names: &dyn Names, ids: &[u64]) -> Result<(Vec<Arc<str>>, Vec<u32>)> {
    let (mut different, mut places, mut known) = (Vec::new(), Vec::new(), HashMap::<Arc<str>, u32>::new());
    for (id, name) in ids.iter().zip(names.type_names(ids)?) {
        let name = name.unwrap_or_else(|| format!("type {id:x}").into());
        places.push(*known.entry(name.clone()).or_insert_with(|| {
            different.push(name);
            different.len() as u32 - 1
        }));
    }
    Ok((different, places))
}

/// The references by their objects, and how many there are from fields and from handles. They are gone through twice, first to count
/// those of each object and then to put them in place.
fn references(walk: &Walk, addresses: &Addresses, unresolved: &mut Unresolved) -> Result<(Csr, [u64; 2])> {
    let mut counted = Counted::new(addresses.len());
    let of_both: [&References; 2] = [&walk.references, &walk.dependents];
    let counts = of_both.map(|references| {
        let before = counted.edges();
        references.sources(|source, count| counted.count(addresses.find(source).unwrap_or(NOWHERE), count));
        counted.edges() - before
    });
    let mut filling = counted.by_source().ok_or_else(|| Error::Internal("too many references".into()))?;
    for references in of_both {
        let mut runs = references.runs();
        while let Some((source, count)) = runs.next_run() {
            let from = addresses.find(source);
            unresolved.without_object += if from.is_none() { u64::from(count) } else { 0 };
            while let Some(target_id) = runs.next_target() {
                let Some(from) = from else { continue };
                let target = addresses.find(target_id);
                unresolved.without_target += u64::from(target.is_none() && target_id != 0);
                filling.add(from, target.unwrap_or(NOWHERE));
            }
        }
    }
    Ok((filling.finish(), counts))
}

/// The strong roots, one of each object, and the number of weak ones.
fn roots(graph: &mut HeapGraph, names: &dyn Names, limit: &Limit, walk: &Walk) -> Result<()> {
    let mut roots: Vec<Root> = Vec::new();
    let (mut weak, mut without) = (0, 0);
    let mut texts = Texts::default();
    names.roots(&mut |RootRow { object_id: address, kind, flags, root_id, name }| {
        if address == 0 {
            return Ok(());
        }
        if !Root::is_strong(kind, flags) {
            weak += 1;
            return Ok(());
        }
        let Some(node) = graph.find(address) else {
            without += 1;
            return Ok(());
        };
        let (kind, name) = (texts.keep(kind)?, name.map(|name| texts.keep(name)).transpose()?);
        roots.push(Root { node, kind, flags, id: root_id, name });
        if roots.len().is_multiple_of(1 << 12) { limit.check(walk, roots.len() as u64) } else { Ok(()) }
    })?;
    let is_stack = |root: &&mut Root| &*root.kind == "stack" && root.name.is_none() && root.id != 0;
    let mut methods: HashMap<u64, Option<Arc<str>>> =
        roots.iter_mut().filter(is_stack).map(|root| (root.id, None)).collect();
    if !methods.is_empty() {
        names.method_names(&mut methods)?;
    }
    for root in roots.iter_mut().filter(is_stack) {
        root.name = methods.get(&root.id).cloned().flatten();
    }
    // One of each object, and those that say most first: paths begin at them where several are as short.
    roots.sort_by_cached_key(|root| (root.node, root.rank(), root.id));
    roots.dedup_by_key(|root| root.node);
    roots.sort_by_key(Root::rank);
    (graph.roots, graph.weak_roots, graph.unresolved.roots) = (roots, weak, without);
    Ok(())
}
