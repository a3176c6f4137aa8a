//! `tracequet heap` and the library behind it, against what the definitions give: an object retains what no root leads to
//! without it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use tracequet::analyze::heap::{HeapGraph, Retention, explain, read, snapshot};
use tracequet::dataset::{Column, Dataset, Recording};
use tracequet::pipeline::{Convert, convert};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)
}

/// The dataset of a sample.
fn dataset(name: &str) -> (tempfile::TempDir, Dataset) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set");
    convert(&Convert::new([sample(name)], &path), &mut |_| {}).unwrap();
    let dataset = Dataset::open(path).unwrap();
    (folder, dataset)
}

/// All rows of some columns of a table; text as it is, numbers in decimal.
fn rows<const N: usize>(recording: &Recording<'_>, table: &str, names: [&str; N]) -> Vec<[String; N]> {
    let mut all = Vec::new();
    for batch in recording.table(table).unwrap().scan().columns(names).batches().unwrap() {
        let batch = batch.unwrap();
        let columns = names.map(|name| Column::of(&batch, name).unwrap());
        for row in 0..batch.num_rows() {
            all.push(columns.map(|column| match column.text(row) {
                Some(text) => text.to_owned(),
                None => column.number(row).unwrap_or_default().to_string(),
            }));
        }
    }
    all
}

/// The same graph, read and searched in the most simple way.
struct Plain {
    sizes: BTreeMap<u64, u64>,
    types: HashMap<u64, String>,
    edges: HashMap<u64, Vec<u64>>,
    roots: Vec<u64>,
}

impl Plain {
    fn new(recording: &Recording<'_>) -> Plain {
        let number = |text: &str| text.parse::<u64>().unwrap();
        let names: HashMap<String, String> =
            rows(recording, "type", ["type_id", "name"]).into_iter().map(|[id, name]| (id, name)).collect();
        let (mut sizes, mut types, mut edges) = (BTreeMap::new(), HashMap::new(), HashMap::<u64, Vec<u64>>::new());
        for [id, size, kind] in rows(recording, "heap_object", ["object_id", "size_bytes", "type_id"]) {
            sizes.insert(number(&id), number(&size));
            types.insert(number(&id), names[&kind].clone());
        }
        let references = rows(recording, "heap_reference", ["object_id", "target_object_id"]);
        for [from, to] in
            references.iter().chain(&rows(recording, "gc_weak_element", ["key_object_id", "value_object_id"]))
        {
            edges.entry(number(from)).or_default().push(number(to));
        }
        let mut roots = Vec::new();
        for [object, kind, flags] in rows(recording, "gc_root", ["object_id", "root_kind", "root_flags"]) {
            if kind == "static" || number(&flags) & 2 == 0 {
                let object = number(&object);
                let holder = sizes.range(..=object).next_back();
                roots.extend(holder.filter(|(start, size)| object < *start + **size).map(|(start, _)| *start));
            }
        }
        Plain { sizes, types, edges, roots }
    }

    /// Objects that a root leads to, with the references to the nearest root, when one object is taken away.
    fn reached(&self, without: Option<u64>) -> HashMap<u64, u32> {
        let mut seen = HashMap::new();
        let mut open: Vec<u64> = self.roots.clone();
        let mut distance = 1;
        while !open.is_empty() {
            let mut next = Vec::new();
            for object in open {
                if Some(object) == without || !self.sizes.contains_key(&object) || seen.contains_key(&object) {
                    continue;
                }
                seen.insert(object, distance);
                next.extend(self.edges.get(&object).into_iter().flatten());
            }
            open = next;
            distance += 1;
        }
        seen
    }
}

fn graph_of(dataset: &Dataset) -> (HeapGraph, Retention) {
    let recording = dataset.recording(None).unwrap();
    let graph = read(&recording, &snapshot(&recording, None).unwrap(), 1 << 30).unwrap();
    let retention = Retention::of(&graph).unwrap();
    (graph, retention)
}

#[test]
fn what_objects_retain_is_what_no_root_leads_to_without_them() {
    for name in ["heap.nettrace", "heap-10.nettrace"] {
        let (_folder, dataset) = dataset(name);
        let plain = Plain::new(&dataset.recording(None).unwrap());
        let (graph, retention) = graph_of(&dataset);
        assert_eq!(graph.addresses, plain.sizes.keys().copied().collect::<Vec<_>>());
        let all = plain.reached(None);
        let mut deep = 0;
        for (node, object) in graph.addresses.iter().enumerate() {
            assert_eq!(**graph.type_name(node as u32), plain.types[object]);
            assert_eq!(retention.distances[node], all.get(object).copied().unwrap_or_default(), "{name} {object:#x}");
            let left = plain.reached(Some(*object));
            let lost: Vec<_> = all.keys().filter(|other| !left.contains_key(other)).collect();
            let (bytes, count) = if all.contains_key(object) {
                (lost.iter().map(|other| plain.sizes[other]).sum(), lost.len())
            } else {
                (plain.sizes[object], 1)
            };
            assert_eq!((retention.bytes[node], retention.counts[node] as usize), (bytes, count), "{name} {object:#x}");
            deep += usize::from(count > 1);
        }
        assert!(deep > 100, "{name}: only {deep} objects retain others");
    }
}

#[test]
fn a_type_retains_what_its_objects_do_and_nothing_twice() {
    let (_folder, dataset) = dataset("heap-10.nettrace");
    let (graph, retention) = graph_of(&dataset);
    let plain = Plain::new(&dataset.recording(None).unwrap());
    for row in retention.by_type(&graph) {
        let own: Vec<u64> = plain.types.iter().filter(|(_, name)| ***name == *row.name).map(|(id, _)| *id).collect();
        assert_eq!((row.objects, row.size_bytes), (own.len() as u64, own.iter().map(|id| plain.sizes[id]).sum()));
        // The objects that an object of the type dominates, each once, by the dominators of each object.
        let node = |object: &u64| graph.find(*object).unwrap();
        let chain = |object: &u64| {
            std::iter::successors(Some(node(object)), |node| retention.dominators.dominator(*node)).collect::<Vec<_>>()
        };
        let own_nodes: HashSet<u32> = own.iter().map(node).collect();
        let held = plain.sizes.iter().filter(|(object, _)| chain(object).iter().any(|node| own_nodes.contains(node)));
        let held: Vec<u64> = held.map(|(_, size)| *size).collect();
        assert_eq!((row.retained_bytes, row.retained_objects), (held.iter().sum(), held.len() as u64), "{}", row.name);
    }
}

#[test]
fn paths_are_paths_and_dominators_lie_on_them() {
    let (_folder, dataset) = dataset("heap-10.nettrace");
    let (graph, retention) = graph_of(&dataset);
    let mut static_fields = 0;
    for node in 0..graph.sizes.len() as u32 {
        let why = explain(&graph, &retention, node);
        assert_eq!(why.shortest.len(), retention.distances[node as usize] as usize);
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
    let needed = 64 * (graph.sizes.len() as u64) + 8 * graph.reference_count;
    for memory in [0, 64 * graph.sizes.len() as u64 - 1, needed - 1] {
        let error = read(&recording, &snapshot, memory).unwrap_err().to_string();
        assert!(error.contains("raise --memory") && error.contains("2351 objects"), "{error}");
    }
    assert!(read(&recording, &snapshot, needed + 64 * 423).is_ok());
}

fn heap(arguments: &[&str]) -> (i32, String, String) {
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_tracequet")).arg("heap").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
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
