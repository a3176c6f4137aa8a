//! Proof on real runtimes: one process recorded by the recorder and by EventPipe at the same time says the same twice.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tracequet::normalize::fact::{Collection, GcId};

use crate::support::callbacks::Facts;
use crate::support::dual::{Dual, Runtime, recorder, runtimes};

/// All that is compared of a collection: bounds, surviving and moved ranges, each a sorted list.
pub type Story = (Vec<[u64; 5]>, Vec<[u64; 4]>, Vec<[u64; 5]>);

pub fn stories(facts: &Facts) -> BTreeMap<GcId, Story> {
    let mut all: BTreeMap<GcId, Story> = BTreeMap::new();
    let generation = |g: Option<u8>| g.map_or(u64::MAX, u64::from);
    for (id, b) in &facts.bounds {
        let row = [u64::from(b.at_end), u64::from(b.generation), b.start, b.length, b.reserved];
        all.entry(*id).or_default().0.push(row);
    }
    for (id, r) in &facts.surviving {
        let row = [r.start, r.length, generation(r.generation_before), generation(r.generation_after)];
        all.entry(*id).or_default().1.push(row);
    }
    for (id, r) in &facts.moved {
        let row = [r.old_start, r.new_start, r.length, generation(r.generation_before), generation(r.generation_after)];
        all.entry(*id).or_default().2.push(row);
    }
    for story in all.values_mut() {
        story.0.sort_unstable();
        story.1.sort_unstable();
        story.2.sort_unstable();
    }
    all
}

fn complete(facts: &Facts) -> Vec<&Collection> {
    facts.collections.iter().filter(|c| c.complete).collect()
}

/// Holds both recordings of a process that ended by itself against each other. Returns how many collections agree.
fn agree(what: &str, callbacks: &Facts, events: &Facts) -> usize {
    let (ours, theirs) = (complete(callbacks), complete(events));
    assert!(ours.len() >= 5, "{what}: only {} collections", ours.len());
    assert_eq!(ours.len(), theirs.len(), "{what}: collections");
    let (our_stories, their_stories) = (stories(callbacks), stories(events));
    let nothing = Story::default();
    for (our, their) in ours.iter().zip(&theirs) {
        assert_eq!(our.generation, their.generation, "{what}: collection {}", our.gc_id);
        assert_eq!(our.kind, their.kind, "{what}: collection {}", our.gc_id);
        let story = |all: &BTreeMap<GcId, Story>, id: GcId| all.get(&id).unwrap_or(&nothing).clone();
        let (a, b) = (story(&our_stories, our.gc_id), story(&their_stories, their.gc_id));
        assert!(
            a == b,
            "{what}: collection {} ({} {} {} and {} {} {} rows)",
            our.gc_id,
            a.0.len(),
            a.1.len(),
            a.2.len(),
            b.0.len(),
            b.1.len(),
            b.2.len()
        );
    }
    let (moved, surviving) = (callbacks.moved.len(), callbacks.surviving.len());
    println!(
        "{what}: {} of {} collections agree, {surviving} surviving and {moved} moved ranges",
        ours.len(),
        theirs.len()
    );
    assert!(surviving > 0 && moved > 0, "{what}: no ranges");
    ours.len()
}

/// The runtimes, or none and a line that says so.
pub fn each_runtime(test: &str) -> &'static [Runtime] {
    let found = if recorder().is_some() { runtimes() } else { &[] };
    if found.is_empty() {
        println!("{test}: skipped, there is no .NET runtime (samples/record.sh --print-runtime installs one)");
    }
    found
}

