//! Heap dumps (`.gcdump`): the sample, which the format's owners wrote, against the recording that it was made of, and
//! damage.

use std::collections::BTreeMap;
use std::path::Path;

use tracequet::analyze::heap::{HeapGraph, Retention, read, snapshot};
use tracequet::dataset::read::Dataset;
use tracequet::trace::error::Error as TraceError;
use tracequet::trace::reader::gcdump::read as read_dump;
use tracequet::trace::source::Input;
use tracequet::{Convert, Error, Result, Summary, convert};

use crate::hostile::limits::{is_alone, peak_mb};
use crate::support;
use crate::support::files::sample;

/// The numbers and texts of some columns of a table, in the order of their values.
fn rows<const N: usize>(dataset: &Dataset, table: &str, names: [&str; N]) -> Vec<[String; N]> {
    let mut all = support::dataset::rows(&dataset.recording(None).unwrap(), table, names);
    all.sort();
    all
}

fn dataset(folder: &Path, recording: &Path, name: &str) -> Result<(Dataset, Summary)> {
    let path = folder.join(name);
    let summary = convert(&Convert::new([recording], &path).overwrite(true), &mut |_| {})?;
    Ok((Dataset::open(path)?, summary))
}

fn graph(dataset: &Dataset) -> (HeapGraph, Retention) {
    let recording = dataset.recording(None).unwrap();
    let graph = read(&recording, &snapshot(&recording, None).unwrap(), 1 << 30).unwrap();
    let retention = Retention::of(&graph);
    (graph, retention)
}

/// `Foo`1[A]` and `Foo<A>` are one name.
fn plain(name: &str) -> String {
    let mut out = String::new();
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '`' => while letters.next_if(char::is_ascii_digit).is_some() {},
            '<' => out.push('['),
            '>' => out.push(']'),
            _ => out.push(letter),
        }
    }
    out
}

#[test]
fn a_dump_tells_what_its_recording_tells() {
    let folder = tempfile::tempdir().unwrap();
    let (dump, summary) = dataset(folder.path(), &sample("heap-10.gcdump"), "dump").unwrap();
    let (recording, _) = dataset(folder.path(), &sample("heap-10.nettrace"), "recording").unwrap();
    assert!(!summary.has_losses());
    let both = |table: &str, names: [&str; 2]| [&dump, &recording].map(|dataset| rows(dataset, table, names));
    let [found, expected] = both("heap_object", ["object_id", "size_bytes"]);
    assert!(found == expected && found.len() == 2351);
    let [found, expected] = both("heap_reference", ["object_id", "target_object_id"]);
    assert!(found == expected && found.len() == 3103);

    let ((found, _), (expected, retention)) = (graph(&dump), graph(&recording));
    let by_type = |graph: &HeapGraph| {
        let mut types: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for row in Retention::of(graph).by_type(graph) {
            let sums = types.entry(plain(&row.name)).or_default();
            *sums = (sums.0 + row.objects, sums.1 + row.size_bytes);
        }
        types
    };
    assert_eq!(by_type(&found), by_type(&expected));
    // The dump has the values of dependent handles as roots: those, and no others, are roots only there.
    let dependents = rows(&recording, "gc_weak_element", ["value_object_id"]);
    let is_dependent = |address: &u64| dependents.contains(&[address.to_string()]);
    let roots = |graph: &HeapGraph| {
        let mut roots: Vec<u64> = graph.roots.iter().map(|root| graph.address(root.node)).collect();
        roots.retain(|address| !is_dependent(address));
        roots.sort_unstable();
        roots
    };
    assert_eq!(roots(&found), roots(&expected));
    assert_eq!(Retention::of(&found).unreachable(&found), retention.unreachable(&expected));
    let fields =
        |graph: &HeapGraph| graph.roots.iter().filter(|root| &*root.kind == "static" && root.name.is_some()).count();
    assert!(fields(&found) > 200, "{}", fields(&found));
}

