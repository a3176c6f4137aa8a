//! Makes the heap graph from a walk.
#![allow(clippy::indexing_slicing, reason = "every index is a node of the graph, or a place among the shapes or types")]

use crate::prelude::*;
use std::collections::HashMap;

use super::addresses::Addresses;
use super::csr::{Counted, Csr, NOWHERE};
use super::graph::{HeapGraph, Objects, Unresolved};
use super::limit::Limit;
use super::roots::Root;
use super::snapshots::Snapshot;
use super::texts::Texts;
use super::walk::{References, Walk};

/// A row of `gc_root`.
#[derive(Clone, Copy, Debug)]
pub(super) struct RootRow<'r> {
    pub object_id: u64,
    pub kind: &'r str,
    pub flags: u32,
    pub root_id: u64,
    pub name: Option<&'r str>,
}

/// Names and types of a walk, beside its objects and references.
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
    let (type_names, kinds) = type_names(names, &walk.types)?;
    let mut shapes = walk.shapes.clone();
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

/// The addresses in their order, the shape of each, and how many objects are left out because they are listed before.
fn objects(walk: &Walk) -> Result<(Addresses, Vec<u32>, u64)> {
    let Some(stretches) = walk.stretches() else { return sorted(walk) };
    let mut order: Vec<usize> = (0..stretches.len()).collect();
    order.sort_unstable_by_key(|at| stretches[*at].first);
    if order.windows(2).any(|pair| stretches[pair[0]].last >= stretches[pair[1]].first) {
        return sorted(walk);
    }
    let mut begins = vec![0u32; stretches.len()];
    let mut count = 0;
    for at in order {
        begins[at] = count;
        count += stretches[at].objects as u32;
    }
    let (mut low, mut places) = (vec![0u32; count as usize], vec![0u32; count as usize]);
    let mut heads: Vec<(u32, u32)> = Vec::new();
    let mut objects = walk.objects();
    for (stretch, begin) in stretches.iter().zip(begins) {
        let mut high = None;
        for (node, (address, shape)) in (begin..begin + stretch.objects as u32).zip(objects.by_ref()) {
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

/// Sorts the addresses of objects in any order, some of them listed again.
fn sorted(walk: &Walk) -> Result<(Addresses, Vec<u32>, u64)> {
    let mut objects: Vec<(u64, u32)> = Vec::with_capacity(usize::try_from(walk.object_count).unwrap_or_default());
    objects.extend(walk.objects());
    // Of those at one address the first one stays.
    objects.sort_by_key(|(address, _)| *address);
    objects.dedup_by_key(|(address, _)| *address);
    let repeated = walk.object_count - objects.len() as u64;
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

/// The references by their objects, and how many there are from fields and from handles. They are gone through twice,
/// first to count those of each object and then to put them in place.
fn references(walk: &Walk, addresses: &Addresses, unresolved: &mut Unresolved) -> Result<(Csr, [u64; 2])> {
    let mut counted = Counted::new(addresses.len());
    let of_both: [&References; 2] = [&walk.references, &walk.dependents];
    let counts = of_both.map(|references| {
        let before = counted.edges();
        for (source, count) in references.sources() {
            counted.count(addresses.find(source).unwrap_or(NOWHERE), count as u32);
        }
        counted.edges() - before
    });
    let mut filling = counted.by_source().ok_or_else(|| Error::Internal("too many references".into()))?;
    for references in of_both {
        let mut targets = references.targets();
        for (source, count) in references.sources() {
            let targets = targets.by_ref().take(count as usize);
            let Some(from) = addresses.find(source) else {
                unresolved.without_object += targets.count() as u64;
                continue;
            };
            filling.add(
                from,
                targets.map(|target_id| {
                    let target = addresses.find(target_id);
                    unresolved.without_target += u64::from(target.is_none() && target_id != 0);
                    target.unwrap_or(NOWHERE)
                }),
            );
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::dice::Dice;

    struct NoNames;

    impl Names for NoNames {
        fn roots(&self, _: &mut dyn FnMut(RootRow<'_>) -> Result<()>) -> Result<()> {
            Ok(())
        }

        fn type_names(&self, ids: &[u64]) -> Result<Vec<Option<Arc<str>>>> {
            Ok(ids.iter().map(|id| Some(format!("T{id}").into())).collect())
        }

        fn method_names(&self, _: &mut HashMap<u64, Option<Arc<str>>>) -> Result<()> {
            Ok(())
        }
    }

    /// Regions of a heap with some objects each, at most of the addresses in them.
    fn regions(dice: &mut Dice) -> Vec<Vec<u64>> {
        let region = |dice: &mut Dice| {
            let begin = 0x7f00_0000_0000 + dice.below(40) * (1 << dice.below(31));
            let objects = (0..dice.below(60)).scan(begin, |at, _| {
                *at += (3 + dice.below(4)) * 8;
                Some(*at)
            });
            objects.collect()
        };
        (0..1 + dice.below(6)).map(|_| region(dice)).collect()
    }

    #[test]
    fn a_graph_has_what_was_listed_in_any_order() {
        let mut dice = Dice(77);
        let mut in_order = 0;
        for round in 0..800 {
            let mut listed: Vec<u64> = regions(&mut dice).concat();
            match round % 4 {
                // As a walk lists them; in any order; some of them twice.
                0 | 1 => {}
                2 => listed.sort_by_key(|address| address.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
                _ => listed.extend(listed.clone().iter().step_by(3)),
            }
            let (mut walk, mut objects) = (Walk::default(), HashMap::new());
            for address in &listed {
                let (size, type_id) = (8 * (1 + dice.below(6)), dice.below(9) * 8);
                walk.object(*address, size, type_id);
                objects.entry(*address).or_insert((size, type_id));
            }
            // References follow their objects, but for some.
            let (mut references, mut unresolved) = (Vec::new(), Unresolved::default());
            unresolved.repeated_objects = (listed.len() - objects.len()) as u64;
            for _ in 0..listed.len() {
                let source = match dice.below(9) {
                    0 => dice.below(1 << 20),
                    _ => listed[references.len() * 3 / 4 % listed.len()],
                };
                for _ in 0..1 + dice.below(3) {
                    let any = listed.get(dice.below(listed.len() as u64 + 1) as usize);
                    let target = any.map_or(dice.below(3) * 4, |any| any + dice.below(12) / 11 * 4);
                    let into = if dice.below(30) == 0 { &mut walk.dependents } else { &mut walk.references };
                    into.push(source, target);
                    references.push((source, target));
                    match (objects.contains_key(&source), objects.contains_key(&target)) {
                        (false, _) => unresolved.without_object += 1,
                        (true, false) => unresolved.without_target += u64::from(target != 0),
                        _ => {}
                    }
                }
            }
            let mut stretches = walk.stretches().unwrap().to_vec();
            stretches.sort_unstable_by_key(|stretch| stretch.first);
            in_order += u32::from(stretches.windows(2).all(|pair| pair[0].last < pair[1].first));
            let snapshot = Snapshot::stored(1, listed.len() as u64);
            let graph = build(walk, &NoNames, &snapshot, &Limit { gc_id: 1, memory: u64::MAX }).unwrap();
            let mut addresses: Vec<u64> = objects.keys().copied().collect();
            addresses.sort_unstable();
            assert!(graph.addresses.iter().eq(addresses.iter().copied()), "{round}");
            assert_eq!(graph.unresolved, unresolved, "{round}");
            let with_object = references.iter().filter(|(source, _)| objects.contains_key(source)).count();
            assert_eq!(graph.reference_count, with_object as u64, "{round}");
            for (node, address) in (0u32..).zip(&addresses) {
                let (size, type_id) = objects[address];
                assert_eq!(
                    (graph.size(node), graph.type_name(node)),
                    (size, format!("T{type_id}").as_str()),
                    "{round}"
                );
                let mut found: Vec<u64> = graph.references.targets(node).map(|target| graph.address(target)).collect();
                let of_node = references.iter().filter(|(source, _)| source == address).map(|(_, target)| *target);
                let mut expected: Vec<u64> = of_node.filter(|target| objects.contains_key(target)).collect();
                found.sort_unstable();
                expected.sort_unstable();
                assert_eq!(found, expected, "{round} {address:x}");
            }
        }
        assert!(
            (100..700).contains(&in_order),
            "objects of {in_order} walks are put in order as they are, others are sorted"
        );
    }
}
