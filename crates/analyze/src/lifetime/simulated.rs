//! Lifetimes against a simulated heap in which each object knows what became of it: collections that stop all threads or run in
//! the background while others come and memory is given out again, ranges that are lost or clamped, collections that are missing.

use super::heap::Heaps;
use super::life::Fate;
use super::samples::Sample;
use crate::collection::{Bound, Collection, Doubt, Range};
use crate::dice::Dice;

const REGION: u64 = 0x400;

#[derive(Clone, Debug)]
struct Object {
    region: usize,
    address: u64,
    size: u64,
    reachable: bool,
    sample: Option<usize>,
    /// Whether the collection in the background that runs decides about it.
    in_background: bool,
}

/// What has to be found out about a sample.
#[derive(Clone, Debug, PartialEq)]
struct Truth {
    fate: Option<Fate>,
    first: u32,
    end: u32,
    survived: u32,
    generation: Option<u8>,
    address: u64,
    last_alive: i64,
    dead: Option<i64>,
}

struct Heap {
    dice: Dice,
    now: i64,
    objects: Vec<Object>,
    /// The generation of each; `None` while it is free.
    regions: Vec<Option<u8>>,
    samples: Vec<Sample>,
    truths: Vec<Truth>,
    /// What is recorded, by number.
    recorded: Vec<Collection>,
    next_id: u32,
    next_number: u32,
    is_missing: bool,
    /// The one that runs in the background, and whether it has marked.
    background: Option<(Collection, bool, bool)>,
}

/// What a collection listed of its survivors.
struct Listing {
    ranges: Vec<Range>,
    /// Of each object that survived the range that has it.
    of: Vec<Option<usize>>,
}

impl Heap {
    fn new(dice: Dice) -> Heap {
        Heap {
            dice,
            now: 0,
            objects: Vec::new(),
            regions: Vec::new(),
            samples: Vec::new(),
            truths: Vec::new(),
            recorded: Vec::new(),
            next_id: 1,
            next_number: 7,
            is_missing: false,
            background: None,
        }
    }

    fn is_free(&self, start: u64, end: u64) -> bool {
        !self.objects.iter().any(|o| o.address < end && start < o.address + o.size)
    }

    /// A place in a region of a generation: in a hole of one that is there, if it may be, else in a new one.
    fn room(&mut self, generation: u8, size: u64, not_in: &[usize], holes: bool) -> (usize, u64) {
        for region in (0..self.regions.len()).filter(|_| holes) {
            if self.regions[region] != Some(generation) || not_in.contains(&region) {
                continue;
            }
            let start = REGION * (1 + region as u64);
            let place = (0..REGION / 8)
                .map(|n| start + n * 8)
                .find(|at| at + size <= start + REGION && self.is_free(*at, at + size));
            if let Some(place) = place {
                return (region, place);
            }
        }
        let free = (0..self.regions.len()).find(|region| {
            let start = REGION * (1 + *region as u64);
            self.regions[*region].is_none() && self.is_free(start, start + REGION)
        });
        let region = free.unwrap_or(self.regions.len());
        if region == self.regions.len() {
            self.regions.push(None);
        }
        self.regions[region] = Some(generation);
        (region, REGION * (1 + region as u64))
    }

    fn allocate(&mut self) {
        let generation = if self.dice.below(4) == 0 { 3 + self.dice.below(2) as u8 } else { 0 };
        let size = 8 + 8 * self.dice.below(6);
        let (region, address) = self.room(generation, size, &[], true);
        let is_sampled = self.dice.below(3) > 0;
        let sample = is_sampled.then(|| {
            self.samples.push(Sample::new(self.now, 1, address));
            self.truths.push(Truth {
                fate: None,
                first: 0,
                end: 0,
                survived: 0,
                generation: None,
                address,
                last_alive: self.now,
                dead: None,
            });
            self.samples.len() - 1
        });
        self.objects.push(Object { region, address, size, reachable: true, sample, in_background: false });
    }

    fn bounds(&self) -> Vec<Bound> {
        let bound = |(region, generation): (usize, &Option<u8>)| {
            let start = REGION * (1 + region as u64);
            generation.map(|generation| Bound { generation, start, length: REGION })
        };
        self.regions.iter().enumerate().filter_map(bound).collect()
    }

    fn generation(&self, object: &Object) -> u8 {
        self.regions[object.region].unwrap()
    }

