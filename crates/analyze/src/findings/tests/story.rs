//! Recordings that are made row by row, for the stories of rules.

use tracequet_dataset::table::select::Selection;
use tracequet_dataset::table::{Shape, Tables};
use tracequet_facts::fact::{
    Activity, Allocation, AllocationLifetime, Callsite, Counter, CpuSample, EventType, FactSink, Frame, Gc, GcPause,
    Trace, Type,
};
use tracequet_trace::guid::Guid;
use tracequet_trace::time::Clock;

pub(crate) const S: i64 = 1_000_000_000;
pub(crate) const MS: i64 = 1_000_000;
pub(crate) const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// A recording of a minute of process 7.
pub(crate) struct Made {
    pub(crate) tables: Tables,
    pub(crate) trace: Trace<'static>,
    pub(crate) sites: u32,
}

impl Made {
    pub(crate) fn new() -> Made {
        let clock = Clock { sync_ticks: 0, sync_utc_ns: 0, frequency: 1_000_000_000 };
        let shape = Shape { trace_id: None, signed: false };
        let tables = Tables::new(Selection::default(), clock, 8, shape).unwrap();
        let trace = Trace { duration_ns: 60 * S, event_count: 1_000_000, ..Trace::default() };
        Made { tables, trace, sites: 0 }
    }

    /// The events of a kind were recorded.
    pub(crate) fn recorded(&mut self, event_name: &str, keywords: u64, level: u32) {
        let row =
            EventType { provider_name: RUNTIME, event_name, keywords, level, event_count: 1, ..EventType::default() };
        self.tables.add(&row);
    }

    /// A call stack, the outermost frame first. Frames of `Shop` are own.
    pub(crate) fn site(&mut self, names: &[&str]) -> u32 {
        let (mut parent, mut own) = (0, 0);
        for name in names {
            parent = self.frame(name, parent, &mut own);
        }
        parent
    }

