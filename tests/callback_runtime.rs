//! What a real runtime tells beside ranges: roots, weak elements, handles, finalizers, pinned and frozen objects, unloads.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tracequet::normalize::fact::{GcId, MovedRange};

use crate::support::agree::{agree, agree_in_part};
use crate::support::callbacks::Facts;
use crate::support::dual::{Dual, Runtime, each_runtime, events, raw};

fn run(runtime: &Runtime, environment: &[(&str, &str)], arguments: &[&str]) -> Dual {
    // Handles are events of keyword 2.
    let settings = [("EventPipeConfig", "Microsoft-Windows-DotNETRuntime:0x400003:5")];
    runtime.start(&settings, environment, arguments).expect("a program that starts").ended()
}

fn sorted<T: Ord>(rows: impl Iterator<Item = T>) -> Vec<T> {
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    rows
}

/// The objects of one collection's walk: these come one collection after the other, and each says how many there are.
fn walk(facts: &Facts, gc: GcId) -> (Vec<(u64, u64, u64)>, Vec<(u64, u64)>) {
    let before = facts.collections.iter().take_while(|c| c.gc_id != gc);
    let from: usize = before.map(|c| c.heap_object_count as usize).sum();
    let count = facts.collections.iter().find(|c| c.gc_id == gc).expect("the collection").heap_object_count as usize;
    let references = |objects: &[(u64, u64, u64)]| objects.iter().map(|(_, _, n)| *n as usize).sum::<usize>();
    let first = references(&facts.objects[..from]);
    let objects = &facts.objects[from..from + count];
    let edges = &facts.references[first..first + references(objects)];
    (sorted(objects.iter().copied()), sorted(edges.iter().copied()))
}

#[test]
fn a_heap_dump_has_the_roots_objects_and_weak_elements_of_the_callbacks() {
    for runtime in each_runtime("heap dump") {
        // The program asks its own runtime for a heap dump and for the ranges of the collection that makes it.
        let environment = [("TRACEQUET_OBJECTS", "record")];
        let arguments = ["heap", "{folder}/heap.nettrace", "1d80001"];
        let dual = runtime.start(&[("EnableEventPipe", "0")], &environment, &arguments);
        let dual = dual.expect("a program that starts").ended();
        let (callbacks, dump) = (dual.callbacks(), events(&dual.folder.path().join("heap.nettrace")));
        let name = format!("heap dump on {}", runtime.name);
        let (_, first) = agree_in_part(&name, &dump, &callbacks);

        let dumped = BTreeSet::from_iter(dump.roots.iter().map(|r| r.0));
        assert_eq!(dumped.len(), 1, "{name}: one collection makes the dump");
        let theirs = *dumped.first().expect("one");
        let ours = first + (theirs - dump.collections.iter().find(|c| c.complete).expect("one").gc_id);
        let roots = |facts: &Facts, gc: GcId| {
            // Static fields are roots of a kind that only the dump of .NET 5 and later has, beside the objects they are in.
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

#[test]
fn handles_are_made_and_destroyed_as_eventpipe_tells_it() {
    for runtime in each_runtime("handles") {
        let dual = run(runtime, &[], &["handles"]);
        let (callbacks, theirs) = (dual.callbacks(), dual.events());
        let name = format!("handles on {}", runtime.name);
        agree(&name, &callbacks, &theirs);
        let rows = |facts: &Facts, action: &str| {
            sorted(facts.handles.iter().filter(|h| h.0 == action).map(|(_, handle, object, _)| (*handle, *object)))
        };
        for action in ["created", "destroyed"] {
            let (a, b) = (rows(&callbacks, action), rows(&theirs, action));
            println!("{name}: {} and {} handles {action}", a.len(), b.len());
            assert!(a.len() >= 400, "{name}: {} handles {action}", a.len());
        }
    }
}
