//! Reads tables of ranges. They have millions of rows, so that columns are taken as slices where they can be.

use tracequet_dataset::error::Result;
use tracequet_dataset::read::{Column, Recording};

/// A range that survived a collection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub gc_id: u32,
    /// First bytes before and after the collection, and the length.
    pub old: u64,
    pub new: u64,
    pub length: u64,
    /// Generations before and after, where they are known.
    pub before: Option<u64>,
    pub after: Option<u64>,
    /// Whether the length is only a lower bound.
    pub is_clamped: bool,
}

/// A column of 64-bit numbers.
struct Numbers<'b> {
    all: Option<&'b [u64]>,
    column: Column<'b>,
}

impl<'b> Numbers<'b> {
    fn of(column: Column<'b>) -> Numbers<'b> {
        Numbers { all: column.u64s(), column }
    }

    fn at(&self, row: usize) -> Option<u64> {
        match self.all {
            Some(all) => all.get(row).copied(),
            None => self.column.number(row),
        }
    }
}

/// Calls `take` with each range of a table, which has their starts before and after the collection in the columns `old` and `new`.
pub(crate) fn each_range(
    recording: &Recording<'_>,
    table: &str,
    [old, new]: [&str; 2],
    mut take: impl FnMut(Range),
) -> Result<()> {
    if !recording.tables().any(|found| found.name == table) {
        return Ok(());
    }
    let mut names = vec!["gc_id", old, "range_length", "generation_before", "generation_after", "length_kind"];
    if new != old {
        names.push(new);
    }
    for batch in recording.table(table)?.scan().columns(names).batches()? {
        let batch = batch?;
        let column = |name| Column::of(&batch, name);
        let (gc, kind) = (column("gc_id")?, column("length_kind")?);
        let (old, new) = (Numbers::of(column(old)?), Numbers::of(column(new)?));
        let length = Numbers::of(column("range_length")?);
        let (before, after) = (column("generation_before")?, column("generation_after")?);
        let may_be_clamped = kind.may_have("clamped");
        for row in 0..batch.num_rows() {
            let (Some(gc_id), Some(length)) = (gc.number(row), length.at(row)) else { continue };
            let (Some(old), Some(new)) = (old.at(row), new.at(row)) else { continue };
            let is_clamped = may_be_clamped && kind.text(row) == Some("clamped");
            let (before, after) = (before.number(row), after.number(row));
            take(Range { gc_id: gc_id as u32, old, new, length, before, after, is_clamped });
        }
    }
    Ok(())
}
