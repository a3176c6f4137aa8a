//! One walk of the heap as its rows come, packed: some two bytes an object and six a reference.

use tracequet_facts::fact::{Fact, GcWeakElement, HeapObject, HeapReference};
use tracequet_trace::map::Map;

use super::halves::Halves;
use crate::packed::Packed;

/// An object farther than this behind the end of the one before it begins a stretch: objects of another stretch may lie
/// in the gap.
const MAX_GAP: u64 = 1 << 16;

/// Stretches that a walk keeps: it has some for each region of each generation. Objects of more stretches are sorted
/// one by one.
const MAX_STRETCHES: usize = 1 << 16;

/// Entries of the cache in front of the maps of shapes and types.
const RECENT: usize = 1 << 8;

/// Memory of a shape or a type: its row, and the map that finds it.
const SHAPE_STORED: u64 = 96;

/// A shape that many objects share: their bytes, and their type as a place among the types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub size: u64,
    pub kind: u32,
}

/// Part of a walk in which addresses rise, without large gaps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub first: u64,
    pub last: u64,
    pub objects: u64,
}

/// The objects and references of a walk.
#[derive(Debug, Default)]
pub(super) struct Walk {
    objects: Packed,
    /// Objects so far.
    pub object_count: u64,
    /// The address directly behind the last object.
    next: u64,
    stretches: Vec<Stretch>,
    /// The shapes of the objects.
    pub shapes: Vec<Shape>,
    shape_places: Map<Shape, u32>,
    /// Sizes and types that were looked up last, and the places of their shapes: most objects have one of these.
    recent: Vec<(u64, u64, u32)>,
    /// The ids of the types.
    pub types: Vec<u64>,
    type_places: Map<u64, u32>,
    /// From fields and elements of arrays.
    pub references: References,
    /// From the keys of dependent handles to their values.
    pub dependents: References,
}

/// The address directly behind an object: objects begin at multiples of 8.
fn behind(address: u64, size: u64) -> u64 {
    address.wrapping_add(size).wrapping_add(7) & !7
}

impl Walk {
    /// Adds an object.
    pub fn object(&mut self, address: u64, size: u64, type_id: u64) {
        let place = self.shape(size, type_id);
        let is_next = address == self.next;
        self.objects.push(u64::from(place) << 1 | u64::from(!is_next));
        if !is_next {
            self.objects.push_step(self.next, address);
        }
        let gap = address.saturating_sub(self.next);
        self.next = behind(address, size);
        self.object_count += 1;
        let has_room = self.stretches.len() < MAX_STRETCHES;
        match self.stretches.last_mut() {
            Some(stretch) if stretch.last < address && gap <= MAX_GAP => {
                stretch.last = address;
                stretch.objects += 1;
            }
            _ if has_room => self.stretches.push(Stretch { first: address, last: address, objects: 1 }),
            _ => {}
        }
    }

    /// The place of a shape.
    #[inline]
    fn shape(&mut self, size: u64, type_id: u64) -> u32 {
        // Ids of types are addresses.
        let slot = (size ^ type_id >> 3) as usize % RECENT;
        match self.recent.get(slot) {
            Some(recent) if (recent.0, recent.1) == (size, type_id) => recent.2,
            _ => self.cached_shape(size, type_id, slot),
        }
    }

    /// Looks the shape up in the maps, and puts it into this slot of the cache.
    fn cached_shape(&mut self, size: u64, type_id: u64, slot: usize) -> u32 {
        let kind = *self.type_places.entry(type_id).or_insert_with(|| {
            self.types.push(type_id);
            self.types.len() as u32 - 1
        });
        let shape = Shape { size, kind };
        let place = *self.shape_places.entry(shape).or_insert_with(|| {
            self.shapes.push(shape);
            self.shapes.len() as u32 - 1
        });
        self.recent.resize(RECENT, (size, type_id, place));
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = (size, type_id, place);
        }
        place
    }

    /// All stretches in the order of the walk; `None` when there were more than a walk keeps.
    pub fn stretches(&self) -> Option<&[Stretch]> {
        (self.stretches.iter().map(|stretch| stretch.objects).sum::<u64>() == self.object_count)
            .then_some(&self.stretches)
    }

    /// The address of each object, and the place of its shape.
    pub fn objects(&self) -> impl Iterator<Item = (u64, u32)> {
        let (mut numbers, mut next) = (self.objects.numbers(), 0u64);
        std::iter::from_fn(move || {
            let head = numbers.next()?;
            let shape = (head >> 1) as u32;
            let address = if head & 1 == 0 { next } else { numbers.step(next)? };
            next = behind(address, self.shapes.get(shape as usize)?.size);
            Some((address, shape))
        })
    }

    /// References so far, of both kinds.
    pub fn reference_count(&self) -> u64 {
        self.references.count + self.dependents.count
    }

    /// Memory that the walk takes.
    pub fn bytes(&self) -> u64 {
        let shapes = (self.shapes.len() + self.types.len()) as u64 * SHAPE_STORED;
        let lists =
            self.stretches.capacity() * size_of::<Stretch>() + self.recent.capacity() * size_of::<(u64, u64, u32)>();
        self.objects.bytes() + self.references.bytes() + self.dependents.bytes() + shapes + lists as u64
    }
}

