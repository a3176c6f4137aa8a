//! Growth between walks of the heap: types, and what holds the objects that are more.
#![allow(clippy::indexing_slicing, reason = "every index is a node of the graph, or a place among its types")]

use std::collections::BTreeSet;

use crate::heap::{self, HeapGraph, Held, Retention, Snapshot, key};
use crate::prelude::*;
use crate::samples::{CHANCE, chance, median};

/// Ways to hold objects that are remembered of a walk, 32 bytes each. What is held in others counts as new.
const MOST_WAYS: usize = 1 << 20;

/// The sums of a walk: what is left of it when its graph is gone.
#[derive(Clone, Debug)]
pub struct Walked {
    /// The recording.
    pub trace_id: String,
    /// The walk.
    pub snapshot: Snapshot,
    /// The number of objects.
    pub objects: u64,
    /// Their bytes.
    pub size_bytes: u64,
    /// Whether nothing of the walk is known to be missing.
    pub is_whole: bool,
    /// By [`key`]: the longest name, objects, bytes, retained bytes.
    types: BTreeMap<String, (Arc<str>, [u64; 3])>,
    /// Bytes by the way in which they are held.
    ways: Map<u64, u64>,
}

impl Walked {
    /// The sums of a graph.
    pub fn of(trace_id: &str, graph: &HeapGraph, retention: &Retention) -> Walked {
        let mut types: BTreeMap<String, (Arc<str>, [u64; 3])> = BTreeMap::new();
        for row in retention.by_type(graph) {
            let (name, sums) = types.entry(key(&row.name)).or_insert_with(|| (row.name.clone(), [0; 3]));
            if row.name.len() > name.len() {
                *name = row.name.clone();
            }
            for (sum, more) in sums.iter_mut().zip([row.objects, row.size_bytes, row.retained_bytes]) {
                *sum = sum.saturating_add(more);
            }
        }
        let mut ways: Map<u64, u64> = Map::default();
        for (way, (_, size)) in heap::ways(graph, retention).into_iter().zip(graph.objects()) {
            if ways.len() >= MOST_WAYS && !ways.contains_key(&way) {
                continue;
            }
            let sum = ways.entry(way).or_default();
            *sum = sum.saturating_add(size);
        }
        Walked {
            trace_id: trace_id.to_owned(),
            objects: graph.len().into(),
            size_bytes: graph.size_bytes(),
            is_whole: graph.snapshot.complete && graph.unresolved.without_object == 0,
            snapshot: graph.snapshot.clone(),
            types,
            ways,
        }
    }

    fn amounts(&self, key: &str) -> [f64; 3] {
        self.types.get(key).map_or([0.0; 3], |(_, sums)| sums.map(|sum| sum as f64))
    }
}

/// Medians over the walks of a side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TypeAmounts {
    /// Objects.
    pub objects: f64,
    /// Their bytes.
    pub size_bytes: f64,
    /// Bytes that they retain, each counted once.
    pub retained_bytes: f64,
}

/// A type that is not the same on both sides.
#[derive(Clone, Debug)]
pub struct TypeChange {
    /// The name.
    pub name: Arc<str>,
    /// The base.
    pub base: TypeAmounts,
    /// The new side.
    pub new: TypeAmounts,
    /// Probability of such a change of its bytes by chance; `None` when there are too few walks for a test.
    pub chance: Option<f64>,
}

impl TypeChange {
    /// More objects.
    pub fn objects(&self) -> f64 {
        self.new.objects - self.base.objects
    }

    /// More bytes.
    pub fn size_bytes(&self) -> f64 {
        self.new.size_bytes - self.base.size_bytes
    }

    /// More bytes that are retained.
    pub fn retained_bytes(&self) -> f64 {
        self.new.retained_bytes - self.base.retained_bytes
    }

    /// Whether chance may have made it.
    pub fn is_noise(&self) -> bool {
        self.chance.is_some_and(|chance| chance > CHANCE)
    }
}

/// The types whose objects, bytes or retained bytes are others, those whose bytes changed most first; what chance may
/// have made comes last.
pub fn heap_difference(base: &[Walked], new: &[Walked]) -> Vec<TypeChange> {
    let keys: BTreeSet<&String> = base.iter().chain(new).flat_map(|walk| walk.types.keys()).collect();
    let mut found: Vec<TypeChange> = keys.into_iter().filter_map(|key| change(base, new, key)).collect();
    found.sort_by(|a, b| {
        let by_size = b.size_bytes().abs().total_cmp(&a.size_bytes().abs());
        let by_retained = || b.retained_bytes().abs().total_cmp(&a.retained_bytes().abs());
        a.is_noise().cmp(&b.is_noise()).then(by_size).then_with(by_retained).then_with(|| a.name.cmp(&b.name))
    });
    found
}

fn change(base: &[Walked], new: &[Walked], key: &str) -> Option<TypeChange> {
    let amounts = |side: &[Walked]| {
        let all: Vec<[f64; 3]> = side.iter().map(|walk| walk.amounts(key)).collect();
        let of = |place: usize| median(&all.iter().map(|one| one[place]).collect::<Vec<_>>()).unwrap_or_default();
        (TypeAmounts { objects: of(0), size_bytes: of(1), retained_bytes: of(2) }, all)
    };
    let ((before, of_base), (now, of_new)) = (amounts(base), amounts(new));
    if before == now {
        return None;
    }
    let sizes = |all: &[[f64; 3]]| all.iter().map(|one| one[1]).collect::<Vec<_>>();
    let chance = chance(&sizes(&of_new), &sizes(&of_base));
    let names = base.iter().chain(new).filter_map(|walk| walk.types.get(key)).map(|(name, _)| name);
    let name = names.max_by_key(|name| name.len())?.clone();
    Some(TypeChange { name, base: before, new: now, chance })
}

