//! Objects that are alive at a time, and growth between two times.
//!
//! At a time an object is alive when it is in the sense of [`Fate::Alive`] for a recording that ends then: it survived
//! a collection that had started, and none that was finished found it dead. What waits for a collection of generation 2
//! counts as alive at each time, so that the sums of two times compare. They are nearest to what the program holds
//! behind a collection of generation 2.

use std::collections::HashMap;

use crate::prelude::*;

use super::found::lifetimes;
use super::life::{Fate, Lifetime};
use super::names::{By, Group, Groups};

row!(struct GcRow of gc { gc_id, start_ts_ns, end_ts_ns, generation });

/// Memory of a collection.
const GC_STORED: u64 = 64;

/// The state of an object at a time, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The object is not there yet.
    Unborn,
    /// The object is alive.
    Alive,
    /// A collection found it dead.
    Dead,
    /// No collection has collected it so far, or the recording does not say.
    Unknown,
}

/// When collections start.
#[derive(Debug, Default)]
pub(super) struct Starts(HashMap<u32, i64>);

impl Starts {
    fn read(recording: &Recording<'_>) -> Result<(Starts, Vec<FullCollection>)> {
        let (mut starts, mut full) = (Starts::default(), Vec::new());
        each_row::<GcRow<'_>>(recording, GC_STORED, |gc| {
            starts.0.insert(gc.gc_id, gc.start_ts_ns);
            if gc.generation.is_some_and(|generation| generation >= 2) {
                full.extend(gc.end_ts_ns.map(|end_ns| FullCollection { gc_id: gc.gc_id, end_ns }));
            }
            Ok(())
        })?;
        full.retain(|gc| gc.end_ns > 0);
        full.sort_by_key(|gc| gc.end_ns);
        Ok((starts, full))
    }

    /// Of these collections.
    #[cfg(test)]
    pub fn of<'c>(collections: impl Iterator<Item = &'c crate::collection::Collection>) -> Starts {
        Starts(collections.map(|gc| (gc.gc_id, gc.start_ns)).collect())
    }

    /// The state of an object at a time, as far as it is known.
    pub fn state(&self, lifetime: &Lifetime<'_>, ns: i64) -> State {
        let life = lifetime.life;
        if lifetime.sample.ts_ns > ns {
            return State::Unborn;
        }
        if life.dead_ns.is_some_and(|dead| dead <= ns) {
            return State::Dead;
        }
        let is_alive =
            self.alive(lifetime).is_some_and(|(from, until)| from <= ns && until.is_none_or(|until| ns < until));
        if is_alive { State::Alive } else { State::Unknown }
    }

    /// From when on an object is alive, and from when on it is not, or is not known to be, if ever; `None` where it never is alive.
    fn alive(&self, lifetime: &Lifetime<'_>) -> Option<(i64, Option<i64>)> {
        let (life, born_ns) = (lifetime.life, lifetime.sample.ts_ns);
        let start = |gc_id: u32| self.0.get(&gc_id).copied();
        let from = match (life.survived_collections, life.fate) {
            (1.., _) => start(life.first_gc_id)?.max(born_ns),
            (0, Fate::Alive) => born_ns,
            _ => return None,
        };
        let lost = match life.fate {
            Fate::Unknown(_) if life.end_gc_id != 0 => start(life.end_gc_id),
            Fate::Unknown(_) if life.survived_collections > 0 => Some(life.last_alive_ns.saturating_add(1)),
            _ => None,
        };
        let until = lost.into_iter().chain(life.dead_ns).min();
        Some((from, until)).filter(|(from, until)| until.is_none_or(|until| *from < until))
    }
}

/// Calls `take` with each life in which an object is alive at some time: from when on, and from when on it is no longer, if ever.
pub fn live_times(
    recording: &Recording<'_>,
    mut take: impl FnMut(&Lifetime<'_>, i64, Option<i64>) -> Result<()>,
) -> Result<()> {
    let (starts, _) = Starts::read(recording)?;
    lifetimes(recording, |lifetime| match starts.alive(lifetime) {
        Some((from, until)) => take(lifetime, from, until),
        None => Ok(()),
    })
}

/// A collection of generation 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullCollection {
    /// The number of the collection.
    pub gc_id: u32,
    /// When it ended, nanoseconds since the recording began.
    pub end_ns: i64,
}

/// Objects that are alive at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// By group, those with the most bytes alive first.
    pub rows: Vec<LiveRow>,
    /// The last collection of generation 2 that had ended by then.
    pub last_full: Option<FullCollection>,
}