    fn header(&mut self, generation: u8, background: bool) -> Collection {
        let collection = Collection {
            gc_id: self.next_id,
            runtime: (1, 0),
            gc_number: self.next_number,
            start_ns: self.now,
            end_ns: None,
            generation: Some(generation),
            background: Some(background),
            complete: self.dice.below(12) > 0,
            before: self.bounds(),
            after: Vec::new(),
            ranges: Vec::new(),
        };
        self.next_number += 1;
        // What one in the background has still to decide is known to it alone.
        let is_open = self.background.as_ref().is_some_and(|(_, has_marked, _)| !has_marked);
        // Before the first that is recorded nothing says how many there were.
        if !is_open && self.next_id > 1 && self.dice.below(40) == 0 {
            self.is_missing = true;
            return Collection { gc_id: 0, ..collection };
        }
        self.next_id += 1;
        if std::mem::take(&mut self.is_missing) {
            for truth in self.truths.iter_mut().filter(|truth| truth.fate.is_none()) {
                (truth.fate, truth.end) = (Some(Fate::Unknown(Doubt::Missing)), collection.gc_id);
            }
        }
        collection
    }

    /// Ranges of these objects, which went from the one address to the other.
    fn list(&mut self, survivors: &[(usize, u64)]) -> Listing {
        let mut listing = Listing { ranges: Vec::new(), of: vec![None; self.objects.len()] };
        let mut sorted = survivors.to_vec();
        sorted.sort_by_key(|(object, _)| self.objects[*object].address);
        for (object, new) in sorted {
            let Object { address, size, .. } = self.objects[object];
            let follows = listing.ranges.last().is_some_and(|last: &Range| {
                last.start / REGION == address / REGION
                    && last.start + last.length == address
                    && last.new_start + last.length == new
            });
            if !follows || self.dice.below(3) == 0 {
                listing.ranges.push(Range { start: address, new_start: new, length: 0, clamped: false });
            }
            listing.ranges.last_mut().unwrap().length += size;
            listing.of[object] = Some(listing.ranges.len() - 1);
        }
        listing
    }

    /// What a collection says of the objects that it decides about: each either survived or did not.
    fn decide(&mut self, gc: &mut Collection, decided: &[usize], survivors: &[(usize, u64)], dead_ns: i64) {
        let Listing { mut ranges, of } = self.list(survivors);
        // The known part of a clamped range is shorter.
        let mut known: Vec<u64> = ranges.iter().map(|range| range.length).collect();
        for (range, length) in ranges.iter_mut().zip(&mut known) {
            if self.dice.below(25) == 0 {
                range.clamped = true;
                *length = (range.length / 2).max(8);
                range.length = *length;
            }
        }
        let is_lost: Vec<bool> = ranges.iter().map(|_| !gc.complete && self.dice.below(3) == 0).collect();
        let kept: Vec<Range> =
            ranges.iter().zip(&is_lost).filter(|(_, lost)| !**lost).map(|(range, _)| *range).collect();
        for object in decided.iter().map(|object| (*object, &self.objects[*object])) {
            let (index, Object { address, sample: Some(sample), .. }) = object else { continue };
            let generation = gc.before.iter().find(|b| b.start <= *address && *address < b.start + b.length).unwrap();
            let truth = &mut self.truths[*sample];
            if truth.fate.is_some() || gc.gc_id == 0 {
                continue;
            }
            truth.first = if truth.first == 0 { gc.gc_id } else { truth.first };
            truth.generation = Some(generation.generation);
            let listed = of[index].filter(|range| !is_lost[*range]);
            let listed = listed.filter(|range| address - ranges[*range].start < known[*range]);
            if listed.is_some() {
                truth.survived += 1;
                truth.last_alive = gc.start_ns;
                truth.address = survivors.iter().find(|(survivor, _)| *survivor == index).unwrap().1;
                continue;
            }
            let nearest = kept.iter().filter(|range| range.start <= *address).max_by_key(|range| range.start);
            let is_hidden = nearest.is_some_and(|range| range.clamped && generation.start <= range.start);
            let doubt = match (gc.complete, kept.is_empty()) {
                (false, _) => Some(Doubt::Incomplete),
                (true, true) => Some(Doubt::NoRanges),
                (true, false) => is_hidden.then_some(Doubt::Clamped),
            };
            truth.end = gc.gc_id;
            truth.fate = Some(doubt.map_or(Fate::Dead, Fate::Unknown));
            truth.dead = doubt.is_none().then_some(dead_ns);
        }
        gc.ranges = kept;
        for place in (1..gc.ranges.len()).rev() {
            gc.ranges.swap(place, self.dice.below(place as u64 + 1) as usize);
        }
    }

