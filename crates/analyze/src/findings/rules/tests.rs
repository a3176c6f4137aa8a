//! Each rule on recordings that have its defect, more or less of it, that lack it, that lack its events, and that lost some.

use tracequet_facts::fact::{Activity, Allocation, EventType, FactSink, GcFinalizable, GcHandle, GcPause, Type, Wait};
use tracequet_trace::guid::Guid;

use super::RULES;
use crate::findings::rule::Rule;
use crate::findings::tests::story::{MS, Made, S, allocation, quiet, survivors};
use crate::findings::{Finding, Findings, Verdict};

/// Rules that never warn.
const WORTH_A_LOOK: &[&str] = &["type_dominates", "awaiting_tasks"];

/// The findings of a made recording.
fn found_in(mut made: Made) -> Vec<Finding> {
    let trace = made.trace;
    made.tables.add(&trace);
    made.tables.finish();
    let mut findings = Findings::new().unwrap();
    let (specs, ready) = made.tables.take_ready();
    for batch in ready {
        findings.add(&specs[batch.table].name, &batch.rows).unwrap();
    }
    findings.finish(Some("it's"))
}

/// Adds the defect of a rule.
fn with(rule: &str, x: f64, made: &mut Made) {
    let rule: &Rule = RULES.iter().find(|known| known.name == rule).unwrap();
    (rule.story)(made, x);
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
            of(rule.name, found_in(made))
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
        let found = of(rule.name, found_in(Made::new()));
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
            of(rule.name, found_in(made))
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
        let found = of(rule, found_in(made));
        (found.own_method.unwrap_or_default(), found.subject.unwrap_or_default())
    };
    let expected = [
        ("blocked_workers", "Shop.Prices.Answer", "sync over async"),
        ("leak", "Shop.Session..ctor", "Shop.Session"),
        ("dies_in_gen2", "Shop.Visits.Answer", "Shop.Session"),
        ("type_dominates", "Shop.Totals.Sum", "Shop.Line"),
        ("lock_convoy", "Shop.Stock.Take", "lock 0xabc"),
        ("awaiting_tasks", "Shop.Outbox.Send", ""),
        ("exceptions", "Shop.Orders.Read", "System.FormatException"),
        ("hot_method", "Shop.Register.Count", ""),
        ("code_made_again", "Shop.Tariff.Price", ""),
        ("threads_started", "Shop.Letters.Send", ""),
        ("connections", "Shop.Rates.Ask", ""),
        ("assemblies_again", "Shop.Addins.Run", "Shop.Prices"),
        ("blocked_finalizer", "Shop.Lease.Finalize", ""),
        ("rented_buffers", "Shop.Stamps.Print", "System.Byte[]"),
        ("n_plus_one", "Shop.Baskets.Load", "SELECT ?"),
        ("n_plus_one_calls", "Shop.Baskets.Load", "GET http://shop/lines/?"),
        ("waits_in_a_loop", "Shop.Contracts.Print", ""),
        ("slow_start", "Shop.Distances..cctor", ""),
        ("logging", "Shop.Picking.Pick", ""),
        ("idle_wakeups", "Shop.Mailbox.Look", ""),
        ("loh_alloc_waits", "Shop.Pictures.Draw", ""),
        ("large_object_triggers", "Shop.Pictures.Load", "System.Char[]"),
        ("boxing", "Shop.Totals.Sum", "System.Int32"),
        ("string_churn", "Shop.Totals.Sum", "System.String"),
    ];
    for (rule, method, subject) in expected {
        assert_eq!(named(rule), (method.to_owned(), subject.to_owned()), "{rule}");
    }
}

#[test]
fn what_the_recorder_causes_is_not_judged() {
    for name in ["blocking_full", "long_pause", "pause_share", "odd_pause"] {
        let judged = |is_profiler: bool| {
            let mut made = Made::new();
            quiet(&mut made);
            with(name, 1.0, &mut made);
            if is_profiler {
                made.tables.add(&EventType {
                    provider_name: "ICorProfilerCallback",
                    event_name: "GarbageCollectionStarted",
                    event_count: 1,
                    ..EventType::default()
                });
            }
            of(name, found_in(made))
        };
        assert!(judged(false).verdict >= Verdict::Info, "{name}");
        let found = judged(true);
        assert_eq!((found.verdict, found.figure), (Verdict::NotRecorded, None), "{name}");
        assert!(found.sentence.contains("background GCs off"), "{found:?}");
    }
}

