//! The collections of a process, as PerfView's GCStats lists them.

use tracequet_analyze::subjects::collections::Collection as Row;
use tracequet_analyze::subjects::heap::{GENERATIONS, Size};
use tracequet_analyze::subjects::pauses::{Pause, Pauses, Stop};

use crate::prelude::*;

/// Collections that are held; a process has some thousands an hour.
const MAX_COLLECTIONS: usize = 256 << 10;

/// Rows of the table.
const MAX_ROWS: usize = 300;

/// A collection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collection {
    pub gc_id: u32,
    /// Number of the runtime within the process.
    pub runtime: u64,
    pub number: u64,
    pub generation: Option<u8>,
    pub kind: Option<String>,
    pub complete: bool,
    pub reason: Option<String>,
    pub start_ns: i64,
    pub end_ns: Option<i64>,
    /// Of all its pauses together.
    pub pause_ns: Option<i64>,
    /// Of its longest pause.
    pub longest_ns: Option<i64>,
    pub suspend_ns: Option<i64>,
    pub allocated: Option<u64>,
    pub promoted: Option<u64>,
    pub before: Option<u64>,
    pub after: Option<u64>,
    pub sizes: [Option<u64>; GENERATIONS],
    pub has_ranges: bool,
    pub touches_gap: bool,
}

/// The collections of the process that has most of them.
#[derive(Debug, Default)]
pub(crate) struct Collections {
    pub process_id: u64,
    has_process: bool,
    /// Other processes that have collections.
    pub other_processes: usize,
    /// In the order of their starts.
    pub all: Vec<Collection>,
    /// Of all processes.
    pub pauses: Pauses,
    /// Start and duration of stops that are for no collection.
    pub other_stops: Vec<(i64, i64)>,
    /// Collections and pauses beyond the bound.
    pub left_out: u64,
}

impl Collections {
    pub(crate) fn read(recording: &Recording<'_>) -> Result<Collections> {
        let mut processes: Map<u64, u64> = Map::default();
        recording.each_recorded::<Row<'_>>(|row| *processes.entry(row.process_id).or_default() += 1)?;
        let most = processes.iter().max_by_key(|(process, count)| (**count, std::cmp::Reverse(**process)));
        let process_id = most.map(|(process, _)| *process);
        let mut found = Collections {
            process_id: process_id.unwrap_or_default(),
            other_processes: processes.len().saturating_sub(1),
            ..Collections::default()
        };
        found.read_collections(recording)?;
        found.read_sizes(recording)?;
        found.with_pauses(recording, process_id)
    }

