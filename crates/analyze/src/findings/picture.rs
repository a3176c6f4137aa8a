//! What rules look at: sums of a recording's rows by process, made in one pass over its tables, with bounded memory.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use tracequet_dataset::error::Result;
use tracequet_dataset::read::rows::{Row, rows_of};
use tracequet_dataset::table::schema;
use tracequet_facts::SOURCE_FAULT;

use super::collections::Collections;
use super::loops::Loops;
use super::queries::{Queries, Statement};
use super::stretches::Stretches;
use super::survivors::{Survivor, Survivors};
use super::times::Times;
use super::windows::Windows;
use crate::lifetime::{Fate, Lifetime};
use crate::metrics::{Needs, TypeNames, needs};
use crate::pieces::Pieces;
use crate::subjects::allocations::rank;
use crate::subjects::collections::Collection;
use crate::subjects::compiling::Compilation;
use crate::subjects::heap::{HeapGeneration, Mark, Size};
use crate::subjects::pauses::Stop;
use crate::subjects::pool::{PoolEvent, WorkItem};
use crate::subjects::processor::{State, is_of_runtime};
use crate::subjects::requests::{Activity, Kind, Work, query_text};
use crate::subjects::sites::Sites;
use crate::subjects::texts::Texts;
use crate::subjects::waits::{Awaits, LockWait, TaskTime, TaskWait, Wait, Waiting};

/// Processes that are looked at; rows of more are left out.
const MOST_PROCESSES: usize = 256;

/// Keys of a sum. What comes later is left out.
const MOST_KEYS: usize = 1 << 16;

/// Keys whose amounts are kept by time.
const MOST_LOADS: usize = 1 << 12;

/// Rows that are kept one by one.
const MOST_ROWS: usize = 1 << 18;

/// The namespace that the runtime gives methods that were made at run time.
const DYNAMIC: &str = "dynamicClass";

/// Threads that are there by then were there before.
const START_NS: i64 = 1_000_000_000;

/// Reports of EventSources that are remembered.
const MOST_FAULTS: usize = 256;

/// Bytes of texts that are remembered.
const MOST_TEXT: usize = 16 << 20;

/// Walked in the order of its keys, so that sums of fractions come out the same each time.
type Map<K, V> = BTreeMap<K, V>;

/// The recording.
#[derive(Debug, Default)]
pub(super) struct Picture {
    pub(super) recording_ns: i64,
    pub(super) events: u64,
    pub(super) dropped: u64,
    pub(super) frames: u64,
    pub(super) named_frames: u64,
    pub(super) processors: u64,
    /// The memory that the container may use; `None` where it may use all, or where that is not known.
    pub(super) memory_limit: Option<u64>,
    /// How long tasks were without a thread; handed to their processes once all were seen.
    awaits: Awaits,
    /// Different reports of EventSources that events of theirs are missing, and how many there are.
    pub(super) source_faults: Vec<String>,
    pub(super) source_fault_events: u64,
    /// Time between two samples of a kernel; 0 when it was not recorded.
    pub(super) sampling_ns: u64,
    pub(super) needs: Needs,
    pub(super) types: TypeNames,
    pub(super) sites: Sites,
    pub(super) collections: Collections,
    pub(super) processes: BTreeMap<u64, Process>,
    /// Threads that began during the recording, by process. A kernel has those of processes without a runtime, too.
    started: Map<u64, BTreeSet<u64>>,
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
    /// How long these waits took, by call site.
    pub(super) wait_times: Map<u32, Times>,
    /// Tasks without a thread, by call site.
    pub(super) awaiting: Map<u32, Waiting>,
    pub(super) loops: Loops,
    open_waits: Vec<(u32, i64)>,
    /// Samples of threads that wait and of those that run, by call site, and all samples of each thread.
    pub(super) waiting: Map<u32, u64>,
    pub(super) running: Map<u32, u64>,
    pub(super) thread_samples: Map<u64, u64>,
    /// A call site that each thread was seen at, and the threads that began during the recording.
    pub(super) thread_sites: Map<u64, u32>,
    pub(super) started: BTreeSet<u64>,
    /// Samples of the runtime from the first minute, as stretches.
    pub(super) stretches: Stretches,
    /// Whether the runtime took a sample, and not a kernel.
    pub(super) is_sampled_by_runtime: bool,
    /// Sums of the counters of the thread pool.
    pub(super) queue: QueueCounters,
    /// By the number of the name.
    pub(super) assemblies: Map<u32, Loads>,
    /// By the number of the name and call site.
    pub(super) assembly_asks: Map<(u32, u32), u64>,
    /// Objects that a pinned handle was made for, and where sampled objects were allocated.
    pub(super) pinned: BTreeSet<u64>,
    pub(super) born: Pieces<(u64, u32, f64)>,
    /// Connections that HttpClient made.
    pub(super) connections: u64,
    /// Finalized objects by type.
    pub(super) finalized: Map<u64, u64>,
    pub(super) starvation: Windows,
    /// How long work items waited for a worker; in order once all were seen.
    pub(super) queued_ns: Vec<u64>,
    /// Thread, start, end and call site of compilations.
    pub(super) compilations: Vec<(u64, i64, i64, u32)>,
    /// Start and call site of compilations of methods that were made at run time.
    pub(super) dynamic: Vec<(i64, u32)>,
    pub(super) queries: Queries,
    /// Requests of HttpClient, by source.
    calls: [Queries; 3],
    /// Waits of threads that allocate large objects, by call site.
    pub(super) allocation_waits: Map<u32, Load>,
    /// What the collector takes of the time by its own measure, in percent: of one that adapts the number of its heaps.
    pub(super) throughput_costs: Vec<f64>,
    /// The most that the heap had of the memory.
    pub(super) committed: f64,
    requests: OfBestSource,
    work: Work,
    last_ns: i64,
}

