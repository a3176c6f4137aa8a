//! Recorded ICorProfilerCallback calls to facts: the same facts as from events, by the rules of `docs/PROFILER.md`.
//! The calls come from a `.corprof`, or from events of a profiler that writes them to ETW (`etw_profiler`).
//!
//! Callbacks carry no number of the collection: a call belongs to the innermost collection that is open. Which
//! collection is over at GarbageCollectionFinished is decided in `gc::callback_collections`, which ranges are reported
//! twice in `gc::version_pairs`.

pub mod call;

use std::hash::{BuildHasher, Hash};

use crate::prelude::*;
use tracequet_trace::reader::callback::format::{Header, NOT_ASKED, POLICY_SUSPENDS};
use tracequet_trace::reader::callback::{Body, Bounds, Record};

use super::enum_names::{self, callback_root_kind};
use super::fact::{
    Allocation, FactSink, GcFinalizable, GcGenerationRange, GcHandle, GcId, GcRoot, GcWeakElement, HeapObject,
    HeapReference, Method, NON_GC_HEAP, Process, Type, range_phase,
};
use super::gc::bounds::TOO_MANY_BOUNDS;
use super::gc::callback_collections::CallbackGcTracker;
use super::gc::callback_ranges::CallbackRanges;
use super::gc::pauses::TOO_MANY_PAUSES;
use super::gc::version_pairs::Kind;
use super::totals::Totals;
use call::Call;

const MONITOR_GC: u32 = 0x80;
const MONITOR_SUSPENDS: u32 = 0x1_0000;
/// Types and threads remembered.
const MAX_KNOWN: usize = 1 << 20;
/// Bytes of names of threads, each of which counts for each thread that has it; the others have none.
const MAX_THREAD_TEXT: usize = 24 << 20;

/// Finds the facts in the calls that one process made to its profiler.
#[derive(Default)]
pub struct CallbackNormalizer {
    process: Process<'static>,
    /// The command line, and the path and the version of the runtime.
    command_line: String,
    runtime_path: String,
    runtime_version: String,
    clock: Clock,
    wide: bool,
    pub(super) collections: CallbackGcTracker,
    ranges: CallbackRanges,
    /// Objects that waited for their finalizer after the last collection, sorted.
    waiting: Vec<u64>,
    /// A hash of what each id means.
    types: Map<u64, u64>,
    methods: Map<u64, u64>,
    threads: Map<u64, u64>,
    /// Name of each OS thread that has one.
    pub thread_names: Map<u64, String>,
    /// Bytes of all names that were kept or given out.
    thread_text: usize,
    object_parts: u64,
    heap_bounds_failed: u64,
    bad_generations: u64,
    cut_records: u64,
    lost: u64,
    last_gc_id: GcId,
}

impl CallbackNormalizer {
    /// For the records of a recording with this header.
    pub fn new(header: &Header, clock: Clock) -> CallbackNormalizer {
        // MONITOR_GC keeps the runtime from collecting in the background, from the start of the process or from the
        // attachment on.
        let concurrent = header.granted[0] & MONITOR_GC == 0;
        let suspends = header.policy & POLICY_SUSPENDS != 0 && header.granted[0] & MONITOR_SUSPENDS != 0;
        let process = Process {
            process_id: header.process_id,
            os: header.os_name(),
            arch: header.arch_name(),
            runtime_kind: match header.runtime_kind {
                1 => Some("DesktopClr"),
                2 => Some("CoreClr"),
                _ => None,
            },
            ..Process::default()
        };
        let collections = CallbackGcTracker::new(header.process_id, header.clr_instance_id, concurrent, suspends);
        let wide = header.pointer_size == 8;
        CallbackNormalizer {
            command_line: header.command_line.clone(),
            runtime_path: header.runtime_path.clone(),
            runtime_version: header.runtime_version.clone(),
            clock,
            wide,
            ..CallbackNormalizer::with(process, collections)
        }
    }

    /// For the calls of a process that are not records: blocking collections, and no suspensions.
    pub fn of_process(process_id: u64) -> CallbackNormalizer {
        let process = Process { process_id, ..Process::default() };
        CallbackNormalizer::with(process, CallbackGcTracker::new(process_id, 0, false, false))
    }

