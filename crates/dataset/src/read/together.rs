//! A table of several recordings, where rows that lie side by side in the files of a pack are read in one go.

use std::ops::Range;

use crate::prelude::*;

use super::open::Dataset;
use super::packed_rows::PackedRows;
use super::table::Table;

/// Rows of other recordings that are read and dropped between two that are wanted: opening a file again costs about as
/// much.
const MAX_BETWEEN: u64 = 1 << 10;

/// Rows of a pack: of recordings, by their places among those that are wanted, and where the rows of each lie.
struct Stretch<'d> {
    pack: &'d PackedRows,
    members: Vec<(usize, Range<u64>)>,
}

impl Stretch<'_> {
    /// From the first row to the last.
    fn rows(&self) -> Range<u64> {
        let begin = self.members.first().map_or(0, |(_, rows)| rows.start);
        begin..self.members.last().map_or(begin, |(_, rows)| rows.end)
    }
}

impl Dataset {
    /// Reads a table of several recordings of the dataset, by their keys. Each batch comes with the place of its
    /// recording among the keys; those of a recording come in the order of its rows. Returns which of the recordings
    /// have the table.
    ///
    /// `columns` names those that are read, of a table that is about to be read. In a dataset of many recordings
    /// opening files is most of the work, so that of recordings in one pack its file is read once.
    pub fn each_batch<'c>(
        &self,
        table: &str,
        keys: &[&str],
        columns: impl Fn(&Table) -> Result<Vec<&'c str>>,
        mut take: impl FnMut(usize, &RecordBatch) -> Result<()>,
    ) -> Result<Vec<bool>> {
        let (mut have, mut packed) = (Vec::with_capacity(keys.len()), Vec::new());
        for (place, key) in keys.iter().enumerate() {
            if let Some((pack, rows)) = self.rows_in_pack(key, table) {
                packed.push((place, pack, rows));
                have.push(true);
                continue;
            }
            let recording = self.recording(Some(key))?;
            if recording.has_no_rows(table) {
                have.push(true);
                continue;
            }
            let found = recording.table(table).ok();
            have.push(found.is_some());
            if let Some(found) = found {
                for batch in found.scan().columns(columns(&found)?).batches()? {
                    take(place, &batch?)?;
                }
            }
        }
        packed.sort_by(|a, b| (a.1.name(), a.2.start).cmp(&(b.1.name(), b.2.start)));
        for stretch in stretches(packed) {
            let (rows, mut members) = (stretch.rows(), stretch.members.as_slice());
            let found = self.table_of(table, self.pieces_of_rows(stretch.pack, table, &rows));
            let mut begin = rows.start;
            for batch in found.scan().columns(columns(&found)?).batches()? {
                let batch = batch?;
                let end = begin.saturating_add(batch.num_rows() as u64);
                while let Some(((place, rows), others)) = members.split_first() {
                    let (first, last) = (rows.start.max(begin), rows.end.min(end));
                    if first < last {
                        // Both lie within the batch.
                        let (first, count) = ((first - begin) as usize, (last - first) as usize);
                        take(*place, &batch.slice(first, count))?;
                    }
                    if rows.end > end {
                        break;
                    }
                    members = others;
                }
                begin = end;
            }
        }
        Ok(have)
    }
}

/// Rows in the order of packs and rows, those together that are read in one go.
fn stretches(rows: Vec<(usize, &PackedRows, Range<u64>)>) -> Vec<Stretch<'_>> {
    let mut all: Vec<Stretch<'_>> = Vec::new();
    for (place, pack, rows) in rows {
        match all.last_mut() {
            Some(last)
                if last.pack.name() == pack.name() && rows.start.saturating_sub(last.rows().end) <= MAX_BETWEEN =>
            {
                last.members.push((place, rows));
            }
            _ => all.push(Stretch { pack, members: vec![(place, rows)] }),
        }
    }
    all
}
