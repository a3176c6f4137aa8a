//! `tracequet heap` and the library behind it, against what the definitions give: an object retains what no root leads
//! to without it.

use std::collections::{BTreeMap, HashMap, HashSet};

use tracequet::analyze::heap::{HeapGraph, Retention, explain, read, snapshot};
use tracequet::dataset::read::{Dataset, Recording};
use tracequet::{Convert, Error, convert};

use crate::support::dataset::rows;
use crate::support::files::sample;

/// The dataset of a sample.
fn dataset(name: &str) -> (tempfile::TempDir, Dataset) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set");
    convert(&Convert::new([sample(name)], &path), &mut |_| {}).unwrap();
    let dataset = Dataset::open(path).unwrap();
    (folder, dataset)
}

/// The same graph, read and searched in the most simple way. Objects are places in the order of their addresses.
struct Plain {
    addresses: Vec<u64>,
    sizes: Vec<u64>,
    types: Vec<String>,
    edges: Vec<Vec<usize>>,
    roots: Vec<usize>,
}

impl Plain {
    fn new(recording: &Recording<'_>) -> Plain {
        let number = |text: &str| text.parse::<u64>().unwrap();
        let names: HashMap<String, String> =
            rows(recording, "type", ["type_id", "name"]).into_iter().map(|[id, name]| (id, name)).collect();
        let objects = rows(recording, "heap_object", ["object_id", "size_bytes", "type_id"]);
        let objects: BTreeMap<u64, (u64, String)> =
            objects.into_iter().map(|[id, size, kind]| (number(&id), (number(&size), names[&kind].clone()))).collect();
        let places: HashMap<u64, usize> = objects.keys().copied().zip(0..).collect();
        let mut edges = vec![Vec::new(); objects.len()];
        let references = rows(recording, "heap_reference", ["object_id", "target_object_id"]);
        let dependents = rows(recording, "gc_weak_element", ["key_object_id", "value_object_id"]);
        for [from, to] in references.iter().chain(&dependents) {
            edges[places[&number(from)]].push(places[&number(to)]);
        }
        let mut roots = Vec::new();
        for [object, kind, flags] in rows(recording, "gc_root", ["object_id", "root_kind", "root_flags"]) {
            let object = number(&object);
            let holder = objects.range(..=object).next_back().filter(|(start, (size, _))| object < *start + size);
            if kind == "static" || number(&flags) & 2 == 0 {
                roots.extend(holder.map(|(start, _)| places[start]));
            }
        }
        let (sizes, types) = objects.values().cloned().unzip();
        Plain { addresses: objects.into_keys().collect(), sizes, types, edges, roots }
    }

    /// For each object the references to it from the nearest root, when one object is taken away; 0 when no root leads
    /// to it.
    fn reached(&self, without: Option<usize>) -> Vec<u32> {
        let mut seen = vec![0; self.sizes.len()];
        let mut open = self.roots.clone();
        let mut distance = 1;
        while !open.is_empty() {
            let mut next = Vec::new();
            for object in open {
                if Some(object) != without && seen[object] == 0 {
                    seen[object] = distance;
                    next.extend(&self.edges[object]);
                }
            }
            open = next;
            distance += 1;
        }
        seen
    }

    /// The objects that no root leads to without this one; only itself when no root leads to it.
    fn retained(&self, all: &[u32], object: usize) -> Vec<usize> {
        let left = self.reached(Some(object));
        let is_lost = |other: &usize| *other == object || all[*other] != 0 && left[*other] == 0;
        (0..all.len()).filter(is_lost).collect()
    }
}

fn graph_of(dataset: &Dataset) -> (HeapGraph, Retention) {
    let recording = dataset.recording(None).unwrap();
    let graph = read(&recording, &snapshot(&recording, None).unwrap(), 1 << 30).unwrap();
    let retention = Retention::of(&graph);
    (graph, retention)
}

#[test]
fn what_objects_retain_is_what_no_root_leads_to_without_them() {
    for name in ["heap.nettrace", "heap-10.nettrace"] {
        let (_folder, dataset) = dataset(name);
        let plain = Plain::new(&dataset.recording(None).unwrap());
        let (graph, retention) = graph_of(&dataset);
        assert!(graph.addresses.iter().eq(plain.addresses.iter().copied()));
        let all = plain.reached(None);
        assert_eq!(graph.distances(), all);
        let mut deep = 0;
        for object in 0..plain.sizes.len() {
            assert_eq!(graph.type_name(object as u32), plain.types[object]);
            let lost = plain.retained(&all, object);
            let bytes: u64 = lost.iter().map(|other| plain.sizes[*other]).sum();
            let node = object as u32;
            let found = (retention.bytes(&graph, node), retention.count(node) as usize);
            assert_eq!(found, (bytes, lost.len()), "{name} {object}");
            deep += usize::from(lost.len() > 1);
        }
        assert!(deep > 100, "{name}: only {deep} objects retain others");
    }
}

