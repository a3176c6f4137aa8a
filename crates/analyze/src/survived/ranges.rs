//! The ranges of some collections in columns, as in the table, so that scanning them is fast.

use std::collections::HashMap;

use crate::collection::Listed;
use crate::prelude::*;

/// A range with where it went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub start: u64,
    pub new_start: u64,
    pub clamped: bool,
}

/// The ranges of a table.
#[derive(Default)]
pub(super) struct Ranges {
    starts: Vec<u64>,
    new_starts: Vec<u64>,
    lengths: Vec<u64>,
    /// Places of those whose length is only a lower bound; they are rare.
    clamped: Vec<usize>,
    /// Places of the rows of each collection, in runs.
    runs: HashMap<u32, Vec<std::ops::Range<usize>>>,
}

impl Ranges {
    /// Reads the ranges of the collections that have a place in `wanted`. `listed` says what a row is.
    pub fn read<R: Row, T>(
        recording: &Recording<'_>,
        wanted: &HashMap<u32, T>,
        listed: impl Fn(R::Of<'_>) -> Listed,
    ) -> Result<Ranges> {
        let mut ranges = Ranges::default();
        let (Some(first), Some(last)) = (wanted.keys().min(), wanted.keys().max()) else { return Ok(ranges) };
        // Rows of one collection follow each other: which one it is, whether it is wanted, and where its rows begin.
        let mut open: Option<(u32, bool, usize)> = None;
        recording.scan::<R>()?.between("gc_id", u64::from(*first)..=u64::from(*last)).each::<R>(|row| {
            let Listed { gc_id, range, .. } = listed(row);
            let is_wanted = match open {
                Some((id, is_wanted, _)) if id == gc_id => is_wanted,
                _ => {
                    ranges.end(open);
                    let is_wanted = wanted.contains_key(&gc_id);
                    open = Some((gc_id, is_wanted, ranges.starts.len()));
                    is_wanted
                }
            };
            if is_wanted {
                ranges.clamped.extend(range.clamped.then_some(ranges.starts.len()));
                ranges.starts.push(range.start);
                ranges.new_starts.push(range.new_start);
                ranges.lengths.push(range.length);
            }
            held(recording, R::TABLE, ranges.starts.len() as u64, 24)
        })?;
        ranges.end(open);
        Ok(ranges)
    }

    /// The rows of a collection have ended.
    fn end(&mut self, open: Option<(u32, bool, usize)>) {
        let Some((gc_id, true, from)) = open else { return };
        let place = from..self.starts.len();
        let runs = self.runs.entry(gc_id).or_default();
        match runs.last_mut().filter(|last| last.end == place.start) {
            Some(last) => last.end = place.end,
            None => runs.push(place),
        }
    }

    /// The first range of a collection that holds an address.
    pub fn holder(&self, gc_id: u32, address: u64) -> Option<Range> {
        self.runs.get(&gc_id)?.iter().find_map(|run| {
            let (starts, lengths) = (self.starts.get(run.clone())?, self.lengths.get(run.clone())?);
            let holds = |(start, length): (&u64, &u64)| *start <= address && address - start < *length;
            starts.iter().zip(lengths).position(holds).and_then(|place| self.at(run.start + place))
        })
    }

    /// The range of a collection with the highest start at or below an address; of those with the same start a clamped one.
    pub fn nearest(&self, gc_id: u32, address: u64) -> Option<Range> {
        let places = self.runs.get(&gc_id)?.iter().cloned().flatten();
        let ranges = places.filter_map(|place| self.at(place)).filter(|range| range.start <= address);
        ranges.max_by_key(|range| (range.start, range.clamped))
    }

    fn at(&self, place: usize) -> Option<Range> {
        Some(Range {
            start: *self.starts.get(place)?,
            new_start: *self.new_starts.get(place)?,
            clamped: self.clamped.binary_search(&place).is_ok(),
        })
    }
}