/// Requests that ended, of the best source that has any: several stand for the same ones.
#[derive(Debug, Default)]
struct OfBestSource {
    place: usize,
    /// Start and duration.
    all: Vec<(i64, i64)>,
}

impl OfBestSource {
    fn see(&mut self, place: usize, request: (i64, i64)) {
        if self.all.is_empty() || place < self.place {
            self.place = place;
            self.all.clear();
        }
        if place == self.place && self.all.len() < MOST_ROWS {
            self.all.push(request);
        }
    }
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

/// Number of times that an assembly was loaded, and unloaded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loads {
    pub(super) loaded: u64,
    pub(super) unloaded: u64,
}

/// The thread pool by the runtime's counters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueCounters {
    pub(super) intervals: u64,
    queued: f64,
    completed: f64,
    completed_ns: f64,
}

impl QueueCounters {
    /// Work items that wait, on average.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.intervals > 0).then(|| self.queued / self.intervals as f64)
    }

    /// Work items that end in a second.
    pub(super) fn completed_per_second(&self) -> Option<f64> {
        (self.completed_ns > 0.0).then(|| self.completed / self.completed_ns * 1e9)
    }

    /// Mean wait of a work item: the mean length of the queue times the mean time between two that complete.
    pub(super) fn wait_ns(&self) -> Option<f64> {
        let mean = self.mean()?;
        (self.completed_ns > 0.0).then(|| mean * self.completed_ns / self.completed.max(1.0))
    }
}

/// Exceptions of a type at a call site.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thrown {
    pub(super) count: u64,
    pub(super) caught: u64,
    /// The method that caught one of them.
    pub(super) catcher: u32,
}

/// Whether HttpClient made a connection.
fn is_connection(row: &Activity<'_>) -> bool {
    row.provider_name == "Experimental.System.Net.Http.Connections" && row.name.ends_with("ConnectionSetup")
}

/// The value of a key, unless there are too many keys.
fn entry<K: Ord, V: Default>(map: &mut Map<K, V>, key: K, most: usize) -> Option<&mut V> {
    if map.len() >= most && !map.contains_key(&key) {
        return None;
    }
    Some(map.entry(key).or_default())
}

