//! Lifetimes against a simulated heap in which each object knows what became of it: collections that stop all threads
//! or run in the background while others come and memory is given out again, ranges that are lost or clamped,
//! collections that are missing. The heap also knows the cohort of each object, for crates/analyze/src/cohort.

use super::super::heap::Heaps;
use super::super::life::{Fate, Life, Lifetime};
use super::super::live::{Starts, State};
use super::super::sample::{Sample, SampleList};
use crate::collection::{Bound, Collection, Doubt, Range};
use crate::tests::dice::Dice;

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
    id: usize,
    /// The cohort, as far as the recording shows it.
    born: Option<u32>,
    /// The cohort that it was of until its trace was lost.
    lost: Option<u32>,
    /// Whether a collection found it alive and did not list it.
    is_hidden: bool,
}

/// An object that is there after a collection.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    id: usize,
    pub size: u64,
    pub generation: u8,
    /// The cohort, as far as the recording shows it.
    pub born: Option<u32>,
    /// The cohort that it was of until its trace was lost.
    pub lost: Option<u32>,
}

/// The objects after a collection, without those that one in the background was about to find dead.
#[derive(Clone, Debug)]
pub(crate) struct Shot {
    pub gc_id: u32,
    /// Of one that ran in the background, what was first seen at its end, with the cohort that it was of until its
    /// trace was lost.
    found: Option<Vec<(usize, Option<u32>)>>,
    pub objects: Vec<Shown>,
}

/// The truth about a sample, which has to be found out.
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

pub(crate) struct Heap {
    dice: Dice,
    now: i64,
    objects: Vec<Object>,
    /// The generation of each; `None` while it is free.
    regions: Vec<Option<u8>>,
    pub samples: Vec<Sample>,
    truths: Vec<Truth>,
    /// The collections that are recorded, by number.
    pub recorded: Vec<Collection>,
    /// After each that is recorded, in the order of their ends.
    pub shots: Vec<Shot>,
    /// Whether the trace of any object was lost.
    pub has_lost: bool,
    /// Whether a range was clamped, so that what it hides may be taken for older than it is.
    pub has_clamped: bool,
    /// Whether anything gets lost.
    loses: bool,
    next_object: usize,
    /// Whether a collection has listed all large and pinned objects; and so before the one in the background.
    knows_large: [bool; 2],
    /// The objects that the one in the background lists, and where they were.
    listed: Vec<(usize, u64)>,
    /// Where younger objects lay at its start, and at those of others meanwhile: of these it says nothing.
    young: Vec<Bound>,
    next_id: u32,
    next_number: u32,
    /// Whether one is missing, and none came since.
    pub is_missing: bool,
    /// The one that runs in the background, and whether it has marked.
    background: Option<(Collection, bool, bool)>,
}

/// The survivors that a collection listed.
struct Listing {
    ranges: Vec<Range>,
    /// Of each object that survived the range that has it.
    of: Vec<Option<usize>>,
}