    fn read_collections(&mut self, recording: &Recording<'_>) -> Result<()> {
        recording.each_recorded::<Row<'_>>(|row| {
            if row.process_id != self.process_id {
                return;
            }
            if self.all.len() >= MAX_COLLECTIONS {
                self.left_out += 1;
                return;
            }
            self.all.push(Collection {
                gc_id: row.gc_id,
                number: row.gc_number.into(),
                generation: row.generation,
                kind: word(row.kind).map(str::to_owned),
                reason: word(row.reason).map(str::to_owned),
                start_ns: row.start_ts_ns,
                end_ns: row.end_ts_ns,
                pause_ns: row.paused_ns(),
                longest_ns: None,
                suspend_ns: None,
                allocated: row.allocated_bytes,
                promoted: row.promoted_bytes,
                before: row.size_before_bytes,
                after: row.size_after_bytes,
                sizes: [None; GENERATIONS],
                has_ranges: row.has_ranges(),
                touches_gap: row.touches_gap,
                complete: row.complete,
                runtime: row.clr_instance_id.into(),
            });
        })?;
        self.all.sort_by_key(|collection| (collection.start_ns, collection.gc_id));
        Ok(())
    }

    /// With the pauses, and the stops of the process.
    fn with_pauses(mut self, recording: &Recording<'_>, process_id: Option<u64>) -> Result<Collections> {
        self.has_process = process_id.is_some();
        recording.each_recorded::<Stop<'_>>(|stop| {
            if self.pauses.count() + self.other_stops.len() >= MAX_COLLECTIONS {
                self.left_out += 1;
            } else if stop.pause().is_some() {
                self.pauses.add(&stop);
            } else if process_id.is_none_or(|process_id| stop.process_id == process_id) {
                self.other_stops.push((stop.start_ts_ns, stop.duration_ns));
            }
        })?;
        self.pauses.finish();
        self.other_stops.sort_unstable();
        let mut by_id: Map<u32, (i64, i64)> = Map::default();
        for pause in self.pauses.of(self.process_id) {
            let (longest, suspended) = by_id.entry(pause.gc_id).or_default();
            *longest = pause.duration_ns.max(*longest);
            *suspended = suspended.saturating_add(pause.suspend_ns);
        }
        for collection in &mut self.all {
            let of_collection = by_id.get(&collection.gc_id);
            collection.longest_ns = of_collection.map(|(longest, _)| *longest);
            collection.suspend_ns = of_collection.map(|(_, suspended)| *suspended);
        }
        Ok(self)
    }

    /// Pauses of the process; where it has no collections, those of all.
    pub(crate) fn shown(&self) -> Vec<&Pause> {
        if self.has_process { self.pauses.of(self.process_id).iter().collect() } else { self.pauses.all().collect() }
    }

    /// The collections with the longest pauses, the longest first.
    pub(crate) fn longest(&self, most: usize) -> Vec<&Collection> {
        let mut longest: Vec<&Collection> = self.all.iter().collect();
        longest.sort_by_key(|collection| (std::cmp::Reverse(collection.longest_ns), collection.gc_id));
        longest.truncate(most);
        longest
    }

    fn read_sizes(&mut self, recording: &Recording<'_>) -> Result<()> {
        let places: Map<u32, usize> = self.all.iter().map(|c| c.gc_id).zip(0..).collect();
        recording.each_recorded::<Size<'_>>(|row| {
            let collection = places.get(&row.gc_id).and_then(|place| self.all.get_mut(*place));
            let sizes = collection.and_then(|collection| collection.sizes.get_mut(usize::from(row.generation)));
            if let Some(size) = sizes {
                *size = Some(row.size_bytes);
            }
        })?;
        Ok(())
    }

    /// The table, and what to say of it.
    pub(crate) fn table(&self) -> (String, String) {
        let mut shown = self.longest(MAX_ROWS);
        shown.sort_by_key(|collection| (collection.start_ns, collection.gc_id));
        let mut rows = table!("collections-table", &shown, |collection| at collection.start_ns, {
            let [gen0, gen1, gen2, large, pinned] = collection.sizes;
        } {
            numbers("gc_id", "Number within the recording; 0 in no table") => Cell::id(u64::from(collection.gc_id)),
            numbers("number", "The runtime's own number of the collection") =>
                Cell::id(Some(collection.number).filter(|number| *number > 0)),
            numbers("start s", "When it began, in seconds since the recording began") =>
                Cell::moment(collection.start_ns),
            numbers("gen", "Highest generation that was collected") => Cell::id(collection.generation.map(u64::from)),
            words("kind", "blocking, background, or foreground: during a background collection") =>
                Cell::optional(collection.kind.as_deref()),
            words("reason", "Why it started") => Cell::optional(collection.reason.as_deref()),
            numbers("pause", "Time in which managed threads were stopped for it, of all its pauses together") =>
                Cell::duration(collection.pause_ns),
            numbers("longest", "The longest of its pauses") => Cell::duration(collection.longest_ns),
            numbers("suspend", "The part of its pauses until all threads had stopped") =>
                Cell::duration(collection.suspend_ns),
            numbers("allocated", "Bytes allocated since the collection before") => Cell::size(collection.allocated),
            numbers("before", "Size of all generations before it") => Cell::size(collection.before),
            numbers("after", "Size of all generations after it") => Cell::size(collection.after),
            numbers("promoted", "Bytes promoted, of all generations") => Cell::size(collection.promoted),
            numbers("gen 0", "Size of generation 0 after it") => Cell::size(gen0),
            numbers("gen 1", "Size of generation 1 after it") => Cell::size(gen1),
            numbers("gen 2", "Size of generation 2 after it") => Cell::size(gen2),
            numbers("large", "Size of the large object heap after it") => Cell::size(large),
            numbers("pinned", "Size of the pinned object heap after it") => Cell::size(pinned),
        });
        let missing = rows.without_empty();
        let by = "the longest pauses, in the order of their starts";
        let mut note = rows_note(shown.len(), self.all.len(), ["collection", "collections"], by);
        if self.other_processes > 0 {
            let others = count(self.other_processes as u64);
            note += &format!(" Of process {}, which has most; {others} more have collections.", self.process_id);
        }
        if self.left_out > 0 {
            note += &format!(" {} more rows are beyond what a page reads.", count(self.left_out));
        }
        if self.all.iter().any(|collection| collection.touches_gap) {
            note += " Events are lost at the time of some: their pauses and sizes may be missing.";
        }
        if !missing.is_empty() && !shown.is_empty() {
            note += &format!(" Not recorded of any: {}.", missing.join(", "));
        }
        (rows.html("Collections"), note)
    }
}
