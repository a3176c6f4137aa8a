//! Tests cohorts of overlapping and contradictory ranges against a walk that follows each byte separately.

use std::collections::BTreeMap;

use tracequet_facts::fact::NON_GC_HEAP;

use super::super::{CohortRow, Collection, Effect, LARGE, Lineage, NO_GENERATION, UNKNOWN_BIRTH};
use crate::collection::{Bound, Range};
use crate::tests::dice::Dice;

/// The first that holds an address, by start and then by place.
fn holder<T: Copy>(spans: &[(u64, u64, T)], address: u64) -> Option<T> {
    let mut sorted: Vec<_> = spans.iter().collect();
    sorted.sort_by_key(|(start, ..)| *start);
    sorted.into_iter().find(|(start, length, _)| *start <= address && address < start + length).map(|found| found.2)
}

/// Ranges and bounds at random, which overlap and contradict each other: each byte followed by itself.
#[test]
fn ranges_at_random_are_followed_as_each_byte_by_itself() {
    const SPACE: u64 = 1024;
    let (mut alive_bytes, mut unknown_bytes, mut ended) = (0, 0, 0);
    for seed in 1..=120_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut lineage = Lineage::new();
        // Cohorts that each byte may belong to. Several move to one place where ranges contradict each other.
        let mut bytes: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        let mut knows_large = false;
        // Of the one in the background: its number, what is listed with what it may be then, and its last bounds.
        let mut open: Option<(u32, BTreeMap<u64, u32>, Vec<Bound>)> = None;
        for gc_id in 1..=12 {
            let mut bounds = |most: u64| -> Vec<Bound> {
                let bound = |dice: &mut Dice| Bound {
                    generation: dice.below(6) as u8,
                    start: dice.below(512),
                    length: dice.below(256),
                };
                (0..dice.below(most)).map(|_| bound(&mut dice)).collect()
            };
            let (before, after) = (bounds(6), bounds(6));
            let range = |dice: &mut Dice| {
                let (start, length) = (dice.below(512), [0, 1, 3, 40, 200][dice.below(5) as usize]);
                let new_start = if dice.below(2) == 0 { start } else { dice.below(512) };
                Range { start, new_start, length, clamped: false }
            };
            let gc = Collection {
                gc_id,
                generation: [Some(0), Some(1), Some(2), None][dice.below(4) as usize],
                background: [Some(true), Some(false), None][dice.below(3) as usize],
                complete: dice.below(4) > 0,
                before,
                after,
                ranges: (0..dice.below(6)).map(|_| range(&mut dice)).collect(),
                ..Collection::default()
            };
            let of = |bounds: &[Bound], address| {
                let spans: Vec<_> = bounds.iter().map(|b| (b.start, b.length, b.generation)).collect();
                holder(&spans, address).unwrap_or(NO_GENERATION)
            };
            let ranges: Vec<_> =
                gc.ranges.iter().map(|r| (r.start, r.length, r.new_start.wrapping_sub(r.start))).collect();
            let mut rows = BTreeMap::new();
            let mut each = |of_gc: &[CohortRow]| {
                let sum = |row: &CohortRow| ((row.born_gc_id, row.generation), (row.alive_bytes, row.unknown_bytes));
                rows.insert(
                    of_gc.first().map_or(gc_id, |row| row.gc_id),
                    of_gc.iter().map(sum).collect::<BTreeMap<_, _>>(),
                );
            };
            // A collection in the background ends before the next one that may collect generation 2.
            if gc.effect(2) != Effect::Leaves
                && let Some((_, listed, _)) = open.take()
            {
                lineage.finish(&mut each);
                ended += 1;
                for (address, born) in listed {
                    bytes.entry(address).or_insert_with(|| vec![born]);
                }
            }
            let is_stopped = gc.stops_threads();
            if is_stopped && let Some((_, listed, _)) = &mut open {
                listed.retain(|address, _| of(&gc.before, *address) >= 2);
            }
            // Each address with what was there; a byte of several cohorts counts as the one that the pieces say.
            let mut next: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            let mut left: BTreeMap<u64, u32> = BTreeMap::new();
            let mut listed: BTreeMap<u64, u32> = BTreeMap::new();
            let alive = lineage.alive.all();
            for address in 0..SPACE {
                let was = alive.iter().find(|s| s.start <= address && address < s.end).map(|s| s.value);
                assert_eq!(was.is_some(), bytes.contains_key(&address), "seed {seed} before {gc_id}: {address}");
                let generation = of(&gc.before, address);
                match (holder(&ranges, address), was) {
                    (Some(delta), _) => {
                        let is_new = generation == 0 || (LARGE..NON_GC_HEAP).contains(&generation) && knows_large;
                        let new_address = address.wrapping_add(delta);
                        if was.is_some() || is_stopped {
                            let born = was.unwrap_or(if is_new { gc_id } else { UNKNOWN_BIRTH });
                            next.entry(new_address).or_default().push(born);
                        }
                        let at_end = of(&gc.after, new_address);
                        let is_new = (LARGE..NON_GC_HEAP).contains(&at_end) && knows_large;
                        if of(&gc.before, new_address) >= 2
                            && (gc.after.iter().all(|bound| bound.length == 0) || (2..NO_GENERATION).contains(&at_end))
                        {
                            listed.insert(new_address, if is_new { gc_id } else { UNKNOWN_BIRTH });
                        }
                    }
                    (None, Some(born)) => match gc.effect(generation) {
                        Effect::Leaves => _ = left.insert(address, born),
                        Effect::Collects => {}
                        Effect::Unknown(_) => unknown_bytes += 1,
                    },
                    (None, None) => {}
                }
            }
            // Memory that others went to is theirs.
            for (address, born) in left {
                next.entry(address).or_insert_with(|| vec![born]);
            }
            bytes = next;
            match gc.effect(LARGE) {
                Effect::Collects => knows_large = true,
                Effect::Unknown(_) => knows_large = false,
                Effect::Leaves => {}
            }
            if !is_stopped {
                open = Some((gc_id, listed, gc.after.clone()));
            }
            lineage.collect(&gc, &mut each);
            let alive = lineage.alive.all();
            assert!(alive.is_sorted_by(|a, b| a.end <= b.start && a.start < a.end));
            let mut sums: BTreeMap<(u32, Option<u8>), u64> = BTreeMap::new();
            for (address, may_be) in &bytes {
                let span = alive.iter().find(|span| span.start <= *address && *address < span.end);
                let born = span.map(|span| span.value);
                assert!(
                    born.is_some_and(|born| may_be.contains(&born)),
                    "seed {seed} after {gc_id}: {address} {may_be:?}"
                );
                let generation = Some(of(&gc.after, *address)).filter(|g| *g != NO_GENERATION);
                *sums.entry((born.unwrap_or_default(), generation)).or_default() += 1;
            }
            assert_eq!(alive.iter().map(|span| span.end - span.start).sum::<u64>(), bytes.len() as u64);
            if is_stopped && let Some(found) = rows.get(&gc_id) {
                let found: BTreeMap<_, _> =
                    found.iter().map(|(key, (alive, _))| (*key, *alive)).filter(|(_, alive)| *alive > 0).collect();
                assert_eq!(found, sums, "seed {seed} after {gc_id}");
            }
            alive_bytes += bytes.len();
        }
    }
    assert!(alive_bytes > 100_000 && unknown_bytes > 10_000 && ended > 300, "{alive_bytes} {unknown_bytes} {ended}");
}
