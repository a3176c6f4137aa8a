//! Proof on real runtimes: every object and root that callbacks name lies where the bounds and the ranges say.

use std::collections::{BTreeMap, HashSet};

use tracequet::facts::fact::{GcId, NON_GC_HEAP};

use crate::support::callbacks::Facts;
use crate::support::dual::{FEWER, each_runtime};

/// Parts of memory of each collection: start, length, generation.
type Parts = BTreeMap<GcId, Vec<(u64, u64, u8)>>;

fn parts(rows: impl Iterator<Item = (GcId, u64, u64, u8)>) -> Parts {
    let mut parts = Parts::new();
    rows.for_each(|(gc, start, length, generation)| parts.entry(gc).or_default().push((start, length, generation)));
    parts.values_mut().for_each(|list| list.sort_unstable());
    parts
}

fn find(parts: &Parts, gc: GcId, address: u64) -> Option<u8> {
    let list = parts.get(&gc)?;
    let (start, length, generation) = list.get(list.partition_point(|p| p.0 <= address).checked_sub(1)?)?;
    (address - start < *length).then_some(*generation)
}

/// Where ranges are after their collection.
fn survivors(facts: &Facts) -> Parts {
    let stayed = facts.surviving.iter().map(|r| (r.gc_id, r.range_start, r.range_length, 0));
    parts(stayed.chain(facts.moved.iter().map(|r| (r.gc_id, r.new_range_start, r.range_length, 0))))
}

#[test]
fn objects_lie_in_the_bounds_and_those_of_a_full_collection_in_its_ranges() {
    const TEST: &str = "objects_lie_in_the_bounds_and_those_of_a_full_collection_in_its_ranges";
    for runtime in each_runtime(TEST) {
        let dual = runtime.start(&FEWER, &[("TRACEQUET_OBJECTS", "record")], &["churn"]).ended();
        let facts = dual.callbacks();
        let bounds = parts(
            facts
                .bounds
                .iter()
                .filter(|b| b.is_at_end())
                .map(|b| (b.gc_id, b.range_start, b.range_length, b.generation)),
        );
        let survivors = survivors(&facts);
        let full = facts.collections.iter().filter(|c| c.complete && c.generation == Some(2));
        let full: HashSet<GcId> = full.map(|c| c.gc_id).collect();
        let (mut frozen, mut in_full) = (0, 0);
        for (gc, (object, ..)) in facts.walks.iter().copied().zip(facts.objects.iter().copied()) {
            let generation = find(&bounds, gc, object);
            assert!(generation.is_some(), "{}: {object:#x} of collection {gc} is in no bounds", runtime.name);
            let never_collected = generation == Some(NON_GC_HEAP);
            frozen += u64::from(never_collected);
            if full.contains(&gc) {
                let is_survivor = find(&survivors, gc, object).is_some();
                assert_ne!(is_survivor, never_collected, "{}: {object:#x} of {gc}, {generation:?}", runtime.name);
                in_full += 1;
            }
        }
        let methods: HashSet<u64> = facts.methods.iter().map(|method| method.0).collect();
        let (mut stack, mut named) = (0u64, 0);
        for (gc, object, kind, _, root_id) in facts.roots.iter().copied().filter(|root| root.1 != 0) {
            assert!(find(&bounds, gc, object).is_some(), "{}: a root {object:#x} in no bounds", runtime.name);
            if kind == "stack" && root_id != 0 {
                stack += 1;
                named += u64::from(methods.contains(&root_id));
            }
        }
        println!(
            "{}: {} objects ({frozen} in the non-GC heap, {in_full} in full collections), {named} of {stack} roots on stacks named",
            runtime.name,
            facts.objects.len()
        );
        assert!(in_full > 0 && stack > 0);
        // The process may end before the last names are looked up.
        assert!(named * 10 >= stack * 9, "{}: {named} of {stack}", runtime.name);
        // .NET 8 brought the non-GC heap.
        let major: u32 = runtime.name.split('.').next().and_then(|n| n.parse().ok()).unwrap_or_default();
        assert_eq!(frozen > 0, major >= 8, "{}", runtime.name);
    }
}