#[test]
fn boxes_are_not_known_where_no_type_says_what_it_is() {
    let judged = |element_type: u8| {
        let mut made = Made::new();
        quiet(&mut made);
        let site = made.site(&["Shop.Totals.Sum()"]);
        for _ in 0..200 {
            made.tables.add(&allocation(site, "sampled", "Shop.Point", "small"));
        }
        let type_id = "Shop.Point".len() as u64;
        made.tables.add(&Type { process_id: 7, type_id, name: "Shop.Point", element_type, ..Type::default() });
        of("boxing", found_in(made))
    };
    assert_eq!((judged(0x11).verdict, judged(0x11).figure), (Verdict::Warning, Some(1.0)), "a structure");
    assert_eq!((judged(0x12).verdict, judged(0x12).figure), (Verdict::Fine, Some(0.0)), "a class");
    assert_eq!((judged(0).verdict, judged(0).figure), (Verdict::TooLittle, None), "either");
}

#[test]
fn what_ticks_stand_for_is_the_least_that_leaks() {
    let judged = |source: &'static str| {
        let mut made = Made::new();
        quiet(&mut made);
        with("leak", 1.0, &mut made);
        let site = made.site(&["Shop.Visits.Answer(int)"]);
        made.tables.add(&allocation(site, source, "Shop.Session", "small"));
        of("leak", found_in(made))
    };
    assert_eq!(judged("tick").verdict, Verdict::Warning);
    assert!(judged("tick").sentence.starts_with("At least "), "{:?}", judged("tick"));
    assert!(!judged("sampled").sentence.starts_with("At least "), "{:?}", judged("sampled"));
}

/// A thread that looks for work each millisecond wakes as often as one that is woken for each piece of it.
#[test]
fn waits_that_end_by_their_time_are_polling_and_others_are_not() {
    let judged = |duration_ns: fn(i64) -> i64| {
        let mut made = Made::new();
        quiet(&mut made);
        let site = made.site(&["Shop.Mailbox.Look()", "System.Threading.WaitHandle.WaitOneNoCheck(int)"]);
        for n in 0..60_000 * 3 {
            let start_ts_ns = n * MS / 3;
            let end_ts_ns = Some(start_ts_ns + duration_ns(n));
            made.tables.add(&Wait { start_ts_ns, end_ts_ns, process_id: 7, callsite_id: site, ..Wait::default() });
        }
        of("idle_wakeups", found_in(made))
    };
    let polls = judged(|n| MS + n % 5 * MS / 10);
    assert_eq!(
        (polls.verdict, polls.own_method.as_deref()),
        (Verdict::Warning, Some("Shop.Mailbox.Look")),
        "{polls:?}"
    );
    assert_eq!(judged(|n| n % 100 * MS / 10).verdict, Verdict::Fine);
}

#[test]
fn what_comes_from_another_finding_stands_below_it() {
    let mut made = Made::new();
    quiet(&mut made);
    with("large_object_triggers", 1.0, &mut made);
    with("pause_share", 1.0, &mut made);
    let found = found_in(made);
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

/// A group stands where its highest member belongs, with the cause first; what is wrong with the recording stands behind all of it.
#[test]
fn groups_stand_by_their_highest_member() {
    let mut made = Made::new();
    quiet(&mut made);
    with("large_object_triggers", 1.0, &mut made);
    let found = found_in(made);
    let of = |rule: &str, verdict, score, cause: Option<&str>| Finding {
        rule: rule.to_owned(),
        verdict,
        score: Some(score),
        cause_rule: cause.map(str::to_owned),
        ..found[0].clone()
    };
    let mut given = vec![
        of("unnamed_frames", Verdict::Warning, 99.0, None),
        of("boxing", Verdict::Warning, 80.0, None),
        of("induced", Verdict::Info, 60.0, None),
        of("many_gen2", Verdict::Warning, 100.0, Some("induced")),
        of("long_pause", Verdict::Info, 30.0, Some("induced")),
        of("leak", Verdict::Info, 70.0, None),
        // A table of another program may say so.
        of("loh_free", Verdict::Info, 26.0, Some("datas_cost")),
        of("datas_cost", Verdict::Info, 25.0, Some("loh_free")),
    ];
    crate::findings::judge::sort(&mut given);
    let order: Vec<&str> = given.iter().map(|finding| finding.rule.as_str()).collect();
    let expected = ["induced", "many_gen2", "long_pause", "boxing", "leak", "loh_free", "datas_cost", "unnamed_frames"];
    assert_eq!((&order[..5], order.len(), order[7]), (&expected[..5], 8, expected[7]));
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
        made.samples(thread_id, 1000, |_| (if thread_id < 5 { site } else { 0 }, "external"));
    }
    let found = of("blocked_workers", found_in(made));
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
        of("leak", found_in(made))
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
        let found = of("n_plus_one", found_in(made));
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
    let found = of("n_plus_one_calls", found_in(made));
    assert_eq!((found.verdict, found.figure), (Verdict::Info, Some(400.0)), "{found:?}");
}