    /// Whether a collection keeps an object: all that is reachable, and now and then another one.
    fn keeps(&mut self, object: usize) -> bool {
        self.objects[object].reachable || self.dice.below(10) == 0
    }

    /// A collection that stops all threads.
    fn collect(&mut self) {
        let most = if self.background.is_some() { 1 } else { [0, 0, 0, 1, 1, 2][self.dice.below(6) as usize] };
        let generation = if self.background.is_some() { self.dice.below(2) as u8 } else { most };
        let compacts = self.dice.below(2) == 0;
        let mut gc = self.header(generation, false);
        let collects = |of: u8| if generation == 2 { true } else { of <= generation };
        let old: Vec<usize> = (0..self.regions.len()).filter(|r| self.regions[*r].is_some_and(collects)).collect();
        let decided: Vec<usize> = (0..self.objects.len()).filter(|o| old.contains(&self.objects[*o].region)).collect();
        let survivors: Vec<usize> = decided.iter().copied().filter(|object| self.keeps(*object)).collect();
        // Where they go; what was there before is told from the objects as they were.
        let before = self.objects.clone();
        let mut moved: Vec<(usize, u64)> = Vec::new();
        let generations: Vec<Option<u8>> = self.regions.clone();
        for object in decided.iter().filter(|object| !survivors.contains(object)) {
            // It takes no room any more.
            (self.objects[*object].address, self.objects[*object].size) = (0, 0);
        }
        for region in old.iter().copied() {
            let from = generations[region].unwrap();
            let to = if from < 2 { from + 1 } else { from };
            let own: Vec<usize> = survivors.iter().copied().filter(|o| before[*o].region == region).collect();
            for object in &own {
                let size = self.objects[*object].size;
                if compacts && from != 4 {
                    let holes = self.dice.below(3) > 0;
                    // A place is free for the next as soon as the object before has left it.
                    let (new_region, new) = self.room(to, size, &old, holes);
                    (self.objects[*object].region, self.objects[*object].address) = (new_region, new);
                }
                moved.push((*object, self.objects[*object].address));
            }
            let is_left = !own.is_empty() && (!compacts || from == 4);
            self.regions[region] = is_left.then_some(to);
        }
        let after = std::mem::replace(&mut self.objects, before);
        let start_ns = gc.start_ns;
        self.decide(&mut gc, &decided, &moved, start_ns);
        self.objects = after;
        let mut index = 0;
        self.objects.retain(|_| {
            index += 1;
            !decided.contains(&(index - 1)) || survivors.contains(&(index - 1))
        });
        self.now += 5;
        (gc.end_ns, gc.after) = (Some(self.now), self.bounds());
        if gc.gc_id > 0 {
            for object in &self.objects {
                let generation = self.generation(object);
                if let Some(truth) = object.sample.map(|sample| &mut self.truths[sample])
                    && truth.fate.is_none()
                    && truth.survived > 0
                {
                    truth.generation = Some(generation);
                }
            }
            self.recorded.push(gc);
        }
    }

    fn start_background(&mut self) {
        let gc = self.header(2, true);
        for index in 0..self.objects.len() {
            self.objects[index].in_background = self.generation(&self.objects[index]) >= 2;
        }
        let is_recorded = gc.gc_id > 0;
        self.background = Some((gc, false, is_recorded));
    }