    fn with(process: Process<'static>, collections: CallbackGcTracker) -> CallbackNormalizer {
        CallbackNormalizer { collections, process, wide: true, ..CallbackNormalizer::default() }
    }

    /// Time of a record, nanoseconds since the recording began.
    pub fn time(&self, record: &Record<'_>) -> i64 {
        let ticks = i64::try_from(record.ticks).unwrap_or(i64::MAX);
        self.clock.since_start(ticks).unwrap_or(i64::MAX)
    }

    /// One record, in the order in which callbacks were entered.
    pub fn record(&mut self, record: &Record<'_>, sink: &mut impl FactSink) {
        let ts_ns = self.time(record);
        let process = &mut self.process;
        if process.event_count == 0 {
            (process.first_ts_ns, process.last_ts_ns) = (ts_ns, ts_ns);
        }
        process.event_count += 1;
        process.last_ts_ns = process.last_ts_ns.max(ts_ns);
        self.cut_records += u64::from(record.is_cut());
        let call = Call {
            ts_ns,
            thread: record.thread,
            thread_id: record.thread_id,
            callsite_id: 0,
            wide: self.wide,
            alone: false,
            failed: record.failed(),
            continues: record.continues(),
            offset: record.offset,
            body: record.body,
        };
        let mut last_gc_id = self.last_gc_id;
        self.call(&call, &mut last_gc_id, sink);
        if record.is_cut() {
            self.collections.all.rows_lost();
        }
        self.last_gc_id = last_gc_id;
    }

