//! The fate of an object: whether it survived a collection, and its new address. Read from the tables of a dataset.
//!
//! An object at `o` survived when `start <= o < start + length` for any surviving range, or any moved range by its old
//! start. One that is in none is dead only if its generation was collected, and if the recording has all of that.

mod ranges;

use std::collections::HashMap;
use std::iter::Peekable;
use std::ops::RangeInclusive;

use tracequet_dataset::error::Named;
use tracequet_facts::fact::NON_GC_HEAP;
use tracequet_trace::parallel;

use self::ranges::{Range, Ranges};
use crate::collection::{Collection, Doubt, Effect, MovedRow, Said, SurvivingRow};
use crate::prelude::*;

/// Ranges held in memory, unless one collection alone has more.
const MAX_RANGES: u64 = 4 << 20;

/// The tables that the answer is found in.
pub const TABLES: [&str; 4] = ["gc", "gc_generation_range", "gc_surviving_range", "gc_moved_range"];

/// The fate of an object in a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Survived where it was.
    Alive,
    /// Survived and is elsewhere.
    Moved,
    /// Died: the generation was collected, and the object is in no range.
    Dead,
    /// Was not collected, because its generation was not: it stays where it is, alive or not.
    NotCollected,
    /// Lies in the non-GC (frozen) heap of .NET 8 and later, which is never collected and never moves.
    NeverCollected,
    /// The recording does not say; why.
    Unknown(Doubt),
}

impl Fate {
    /// The word that `survived(gc, address)` has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Fate::Alive => "alive",
            Fate::Moved => "moved",
            Fate::Dead => "dead",
            Fate::NotCollected => "not_collected",
            Fate::NeverCollected => "never_collected",
            Fate::Unknown(_) => "unknown",
        }
    }
}

/// The fate of the object in one collection.
#[derive(Clone, Debug)]
pub struct Step {
    /// The collection.
    pub gc_id: u32,
    /// Highest generation that it collected.
    pub generation: Option<u8>,
    /// `blocking`, `background` or `foreground`.
    pub kind: Option<String>,
    /// When it began, nanoseconds since the recording began.
    pub start_ns: i64,
    /// Where the object was.
    pub address: u64,
    /// The fate.
    pub fate: Fate,
    /// Where it is now; `None` when it is dead or that is not known, as where it moved behind the last address.
    pub address_after: Option<u64>,
    /// Generation by the bounds at the start of the collection.
    pub generation_before: Option<u8>,
    /// Generation by the bounds at its end.
    pub generation_after: Option<u8>,
}

#[derive(Default)]
struct Gc {
    /// Process, and which of its runtimes.
    runtime: (u64, u64),
    generation: Option<u8>,
    kind: Option<String>,
    start_ns: i64,
    complete: bool,
    ranges: u64,
}

#[derive(Default)]
struct Heap {
    /// Generation, start, length.
    before: Vec<(u8, u64, u64)>,
    after: Vec<(u8, u64, u64)>,
}

/// The memory and the ranges of one collection.
struct Recorded<'h> {
    heap: Heap,
    /// Of the tables of surviving and of moved ranges.
    ranges: &'h [Ranges; 2],
    gc_id: u32,
}

impl Recorded<'_> {
    /// The first range that holds an address, of those that survived in place before those that moved. The macros of
    /// `views.sql` look in the same order.
    fn holder(&self, address: u64) -> Option<Range> {
        self.ranges.iter().find_map(|ranges| ranges.holder(self.gc_id, address))
    }

    /// The range with the highest start at or below an address; of those with the same start a clamped one.
    fn nearest(&self, address: u64) -> Option<Range> {
        let nearest = self.ranges.iter().filter_map(|ranges| ranges.nearest(self.gc_id, address));
        nearest.max_by_key(|range| (range.start, range.clamped))
    }
}