tracequet_dataset::row!(struct Recorded of trace {
    duration_ns, event_count, dropped_event_count, frame_count, named_frame_count, processor_count, sampling_ns,
    memory_limit_bytes
});

tracequet_dataset::row!(struct Diagnosed of diagnostic { code, message, count });

tracequet_dataset::row!(struct Sampled of allocation {
    process_id, callsite_id, source, allocation_bytes, heap_kind, type_id, type_name, object_id
});

tracequet_dataset::row!(struct Exception of exception {
    process_id, callsite_id, ts_ns, type_name, catch_count, catch_method_name
});

tracequet_dataset::row!(struct AllocationWait of gc_allocation_wait {
    process_id, callsite_id, start_ts_ns, duration_ns, reason
});

tracequet_dataset::row!(struct Sample of cpu_sample { process_id, thread_id, callsite_id, ts_ns, kind, sample_count });

tracequet_dataset::row!(struct Thread of thread { process_id, thread_id, start_ts_ns, first_ts_ns });

tracequet_dataset::row!(struct Counter of counter { process_id, name, value, interval_ns });

tracequet_dataset::row!(struct Assembly of assembly { process_id, name, load_ts_ns, unload_ts_ns });

tracequet_dataset::row!(struct AssemblyAsk of assembly_load { process_id, callsite_id, name });

tracequet_dataset::row!(struct Handle of gc_handle { process_id, action, object_id, handle_kind });

tracequet_dataset::row!(struct Finalized of gc_finalizable { process_id, action, type_id });

tracequet_dataset::row!(struct Tuning of gc_tuning { process_id, event_name, field, value });

tracequet_dataset::row!(struct Lived of allocation_lifetime {
    process_id, callsite_id, type_id, fate, allocation_bytes, survived_collections, ts_ns, last_alive_ts_ns,
    highest_generation, generation_at_end
});