    /// One call, in the order in which they were made. Collections are numbered from `last_gc_id` on.
    pub fn call(&mut self, call: &Call<'_>, last_gc_id: &mut GcId, sink: &mut impl FactSink) {
        let ts_ns = call.ts_ns;
        self.collections.last_id = *last_gc_id;
        // Both versions may come in several records: `pairs` sees to those itself.
        if !matches!(call.body, Body::Surviving { .. } | Body::Moved { .. } | Body::Roots { .. } | Body::Roots2 { .. })
        {
            self.ranges.pairs.flush(call.thread, &mut self.collections, ts_ns);
        }
        match call.body {
            Body::Started { collected, reason, bounds, .. } => {
                self.ranges.pairs.flush_all(&mut self.collections, ts_ns);
                let generation = (0u8..32).rev().find(|g| collected >> g & 1 != 0).map(|g| g.min(2));
                // The runtime says "induced" truly; 3.1 says "other" of some induced collections as well.
                let reason = (reason == 1).then_some("Induced");
                self.collections.start(generation, reason, ts_ns, sink);
                let bounds = self.bounds(&bounds, false);
                self.collections.bounds_at_start(bounds);
            }
            Body::Finished { bounds } => {
                self.ranges.pairs.flush_all(&mut self.collections, ts_ns);
                let bounds = self.bounds(&bounds, true);
                if self.collections.finished(ts_ns, bounds, sink) {
                    let message = "a collection ends whose start is not in the recording";
                    let problem = Problem::loss("finished_without_started", call.offset, message);
                    sink.problem(&problem.thread(call.thread_id));
                }
            }
            Body::Surviving { version, rows } => {
                let rows = rows.iter().map(|[start, length]| [*start, *start, *length]);
                self.ranges.memory(call, (Kind::Surviving, version), rows, &mut self.collections, sink);
            }
            Body::Moved { version, rows } => {
                self.ranges.memory(call, (Kind::Moved, version), rows.iter().copied(), &mut self.collections, sink);
            }
            Body::Roots { objects } => self.ranges.roots1(call, objects, &mut self.collections, sink),
            Body::Roots2 { rows } => {
                let objects = rows.iter().map(|row| [row[0], 0, 0]);
                self.ranges.pairs.second(call, Kind::Roots, objects, &mut self.collections);
                let open = self.collections.innermost(ts_ns);
                open.row.root_count += rows.len() as u64;
                for [object_id, kind, flags, root_id] in rows {
                    let root_kind = callback_root_kind(*kind);
                    let root_flags = u32::try_from(*flags).unwrap_or_default();
                    sink.add(&GcRoot {
                        gc_id: open.row.gc_id,
                        object_id: *object_id,
                        root_kind,
                        root_flags,
                        root_flags_text: enum_names::root_flags(root_kind, root_flags),
                        root_id: *root_id,
                        name: None,
                    });
                }
            }
            Body::Weak { rows } => {
                let gc_id = self.collections.innermost(ts_ns).row.gc_id;
                for [key_object_id, value_object_id, root_id] in rows.iter().copied() {
                    sink.add(&GcWeakElement { gc_id, key_object_id, value_object_id, root_id });
                }
            }
            Body::Object { object_id, class_id, size, references } => {
                let open = self.collections.innermost(ts_ns);
                let gc_id = open.row.gc_id;
                for [target_object_id] in references.iter().copied() {
                    sink.add(&HeapReference { gc_id, object_id, target_object_id, field_id: 0 });
                }
                self.object_parts += references.len() as u64;
                if !call.continues {
                    open.row.heap_object_count += 1;
                    let reference_count = std::mem::take(&mut self.object_parts);
                    sink.add(&HeapObject { gc_id, object_id, type_id: class_id, size_bytes: size, reference_count });
                }
            }
            Body::HandleCreated { handle_id, object_id } => self.handle("created", handle_id, object_id, call, sink),
            Body::HandleDestroyed { handle_id } => self.handle("destroyed", handle_id, 0, call, sink),
            Body::Finalizeable { flags, object_id, class_id } => {
                let open = self.collections.innermost(ts_ns);
                open.queue.push(object_id);
                let action = if self.waiting.binary_search(&object_id).is_ok() { "waiting" } else { "queued" };
                let (gc_id, process_id) = (open.row.gc_id, self.process.process_id);
                sink.add(&GcFinalizable {
                    gc_id,
                    ts_ns,
                    process_id,
                    action,
                    object_id,
                    type_id: class_id,
                    finalizer_flags: flags,
                });
            }
            Body::ByClass { rows } => {
                for [type_id, object_count] in rows.iter().copied() {
                    let object_count = Some(object_count as f64);
                    self.allocation(
                        call,
                        Allocation { source: "generation_0", type_id, object_count, ..Allocation::default() },
                        sink,
                    );
                }
            }
            Body::Allocated { object_id, class_id, size, represented } => {
                let (allocation_bytes, object_size_bytes) = (Some(represented), Some(size));
                let (object_count, type_id) = ((represented == size).then_some(1.0), class_id);
                let allocation = Allocation { source: "object", ..Allocation::default() };
                let allocation =
                    Allocation { allocation_bytes, object_size_bytes, object_count, object_id, type_id, ..allocation };
                self.allocation(call, allocation, sink);
            }
            Body::SuspendStarted { reason } => self.collections.suspend_started(reason, ts_ns, call.thread, sink),
            Body::SuspendFinished => self.collections.all.pauses.stopped(call.thread, ts_ns),
            Body::SuspendAborted => self.collections.all.pauses.abort(call.thread),
            Body::ResumeStarted => self.collections.resume_started(ts_ns, sink),
            Body::ResumeFinished => self.collections.all.resumed(call.thread, ts_ns, sink),
            Body::ThreadAssigned { managed_id, os_id } => {
                if self.threads.len() < MAX_KNOWN {
                    self.threads.insert(managed_id, os_id);
                }
            }
            Body::ThreadDestroyed { managed_id } => {
                self.threads.remove(&managed_id);
            }
            Body::ThreadName { managed_id, name } => {
                if let Some(os_id) = self.threads.get(&managed_id).copied()
                    && self.thread_names.len() < MAX_KNOWN
                    && !name.is_empty()
                    && self.takes(name.len())
                {
                    self.thread_names.insert(os_id, name.to_owned());
                }
            }
            Body::Class { class_id, module_id, element_type, element_class_id, name, .. } => {
                self.class(class_id, module_id, element_type, element_class_id, name, sink);
            }
            Body::ClassUnloaded { class_id } => {
                self.types.remove(&class_id);
            }
            Body::Function { function_id, module_id, name, .. } => self.method(function_id, module_id, name, sink),
            Body::FunctionUnloaded { function_id } => {
                self.methods.remove(&function_id);
            }
            Body::Lost { count } => {
                self.lost = self.lost.saturating_add(count);
                self.collections.all.events_lost(None);
            }
            Body::End
            | Body::Clock { .. }
            | Body::ThreadSuspended { .. }
            | Body::ThreadResumed { .. }
            | Body::ThreadCreated { .. }
            | Body::Module { .. }
            | Body::ModuleUnloaded { .. }
            | Body::Attached
            | Body::Note { .. } => {}
        }
        self.after(call.offset, sink);
        *last_gc_id = self.collections.last_id;
    }