/// A dump of one type and these nodes: where they are in the blob, and their addresses.
fn dump(places: &[u32], blob: &[u8], addresses: &[u64]) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat();
    let object = |name: &str, version: u32| {
        [&[4, 4, 1][..], &version.to_le_bytes(), &0u32.to_le_bytes(), &text(name), &[6]].concat()
    };
    let count = |count: usize| (count as u32).to_le_bytes().to_vec();
    let null = [0xFF; 4];
    [
        text("!FastSerialization.1"),
        object("GCHeapDump", 10),
        object("Graphs.MemoryGraph", 0),
        vec![0; 8 + 4],
        count(1),
        [&text("App.Node")[..], &8u32.to_le_bytes(), &null].concat(),
        count(places.len()),
        places.iter().flat_map(|place| place.to_le_bytes()).collect(),
        count(blob.len()),
        blob.to_vec(),
        count(addresses.len()),
        addresses.iter().flat_map(|address| address.to_le_bytes()).collect(),
        vec![8, 1, 6],
        vec![1, 0, 0, 0x80, 0x3F, 0, 0, 0x80, 0x3F, 1, 1],
        null.to_vec(),
        vec![0; 8],
        null.to_vec(),
        text("app"),
        7u32.to_le_bytes().to_vec(),
    ]
    .concat()
}

/// Dumps in which the groups of roots, the types and what stands behind the graph are small.
pub fn seeds() -> Vec<Vec<u8>> {
    // A group above two objects that refer to each other; and nodes that overlap.
    let objects = dump(&[0, 3, 6], &[0, 1, 1, 0, 1, 1, 1, 16, 1, 0x7F], &[0, 0x1000, 0x2000]);
    let overlap = dump(&[0, 1, 2, 3], &[0, 3, 1, 1, 0x7F, 0, 2, 1, 2], &[0, 0, 0x1000, 0x2000]);
    vec![objects, overlap]
}

/// Converts bytes, and gives the objects, the references, the roots and the problems.
fn convert_bytes(bytes: &[u8]) -> Result<(usize, usize, usize, Vec<&'static str>)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.gcdump");
    std::fs::write(&path, bytes).unwrap();
    // Few tables: this runs hundreds of times.
    let request = Convert::new([&path], folder.path().join("set")).tables(["heap_object", "heap_reference", "gc_root"]);
    let summary = convert(&request, &mut |_| {})?;
    let dataset = Dataset::open(request.output_path())?;
    let count = |table: &str| rows(&dataset, table, ["gc_id"]).len();
    let problems = summary.inputs[0].problems.iter().map(|problem| problem.code).collect();
    Ok((count("heap_object"), count("heap_reference"), count("gc_root"), problems))
}

#[test]
fn nodes_are_what_the_format_says() {
    // The root with one child, then two objects that refer to each other, the second with a size of its own.
    let blob = [0, 1, 1, 0, 1, 1, 1, 16, 1, 0x7F];
    let whole = dump(&[0, 3, 6], &blob, &[0, 0x1000, 0x2000]);
    assert_eq!(convert_bytes(&whole).unwrap(), (2, 2, 1, vec![]));
    // Overlapping nodes with more references than the file has bytes.
    let wide: Vec<u8> = [vec![0, 60], vec![1; 60]].concat();
    let addresses: Vec<u64> = (0..1000).map(|node| node * 8).collect();
    let (_, references, _, problems) = convert_bytes(&dump(&[0; 1000], &wide, &addresses)).unwrap();
    assert!(references <= 62 && problems == ["damaged_dump"], "{references} {problems:?}");
    // A type, a place and a number of references that are not there.
    for blob in [[9, 0, 0, 0], [0, 9, 0, 0], [0x80, 0x80, 0x80, 0x80]] {
        assert_eq!(convert_bytes(&dump(&[0, 99], &blob, &[0, 8])).unwrap().3, ["damaged_dump"]);
    }
}

/// A packed dump does not say how many bytes are to come: its counts are held against a bound before anything is read.
#[test]
fn a_dump_that_expands_without_end_is_refused() {
    let whole = dump(&[0], &[0, 0], &[0]);
    let nodes = whole.len() - (4 + 4 + 2 + 4 + 8 + 3 + 11 + 4 + 8 + 4 + 7 + 4 + 4);
    assert_eq!(whole[nodes..nodes + 4], 1u32.to_le_bytes());
    for what in ["the types", "the nodes"] {
        let at = if what == "the nodes" { nodes } else { nodes - (4 + 12 + 4 + 4) };
        let mut head = whole[..at].to_vec();
        head.extend(i32::MAX.to_le_bytes());
        let endless = std::io::Read::chain(std::io::Cursor::new(head), std::io::repeat(0));
        let input = Input::from_reader(Path::new("endless"), Box::new(endless), None).unwrap();
        let error = read_dump(input).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("more than 1 GiB"), "{error}");
    }
}