/// What became of the object at `address` in collection `gc`; with `follow` also in all that came after, as long as it
/// is known where the object is. Reads the tables [`TABLES`] of the recording.
pub fn survived(recording: &Recording<'_>, gc: u32, address: u64, follow: bool) -> Result<Vec<Step>> {
    let collections = collections(recording)?;
    let Some(asked) = collections.get(&gc) else {
        let ids = collections.keys().next().zip(collections.keys().next_back());
        let there = ids.map_or("it has none".into(), |(first, last)| format!("it has {first} to {last}"));
        let recording = &recording.info().trace_id;
        let message = format!("the recording {recording} has no collection {gc}, {there}");
        return Err(Error::NotFound { what: Named::Collection, message });
    };
    let mut steps = Vec::new();
    let mut address = address;
    let of_runtime = collections.range(gc..).filter(|(_, row)| row.runtime == asked.runtime);
    let mut rest = of_runtime.take(if follow { usize::MAX } else { 1 }).peekable();
    loop {
        let some = window(&mut rest, MAX_RANGES);
        let (Some((first, _)), Some((last, _))) = (some.first(), some.last()) else { return Ok(steps) };
        let ids = *first..=*last;
        let mut heaps: HashMap<u32, Heap> = some.iter().map(|(id, _)| (*id, Heap::default())).collect();
        bounds(recording, &ids, &mut heaps)?;
        let ranges = both_tables(recording, &heaps)?;
        for (gc_id, row) in some {
            let recorded = Recorded { heap: heaps.remove(&gc_id).unwrap_or_default(), ranges: &ranges, gc_id };
            let step = step(gc_id, row, &recorded, address);
            let next = step.address_after;
            steps.push(step);
            if let Some(next) = next { address = next } else { return Ok(steps) }
        }
    }
}

/// The next collections whose ranges fit into memory together; at least one, unless none is left.
fn window<'g>(rest: &mut Peekable<impl Iterator<Item = (&'g u32, &'g Gc)>>, most: u64) -> Vec<(u32, &'g Gc)> {
    let (mut some, mut ranges) = (Vec::new(), 0u64);
    while let Some((id, row)) = rest.next_if(|(_, row)| some.is_empty() || ranges.saturating_add(row.ranges) <= most) {
        ranges = ranges.saturating_add(row.ranges);
        some.push((*id, row));
    }
    some
}

