//! Sums over lifetimes.

use super::life::{Fate, Lifetime};
use crate::subjects::pool::percentile;

/// The fates of a group's allocations. Bytes are those that samples stand for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums {
    /// Samples.
    pub samples: u64,
    /// Bytes allocated.
    pub allocated: u64,
    /// Of those whose fate in their first collection is known.
    pub tested: u64,
    /// Bytes that survived it.
    pub survived_first: u64,
    /// Bytes that were promoted to generation 2.
    pub promoted: u64,
    /// Bytes that died in generation 2, or among large or pinned objects.
    pub died_old: u64,
    /// Bytes that died.
    pub dead: u64,
    /// Bytes alive at the end.
    pub alive: u64,
    /// Bytes whose fate is not known.
    pub unknown: u64,
    /// Of dead samples the collections that they survived, and their time in nanoseconds, at most.
    lives: Vec<(u32, i64)>,
}

/// Of the lives of dead samples the median and the 90th percentile. Samples stand for about as many bytes each, so that
/// they are figures of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Percentiles {
    /// Collections survived: the median.
    pub collections_median: u32,
    /// The 90th percentile.
    pub collections_p90: u32,
    /// Nanoseconds from allocation to the collection that found it dead: the median.
    pub ns_median: i64,
    /// The 90th percentile.
    pub ns_p90: i64,
}

impl Sums {
    /// Adds a sample.
    pub(super) fn add(&mut self, lifetime: &Lifetime<'_>) {
        let (life, bytes) = (lifetime.life, lifetime.bytes().unwrap_or_default());
        let more = |sum: &mut u64, is_so: bool| {
            if is_so {
                *sum = sum.saturating_add(bytes);
            }
        };
        self.samples = self.samples.saturating_add(lifetime.weight.into());
        more(&mut self.allocated, true);
        more(&mut self.tested, life.survived_first().is_some());
        more(&mut self.survived_first, life.survived_first() == Some(true));
        more(&mut self.promoted, life.was_promoted());
        more(&mut self.died_old, life.died_old());
        more(&mut self.dead, life.fate == Fate::Dead);
        more(&mut self.alive, life.fate == Fate::Alive);
        more(&mut self.unknown, matches!(life.fate, Fate::Unknown(_)));
        if let Some(dead) = life.dead_ns {
            self.lives.push((life.survived_collections, dead.saturating_sub(lifetime.sample.ts_ns)));
        }
    }

    /// The lives of dead samples. `None` without any.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let mut collections: Vec<u32> = self.lives.iter().map(|life| life.0).collect();
        let mut times: Vec<i64> = self.lives.iter().map(|life| life.1).collect();
        collections.sort_unstable();
        times.sort_unstable();
        Some(Percentiles {
            collections_median: percentile(&collections, 50)?,
            collections_p90: percentile(&collections, 90)?,
            ns_median: percentile(&times, 50)?,
            ns_p90: percentile(&times, 90)?,
        })
    }
}
