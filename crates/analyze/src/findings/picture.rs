//! What rules look at: sums of a recording's rows by process, made in one pass over its tables, with bounded memory.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use tracequet_dataset::error::Result;
use tracequet_dataset::read::Column;
use tracequet_dataset::read::rows::{Row as Typed, rows_of};
use tracequet_dataset::table::schema;

use super::collections::{Collections, HeapGeneration, Mark, Sizes};
use super::queries::{Queries, Statement};
use super::survivors::{Survivor, Survivors};
use super::times::Times;
use super::windows::Windows;
use crate::lifetime::{Fate, Lifetime};
use crate::metrics::{Needs, TypeNames, needs};
use crate::subjects::allocations::rank;
use crate::subjects::collections::Collection;
use crate::subjects::pauses::Stop;
use crate::subjects::processor::State;
use crate::subjects::requests::{Activity, Kind, Work, query_text};
use crate::subjects::sites::Sites;
use crate::subjects::texts::Texts;

/// Processes that are looked at; rows of more are left out.
const MOST_PROCESSES: usize = 256;

/// Keys of a sum. What comes later is left out.
const MOST_KEYS: usize = 1 << 16;

/// Keys whose amounts are kept by time.
const MOST_LOADS: usize = 1 << 12;

/// Rows that are kept one by one.
const MOST_ROWS: usize = 1 << 18;

/// Bytes of texts that are remembered.
const MOST_TEXT: usize = 16 << 20;

/// Walked in the order of its keys, so that sums of fractions come out the same each time.
type Map<K, V> = BTreeMap<K, V>;

/// The recording.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) recording_ns: i64,
    pub(super) events: u64,
    pub(super) dropped: u64,
    pub(super) frames: u64,
    pub(super) named_frames: u64,
    pub(super) needs: Needs,
    pub(super) types: TypeNames,
    pub(super) sites: Sites,
    pub(super) collections: Collections,
    pub(super) processes: BTreeMap<u64, Process>,
    texts: Texts,
}

/// Sums of the rows of a process.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// By kind of samples, the best first: several may stand for the same bytes.
    pub(super) allocations: BTreeMap<u8, Map<(u32, u64), Allocated>>,
    /// Sampled objects that lived through a collection, where they were followed.
    pub(super) survivors: Survivors,
    /// By lock and call site.
    pub(super) locks: Map<(u64, u32), Load>,
    pub(super) exceptions: Map<(u32, u32), Thrown>,
    pub(super) exception_times: Windows,
    pub(super) waits: Map<u32, Load>,
    open_waits: Vec<(u32, i64)>,
    /// Samples of threads that wait, by call site, and all samples of each thread.
    pub(super) waiting: Map<u32, u64>,
    pub(super) thread_samples: Map<u64, u64>,
    pub(super) starvation: Windows,
    pub(super) queued: Times,
    /// Thread, start and end of compilations.
    pub(super) compilations: Vec<(u64, i64, i64)>,
    pub(super) queries: Queries,
    /// Requests of HttpClient, by source.
    calls: [Queries; 3],
    /// Waits of threads that allocate large objects, by call site.
    pub(super) allocation_waits: Map<u32, Load>,
    /// What the collector takes of the time by its own measure, in percent: of one that adapts the number of its heaps.
    pub(super) throughput_costs: Vec<f64>,
    requests: [Vec<(i64, i64)>; 3],
    work: Work,
    last_ns: i64,
}

/// Allocations of a type at a call site.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Allocated {
    pub(super) bytes: f64,
    pub(super) samples: u64,
    pub(super) large_bytes: f64,
    pub(super) large_samples: u64,
}

/// Time of something that repeats.
#[derive(Clone, Debug, Default)]
pub(super) struct Load {
    pub(super) count: u64,
    pub(super) longest_ns: i64,
    pub(super) times: Windows,
}

