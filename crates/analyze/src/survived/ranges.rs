//! The ranges of some collections in columns, as in the table, so that scanning them is fast.

use std::collections::HashMap;

use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::read::{Column, Recording};

use crate::held;

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
    /// Reads the ranges of the collections that have a place in `wanted`. `old` and `new` are the columns of the starts before
    /// and after.
    pub fn read<T: Sync>(
        recording: &Recording<'_>,
        table: &str,
        old: &str,
        new: &str,
        wanted: &HashMap<u32, T>,
    ) -> Result<Ranges> {
        let mut ranges = Ranges::default();
        let (Some(first), Some(last)) = (wanted.keys().min(), wanted.keys().max()) else { return Ok(ranges) };
        let table = recording.table(table)?;
        let mut names = vec!["gc_id", old, new, "range_length", "length_kind"];
        names.dedup();
        let scan = table.scan().columns(names).between("gc_id", u64::from(*first)..=u64::from(*last));
        let wrong = || {
            let what = "a column of ranges has nulls, or is of another type".into();
            Error::Dataset { path: table.path().to_owned(), what, expected: "columns as the schema has them".into() }
        };
        for batch in scan.batches()? {
            let batch = batch?;
            let numbers = |name: &str| Column::of(&batch, name)?.u64s().ok_or_else(wrong);
            let ids = Column::of(&batch, "gc_id")?.u32s().ok_or_else(wrong)?;
            let (starts, new_starts, lengths) = (numbers(old)?, numbers(new)?, numbers("range_length")?);
            let kinds = Column::of(&batch, "length_kind")?;
            let has_clamped = kinds.may_have("clamped");
            let mut row = 0;
            for run in ids.chunk_by(|a, b| a == b) {
                let rows = row..row + run.len();
                row = rows.end;
                let Some(id) = run.first().filter(|id| wanted.contains_key(id)) else { continue };
                let at = ranges.starts.len();
                for (from, to) in
                    [(starts, &mut ranges.starts), (new_starts, &mut ranges.new_starts), (lengths, &mut ranges.lengths)]
                {
                    to.extend_from_slice(from.get(rows.clone()).unwrap_or_default());
                }
                if has_clamped {
                    let clamped = rows.clone().filter(|row| kinds.text(*row) == Some("clamped"));
                    ranges.clamped.extend(clamped.map(|row| row - rows.start + at));
                }
                let place = at..ranges.starts.len();
                let runs = ranges.runs.entry(*id).or_default();
                match runs.last_mut().filter(|last| last.end == place.start) {
                    Some(last) => last.end = place.end,
                    None => runs.push(place),
                }
            }
            held(recording, table.name(), ranges.starts.len() as u64, 24)?;
        }
        Ok(ranges)
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
