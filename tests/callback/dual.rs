//! Proof on real runtimes: one process recorded by the recorder and by EventPipe at the same time says the same twice.

use crate::support::agree::{agree, agree_in_part, complete, stories};
use crate::support::callbacks::{Facts, facts};
use crate::support::dual::{FEWER, each_runtime};
use crate::support::patience::wait_for;

fn both(what: &str, settings: &[(&str, &str)], environment: &[(&str, &str)], arguments: &[&str], only: &str) {
    let mut agreeing = 0;
    for runtime in each_runtime(what).iter().filter(|r| r.name.starts_with(only)) {
        let dual = runtime.start(settings, environment, arguments).ended();
        let (callbacks, events) = (dual.callbacks(), dual.events());
        let name = format!("{what} on {}", runtime.name);
        agreeing += agree(&name, &callbacks, &events);
        assert!(callbacks.end.complete && callbacks.end.dropped_events == 0, "{name}: {:?}", callbacks.problems);
        let losses: Vec<_> = callbacks.codes().into_iter().filter(|c| *c != "paired_callbacks").collect();
        assert!(losses.is_empty(), "{name}: {losses:?}");
    }
    println!("{what}: {agreeing} collections in all");
}

/// A program of the samples under settings of the runtime, on the runtimes whose name begins as given.
macro_rules! programs {
    ($($name:ident: $arguments:expr, $settings:expr, $only:expr;)*) => {$(
        #[test]
        fn $name() {
            both(stringify!($name), &$settings, &[], &$arguments, $only);
        }
    )*};
}

programs! {
    workstation_collections_agree: ["churn"], [], "";
    non_concurrent_collections_agree: ["churn"], [("gcConcurrent", "0")], "";
    server_collections_with_two_heaps_agree: ["churn", "2"], [("gcServer", "1"), ("GCHeapCount", "2")], "";
    server_collections_with_a_changing_number_of_heaps_agree:
        ["churn", "4"], [("gcServer", "1"), ("GCDynamicAdaptationMode", "1")], "10.";
    collections_with_segments_agree: ["churn"], [("GCName", "libclrgc.so")], "10.";
    collections_of_large_objects_with_segments_agree: ["large"], [("GCName", "libclrgc.so")], "10.";
    collections_of_large_objects_agree: ["large"], [], "";
    collections_of_large_objects_with_two_heaps_agree: ["large"], [("gcServer", "1"), ("GCHeapCount", "2")], "";
    collections_around_pinned_objects_agree: ["pinned"], [], "";
    collections_of_objects_with_finalizers_agree: ["finalizers"], [], "";
    collections_under_handles_of_every_kind_agree: ["handles"], [], "";
    collections_under_weak_tables_agree: ["weak"], [], "";
    collections_beside_frozen_objects_agree: ["frozen"], [], "";
    collections_under_deep_stacks_agree: ["threads"], [], "";
    collections_that_unload_types_agree: ["unload"], [], "";
    collections_of_many_ranges_agree: ["ranges"], [], "";
}

#[test]
fn both_versions_of_the_callbacks_agree_with_eventpipe() {
    both("both versions", &[], &[("TRACEQUET_RANGES", "both")], &["churn"], "");
}

#[test]
fn the_first_version_alone_agrees_with_eventpipe() {
    both("first version", &[], &[("TRACEQUET_RANGES", "v1")], &["churn"], "");
    both("no second version", &[], &[("TRACEQUET_RANGES", "v1"), ("TRACEQUET_INTERFACE", "3")], &["churn"], "");
}

#[test]
fn a_walk_of_all_objects_finds_each_condemned_one_in_a_range() {
    let environment = [("TRACEQUET_OBJECTS", "1"), ("TRACEQUET_ALLOCATIONS", "1")];
    both("objects", &FEWER, &environment, &["churn"], "");
}

#[test]
fn background_collections_are_paired_as_eventpipe_numbers_them() {
    for runtime in each_runtime("background") {
        let settings = [("gcConcurrent", "1")];
        let dual = runtime.start(&settings, &[("TRACEQUET_GC", "basic")], &["churn"]).ended();
        let (callbacks, events) = (dual.callbacks(), dual.events());
        let theirs = complete(&events);
        let ours: Vec<_> = callbacks.collections.iter().collect();
        assert_eq!(ours.len(), theirs.len(), "{}", runtime.name);
        let (our_stories, their_stories) = (stories(&callbacks), stories(&events));
        let (mut background, mut bounds) = (0, 0);
        for (our, their) in ours.iter().zip(&theirs) {
            if !our.complete {
                continue; // hidden: the callbacks do not say more of it
            }
            background += usize::from(our.kind == Some("background"));
            // What EventPipe calls background may have fallen back to blocking; then it has no pauses of its own.
            let fell_back = (our.kind, their.kind) == (Some("blocking"), Some("background"));
            let same = our.kind == their.kind || fell_back;
            assert!(same && our.generation == their.generation, "{}: {our:?} and {their:?}", runtime.name);
            let rows = [&our_stories[&our.gc_id].0, &their_stories[&their.gc_id].0];
            assert!(rows[0] == rows[1] && !rows[0].is_empty(), "{}: bounds of {our:?}: {rows:x?}", runtime.name);
            bounds += rows[0].len();
        }
        println!("background on {}: {background} of {} collections, {bounds} bounds", runtime.name, ours.len());
        assert!(background > 0 || runtime.is_old(), "no background collection");
        assert!(callbacks.surviving.is_empty() && callbacks.moved.is_empty());
    }
}