/// A list of the same group of roots again and again.
#[test]
fn a_group_of_roots_that_is_listed_often_takes_no_memory() {
    if !is_alone("reader::gcdump::a_group_of_roots_that_is_listed_often_takes_no_memory") {
        return;
    }
    const MANY: usize = 12 << 20;
    // A compressed number of four bytes, the number of children; each is the next node.
    let count = [21, 14, 7, 0].map(|shift| (MANY >> shift) as u8 & 0x7F | if shift > 0 { 0x80 } else { 0 });
    let blob = [&[0][..], &count, &vec![1; MANY], &[0, 0]].concat();
    let bytes = dump(&[0, blob.len() as u32 - 2], &blob, &[0, 0]);
    drop(blob);
    let input = Input::from_reader(Path::new("listed"), Box::new(std::io::Cursor::new(bytes)), None).unwrap();
    let dump = read_dump(input).unwrap();
    let before = peak_mb();
    tracequet::facts::heap_dump::facts(&dump, &mut Nothing);
    let grown = peak_mb().zip(before).map(|(after, before)| after - before);
    assert!(grown.is_none_or(|grown| grown < 50), "{grown:?} MB");
}

struct Nothing;

impl tracequet::facts::fact::FactSink for Nothing {
    fn fact(&mut self, _: tracequet::facts::fact::Fact<'_>) {}
}

#[test]
fn damage_is_an_error_and_never_a_panic() {
    let blob = [0, 1, 1, 0, 1, 1, 1, 16, 1, 0x7F];
    let whole = dump(&[0, 3, 6], &blob, &[0, 0x1000, 0x2000]);
    let graph_ends = whole.len() - (11 + 4 + 8 + 4 + 7 + 4);
    for length in 60..whole.len() {
        match convert_bytes(&whole[..length]) {
            Err(Error::Trace(TraceError::Unreadable { .. })) => {
                assert!(length < graph_ends, "cut at {length} of {}", whole.len())
            }
            Ok((objects, .., problems)) => {
                assert!(length >= graph_ends && objects == 2 && problems == ["damaged_dump"], "cut at {length}");
            }
            Err(error) => panic!("cut at {length}: {error}"),
        }
    }
    for spot in 60..whole.len() {
        let mut bytes = whole.clone();
        bytes[spot] ^= [0x01, 0x80, 0xFF][spot % 3];
        if let Err(error) = convert_bytes(&bytes) {
            assert!(matches!(error, Error::Trace(TraceError::Unreadable { .. })), "{spot}: {error}");
        }
    }
    let mut old = whole.clone();
    let version = old.windows(10).position(|window| window == b"GCHeapDump").unwrap() - 12;
    old[version] = 8;
    let error = convert_bytes(&old).unwrap_err().to_string();
    assert!(error.contains("version 8, expected version 9 or later"), "{error}");
}

#[test]
fn an_inspection_counts_what_a_conversion_writes() {
    let folder = tempfile::tempdir().unwrap();
    let (dump, _) = dataset(folder.path(), &sample("heap-10.gcdump"), "dump").unwrap();
    let inspection = tracequet::inspect::inspect(&sample("heap-10.gcdump"), &mut |_, _| {}).unwrap();
    let heap = inspection.heap.as_ref().expect("a heap");
    let objects = rows(&dump, "heap_object", ["type_id", "size_bytes"]);
    let names: BTreeMap<String, String> =
        rows(&dump, "type", ["type_id", "name"]).into_iter().map(|[id, name]| (id, name)).collect();
    let mut by_type = BTreeMap::<String, (u64, u64)>::new();
    for [id, size] in &objects {
        let (count, bytes) = by_type.entry(id.clone()).or_default();
        *count += 1;
        *bytes += size.parse::<u64>().unwrap();
    }
    let mut expected: Vec<_> = by_type.iter().map(|(id, (count, bytes))| (*bytes, *count, &names[id])).collect();
    let mut found: Vec<_> = heap.types.iter().map(|found| (found.bytes, found.objects, &found.name)).collect();
    assert!(found.is_sorted_by_key(|found| std::cmp::Reverse(found.0)));
    expected.sort();
    found.sort();
    assert!(found == expected && found.len() > 100);
    let total: u64 = expected.iter().map(|row| row.0).sum();
    let count = |table| rows(&dump, table, ["gc_id"]).len() as u64;
    assert_eq!((heap.objects, heap.bytes), (objects.len() as u64, total));
    assert_eq!((heap.references, heap.roots), (count("heap_reference"), count("gc_root")));
    assert!(!inspection.has_losses() && inspection.processes[0].process_id != 0);
}