/// Adds rows to their walk.
type Adds<'a> = &'a dyn Fn(&mut Walk);

/// Calls `each` with the rows of a fact that are part of walks, those of a collection together: its number, and what adds them to its
/// walk.
pub(super) fn parts(fact: &Fact<'_>, each: &mut dyn FnMut(u32, Adds<'_>)) {
    match fact {
        Fact::HeapObject(rows) => {
            let add = |walk: &mut Walk, row: &HeapObject| walk.object(row.object_id, row.size_bytes, row.type_id);
            of_each(rows, |row| row.gc_id, add, each);
        }
        Fact::HeapReference(rows) => {
            let add = |walk: &mut Walk, row: &HeapReference| walk.references.push(row.object_id, row.target_object_id);
            of_each(rows, |row| row.gc_id, add, each);
        }
        Fact::GcWeakElement(rows) => {
            let add =
                |walk: &mut Walk, row: &GcWeakElement| walk.dependents.push(row.key_object_id, row.value_object_id);
            of_each(rows, |row| row.gc_id, add, each);
        }
        _ => {}
    }
}

fn of_each<R>(rows: &[R], gc_id: impl Fn(&R) -> u32, add: impl Fn(&mut Walk, &R), each: &mut dyn FnMut(u32, Adds<'_>)) {
    for rows in rows.chunk_by(|a, b| gc_id(a) == gc_id(b)) {
        if let Some(id) = rows.first().map(&gc_id) {
            each(id, &|walk| rows.iter().for_each(|row| add(walk, row)));
        }
    }
}

/// References, those of an object mostly one behind the other.
#[derive(Debug, Default)]
pub(super) struct References {
    /// The sources, and how many of the targets are of each.
    sources: Packed,
    targets: Halves,
    count: u64,
    /// The source that was packed last.
    last: u64,
    /// The source of the last references, which is not packed yet, and how many these are.
    source: u64,
    run: u64,
}

impl References {
    /// Adds a reference.
    #[inline]
    pub fn push(&mut self, source: u64, target: u64) {
        if source != self.source && self.run > 0 {
            self.sources.push_step(self.last, self.source);
            self.sources.push(self.run);
            (self.last, self.run) = (self.source, 0);
        }
        (self.source, self.run) = (source, self.run + 1);
        self.targets.push(target);
        self.count += 1;
    }

    /// The sources, and how many of the targets are of each, in the order in which they came.
    pub fn sources(&self) -> impl Iterator<Item = (u64, u64)> {
        let (mut numbers, mut last) = (self.sources.numbers(), 0);
        let mut unpacked = (self.run > 0).then_some((self.source, self.run));
        std::iter::from_fn(move || match numbers.step(last) {
            Some(source) => {
                last = source;
                Some((source, numbers.next()?))
            }
            None => unpacked.take(),
        })
    }

    /// The targets in the order in which they came.
    pub fn targets(&self) -> impl Iterator<Item = u64> {
        self.targets.iter()
    }

    /// Memory that the references take.
    fn bytes(&self) -> u64 {
        self.sources.bytes() + self.targets.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::dice::Dice;

    #[test]
    fn a_walk_gives_back_what_came() {
        let mut dice = Dice(3);
        let mut walk = Walk::default();
        let (mut objects, mut references) = (Vec::new(), Vec::new());
        let mut address = 1 << 40;
        for number in 0..20_000u64 {
            address = if number % 500 == 0 { dice.below(1 << 48) } else { address + dice.below(100) };
            let (size, kind) = (dice.below(50) * 8, dice.below(30));
            walk.object(address, size, kind);
            objects.push((address, size, kind));
            for _ in 0..dice.below(if number == 77 { 9000 } else { 4 }) {
                let target = dice.below(1 << 48);
                walk.references.push(address, target);
                references.push((address, target));
            }
        }
        let back = walk.objects().map(|(address, shape)| {
            let Shape { size, kind } = walk.shapes[shape as usize];
            (address, size, walk.types[kind as usize])
        });
        assert!(back.eq(objects.iter().copied()));
        let sources = walk.references.sources().flat_map(|(source, count)| (0..count).map(move |_| source));
        assert!(sources.zip(walk.references.targets()).eq(references.iter().copied()));
        assert_eq!(
            (walk.references.targets().count(), walk.reference_count()),
            (references.len(), references.len() as u64)
        );
        assert_eq!((walk.object_count, walk.dependents.sources().next()), (20_000, None));
        let (mut at, stretches) = (objects.iter(), walk.stretches().unwrap());
        for Stretch { first, last, objects } in stretches {
            let of: Vec<u64> = at.by_ref().take(*objects as usize).map(|(address, ..)| *address).collect();
            assert_eq!((of.first(), of.last()), (Some(first), Some(last)));
            assert!(of.is_sorted_by(|a, b| a < b));
        }
        assert!(at.next().is_none() && stretches.len() > 30);
    }
}