/// Of the ways in which objects of a type are held in a graph, the one that grew most since the base.
pub fn held(graph: &HeapGraph, retention: &Retention, type_name: &str, base: &[Walked]) -> Option<Held> {
    let before = |way: u64| {
        let all: Vec<f64> = base.iter().map(|walk| walk.ways.get(&way).copied().unwrap_or_default() as f64).collect();
        median(&all).unwrap_or_default()
    };
    heap::held(graph, retention, type_name, before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::{Addresses, Csr, Objects, Root, explain};

    /// A graph of objects in the order of their addresses: type and bytes of each, references, and roots by name.
    fn graph(objects: &[(&str, u64)], edges: &[(u32, u32)], roots: &[(u32, &str)]) -> HeapGraph {
        let mut names: Vec<Arc<str>> = objects.iter().map(|(name, _)| Arc::from(*name)).collect();
        names.sort();
        names.dedup();
        let place = |name: &str| names.iter().position(|known| **known == *name).unwrap() as u32;
        let root = |(node, name): &(u32, &str)| Root {
            node: *node,
            kind: "static".into(),
            flags: 0,
            id: 0,
            name: Some(Arc::from(*name)),
        };
        HeapGraph {
            snapshot: Snapshot {
                gc_id: 1,
                gc_number: 1,
                process_id: 1,
                start_ns: 0,
                complete: true,
                objects: objects.len() as u64,
            },
            addresses: Addresses::of((0..objects.len() as u64).map(|n| n * 1000)).unwrap(),
            objects: Objects::of(objects.iter().map(|(name, size)| (*size, place(name)))),
            references: Csr::of(objects.len() as u32, edges),
            roots: roots.iter().map(root).collect(),
            weak_roots: 0,
            reference_count: edges.len() as u64,
            dependent_count: 0,
            unresolved: Default::default(),
            type_names: names,
        }
    }

    /// A list of orders that is as it was, and a cache with `cached` of them behind each other.
    fn shop(cached: u32) -> HeapGraph {
        let mut objects = vec![("List`1[Order]", 100), ("Cache", 50), ("Order", 900), ("Order", 900)];
        let mut edges = vec![(0, 2), (0, 3)];
        for number in 0..cached {
            let node = objects.len() as u32;
            objects.push(("Order", 10));
            edges.push((if number == 0 { 1 } else { node - 1 }, node));
        }
        graph(&objects, &edges, &[(0, "Shop.orders"), (1, "Shop.cache")])
    }

    fn walked(graph: &HeapGraph) -> (Walked, Retention) {
        let retention = Retention::of(graph);
        (Walked::of("app", graph, &retention), retention)
    }

    #[test]
    fn what_holds_the_objects_that_are_more_is_named_and_not_what_holds_most() {
        let (before, after) = (shop(2), shop(40));
        let ((base, _), (new, retention)) = (walked(&before), walked(&after));
        let changes = heap_difference(std::slice::from_ref(&base), &[new]);
        let orders = changes.first().unwrap();
        assert_eq!((&*orders.name, orders.objects(), orders.size_bytes()), ("Order", 38.0, 380.0));
        assert_eq!(orders.retained_bytes(), 380.0, "no byte counts twice");
        // The cache itself is the same, and keeps more.
        let cache = changes.iter().find(|change| &*change.name == "Cache").unwrap();
        assert_eq!((cache.size_bytes(), cache.retained_bytes()), (0.0, 380.0));
        assert_eq!(changes.len(), 2);
        let held = held(&after, &retention, "Order", &[base]).unwrap();
        assert_eq!((held.objects, held.size_bytes, held.base_bytes), (40, 400, 20.0));
        assert_eq!(held.retained_bytes, 400, "they hold each other, and each counts once");
        assert_eq!(held.explanation.path(2).unwrap(), "static field Shop.cache > Cache > Order");
        let last = explain(&after, &retention, 43);
        assert_eq!(last.path(2).unwrap(), "static field Shop.cache > Cache > Order > ... 37 more ... > Order > Order");
        assert_eq!(held.explanation.root.unwrap().describe(), "static field Shop.cache");
    }

    #[test]
    fn a_walk_is_no_change_to_itself() {
        let (walk, _) = walked(&shop(7));
        assert!(heap_difference(std::slice::from_ref(&walk), std::slice::from_ref(&walk)).is_empty());
        // Of four walks on each side one that is larger proves nothing.
        let larger = walked(&shop(9)).0;
        let some = |last: &Walked| [&walk, &walk, &walk, last].map(Clone::clone);
        assert!(heap_difference(&some(&walk), &some(&larger)).is_empty(), "the median is the same");
        let mixed = [&walk, &larger, &larger, &larger].map(Clone::clone);
        let found = heap_difference(&some(&larger), &mixed);
        assert!(found.len() == 2 && found.iter().all(TypeChange::is_noise), "{found:?}");
    }
}
