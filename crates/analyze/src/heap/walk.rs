//! One walk of the heap as its rows come, packed: some three bytes an object and five a reference.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::packed::{Numbers, Packed};

/// References of an object that are packed together.
const RUN: usize = 4096;

/// Memory of a shape or a type: its row, and the map that finds it.
const SHAPE_STORED: u64 = 96;

/// What many objects have in common: their bytes, and their type as a place among the types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub size: u64,
    pub kind: u32,
}

/// The objects and references of a walk.
#[derive(Debug, Default)]
pub(super) struct Walk {
    objects: Packed,
    object_count: u64,
    /// Where the last object ended.
    last_end: u64,
    shapes: Vec<Shape>,
    shape_places: HashMap<Shape, u32, RandomState>,
    types: Vec<u64>,
    type_places: HashMap<u64, u32, RandomState>,
    /// The type of the last object, and its place.
    last_type: Option<(u64, u32)>,
    /// From fields and elements of arrays.
    pub references: References,
    /// From the keys of dependent handles to their values.
    pub dependents: References,
}

impl Walk {
    /// Adds an object.
    pub fn object(&mut self, address: u64, size: u64, type_id: u64) {
        let kind = match self.last_type {
            Some((last, place)) if last == type_id => place,
            _ => *self.type_places.entry(type_id).or_insert_with(|| {
                self.types.push(type_id);
                self.types.len() as u32 - 1
            }),
        };
        self.last_type = Some((type_id, kind));
        let shape = Shape { size, kind };
        let place = *self.shape_places.entry(shape).or_insert_with(|| {
            self.shapes.push(shape);
            self.shapes.len() as u32 - 1
        });
        self.objects.push_step(self.last_end, address);
        self.objects.push(place.into());
        self.last_end = address.wrapping_add(size);
        self.object_count += 1;
    }

    /// Objects so far.
    pub fn object_count(&self) -> u64 {
        self.object_count
    }

    /// The address of each object, and the place of its shape.
    pub fn objects(&self) -> impl Iterator<Item = (u64, u32)> {
        let (mut numbers, mut end) = (self.objects.numbers(), 0u64);
        std::iter::from_fn(move || {
            let address = numbers.step(end)?;
            let shape = numbers.next()? as u32;
            end = address.wrapping_add(self.shapes.get(shape as usize)?.size);
            Some((address, shape))
        })
    }

    /// What objects have in common.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// The ids of the types.
    pub fn types(&self) -> &[u64] {
        &self.types
    }

    /// References so far, of both kinds.
    pub fn reference_count(&self) -> u64 {
        self.references.count + self.dependents.count
    }

    /// Memory that the walk takes.
    pub fn bytes(&self) -> u64 {
        let shapes = (self.shapes.len() + self.types.len()) as u64 * SHAPE_STORED;
        self.objects.bytes() + self.references.packed.bytes() + self.dependents.packed.bytes() + shapes
    }
}

/// References, those of an object mostly one behind the other.
#[derive(Debug, Default)]
pub(super) struct References {
    packed: Packed,
    count: u64,
    /// The source and the target that were packed last.
    last: (u64, u64),
    /// Source of the references in `run`, which are not packed yet.
    source: u64,
    run: Vec<u64>,
}

impl References {
    /// Adds a reference.
    #[inline]
    pub fn push(&mut self, source: u64, target: u64) {
        if source != self.source || self.run.len() == RUN {
            self.pack();
            self.source = source;
        }
        self.run.push(target);
        self.count += 1;
    }

    fn pack(&mut self) {
        let Some(end) = self.run.last() else { return };
        let (source, mut last) = self.last;
        self.packed.push_step(source, self.source);
        self.packed.push(self.run.len() as u64);
        for target in &self.run {
            self.packed.push_step(last, *target);
            last = *target;
        }
        self.last = (self.source, *end);
        self.run.clear();
    }

    /// Calls `each` with the sources, and how many of the references that follow are theirs.
    pub fn sources(&self, mut each: impl FnMut(u64, u32)) {
        let mut runs = self.runs();
        while let Some((source, count)) = runs.next_run() {
            each(source, count);
            (0..count).for_each(|_| _ = runs.next_target());
        }
    }

    /// The references in the order in which they came.
    pub fn runs(&self) -> Runs<'_> {
        Runs { numbers: self.packed.numbers(), last: (0, 0), left: 0, of: self, is_packed: true }
    }
}

/// References by their sources.
pub(super) struct Runs<'r> {
    numbers: Numbers<'r>,
    last: (u64, u64),
    left: u32,
    of: &'r References,
    is_packed: bool,
}

impl Runs<'_> {
    /// The next source, and how many targets of it follow. All targets of the one before were taken.
    #[inline]
    pub fn next_run(&mut self) -> Option<(u64, u32)> {
        if self.is_packed {
            if let Some(source) = self.numbers.step(self.last.0) {
                self.last.0 = source;
                self.left = self.numbers.next()? as u32;
                return Some((source, self.left));
            }
            self.is_packed = false;
            self.left = self.of.run.len() as u32;
            return (self.left > 0).then_some((self.of.source, self.left));
        }
        None
    }

    /// The next target of the source.
    #[inline]
    pub fn next_target(&mut self) -> Option<u64> {
        let left = self.left.checked_sub(1)?;
        self.left = left;
        if self.is_packed {
            self.last.1 = self.numbers.step(self.last.1)?;
            return Some(self.last.1);
        }
        let place = self.of.run.len().checked_sub(left as usize + 1)?;
        self.of.run.get(place).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

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
            let Shape { size, kind } = walk.shapes()[shape as usize];
            (address, size, walk.types()[kind as usize])
        });
        assert!(back.eq(objects.iter().copied()));
        let (mut runs, mut back) = (walk.references.runs(), Vec::new());
        while let Some((source, count)) = runs.next_run() {
            back.extend((0..count).map(|_| (source, runs.next_target().unwrap())));
            assert!(runs.next_target().is_none());
        }
        assert_eq!(back, references);
        let mut counted = 0;
        walk.references.sources(|_, count| counted += u64::from(count));
        assert_eq!((counted, walk.reference_count()), (references.len() as u64, references.len() as u64));
        assert_eq!((walk.object_count(), walk.dependents.runs().next_run()), (20_000, None));
    }
}
