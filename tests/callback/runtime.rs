//! What a real runtime reports beside ranges: roots, weak elements, handles, finalizers, pinned and frozen objects,
//! unloads.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use tracequet::facts::fact::GcId;

use crate::support::agree::{agree, agree_in_part};
use crate::support::callbacks::Facts;
use crate::support::dataset::Dataset;
use crate::support::dual::{Dual, Runtime, each_runtime, events, raw};

fn run(runtime: &Runtime, environment: &[(&str, &str)], arguments: &[&str]) -> Dual {
    // Handles are events of keyword 2.
    let settings = [("EventPipeConfig", "Microsoft-Windows-DotNETRuntime:0x400003:5")];
    runtime.start(&settings, environment, arguments).ended()
}

fn sorted<T: Ord>(rows: impl Iterator<Item = T>) -> Vec<T> {
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    rows
}

/// Address, class, and how many references it holds.
type Object = (u64, u64, u64);
/// The object that holds it, and the one that it leads to.
type Reference = (u64, u64);

/// The objects of one collection's walk: these come one collection after the other, and each says how many there are.
fn walk(facts: &Facts, gc: GcId) -> (Vec<Object>, Vec<Reference>) {
    let before = facts.collections.iter().take_while(|c| c.gc_id != gc);
    let from: usize = before.map(|c| c.heap_object_count as usize).sum();
    let count = facts.collections.iter().find(|c| c.gc_id == gc).expect("the collection").heap_object_count as usize;
    let references = |objects: &[Object]| objects.iter().map(|(_, _, n)| *n as usize).sum::<usize>();
    let first = references(&facts.objects[..from]);
    let objects = &facts.objects[from..from + count];
    let edges = &facts.references[first..first + references(objects)];
    (sorted(objects.iter().copied()), sorted(edges.iter().copied()))
}

#[test]
fn a_heap_dump_has_the_roots_objects_and_weak_elements_of_the_callbacks() {
    let server: &[_] = &[("EnableEventPipe", "0"), ("gcServer", "1"), ("GCHeapCount", "2")];
    for (runtime, settings) in each_runtime("heap dump").iter().flat_map(|r| [(r, &server[..1]), (r, server)]) {
        // The program asks its own runtime for a heap dump and for the ranges of the collection that makes it.
        let environment = [("TRACEQUET_OBJECTS", "record")];
        let arguments = ["heap", "{folder}/heap.nettrace", "1d80001"];
        let dual = runtime.start(settings, &environment, &arguments).ended();
        let (callbacks, dump) = (dual.callbacks(), events(&dual.folder.path().join("heap.nettrace")));
        let name = format!("heap dump on {}, {settings:?}", runtime.name);
        let (_, first) = agree_in_part(&name, &dump, &callbacks);

        let dumped = BTreeSet::from_iter(dump.roots.iter().map(|r| r.0));
        assert_eq!(dumped.len(), 1, "{name}: one collection makes the dump");
        let theirs = *dumped.first().expect("one");
        let ours = first + (theirs - dump.collections.iter().find(|c| c.complete).expect("one").gc_id);
        let roots = |facts: &Facts, gc: GcId| {
            // Static fields are roots of a kind that only the dump of .NET 5 and later has, beside the objects they are
            // in.
            let of_gc = facts.roots.iter().filter(|r| r.0 == gc && r.2 != "static");
            sorted(of_gc.map(|(_, object, kind, flags, id)| (*object, *kind, *flags, *id)))
        };
        let (a, b) = (roots(&callbacks, ours), roots(&dump, theirs));
        let kinds: BTreeMap<_, usize> = a.iter().fold(BTreeMap::new(), |mut kinds, r| {
            *kinds.entry((r.1, r.2)).or_default() += 1;
            kinds
        });
        println!("{name}: {} roots, by kind and flags {kinds:?}", a.len());
        assert!(a == b, "{name}: roots {a:x?}\n{b:x?}");
        for kind in ["stack", "finalizer", "handle"] {
            assert!(a.iter().any(|r| r.1 == kind), "{name}: no {kind} root");
        }
        for flag in [0, 1, 2] {
            assert!(a.iter().any(|r| r.1 == "handle" && r.2 == flag), "{name}: no handle with flags {flag}");
        }

        let weak = |facts: &Facts, gc: GcId| {
            sorted(facts.weak.iter().filter(|w| w.0 == gc).map(|(_, key, value, handle)| (*key, *value, *handle)))
        };
        let (a, b) = (weak(&callbacks, ours), weak(&dump, theirs));
        assert!(a == b && a.len() >= 40, "{name}: {} and {} weak elements", a.len(), b.len());

        let ((objects, edges), (nodes, dumped_edges)) = (walk(&callbacks, ours), walk(&dump, theirs));
        println!("{name}: {} objects, {} references, {} weak elements", objects.len(), edges.len(), a.len());
        assert!(objects == nodes && objects.len() > 1000, "{name}: {} and {} objects", objects.len(), nodes.len());
        assert!(edges == dumped_edges, "{name}: {} and {} references", edges.len(), dumped_edges.len());
    }
}