/// Thread.Sleep writes no event of a wait, and the pool no event of an item unless it is asked for: samples and counters say it.
#[test]
fn workers_that_sleep_and_the_queue_behind_them_are_seen() {
    let judged = |callee: &'static str| {
        let mut made = Made::new();
        quiet(&mut made);
        let site = made.site(&["System.Threading.ThreadPoolWorkQueue.Dispatch()", "Shop.Polls.Ask(int)", callee]);
        for thread_id in 0..4 {
            made.samples(thread_id, 1000, |_| (site, "external"));
        }
        made.queue_counters(|_| 500.0);
        found_in(made)
    };
    let slept = judged("System.Threading.Thread.Sleep(int)");
    let workers = of("blocked_workers", slept.clone());
    assert_eq!((workers.verdict, workers.figure), (Verdict::Warning, Some(4.0)), "{workers:?}");
    assert_eq!(workers.own_method.as_deref(), Some("Shop.Polls.Ask"));
    assert!(workers.sentence.contains("most of it in System.Threading.Thread.Sleep"), "{workers:?}");
    let queue = of("queue_delay", slept);
    assert_eq!((queue.verdict, queue.figure), (Verdict::Warning, Some(5e9)), "{queue:?}");
    assert_eq!(queue.cause_rule.as_deref(), Some("blocked_workers"));
    // Native code that works is no wait.
    let hashed = of("blocked_workers", judged("Interop+Crypto.EvpDigestUpdate(int)"));
    assert_eq!((hashed.verdict, hashed.figure), (Verdict::Fine, Some(0.0)), "{hashed:?}");
}

/// A recording with a part of the rows that a rule asks for is judged by the least that they may stand for.
#[test]
fn few_rows_say_no_more_than_they_surely_stand_for() {
    let judged = |collections: u32, large: u32| {
        let mut made = Made::new();
        made.trace.duration_ns = 3 * S;
        quiet(&mut made);
        let reason = |n| if n <= large { "AllocLarge" } else { "AllocSmall" };
        (1..=collections).for_each(|n| made.gc(n, 0, reason(n), "blocking"));
        of("large_object_triggers", found_in(made))
    };
    let all = judged(6, 6);
    assert_eq!((all.verdict, all.figure), (Verdict::Warning, Some(1.0)), "{all:?}");
    assert!(all.score < judged(12, 12).score, "six prove less than twelve");
    assert_eq!([judged(6, 3), judged(5, 5)].map(|few| few.verdict), [Verdict::Info; 2]);
    // Neither one nor none of three proves a small share.
    for few in [judged(3, 1), judged(3, 0)] {
        assert_eq!((few.verdict, few.score), (Verdict::TooLittle, None), "{few:?}");
        assert_eq!(few.sentence, "10 GCs are needed, and there are 3.");
        assert_eq!(few.next_step, "tracequet collect --for gc,allocations --duration 30s");
    }
}