    /// The collection in the background has marked: what is not reachable is swept while it goes on.
    fn mark(&mut self) {
        let Some((mut gc, _, is_recorded)) = self.background.take() else { return };
        let decided: Vec<usize> = (0..self.objects.len()).filter(|o| self.objects[*o].in_background).collect();
        // What came to these generations meanwhile is listed as well.
        let old: Vec<usize> = (0..self.objects.len()).filter(|o| self.generation(&self.objects[*o]) >= 2).collect();
        let mut survivors: Vec<(usize, u64)> = Vec::new();
        for object in old {
            if !self.objects[object].in_background || self.keeps(object) {
                survivors.push((object, self.objects[object].address));
            }
        }
        // When it ends it is known what it found: then the time is written.
        self.decide(&mut gc, &decided, &survivors, i64::MIN);
        let is_kept: Vec<bool> = (0..self.objects.len())
            .map(|o| !self.objects[o].in_background || survivors.iter().any(|(survivor, _)| *survivor == o))
            .collect();
        let mut index = 0;
        self.objects.retain(|_| {
            index += 1;
            is_kept[index - 1]
        });
        for region in 0..self.regions.len() {
            if self.regions[region].is_some_and(|g| g >= 2) && !self.objects.iter().any(|o| o.region == region) {
                self.regions[region] = None;
            }
        }
        self.background = Some((gc, true, is_recorded));
    }

    fn end_background(&mut self) {
        let Some((mut gc, _, is_recorded)) = self.background.take() else { return };
        (gc.end_ns, gc.after) = (Some(self.now), self.bounds());
        for truth in &mut self.truths {
            if truth.dead == Some(i64::MIN) {
                truth.dead = Some(self.now);
            }
        }
        self.objects.iter_mut().for_each(|object| object.in_background = false);
        if is_recorded {
            self.recorded.push(gc);
        }
    }
}

#[test]
fn each_life_is_that_of_the_object() {
    let mut counts = std::collections::BTreeMap::<String, u64>::new();
    let mut reused = 0;
    for seed in 1..=300u64 {
        let mut heap = Heap::new(Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        for _ in 0..90 {
            heap.now += heap.dice.below(2) as i64 * 10;
            for _ in 0..heap.dice.below(8) {
                heap.allocate();
            }
            let dies = 2 + heap.dice.below(6);
            for object in 0..heap.objects.len() {
                if heap.dice.below(dies) == 0 {
                    heap.objects[object].reachable = false;
                }
            }
            heap.now += heap.dice.below(2) as i64 * 10;
            match (heap.dice.below(4), heap.background.as_ref().map(|(_, has_marked, _)| *has_marked)) {
                (0, None) => heap.start_background(),
                (1, Some(false)) => heap.mark(),
                (1, Some(true)) => heap.end_background(),
                (2, _) => heap.collect(),
                _ => {}
            }
            // What happens next happens later than a start.
            heap.now += 1;
        }
        if heap.background.as_ref().is_some_and(|(_, has_marked, _)| !has_marked) {
            heap.mark();
        }
        heap.end_background();
        heap.recorded.sort_by_key(|gc| gc.gc_id);
        let mut heaps = Heaps::new(&heap.samples, &mut heap.recorded.iter());
        heap.recorded.iter().for_each(|gc| heaps.collect(gc));
        for ((life, truth), sample) in heaps.finish().iter().zip(&heap.truths).zip(&heap.samples) {
            let fate = match truth.fate {
                Some(fate) => fate,
                None if truth.survived > 0 => Fate::Alive,
                None => Fate::Unknown(Doubt::NotCollected),
            };
            let found = Truth {
                fate: Some(life.fate),
                first: life.first_gc_id,
                end: life.end_gc_id,
                survived: life.survived_collections,
                generation: life.generation_at_end,
                address: life.end_object_id,
                last_alive: life.last_alive_ns,
                dead: life.dead_ns,
            };
            let mut expected = Truth { fate: Some(fate), ..truth.clone() };
            if !matches!(life.fate, Fate::Dead | Fate::Alive) {
                expected.generation = found.generation;
            }
            assert_eq!(found, expected, "seed {seed}: {sample:?}");
            *counts.entry(format!("{:?}", life.fate)).or_default() += 1;
        }
        let mut addresses: Vec<u64> = heap.samples.iter().map(|sample| sample.object_id).collect();
        addresses.sort_unstable();
        reused += addresses.windows(2).filter(|pair| pair[0] == pair[1]).count();
    }
    let least = |fate: Fate| counts.get(&format!("{fate:?}")).copied().unwrap_or_default();
    assert!(least(Fate::Dead) > 5_000 && least(Fate::Alive) > 1_000 && reused > 5_000, "{counts:?} {reused}");
    for doubt in [Doubt::Incomplete, Doubt::Clamped, Doubt::Missing, Doubt::NotCollected] {
        assert!(least(Fate::Unknown(doubt)) > 100, "{counts:?}");
    }
}