/// Exceptions of a type at a call site.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thrown {
    pub(super) count: u64,
    pub(super) caught: u64,
    /// The method that caught one of them.
    pub(super) catcher: u32,
}

/// The value of a key, unless there are too many keys.
fn entry<K: Ord, V: Default>(map: &mut Map<K, V>, key: K, most: usize) -> Option<&mut V> {
    if map.len() >= most && !map.contains_key(&key) {
        return None;
    }
    Some(map.entry(key).or_default())
}

/// A row of a batch.
struct Row<'b> {
    columns: Vec<Column<'b>>,
    row: usize,
}

impl<'b> Row<'b> {
    fn number(&self, column: usize) -> u64 {
        self.known(column).unwrap_or_default()
    }

    fn known(&self, column: usize) -> Option<u64> {
        self.columns.get(column).and_then(|column| column.number(self.row))
    }

    fn real(&self, column: usize) -> Option<f64> {
        self.columns.get(column).and_then(|column| column.real(self.row))
    }

    fn time(&self, column: usize) -> i64 {
        self.number(column).cast_signed()
    }

    fn text(&self, column: usize) -> &'b str {
        self.columns.get(column).and_then(|column| column.text(self.row)).unwrap_or_default()
    }
}

/// The tables whose rows are summed here, and their columns in the order in which they are read.
const COLUMNS: &[(&str, &[&str])] = &[
    ("trace", &["duration_ns", "event_count", "dropped_event_count", "frame_count", "named_frame_count"]),
    ("allocation", &["process_id", "callsite_id", "source", "allocation_bytes", "heap_kind", "type_id", "type_name"]),
    ("contention", &["process_id", "callsite_id", "lock_id", "start_ts_ns", "duration_ns"]),
    ("exception", &["process_id", "callsite_id", "ts_ns", "type_name", "catch_count", "catch_method_name"]),
    ("wait", &["process_id", "callsite_id", "start_ts_ns", "duration_ns", "touches_gap"]),
    ("gc_allocation_wait", &["process_id", "callsite_id", "start_ts_ns", "duration_ns", "reason"]),
    ("cpu_sample", &["process_id", "thread_id", "callsite_id", "kind", "sample_count"]),
    ("thread_pool", &["process_id", "ts_ns", "starvation"]),
    ("thread_pool_work", &["process_id", "wait_ns"]),
    ("method_compilation", &["process_id", "thread_id", "start_ts_ns", "end_ts_ns", "kind", "tier"]),
    // A table of `convert --lifetimes`: most recordings do not have it.
    (
        "allocation_lifetime",
        &[
            "process_id",
            "callsite_id",
            "type_id",
            "fate",
            "allocation_bytes",
            "survived_collections",
            "ts_ns",
            "last_alive_ts_ns",
            "highest_generation",
            "generation_at_end",
            "dead_ts_ns",
        ],
    ),
    (<Collection<'_> as Typed>::TABLE, <Collection<'_> as Typed>::COLUMNS),
    (<Stop<'_> as Typed>::TABLE, <Stop<'_> as Typed>::COLUMNS),
    (<Sizes<'_> as Typed>::TABLE, <Sizes<'_> as Typed>::COLUMNS),
    (<Activity<'_> as Typed>::TABLE, <Activity<'_> as Typed>::COLUMNS),
    (<HeapGeneration<'_> as Typed>::TABLE, <HeapGeneration<'_> as Typed>::COLUMNS),
    (<Mark<'_> as Typed>::TABLE, <Mark<'_> as Typed>::COLUMNS),
    ("gc_tuning", &["process_id", "event_name", "field", "value"]),
];

impl Picture {
    /// Nothing seen yet.
    pub(super) fn new() -> Result<Picture> {
        Ok(Picture {
            recording_ns: 0,
            events: 0,
            dropped: 0,
            frames: 0,
            named_frames: 0,
            needs: needs()?,
            types: TypeNames::default(),
            sites: Sites::default(),
            collections: Collections::default(),
            processes: BTreeMap::new(),
            texts: Texts::new(MOST_TEXT),
        })
    }