/// Rows of `gc_handle`: action, handle, object; and the kind, which only events have.
fn handles(recording: &Path) -> Vec<([String; 2], [u64; 2])> {
    let table = Dataset::of(recording).table("gc_handle");
    let (actions, kinds) = (table.texts("action"), table.texts("handle_kind"));
    let ids = table.numbers("handle_id").into_iter().zip(table.numbers("object_id"));
    let kinds = actions.into_iter().zip(kinds).map(|(a, k)| [a, k]);
    kinds.zip(ids.map(|(handle, object)| [handle, object])).collect()
}

#[test]
fn handles_of_every_kind_are_made_and_destroyed_as_eventpipe_tells_it() {
    for runtime in each_runtime("handles") {
        let dual = run(runtime, &[], &["handles"]);
        let (callbacks, theirs) = (dual.callbacks(), dual.events());
        let name = format!("handles on {}", runtime.name);
        agree(&name, &callbacks, &theirs);
        let mut ours: BTreeMap<(String, [u64; 2]), i64> = BTreeMap::new();
        for ([action, _], ids) in handles(&dual.recording()) {
            *ours.entry((action, ids)).or_default() += 1;
        }
        let mut reported: BTreeMap<(String, String), [usize; 2]> = BTreeMap::new();
        for ([action, kind], ids) in handles(&dual.events_path()) {
            let left = ours.entry((action.clone(), ids)).or_default();
            *left -= 1;
            let both = usize::from(*left < 0);
            reported.entry((action, kind)).or_default()[both] += 1;
        }
        println!("{name}: kinds with handles in both recordings, and in the events alone: {reported:?}");
        let least = |kind: &str, n: usize| {
            let [both, alone] = reported.get(&("created".into(), kind.into())).copied().unwrap_or_default();
            assert!(both >= n, "{name}: {both} handles of kind {kind}");
            alone
        };
        // The program makes these, and all of them are in both recordings.
        assert_eq!(least("Dependent", 160) + least("Pinned", 120), 0, "{name}");
        if !runtime.is_old() {
            assert_eq!(least("RefCounted", 12), 0, "{name}");
        }
        // The runtime makes some of these by itself before its profiler listens, and .NET 10 some that it never
        // reports.
        for kind in ["Strong", "WeakShort", "WeakLong"] {
            let alone = least(kind, 120);
            assert!(alone <= 100, "{name}: {alone} handles of kind {kind} in the events alone");
        }
        let destroyed = reported[&("destroyed".to_owned(), String::new())];
        assert!(destroyed[0] >= 450 && destroyed[1] == 0, "{name}: {destroyed:?} handles destroyed");
        // Roots through handles of all kinds but dependent ones, which are weak elements.
        let flags = BTreeSet::from_iter(callbacks.roots.iter().filter(|r| r.2 == "handle").map(|r| r.3));
        let expected = if runtime.is_old() { vec![0, 1, 2] } else { vec![0, 1, 2, 8] };
        assert_eq!(Vec::from_iter(flags), expected, "{name}: flags of handles");
        assert!(callbacks.weak.len() > 100, "{name}");
    }
}