#[test]
fn a_killed_process_leaves_all_but_the_last_record() {
    for runtime in each_runtime("killed") {
        let mut dual = runtime.start(&[], &[], &["exit-early", "1000"]);
        // Until both recordings have some collections. EventPipe of 3.1 writes its file at the end.
        let collections = |facts: Option<Facts>| facts.map_or(0, |facts| complete(&facts).len());
        wait_for(&format!("{}: a sixth collection", runtime.name), || {
            collections(std::fs::read(dual.recording()).ok().and_then(|bytes| facts(&bytes).ok())) >= 6
                && (runtime.is_old() || collections(dual.events_so_far()) >= 6)
        });
        dual.child.kill().expect("a running program");
        let dual = dual.ended();
        let facts = dual.callbacks();
        let lost = facts.end.dropped_events;
        println!("killed on {}: {} records, {lost} lost, {:?}", runtime.name, facts.records, facts.codes());
        assert!(!facts.end.complete && facts.codes().contains(&"no_end_mark"));
        assert!(complete(&facts).len() >= 3 && lost <= 4, "{}: {lost} of {} records", runtime.name, facts.records);
        // EventPipe of 3.1 writes its file at the end, which did not come.
        if !runtime.is_old() {
            assert!(agree_in_part(&format!("killed on {}", runtime.name), &dual.events(), &facts).0 >= 3);
        }
        let allowed = ["missing_records", "no_end_mark", "open_collection", "running_collection", "torn_record"];
        assert!(facts.codes().iter().all(|code| allowed.contains(code)), "{:?}", facts.codes());
    }
}

#[test]
fn a_process_that_fails_fast_leaves_its_collections() {
    for runtime in each_runtime("fail fast") {
        let dual = runtime.start(&[], &[], &["exit-early"]).ended();
        let facts = dual.callbacks();
        assert!(complete(&facts).len() >= 6, "{}", runtime.name);
        if !runtime.is_old() {
            assert!(agree_in_part(&format!("fail fast on {}", runtime.name), &dual.events(), &facts).0 >= 3);
        }
        assert_eq!(facts.end.dropped_events, 0, "{}", runtime.name);
    }
}

/// An array of 5 GiB: address space and some memory for it, and `TRACEQUET_TEST_LARGE=1`, are needed.
#[test]
fn the_length_of_an_array_over_four_gib_is_exact_paired_or_at_least_no_lie() {
    const TEST: &str = "an array over 4 GiB";
    if std::env::var_os("TRACEQUET_TEST_LARGE").is_none() {
        println!("{TEST}: skipped, TRACEQUET_TEST_LARGE is not set");
        return;
    }
    type Settings = &'static [(&'static str, &'static str)];
    let recorded: [(Settings, &[&str]); 5] = [
        (&[("TRACEQUET_RANGES", "v2")], &["exact"]), // the second version fails, so that there is no first
        (&[("TRACEQUET_RANGES", "v2"), ("TRACEQUET_V2", "ok")], &["exact"]),
        (&[("TRACEQUET_RANGES", "both")], &["paired"]),
        (&[("TRACEQUET_RANGES", "v1")], &["clamped", "narrowed"]),
        (&[("TRACEQUET_RANGES", "v1"), ("TRACEQUET_INTERFACE", "3")], &["clamped", "narrowed"]),
    ];
    // Collection, old start, new start, length, and how it is known.
    type Large = (u32, u64, u64, u64, &'static str);
    let large = |facts: &Facts| -> Vec<Large> {
        let surviving =
            facts.surviving.iter().map(|r| (r.gc_id, r.range_start, r.range_start, r.range_length, r.length_kind));
        let moved =
            facts.moved.iter().map(|r| (r.gc_id, r.old_range_start, r.new_range_start, r.range_length, r.length_kind));
        let mut rows: Vec<_> = surviving.chain(moved).filter(|r| r.3 >= 1 << 32).collect();
        rows.sort_unstable();
        rows
    };
    for runtime in each_runtime(TEST) {
        for (environment, kinds) in &recorded {
            let dual = runtime.start(&[], environment, &["big", "5"]).ended();
            let (callbacks, events) = (dual.callbacks(), dual.events());
            let (ours, theirs) = (large(&callbacks), large(&events));
            let name = format!("{TEST} on {}, {environment:?}", runtime.name);
            let [surviving, moved] = [&callbacks.surviving.len(), &callbacks.moved.len()];
            println!("{name}: {surviving} surviving and {moved} moved ranges, of which large {ours:?}");
            assert!(ours.len() >= 3, "{name}: {ours:?}");
            assert_eq!(ours.len(), theirs.len(), "{name}");
            for (our, their) in ours.iter().zip(&theirs) {
                assert!(kinds.contains(&our.4), "{name}: {our:?}");
                assert_eq!((our.0, our.1, our.2), (their.0, their.1, their.2), "{name}");
                let expected = if our.4 == "clamped" { 1 << 32 } else { their.3 };
                assert_eq!(our.3, expected, "{name}: {our:?} and {their:?}");
            }
        }
    }
}
