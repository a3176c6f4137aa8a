//! The collections of a recording, from the tables of a dataset.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use tracequet_dataset::read::{Column, Recording, arrow_array::RecordBatch};
use tracequet_trace::error::{Error, Evidence, Result};

use super::rules::{Bound, Collection, Range};
use crate::held;

/// The tables that collections are found in.
pub const TABLES: [&str; 4] = ["gc", "gc_generation_range", "gc_surviving_range", "gc_moved_range"];

/// Ranges held in memory, unless one collection alone has more: 32 bytes each.
const MAX_RANGES: u64 = 4 << 20;

struct Gc {
    ranges: u64,
    collection: Collection,
}

/// The collections of a recording in the order of their starts, still without bounds and ranges.
pub(crate) struct ReadCollections<'r> {
    recording: &'r Recording<'r>,
    all: Vec<Gc>,
}

impl<'r> ReadCollections<'r> {
    /// Reads the table `gc`. Fails when no collection of the recording lists what survived.
    pub fn of(recording: &'r Recording<'r>) -> Result<ReadCollections<'r>> {
        let mut all = collections(recording)?;
        if all.iter().all(|gc| gc.ranges == 0) {
            let key = &recording.info().trace_id;
            let how = "they are recorded with the keyword 0x400000 of the runtime";
            let message = format!("no collection of the recording {key} lists survivors; {how}");
            return Err(Error::NotRecorded { what: Evidence::SurvivingRanges, message });
        }
        all.sort_by_key(|gc| gc.collection.gc_id);
        Ok(ReadCollections { recording, all })
    }

    /// All of them, in order.
    pub fn headers(&self) -> impl Iterator<Item = &Collection> {
        self.all.iter().map(|gc| &gc.collection)
    }

    /// Calls `each` with one after the other, with its bounds and ranges. Reads the other [`TABLES`], each row once.
    pub fn each(self, mut each: impl FnMut(&Collection) -> Result<()>) -> Result<()> {
        let mut rest = self.all.into_iter().peekable();
        while rest.peek().is_some() {
            let (mut some, mut ranges) = (Vec::new(), 0u64);
            while let Some(gc) = rest.next_if(|gc| some.is_empty() || ranges.saturating_add(gc.ranges) <= MAX_RANGES) {
                ranges = ranges.saturating_add(gc.ranges);
                some.push(gc);
            }
            fill(self.recording, &mut some)?;
            some.iter().try_for_each(|gc| each(&gc.collection))?;
        }
        Ok(())
    }
}

/// Reads bounds and ranges of some collections.
fn fill(recording: &Recording<'_>, some: &mut [Gc]) -> Result<()> {
    let mut places: HashMap<u32, usize> = some.iter().map(|gc| gc.collection.gc_id).zip(0..).collect();
    let ids = places.keys().copied();
    let (Some(first), Some(last)) = (ids.clone().min(), ids.max()) else { return Ok(()) };
    let ids = first..=last;
    places.shrink_to_fit();
    let mut rows_held = 0;
    let mut place = |id: u64, each: &mut dyn FnMut(&mut Collection)| {
        let place = u32::try_from(id).ok().and_then(|id| places.get(&id)).and_then(|place| some.get_mut(*place));
        if let Some(gc) = place {
            rows_held += 1;
            each(&mut gc.collection);
        }
        held(recording, "ranges", rows_held, size_of::<Range>() as u64)
    };
    let names = ["phase", "generation", "range_start", "range_length"];
    rows(recording, "gc_generation_range", names, &ids, |id, [phase, generation, start, length], row| {
        let generation = generation.number(row).and_then(|generation| u8::try_from(generation).ok());
        let Some(generation) = generation else { return Ok(()) };
        let bound = Bound { generation, start: number(start, row), length: number(length, row) };
        let is_end = phase.text(row) == Some("end");
        place(id, &mut |gc| if is_end { gc.after.push(bound) } else { gc.before.push(bound) })
    })?;
    for (table, old, new) in
        [("gc_surviving_range", "range_start", "range_start"), ("gc_moved_range", "old_range_start", "new_range_start")]
    {
        let names = [old, new, "range_length", "length_kind"];
        rows(recording, table, names, &ids, |id, [start, new_start, length, kind], row| {
            let range = Range {
                start: number(start, row),
                new_start: number(new_start, row),
                length: number(length, row),
                clamped: kind.text(row) == Some("clamped"),
            };
            place(id, &mut |gc| gc.ranges.push(range))
        })?;
    }
    Ok(())
}

fn number(column: &Column<'_>, row: usize) -> u64 {
    column.number(row).unwrap_or_default()
}

/// Calls `each` with the rows of a table that may be of these collections: with their `gc_id`, their columns and the row.
fn rows<const N: usize>(
    recording: &Recording<'_>,
    table: &str,
    names: [&str; N],
    ids: &RangeInclusive<u32>,
    mut each: impl FnMut(u64, &[Column<'_>; N], usize) -> Result<()>,
) -> Result<()> {
    // A column may be named twice: where a range stays, its old start is the new one.
    let mut wanted: Vec<&str> = ["gc_id"].into_iter().chain(names).collect();
    wanted.dedup();
    let scan = recording.table(table)?.scan().columns(wanted);
    for batch in scan.between("gc_id", u64::from(*ids.start())..=u64::from(*ids.end())).batches()? {
        let batch: RecordBatch = batch?;
        let id = Column::of(&batch, "gc_id")?;
        let mut columns = [id; N];
        for (column, name) in columns.iter_mut().zip(names) {
            *column = Column::of(&batch, name)?;
        }
        for row in 0..batch.num_rows() {
            each(number(&id, row), &columns, row)?;
        }
    }
    Ok(())
}

fn collections(recording: &Recording<'_>) -> Result<Vec<Gc>> {
    let mut found = Vec::new();
    let names = [
        "generation",
        "kind",
        "start_ts_ns",
        "end_ts_ns",
        "complete",
        "surviving_range_count",
        "moved_range_count",
        "process_id",
        "clr_instance_id",
        "gc_number",
    ];
    rows(recording, "gc", names, &(0..=u32::MAX), |id, columns, row| {
        let [generation, kind, start, end, complete, surviving, moved, process, clr, gc_number] = columns;
        let collection = Collection {
            gc_id: id as u32,
            runtime: (number(process, row), number(clr, row)),
            gc_number: number(gc_number, row) as u32,
            start_ns: number(start, row) as i64,
            end_ns: end.number(row).map(u64::cast_signed),
            generation: generation.number(row).and_then(|generation| u8::try_from(generation).ok()),
            background: Collection::is_background(kind.text(row)),
            complete: number(complete, row) == 1,
            ..Collection::default()
        };
        found.push(Gc { ranges: number(surviving, row).saturating_add(number(moved, row)), collection });
        held(recording, "gc", found.len() as u64, size_of::<Gc>() as u64)
    })?;
    Ok(found)
}
