//! Cohorts against a simulated heap, in which each object knows when it was first seen.

use std::collections::BTreeMap;

use super::lineage::Lineage;
use super::pieces::UNKNOWN_BIRTH;
use crate::collection::{Bound, Collection, Range};
use crate::dice::Dice;

#[derive(Clone, Debug)]
struct Object {
    region: usize,
    address: u64,
    size: u64,
    alive: bool,
    /// Its cohort, as far as ranges showed it.
    born: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Region {
    start: u64,
    generation: u8,
    used: u64,
}

const REGION: u64 = 0x1000;

struct Heap {
    dice: Dice,
    objects: Vec<Object>,
    /// By number; without memory while it is free.
    regions: Vec<Option<Region>>,
    unknown: BTreeMap<(u32, u8), u64>,
    knows_large: bool,
}

impl Heap {
    /// A region of a generation, at the first free place: memory is used again as soon as it can be.
    fn region(&mut self, generation: u8) -> usize {
        let place = self.regions.iter().position(Option::is_none).unwrap_or(self.regions.len());
        if place == self.regions.len() {
            self.regions.push(None);
        }
        self.regions[place] = Some(Region { start: REGION * (1 + place as u64), generation, used: 0 });
        place
    }

    fn allocate(&mut self, generation: u8, count: u64) {
        let region = self.region(generation);
        for _ in 0..count {
            let (gap, size) = (self.dice.below(3) * 8, 8 + self.dice.below(6) * 8);
            let Some(Region { start, used, .. }) = &mut self.regions[region] else { return };
            self.objects.push(Object { region, address: *start + *used + gap, size, alive: true, born: None });
            *used += gap + size;
        }
    }

    fn bounds(&self) -> Vec<Bound> {
        let bound = |r: &Region| Bound { generation: r.generation, start: r.start, length: r.used };
        self.regions.iter().flatten().map(bound).collect()
    }

    fn generation(&self, object: &Object) -> u8 {
        self.regions[object.region].map_or(u8::MAX, |region| region.generation)
    }

    /// Runs a collection and says what is recorded of it.
    fn collect(&mut self, gc_id: u32) -> Collection {
        let generation = [0, 0, 0, 0, 1, 1, 2, 2][self.dice.below(8) as usize];
        let background = generation == 2 && self.dice.below(2) == 0;
        let compacts = !background && self.dice.below(2) == 0;
        let mut complete = self.dice.below(10) > 0;
        let collects = |of: u8| if generation == 2 { !background || of >= 2 } else { of <= generation };
        let before = self.bounds();

        let mut ranges: Vec<Range> = Vec::new();
        // The range of each object that survives.
        let mut listed: Vec<Option<usize>> = vec![None; self.objects.len()];
        let mut moved: Vec<(usize, u64)> = self.objects.iter().map(|o| (o.region, o.address)).collect();
        let old_generations: Vec<u8> = self.objects.iter().map(|o| self.generation(o)).collect();
        // Not those that the collection itself makes.
        let all = self.regions.clone();
        for (old, region) in all.into_iter().enumerate() {
            let Some(region) = region.filter(|region| collects(region.generation)) else { continue };
            let promoted = if region.generation < 2 { region.generation + 1 } else { region.generation };
            let survivors: Vec<usize> =
                (0..self.objects.len()).filter(|o| self.objects[*o].region == old && self.objects[*o].alive).collect();
            let target = (compacts && region.generation < 3 && !survivors.is_empty()).then(|| self.region(promoted));
            let mut last: Option<usize> = None;
            for object in survivors {
                let Object { address, size, .. } = self.objects[object];
                let new_address = match target.map(|target| (target, &mut self.regions[target])) {
                    Some((target, Some(to))) => {
                        let new_address = to.start + to.used;
                        to.used += size;
                        moved[object] = (target, new_address);
                        new_address
                    }
                    _ => address,
                };
                // Neighbours are one range, or several.
                let follows = |last: &usize| {
                    let range = &ranges[*last];
                    range.start + range.length == address && range.new_start + range.length == new_address
                };
                let place = match last.filter(follows).filter(|_| self.dice.below(3) > 0) {
                    Some(place) => place,
                    None => {
                        ranges.push(Range { start: address, new_start: new_address, length: 0, clamped: false });
                        ranges.len() - 1
                    }
                };
                ranges[place].length += size;
                listed[object] = Some(place);
                last = Some(place);
            }
            if target.is_some() || last.is_none() {
                // Free at once: what is moved next may go there.
                self.regions[old] = None;
            } else {
                self.regions[old] = Some(Region { generation: promoted, ..region });
            }
        }
        let is_lost: Vec<bool> = ranges.iter().map(|_| !complete && self.dice.below(3) == 0).collect();
        complete &= !ranges.is_empty();

        // What is known of each object now.
        if complete {
            self.unknown.retain(|(_, generation), _| !collects(*generation));
        }
        for (index, object) in self.objects.iter_mut().enumerate() {
            let old = old_generations[index];
            if !collects(old) {
                continue;
            }
            if listed[index].is_some_and(|place| !is_lost[place]) {
                let is_new = old == 0 || old == 3 && self.knows_large;
                object.born = object.born.or(Some(if is_new { gc_id } else { UNKNOWN_BIRTH }));
            } else if let Some(born) = object.born.take()
                && !complete
            {
                *self.unknown.entry((born, old)).or_default() += object.size;
            }
            (object.region, object.address) = moved[index];
        }
        if generation == 2 {
            self.knows_large = complete;
        }
        let mut kept = (0..self.objects.len()).map(|o| listed[o].is_some() || !collects(old_generations[o]));
        self.objects.retain(|_| kept.next() == Some(true));
        let mut lost = is_lost.into_iter();
        ranges.retain(|_| lost.next() != Some(true));
        for place in (1..ranges.len()).rev() {
            ranges.swap(place, self.dice.below(place as u64 + 1) as usize);
        }
        let after = self.bounds();
        Collection {
            gc_id,
            generation: Some(generation),
            background: Some(background),
            complete,
            before,
            after,
            ranges,
            ..Collection::default()
        }
    }

