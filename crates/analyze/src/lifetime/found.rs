//! The lifetimes of a recording: from the tables of a dataset, or from what was kept while it was converted.

use tracequet_dataset::read::{Column, Recording};
use tracequet_facts::fact::AllocationLifetime;
use tracequet_trace::error::{Error, Evidence, Result};
use tracequet_trace::guid::Guid;

use super::heap::Heaps;
use super::life::{Fate, Life, Lifetime};
use super::samples::{Sample, Samples};
use crate::collection::{Doubt, ReadCollections, SpilledCollections};

/// The table that `convert --lifetimes` fills.
const TABLE: &str = "allocation_lifetime";

/// The tables that lifetimes are found in.
pub const TABLES: [&str; 5] = ["allocation", "gc", "gc_generation_range", "gc_surviving_range", "gc_moved_range"];

/// Calls `each` with the lifetime of each sample of a recording: from the table `allocation_lifetime` if it has rows, else as
/// [`found_lifetimes`].
pub fn lifetimes(recording: &Recording<'_>, mut each: impl FnMut(&Lifetime<'_>) -> Result<()>) -> Result<()> {
    let is_there = recording.tables().any(|table| table.name == TABLE);
    if is_there && written_lifetimes(recording, &mut each)? > 0 {
        return Ok(());
    }
    found_lifetimes(recording, each)
}

/// Calls `each` with the lifetime of each sample of a recording, in the order of the table `allocation`. Reads the tables
/// [`TABLES`]. Fails when the recording has no allocation with the address of its object, or when no collection lists what
/// survived.
pub fn found_lifetimes(recording: &Recording<'_>, each: impl FnMut(&Lifetime<'_>) -> Result<()>) -> Result<()> {
    lifetimes_until(recording, u32::MAX, each)
}