pub fn ended(mut dual: Dual) -> Dual {
    let begin = Instant::now();
    while dual.child.try_wait().expect("a child").is_none() {
        if begin.elapsed() > Duration::from_secs(120) {
            dual.child.kill().ok();
            panic!("the program does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    dual
}

fn both(what: &str, settings: &[(&str, &str)], environment: &[(&str, &str)], arguments: &[&str], only: &str) {
    let mut agreeing = 0;
    for runtime in each_runtime(what).iter().filter(|r| r.name.starts_with(only)) {
        let Some(dual) = runtime.start(settings, environment, arguments) else { continue };
        let dual = ended(dual);
        let (callbacks, events) = (dual.callbacks(), dual.events());
        let name = format!("{what} on {}", runtime.name);
        agreeing += agree(&name, &callbacks, &events);
        assert!(callbacks.end.complete && callbacks.end.dropped_events == 0, "{name}: {:?}", callbacks.problems);
        let losses: Vec<_> = callbacks.codes().into_iter().filter(|c| *c != "paired_callbacks").collect();
        assert!(losses.is_empty(), "{name}: {losses:?}");
    }
    println!("{what}: {agreeing} collections in all");
}

#[test]
fn workstation_collections_agree_with_eventpipe() {
    both("workstation", &[], &[], &["churn"], "");
}

#[test]
fn server_collections_with_two_heaps_agree_with_eventpipe() {
    both("server", &[("gcServer", "1"), ("GCHeapCount", "2")], &[], &["churn", "2"], "");
}

#[test]
fn collections_with_segments_agree_with_eventpipe() {
    both("segments", &[("GCName", "libclrgc.so")], &[], &["churn"], "10.");
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
    both("objects", &[], &environment, &["churn"], "");
}

#[test]
fn background_collections_are_paired_as_eventpipe_numbers_them() {
    for runtime in each_runtime("background") {
        let Some(dual) = runtime.start(&[("gcConcurrent", "1")], &[("TRACEQUET_GC", "basic")], &["churn"]) else {
            continue;
        };
        let dual = ended(dual);
        let (callbacks, events) = (dual.callbacks(), dual.events());
        let theirs = complete(&events);
        let ours: Vec<_> = callbacks.collections.iter().collect();
        assert_eq!(ours.len(), theirs.len(), "{}", runtime.name);
        let mut background = 0;
        for (our, their) in ours.iter().zip(&theirs) {
            if !our.complete {
                continue; // hidden: the callbacks do not say more of it
            }
            background += usize::from(our.kind == Some("background"));
            // What EventPipe calls background may have fallen back to blocking; then it has no pauses of its own.
            let fell_back = (our.kind, their.kind) == (Some("blocking"), Some("background"));
            let same = our.kind == their.kind || fell_back;
            assert!(same && our.generation == their.generation, "{}: {our:?} and {their:?}", runtime.name);
        }
        println!("background on {}: {background} of {} collections", runtime.name, ours.len());
        assert!(background > 0 || runtime.name.starts_with("3."), "no background collection");
        assert!(callbacks.surviving.is_empty() && callbacks.moved.is_empty());
    }
}

#[test]
fn a_killed_process_leaves_all_but_the_last_record() {
    for runtime in each_runtime("killed") {
        let Some(mut dual) = runtime.start(&[], &[], &["exit-early", "1000"]) else { continue };
        std::thread::sleep(Duration::from_millis(1500));
        dual.child.kill().expect("a running program");
        let dual = ended(dual);
        let facts = dual.callbacks();
        let lost = facts.end.dropped_events;
        println!("killed on {}: {} records, {lost} lost, {:?}", runtime.name, facts.records, facts.codes());
        assert!(!facts.end.complete && facts.codes().contains(&"no_end_mark"));
        assert!(complete(&facts).len() >= 3 && lost <= 4, "{}: {lost} of {} records", runtime.name, facts.records);
        let allowed = ["missing_records", "no_end_mark", "open_collection", "torn_record"];
        assert!(facts.codes().iter().all(|code| allowed.contains(code)), "{:?}", facts.codes());
    }
}

#[test]
fn a_process_that_fails_fast_leaves_its_collections() {
    for runtime in each_runtime("fail fast") {
        let Some(dual) = runtime.start(&[], &[], &["exit-early"]) else { continue };
        let facts = ended(dual).callbacks();
        assert!(!complete(&facts).is_empty(), "{}", runtime.name);
        assert_eq!(facts.end.dropped_events, 0, "{}", runtime.name);
    }
}

/// An array of 5 GiB: the kit's program, 5 GB of memory and `TRACEQUET_TEST_LARGE=1` are needed.
#[test]
fn the_length_of_an_array_over_four_gib_is_exact_paired_or_at_least_no_lie() {
    const TEST: &str = "an array over 4 GiB";
    if std::env::var_os("TRACEQUET_TEST_LARGE").is_none() {
        println!("{TEST}: skipped, TRACEQUET_TEST_LARGE is not set");
        return;
    }
    for runtime in each_runtime(TEST) {
        let program = runtime.dotnet.with_file_name("apps").join("GcLab/GcLab.dll");
        if !program.is_file() {
            println!("{TEST}: {} has no {}", runtime.name, program.display());
            continue;
        }
        let runtime = Runtime { program, ..runtime.clone() };
        for (ranges, kinds) in [("v2", &["exact"][..]), ("both", &["paired"]), ("v1", &["clamped", "narrowed"])] {
            let Some(dual) = runtime.start(&[], &[("TRACEQUET_RANGES", ranges)], &["big", "5"]) else { continue };
            let dual = ended(dual);
            let large = |facts: &Facts| -> Vec<_> {
                let rows = facts.surviving.iter().filter(|(_, r)| r.length >= 1 << 32);
                rows.map(|(gc, r)| (*gc, r.start, r.length, r.length_kind.as_str())).collect()
            };
            let (ours, theirs) = (large(&dual.callbacks()), large(&dual.events()));
            assert!(!ours.is_empty(), "{ranges}: no array over 4 GiB");
            assert_eq!(ours.len(), theirs.len(), "{ranges}");
            for (our, their) in ours.iter().zip(&theirs) {
                assert!(kinds.contains(&our.3), "{ranges}: {our:?}");
                assert_eq!((our.0, our.1), (their.0, their.1), "{ranges}");
                let expected = if our.3 == "clamped" { 1 << 32 } else { their.2 };
                assert_eq!(our.2, expected, "{ranges}: {our:?} and {their:?}");
            }
            println!("{TEST} on {}, {ranges}: {ours:?}", runtime.name);
        }
    }
}
