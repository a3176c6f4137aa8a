//! The lifetimes of a recording: from the tables of a dataset, or from what was kept while it was converted.

use tracequet_dataset::error::Evidence;
use tracequet_facts::fact::AllocationLifetime;
use tracequet_trace::guid::Guid;

use super::heap::Heaps;
use super::life::{Fate, Life, Lifetime};
use super::sample::Sample;
use super::samples::Samples;
use crate::collection::{Doubt, SpilledCollections};
use crate::pieces::Pieces;
use crate::prelude::*;

/// The table that `convert --lifetimes` fills, and recordings that say themselves which objects died.
pub const TABLE: &str = "allocation_lifetime";

/// The tables that lifetimes are found in.
pub const TABLES: [&str; 5] = ["allocation", "gc", "gc_generation_range", "gc_surviving_range", "gc_moved_range"];

/// Calls `each` with the lifetime of each sample of a recording: from the table `allocation_lifetime` if it has rows,
/// else as [`found_lifetimes`].
pub fn lifetimes(recording: &Recording<'_>, mut each: impl FnMut(&Lifetime<'_>) -> Result<()>) -> Result<()> {
    let is_there = recording.tables().any(|table| table.name == TABLE);
    if is_there && written_lifetimes(recording, &mut each)? > 0 {
        return Ok(());
    }
    found_lifetimes(recording, each)
}

/// Calls `each` with the lifetime of each sample of a recording, in the order of the table `allocation`. Reads the
/// tables [`TABLES`]. Fails when the recording has no allocation with the address of its object, or when no collection
/// lists what survived.
pub fn found_lifetimes(recording: &Recording<'_>, each: impl FnMut(&Lifetime<'_>) -> Result<()>) -> Result<()> {
    lifetimes_until(recording, u32::MAX, each)
}

/// The lifetimes as if the recording ended with the collection of this number.
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
    let mut collections = SpilledCollections::of(recording)?;
    let mut heaps = Heaps::new(samples.rows(), &mut collections.headers());
    collections.each(|gc| {
        if gc.gc_id <= last_gc_id {
            heaps.collect(gc);
        }
        Ok(true)
    })?;
    collections.whole(recording)?;
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
            unknown_reason: if let Fate::Unknown(doubt) = life.fate { Some(doubt.word()) } else { None },
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

fn each_life(samples: &Samples, lives: &Pieces<Life>, mut each: impl FnMut(Lifetime<'_>) -> Result<()>) -> Result<()> {
    let weight = samples.weight();
    samples
        .rows()
        .iter()
        .zip(lives.iter())
        .try_for_each(|(sample, life)| each(Lifetime { sample: &sample, weight, life }))
}

row!(struct AllocationRow of allocation {
    source, ts_ns, process_id, thread_id, callsite_id, type_id, object_id, allocation_bytes, object_count, activity_id
});

row!(struct LifetimeRow of allocation_lifetime {
    ts_ns, process_id, thread_id, callsite_id, type_id, source, object_id, allocation_bytes, object_count,
    sample_weight, fate, unknown_reason, first_gc_id, end_gc_id, survived_collections, generation_at_end,
    highest_generation, last_alive_ts_ns, dead_ts_ns, end_object_id, activity_id
});

fn samples(recording: &Recording<'_>) -> Result<Samples> {
    let mut samples = Samples::new(recording.max_held());
    recording.each::<AllocationRow<'_>>(|row| {
        let sample = Sample {
            thread_id: row.thread_id,
            callsite_id: row.callsite_id,
            type_id: row.type_id,
            allocation_bytes: row.allocation_bytes,
            object_count: row.object_count,
            activity_id: guid(row.activity_id),
            ..Sample::new(row.ts_ns, row.process_id, row.object_id)
        };
        samples.add(row.source, sample);
        Ok(())
    })?;
    Ok(samples)
}

/// An id that may not be there.
fn guid(text: Option<&str>) -> Guid {
    text.and_then(Guid::parse).unwrap_or_default()
}

/// Calls `each` with the rows of `allocation_lifetime`, and gives their number.
fn written_lifetimes(recording: &Recording<'_>, mut each: impl FnMut(&Lifetime<'_>) -> Result<()>) -> Result<u64> {
    let mut rows = 0;
    recording.each::<LifetimeRow<'_>>(|row| {
        // Bytes and objects of a row are multiplied by its weight.
        let weight = row.sample_weight.max(1);
        let sample = Sample {
            thread_id: row.thread_id,
            callsite_id: row.callsite_id,
            type_id: row.type_id,
            source: Samples::word(row.source),
            allocation_bytes: row.allocation_bytes.map(|bytes| bytes / u64::from(weight)),
            object_count: row.object_count.map(|count| count / f64::from(weight)),
            activity_id: guid(row.activity_id),
            ..Sample::new(row.ts_ns, row.process_id, row.object_id)
        };
        let life = Life {
            fate: match row.fate {
                "dead" => Fate::Dead,
                "alive" => Fate::Alive,
                _ => Fate::Unknown(Doubt::of(row.unknown_reason.unwrap_or_default())),
            },
            first_gc_id: row.first_gc_id,
            end_gc_id: row.end_gc_id,
            survived_collections: row.survived_collections,
            generation_at_end: row.generation_at_end,
            highest_generation: row.highest_generation,
            last_alive_ns: row.last_alive_ts_ns,
            dead_ns: row.dead_ts_ns,
            end_object_id: row.end_object_id,
        };
        each(&Lifetime { sample: &sample, weight, life: &life })?;
        rows += 1;
        Ok(())
    })?;
    Ok(rows)
}