#[test]
fn pinned_objects_stay_where_they_are() {
    for runtime in each_runtime("pinned") {
        let dual = run(runtime, &[], &["pinned"]);
        let callbacks = dual.callbacks();
        let mut pins: HashMap<GcId, Vec<u64>> = HashMap::new();
        for (gc, object, kind, flags, _) in &callbacks.roots {
            if (*kind, flags & 1) == ("handle", 1) {
                pins.entry(*gc).or_default().push(*object);
            }
        }
        let (mut stayed, mut moved) = (0, 0);
        for range in &callbacks.moved {
            let old = range.old_range_start..range.old_range_start + range.range_length;
            let held = pins.get(&range.gc_id).into_iter().flatten().filter(|object| old.contains(object)).count();
            assert!(
                held == 0 || range.old_range_start == range.new_range_start,
                "{}: {range:?} is pinned",
                runtime.name
            );
            stayed += held;
            moved += usize::from(range.old_range_start != range.new_range_start);
        }
        // The pinned heap: walked as what survives, never moved, a generation of its own.
        let in_pinned_heap = |g: Option<u8>| g == Some(4);
        let of_heap: Vec<_> = callbacks.surviving.iter().filter(|r| in_pinned_heap(r.generation_before)).collect();
        println!("{}: {stayed} pins held, {moved} ranges moved, {} in the pinned heap", runtime.name, of_heap.len());
        assert!(stayed > 100 && moved > 1000, "{}: {stayed} pins held, {moved} ranges moved", runtime.name);
        assert!(of_heap.iter().all(|r| in_pinned_heap(r.generation_after)), "{}", runtime.name);
        assert!(!callbacks.moved.iter().any(|r| in_pinned_heap(r.generation_before)), "{}", runtime.name);
        assert_eq!(
            of_heap.len() > 20,
            !runtime.is_old(),
            "{}: {} ranges in the pinned heap",
            runtime.name,
            of_heap.len()
        );
    }
}

#[test]
fn weak_tables_lose_dead_keys_and_keep_what_living_ones_hold() {
    for runtime in each_runtime("weak") {
        let dual = run(runtime, &[("TRACEQUET_OBJECTS", "record")], &["weak"]);
        let callbacks = dual.callbacks();
        let mut counts = Vec::new();
        for collection in &callbacks.collections {
            let gc = collection.gc_id;
            let alive = BTreeSet::from_iter(walk(&callbacks, gc).0.into_iter().map(|(object, _, _)| object));
            let rows: Vec<_> = callbacks.weak.iter().filter(|w| w.0 == gc).collect();
            for (_, key, value, _) in &rows {
                // An older generation that was not collected may hold a dead key; the walk has it all the same.
                assert!(alive.contains(key) && alive.contains(value), "{}: {key:x} {value:x} in {gc}", runtime.name);
            }
            counts.push((collection.generation, rows.len()));
        }
        println!("{}: weak elements of each collection {counts:?}", runtime.name);
        let shrinks = counts.windows(2).any(|w| w[1].0 == Some(2) && w[1].1 < w[0].1);
        assert!(shrinks && counts.iter().any(|c| c.1 > 500), "{}: {counts:?}", runtime.name);
    }
}

#[test]
fn what_waits_for_its_finalizer_is_queued_once_and_then_waits() {
    for runtime in each_runtime("finalizers") {
        let dual = run(runtime, &[], &["finalizers"]);
        let (callbacks, theirs) = (dual.callbacks(), dual.events());
        let count = |facts: &Facts, action| facts.finalizable.iter().filter(|f| f.1 == action).count();
        let (queued, waiting) = (count(&callbacks, "queued"), count(&callbacks, "waiting"));
        let finalized = count(&theirs, "finalized");
        println!("{}: {queued} queued, {waiting} waiting, {finalized} finalized by the events", runtime.name);
        // 12 rounds of 20 plain, 20 critical and 5 returning objects, and 3 slow ones; what was suppressed is not among
        // them.
        assert!(queued >= 12 * 45 + 3, "{}: {queued} queued", runtime.name);
        // Three times a slow one holds up the queue for four rounds. How many plain ones it holds is a matter of time;
        // critical ones run last, so that all 20 of each round wait in every later collection of these rounds, of which
        // there are more than those that the program asks for.
        assert!(waiting >= 3 * 20 * (1 + 2 + 3), "{}: {waiting} waiting", runtime.name);
        // Finalizers that the last collection queues may not run before the process ends. A few objects of the runtime register
        // again in their finalizers: they are finalized once more, but callbacks cannot tell them from objects that
        // still wait.
        assert!(queued.abs_diff(finalized) < 60, "{}: {queued} queued, {finalized} finalized", runtime.name);
        // In the first collection that finds something nothing can have waited before.
        let first = callbacks.finalizable.first().expect("a row").0;
        assert!(callbacks.finalizable.iter().filter(|f| f.0 == first).all(|f| f.1 == "queued"), "{}", runtime.name);
    }
}

