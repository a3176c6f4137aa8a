//! The collections of a recording, from the tables of a dataset.

use std::collections::HashMap;

use crate::prelude::*;
use tracequet_dataset::error::Evidence;

use super::rules::{Bound, Collection, Range};

/// The tables that collections are found in.
pub const TABLES: [&str; 4] = ["gc", "gc_generation_range", "gc_surviving_range", "gc_moved_range"];

/// Ranges held in memory, unless one collection alone has more: 32 bytes each.
const MAX_RANGES: u64 = 4 << 20;

row!(struct GcRow of gc {
    gc_id, generation, kind, start_ts_ns, end_ts_ns, complete, surviving_range_count, moved_range_count, process_id,
    clr_instance_id, gc_number
});

row!(struct BoundRow of gc_generation_range { gc_id, phase, generation, range_start, range_length });

row!(pub(crate) struct SurvivingRow of gc_surviving_range { gc_id, range_start, range_length, length_kind });

impl SurvivingRow<'_> {
    pub(crate) fn range(&self) -> Range {
        let (start, length) = (self.range_start, self.range_length);
        Range { start, new_start: start, length, clamped: self.length_kind == "clamped" }
    }
}

row!(pub(crate) struct MovedRow of gc_moved_range {
    gc_id, old_range_start, new_range_start, range_length, length_kind
});

impl MovedRow<'_> {
    pub(crate) fn range(&self) -> Range {
        let (start, new_start, length) = (self.old_range_start, self.new_range_start, self.range_length);
        Range { start, new_start, length, clamped: self.length_kind == "clamped" }
    }
}

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
    let mut place = |id: u32, each: &mut dyn FnMut(&mut Collection)| {
        let place = places.get(&id).and_then(|place| some.get_mut(*place));
        if let Some(gc) = place {
            rows_held += 1;
            each(&mut gc.collection);
        }
        held(recording, "ranges", rows_held, size_of::<Range>() as u64)
    };
    let ids = u64::from(*ids.start())..=u64::from(*ids.end());
    recording.scan::<BoundRow<'_>>()?.between("gc_id", ids.clone()).each::<BoundRow<'_>>(|row| {
        let bound = Bound { generation: row.generation, start: row.range_start, length: row.range_length };
        let is_end = row.phase == "end";
        place(row.gc_id, &mut |gc| if is_end { gc.after.push(bound) } else { gc.before.push(bound) })
    })?;
    recording
        .scan::<SurvivingRow<'_>>()?
        .between("gc_id", ids.clone())
        .each::<SurvivingRow<'_>>(|row| place(row.gc_id, &mut |gc| gc.ranges.push(row.range())))?;
    recording
        .scan::<MovedRow<'_>>()?
        .between("gc_id", ids)
        .each::<MovedRow<'_>>(|row| place(row.gc_id, &mut |gc| gc.ranges.push(row.range())))
}

fn collections(recording: &Recording<'_>) -> Result<Vec<Gc>> {
    let mut found = Vec::new();
    each_row::<GcRow<'_>>(recording, size_of::<Gc>() as u64, |row| {
        let collection = Collection {
            gc_id: row.gc_id,
            runtime: (row.process_id, u64::from(row.clr_instance_id)),
            gc_number: row.gc_number,
            start_ns: row.start_ts_ns,
            end_ns: row.end_ts_ns,
            generation: row.generation,
            background: Collection::is_background(row.kind),
            complete: row.complete,
            ..Collection::default()
        };
        let ranges = row.surviving_range_count.saturating_add(row.moved_range_count);
        found.push(Gc { ranges, collection });
        Ok(())
    })?;
    Ok(found)
}
