//! Cohorts against the simulated heap of lifetimes, in which each object knows its own: collections in the background while others
//! move objects and give memory out again, ranges that are lost or clamped, collections that are missing.

use std::collections::BTreeMap;

use super::super::lineage::{CohortRow, Lineage};
use crate::lifetime::Fate;
use crate::lifetime::tests::simulated::{Heap, live_on, lives};
use crate::tests::dice::Dice;

#[test]
fn cohorts_are_those_of_the_objects() {
    let (mut exact, mut unknown, mut oldest, mut inside, mut agreed, mut whole, mut narrowed) = (0, 0, 0, 0, 0, 0, 0);
    for seed in 1..=300u64 {
        let mut heap = Heap::new(Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)), seed % 3 > 0);
        live_on(&mut heap);
        let mut lineage = Lineage::new();
        let mut found: Vec<Vec<CohortRow>> = Vec::new();
        let mut each = |rows: &[CohortRow]| found.push(rows.to_vec());
        heap.recorded.iter().for_each(|gc| lineage.collect(gc, &mut each));
        lineage.finish(&mut each);
        assert_eq!(found.len(), heap.shots.len());
        // No number says that the last one is missing.
        if heap.is_missing {
            found.pop();
        }
        for (rows, shot) in found.iter().zip(&heap.shots) {
            let what = || format!("seed {seed}, collection {}", shot.gc_id);
            assert!(rows.iter().all(|row| row.gc_id == shot.gc_id), "{}", what());
            let mut alive: BTreeMap<(u32, u8), u64> = BTreeMap::new();
            let mut lost: BTreeMap<u32, u64> = BTreeMap::new();
            for object in &shot.objects {
                match (object.born, object.lost) {
                    (Some(born), _) => *alive.entry((born, object.generation)).or_default() += object.size,
                    (None, Some(born)) => *lost.entry(born).or_default() += object.size,
                    (None, None) => {}
                }
            }
            // To the byte, and unknown are at least those that are alive and whose trace was lost.
            let said = rows.iter().filter(|row| row.alive_bytes > 0);
            let said: BTreeMap<_, _> =
                said.map(|row| ((row.born_gc_id, row.generation.unwrap_or(u8::MAX)), row.alive_bytes)).collect();
            // Behind clamped ranges, what is new may be of unknown age: no cohort has more than what is alive of it.
            if heap.has_clamped {
                let is_older = said.iter().all(|(key, bytes)| key.0 == 0 || alive.get(key) >= Some(bytes));
                let sum = |of: &BTreeMap<(u32, u8), u64>| of.values().sum::<u64>();
                assert!(is_older && sum(&said) == sum(&alive), "{}: {said:?} {alive:?}", what());
                narrowed += 1;
            } else {
                assert_eq!(said, alive, "{}", what());
            }
            let mut may_be: BTreeMap<u32, u64> = BTreeMap::new();
            rows.iter().for_each(|row| *may_be.entry(row.born_gc_id).or_default() += row.unknown_bytes);
            if heap.has_clamped {
                assert!(lost.values().sum::<u64>() <= may_be.values().sum(), "{}: {lost:?} {may_be:?}", what());
                lost.clear();
            }
            for (born, bytes) in &lost {
                assert!(may_be.get(born).is_some_and(|sum| bytes <= sum), "{}: {born} {lost:?} {may_be:?}", what());
            }
            if !heap.has_lost {
                assert!(rows.iter().all(|row| row.unknown_bytes == 0), "{}", what());
                whole += 1;
            }
            exact += alive.values().sum::<u64>();
            unknown += may_be.values().sum::<u64>();
            oldest += alive.keys().filter(|(born, _)| *born > 0 && shot.gc_id > born + 10).count();
        }
        let ids = heap.shots.windows(2);
        inside += ids.filter(|pair| pair[0].gc_id > pair[1].gc_id).count();
        // Object by object as lifetimes say.
        for (sample, life) in heap.samples.iter().zip(lives(&heap)) {
            if life.fate == Fate::Alive {
                let born = lineage.born(life.end_object_id);
                let is_same = born == Some(life.first_gc_id)
                    || heap.has_clamped && born == Some(0)
                    || life.highest_generation > Some(2) && born.is_some();
                assert!(is_same, "seed {seed}: {born:?} {sample:?} {life:?}");
                agreed += 1;
            }
        }
    }
    let counts = (exact, unknown, oldest, inside, agreed, whole, narrowed);
    assert!(exact > 1_000_000 && unknown > 10_000 && oldest > 500 && inside > 500, "{counts:?}");
    assert!(agreed > 1000 && whole > 500 && narrowed > 500, "{counts:?}");
}