    /// The tables that are looked at. Call sites come last: by then it is known which of them are asked about.
    pub(super) fn tables() -> Vec<&'static str> {
        let summed = COLUMNS.iter().map(|(table, _)| *table);
        let all = summed.chain(Needs::tables()).chain([TypeNames::TABLE, "frame", "callsite"]);
        all.filter(|table| schema::of(table).is_ok()).collect()
    }

    /// The columns of a table that are looked at.
    pub(super) fn columns(table: &str) -> Vec<&'static str> {
        let summed = COLUMNS.iter().find(|(name, _)| *name == table).map_or(&[][..], |(_, columns)| columns);
        let mut all = [summed, Sites::columns(table), Needs::columns(table), TypeNames::columns(table)].concat();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Sees rows of a table.
    pub(super) fn add(&mut self, table: &str, batch: &RecordBatch) -> Result<()> {
        self.sites.add(table, batch)?;
        self.needs.add(table, batch)?;
        self.types.add(table, batch)?;
        match table {
            "gc" => {
                for row in rows_of::<Collection<'_>>(batch)? {
                    let reason = self.texts.place(row.reason.unwrap_or_default());
                    self.collections.gc(&row, reason);
                }
                return Ok(());
            }
            "gc_pause" => {
                rows_of::<Stop<'_>>(batch)?.for_each(|row| self.collections.stop(&row));
                return Ok(());
            }
            "gc_heap_stats" => {
                rows_of::<Sizes<'_>>(batch)?.for_each(|row| self.collections.sizes(&row));
                return Ok(());
            }
            "gc_heap_generation" => {
                rows_of::<HeapGeneration<'_>>(batch)?.for_each(|row| self.collections.generation(&row));
                return Ok(());
            }
            "activity" => {
                for row in rows_of::<Activity<'_>>(batch)? {
                    if let Some(process) = self.process(row.process_id) {
                        process.activity(&row);
                    }
                }
                return Ok(());
            }
            "gc_mark" => {
                rows_of::<Mark<'_>>(batch)?.for_each(|row| self.collections.mark(&row));
                return Ok(());
            }
            _ => {}
        }
        let Some((_, names)) = COLUMNS.iter().find(|(name, _)| *name == table) else { return Ok(()) };
        let columns = names.iter().map(|name| Column::of(batch, name)).collect::<Result<Vec<_>>>()?;
        let mut row = Row { columns, row: 0 };
        for at in 0..batch.num_rows() {
            row.row = at;
            self.row(table, &row);
        }
        Ok(())
    }

    fn row(&mut self, table: &str, row: &Row<'_>) {
        if table == "trace" {
            self.recording_ns = row.time(0);
            (self.events, self.dropped) = (row.number(1), row.number(2));
            (self.frames, self.named_frames) = (row.number(3), row.number(4));
            return;
        }
        let id = row.number(0);
        if self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&id) {
            return;
        }
        // Not by `process`, which borrows all of the picture.
        let process = self.processes.entry(id).or_default();
        let site = row.number(1) as u32;
        match table {
            "allocation" => {
                let Some(rank) = rank(row.text(2)) else { return };
                let (bytes, kind) = (row.number(3) as f64, row.number(5));
                self.types.also(id, kind, row.text(6));
                let of_rank = process.allocations.entry(rank).or_default();
                let Some(sum) = entry(of_rank, (site, kind), MOST_KEYS) else { return };
                sum.bytes += bytes;
                sum.samples += 1;
                if row.text(4) == "large" {
                    sum.large_bytes += bytes;
                    sum.large_samples += 1;
                }
            }
            "allocation_lifetime" => {
                process.survivors.see(row.number(5), || Survivor {
                    site,
                    kind: row.number(2),
                    bytes: row.number(4) as f64,
                    born_ns: row.time(6),
                    alive_ns: row.time(7),
                    is_dead: row.text(3) == "dead",
                    is_alive: row.text(3) == "alive",
                    reached: row.known(8),
                    died_in: row.known(9),
                    dead_ns: row.known(10).map(u64::cast_signed),
                });
            }
            "contention" => {
                let (lock, start, duration) = (row.number(2), row.time(3), row.time(4));
                if let Some(load) = entry(&mut process.locks, (lock, site), MOST_LOADS) {
                    load.add(start, duration);
                }
            }
            "exception" => {
                let (kind, catcher) = (self.texts.place(row.text(3)), self.texts.place(row.text(5)));
                process.exception_times.at(row.time(2), 1.0);
                if let Some(thrown) = entry(&mut process.exceptions, (site, kind), MOST_KEYS) {
                    thrown.count += 1;
                    thrown.caught += u64::from(row.number(4) > 0);
                    thrown.catcher = if catcher > 0 { catcher } else { thrown.catcher };
                }
            }
            "wait" => {
                let start = row.time(2);
                process.last_ns = process.last_ns.max(start);
                match row.known(3) {
                    Some(duration) => {
                        process.last_ns = process.last_ns.max(start.saturating_add(duration.cast_signed()));
                        if let Some(load) = entry(&mut process.waits, site, MOST_LOADS) {
                            load.add(start, duration.cast_signed());
                        }
                    }
                    None if row.number(4) == 0 && process.open_waits.len() < MOST_LOADS => {
                        process.open_waits.push((site, start));
                    }
                    None => {}
                }
            }
            "gc_allocation_wait" => {
                // Small objects wait in this way, too, when memory is short.
                let is_large = ["loh", "uoh"].iter().any(|heap| row.text(4).contains(heap));
                if let Some(duration) = row.known(3).filter(|_| is_large)
                    && let Some(load) = entry(&mut process.allocation_waits, site, MOST_LOADS)
                {
                    load.add(row.time(2), duration.cast_signed());
                }
            }
            "cpu_sample" => {
                let (thread, site, count) = (row.number(1), row.number(2) as u32, row.number(4));
                if let Some(sum) = entry(&mut process.thread_samples, thread, MOST_LOADS) {
                    *sum = sum.saturating_add(count);
                }
                if State::of(Some(row.text(3))) == State::Waiting
                    && let Some(sum) = entry(&mut process.waiting, site, MOST_KEYS)
                {
                    *sum = sum.saturating_add(count);
                }
            }
            "thread_pool" if row.number(2) == 1 => process.starvation.at(row.time(1), 1.0),
            "thread_pool_work" => {
                if let Some(wait) = row.known(1) {
                    process.queued.add(wait.cast_signed());
                }
            }
            "method_compilation" => {
                // Code that is made better is made on a thread of its own while the old code runs.
                let is_behind = row.text(5).starts_with("OptimizedTier1");
                let Some(end) = row.known(3).filter(|_| row.text(4) == "jit" && !is_behind) else { return };
                if process.compilations.len() < MOST_ROWS {
                    process.compilations.push((row.number(1), row.time(2), end.cast_signed()));
                }
            }
            "gc_tuning" => {
                let is_cost = row.text(1) == "SizeAdaptationTuning" && row.text(2) == "median_throughput_cost_percent";
                if let Some(cost) = row.real(3).filter(|cost| is_cost && cost.is_finite())
                    && process.throughput_costs.len() < MOST_ROWS
                {
                    process.throughput_costs.push(cost);
                }
            }
            _ => {}
        }
    }

    /// Sees what became of a sampled object.
    pub(super) fn follow(&mut self, lifetime: &Lifetime<'_>) {
        let (sample, life) = (lifetime.sample, lifetime.life);
        let Some(process) = self.process(sample.process_id) else { return };
        let bytes = lifetime.bytes().unwrap_or_default() as f64;
        process.survivors.see(life.survived_collections.into(), || Survivor {
            site: sample.callsite_id,
            kind: sample.type_id,
            bytes,
            born_ns: sample.ts_ns,
            alive_ns: life.last_alive_ns,
            is_dead: life.fate == Fate::Dead,
            is_alive: life.fate == Fate::Alive,
            reached: life.highest_generation.map(u64::from),
            died_in: life.generation_at_end.map(u64::from),
            dead_ns: life.dead_ns,
        });
    }

    fn process(&mut self, id: u64) -> Option<&mut Process> {
        if self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&id) {
            return None;
        }
        Some(self.processes.entry(id).or_default())
    }

    /// All rows were seen.
    pub(super) fn finish(&mut self) {
        for process in self.processes.values_mut() {
            process.finish_work();
            for (site, start) in std::mem::take(&mut process.open_waits) {
                let duration = process.last_ns.saturating_sub(start);
                if let Some(load) = entry(&mut process.waits, site, MOST_LOADS) {
                    load.add(start, duration);
                }
            }
        }
        for id in self.collections.processes() {
            if self.processes.len() < MOST_PROCESSES {
                self.processes.entry(id).or_default();
            }
        }
        self.collections.finish();
    }

    /// A text by its number.
    pub(super) fn text(&self, place: u32) -> Option<&str> {
        self.texts.get(place)
    }

    /// Whether the events of a need were recorded.
    pub(super) fn has(&self, need: &str) -> bool {
        self.needs.missing(Some(need)).is_none()
    }
}

