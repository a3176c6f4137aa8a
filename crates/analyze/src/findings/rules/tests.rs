//! Each rule on recordings that have its defect, more or less of it, that lack it, that lack its events, and that lost some.

use tracequet_dataset::table::select::Selection;
use tracequet_dataset::table::{Shape, Tables};
use tracequet_facts::fact::{
    Activity, Allocation, AllocationLifetime, Callsite, Contention, CpuSample, EventType, Exception, FactSink, Frame,
    Gc, GcAllocationWait, GcHeapGeneration, GcHeapStats, GcMark, GcPause, GcTuning, MethodCompilation, ThreadPool,
    ThreadPoolWork, Trace, Type, Wait,
};
use tracequet_trace::guid::Guid;
use tracequet_trace::time::Clock;

use super::RULES;
use crate::findings::{Finding, Findings, Verdict};

const S: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// Rules that never warn.
const WORTH_A_LOOK: &[&str] = &["type_dominates"];

/// A recording of a minute of process 7.
struct Made {
    tables: Tables,
    trace: Trace<'static>,
    sites: u32,
}

impl Made {
    fn new() -> Made {
        let clock = Clock { sync_ticks: 0, sync_utc_ns: 0, frequency: 1_000_000_000 };
        let shape = Shape { trace_id: None, signed: false };
        let tables = Tables::new(Selection::default(), clock, 8, shape).unwrap();
        let trace = Trace { duration_ns: 60 * S, event_count: 1_000_000, ..Trace::default() };
        Made { tables, trace, sites: 0 }
    }

    /// The events of a kind were recorded.
    fn recorded(&mut self, event_name: &str, keywords: u64, level: u32) {
        let row =
            EventType { provider_name: RUNTIME, event_name, keywords, level, event_count: 1, ..EventType::default() };
        self.tables.add(&row);
    }

    /// A call stack, the outermost frame first. Frames of `Shop` are own.
    fn site(&mut self, names: &[&str]) -> u32 {
        let (mut parent, mut own) = (0, 0);
        for name in names {
            parent = self.frame(name, parent, &mut own);
        }
        parent
    }

