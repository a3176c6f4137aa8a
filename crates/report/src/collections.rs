//! The collections of a process, as PerfView's GCStats lists them.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use tracequet_dataset::read::Recording;
use tracequet_trace::error::Result;

use crate::html::{Cell, Head, Rows, numbers, words};
use crate::read::each;
use crate::units::{count, counted, duration, moment, size};

/// Collections that are held; a process has some thousands an hour.
const MAX_COLLECTIONS: usize = 256 << 10;

/// Rows of the table.
const MAX_ROWS: usize = 300;

/// Generations that have sizes: 0, 1, 2, large objects, pinned objects.
pub(crate) const GENERATIONS: usize = 5;

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
    pub pause_ns: i64,
    pub suspend_ns: Option<i64>,
    pub allocated: Option<u64>,
    pub promoted: Option<u64>,
    pub before: Option<u64>,
    pub after: Option<u64>,
    pub sizes: [Option<u64>; GENERATIONS],
    pub has_ranges: bool,
    pub touches_gap: bool,
}

/// A time in which all managed threads were stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub gc_id: u32,
    pub start_ns: i64,
    pub duration_ns: i64,
    pub is_gc: bool,
}

/// The collections of the process that has most of them.
#[derive(Debug, Default)]
pub(crate) struct Collections {
    pub process_id: u64,
    /// Other processes that have collections.
    pub other_processes: usize,
    /// In the order of their starts.
    pub all: Vec<Collection>,
    pub pauses: Vec<Pause>,
    /// Collections and pauses beyond the bound.
    pub left_out: u64,
}

impl Collections {
    pub(crate) fn read(recording: &Recording<'_>) -> Result<Collections> {
        let mut processes: HashMap<u64, u64, RandomState> = HashMap::default();
        each(recording, "gc", &["process_id"], |row| {
            if let Some(process) = row.number(0) {
                *processes.entry(process).or_default() += 1;
            }
        })?;
        let most = processes.iter().max_by_key(|(process, count)| (**count, std::cmp::Reverse(**process)));
        let process_id = most.map(|(process, _)| *process);
        let mut found = Collections {
            process_id: process_id.unwrap_or_default(),
            other_processes: processes.len().saturating_sub(1),
            ..Collections::default()
        };
        found.read_collections(recording)?;
        found.read_pauses(recording, process_id)?;
        found.read_sizes(recording)?;
        Ok(found)
    }

    fn read_collections(&mut self, recording: &Recording<'_>) -> Result<()> {
        let columns = [
            "process_id",
            "gc_id",
            "gc_number",
            "generation",
            "kind",
            "reason",
            "start_ts_ns",
            "end_ts_ns",
            "pause_ns",
            "allocated_bytes",
            "promoted_bytes",
            "size_before_bytes",
            "size_after_bytes",
            "surviving_range_count",
            "moved_range_count",
            "touches_gap",
            "complete",
            "clr_instance_id",
        ];
        each(recording, "gc", &columns, |row| {
            if row.number(0) != Some(self.process_id) {
                return;
            }
            if self.all.len() >= MAX_COLLECTIONS {
                self.left_out += 1;
                return;
            }
            let ranges = row.number(13).unwrap_or_default().saturating_add(row.number(14).unwrap_or_default());
            self.all.push(Collection {
                gc_id: row.number(1).unwrap_or_default() as u32,
                number: row.number(2).unwrap_or_default(),
                generation: row.number(3).and_then(|n| u8::try_from(n).ok()),
                kind: row.word(4).map(str::to_owned),
                reason: row.word(5).map(str::to_owned),
                start_ns: row.signed(6).unwrap_or_default(),
                end_ns: row.signed(7),
                pause_ns: row.signed(8).unwrap_or_default(),
                suspend_ns: None,
                allocated: row.number(9),
                promoted: row.number(10),
                before: row.number(11),
                after: row.number(12),
                sizes: [None; GENERATIONS],
                has_ranges: ranges > 0,
                touches_gap: row.is(15),
                complete: row.is(16),
                runtime: row.number(17).unwrap_or_default(),
            });
        })?;
        self.all.sort_by_key(|collection| (collection.start_ns, collection.gc_id));
        Ok(())
    }