/// The same, as if the recording ended with the collection of this number.
pub(super) fn lifetimes_until(
    recording: &Recording<'_>,
    last_gc_id: u32,
    mut each: impl FnMut(&Lifetime<'_>) -> Result<()>,
) -> Result<()> {
    let samples = samples(recording)?;
    if samples.rows().is_empty() {
        let key = &recording.info().trace_id;
        let how = "docs/LIFETIMES.md says by which keywords they are recorded";
        let message = format!("the recording {key} has no allocations with the addresses of their objects; {how}");
        return Err(Error::NotRecorded { what: Evidence::AllocatedObjects, message });
    }
    let collections = ReadCollections::of(recording)?;
    let mut heaps = Heaps::new(samples.rows(), &mut collections.headers());
    collections.each(|gc| {
        if gc.gc_id <= last_gc_id {
            heaps.collect(gc);
        }
        Ok(())
    })?;
    each_life(&samples, &heaps.finish(), |lifetime| each(&lifetime))
}

/// Calls `each` with the rows of `allocation_lifetime`; with none when the collections were too many to be kept.
pub fn stored_lifetimes(
    collections: &mut SpilledCollections,
    samples: &Samples,
    mut each: impl FnMut(&AllocationLifetime) -> Result<()>,
) -> Result<()> {
    let mut heaps = Heaps::new(samples.rows(), &mut collections.headers());
    collections.each(|gc| {
        heaps.collect(gc);
        Ok(true)
    })?;
    if collections.is_refused() {
        return Ok(());
    }
    each_life(samples, &heaps.finish(), |lifetime| {
        let Sample { ts_ns, process_id, thread_id, callsite_id, activity_id, type_id, source, object_id, .. } =
            *lifetime.sample;
        let life = lifetime.life;
        each(&AllocationLifetime {
            ts_ns,
            process_id,
            thread_id,
            callsite_id,
            activity_id,
            type_id,
            source,
            object_id,
            allocation_bytes: lifetime.bytes(),
            object_count: lifetime.objects(),
            sample_weight: lifetime.weight,
            fate: life.fate.word(),
            unknown_reason: match life.fate {
                Fate::Unknown(doubt) => Some(doubt.word()),
                _ => None,
            },
            first_gc_id: life.first_gc_id,
            end_gc_id: life.end_gc_id,
            survived_collections: life.survived_collections,
            generation_at_end: life.generation_at_end,
            highest_generation: life.highest_generation,
            last_alive_ts_ns: life.last_alive_ns,
            dead_ts_ns: life.dead_ns,
            end_object_id: life.end_object_id,
        })
    })
}

fn each_life(samples: &Samples, lives: &[Life], mut each: impl FnMut(Lifetime<'_>) -> Result<()>) -> Result<()> {
    let weight = samples.weight();
    samples.rows().iter().zip(lives).try_for_each(|(sample, life)| each(Lifetime { sample, weight, life }))
}

fn samples(recording: &Recording<'_>) -> Result<Samples> {
    let mut samples = Samples::new(recording.max_held());
    let names = [
        "source",
        "ts_ns",
        "process_id",
        "thread_id",
        "callsite_id",
        "type_id",
        "object_id",
        "allocation_bytes",
        "object_count",
        "activity_id",
    ];
    for batch in recording.table("allocation")?.scan().columns(names).batches()? {
        let batch = batch?;
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            columns.push(Column::of(&batch, name)?);
        }
        let [source, ts, process, thread, callsite, kind, object, bytes, count, activity] = columns.as_slice() else {
            continue;
        };
        for row in 0..batch.num_rows() {
            let number = |column: &Column<'_>| column.number(row).unwrap_or_default();
            let sample = Sample {
                thread_id: number(thread),
                callsite_id: number(callsite) as u32,
                type_id: number(kind),
                allocation_bytes: bytes.number(row),
                object_count: count.real(row),
                activity_id: guid(activity, row),
                ..Sample::new(number(ts).cast_signed(), number(process), number(object))
            };
            samples.add(source.text(row).unwrap_or_default(), sample);
        }
    }
    Ok(samples)
}

/// An id that may not be there.
fn guid(column: &Column<'_>, row: usize) -> Guid {
    column.text(row).and_then(Guid::parse).unwrap_or_default()
}

/// Calls `each` with the rows of `allocation_lifetime`, and gives their number.
fn written_lifetimes(recording: &Recording<'_>, mut each: impl FnMut(&Lifetime<'_>) -> Result<()>) -> Result<u64> {
    let names = [
        "ts_ns",
        "process_id",
        "thread_id",
        "callsite_id",
        "type_id",
        "source",
        "object_id",
        "allocation_bytes",
        "object_count",
        "sample_weight",
        "fate",
        "unknown_reason",
        "first_gc_id",
        "end_gc_id",
        "survived_collections",
        "generation_at_end",
        "highest_generation",
        "last_alive_ts_ns",
        "dead_ts_ns",
        "end_object_id",
        "activity_id",
    ];
    let mut rows = 0;
    for batch in recording.table(TABLE)?.scan().columns(names).batches()? {
        let batch = batch?;
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            columns.push(Column::of(&batch, name)?);
        }
        let [ts, process, thread, callsite, kind, source, object, bytes, count, weight, rest @ ..] = columns.as_slice()
        else {
            continue;
        };
        let [fate, reason, first, end, survived, at_end, highest, alive, dead, end_object, activity] = rest else {
            continue;
        };
        for row in 0..batch.num_rows() {
            let number = |column: &Column<'_>| column.number(row).unwrap_or_default();
            let byte = |column: &Column<'_>| column.number(row).and_then(|number| u8::try_from(number).ok());
            // What a row stands for has its weight in it.
            let weight = u32::try_from(number(weight)).unwrap_or(1).max(1);
            let sample = Sample {
                thread_id: number(thread),
                callsite_id: number(callsite) as u32,
                type_id: number(kind),
                source: Samples::word(source.text(row).unwrap_or_default()),
                allocation_bytes: bytes.number(row).map(|bytes| bytes / u64::from(weight)),
                object_count: count.real(row).map(|count| count / f64::from(weight)),
                activity_id: guid(activity, row),
                ..Sample::new(number(ts).cast_signed(), number(process), number(object))
            };
            let life = Life {
                fate: match fate.text(row) {
                    Some("dead") => Fate::Dead,
                    Some("alive") => Fate::Alive,
                    _ => Fate::Unknown(Doubt::of(reason.text(row).unwrap_or_default())),
                },
                first_gc_id: number(first) as u32,
                end_gc_id: number(end) as u32,
                survived_collections: number(survived) as u32,
                generation_at_end: byte(at_end),
                highest_generation: byte(highest),
                last_alive_ns: number(alive).cast_signed(),
                dead_ns: dead.number(row).map(u64::cast_signed),
                end_object_id: number(end_object),
            };
            each(&Lifetime { sample: &sample, weight, life: &life })?;
            rows += 1;
        }
    }
    Ok(rows)
}