#[test]
fn a_type_retains_what_its_objects_do_and_nothing_twice() {
    let (_folder, dataset) = dataset("heap-10.nettrace");
    let (graph, retention) = graph_of(&dataset);
    let plain = Plain::new(&dataset.recording(None).unwrap());
    let all = plain.reached(None);
    let mut held: HashMap<&str, HashSet<usize>> = HashMap::new();
    for object in 0..plain.sizes.len() {
        held.entry(&plain.types[object]).or_default().extend(plain.retained(&all, object));
    }
    for row in retention.by_type(&graph) {
        let own: Vec<usize> = (0..plain.sizes.len()).filter(|object| *plain.types[*object] == *row.name).collect();
        let bytes = |objects: &mut dyn Iterator<Item = usize>| objects.map(|object| plain.sizes[object]).sum::<u64>();
        assert_eq!((row.objects, row.size_bytes), (own.len() as u64, bytes(&mut own.into_iter())));
        let held = &held[&*row.name];
        let expected = (bytes(&mut held.iter().copied()), held.len() as u64);
        assert_eq!((row.retained_bytes, row.retained_objects), expected, "{}", row.name);
    }
}

#[test]
fn retained_writes_what_the_command_finds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set");
    let request = Convert::new([sample("heap-10.nettrace")], &path);
    convert(&request.clone().dominators(1 << 20), &mut |_| {}).unwrap();
    let dataset = Dataset::open(&path).unwrap();
    let (graph, retention) = graph_of(&dataset);
    let columns =
        ["gc_id", "object_id", "dominator_id", "retained_bytes", "retained_count", "root_distance", "is_outermost"];
    let written = rows(&dataset.recording(None).unwrap(), "heap_dominator", columns);
    let expected = (0..graph.len()).zip(graph.distances()).map(|(node, distance)| {
        let dominator = retention.dominators.dominator(node).map_or(0, |other| graph.address(other));
        let outermost = u64::from(retention.is_outermost(node));
        let (bytes, count) = (retention.bytes(&graph, node), retention.count(node).into());
        [1, graph.address(node), dominator, bytes, count, distance.into(), outermost].map(|n| n.to_string())
    });
    assert_eq!(written, expected.collect::<Vec<_>>());

    // 2351 objects, 423 roots and 3143 references take 250 kB: that is said beforehand, and nothing else is lost.
    let summary = convert(&request.dominators(170_000).overwrite(true), &mut |_| {}).unwrap();
    let problems = summary.inputs[0].problems.iter().map(|problem| problem.code);
    assert_eq!(problems.filter(|code| *code != "unnamed_frames").collect::<Vec<_>>(), ["heap_too_large"]);
    let dataset = Dataset::open(&path).unwrap();
    assert!(rows(&dataset.recording(None).unwrap(), "heap_dominator", ["object_id"]).is_empty());
    assert_eq!(rows(&dataset.recording(None).unwrap(), "heap_object", ["object_id"]).len(), 2351);
}

#[test]
fn paths_are_paths_and_dominators_lie_on_them() {
    let (_folder, dataset) = dataset("heap-10.nettrace");
    let (graph, retention) = graph_of(&dataset);
    let mut static_fields = 0;
    let distances = graph.distances();
    for node in 0..graph.len() {
        let why = explain(&graph, &retention, node);
        assert_eq!(why.shortest.len(), distances[node as usize] as usize);
        assert_eq!(why.root.is_some(), !why.shortest.is_empty());
        for pair in why.shortest.windows(2) {
            assert!(graph.references.targets(pair[0].node).any(|target| target == pair[1].node));
        }
        if let Some(root) = &why.root {
            assert_eq!(root.node, why.shortest[0].node);
            static_fields += usize::from(root.describe().starts_with("static field "));
            // A dominator is on every path, so on this one.
            let path: Vec<_> = why.shortest.iter().map(|step| step.node).collect();
            assert!(why.dominators.iter().all(|step| path.contains(&step.node)), "{path:?} {:?}", why.dominators);
        }
        assert_eq!(why.dominators.last().map(|step| step.node), Some(node));
    }
    assert!(static_fields > 100, "only {static_fields} objects are held by a named static field");
}

