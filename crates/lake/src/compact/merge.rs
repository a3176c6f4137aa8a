//! The rows of one table of many recordings, from the files where they lie into those of a pack.

use std::collections::hash_map::Entry as Slot;
use std::fs::File;
use std::ops::Range;

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;

use crate::files::{MergedTable, merged_schema};
use crate::prelude::*;
use tracequet_dataset::format::{Format, PackedFile};
use tracequet_dataset::read::shared_file::SharedFile;
use tracequet_dataset::read::{Batches, Footers, Table, parquet_file};

/// The footer of a file below this size is read with its rows, and its row groups are never copied as they are.
const SMALL_BYTES: u64 = 1 << 20;

/// A file from which rows come.
#[derive(Debug)]
pub(super) struct Input {
    /// The name in the dataset.
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    /// Whether several recordings have rows in it.
    pub(super) is_shared: bool,
}

/// Rows that come next: all that a recording has in a file.
#[derive(Debug)]
pub(super) struct Part {
    /// The place of the recording in the pack.
    pub(super) member: usize,
    /// The place of the file among the inputs.
    pub(super) input: usize,
    pub(super) rows: Range<u64>,
}

/// A failure: with a file from which rows come, or elsewhere.
#[derive(Debug)]
pub(super) enum Failed {
    /// The place of the file among the inputs.
    Input(usize, Error),
    /// Something else.
    Other(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Other(error)
    }
}

/// The row groups of a file.
struct Groups {
    path: PathBuf,
    file: SharedFile,
    footer: ArrowReaderMetadata,
    /// Where each begins, and where the last one ends.
    begins: Vec<u64>,
}

/// Rows that are read one after the other from a file.
struct Cursor {
    input: usize,
    next: u64,
    batches: Batches,
    rest: Option<RecordBatch>,
}

/// Merges the parts, which are in the order of recordings and of rows, into files whose names begin with `stem`.
/// `fetch` makes the content of a file of the dataset a file of this machine.
pub(super) fn merge(
    table: &str,
    inputs: &[Input],
    parts: &[Part],
    stem: &Path,
    schema_version: u32,
    fetch: &dyn Fn(&str) -> Result<PathBuf>,
) -> std::result::Result<Vec<(PathBuf, PackedFile)>, Failed> {
    // The file with most rows shows how columns are best encoded; among equals the first.
    let longest = parts.iter().rev().max_by_key(|part| part.rows.end.saturating_sub(part.rows.start));
    let mut sources =
        Sources { table, inputs, fetch, groups: HashMap::new(), cursor: None, footers: Footers::default() };
    let Some(longest) = longest.map(|part| part.input) else {
        if inputs.is_empty() || !MergedTable::has_file_without_rows(table) {
            return Ok(Vec::new());
        }
        let schema = sources.groups(0)?.footer.schema();
        return Ok(MergedTable::without_rows(table, stem.to_owned(), schema, schema_version)?);
    };
    let mut merged = sources.begin(longest, stem, schema_version)?;
    let (mut at, mut row) = (0, parts.first().map_or(0, |part| part.rows.start));
    while let Some(part) = parts.get(at) {
        if row >= part.rows.end {
            at += 1;
            let next = parts.get(at);
            if next.is_none_or(|next| next.member != part.member) {
                merged.end_of_recording()?;
            }
            row = next.map_or(0, |next| next.rows.start);
            continue;
        }
        let Some(input) = inputs.get(part.input) else { return Err(no_input(table)) };
        if !input.is_shared && input.bytes < SMALL_BYTES {
            sources.read(&mut merged, part.input, None)?;
            row = part.rows.end;
            continue;
        }
        let (number, group) = sources.group_at(part.input, row)?;
        if group.start == row && are_together(parts, at, group.end) && sources.is_worth_copying(part.input, number) {
            sources.copy(&mut merged, part.input, number)?;
            row = group.end;
            // The group may have had rows of recordings that come next.
            while parts.get(at).is_some_and(|part| part.rows.end < row) {
                at += 1;
            }
            continue;
        }
        let end = group.end.min(part.rows.end);
        sources.read(&mut merged, part.input, Some(row..end))?;
        row = end;
    }
    Ok(merged.finish()?)
}

/// Whether the rows of a file up to `end` are wanted one after the other, from those of a part on.
fn are_together(parts: &[Part], at: usize, end: u64) -> bool {
    let Some(first) = parts.get(at) else { return false };
    let mut reached = first.rows.end;
    for part in parts.iter().skip(at + 1) {
        if reached >= end || part.input != first.input || part.rows.start != reached {
            break;
        }
        reached = part.rows.end;
    }
    reached >= end
}

fn no_input(table: &str) -> Failed {
    Failed::Other(Error::Internal(format!("table {table}: rows of no file")))
}

/// The files from which rows come.
struct Sources<'m> {
    table: &'m str,
    inputs: &'m [Input],
    fetch: &'m dyn Fn(&str) -> Result<PathBuf>,
    groups: HashMap<usize, Groups>,
    cursor: Option<Cursor>,
    footers: Footers,
}

