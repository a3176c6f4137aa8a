//! Tests cohorts of overlapping and contradictory ranges against a walk that follows each byte separately.

use std::collections::BTreeMap;

use tracequet_facts::fact::NON_GC_HEAP;

use super::{Collection, Effect, LARGE, Lineage, NO_GENERATION, UNKNOWN_BIRTH};
use crate::collection::{Bound, Range};
use crate::dice::Dice;

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
    let (mut alive_bytes, mut unknown_bytes) = (0, 0);
    for seed in 1..=150_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut lineage = Lineage::new();
        // What each byte may be: of which cohorts. Several move to one place where ranges contradict each other.
        let mut bytes: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        let (mut unknown, mut knows_large) = (BTreeMap::<(u32, u8), u64>::new(), false);
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
            let is_whole = [0, 2].iter().all(|generation| gc.effect(*generation) == Effect::Collects);
            unknown.retain(|(_, generation), _| {
                if *generation == NO_GENERATION { !is_whole } else { gc.effect(*generation) != Effect::Collects }
            });
            // Each address with what was there; a byte of several cohorts counts as the one that the pieces say.
            let mut next: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            let alive = lineage.alive.all();
            for address in 0..SPACE {
                let was = alive.iter().find(|s| s.start <= address && address < s.end).map(|s| s.value);
                assert_eq!(was.is_some(), bytes.contains_key(&address), "seed {seed} before {gc_id}: {address}");
                let generation = of(&gc.before, address);
                match (holder(&ranges, address), was) {
                    (Some(delta), _) => {
                        let is_new = generation == 0 || (LARGE..NON_GC_HEAP).contains(&generation) && knows_large;
                        let born = was.unwrap_or(if is_new { gc_id } else { UNKNOWN_BIRTH });
                        next.entry(address.wrapping_add(delta)).or_default().push(born);
                    }
                    (None, Some(born)) => match gc.effect(generation) {
                        Effect::Leaves => next.entry(address).or_default().push(born),
                        Effect::Collects => {}
                        Effect::Unknown(_) => *unknown.entry((born, generation)).or_default() += 1,
                    },
                    (None, None) => {}
                }
            }
            bytes = next;
            match gc.effect(LARGE) {
                Effect::Collects => knows_large = true,
                Effect::Unknown(_) => knows_large = false,
                Effect::Leaves => {}
            }
            let rows = lineage.collect(&gc);
            let alive = lineage.alive.all();
            assert!(alive.is_sorted_by(|a, b| a.end <= b.start && a.start < a.end));
            let mut sums: BTreeMap<(u32, Option<u8>), (u64, u64)> = BTreeMap::new();
            for (address, may_be) in &bytes {
                let span = alive.iter().find(|span| span.start <= *address && *address < span.end);
                let born = span.map(|span| span.value);
                assert!(
                    born.is_some_and(|born| may_be.contains(&born)),
                    "seed {seed} after {gc_id}: {address} {may_be:?}"
                );
                let generation = Some(of(&gc.after, *address)).filter(|g| *g != NO_GENERATION);
                sums.entry((born.unwrap_or_default(), generation)).or_default().0 += 1;
            }
            for ((born, generation), count) in &unknown {
                sums.entry((*born, Some(*generation).filter(|g| *g != NO_GENERATION))).or_default().1 += count;
            }
            let listed: BTreeMap<_, _> = rows
                .iter()
                .map(|row| ((row.born_gc_id, row.generation), (row.alive_bytes, row.unknown_bytes)))
                .collect();
            assert_eq!((listed.len(), &listed), (rows.len(), &sums), "seed {seed} after {gc_id}");
            alive_bytes += rows.iter().map(|row| row.alive_bytes).sum::<u64>();
            unknown_bytes += rows.iter().map(|row| row.unknown_bytes).sum::<u64>();
        }
    }
    assert!(alive_bytes > 100_000 && unknown_bytes > 10_000, "{alive_bytes} {unknown_bytes}");
}