/// A lock that readers share writes no event of a lock, but one of a wait.
#[test]
fn waits_for_a_lock_that_readers_share_are_those_for_a_lock() {
    let judged = |waits_in: &str| {
        let mut made = Made::new();
        quiet(&mut made);
        let callsite_id = made.site(&["System.Threading.ThreadPoolWorkQueue.Dispatch()", "Shop.Rates.Of()", waits_in]);
        for n in 0..60 {
            let (start_ts_ns, end_ts_ns) = (n * S, Some(n * S + S / 2));
            made.tables.add(&Wait { start_ts_ns, end_ts_ns, process_id: 7, callsite_id, ..Wait::default() });
        }
        let found = found_in(made);
        ["lock_convoy", "blocked_workers"].map(|rule| of(rule, found.clone()))
    };
    let [lock, workers] = judged("System.Threading.ReaderWriterLockSlim.TryEnterWriteLockCore()");
    assert_eq!((lock.verdict, workers.verdict), (Verdict::Warning, Verdict::Fine), "{lock:?}");
    assert_eq!((lock.figure, lock.own_method.as_deref()), (Some(0.5), Some("Shop.Rates.Of")));
    let [lock, workers] = judged("System.Threading.ManualResetEventSlim.Wait()");
    assert_eq!((lock.verdict, workers.verdict), (Verdict::Fine, Verdict::Info), "{workers:?}");
}

/// A request of 300 ms is not slow because of the 9 ms of a pause.
#[test]
fn a_short_pause_does_not_make_a_request_slow() {
    let judged = |pause_ns: i64| {
        let mut made = Made::new();
        quiet(&mut made);
        with("requests_in_pauses", 0.0, &mut made);
        for n in 0..40i64 {
            let start_ts_ns = n * 1500 * MS;
            made.tables.add(&GcPause {
                process_id: 7,
                kind: "gc",
                start_ts_ns,
                duration_ns: pause_ns,
                ..GcPause::default()
            });
        }
        of("requests_in_pauses", found_in(made)).verdict
    };
    assert_eq!((judged(9 * MS), judged(200 * MS)), (Verdict::Fine, Verdict::Warning));
}

/// What is finalized says whose it is, where its types and allocations are recorded.
#[test]
fn who_allocates_what_is_finalized_is_named() {
    let mut made = Made::new();
    quiet(&mut made);
    with("finalizers", 1.0, &mut made);
    let [keys, other] = ["Shop.Keys.Sign()", "Shop.Totals.Sum()"].map(|name| made.site(&[name]));
    for n in 0..200 {
        let (site, name) = if n % 4 == 0 { (keys, "Shop.KeyHandle") } else { (other, "System.Byte[]") };
        made.tables.add(&allocation(site, "sampled", name, "small"));
    }
    let type_id = "Shop.KeyHandle".len() as u64;
    made.tables.add(&Type { process_id: 7, type_id, name: "Shop.KeyHandle", ..Type::default() });
    made.tables.add(&GcFinalizable { process_id: 7, action: "finalized", type_id, ..GcFinalizable::default() });
    let found = of("finalizers", found_in(made));
    assert_eq!(
        (found.own_method.as_deref(), found.subject.as_deref()),
        (Some("Shop.Keys.Sign"), Some("Shop.KeyHandle"))
    );
}

/// A thread that gives work to the pool may start a worker and wait for it. The thread itself is no worker.
#[test]
fn who_gives_the_pool_work_is_no_worker() {
    let judged = |path: &[&str]| {
        let mut made = Made::new();
        quiet(&mut made);
        let callsite_id = made.site(path);
        for n in 0..60 {
            let (start_ts_ns, end_ts_ns) = (n * S, Some(n * S + 4 * S));
            made.tables.add(&Wait { start_ts_ns, end_ts_ns, process_id: 7, callsite_id, ..Wait::default() });
        }
        of("blocked_workers", found_in(made)).verdict
    };
    let pool = "System.Threading.PortableThreadPool+WorkerThread.";
    let (begins, adds) = (format!("{pool}WorkerThreadStart()"), format!("{pool}MaybeAddWorkingWorker()"));
    assert_eq!(
        judged(&["Shop.Feeds.Listen()", "System.Threading.ThreadPool.QueueUserWorkItem()", &adds]),
        Verdict::Fine
    );
    assert_eq!(judged(&[&begins, "Shop.Feeds.Read()", "System.Threading.Monitor.Wait()"]), Verdict::Warning);
}