/// The generation at an address; `None` when no bounds, or several that disagree, hold it.
fn generation(bounds: &[(u8, u64, u64)], address: u64) -> Option<u8> {
    let mut found = bounds.iter().filter(|(_, start, length)| holds(*start, *length, address)).map(|(g, ..)| *g);
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

fn holds(start: u64, length: u64, address: u64) -> bool {
    address.checked_sub(start).is_some_and(|offset| offset < length)
}

fn step(gc_id: u32, gc: &Gc, recorded: &Recorded<'_>, address: u64) -> Step {
    let heap = &recorded.heap;
    let before = generation(&heap.before, address);
    let found = recorded.holder(address);
    let (fate, address_after) = match found {
        Some(range) => {
            // No address is behind the last one: where ranges say so, it is not known where the object is.
            let after = range.new_start.checked_add(address - range.start);
            (if after == Some(address) { Fate::Alive } else { Fate::Moved }, after)
        }
        None => match absent(gc, recorded, before, address) {
            fate @ (Fate::NotCollected | Fate::NeverCollected) => (fate, Some(address)),
            fate => (fate, None),
        },
    };
    Step {
        gc_id,
        generation: gc.generation,
        kind: gc.kind.clone(),
        start_ns: gc.start_ns,
        address,
        fate,
        address_after,
        generation_before: before,
        generation_after: address_after.and_then(|after| generation(&heap.after, after)),
    }
}

/// The fate of an address that no range holds. `views.sql` has the same rules.
fn absent(gc: &Gc, recorded: &Recorded<'_>, before: Option<u8>, address: u64) -> Fate {
    if before == Some(NON_GC_HEAP) {
        return Fate::NeverCollected;
    }
    let background = Collection::is_background(gc.kind.as_deref());
    let (generation, complete) = (gc.generation, gc.complete);
    match (Said { generation, background, complete, has_ranges: gc.ranges > 0 }.effect(before)) {
        Effect::Collects => {}
        Effect::Leaves => return Fate::NotCollected,
        Effect::Unknown(doubt) => return Fate::Unknown(doubt),
    }
    // A range lies within one part of the heap, and ends before the next range begins.
    let in_one_part = |r: &Range| {
        recorded.heap.before.iter().any(|(_, start, length)| holds(*start, *length, address) && *start <= r.start)
    };
    if recorded.nearest(address).is_some_and(|r| r.clamped && in_one_part(&r)) {
        return Fate::Unknown(Doubt::Clamped);
    }
    Fate::Dead
}

row!(struct GcRow of gc {
    gc_id, generation, kind, start_ts_ns, complete, surviving_range_count, moved_range_count, process_id,
    clr_instance_id
});

fn collections(recording: &Recording<'_>) -> Result<BTreeMap<u32, Gc>> {
    let (mut found, mut texts) = (BTreeMap::new(), HeldTexts::of(recording, "gc"));
    each_row::<GcRow<'_>>(recording, 2 * size_of::<Gc>() as u64, |row| {
        let gc = Gc {
            runtime: (row.process_id, u64::from(row.clr_instance_id)),
            generation: row.generation,
            kind: row.kind.map(|kind| texts.copy(kind)).transpose()?,
            start_ns: row.start_ts_ns,
            complete: row.complete,
            ranges: row.surviving_range_count.saturating_add(row.moved_range_count),
        };
        found.insert(row.gc_id, gc);
        Ok(())
    })?;
    Ok(found)
}

row!(struct BoundRow of gc_generation_range { gc_id, phase, generation, range_start, range_length });

/// Reads the bounds of the collections that have a place in `heaps`, all of which are among `ids`.
fn bounds(recording: &Recording<'_>, ids: &RangeInclusive<u32>, heaps: &mut HashMap<u32, Heap>) -> Result<()> {
    let mut rows = 0;
    let ids = u64::from(*ids.start())..=u64::from(*ids.end());
    recording.scan::<BoundRow<'_>>()?.between("gc_id", ids).each::<BoundRow<'_>>(|row| {
        rows += 1;
        held(recording, "gc_generation_range", rows, 24)?;
        if let Some(heap) = heaps.get_mut(&row.gc_id) {
            let list = if row.phase == "end" { &mut heap.after } else { &mut heap.before };
            list.push((row.generation, row.range_start, row.range_length));
        }
        Ok(())
    })
}

/// The ranges of these collections, of both tables at a time: decoding them is most of the work.
fn both_tables(recording: &Recording<'_>, heaps: &HashMap<u32, Heap>) -> Result<[Ranges; 2]> {
    let read = parallel::each(2, &[false, true], |_, is_moved| match is_moved {
        false => Ranges::read::<SurvivingRow<'_>, _>(recording, heaps, |row| row.listed()),
        true => Ranges::read::<MovedRow<'_>, _>(recording, heaps, |row| row.listed()),
    })?;
    read.try_into().map_err(|_| Error::Internal("a table of ranges is missing".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_are_read_together_as_far_as_they_fit() {
        let rows: BTreeMap<u32, Gc> =
            [3, 4, 90, 2, 0, 8].into_iter().zip(1..).map(|(ranges, id)| (id, Gc { ranges, ..Gc::default() })).collect();
        let mut rest = rows.iter().peekable();
        let mut ids = || window(&mut rest, 10).iter().map(|(id, _)| *id).collect::<Vec<_>>();
        assert_eq!((ids(), ids(), ids(), ids()), (vec![1, 2], vec![3], vec![4, 5, 6], vec![]));
    }
}