    fn frame(&mut self, name: &str, parent: u32, own: &mut u32) -> u32 {
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
    fn two_sites(&mut self, a: &[&'static str], b: &[&'static str]) -> (u32, u32) {
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

    fn gc(&mut self, gc_id: u32, generation: u8, reason: &'static str, kind: &'static str) {
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

    fn pause(&mut self, gc_id: u32, duration_ns: i64, suspend_ns: i64) {
        let start_ts_ns = i64::from(gc_id) * S;
        let row =
            GcPause { gc_id, process_id: 7, kind: "gc", start_ts_ns, duration_ns, suspend_ns, ..GcPause::default() };
        self.tables.add(&row);
    }

    fn findings(mut self) -> Vec<Finding> {
        let trace = self.trace;
        self.tables.add(&trace);
        self.tables.finish();
        let mut findings = Findings::new().unwrap();
        let (specs, ready) = self.tables.take_ready();
        for batch in ready {
            findings.add(&specs[batch.table].name, &batch.rows).unwrap();
        }
        findings.finish(Some("it's"))
    }
}

/// The events that a rule needs were recorded, and there is work.
fn quiet(made: &mut Made) {
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
    ] {
        made.recorded(name, keywords, level);
    }
    for (provider_name, event_name, keywords) in [
        ("Microsoft.AspNetCore.Hosting", "RequestStart", 0),
        ("System.Net.Http", "RequestStart", 0),
        ("Microsoft-Windows-DotNETRuntimePrivate", "BGCAllocWaitBegin", 1),
    ] {
        let row = EventType { provider_name, event_name, keywords, level: 4, event_count: 1, ..EventType::default() };
        made.tables.add(&row);
    }
}

fn allocation(site: u32, source: &'static str, type_name: &'static str, kind: &'static str) -> Allocation<'static> {
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

/// Sampled objects of a minute, two a second and so many bytes in all. Those that `keeps` says, by their time in seconds, live until the
/// last full collection, after 50 seconds, and behind it; the others die after two collections.
fn survivors(made: &mut Made, site: u32, bytes: u64, keeps: impl Fn(f64) -> bool) {
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

/// A recording with the defect of a rule: `x` is how much of it, from 0 (none) to 1 (more than its limit).
fn with(rule: &str, x: f64, made: &mut Made) {
    let part = |n: u32, of: u32| f64::from(n) < f64::from(of) * x;
    let ns = |most: i64| (most as f64 * x) as i64;
    match rule {
        "growing_live_set" => {
            for gc_id in 1..=12 {
                made.gc(gc_id, 2, "AllocSmall", "background");
                let promoted_bytes = 20_000_000 + (f64::from(gc_id) * x * 10e6) as u64;
                made.tables.add(&GcHeapStats { gc_id, generation: 2, promoted_bytes, ..GcHeapStats::default() });
            }
        }
        "leak" => {
            (1..=55).for_each(|n| made.gc(n, if n % 10 == 0 { 2 } else { 0 }, "AllocSmall", "blocking"));
            made.tables.add(&GcHeapStats {
                gc_id: 50,
                generation: 2,
                promoted_bytes: 100_000_000,
                ..GcHeapStats::default()
            });
            let site = made.site(&["Shop.Program.Main()", "Shop.Visits.Answer(int)", "Shop.Session..ctor()"]);
            survivors(made, site, (x * 60e6) as u64, |_| true);
        }
        "blocked_workers" => {
            let site = made.site(&[
                "System.Threading.ThreadPoolWorkQueue.Dispatch()",
                "Shop.Prices.Answer(int)",
                "System.Threading.Tasks.Task`1[int].GetResultCore(bool)",
            ]);
            for n in 0..60 {
                let row = Wait {
                    start_ts_ns: n * S,
                    end_ts_ns: Some(n * S + ns(4 * S)),
                    process_id: 7,
                    callsite_id: site,
                    ..Wait::default()
                };
                made.tables.add(&row);
            }
        }
        "starvation" => {
            for n in 0..(x * 20.0) as i64 {
                let row = ThreadPool {
                    ts_ns: n * S,
                    process_id: 7,
                    kind: "adjustment",
                    starvation: Some(true),
                    ..ThreadPool::default()
                };
                made.tables.add(&row);
            }
        }
        "queue_delay" => (0..200).for_each(|n| {
            let row = ThreadPoolWork {
                queue_ts_ns: n,
                start_ts_ns: Some(n + ns(2 * S)),
                process_id: 7,
                kind: "work",
                ..ThreadPoolWork::default()
            };
            made.tables.add(&row);
        }),
        "lock_convoy" => {
            let site = made.site(&["Shop.Stock.Take()", "System.Threading.Monitor.Enter(object)"]);
            (0..60).for_each(|n| {
                let row = Contention {
                    start_ts_ns: n * S,
                    end_ts_ns: Some(n * S + ns(S / 2)),
                    process_id: 7,
                    callsite_id: site,
                    lock_id: 0xabc,
                    ..Contention::default()
                };
                made.tables.add(&row);
            });
        }
        "exceptions" => {
            let site = made.site(&["Shop.Orders.Read(string)", "System.Runtime.EH.RhThrowEx()"]);
            (0..(x * 10_000.0) as i64).for_each(|n| {
                let row = Exception {
                    ts_ns: n * S / 2000,
                    process_id: 7,
                    callsite_id: site,
                    type_name: "System.FormatException",
                    ..Exception::default()
                };
                made.tables.add(&row);
            });
        }
        "n_plus_one" | "slow_queries" => {
            let site = made.site(&["Shop.Baskets.Load()", "Client.Execute()"]);
            let (repeats, duration) = if rule == "n_plus_one" { ((x * 19.0) as i64 + 1, MS) } else { (3, ns(2 * S)) };
            for parent in 1..=7 {
                for n in 0..repeats {
                    let row = Activity {
                        start_ts_ns: n * 2 * MS,
                        end_ts_ns: Some(n * 2 * MS + duration),
                        process_id: 7,
                        callsite_id: site,
                        provider_name: "SqlClientDiagnosticListener",
                        name: "System.Data.SqlClient.WriteCommand",
                        parent_activity_id: Guid([parent; 16]),
                        start_fields: Some(r#"{"CommandText":"SELECT 1"}"#),
                        ..Activity::default()
                    };
                    made.tables.add(&row);
                }
            }
        }
        "n_plus_one_calls" => {
            let site = made.site(&["Shop.Baskets.Load()", "System.Net.Http.HttpClient.SendAsync()"]);
            for parent in 1..=7 {
                for n in 0..=(x * 19.0) as i64 {
                    // Each source reports it: it counts once.
                    for provider_name in ["System.Net.Http", "HttpHandlerDiagnosticListener"] {
                        let row = Activity {
                            start_ts_ns: n * 2 * MS,
                            end_ts_ns: Some(n * 2 * MS + MS),
                            process_id: 7,
                            callsite_id: site,
                            provider_name,
                            name: "System.Net.Http.HttpRequestOut",
                            parent_activity_id: Guid([parent; 16]),
                            end_fields: Some(
                                r#"{"tags":{"http.request.method":"GET","url.full":"http://shop/lines/7"}}"#,
                            ),
                            ..Activity::default()
                        };
                        made.tables.add(&row);
                    }
                }
            }
        }
        "loh_alloc_waits" => {
            let site = made.site(&["Shop.Pictures.Draw()"]);
            for n in 0..5 {
                for (reason, duration) in [("uoh_alloc_during_bgc", ns(2 * S)), ("low_memory", 5 * S)] {
                    let row = GcAllocationWait {
                        start_ts_ns: n * 10 * S,
                        end_ts_ns: Some(n * 10 * S + duration),
                        process_id: 7,
                        callsite_id: site,
                        reason: Some(reason),
                        ..GcAllocationWait::default()
                    };
                    made.tables.add(&row);
                }
            }
        }
        "large_object_triggers" => {
            let site = made.site(&["Shop.Pictures.Draw()"]);
            (1..=20)
                .for_each(|n| made.gc(n, 2, if part(n - 1, 20) { "AllocLarge" } else { "AllocSmall" }, "background"));
            made.tables.add(&allocation(site, "tick", "System.Byte[]", "large"));
        }
        "boxing" | "string_churn" => {
            let site = made.site(&["Shop.Totals.Sum()", "System.Text.StringBuilder.Append(char)"]);
            let name = if rule == "boxing" { "System.Int32" } else { "System.String" };
            for n in 0..200 {
                let name = if part(n, 200) { name } else { "Shop.Line" };
                made.tables.add(&allocation(site, "sampled", name, "small"));
            }
        }
        "induced" => {
            (1..=20).for_each(|n| made.gc(n, 1, if part(n - 1, 20) { "Induced" } else { "AllocSmall" }, "blocking"))
        }
        "dies_in_gen2" => {
            (1..=59).for_each(|n| made.gc(n, if n % 10 == 0 { 2 } else { 1 }, "AllocSmall", "blocking"));
            let site = made.site(&["Shop.Program.Main()", "Shop.Visits.Answer(int)"]);
            made.tables.add(&Type { process_id: 7, type_id: 4, name: "Shop.Session", ..Type::default() });
            for n in 0..400u32 {
                // Born in each gap between two full collections; those that die do so at the next one.
                let (born, is_dead) = (i64::from(n % 4) * 10 * S + 5 * S, part(n, 400));
                let row = AllocationLifetime {
                    ts_ns: born,
                    process_id: 7,
                    callsite_id: site,
                    type_id: 4,
                    source: "tick",
                    allocation_bytes: Some(5_000_000),
                    sample_weight: 1,
                    fate: if is_dead { "dead" } else { "alive" },
                    survived_collections: 3,
                    highest_generation: Some(2),
                    generation_at_end: Some(2),
                    last_alive_ts_ns: if is_dead { born + 4 * S } else { 50 * S },
                    dead_ts_ns: is_dead.then_some(born + 5 * S),
                    ..AllocationLifetime::default()
                };
                made.tables.add(&row);
            }
        }
        "gen1_survival" => (1..=20).for_each(|gc_id| {
            made.gc(gc_id, 1, "AllocSmall", "blocking");
            let row = GcHeapGeneration {
                gc_id,
                generation: 1,
                object_before_bytes: 100_000_000,
                other_survived_bytes: (x * 95e6) as u64,
                ..GcHeapGeneration::default()
            };
            made.tables.add(&row);
        }),
        "growing_handles" => (1..=30u32).for_each(|gc_id| {
            let row = Gc {
                gc_id,
                process_id: 7,
                generation: Some(0),
                start_ts_ns: i64::from(gc_id) * S,
                complete: true,
                handle_count: Some(2000 + (f64::from(gc_id) * x * 1000.0) as u32),
                ..Gc::default()
            };
            made.tables.add(&row);
        }),
        "young_held_by_old" => (1..=20).for_each(|gc_id| {
            made.gc(gc_id, 0, "AllocSmall", "blocking");
            for (root_kind, promoted_bytes) in
                [("older_generation", (x * 9e6) as u64), ("stack", 10_000_000 - (x * 9e6) as u64)]
            {
                made.tables.add(&GcMark { gc_id, root_kind, promoted_bytes, ..GcMark::default() });
            }
        }),
        "many_gen0" => {
            // Ten at least, so that there is a verdict.
            for n in 0..(20 + (x * 4000.0) as u32) {
                let row = Gc {
                    gc_id: n + 1,
                    process_id: 7,
                    generation: Some(0),
                    start_ts_ns: i64::from(n) * 10 * MS,
                    complete: true,
                    ..Gc::default()
                };
                made.tables.add(&row);
            }
        }
        "suspension_dominates" => (1..=40).for_each(|n| made.pause(n, S / 4, ns(S / 5))),
        "odd_pause" => (1..=40u32).for_each(|n| {
            let row = Gc {
                gc_id: n,
                process_id: 7,
                generation: Some(0),
                promoted_bytes: Some(1_000_000),
                complete: true,
                ..Gc::default()
            };
            made.tables.add(&row);
            made.pause(n, if n > 20 && part(n - 21, 10) { S / 2 } else { MS }, 0);
        }),
        "loh_free" => (1..=5).for_each(|gc_id| {
            made.gc(gc_id, 2, "AllocSmall", "background");
            let row = GcHeapGeneration {
                gc_id,
                generation: 3,
                size_before_bytes: 2_000_000_000,
                free_list_before_bytes: (x * 1.5e9) as u64,
                ..GcHeapGeneration::default()
            };
            made.tables.add(&row);
        }),
        "datas_cost" => (1..=10).for_each(|gc_id| {
            made.gc(gc_id, 0, "AllocSmall", "blocking");
            let row = GcTuning {
                process_id: 7,
                gc_id,
                event_name: "SizeAdaptationTuning",
                field: "median_throughput_cost_percent",
                value: x * 8.0,
                ..GcTuning::default()
            };
            made.tables.add(&row);
        }),
        "type_dominates" => {
            let site = made.site(&["Shop.Totals.Sum()"]);
            let others = ["A", "BB", "CCC", "DDDD", "EEEEE", "FFFFFF"];
            for n in 0..200u32 {
                // More than of each other type from the start.
                let name = if n < 34 || part(n, 200) { "Shop.Line" } else { others[n as usize % 6] };
                made.tables.add(&allocation(site, "sampled", name, "small"));
            }
        }
        "pause_share" => (1..=40).for_each(|n| made.pause(n, ns(S / 4), 0)),
        "long_pause" => (1..=40).for_each(|n| made.pause(n, if n == 9 { ns(3 * S) } else { 0 }, 0)),
        "slow_suspension" => (1..=40).for_each(|n| made.pause(n, S / 5, if n == 9 { ns(S / 5) } else { 0 })),
        "blocking_full" => {
            (1..=20).for_each(|n| made.gc(n, 2, "AllocSmall", if part(n - 1, 20) { "blocking" } else { "background" }))
        }
        "many_gen2" => {
            (1..=20).for_each(|n| made.gc(n, if part(n - 1, 20) { 2 } else { 0 }, "AllocSmall", "background"))
        }
        "gen2_free_on_entry" => (1..=5).for_each(|gc_id| {
            made.gc(gc_id, 2, "AllocSmall", "background");
            let (size_before_bytes, free_list_before_bytes) = (100_000_000, (x * 100e6) as u64);
            let row = GcHeapGeneration {
                gc_id,
                generation: 2,
                size_before_bytes,
                free_list_before_bytes,
                ..GcHeapGeneration::default()
            };
            made.tables.add(&row);
        }),
        "high_memory_load" => {
            let row = Gc {
                gc_id: 1,
                process_id: 7,
                generation: Some(0),
                memory_load_percent: Some((x * 99.0) as u32),
                ..Gc::default()
            };
            made.tables.add(&row);
        }
        "finalizers" => (1..=30).for_each(|gc_id| {
            let row = Gc {
                gc_id,
                process_id: 7,
                generation: Some(0),
                start_ts_ns: i64::from(gc_id) * S,
                finalization_promoted_count: Some((x * 30_000.0) as u64),
                ..Gc::default()
            };
            made.tables.add(&row);
        }),
        "pinned_survivors" => (1..=20).for_each(|gc_id| {
            made.gc(gc_id, 0, "AllocSmall", "blocking");
            let (pinned_survived_bytes, other_survived_bytes) = ((x * 5e6) as u64, 5_000_000);
            let row =
                GcHeapGeneration { gc_id, pinned_survived_bytes, other_survived_bytes, ..GcHeapGeneration::default() };
            made.tables.add(&row);
        }),
        "jit_time" => (0..60).for_each(|n| {
            let start_ts_ns = n * S;
            // The inner one is within the outer one.
            for start_ts_ns in [start_ts_ns, start_ts_ns + ns(S / 10)] {
                let end_ts_ns = Some(start_ts_ns.min(n * S) + ns(S / 2));
                let row = MethodCompilation {
                    start_ts_ns,
                    end_ts_ns,
                    process_id: 7,
                    kind: "jit",
                    ..MethodCompilation::default()
                };
                made.tables.add(&row);
            }
        }),
        "requests_in_pauses" => {
            for n in 0..2000 {
                let duration_ns = if n % 50 == 0 { 300 * MS + n } else { MS };
                let row = Activity {
                    start_ts_ns: n * 30 * MS,
                    end_ts_ns: Some(n * 30 * MS + duration_ns),
                    process_id: 7,
                    provider_name: "Microsoft.AspNetCore.Hosting",
                    name: "Request",
                    ..Activity::default()
                };
                made.tables.add(&row);
                if n % 50 == 0 && f64::from(n as u32 / 50) < 40.0 * x {
                    let row = GcPause {
                        gc_id: 1,
                        process_id: 7,
                        kind: "gc",
                        start_ts_ns: n * 30 * MS,
                        duration_ns: 9 * MS,
                        ..GcPause::default()
                    };
                    made.tables.add(&row);
                }
            }
        }
        "lost_events" => made.trace.dropped_event_count = (x * 50_000.0) as u64,
        "unnamed_frames" => {
            made.trace.frame_count = 1000;
            made.trace.named_frame_count = 1000 - (x * 900.0) as u64;
        }
        other => panic!("there is no story for {other}"),
    }
}

fn of(rule: &str, findings: Vec<Finding>) -> Finding {
    let found = findings.into_iter().filter(|finding| finding.rule == rule);
    found.max_by_key(|finding| finding.verdict).unwrap_or_else(|| panic!("no row of {rule}"))
}

#[test]
fn each_rule_warns_of_its_defect_and_of_nothing_else() {
    for rule in RULES {
        let judged = |x: f64| {
            let mut made = Made::new();
            quiet(&mut made);
            with(rule.name, x, &mut made);
            of(rule.name, made.findings())
        };
        let (none, much) = (judged(0.0), judged(1.0));
        let worst = if WORTH_A_LOOK.contains(&rule.name) { Verdict::Info } else { Verdict::Warning };
        assert_eq!(much.verdict, worst, "{}: {much:?}", rule.name);
        assert_eq!(none.verdict, Verdict::Fine, "{}: {none:?}", rule.name);
        assert!(much.figure.unwrap() >= rule.warning && !much.sentence.is_empty(), "{much:?}");
        assert!(much.evidence_sql.unwrap().contains("trace_id = 'it''s'"), "{}", rule.name);
        // More of it never scores less.
        let scores: Vec<f64> = (0..=20).map(|n| judged(f64::from(n) / 20.0).score.unwrap()).collect();
        assert!(scores.windows(2).all(|pair| pair[0] <= pair[1] + 1e-9), "{}: {scores:?}", rule.name);
    }
}

#[test]
fn what_was_not_recorded_is_not_fine() {
    for rule in RULES.iter().filter(|rule| !rule.needs.is_empty()) {
        let found = of(rule.name, Made::new().findings());
        assert_eq!((found.verdict, found.score), (Verdict::NotRecorded, None), "{found:?}");
        assert!(found.next_step.starts_with("tracequet collect --for "), "{found:?}");
    }
}

#[test]
fn a_loss_takes_no_warning_away_and_makes_nothing_fine() {
    for rule in RULES.iter().filter(|rule| !rule.of_recording) {
        let judged = |x: f64, dropped: u64| {
            let mut made = Made::new();
            quiet(&mut made);
            with(rule.name, x, &mut made);
            made.trace.dropped_event_count = dropped;
            of(rule.name, made.findings())
        };
        let (whole, lossy) = (judged(1.0, 0), judged(1.0, 500_000));
        assert_eq!((lossy.score, lossy.verdict), (whole.score, whole.verdict), "{}", rule.name);
        assert_eq!(judged(0.0, 500_000).verdict, Verdict::TooLittle, "{}", rule.name);
    }
}

#[test]
fn the_own_method_and_the_subject_are_named() {
    let named = |rule: &str| {
        let mut made = Made::new();
        quiet(&mut made);
        with(rule, 1.0, &mut made);
        let found = of(rule, made.findings());
        (found.own_method.unwrap_or_default(), found.subject.unwrap_or_default())
    };
    let expected = [
        ("blocked_workers", "Shop.Prices.Answer", "sync over async"),
        ("leak", "Shop.Session..ctor", "Shop.Session"),
        ("dies_in_gen2", "Shop.Visits.Answer", "Shop.Session"),
        ("type_dominates", "Shop.Totals.Sum", "Shop.Line"),
        ("lock_convoy", "Shop.Stock.Take", "lock 0xabc"),
        ("exceptions", "Shop.Orders.Read", "System.FormatException"),
        ("n_plus_one", "Shop.Baskets.Load", "SELECT ?"),
        ("n_plus_one_calls", "Shop.Baskets.Load", "GET http://shop/lines/?"),
        ("loh_alloc_waits", "Shop.Pictures.Draw", ""),
        ("large_object_triggers", "Shop.Pictures.Draw", "System.Byte[]"),
        ("boxing", "Shop.Totals.Sum", "System.Int32"),
        ("string_churn", "Shop.Totals.Sum", "System.String"),
    ];
    for (rule, method, subject) in expected {
        assert_eq!(named(rule), (method.to_owned(), subject.to_owned()), "{rule}");
    }
}

#[test]
fn what_comes_from_another_finding_stands_below_it() {
    let mut made = Made::new();
    quiet(&mut made);
    with("large_object_triggers", 1.0, &mut made);
    with("pause_share", 1.0, &mut made);
    let found = made.findings();
    let place = |rule: &str| found.iter().position(|finding| finding.rule == rule).unwrap();
    assert_eq!(found[place("pause_share")].cause_rule.as_deref(), Some("large_object_triggers"));
    assert!(place("large_object_triggers") < place("pause_share"));
    assert_eq!(found[0].rule, "large_object_triggers", "{found:?}");
    let interesting = found.iter().take_while(|finding| finding.verdict >= Verdict::Info).count();
    assert!(
        found[interesting..].iter().all(|finding| finding.verdict < Verdict::Info),
        "what is of interest comes first"
    );
}

#[test]
fn before_there_were_events_of_waits_samples_say_who_blocks_workers() {
    let mut made = Made::new();
    made.tables.add(&EventType {
        provider_name: "Microsoft-DotNETCore-SampleProfiler",
        event_name: "ThreadSample",
        level: 4,
        event_count: 1,
        ..EventType::default()
    });
    let site = made.site(&[
        "System.Threading.ThreadPoolWorkQueue.Dispatch()",
        "Shop.Prices.Answer(int)",
        "System.Threading.Tasks.Task.InternalWait(int)",
    ]);
    for thread_id in 0..8 {
        for n in 0..1000 {
            let row = CpuSample {
                ts_ns: n * 10 * MS,
                process_id: 7,
                thread_id,
                callsite_id: if thread_id < 5 { site } else { 0 },
                kind: Some("external"),
                sample_count: 1,
                ..CpuSample::default()
            };
            made.tables.add(&row);
        }
    }
    let found = of("blocked_workers", made.findings());
    assert_eq!((found.figure, found.own_method.as_deref()), (Some(5.0), Some("Shop.Prices.Answer")));
}

/// What a program keeps on purpose, a window that moves on, and what is in the hands of the last requests are no leaks.
#[test]
fn what_stays_level_is_no_leak() {
    let judged = |keeps: fn(f64) -> bool| {
        let mut made = Made::new();
        quiet(&mut made);
        with("leak", 0.0, &mut made);
        let site = made.site(&["Shop.Visits.Answer(int)"]);
        survivors(&mut made, site, 90_000_000, keeps);
        of("leak", made.findings())
    };
    let leaks = judged(|_| true);
    assert_eq!(leaks.verdict, Verdict::Warning, "{leaks:?}");
    assert!(leaks.figure.unwrap() > 0.6 && leaks.figure.unwrap() < 1.0, "{leaks:?}");
    let level: [fn(f64) -> bool; 4] = [
        |second| second < 9.0,
        |second| second > 33.0,
        |second| second > 45.0,
        |second| !(20.0..31.0).contains(&second),
    ];
    for keeps in level {
        let found = judged(keeps);
        assert_eq!((found.verdict, found.figure), (Verdict::Fine, Some(0.0)), "{found:?}");
        assert_eq!((found.subject, found.own_method), (None, None));
    }
}

/// A query for each row of a list, whatever the helpers are that send it.
#[test]
fn the_method_that_loops_is_named_and_not_the_one_that_runs_the_query() {
    let sent = |made: &mut Made, site: u32, text: &'static str, parent: u8, n: i64| {
        let row = Activity {
            start_ts_ns: n * MS,
            end_ts_ns: Some(n * MS + MS / 2),
            process_id: 7,
            callsite_id: site,
            provider_name: "Shop",
            name: "query",
            parent_activity_id: Guid([parent; 16]),
            start_fields: Some(text),
            ..Activity::default()
        };
        made.tables.add(&row);
    };
    let (list, row) = (r#"{"CommandText":"SELECT id"}"#, r#"{"CommandText":"SELECT price"}"#);
    let named = |list_path: &[&'static str], row_path: &[&'static str]| {
        let mut made = Made::new();
        quiet(&mut made);
        let (of_list, of_row) = made.two_sites(list_path, row_path);
        for parent in 1..=7 {
            sent(&mut made, of_list, list, parent, 0);
            (1..=20).for_each(|n| sent(&mut made, of_row, row, parent, n));
        }
        let found = of("n_plus_one", made.findings());
        assert_eq!(found.verdict, Verdict::Warning, "{found:?}");
        found.own_method.unwrap()
    };
    let reported = "System.Diagnostics.DiagnosticListener.Write()";
    // Behind an await: what waited goes on inside of what it waited for.
    let continued =
        ["Shop.Db.Query()", "System.X()", "Shop.Baskets.Load()", "Shop.Prices.Of()", "Shop.Db.Query()", reported];
    assert_eq!(
        named(&["Shop.Page.Get()", "Shop.Baskets.Load()", "Shop.Db.Query()", reported], &continued),
        "Shop.Baskets.Load"
    );
    // Without one: both statements come from one method.
    let straight = ["Shop.Page.Get()", "Shop.Baskets.Load()", "Shop.Prices.Of()", "Shop.Db.Query()", reported];
    assert_eq!(
        named(&["Shop.Page.Get()", "Shop.Baskets.Load()", "Shop.Db.Query()", reported], &straight),
        "Shop.Baskets.Load"
    );
    // Nothing but the wrapper is known to be no more than that.
    assert_eq!(
        named(&["Shop.Other.Get()", "Client.Run()"], &["Shop.Baskets.Load()", "Shop.Db.Query()", reported]),
        "Shop.Baskets.Load"
    );
    assert_eq!(
        named(&["Shop.Other.Get()", "Client.Run()"], &["Shop.Page.Get()", "Shop.Baskets.Load()", "Client.Run()"]),
        "Shop.Baskets.Load"
    );
}

/// A client that makes load calls in a loop, without a request that it works on: that is no warning.
#[test]
fn calls_without_a_parent_are_no_warning() {
    let mut made = Made::new();
    quiet(&mut made);
    for n in 0..400 {
        let row = Activity {
            start_ts_ns: n * 2 * MS,
            end_ts_ns: Some(n * 2 * MS + MS),
            process_id: 7,
            thread_id: 9,
            end_thread_id: 9,
            provider_name: "System.Net.Http",
            name: "Request",
            start_fields: Some(r#"{"scheme":"http","host":"shop","port":80,"pathAndQuery":"/"}"#),
            ..Activity::default()
        };
        made.tables.add(&row);
    }
    let found = of("n_plus_one_calls", made.findings());
    assert_eq!((found.verdict, found.figure), (Verdict::Info, Some(400.0)), "{found:?}");
}