/// Bytes of a group at a time, as samples stand for them.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveRow {
    /// Type and method.
    pub group: Group,
    /// Samples that are alive.
    pub samples: u64,
    /// Bytes alive.
    pub alive: u64,
    /// Bytes that no collection has collected so far, or of which the recording does not say.
    pub unknown: u64,
}

/// Objects that are alive at a time, in nanoseconds since the recording began. Takes the types that `takes` says.
pub fn live_at(recording: &Recording<'_>, by: By, ns: i64, takes: impl Fn(&str) -> bool) -> Result<Live> {
    let (starts, full) = Starts::read(recording)?;
    let mut groups: Groups<'_, [u64; 3]> = Groups::new(recording, by)?;
    lifetimes(recording, |lifetime| {
        let state = starts.state(lifetime, ns);
        if !matches!(state, State::Alive | State::Unknown) {
            return Ok(());
        }
        let Some([samples, alive, unknown]) = groups.of(lifetime, &takes)? else { return Ok(()) };
        let bytes = lifetime.bytes().unwrap_or_default();
        if state == State::Alive {
            *samples = samples.saturating_add(lifetime.weight.into());
            *alive = alive.saturating_add(bytes);
        } else {
            *unknown = unknown.saturating_add(bytes);
        }
        Ok(())
    })?;
    let row = |(group, [samples, alive, unknown]): (Group, [u64; 3])| LiveRow { group, samples, alive, unknown };
    let rows = groups.finish(|[_, alive, unknown]| (*alive, *unknown)).into_iter().map(row).collect();
    Ok(Live { rows, last_full: last(&full, ns) })
}

fn last(full: &[FullCollection], ns: i64) -> Option<FullCollection> {
    full.partition_point(|gc| gc.end_ns <= ns).checked_sub(1).and_then(|place| full.get(place)).copied()
}

/// Objects that are alive at two times.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// By group, those that grow most first.
    pub rows: Vec<GrowthRow>,
    /// The last collections of generation 2 that had ended by these times.
    pub last_full: [Option<FullCollection>; 2],
}

/// The change of the bytes of a group between two times, as samples stand for them. `after` is `before`, less `gone`
/// and `lost`, and `new`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GrowthRow {
    /// Type and method.
    pub group: Group,
    /// Bytes alive at the first time.
    pub before: u64,
    /// Bytes alive at the second time.
    pub after: u64,
    /// Of these the ones that were not alive at the first time.
    pub new: u64,
    /// Of the bytes alive at the first time those that are dead at the second.
    pub gone: u64,
    /// Bytes of which nothing is known at the second time.
    pub lost: u64,
}

impl GrowthRow {
    /// Bytes alive at the second time that are more than at the first.
    pub fn growth(&self) -> i64 {
        let growth = i128::from(self.after) - i128::from(self.before);
        i64::try_from(growth).unwrap_or(if self.after > self.before { i64::MAX } else { i64::MIN })
    }
}

/// The change of what is alive from a time to a later one, in nanoseconds since the recording began. Takes the types
/// that `takes` says.
pub fn growth(recording: &Recording<'_>, by: By, [from, to]: [i64; 2], takes: impl Fn(&str) -> bool) -> Result<Growth> {
    let (starts, full) = Starts::read(recording)?;
    let mut groups: Groups<'_, GrowthRow> = Groups::new(recording, by)?;
    lifetimes(recording, |lifetime| {
        let states = [starts.state(lifetime, from), starts.state(lifetime, to)];
        if !states.contains(&State::Alive) {
            return Ok(());
        }
        let Some(changed) = groups.of(lifetime, &takes)? else { return Ok(()) };
        let bytes = lifetime.bytes().unwrap_or_default();
        let add = |sum: &mut u64| *sum = sum.saturating_add(bytes);
        match states {
            [State::Alive, State::Alive] => {}
            [State::Alive, State::Dead] => add(&mut changed.gone),
            [State::Alive, _] => add(&mut changed.lost),
            _ => add(&mut changed.new),
        }
        if states[0] == State::Alive {
            add(&mut changed.before);
        }
        if states[1] == State::Alive {
            add(&mut changed.after);
        }
        Ok(())
    })?;
    let rows = groups.finish(|row| (row.growth(), row.after)).into_iter();
    let rows = rows.map(|(group, row)| GrowthRow { group, ..row }).collect();
    Ok(Growth { rows, last_full: [last(&full, from), last(&full, to)] })
}