impl Heap {
    pub fn new(dice: Dice, loses: bool) -> Heap {
        Heap {
            dice,
            now: 0,
            objects: Vec::new(),
            regions: Vec::new(),
            samples: Vec::new(),
            truths: Vec::new(),
            recorded: Vec::new(),
            shots: Vec::new(),
            has_lost: false,
            has_clamped: false,
            loses,
            next_object: 0,
            knows_large: [false; 2],
            listed: Vec::new(),
            young: Vec::new(),
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
        let id = self.next_object;
        self.next_object += 1;
        let (reachable, in_background) = (true, false);
        self.objects.push(Object {
            region,
            address,
            size,
            reachable,
            sample,
            in_background,
            id,
            born: None,
            is_hidden: false,
            lost: None,
        });
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
            complete: self.dice.below(12) > 0 || !self.loses,
            before: self.bounds(),
            ..Collection::default()
        };
        self.next_number += 1;
        // Generations that the one in the background has still to decide about are known to it alone.
        let is_open = self.background.as_ref().is_some_and(|(_, has_marked, _)| !has_marked);
        // Before the first that is recorded nothing says how many there were.
        if self.loses && !is_open && self.next_id > 1 && self.dice.below(40) == 0 {
            self.is_missing = true;
            return Collection { gc_id: 0, ..collection };
        }
        self.next_id += 1;
        if std::mem::take(&mut self.is_missing) {
            for truth in self.truths.iter_mut().filter(|truth| truth.fate.is_none()) {
                (truth.fate, truth.end) = (Some(Fate::Unknown(Doubt::Missing)), collection.gc_id);
            }
            self.has_lost = true;
            self.knows_large = [false; 2];
            // The collection ran before the one in the background ended, or after that: this one has found nothing for
            // sure.
            let mut new = Vec::new();
            match &self.background {
                Some((gc, ..)) if gc.gc_id > 0 => self.listed.clear(),
                _ => {
                    if let Some(Shot { found: Some(found), objects, .. }) = self.shots.last_mut() {
                        for shown in objects {
                            shown.lost = shown.born.take().or(shown.lost);
                            if let Some((_, lost)) = found.iter().find(|(id, _)| *id == shown.id) {
                                shown.lost = *lost;
                            }
                        }
                        new.clone_from(found);
                    }
                }
            }
            for object in self.objects.iter_mut().filter(|object| object.born.is_some()) {
                object.lost = object.born.take();
                if let Some((_, lost)) = new.iter().find(|(id, _)| *id == object.id) {
                    object.lost = *lost;
                }
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

    /// Lists the objects that a collection decides about: each either survived or did not.
    fn decide(&mut self, gc: &mut Collection, decided: &[usize], survivors: &[(usize, u64)], dead_ns: i64) {
        let Listing { mut ranges, of } = self.list(survivors);
        // The known part of a clamped range is shorter.
        let mut known: Vec<u64> = ranges.iter().map(|range| range.length).collect();
        for (range, length) in ranges.iter_mut().zip(&mut known) {
            if self.loses && self.dice.below(25) == 0 {
                range.clamped = true;
                self.has_clamped = true;
                // The clamped range ends with an object.
                let ends = self.objects.iter().map(|object| object.address + object.size);
                let ends = ends.filter(|end| (range.start + 1..=range.start + range.length).contains(end));
                let half = range.start + range.length / 2;
                let end = ends.min_by_key(|end| (*end > half, end.abs_diff(half))).unwrap();
                *length = end - range.start;
                range.length = *length;
            }
        }
        let is_lost: Vec<bool> = ranges.iter().map(|_| !gc.complete && self.dice.below(3) == 0).collect();
        let kept: Vec<Range> =
            ranges.iter().zip(&is_lost).filter(|(_, lost)| !**lost).map(|(range, _)| *range).collect();
        let is_stopped = self.background.is_none() || gc.background == Some(false);
        let is_listed = |index: usize, address: u64| {
            let listed = of[index].filter(|range| !is_lost[*range]);
            listed.is_some_and(|range| address - ranges[range].start < known[range])
        };
        let doubt_of = |address: u64, part: &Bound| {
            let nearest = kept.iter().filter(|range| range.start <= address).max_by_key(|range| range.start);
            let is_hidden = nearest.is_some_and(|range| range.clamped && part.start <= range.start);
            match (gc.complete, kept.is_empty()) {
                (false, _) => Some(Doubt::Incomplete),
                (true, true) => Some(Doubt::NoRanges),
                (true, false) => is_hidden.then_some(Doubt::Clamped),
            }
        };
        let part_of = |address: u64| {
            gc.before.iter().find(|part| part.start <= address && address < part.start + part.length).unwrap()
        };
        if gc.gc_id > 0 {
            for index in decided.iter().copied() {
                let object = &mut self.objects[index];
                let part = part_of(object.address);
                let doubt = doubt_of(object.address, part);
                match (is_listed(index, object.address), is_stopped) {
                    (true, false) => {}
                    (true, true) => {
                        if object.born.is_none() {
                            let may_be_new = part.generation == 0 || part.generation > 2 && self.knows_large[0];
                            let is_new = may_be_new && !object.is_hidden;
                            (object.born, object.lost) = (Some(if is_new { gc.gc_id } else { 0 }), None);
                        }
                    }
                    (false, _) => {
                        object.is_hidden |= doubt.is_some();
                        if doubt.is_some() && object.born.is_some() {
                            object.lost = object.born.take();
                            self.has_lost = true;
                        }
                        // A collection in the background decides at its start.
                        for shot in self.shots.iter_mut().filter(|shot| shot.gc_id > gc.gc_id) {
                            shot.objects.retain(|shown| shown.id != object.id || doubt.is_some());
                            for shown in shot.objects.iter_mut().filter(|shown| shown.id == object.id) {
                                shown.lost = shown.born.take().or(shown.lost);
                            }
                        }
                    }
                }
            }
            if gc.generation == Some(2) {
                self.knows_large = [gc.complete && !kept.is_empty(), self.knows_large[0]];
            }
            if !is_stopped {
                let listed = (0..self.objects.len()).filter(|index| is_listed(*index, self.objects[*index].address));
                self.listed = listed.map(|index| (self.objects[index].id, self.objects[index].address)).collect();
            }
        }
        for object in decided.iter().map(|object| (*object, &self.objects[*object])) {
            let (index, Object { address, sample: Some(sample), .. }) = object else { continue };
            let generation = part_of(*address);
            let truth = &mut self.truths[*sample];
            if truth.fate.is_some() || gc.gc_id == 0 {
                continue;
            }
            truth.first = if truth.first == 0 { gc.gc_id } else { truth.first };
            truth.generation = Some(generation.generation);
            if is_listed(index, *address) {
                truth.survived += 1;
                truth.last_alive = gc.start_ns;
                truth.address = survivors.iter().find(|(survivor, _)| *survivor == index).unwrap().1;
                continue;
            }
            let doubt = doubt_of(*address, generation);
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
        // Survivors get their new places; the list of objects before that says where they were.
        let before = self.objects.clone();
        let mut moved: Vec<(usize, u64)> = Vec::new();
        let generations: Vec<Option<u8>> = self.regions.clone();
        for object in decided.iter().filter(|object| !survivors.contains(object)) {
            // A dead object takes no room any more.
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
        let before = std::mem::replace(&mut self.objects, after);
        for (object, was) in self.objects.iter_mut().zip(&before) {
            (object.born, object.lost) = (was.born, was.lost);
        }
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
            if self.background.is_some() {
                self.young.extend(gc.before.iter().filter(|part| part.generation < 2));
            }
            self.shoot(&gc, None);
            self.recorded.push(gc);
        }
    }

    /// Writes down which objects are there.
    fn shoot(&mut self, gc: &Collection, found: Option<Vec<(usize, Option<u32>)>>) {
        let shown = |object: &Object| {
            let Object { id, size, born, lost, .. } = *object;
            Shown { id, size, generation: self.generation(object), born, lost }
        };
        let objects = self.objects.iter().map(shown).collect();
        self.shots.push(Shot { gc_id: gc.gc_id, found, objects });
    }

    fn start_background(&mut self) {
        let gc = self.header(2, true);
        for index in 0..self.objects.len() {
            self.objects[index].in_background = self.generation(&self.objects[index]) >= 2;
        }
        let is_recorded = gc.gc_id > 0;
        self.young = gc.before.iter().filter(|part| part.generation < 2).copied().collect();
        self.background = Some((gc, false, is_recorded));
    }

    /// The collection in the background has marked: what is not reachable is swept while it goes on.
    fn mark(&mut self) {
        let Some((mut gc, _, is_recorded)) = self.background.take() else { return };
        let decided: Vec<usize> = (0..self.objects.len()).filter(|o| self.objects[*o].in_background).collect();
        // Objects that came to these generations meanwhile are listed as well.
        let old: Vec<usize> = (0..self.objects.len()).filter(|o| self.generation(&self.objects[*o]) >= 2).collect();
        let mut survivors: Vec<(usize, u64)> = Vec::new();
        for object in old {
            if !self.objects[object].in_background || self.keeps(object) {
                survivors.push((object, self.objects[object].address));
            }
        }
        // The collection may list younger ones, too, which move meanwhile.
        for object in 0..self.objects.len() {
            if self.generation(&self.objects[object]) < 2 && self.dice.below(4) == 0 {
                survivors.push((object, self.objects[object].address));
            }
        }
        self.listed.clear();
        // When it ends it is known what it found: then the time is written.
        self.background = Some((gc.clone(), false, is_recorded));
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
            let mut found = Vec::new();
            for index in 0..self.objects.len() {
                let generation = self.generation(&self.objects[index]);
                let is_large = generation > 2;
                let object = &mut self.objects[index];
                let was_young =
                    self.young.iter().any(|p| p.start <= object.address && object.address < p.start + p.length);
                if object.born.is_none()
                    && generation >= 2
                    && !was_young
                    && self.listed.contains(&(object.id, object.address))
                {
                    found.push((object.id, object.lost));
                    let is_new = is_large && self.knows_large[1] && !object.is_hidden;
                    (object.born, object.lost) = (Some(if is_new { gc.gc_id } else { 0 }), None);
                }
            }
            self.shoot(&gc, Some(found));
            self.recorded.push(gc);
        }
    }
}

/// Compares what is alive at a time with what would be if the recording had ended then. Gives how many objects that are
/// alive were compared.
fn is_as_if_it_ended(heap: &Heap, lives: &[Life], at: i64) -> usize {
    // A collection that has not ended says more later.
    if heap.recorded.iter().any(|gc| gc.start_ns <= at && gc.end_ns.is_none_or(|end| end > at)) {
        return 0;
    }
    let recorded: Vec<&Collection> = heap.recorded.iter().filter(|gc| gc.start_ns <= at).collect();
    let samples: SampleList = heap.samples.iter().filter(|sample| sample.ts_ns <= at).copied().collect();
    let mut heaps = Heaps::new(&samples, &mut recorded.iter().copied());
    recorded.iter().for_each(|gc| heaps.collect(gc));
    let starts = Starts::of(heap.recorded.iter());
    let mut alive = 0;
    for ((sample, now), life) in samples.iter().zip(heaps.finish().iter()).zip(lives) {
        let expected = match now.fate {
            Fate::Dead => State::Dead,
            Fate::Alive => State::Alive,
            Fate::Unknown(_) => State::Unknown,
        };
        let found = starts.state(&Lifetime { sample: &sample, weight: 1, life }, at);
        // An address that is given again later says then that nothing is known of an object, and not since when.
        let is_lost_later = found == State::Unknown && life.fate == Fate::Unknown(Doubt::GivenAgain);
        assert!(found == expected || is_lost_later, "at {at}: {found:?}, expected {expected:?}: {sample:?} {life:?}");
        alive += usize::from(found == State::Alive);
    }
    alive
}

/// A while of a program: allocations, deaths and collections by chance. Then what was recorded, by the starts of
/// collections.
pub(crate) fn live_on(heap: &mut Heap) {
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
        // The next event happens later than a start.
        heap.now += 1;
    }
    if heap.background.as_ref().is_some_and(|(_, has_marked, _)| !has_marked) {
        heap.mark();
    }
    heap.end_background();
    heap.recorded.sort_by_key(|gc| gc.gc_id);
}

/// The lives of the sampled objects.
pub(crate) fn lives(heap: &Heap) -> Vec<Life> {
    let samples = heap.samples.iter().copied().collect();
    let mut heaps = Heaps::new(&samples, &mut heap.recorded.iter());
    heap.recorded.iter().for_each(|gc| heaps.collect(gc));
    heaps.finish().iter().copied().collect()
}

#[test]
fn each_life_is_that_of_the_object() {
    let mut counts = std::collections::BTreeMap::<String, u64>::new();
    let (mut reused, mut cut) = (0, 0);
    for seed in 1..=300u64 {
        let mut heap = Heap::new(Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)), true);
        live_on(&mut heap);
        let lives = lives(&heap);
        for at in (0..heap.now).step_by(40) {
            cut += is_as_if_it_ended(&heap, &lives, at);
        }
        for ((life, truth), sample) in lives.iter().zip(&heap.truths).zip(&heap.samples) {
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
    assert!(cut > 20_000, "{cut}");
    let least = |fate: Fate| counts.get(&format!("{fate:?}")).copied().unwrap_or_default();
    assert!(least(Fate::Dead) > 5_000 && least(Fate::Alive) > 1_000 && reused > 5_000, "{counts:?} {reused}");
    for doubt in [Doubt::Incomplete, Doubt::Clamped, Doubt::Missing, Doubt::NotCollected] {
        assert!(least(Fate::Unknown(doubt)) > 100, "{counts:?}");
    }
}