/// A table whose rows are summed here: its name, the columns that are read, and what sees a batch of them.
type Summed = (&'static str, &'static [&'static str], fn(&mut Picture, &RecordBatch) -> Result<()>);

/// The table of a kind of rows, each of which goes to a method of the picture.
macro_rules! summed {
    ($row:ident, $($see:ident).+) => {
        (<$row<'_> as Row>::TABLE, <$row<'_> as Row>::COLUMNS, |picture, batch| {
            rows_of::<$row<'_>>(batch)?.for_each(|row| picture.$($see).+(&row));
            Ok(())
        })
    };
}

/// The table of a kind of rows, each of which goes to a method of its process.
macro_rules! by_process {
    ($row:ident, $see:ident) => {
        (<$row<'_> as Row>::TABLE, <$row<'_> as Row>::COLUMNS, |picture, batch| {
            for row in rows_of::<$row<'_>>(batch)? {
                if let Some(process) = picture.process(row.process_id) {
                    process.$see(&row);
                }
            }
            Ok(())
        })
    };
}

const SUMMED: &[Summed] = &[
    summed!(Recorded, recorded),
    summed!(Diagnosed, diagnosed),
    summed!(Sampled, sampled),
    summed!(Exception, exception),
    summed!(Collection, collection),
    summed!(Stop, collections.stop),
    summed!(Size, collections.sizes),
    summed!(HeapGeneration, collections.generation),
    summed!(Mark, collections.mark),
    summed!(Assembly, assembly),
    summed!(AssemblyAsk, assembly_ask),
    by_process!(LockWait, lock),
    by_process!(Wait, wait),
    by_process!(AllocationWait, allocation_wait),
    by_process!(Sample, sample),
    summed!(TaskTime, task_time),
    summed!(TaskWait, awaits.wait),
    by_process!(PoolEvent, pool),
    by_process!(WorkItem, work_item),
    by_process!(Compilation, compilation),
    by_process!(Activity, activity),
    summed!(Thread, thread),
    by_process!(Counter, counter),
    by_process!(Finalized, finalized),
    by_process!(Handle, handle),
    by_process!(Tuning, tuning),
    // A table of `convert --lifetimes`: most recordings do not have it.
    by_process!(Lived, lived),
];

impl Picture {
    /// Nothing seen yet.
    pub(super) fn new() -> Result<Picture> {
        Ok(Picture { needs: needs()?, texts: Texts::new(MOST_TEXT), ..Picture::default() })
    }

    /// The tables that are looked at. Call sites come last: by then it is known which of them are asked about.
    pub(super) fn tables() -> Vec<&'static str> {
        let summed = SUMMED.iter().map(|(table, ..)| *table);
        let all = summed.chain(Needs::tables()).chain([TypeNames::TABLE, "frame", "callsite"]);
        all.filter(|table| schema::of(table).is_ok()).collect()
    }

    /// The columns of a table that are looked at.
    pub(super) fn columns(table: &str) -> Vec<&'static str> {
        let summed = SUMMED.iter().find(|(name, ..)| *name == table).map_or(&[][..], |(_, columns, _)| columns);
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
        match SUMMED.iter().find(|(name, ..)| *name == table) {
            Some((.., see)) => see(self, batch),
            None => Ok(()),
        }
    }

    fn recorded(&mut self, row: &Recorded<'_>) {
        self.recording_ns = row.duration_ns;
        (self.events, self.dropped) = (row.event_count, row.dropped_event_count);
        (self.frames, self.named_frames) = (row.frame_count, row.named_frame_count);
        (self.processors, self.sampling_ns) = (row.processor_count, row.sampling_ns);
        self.memory_limit = row.memory_limit_bytes.filter(|bytes| *bytes > 0);
    }

    fn diagnosed(&mut self, row: &Diagnosed<'_>) {
        if row.code == SOURCE_FAULT {
            self.source_fault_events = self.source_fault_events.saturating_add(row.count);
            if self.source_faults.len() < MOST_FAULTS {
                self.source_faults.push(row.message.to_owned());
            }
        }
    }

    fn task_time(&mut self, row: &TaskTime<'_>) {
        let name = self.texts.place(row.method.unwrap_or_default());
        if let Some(process) = self.process(row.process_id) {
            process.loops.see(row, name);
            self.awaits.task(row);
        }
    }

    fn sampled(&mut self, row: &Sampled<'_>) {
        let Some(rank) = rank(row.source) else { return };
        self.types.also(row.process_id, row.type_id, row.type_name.unwrap_or_default());
        let Some(process) = self.process(row.process_id) else { return };
        if row.object_id != 0 && process.born.len() < MOST_ROWS {
            process.born.push((row.object_id, row.callsite_id, row.allocation_bytes.unwrap_or_default() as f64));
        }
        let of_rank = process.allocations.entry(rank).or_default();
        let Some(sum) = entry(of_rank, (row.callsite_id, row.type_id), MOST_KEYS) else { return };
        let bytes = row.allocation_bytes.unwrap_or_default() as f64;
        sum.bytes += bytes;
        sum.samples += 1;
        if row.heap_kind == Some("large") {
            sum.large_bytes += bytes;
            sum.large_samples += 1;
        }
    }

    fn exception(&mut self, row: &Exception<'_>) {
        let kind = self.texts.place(row.type_name);
        let catcher = self.texts.place(row.catch_method_name.unwrap_or_default());
        let Some(process) = self.process(row.process_id) else { return };
        process.exception_times.at(row.ts_ns, 1.0);
        if let Some(thrown) = entry(&mut process.exceptions, (row.callsite_id, kind), MOST_KEYS) {
            thrown.count += 1;
            thrown.caught += u64::from(row.catch_count > 0);
            thrown.catcher = if catcher > 0 { catcher } else { thrown.catcher };
        }
    }

    fn thread(&mut self, row: &Thread<'_>) {
        let is_new = row.start_ts_ns.unwrap_or(row.first_ts_ns) > START_NS;
        if is_new
            && let Some(started) = entry(&mut self.started, row.process_id, MOST_PROCESSES)
            && started.len() < MOST_ROWS
        {
            started.insert(row.thread_id);
        }
    }

    fn assembly(&mut self, row: &Assembly<'_>) {
        let Some(name) = row.load_ts_ns.map(|_| self.texts.place(row.name)) else { return };
        let Some(process) = self.process(row.process_id) else { return };
        if let Some(loads) = entry(&mut process.assemblies, name, MOST_KEYS) {
            loads.loaded += 1;
            loads.unloaded += u64::from(row.unload_ts_ns.is_some());
        }
    }

    fn assembly_ask(&mut self, row: &AssemblyAsk<'_>) {
        let name = self.texts.place(row.name);
        let Some(process) = self.process(row.process_id) else { return };
        if let Some(count) = entry(&mut process.assembly_asks, (name, row.callsite_id), MOST_KEYS) {
            *count += 1;
        }
    }

    fn collection(&mut self, row: &Collection<'_>) {
        let reason = self.texts.place(row.reason.unwrap_or_default());
        self.collections.gc(row, reason);
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
            reached: life.highest_generation,
            died_in: life.generation_at_end,
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
            process.stretches.finish();
            process.queued_ns.sort_unstable();
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
        for ((id, site), waiting) in std::mem::take(&mut self.awaits).by_site() {
            if let Some(process) = self.processes.get_mut(&id) {
                process.awaiting.insert(site, waiting);
            }
        }
        for (id, started) in std::mem::take(&mut self.started) {
            self.processes.entry(id).and_modify(|process| process.started = started);
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
    fn lock(&mut self, row: &LockWait<'_>) {
        if let Some(load) = entry(&mut self.locks, (row.lock_id, row.callsite_id), MOST_LOADS) {
            load.add(row.start_ts_ns, row.duration_ns.unwrap_or_default());
        }
    }

    fn wait(&mut self, row: &Wait<'_>) {
        let start = row.start_ts_ns;
        self.last_ns = self.last_ns.max(start);
        match row.duration_ns {
            Some(duration) => {
                self.last_ns = self.last_ns.max(start.saturating_add(duration));
                if let Some(load) = entry(&mut self.waits, row.callsite_id, MOST_LOADS) {
                    load.add(start, duration);
                }
                if let Some(times) = entry(&mut self.wait_times, row.callsite_id, MOST_LOADS) {
                    times.add(duration);
                }
            }
            None if !row.touches_gap && self.open_waits.len() < MOST_LOADS => {
                self.open_waits.push((row.callsite_id, start));
            }
            None => {}
        }
    }

    fn allocation_wait(&mut self, row: &AllocationWait<'_>) {
        // Small objects wait in this way, too, when memory is short.
        let is_large = row.reason.is_some_and(|reason| ["loh", "uoh"].iter().any(|heap| reason.contains(heap)));
        if let Some(duration) = row.duration_ns.filter(|_| is_large)
            && let Some(load) = entry(&mut self.allocation_waits, row.callsite_id, MOST_LOADS)
        {
            load.add(row.start_ts_ns, duration);
        }
    }

    fn sample(&mut self, row: &Sample<'_>) {
        let count = u64::from(row.sample_count);
        if let Some(sum) = entry(&mut self.thread_samples, row.thread_id, MOST_LOADS) {
            *sum = sum.saturating_add(count);
        }
        if let Some(site) = entry(&mut self.thread_sites, row.thread_id, MOST_KEYS) {
            *site = row.callsite_id;
        }
        if is_of_runtime(row.kind) {
            self.is_sampled_by_runtime = true;
            let is_running = State::of(row.kind) == State::Running;
            self.stretches.see(row.thread_id, row.callsite_id, is_running, row.ts_ns);
        }
        let by_site = match State::of(row.kind) {
            State::Waiting => &mut self.waiting,
            State::Running => &mut self.running,
            State::Idle => return,
        };
        if let Some(sum) = entry(by_site, row.callsite_id, MOST_KEYS) {
            *sum = sum.saturating_add(count);
        }
    }

    fn counter(&mut self, row: &Counter<'_>) {
        let Some(value) = row.value.filter(|value| value.is_finite()) else { return };
        match row.name {
            "threadpool-queue-length" => {
                self.queue.intervals += 1;
                self.queue.queued += value;
            }
            "threadpool-completed-items-count" => {
                self.queue.completed += value;
                self.queue.completed_ns += row.interval_ns.unwrap_or_default().max(0) as f64;
            }
            _ => {}
        }
    }

    fn handle(&mut self, row: &Handle<'_>) {
        let is_pinned = row.action == "created" && row.handle_kind.is_some_and(|kind| kind.ends_with("Pinned"));
        if is_pinned && self.pinned.len() < MOST_ROWS {
            self.pinned.insert(row.object_id);
        }
    }

    fn finalized(&mut self, row: &Finalized<'_>) {
        if row.action == "finalized"
            && let Some(count) = entry(&mut self.finalized, row.type_id, MOST_KEYS)
        {
            *count += 1;
        }
    }

    /// Samples of the thread that has most: how often the runtime looked.
    pub(super) fn rounds(&self) -> u64 {
        self.thread_samples.values().copied().max().unwrap_or_default()
    }

    fn pool(&mut self, row: &PoolEvent<'_>) {
        if row.is_starvation() {
            self.starvation.at(row.ts_ns, 1.0);
        }
    }

    fn work_item(&mut self, row: &WorkItem<'_>) {
        let wait_ns = row.wait_ns.filter(|_| self.queued_ns.len() < MOST_ROWS);
        self.queued_ns.extend(wait_ns.map(|ns| ns.max(0).cast_unsigned()));
    }

    fn compilation(&mut self, row: &Compilation<'_>) {
        if row.is_jit() && row.namespace == DYNAMIC && self.dynamic.len() < MOST_ROWS {
            self.dynamic.push((row.start_ts_ns, row.callsite_id));
        }
        if let Some(end) = row.end_ts_ns.filter(|_| row.is_foreground() && self.compilations.len() < MOST_ROWS) {
            self.compilations.push((row.thread_id, row.start_ts_ns, end, row.callsite_id));
        }
    }

    fn tuning(&mut self, row: &Tuning<'_>) {
        if row.field == "total_committed_in_use" && row.value.is_finite() {
            self.committed = self.committed.max(row.value);
        }
        let is_cost = row.event_name == "SizeAdaptationTuning" && row.field == "median_throughput_cost_percent";
        if is_cost && row.value.is_finite() && self.throughput_costs.len() < MOST_ROWS {
            self.throughput_costs.push(row.value);
        }
    }

    fn lived(&mut self, row: &Lived<'_>) {
        self.survivors.see(row.survived_collections.into(), || Survivor {
            site: row.callsite_id,
            kind: row.type_id,
            bytes: row.allocation_bytes.unwrap_or_default() as f64,
            born_ns: row.ts_ns,
            alive_ns: row.last_alive_ts_ns,
            is_dead: row.fate == "dead",
            is_alive: row.fate == "alive",
            reached: row.highest_generation,
            died_in: row.generation_at_end,
        });
    }

    fn activity(&mut self, row: &Activity<'_>) {
        let is_query = query_text(row.start_fields.unwrap_or_default(), row.end_fields.unwrap_or_default()).is_some();
        let kind = Kind::of(row.provider_name, row.name, is_query);
        self.work.add(row, kind);
        self.connections += u64::from(is_connection(row));
        match kind {
            Kind::Request(place) => {
                if let Some(duration_ns) = row.duration_ns {
                    self.requests.see(place, (row.start_ts_ns, duration_ns));
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
        self.loops.finish(&work);
        for (place, calls) in self.calls.iter_mut().enumerate() {
            calls.finish(Kind::Call(place), &work);
        }
    }

    /// The allocations by the samples that count.
    pub(super) fn counted(&self) -> impl Iterator<Item = (&(u32, u64), &Allocated)> {
        self.allocations.values().next().into_iter().flatten()
    }

    /// Requests of HttpClient by route, of the best source that has them.
    pub(super) fn calls(&self) -> &[Statement] {
        self.calls.iter().map(|calls| calls.statements.as_slice()).find(|all| !all.is_empty()).unwrap_or_default()
    }

    /// Requests that came in: start and duration.
    pub(super) fn requests(&self) -> &[(i64, i64)] {
        &self.requests.all
    }
}
