//! The collections of a recording, from the tables of a dataset.

use std::ops::RangeInclusive;

use crate::prelude::*;
use tracequet_dataset::error::Evidence;
use tracequet_dataset::read::Scan;

use super::rules::{Bound, Collection, Range, RangeKind};
use super::spilled::{COLLECTION_STORED, Listed, SpilledCollections};

/// The tables that collections are found in.
pub const TABLES: [&str; 4] = ["gc", "gc_generation_range", RANGE_TABLES[0], RANGE_TABLES[1]];

/// The numbers of all collections.
const ALL: RangeInclusive<u32> = 0..=u32::MAX;

/// The tables with a row for each range.
pub const RANGE_TABLES: [&str; 2] = ["gc_surviving_range", "gc_moved_range"];

row!(struct GcRow of gc {
    gc_id, generation, kind, start_ts_ns, end_ts_ns, complete, surviving_range_count, moved_range_count, process_id,
    clr_instance_id, gc_number
});

row!(struct BoundRow of gc_generation_range { gc_id, phase, generation, range_start, range_length });

row!(struct SurvivingRow of gc_surviving_range {
    gc_id, range_start, range_length, length_kind, generation_before, generation_after
});

row!(struct MovedRow of gc_moved_range {
    gc_id, old_range_start, new_range_start, range_length, length_kind, generation_before, generation_after
});

impl SurvivingRow<'_> {
    fn listed(self) -> Listed {
        let kind = RangeKind { is_moved: false, before: self.generation_before, after: self.generation_after };
        Listed::of(self.gc_id, kind, [self.range_start, self.range_start, self.range_length], self.length_kind)
    }
}

impl MovedRow<'_> {
    fn listed(self) -> Listed {
        let kind = RangeKind { is_moved: true, before: self.generation_before, after: self.generation_after };
        let place = [self.old_range_start, self.new_range_start, self.range_length];
        Listed::of(self.gc_id, kind, place, self.length_kind)
    }
}

impl SpilledCollections {
    /// The collections of a recording. Fails when none of them lists what survived, or when they are too many.
    pub(crate) fn of(recording: &Recording<'_>) -> Result<SpilledCollections> {
        let (mut read, ranges) = headers(recording)?;
        if ranges == 0 {
            let key = &recording.info().trace_id;
            let how = "they are recorded with the keyword 0x400000 of the runtime";
            let message = format!("no collection of the recording {key} lists survivors; {how}");
            return Err(Error::NotRecorded { what: Evidence::SurvivingRanges, message });
        }
        TABLES.iter().try_for_each(|name| recording.table(name).map(drop))?;
        read.take_rows(recording, &ALL)?;
        Ok(read)
    }

    /// Reads the collections that are wanted, of those with these numbers. Fails when a table is missing, or when the
    /// collections take too much memory.
    pub(crate) fn among(
        recording: &Recording<'_>,
        ids: RangeInclusive<u32>,
        is_wanted: impl Fn(&Collection) -> bool,
    ) -> Result<SpilledCollections> {
        let (mut read, _) = headers(recording)?;
        TABLES.iter().try_for_each(|name| recording.table(name).map(drop))?;
        let wanted = read.headers().filter(|gc| ids.contains(&gc.gc_id) && is_wanted(gc));
        read.only(&wanted.map(|gc| gc.gc_id).collect());
        read.take_rows(recording, &ids)?;
        Ok(read)
    }

    /// The collections of a recording, as far as it has tables of them.
    pub fn read(recording: &Recording<'_>) -> Result<SpilledCollections> {
        let (mut read, _) = headers(recording)?;
        read.take_rows(recording, &ALL)?;
        Ok(read)
    }

    /// Takes bounds and ranges of the collections that are there, all of which have numbers among `ids`.
    fn take_rows(&mut self, recording: &Recording<'_>, ids: &RangeInclusive<u32>) -> Result<()> {
        let known: Set<u32> = self.headers().map(|gc| gc.gc_id).collect();
        if let Some(bounds) = scan::<BoundRow<'_>>(recording, ids)? {
            bounds.each::<BoundRow<'_>>(|row| {
                let bound = Bound { generation: row.generation, start: row.range_start, length: row.range_length };
                if known.contains(&row.gc_id) {
                    self.bound(row.gc_id, &bound, row.phase == "end");
                    self.settle();
                }
                Ok(())
            })?;
        }
        self.take_ranges::<SurvivingRow<'_>>(recording, ids, |row| row.listed())?;
        self.take_ranges::<MovedRow<'_>>(recording, ids, |row| row.listed())?;
        self.only(&known);
        self.whole(recording)
    }

    fn take_ranges<R: Row>(
        &mut self,
        recording: &Recording<'_>,
        ids: &RangeInclusive<u32>,
        listed: impl Fn(R::Of<'_>) -> Listed,
    ) -> Result<()> {
        let Some(ranges) = scan::<R>(recording, ids)? else { return Ok(()) };
        for batch in ranges.batches()? {
            self.ranges(rows_of::<R>(&batch?)?.map(&listed));
            self.settle();
            self.whole(recording)?;
        }
        Ok(())
    }

    /// Fails when the ranges of a recording were more than memory was allowed for.
    pub(crate) fn whole(&self, recording: &Recording<'_>) -> Result<()> {
        if self.is_refused() { held(recording, "ranges", u64::MAX, size_of::<Range>() as u64) } else { Ok(()) }
    }
}

/// Begins to read a table that the recording may have. Rows of other collections may come as well.
fn scan<R: Row>(recording: &Recording<'_>, ids: &RangeInclusive<u32>) -> Result<Option<Scan>> {
    let ids = u64::from(*ids.start())..=u64::from(*ids.end());
    let scan = || Ok(recording.scan::<R>()?.between("gc_id", ids));
    recording.has::<R>().then(scan).transpose()
}

/// The collections of the table `gc`, still without bounds and ranges, and how many ranges they have.
fn headers(recording: &Recording<'_>) -> Result<(SpilledCollections, u64)> {
    let (mut read, mut ranges) = (SpilledCollections::new(recording.max_held()), 0u64);
    each_row::<GcRow<'_>>(recording, COLLECTION_STORED, |row| {
        *read.collection(row.gc_id) = Collection {
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
        ranges = ranges.saturating_add(row.surviving_range_count).saturating_add(row.moved_range_count);
        Ok(())
    })?;
    Ok((read, ranges))
}