    /// Reports the facts that a collection which was closed just now leaves behind.
    pub(super) fn after(&mut self, offset: u64, sink: &mut impl FactSink) {
        if let Some(waiting) = self.collections.waiting.take() {
            self.waiting = waiting;
        }
        if let Some(error) = self.collections.failed.take() {
            let message = format!("ranges are missing, the temporary file failed: {error}");
            sink.problem(&Problem::loss("spill_failed", offset, message));
        }
        let anomalies = std::mem::take(&mut self.collections.anomalies);
        let mut doubt = |code, count: u64, message: &str| {
            sink.problems(Problem::error(code, offset, message), count);
        };
        doubt("overlapping_ranges", anomalies.overlapping, "ranges of one collection overlap");
        doubt("empty_range", anomalies.empty, "ranges without a byte");
        doubt(
            "overlapping_bounds",
            anomalies.overlapping_bounds,
            "generation bounds overlap: there the generation is unknown",
        );
        doubt("survived_and_moved", anomalies.survived_and_moved, "ranges that survived in place and moved as well");
        doubt("one_target", anomalies.one_target, "ranges that moved to where another one is");
        doubt("range_wraps", anomalies.wrapping, "ranges that end behind the last address");
        doubt("too_many_bounds", anomalies.bounds_left_out, TOO_MANY_BOUNDS);
        doubt("range_beyond_bounds", anomalies.beyond_bounds, "ranges of 4 GiB or more in less room than that");
    }

    fn bounds(&mut self, bounds: &Bounds<'_>, at_end: bool) -> Vec<GcGenerationRange> {
        self.heap_bounds_failed += u64::from(bounds.hresult as i32 != 0 && bounds.hresult != NOT_ASKED);
        let phase = range_phase(at_end);
        let known = bounds.rows.iter().filter(|[generation, ..]| *generation < u64::from(NON_GC_HEAP));
        self.bad_generations += (bounds.rows.len() - known.clone().count()) as u64;
        let rows = known.map(|[generation, start, length, reserved]| (*generation as u8, [*start, *length, *reserved]));
        let all = rows.chain(bounds.non_gc.iter().map(|row| (NON_GC_HEAP, *row)));
        let bound = |(generation, [range_start, range_length, range_length_reserved]): (u8, [u64; 3])| {
            GcGenerationRange { gc_id: 0, phase, generation, range_start, range_length, range_length_reserved }
        };
        all.map(bound).collect()
    }

    fn handle(&self, action: &'static str, handle_id: u64, object_id: u64, call: &Call<'_>, sink: &mut impl FactSink) {
        let handle = GcHandle {
            ts_ns: call.ts_ns,
            process_id: self.process.process_id,
            thread_id: call.thread_id,
            action,
            handle_id,
            object_id,
            callsite_id: call.callsite_id,
            ..GcHandle::default()
        };
        sink.add(&handle);
    }

    fn allocation(&self, call: &Call<'_>, allocation: Allocation<'_>, sink: &mut impl FactSink) {
        let Call { ts_ns, thread_id, callsite_id, .. } = *call;
        let process_id = self.process.process_id;
        sink.add(&Allocation { ts_ns, process_id, thread_id, callsite_id, ..allocation });
    }

    fn class(&mut self, type_id: u64, module_id: u64, element_type: u8, of: u64, name: &str, sink: &mut impl FactSink) {
        if is_news(&mut self.types, type_id, (module_id, name)) {
            const ARRAY: u32 = 8;
            let parameters: &[u64] = if of == 0 { &[] } else { &[of] };
            let is_array = name.ends_with(']') && module_id == 0;
            let (process_id, flags) = (self.process.process_id, if is_array { ARRAY } else { 0 });
            sink.add(&Type {
                process_id,
                type_id,
                module_id,
                name,
                flags,
                flags_text: enum_names::type_flags(flags),
                element_type,
                type_parameter_ids: parameters,
            });
        }
    }