    /// Alive and unknown bytes by cohort and generation.
    fn cohorts(&self) -> BTreeMap<(u32, u8), (u64, u64)> {
        let mut sums: BTreeMap<(u32, u8), (u64, u64)> = BTreeMap::new();
        for object in &self.objects {
            if let Some(born) = object.born {
                sums.entry((born, self.generation(object))).or_default().0 += object.size;
            }
        }
        for (key, bytes) in &self.unknown {
            sums.entry(*key).or_default().1 = *bytes;
        }
        sums
    }
}

#[test]
fn cohorts_are_those_of_the_objects() {
    let (mut unknown, mut oldest) = (0, 0);
    for seed in 1..=400 {
        let dice = Dice(0x9E37_79B9_7F4A_7C15u64.wrapping_mul(seed));
        let mut heap =
            Heap { dice, objects: Vec::new(), regions: Vec::new(), unknown: BTreeMap::new(), knows_large: false };
        let mut lineage = Lineage::new();
        for gc_id in 1..=40 {
            for _ in 0..heap.dice.below(3) {
                let count = heap.dice.below(12);
                heap.allocate(0, count);
            }
            if heap.dice.below(3) == 0 {
                let count = 1 + heap.dice.below(3);
                heap.allocate(3, count);
            }
            let dies = 2 + heap.dice.below(6);
            for object in 0..heap.objects.len() {
                if heap.dice.below(dies) == 0 {
                    heap.objects[object].alive = false;
                }
            }
            let gc = heap.collect(gc_id);
            let rows = lineage.collect(&gc);
            let found: BTreeMap<_, _> = rows
                .iter()
                .map(|row| {
                    let generation = row.generation.unwrap_or(u8::MAX);
                    ((row.born_gc_id, generation), (row.alive_bytes, row.unknown_bytes))
                })
                .collect();
            assert_eq!(found.len(), rows.len());
            assert_eq!(found, heap.cohorts(), "seed {seed}, collection {gc:#?}");
            unknown += rows.iter().filter(|row| row.unknown_bytes > 0).count();
            oldest += rows.iter().filter(|row| row.born_gc_id > 0 && gc_id - row.born_gc_id > 10).count();
        }
    }
    assert!(unknown > 1000 && oldest > 1000, "{unknown} {oldest}");
}