#[test]
fn frozen_objects_lie_beside_all_generations_and_in_no_range() {
    for runtime in each_runtime("frozen") {
        let dual = run(runtime, &[], &["frozen"]);
        let (callbacks, raw) = (dual.callbacks(), raw(&dual.recording()));
        assert_eq!(raw.ends.len(), callbacks.collections.len(), "{}", runtime.name);
        let (mut frozen_roots, mut frozen_keys) = (0, 0);
        for (collection, (bounds, non_gc)) in callbacks.collections.iter().zip(&raw.ends) {
            let gc = collection.gc_id;
            let frozen = |a: u64| non_gc.iter().any(|[start, length, _]| (*start..start + length).contains(&a));
            let in_bounds = |a: u64| bounds.iter().any(|[_, start, length, _]| (*start..start + length).contains(&a));
            let place = |a: u64| {
                assert!(a == 0 || frozen(a) != in_bounds(a), "{}: {a:x} lies nowhere, or twice", runtime.name);
                usize::from(frozen(a))
            };
            frozen_roots += callbacks.roots.iter().filter(|r| r.0 == gc).map(|r| place(r.1)).sum::<usize>();
            for (_, key, value, _) in callbacks.weak.iter().filter(|w| w.0 == gc) {
                frozen_keys += place(*key);
                place(*value);
            }
            let surviving = callbacks.surviving.iter().filter(|r| r.gc_id == gc).map(|r| r.range_start);
            let moved = callbacks.moved.iter().filter(|r| r.gc_id == gc).map(|r| r.new_range_start);
            assert!(!surviving.chain(moved).any(frozen), "{}: a range in the frozen heap", runtime.name);
        }
        println!("{}: {frozen_roots} roots and {frozen_keys} keys are frozen", runtime.name);
        assert_eq!(frozen_roots > 50 && frozen_keys > 20, !runtime.is_old(), "{}", runtime.name);
    }
}

#[test]
fn ids_that_come_again_are_seen_to_go() {
    for runtime in each_runtime("unload") {
        // Several times: what is looked up while it is unloaded must not take the process down.
        for _ in 0..3 {
            let dual = run(runtime, &[], &["unload"]);
            let (callbacks, raw) = (dual.callbacks(), raw(&dual.recording()));
            assert!(callbacks.end.complete, "{}: the process did not end by itself", runtime.name);
            let counts = ["ClassUnloadStarted", "FunctionUnloadStarted", "ModuleUnloadStarted"].map(|k| raw.count(k));
            println!("{}: {counts:?} classes, functions, modules unloaded: {:?}", runtime.name, raw.unloaded);
            assert!(counts.iter().all(|n| *n >= 7), "{}: {counts:?}", runtime.name);
        }
    }
}

#[test]
fn a_recording_of_many_ranges_takes_at_most_five_bytes_for_each() {
    for runtime in each_runtime("size") {
        let dual = run(runtime, &[], &["ranges"]);
        let bytes = std::fs::metadata(dual.recording()).expect("a recording").len();
        let raw = raw(&dual.recording());
        println!(
            "{}: {bytes} bytes, {} ranges, {:.2} each",
            runtime.name,
            raw.ranges,
            bytes as f64 / raw.ranges as f64
        );
        assert!(raw.ranges > 200_000, "{}: {} ranges", runtime.name, raw.ranges);
        assert!(bytes <= 5 * raw.ranges as u64, "{}: {bytes} bytes for {} ranges", runtime.name, raw.ranges);
    }
}