    fn method(&mut self, method_id: u64, module_id: u64, full: &str, sink: &mut impl FactSink) {
        if is_news(&mut self.methods, method_id, (module_id, full)) {
            // Names of constructors begin with a dot themselves.
            let (namespace, name) = full.rsplit_once('.').unwrap_or(("", full));
            let of_constructor = namespace.strip_suffix('.').map(|of| (of, full.get(of.len() + 1..).unwrap_or(name)));
            let (namespace, name) = of_constructor.unwrap_or((namespace, name));
            let process_id = self.process.process_id;
            sink.add(&Method { process_id, method_id, namespace, name, module_id, ..Method::default() });
        }
    }

    /// The name of a thread by its OS id. Threads that follow each other under one id have one name.
    pub fn thread_name(&mut self, os_id: u64) -> Option<String> {
        let length = self.thread_names.get(&os_id)?.len();
        if self.takes(length) { self.thread_names.get(&os_id).cloned() } else { None }
    }

    /// Whether there is room for a name of a thread.
    fn takes(&mut self, bytes: usize) -> bool {
        let all = self.thread_text.saturating_add(bytes);
        let fits = all <= MAX_THREAD_TEXT;
        self.thread_text = if fits { all } else { self.thread_text };
        fits
    }

    /// The end of the recording, which is that of its process.
    pub fn finish(&mut self, position: u64, sink: &mut impl FactSink) -> Totals {
        self.collections.last_id = self.last_gc_id;
        self.end(position, sink);
        let CallbackNormalizer { command_line, runtime_path, runtime_version, .. } = &*self;
        sink.add(&Process { command_line, runtime_path, runtime_version, ..self.process });
        Totals { collections: u64::from(self.collections.last_id), ..Totals::default() }
    }

    /// Records were lost. Reported before the record behind the gap.
    pub fn records_lost(&mut self) {
        self.collections.all.events_lost(None);
    }

    /// Ends calls and collections that are open without an end, which is lost.
    pub fn interrupt(&mut self, offset: u64, sink: &mut impl FactSink) {
        self.collections.finish(true, sink);
        self.after(offset, sink);
    }

    /// The last call was made: open collections are incomplete, and what was only counted is reported.
    pub fn end(&mut self, position: u64, sink: &mut impl FactSink) {
        self.ranges.pairs.flush_all(&mut self.collections, self.process.last_ts_ns);
        self.collections.finish(false, sink);
        self.after(position, sink);
        let loss = Severity::DataLoss;
        report(sink, loss, "too_many_pauses", self.collections.all.pauses.dropped, position, TOO_MANY_PAUSES);
        let message = "collections whose end is lost: another one starts before it";
        report(sink, loss, "open_collection", self.collections.abandoned, position, message);
        let message = "collections that were running when the recording ended";
        report(sink, Severity::Info, "running_collection", self.collections.running, position, message);
        let message = "ranges or roots outside of any collection: its start and end are not in the recording";
        report(sink, Severity::Error, "outside_collection", self.collections.outside, position, message);
        let message = "collections of generation 2 of which it is not known whether they ran in the background";
        report(sink, Severity::Info, "uncertain_pairs", self.collections.uncertain, position, message);
        self.ranges.finish(position, sink);
        report(sink, loss, "lost_records", self.lost, position, "records that the profiler could not write");
        let message = "records of which the profiler left rows out";
        report(sink, loss, "cut_record", self.cut_records, position, message);
        let message = "bounds of generations that do not exist were left out";
        report(sink, Severity::Error, "bad_generation", self.bad_generations, position, message);
        let message = "generation bounds could not be read";
        report(sink, Severity::Info, "no_bounds", self.heap_bounds_failed, position, message);
        let message = "callbacks recorded in both versions, in agreement";
        report(sink, Severity::Info, "paired_callbacks", self.ranges.pairs.paired, position, message);
    }
}

fn report(sink: &mut impl FactSink, severity: Severity, code: &'static str, count: u64, position: u64, message: &str) {
    sink.problems(Problem::new(severity, code, position, message), count);
}

/// Whether an id means something else than it did, or was not known.
fn is_news(known: &mut Map<u64, u64>, id: u64, meaning: impl Hash) -> bool {
    if known.len() >= MAX_KNOWN {
        known.clear();
    }
    let hash = known.hasher().hash_one(meaning);
    known.insert(id, hash) != Some(hash)
}