    /// Runs one query of a user method `repeats` times in each of seven activities; each takes `duration_ns`.
    pub(crate) fn queries(&mut self, repeats: i64, duration_ns: i64) {
        let site = self.site(&["Shop.Baskets.Load()", "Client.Execute()"]);
        for parent in 1..=7 {
            for n in 0..repeats {
                let row = Activity {
                    start_ts_ns: n * 2 * MS,
                    end_ts_ns: Some(n * 2 * MS + duration_ns),
                    process_id: 7,
                    callsite_id: site,
                    provider_name: "SqlClientDiagnosticListener",
                    name: "System.Data.SqlClient.WriteCommand",
                    parent_activity_id: Guid([parent; 16]),
                    start_fields: Some(r#"{"CommandText":"SELECT 1"}"#),
                    ..Activity::default()
                };
                self.tables.add(&row);
            }
        }
    }

    pub(crate) fn frame(&mut self, name: &str, parent: u32, own: &mut u32) -> u32 {
        self.sites += 1;
        let is_framework = !name.starts_with("Shop.");
        let written_name = name.split('(').next().unwrap();
        let frame =
            Frame { frame_id: self.sites, name, written_name, is_framework: Some(is_framework), ..Frame::default() };
        self.tables.add(&frame);
        *own = if is_framework { *own } else { self.sites };
        let callsite = Callsite {
            callsite_id: self.sites,
            parent_callsite_id: parent,
            frame_id: self.sites,
            own_callsite_id: *own,
            ..Callsite::default()
        };
        self.tables.add(&callsite);
        self.sites
    }

    /// Two call stacks, which are one as far as their methods are the same.
    pub(crate) fn two_sites(&mut self, a: &[&'static str], b: &[&'static str]) -> (u32, u32) {
        let equal = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let first = self.site(a);
        let mut parent = if equal == 0 { 0 } else { first - (a.len() - equal) as u32 };
        let mut own = 0;
        for at in 0..equal {
            own = if a[at].starts_with("Shop.") { first - (a.len() - 1 - at) as u32 } else { own };
        }
        for name in &b[equal..] {
            parent = self.frame(name, parent, &mut own);
        }
        (first, parent)
    }

    /// Samples of a thread, one every 10 ms: call site and kind of each.
    pub(crate) fn samples(&mut self, thread_id: u64, count: u32, of: impl Fn(u32) -> (u32, &'static str)) {
        for n in 0..count {
            let (callsite_id, kind) = of(n);
            let ts_ns = i64::from(n) * 10 * MS;
            let row = CpuSample {
                ts_ns,
                process_id: 7,
                thread_id,
                callsite_id,
                kind: Some(kind),
                sample_count: 1,
                ..CpuSample::default()
            };
            self.tables.add(&row);
        }
    }

    /// The length of the thread pool's queue in each second, of which 100 work items end.
    pub(crate) fn queue_counters(&mut self, length: impl Fn(i64) -> f64) {
        for n in 0..60 {
            let counters = [("threadpool-queue-length", length(n)), ("threadpool-completed-items-count", 100.0)];
            for (name, value) in counters {
                let (value, interval_ns) = (Some(value), Some(S));
                let row = Counter {
                    ts_ns: n * S,
                    process_id: 7,
                    provider_name: "System.Runtime",
                    name,
                    value,
                    interval_ns,
                    ..Counter::default()
                };
                self.tables.add(&row);
            }
        }
    }

    pub(crate) fn gc(&mut self, gc_id: u32, generation: u8, reason: &'static str, kind: &'static str) {
        let row = Gc {
            gc_id,
            process_id: 7,
            generation: Some(generation),
            reason: Some(reason),
            kind: Some(kind),
            start_ts_ns: i64::from(gc_id) * S,
            complete: true,
            ..Gc::default()
        };
        self.tables.add(&row);
    }

    pub(crate) fn pause(&mut self, gc_id: u32, duration_ns: i64, suspend_ns: i64) {
        let start_ts_ns = i64::from(gc_id) * S;
        let row =
            GcPause { gc_id, process_id: 7, kind: "gc", start_ts_ns, duration_ns, suspend_ns, ..GcPause::default() };
        self.tables.add(&row);
    }
}

/// The events that a rule needs were recorded, and there is work.
pub(crate) fn quiet(made: &mut Made) {
    for (name, keywords, level) in [
        ("GCStart", 1, 4),
        ("GCSuspendEEBegin", 1, 4),
        ("GCHeapStats", 1, 4),
        ("GCBulkSurvivingObjectRanges", 0x40_0000, 4),
        ("GCAllocationTick", 1, 5),
        ("ContentionStart", 0x4000, 4),
        ("ExceptionThrown", 0x8000, 2),
        ("ThreadPoolWorkerThreadAdjustmentAdjustment", 0x10000, 4),
        ("ThreadPoolEnqueue", 0x10000, 5),
        ("WaitHandleWaitStart", 0x400_0000_0000, 5),
        ("MethodJittingStarted", 0x10, 5),
        ("ThreadPoolWorkerThreadStart", 0x10000, 4),
        ("AssemblyLoad", 0x8, 4),
        ("RuntimeInformationStart", 0, 4),
    ] {
        made.recorded(name, keywords, level);
    }
    for (provider_name, event_name, keywords) in [
        ("Microsoft.AspNetCore.Hosting", "RequestStart", 0),
        ("System.Net.Http", "RequestStart", 0),
        ("Microsoft-Windows-DotNETRuntimePrivate", "BGCAllocWaitBegin", 1),
        ("System.Threading.Tasks.TplEventSource", "TraceOperationBegin", 8),
    ] {
        let row = EventType { provider_name, event_name, keywords, level: 4, event_count: 1, ..EventType::default() };
        made.tables.add(&row);
    }
}

pub(crate) fn allocation(
    site: u32,
    source: &'static str,
    type_name: &'static str,
    kind: &'static str,
) -> Allocation<'static> {
    Allocation {
        process_id: 7,
        callsite_id: site,
        source,
        allocation_bytes: Some(100_000_000),
        heap_kind: Some(kind),
        type_id: type_name.len() as u64,
        type_name: Some(type_name),
        ..Allocation::default()
    }
}

/// Adds two sampled objects a second for 55 seconds, each of which stands for `bytes`. An object lives past the last
/// full collection, after 50 seconds, where `keeps` holds for its second; the others die after two collections.
pub(crate) fn survivors(made: &mut Made, site: u32, bytes: u64, keeps: impl Fn(f64) -> bool) {
    for n in 0..110 {
        let second = f64::from(n) / 2.0;
        let is_kept = keeps(second);
        let row = AllocationLifetime {
            ts_ns: i64::from(n) * S / 2,
            process_id: 7,
            callsite_id: site,
            type_id: 4,
            source: "tick",
            allocation_bytes: Some(bytes / 110),
            sample_weight: 1,
            fate: if is_kept { "alive" } else { "dead" },
            survived_collections: 2,
            last_alive_ts_ns: if is_kept { 55 * S } else { i64::from(n) * S / 2 + 2 * S },
            ..AllocationLifetime::default()
        };
        made.tables.add(&row);
    }
    let row = Type { process_id: 7, type_id: 4, name: "Shop.Session", ..Type::default() };
    made.tables.add(&row);
}
