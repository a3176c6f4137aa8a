//! The collections of a recording in the order of their ends, from the tables of a dataset.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use tracequet_dataset::read::{Column, Recording, arrow_array::RecordBatch};
use tracequet_trace::error::{Error, Evidence, Result};

use super::lineage::{Bound, CohortRow, Collection, Lineage, MAX_PIECES, Range};
use crate::held;

/// The tables that the cohorts are found in.
pub const TABLES: [&str; 4] = ["gc", "gc_generation_range", "gc_surviving_range", "gc_moved_range"];

/// Ranges held in memory, unless one collection alone has more: 32 bytes each.
const MAX_RANGES: u64 = 4 << 20;

struct Gc {
    runtime: (u64, u64),
    end_ns: i64,
    ranges: u64,
    collection: Collection,
}

/// Calls `each` with the cohorts of a recording after each of its collections, in the order of their ends. Reads the tables
/// [`TABLES`], each row once. Fails when no collection of the recording lists what survived.
pub fn cohorts(recording: &Recording<'_>, mut each: impl FnMut(&[CohortRow])) -> Result<()> {
    let mut left = collections(recording)?;
    if left.iter().all(|gc| gc.ranges == 0) {
        let key = &recording.info().trace_id;
        let how = "they are recorded with the keyword 0x400000 of the runtime";
        let message = format!("no collection of the recording {key} lists survivors; {how}");
        return Err(Error::NotRecorded { what: Evidence::SurvivingRanges, message });
    }
    left.sort_by_key(|gc| (gc.end_ns, gc.collection.gc_id));
    let mut runtimes: HashMap<(u64, u64), Lineage> = HashMap::new();
    let mut rest = left.into_iter().peekable();
    while rest.peek().is_some() {
        let (mut some, mut ranges) = (Vec::new(), 0u64);
        while let Some(gc) = rest.next_if(|gc| some.is_empty() || ranges.saturating_add(gc.ranges) <= MAX_RANGES) {
            ranges = ranges.saturating_add(gc.ranges);
            some.push(gc);
        }
        fill(recording, &mut some)?;
        for Gc { runtime, collection, .. } in some {
            let lineage = runtimes.entry(runtime).or_default();
            each(&lineage.collect(&collection));
            if runtimes.values().map(Lineage::pieces).sum::<usize>() > MAX_PIECES {
                let gc_id = collection.gc_id;
                let limit = "more than the 32 million that are followed";
                return Err(Error::TooLarge(format!(
                    "after collection {gc_id} the heap is in too many pieces: {limit}"
                )));
            }
        }
    }
    Ok(())
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
    ];
    rows(recording, "gc", names, &(0..=u32::MAX), |id, columns, row| {
        let [generation, kind, start, end, complete, surviving, moved, process, clr] = columns;
        let kind = kind.text(row);
        let collection = Collection {
            gc_id: id as u32,
            generation: generation.number(row).and_then(|generation| u8::try_from(generation).ok()),
            background: kind.map(|kind| kind == "background"),
            complete: number(complete, row) == 1,
            ..Collection::default()
        };
        found.push(Gc {
            runtime: (number(process, row), number(clr, row)),
            end_ns: end.number(row).unwrap_or_else(|| number(start, row)) as i64,
            ranges: number(surviving, row).saturating_add(number(moved, row)),
            collection,
        });
        held(recording, "gc", found.len() as u64, size_of::<Gc>() as u64)
    })?;
    Ok(found)
}