    /// Pauses of the process; where it has no collections, those of all.
    fn read_pauses(&mut self, recording: &Recording<'_>, process_id: Option<u64>) -> Result<()> {
        let mut suspended: HashMap<u32, i64, RandomState> = HashMap::default();
        let columns = ["process_id", "gc_id", "start_ts_ns", "duration_ns", "suspend_ns", "kind"];
        each(recording, "gc_pause", &columns, |row| {
            if process_id.is_some() && row.number(0) != process_id {
                return;
            }
            if self.pauses.len() >= MAX_COLLECTIONS {
                self.left_out += 1;
                return;
            }
            let (gc_id, is_gc) = (row.number(1).unwrap_or_default() as u32, row.text(5) == Some("gc"));
            let (start_ns, duration_ns) = (row.signed(2).unwrap_or_default(), row.signed(3).unwrap_or_default());
            self.pauses.push(Pause { gc_id, start_ns, duration_ns, is_gc });
            if let (true, Some(ns)) = (is_gc, row.signed(4)) {
                let sum = suspended.entry(gc_id).or_default();
                *sum = sum.saturating_add(ns);
            }
        })?;
        for collection in &mut self.all {
            collection.suspend_ns = suspended.get(&collection.gc_id).copied();
        }
        self.pauses.sort_by_key(|pause| (pause.start_ns, pause.gc_id));
        Ok(())
    }

    fn read_sizes(&mut self, recording: &Recording<'_>) -> Result<()> {
        let places: HashMap<u32, usize, RandomState> = self.all.iter().map(|c| c.gc_id).zip(0..).collect();
        each(recording, "gc_heap_stats", &["gc_id", "generation", "size_bytes"], |row| {
            let gc_id = row.number(0).unwrap_or_default() as u32;
            let collection = places.get(&gc_id).and_then(|place| self.all.get_mut(*place));
            let generation = row.number(1).and_then(|n| usize::try_from(n).ok());
            if let (Some(collection), Some(generation)) = (collection, generation)
                && let Some(of_generation) = collection.sizes.get_mut(generation)
            {
                *of_generation = row.number(2);
            }
        })?;
        Ok(())
    }

    /// The table, and what to say of it.
    pub(crate) fn table(&self) -> (String, String) {
        const HEADS: [Head; 17] = [
            numbers("gc_id", "Number within the recording; 0 in no table"),
            numbers("number", "The runtime's own number of the collection"),
            numbers("start s", "When it began, in seconds since the recording began"),
            numbers("gen", "Highest generation that was collected"),
            words("kind", "blocking, background, or foreground: during a background collection"),
            words("reason", "Why it started"),
            numbers("pause", "Time in which managed threads were stopped for it"),
            numbers("suspend", "The part of its pauses until all threads had stopped"),
            numbers("allocated", "Bytes allocated since the collection before"),
            numbers("before", "Size of all generations before it"),
            numbers("after", "Size of all generations after it"),
            numbers("promoted", "Bytes promoted, of all generations"),
            numbers("gen 0", "Size of generation 0 after it"),
            numbers("gen 1", "Size of generation 1 after it"),
            numbers("gen 2", "Size of generation 2 after it"),
            numbers("large", "Size of the large object heap after it"),
            numbers("pinned", "Size of the pinned object heap after it"),
        ];
        let mut rows = Rows::new("collections-table", &HEADS);
        let mut shown: Vec<&Collection> = self.all.iter().collect();
        shown.sort_by_key(|collection| (std::cmp::Reverse(collection.pause_ns), collection.gc_id));
        shown.truncate(MAX_ROWS);
        shown.sort_by_key(|collection| (collection.start_ns, collection.gc_id));
        for collection in &shown {
            let mut cells = vec![
                Cell::number(Some(collection.gc_id.into()), |n| n.to_string()),
                Cell::number(Some(collection.number).filter(|number| *number > 0), |n| n.to_string()),
                Cell::signed(Some(collection.start_ns), moment),
                Cell::number(collection.generation.map(u64::from), |n| n.to_string()),
                Cell::text(collection.kind.as_deref()),
                Cell::text(collection.reason.as_deref()),
                Cell::signed(Some(collection.pause_ns), duration),
                Cell::signed(collection.suspend_ns, duration),
            ];
            let sizes = [collection.allocated, collection.before, collection.after, collection.promoted];
            cells.extend(sizes.into_iter().chain(collection.sizes).map(|bytes| Cell::number(bytes, size)));
            rows.row_at(collection.start_ns, cells);
        }
        let missing = rows.without_empty();
        let mut note = if shown.len() < self.all.len() {
            let all = count(self.all.len() as u64);
            format!("The {} of {all} collections with the longest pauses, in the order of their starts.", shown.len())
        } else {
            format!("All of them: {}.", counted(self.all.len() as u64, "collection", "collections"))
        };
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