impl Sources<'_> {
    /// The merged table, with columns and encodings as in one of the files.
    fn begin(&mut self, input: usize, stem: &Path, schema_version: u32) -> std::result::Result<MergedTable, Failed> {
        let table = self.table;
        let footer = &self.groups(input)?.footer;
        let largest = footer.metadata().row_groups().iter().max_by_key(|group| group.num_rows());
        let Some(largest) = largest else { return Err(no_input(table)) };
        let schema = merged_schema(footer.schema());
        Ok(MergedTable::new(table, stem.to_owned(), schema, largest, schema_version)?)
    }

    fn groups(&mut self, input: usize) -> std::result::Result<&Groups, Failed> {
        match self.groups.entry(input) {
            Slot::Occupied(known) => Ok(known.into_mut()),
            Slot::Vacant(free) => {
                let Some(found) = self.inputs.get(input) else { return Err(no_input(self.table)) };
                let open = || {
                    let path = (self.fetch)(&found.name)?;
                    let file = File::open(&path).and_then(SharedFile::new).map_err(Error::io(&path))?;
                    let footer = parquet_file::footer_with_pages(&file, &path)?;
                    let mut begins = vec![0u64];
                    for group in footer.metadata().row_groups() {
                        let rows = u64::try_from(group.num_rows()).unwrap_or_default();
                        begins.push(begins.last().copied().unwrap_or_default().saturating_add(rows));
                    }
                    match begins.last() {
                        Some(rows) if *rows == found.rows => Ok(Groups { path, file, footer, begins }),
                        rows => Err(wrong_rows(path, rows.copied().unwrap_or_default(), found.rows)),
                    }
                };
                Ok(free.insert(open().map_err(|error| Failed::Input(input, error))?))
            }
        }
    }

    /// The row group with a row of a file, and its rows.
    fn group_at(&mut self, input: usize, row: u64) -> std::result::Result<(usize, Range<u64>), Failed> {
        let table = self.table;
        let begins = &self.groups(input)?.begins;
        // Of groups without rows the last one begins where the next one does.
        let number = begins.partition_point(|begin| *begin <= row).saturating_sub(1);
        match (begins.get(number), begins.get(number + 1)) {
            (Some(begin), Some(end)) => Ok((number, *begin..*end)),
            _ => Err(no_input(table)),
        }
    }

    fn is_worth_copying(&self, input: usize, group: usize) -> bool {
        let groups = self.groups.get(&input).and_then(|groups| groups.footer.metadata().row_groups().get(group));
        groups.is_some_and(MergedTable::is_worth_copying)
    }

    fn copy(&mut self, merged: &mut MergedTable, input: usize, group: usize) -> std::result::Result<(), Failed> {
        let groups = self.groups(input)?;
        merged.copy(&groups.file, &groups.footer, group).map_err(|error| match error {
            // Of the columns, or of bytes that are not there.
            Error::Internal(_) => Failed::Input(input, error),
            _ => Failed::Other(error),
        })
    }

    /// Hands on these rows of a file; without a range all.
    fn read(
        &mut self,
        merged: &mut MergedTable,
        input: usize,
        rows: Option<Range<u64>>,
    ) -> std::result::Result<(), Failed> {
        let of_input = |error| Failed::Input(input, error);
        let Some(found) = self.inputs.get(input) else { return Err(no_input(self.table)) };
        let Some(rows) = rows else {
            let path = (self.fetch)(&found.name).map_err(of_input)?;
            let mut read = 0u64;
            for batch in Table::of_file(self.table, path.clone(), Format::Parquet).scan().batches().map_err(of_input)? {
                let batch = batch.map_err(of_input)?;
                read = read.saturating_add(batch.num_rows() as u64);
                merged.add(batch).map_err(|error| of_columns(input, &found.name, error))?;
            }
            return if read == found.rows { Ok(()) } else { Err(of_input(wrong_rows(path, read, found.rows))) };
        };
        let is_next = |cursor: &Cursor| cursor.input == input && cursor.next == rows.start;
        let mut cursor = match self.cursor.take().filter(is_next) {
            Some(cursor) => cursor,
            None => {
                let path = self.groups(input)?.path.clone();
                let table = Table::of_rows(self.table, path, rows.start..found.rows, found.rows, &self.footers);
                let batches = table.scan().batches().map_err(of_input)?;
                Cursor { input, next: rows.start, batches, rest: None }
            }
        };
        while cursor.next < rows.end {
            let batch = match cursor.rest.take().map(Ok).or_else(|| cursor.batches.next()) {
                Some(batch) => batch.map_err(of_input)?,
                None => return Err(of_input(wrong_rows(found.name.clone().into(), cursor.next, found.rows))),
            };
            let wanted = usize::try_from(rows.end - cursor.next).unwrap_or(usize::MAX).min(batch.num_rows());
            if wanted < batch.num_rows() {
                cursor.rest = Some(batch.slice(wanted, batch.num_rows() - wanted));
            }
            cursor.next = cursor.next.saturating_add(wanted as u64);
            merged.add(batch.slice(0, wanted)).map_err(|error| of_columns(input, &found.name, error))?;
        }
        self.cursor = Some(cursor);
        Ok(())
    }
}

/// The failure when rows of a file were added: its columns, or something else.
fn of_columns(input: usize, name: &str, error: Error) -> Failed {
    match error {
        Error::Internal(what) => {
            let expected = "the columns that the other files of its table have".into();
            Failed::Input(input, Error::Dataset { path: name.into(), what, expected })
        }
        _ => Failed::Other(error),
    }
}

fn wrong_rows(path: PathBuf, own: u64, expected: u64) -> Error {
    Error::Dataset { path, what: format!("has {own} rows"), expected: format!("{expected}, as its entry says") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_copied_when_its_rows_follow_each_other() {
        let part = |member, input, rows| Part { member, input, rows };
        let parts = [part(0, 0, 0..10), part(1, 0, 10..15), part(2, 1, 0..5), part(3, 0, 15..30)];
        assert!(are_together(&parts, 0, 10) && are_together(&parts, 0, 15) && are_together(&parts, 3, 30));
        assert!(!are_together(&parts, 0, 16), "another recording comes between");
        assert!(!are_together(&parts, 3, 31), "rows that nobody wants");
        assert!(!are_together(&parts, 4, 1));
    }
}