/// A cache with a bound that fills while one full collection looks is no leak that is proven.
#[test]
fn one_full_collection_proves_no_leak() {
    let judged = |full: &[u32]| {
        let mut made = Made::new();
        quiet(&mut made);
        (1..=55).for_each(|n| made.gc(n, if full.contains(&n) { 2 } else { 0 }, "AllocSmall", "blocking"));
        let site = made.site(&["Shop.Thumbs.Get(int)"]);
        survivors(&mut made, site, 90_000_000, |_| true);
        of("leak", found_in(made)).verdict
    };
    assert_eq!((judged(&[50]), judged(&[25, 50])), (Verdict::Info, Verdict::Warning));
}

/// Handles have no call stacks: the allocation of what they pin says whose it is.
#[test]
fn who_allocates_what_is_pinned_is_named() {
    let mut made = Made::new();
    quiet(&mut made);
    with("pinned_survivors", 1.0, &mut made);
    let [frame, other] = ["Shop.Scans.Grab()", "Shop.Totals.Sum()"].map(|name| made.site(&[name]));
    for n in 1..200u64 {
        let is_pinned = n % 4 == 0;
        let row = allocation(if is_pinned { frame } else { other }, "sampled", "System.Byte[]", "small");
        made.tables.add(&Allocation { object_id: n * 64, ..row });
        if is_pinned {
            let (action, handle_kind, object_id) = ("created", Some("Pinned"), n * 64);
            made.tables.add(&GcHandle { process_id: 7, action, handle_kind, object_id, ..GcHandle::default() });
        }
    }
    assert_eq!(of("pinned_survivors", found_in(made)).own_method.as_deref(), Some("Shop.Scans.Grab"));
}

#[test]
fn induced_collections_are_neither_counted_nor_listed() {
    let mut made = Made::new();
    quiet(&mut made);
    (1..=10).for_each(|n| made.gc(n, 2, "Induced", "blocking"));
    (11..=20).for_each(|n| made.gc(n, 2, "AllocSmall", "background"));
    let found = of("blocking_full", found_in(made));
    assert_eq!((found.verdict, found.figure), (Verdict::Fine, Some(0.0)), "{found:?}");
    assert!(found.evidence_sql.unwrap().contains("NOT LIKE 'Induced%'"));
}

#[test]
fn objects_whose_element_type_is_not_recorded_may_be_boxes() {
    let judged = |element_type: Option<u8>| {
        let mut made = Made::new();
        quiet(&mut made);
        let site = made.site(&["Shop.Totals.Sum()"]);
        (0..200).for_each(|_| made.tables.add(&allocation(site, "sampled", "Shop.Line", "small")));
        let (type_id, name) = ("Shop.Line".len() as u64, "Shop.Line");
        if let Some(element_type) = element_type {
            made.tables.add(&Type { process_id: 7, type_id, name, element_type, ..Type::default() });
        }
        of("boxing", found_in(made))
    };
    let unknown = judged(None);
    assert_eq!((unknown.verdict, unknown.score), (Verdict::TooLittle, None), "{unknown:?}");
    assert!(unknown.sentence.contains("it is not known whether it is boxed values"), "{unknown:?}");
    assert_eq!((judged(Some(0x12)).verdict, judged(Some(0x11)).verdict), (Verdict::Fine, Verdict::Warning));
}

#[test]
fn a_text_that_repeats_a_character_is_not_made_of_others() {
    let verdict = |constructor: &'static str| {
        let mut made = Made::new();
        quiet(&mut made);
        let site = made.site(&["Shop.Totals.Sum()", constructor]);
        (0..200).for_each(|_| made.tables.add(&allocation(site, "sampled", "System.String", "small")));
        of("string_churn", found_in(made)).verdict
    };
    assert_eq!(verdict("System.String.Ctor(wchar,int32)"), Verdict::Fine);
    assert_eq!(verdict("System.String.Ctor(wchar[])"), Verdict::Warning);
}

#[test]
fn large_objects_whose_collections_cost_nothing_are_fine() {
    let verdict = |pause_ns: i64| {
        let mut made = Made::new();
        quiet(&mut made);
        (1..=20).for_each(|n| made.gc(n, 2, "AllocLarge", "background"));
        (1..=20).for_each(|n| made.pause(n, pause_ns, 0));
        of("large_object_triggers", found_in(made)).verdict
    };
    assert_eq!((verdict(MS), verdict(600 * MS)), (Verdict::Fine, Verdict::Warning));
}