#[test]
fn a_heap_beyond_the_memory_is_refused_with_its_size() {
    let (_folder, dataset) = dataset("heap-10.nettrace");
    let recording = dataset.recording(None).unwrap();
    let snapshot = snapshot(&recording, None).unwrap();
    let (graph, _) = graph_of(&dataset);
    let needed = 48 * u64::from(graph.len()) + 8 * graph.reference_count;
    for memory in [0, 48 * u64::from(graph.len()) - 1, needed - 1] {
        let error = read(&recording, &snapshot, memory).unwrap_err();
        assert!(matches!(error, Error::OverMemory(_)) && error.to_string().contains("2351 objects"), "{error}");
    }
    assert!(read(&recording, &snapshot, needed + 48 * 423).is_ok());
}

fn heap(arguments: &[&str]) -> (i32, String, String) {
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_tracequet")).arg("heap").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_command_says_what_to_type_where_the_library_says_what_is_wrong() {
    let advised = |arguments: &[&str], advice: &str| {
        let (code, _, error) = self::heap(arguments);
        assert!(code == 1 && error.ends_with(&format!("; {advice}\n")), "{code} {error}");
    };
    let [heap, stacks] = ["heap-10.nettrace", "stacks.nettrace"].map(sample);
    advised(&[heap.to_str().unwrap(), "--memory", "1KB"], "raise --memory");
    advised(&[stacks.to_str().unwrap()], "`tracequet collect --heap` records one");
}

#[test]
fn the_command_answers_from_a_recording_and_from_a_dataset() {
    let (folder, _dataset) = dataset("heap-10.nettrace");
    let set = folder.path().join("set");
    let (set, recording) = (set.to_str().unwrap(), sample("heap-10.nettrace"));
    let (code, of_set, error) = heap(&[set, "--json"]);
    assert_eq!((code, error.as_str()), (0, ""));
    let (code, of_recording, _) = heap(&[recording.to_str().unwrap(), "--json"]);
    assert_eq!((code, &of_set), (0, &of_recording));
    let found: serde_json::Value = serde_json::from_str(&of_set).unwrap();
    assert_eq!((found["objects"].as_u64(), found["references"].as_u64()), (Some(2351), Some(3103 + 40)));
    assert_eq!(found["left_out"]["references_without_target"].as_u64(), Some(0));

    let name = found["types"][0]["type"].as_str().unwrap();
    let (code, text, _) = heap(&[set, "--type", name]);
    assert!(code == 0 && text.contains("Shortest path from a root:") && text.contains("Dominators ("), "{text}");
    let (code, json, _) = heap(&[set, "--type", name, "--json"]);
    let about: serde_json::Value = serde_json::from_str(&json).unwrap();
    let address = format!("{:#x}", about["object"]["address"].as_u64().unwrap() + 1);
    assert_eq!(code, 0);
    let (_, of_address, _) = heap(&[set, "--object", &address, "--json"]);
    assert_eq!(json, of_address, "an address inside of the object means the object");

    for (arguments, message) in [
        (&[set, "--object", "0x10"][..], "there is no object at 0x10 in the walk of collection 1"),
        (&[set, "--type", "NoSuchType"], "no object of the type NoSuchType is on the heap"),
        (&[set, "--gc", "7"], "no walk of the heap in collection 7, but in 1"),
        (&[set, "--memory", "100k"], "raise --memory"),
        (&[sample("gc-churn.nettrace").to_str().unwrap()], "has no walk of the heap"),
    ] {
        let (code, text, error) = heap(arguments);
        assert!((code, text.as_str()) == (1, "") && error.contains(message), "{arguments:?}: {text} {error}");
    }
}

#[cfg(unix)]
#[test]
fn the_views_say_what_the_command_says() {
    let Some(python) = crate::support::python::python("the_views_say_what_the_command_says") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set");
    let request = Convert::new(["heap.nettrace", "heap-10.nettrace"].map(sample), &path).dominators(1 << 20);
    convert(&request, &mut |_| {}).unwrap();
    let mut arguments = vec![path.clone()];
    for recording in Dataset::open(&path).unwrap().recordings() {
        let (code, answer, error) = heap(&[path.to_str().unwrap(), "--json", "--trace", &recording.trace_id]);
        assert_eq!((code, error.as_str()), (0, ""));
        arguments.push(folder.path().join(format!("{}.json", recording.trace_id)));
        std::fs::write(arguments.last().unwrap(), answer).unwrap();
    }
    crate::dataset::readers::run(&python, "heap.py", &arguments);
}

/// The query that a document has for it goes back a bounded number of steps.
#[test]
fn why_an_object_of_a_long_list_is_still_there_is_found_by_sql() {
    let test = "why_an_object_of_a_long_list_is_still_there_is_found_by_sql";
    let Some(python) = crate::support::python::python(test) else { return };
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/still_there.py");
    let mut command = std::process::Command::new(python);
    command.arg(script).arg("1000000");
    let output = crate::support::patience::ends("the query", || command.output().unwrap());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
