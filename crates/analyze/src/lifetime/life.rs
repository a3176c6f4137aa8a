//! The life of a sampled object, as far as it is known.

use super::sample::Sample;
use crate::collection::Doubt;

/// The fate of an object by the end of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// A collection found it dead.
    Dead,
    /// The object survived all collections of its generation, and there was one; or it is never collected.
    Alive,
    /// The recording does not say; why.
    Unknown(Doubt),
}

impl Fate {
    /// The word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Fate::Dead => "dead",
            Fate::Alive => "alive",
            Fate::Unknown(_) => "unknown",
        }
    }
}

/// The life of an object, as far as collections showed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// The fate.
    pub fate: Fate,
    /// The first collection that could have collected it; 0 for none.
    pub first_gc_id: u32,
    /// The collection that found it dead, or after which nothing is known; 0 for none.
    pub end_gc_id: u32,
    /// Collections of its generation that it survived.
    pub survived_collections: u32,
    /// The generation when it was last seen.
    pub generation_at_end: Option<u8>,
    /// The highest one that it was seen in.
    pub highest_generation: Option<u8>,
    /// Until when it lived at least, nanoseconds since the recording began.
    pub last_alive_ns: i64,
    /// By when it was unreachable, if it is dead.
    pub dead_ns: Option<i64>,
    /// Where it was last seen.
    pub end_object_id: u64,
}

impl Life {
    /// Of an object that no collection has seen yet.
    pub(super) fn of(sample: &Sample) -> Life {
        Life {
            fate: Fate::Unknown(Doubt::NotCollected),
            first_gc_id: 0,
            end_gc_id: 0,
            survived_collections: 0,
            generation_at_end: None,
            highest_generation: None,
            last_alive_ns: sample.ts_ns,
            dead_ns: None,
            end_object_id: sample.object_id,
        }
    }

    /// Notes that the object lies in this generation now.
    pub(super) fn seen_in(&mut self, generation: Option<u8>) {
        if generation.is_some() {
            self.generation_at_end = generation;
            self.highest_generation = self.highest_generation.max(generation);
        }
    }

    /// Whether it came through the first collection that could have collected it. `None` when that is not known.
    pub fn survived_first(&self) -> Option<bool> {
        match (self.survived_collections, self.fate) {
            (1.., _) => Some(true),
            (0, Fate::Dead) => Some(false),
            _ => None,
        }
    }

    /// Whether it was promoted to generation 2.
    pub fn was_promoted(&self) -> bool {
        self.highest_generation == Some(2)
    }

    /// Whether it died in generation 2, or among large or pinned objects.
    pub fn died_old(&self) -> bool {
        self.fate == Fate::Dead && self.generation_at_end.is_some_and(|generation| (2..=4).contains(&generation))
    }
}

/// A sample with the life of its object.
#[derive(Clone, Copy, Debug)]
pub struct Lifetime<'s> {
    /// The sample.
    pub sample: &'s Sample,
    /// The number of times that it counts.
    pub weight: u32,
    /// The life.
    pub life: &'s Life,
}

impl Lifetime<'_> {
    /// Bytes that it stands for.
    pub fn bytes(&self) -> Option<u64> {
        self.sample.allocation_bytes.map(|bytes| bytes.saturating_mul(self.weight.into()))
    }

    /// Objects that it stands for.
    pub fn objects(&self) -> Option<f64> {
        self.sample.object_count.map(|count| count * f64::from(self.weight))
    }
}