impl Load {
    fn add(&mut self, start_ns: i64, duration_ns: i64) {
        self.count += 1;
        self.longest_ns = self.longest_ns.max(duration_ns);
        self.times.span(start_ns, duration_ns);
    }
}

impl Process {
    fn activity(&mut self, row: &Activity<'_>) {
        let is_query = query_text(row.start_fields.unwrap_or_default(), row.end_fields.unwrap_or_default()).is_some();
        let kind = Kind::of(row.provider_name, row.name, is_query);
        self.work.add(row, kind);
        match kind {
            Kind::Request(place) => {
                let requests = self.requests.get_mut(place).filter(|requests| requests.len() < MOST_ROWS);
                if let (Some(requests), Some(duration_ns)) = (requests, row.duration_ns) {
                    requests.push((row.start_ts_ns, duration_ns));
                }
            }
            Kind::Call(place) => {
                if let Some(calls) = self.calls.get_mut(place) {
                    calls.see_call(row);
                }
            }
            Kind::Query => self.queries.see(row),
            Kind::Frame | Kind::Other => {}
        }
    }

    fn finish_work(&mut self) {
        let mut work = std::mem::take(&mut self.work);
        work.finish();
        self.queries.finish(Kind::Query, &work);
        for (place, calls) in self.calls.iter_mut().enumerate() {
            calls.finish(Kind::Call(place), &work);
        }
    }

    /// The allocations by the samples that count.
    pub(super) fn counted(&self) -> impl Iterator<Item = (&(u32, u64), &Allocated)> {
        self.allocations.values().next().into_iter().flatten()
    }

    /// The same as call site, type and number of samples.
    pub(super) fn sampled(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        self.counted().map(|((site, kind), allocated)| (*site, *kind, allocated.samples))
    }

    /// Requests of HttpClient by route, of the best source that has them.
    pub(super) fn calls(&self) -> &[Statement] {
        self.calls.iter().map(|calls| calls.statements.as_slice()).find(|all| !all.is_empty()).unwrap_or_default()
    }

    /// Requests that came in: start and duration.
    pub(super) fn requests(&self) -> &[(i64, i64)] {
        self.requests.iter().find(|requests| !requests.is_empty()).map_or(&[], Vec::as_slice)
    }
}
