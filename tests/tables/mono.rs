//! Recordings of MonoVM (Android, iOS, WebAssembly): no runtime that writes them can be had here, so that their bytes come from an encoder that
//! lays events out as the catalogue says (`schemas/events`), in the order of the runtime's source. The same heap, written as CoreCLR's events, has
//! to give the same tables and answers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::path::{Path, PathBuf};

use tracequet::Convert;
use tracequet::trace::catalog;
use tracequet::trace::catalog::syntax::{FieldLayout, LayoutField, SimpleType};
use tracequet::trace::source::Input;

use crate::support::callbacks::Facts;
use crate::support::dataset::{Dataset, rows};
use crate::support::events;
use crate::support::mutate::Random;
use crate::support::program::run;
use crate::support::writer::{Form, Kind, Row, Writer, utf16};

const MONO: &str = "Microsoft-DotNETRuntimeMonoProfiler";
const CLR: &str = "Microsoft-Windows-DotNETRuntime";

/// A value of a field.
#[derive(Clone, Debug)]
enum Value {
    Number(u64),
    Text(String),
    Rows(Vec<Vec<Value>>),
}

use Value::{Number, Rows, Text};

fn numbers(rows: impl IntoIterator<Item = Vec<u64>>) -> Value {
    Rows(rows.into_iter().map(|row| row.into_iter().map(Number).collect()).collect())
}

fn put(out: &mut Vec<u8>, layout: &FieldLayout<'_>, value: &Value, pointer: usize) {
    match (layout, value) {
        (FieldLayout::Simple(SimpleType::Utf16Z), Text(text)) => utf16(out, text),
        (FieldLayout::Simple(simple), Number(number)) => {
            let width = match simple {
                SimpleType::U8 => 1,
                SimpleType::U16 => 2,
                SimpleType::U32 => 4,
                SimpleType::U64 => 8,
                SimpleType::Pointer => pointer,
                other => panic!("{other:?}"),
            };
            out.extend(&number.to_le_bytes()[..width]);
        }
        (FieldLayout::List(_, element), Rows(rows)) => {
            let fields = match &**element {
                FieldLayout::Struct { natural: false, fields } => fields.clone(),
                simple => vec![LayoutField { name: "", layout: simple.clone(), map: None }],
            };
            for row in rows {
                assert_eq!(row.len(), fields.len());
                row.iter().zip(&fields).for_each(|(value, field)| put(out, &field.layout, value, pointer));
            }
        }
        (layout, value) => panic!("{layout:?} is no {value:?}"),
    }
}

/// A recording whose events are encoded as the catalogue says.
struct Recorder {
    pointer: usize,
    form: Form,
    kinds: Vec<(&'static str, u32, u8)>,
    rows: Vec<Row>,
}

impl Recorder {
    fn new(form: Form, pointer: usize) -> Recorder {
        Recorder { pointer, form, kinds: Vec::new(), rows: Vec::new() }
    }

    /// An event of the newest version, 10 µs behind the one before it.
    fn event(&mut self, provider: &'static str, name: &str, values: &[Value]) {
        let known = catalog::provider(provider).unwrap().as_ref().unwrap();
        let layout = known.events.iter().rfind(|layout| layout.name == name).expect(name);
        let kind = (provider, layout.id, layout.version as u8);
        let place = self.kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            self.kinds.push(kind);
            self.kinds.len() - 1
        });
        let (fields, mut payload) = (layout.parsed_fields().unwrap(), Vec::new());
        assert_eq!(fields.len(), values.len(), "{name}");
        fields.iter().zip(values).for_each(|(field, value)| put(&mut payload, &field.layout, value, self.pointer));
        let nth = self.rows.len() as u32 + 1;
        let (metadata_id, ticks) = (place as u32 + 1, i64::from(nth) * 100);
        self.rows.push(Row {
            metadata_id,
            sequence: nth,
            capture_thread: 1,
            thread: 1,
            ticks,
            payload,
            ..Row::default()
        });
    }

    fn mono(&mut self, name: &str, values: &[Value]) {
        self.event(MONO, &format!("MonoProfiler{name}"), values);
    }

    fn step(&mut self, step: u64, generation: u64) {
        self.mono("GCEvent", &[Number(step), Number(generation)]);
    }

    fn bytes(&self) -> Vec<u8> {
        let kind = |(place, (provider, event_id, version)): (usize, &(&'static str, u32, u8))| Kind {
            id: place as u32 + 1,
            provider,
            event_id: *event_id,
            version: *version,
            name: "",
        };
        let kinds: Vec<Kind<'_>> = self.kinds.iter().enumerate().map(kind).collect();
        let mut writer = Writer::with_pointers(self.form, self.pointer as u32);
        writer.metadata(&kinds).threads(&[(1, 77, 88)]);
        for rows in self.rows.chunks(64) {
            writer.events(rows);
        }
        writer.end()
    }
}

/// Kind of a root as MonoGCRootSource has it, and as the table does.
const SOURCES: [(u64, &str); 6] =
    [(1, "stack"), (2, "finalizer"), (3, "static"), (6, "handle"), (8, "other"), (15, "dependent_handle")];

#[derive(Debug)]
struct Object {
    address: u64,
    /// Place among the types.
    of: usize,
    size: u64,
    /// Offset and address of each reference.
    references: Vec<(u64, u64)>,
}

#[derive(Debug)]
struct Root {
    object: u64,
    address: u64,
    /// Place among the sources.
    source: usize,
    name: String,
}

/// A heap with all that is known of it.
#[derive(Debug)]
struct Heap {
    /// Address of the table of virtual methods, and name.
    types: Vec<(u64, String)>,
    objects: Vec<Object>,
    roots: Vec<Root>,
}

/// Names as Mono's IL form writes them, and as the runtime of CoreCLR does.
const NAMES: [(&str, &str); 6] = [
    ("Shop.Page", "Shop.Page"),
    ("System.String", "System.String"),
    ("System.Collections.Generic.List<Shop.Page>", "System.Collections.Generic.List`1[Shop.Page]"),
    ("Shop.Page[]", "Shop.Page[]"),
    ("System.Byte[]", "System.Byte[]"),
    ("Shop.Cache", "Shop.Cache"),
];

impl Heap {
    /// Some objects that refer to each other at random, one of them with hundreds of references; some are unreachable.
    fn random(seed: u64, count: usize, width: usize) -> Heap {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let types = (0..NAMES.len()).map(|n| (0x5000_0000 + n as u64 * 0x100, NAMES[n].0.to_owned())).collect();
        let addresses: Vec<u64> = (0..count as u64).map(|n| 0x1000_0000 + n * 0x2000).collect();
        let object = |(n, address): (usize, &u64)| {
            let many = if n == 1 { width } else { random.below(4) };
            let references = (0..many as u64).map(|n| (16 + n * 8, addresses[random.below(count)])).collect();
            Object { address: *address, of: random.below(NAMES.len()), size: 16 + 8 * many as u64, references }
        };
        let objects: Vec<Object> = addresses.iter().enumerate().map(object).collect();
        let root = |n: usize| Root {
            object: addresses[if n == 0 { 1 } else { random.below(count) }],
            address: 0x2000_0000 + n as u64 * 0x40,
            source: n % SOURCES.len(),
            name: if n % SOURCES.len() == 2 { format!("static field {n}") } else { String::new() },
        };
        let roots = (0..2 + count / 8).map(root).collect();
        Heap { types, objects, roots }
    }

    /// A cache of pages that nothing empties.
    fn pages() -> Heap {
        let types: Vec<(u64, String)> =
            (0..NAMES.len()).map(|n| (0x7F20_5000_0000 + n as u64 * 0x100, NAMES[n].0.to_owned())).collect();
        let at = |n: u64| 0x7F20_1000_0000 + n * 0x1000;
        let mut objects = vec![
            Object { address: at(0), of: 5, size: 24, references: vec![(16, at(1))] },
            Object { address: at(1), of: 2, size: 32, references: vec![(16, at(2))] },
            Object { address: at(2), of: 3, size: 32 + 300 * 8, references: Vec::new() },
        ];
        for n in 0..300 {
            let (page, title, bytes) = (at(10 + 3 * n), at(11 + 3 * n), at(12 + 3 * n));
            objects[2].references.push((32 + n * 8, page));
            objects.push(Object { address: page, of: 0, size: 32, references: vec![(16, title), (24, bytes)] });
            objects.push(Object { address: title, of: 1, size: 48, references: Vec::new() });
            objects.push(Object { address: bytes, of: 4, size: 1024 + 8 * (n % 3), references: Vec::new() });
        }
        let root = |object, address, source, name: &str| Root { object, address, source, name: name.to_owned() };
        let roots = vec![
            root(at(0), 0x7F20_2000_0000, 2, "Shop.Cache.Shared"),
            root(at(10), 0x7FFC_0000_1000, 0, ""),
            root(at(11), 0x7F20_2000_0040, 3, ""),
        ];
        Heap { types, objects, roots }
    }

    /// Of Mono, in the order of its source: ranges of roots, a minor collection, one that walks the heap.
    fn of_mono(&self, form: Form, pointer: usize) -> Recorder {
        let mut out = Recorder::new(form, pointer);
        for root in &self.roots {
            let (kind, _) = SOURCES[root.source];
            let values = [Number(root.address), Number(8), Number(kind), Number(0), Text(root.name.clone())];
            out.mono("GCRootRegister", &values);
        }
        [(6, 0), (10, 0), (7, 0), (0, 0), (5, 0), (8, 0), (9, 0), (11, 0)].iter().for_each(|(n, of)| out.step(*n, *of));
        out.step(6, 1);
        out.step(10, 1);
        out.mono("GCHeapDumpStart", &[Text(String::new())]);
        out.step(7, 1);
        out.step(0, 1);
        for roots in self.roots.chunks(5) {
            let rows = numbers(roots.iter().map(|root| vec![root.object, root.address]));
            out.mono("GCRoots", &[Number(roots.len() as u64), rows]);
        }
        out.mono("GCMoves", &[Number(1), numbers([vec![0x900_0000, self.objects[0].address]])]);
        out.step(5, 1);
        for object in &self.objects {
            let all: Vec<&[(u64, u64)]> = object.references.chunks(128).collect();
            let none: &[(u64, u64)] = &[];
            let parts = if all.is_empty() { vec![none] } else { all };
            for (nth, part) in parts.iter().enumerate() {
                let mut before = 0;
                let row = |(offset, target): &(u64, u64)| {
                    let from = std::mem::replace(&mut before, *offset);
                    vec![offset - from, *target]
                };
                let rows = numbers(part.iter().map(row).collect::<Vec<_>>());
                let size = if nth == 0 { object.size } else { 0 };
                let head = [object.address, self.types[object.of].0, size, 1, part.len() as u64].map(Number);
                out.mono("GCHeapDumpObjectReference", &[head.to_vec(), vec![rows]].concat());
            }
        }
        out.step(8, 1);
        for (table, name) in &self.types {
            let values = [Number(*table), Number(table + 8), Number(0xABC), Text(name.clone())];
            out.mono("GCHeapDumpVTableClassReference", &values);
        }
        out.mono("GCHeapDumpStop", &[]);
        out.step(9, 1);
        out.step(11, 1);
        out
    }

    /// Of CoreCLR.
    fn of_clr(&self) -> Recorder {
        let mut out = Recorder::new(Form::V4, 8);
        out.event(CLR, "GCStart", &[1, 2, 1, 0, 0, 0].map(Number));
        let named = |((table, _), (_, name)): (&(u64, String), &(&str, &str))| {
            let head = [*table, 0xABC, 0, 0, 0].map(Number).to_vec();
            [head, vec![Text((*name).to_owned()), Number(0), Rows(Vec::new())]].concat()
        };
        let types: Vec<Vec<Value>> = self.types.iter().zip(&NAMES).map(named).collect();
        out.event(CLR, "BulkType", &[Number(types.len() as u64), Number(0), Rows(types)]);
        let bulk = |out: &mut Recorder, name: &str, rows: Vec<Vec<u64>>| {
            for (index, rows) in rows.chunks(50).enumerate() {
                let head = [index as u64, rows.len() as u64, 0].map(Number).to_vec();
                out.event(CLR, name, &[head, vec![numbers(rows.to_vec())]].concat());
            }
        };
        let node = |object: &Object| {
            vec![object.address, object.size, self.types[object.of].0, object.references.len() as u64]
        };
        bulk(&mut out, "GCBulkNode", self.objects.iter().map(node).collect());
        let edges = self.objects.iter().flat_map(|object| &object.references).map(|(_, target)| vec![*target, 0]);
        bulk(&mut out, "GCBulkEdge", edges.collect());
        let others = self.roots.iter().filter(|root| root.source != 2);
        // GCRootKindMap: stack 0, finalizer 1, handle 2, dependent handle 6; anything else has no name.
        let kind = |root: &Root| [0, 1, 0, 2, 99, 6][root.source];
        let id = |root: &Root| if root.source == 0 { 0 } else { root.address };
        bulk(&mut out, "GCBulkRootEdge", others.map(|root| vec![root.object, kind(root), 0, id(root)]).collect());
        let field = |root: &Root| {
            let head = [root.address, root.object, 0, 0].map(Number).to_vec();
            [head, vec![Text(root.name.clone())]].concat()
        };
        let fields: Vec<Vec<Value>> = self.roots.iter().filter(|root| root.source == 2).map(field).collect();
        out.event(CLR, "GCBulkRootStaticVar", &[Number(fields.len() as u64), Number(0), Number(0), Rows(fields)]);
        out.event(CLR, "GCEnd", &[1, 2, 0].map(Number));
        out
    }
}

fn written(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn converted(recording: &Path) -> Dataset {
    Dataset::with(Convert::default().inputs([recording.to_owned()]).dominators(1 << 30))
}

/// The rows of some columns of a table, in the order of their values.
fn sorted<const N: usize>(dataset: &Dataset, table: &str, names: [&str; N]) -> Vec<[String; N]> {
    let opened = tracequet::dataset::read::Dataset::open(dataset.path()).unwrap();
    let mut all = rows(&opened.recording(None).unwrap(), table, names);
    all.sort();
    all
}

#[test]
fn each_object_reference_root_and_type_is_a_row() {
    for (form, pointer) in [(Form::V4, 8), (Form::V4, 4), (Form::V6, 8)] {
        let heap = Heap::random(7 + pointer as u64, 200, 700);
        let folder = tempfile::tempdir().unwrap();
        let dataset = converted(&written(folder.path(), "app.nettrace", &heap.of_mono(form, pointer).bytes()));
        assert_eq!(dataset.problems(), [], "{form:?} {pointer}");
        let name = |of: usize| NAMES[of].1.to_owned();
        let types: BTreeMap<u64, String> = heap.types.iter().enumerate().map(|(n, (id, _))| (*id, name(n))).collect();
        let mut expected: Vec<[String; 4]> = Vec::new();
        let mut references: Vec<[String; 3]> = Vec::new();
        for object in &heap.objects {
            let numbers = [object.address, heap.types[object.of].0, object.size, object.references.len() as u64];
            expected.push(numbers.map(|number| number.to_string()));
            let row = |(offset, target): &(u64, u64)| [object.address, *target, *offset].map(|n| n.to_string());
            references.extend(object.references.iter().map(row));
        }
        expected.sort();
        references.sort();
        let columns = ["object_id", "type_id", "size_bytes", "reference_count"];
        assert_eq!(sorted(&dataset, "heap_object", columns), expected);
        assert_eq!(sorted(&dataset, "heap_reference", ["object_id", "target_object_id", "field_id"]), references);
        let root = |root: &Root| {
            let id = if root.source == 0 { 0 } else { root.address };
            let [object, id] = [root.object, id].map(|number| number.to_string());
            let name = if root.name.is_empty() { "0".to_owned() } else { root.name.clone() };
            [object, SOURCES[root.source].1.to_owned(), id, name]
        };
        let mut roots: Vec<[String; 4]> = heap.roots.iter().map(root).collect();
        roots.sort();
        assert_eq!(sorted(&dataset, "gc_root", ["object_id", "root_kind", "root_id", "name"]), roots);
        let types: Vec<[String; 2]> = types.into_iter().map(|(id, name)| [id.to_string(), name]).collect();
        assert_eq!(sorted(&dataset, "type", ["type_id", "name"]), types);

        // A minor collection and the full one that walked the heap; a stop ends when what was noted in it is written.
        let gc = dataset.table("gc");
        assert_eq!(gc.numbers("generation"), [0, 2]);
        assert_eq!(gc.texts("reason"), ["", "Induced"]);
        assert_eq!((gc.bools("complete"), gc.numbers("gc_number")), (vec![true; 2], vec![0; 2]));
        assert_eq!(gc.numbers("heap_object_count"), [0, 200]);
        assert_eq!(gc.numbers("root_count"), [0, heap.roots.len() as u64]);
        let pauses = dataset.table("gc_pause");
        assert_eq!(pauses.numbers("gc_id"), [1, 2]);
        // From PreStopWorldLocked to PostStopWorld, 10 µs from event to event.
        assert_eq!(pauses.signed("duration_ns"), [Some(10_000), Some(20_000)]);
    }
}

/// What the same heap gives, as events of Mono and of CoreCLR.
#[test]
fn the_heap_of_mono_is_answered_like_that_of_coreclr() {
    let folder = tempfile::tempdir().unwrap();
    for (name, heap) in [("random", Heap::random(3, 300, 400)), ("pages", Heap::pages())] {
        let of_mono = written(folder.path(), &format!("{name}.nettrace"), &heap.of_mono(Form::V4, 8).bytes());
        std::fs::create_dir_all(folder.path().join("clr")).unwrap();
        let of_clr = written(&folder.path().join("clr"), &format!("{name}.nettrace"), &heap.of_clr().bytes());
        let [mono, clr] = [&of_mono, &of_clr].map(|path| converted(path));
        assert_eq!(clr.problems(), []);
        let columns = ["object_id", "dominator_id", "retained_bytes", "retained_count", "root_distance"];
        let [found, expected] = [&mono, &clr].map(|dataset| sorted(dataset, "heap_dominator", columns));
        assert!(found.len() > 100);
        assert_eq!(found, expected);
        let columns = ["object_id", "root_kind", "root_flags", "root_id", "name"];
        let [found, expected] = [&mono, &clr].map(|dataset| sorted(dataset, "gc_root", columns));
        assert_eq!(found, expected);
        // The first line names the collection.
        let said = |arguments: &[&str]| {
            let said = run(arguments);
            assert_eq!(said.code, Some(0), "{}", said.err);
            said.out.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap()
        };
        for arguments in [&["--all"][..], &["--type", "Shop.Page"], &["--type", NAMES[2].1]] {
            let [found, expected] =
                [&of_mono, &of_clr].map(|path| said(&[&["heap", path.to_str().unwrap()], arguments].concat()));
            assert!(found.contains("Shop.Page"), "{found}");
            assert_eq!(found, expected, "{name} {arguments:?}");
        }
    }
}

#[test]
fn a_recording_of_mono_may_be_cut_anywhere() {
    let heap = Heap::random(11, 40, 150);
    let bytes = heap.of_mono(Form::V4, 8).bytes();
    let facts = |bytes: &[u8]| -> Option<Facts> {
        let input = Input::from_reader(Path::new("cut.nettrace"), Box::new(Cursor::new(bytes.to_vec())), None).ok()?;
        events::facts(input).ok()
    };
    let whole = facts(&bytes).unwrap();
    assert_eq!((whole.objects.len(), whole.codes()), (40, vec![]));
    let known: BTreeSet<(u64, u64)> = whole.references.iter().copied().collect();
    let mut most = 0;
    for cut in 0..bytes.len() {
        let Some(part) = facts(&bytes[..cut]) else { continue };
        assert!(!part.codes().is_empty() || cut + 1 == bytes.len(), "cut at {cut}");
        let objects = part.objects.iter().zip(&whole.objects);
        assert!(objects.clone().all(|(found, all)| (found.0, found.1) == (all.0, all.1) && found.2 <= all.2), "{cut}");
        assert!(part.references.iter().all(|reference| known.contains(reference)), "{cut}");
        let counted: u64 = part.objects.iter().map(|(.., count)| count).sum();
        assert_eq!(counted, part.references.len() as u64, "{cut}");
        assert!(part.objects.len() >= most, "{cut}");
        most = part.objects.len();
        let is_done = part.collections.iter().filter(|gc| gc.heap_object_count > 0).all(|gc| gc.complete);
        assert!(!is_done || part.objects.len() == 40 || part.objects.is_empty(), "{cut}");
    }
    assert_eq!(most, 40);
}

#[test]
fn allocations_handles_and_classes_are_rows() {
    let mut out = Recorder::new(Form::V4, 8);
    // A class that is loaded while it is recorded, and one that was loaded before.
    let generic = [Number(0x10), Number(1), Text(NAMES[2].0.to_owned()), Number(1), numbers([vec![18, 0x30]])];
    out.mono("ClassLoaded", &generic);
    out.mono("VTableLoaded", &[0x100, 0x10, 0].map(Number));
    out.mono("VTableLoaded", &[0x200, 0x20, 0].map(Number));
    for (table, object, size) in [(0x100, 0x9000, 32), (0x200, 0x9020, 40), (0x100, 0x9050, 32)] {
        out.mono("GCAllocation", &[table, object, size].map(Number));
    }
    for (handle, kind) in [(1, 0), (2, 1), (3, 2), (4, 3), (5, 9)] {
        out.mono("GCHandleCreated", &[handle, kind, 0x9000].map(Number));
    }
    out.mono("GCHandleDeleted", &[3, 2].map(Number));
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "app.nettrace", &out.bytes());
    let dataset = Dataset::of(&path);
    assert_eq!(dataset.problems(), []);
    let allocations = dataset.table("allocation");
    assert_eq!(allocations.texts("source"), ["object"; 3]);
    assert_eq!(allocations.numbers("type_id"), [0x100, 0x200, 0x100]);
    assert_eq!(allocations.numbers("object_id"), [0x9000, 0x9020, 0x9050]);
    assert_eq!(allocations.numbers("allocation_bytes"), [32, 40, 32]);
    let types = dataset.table("type");
    assert_eq!((types.numbers("type_id"), types.texts("name")), (vec![0x100], vec![NAMES[2].1.to_owned()]));
    let handles = dataset.table("gc_handle");
    assert_eq!(handles.texts("action"), [vec!["created"; 5], vec!["destroyed"]].concat());
    assert_eq!(handles.texts("handle_kind"), ["WeakShort", "WeakLong", "Strong", "Pinned", "", ""]);
    let said = run(&["stats", path.to_str().unwrap(), "--metric", "allocation.by_type"]);
    assert!(said.out.contains(NAMES[2].1) || said.code != Some(0), "{}{}", said.out, said.err);
}

/// A heap dump of the runtime's own provider is one collection, which Mono's profiler reports, too.
#[test]
fn a_collection_that_both_providers_report_is_one() {
    let heap = Heap::random(5, 20, 3);
    let (of_clr, mut both) = (heap.of_clr(), Recorder::new(Form::V4, 8));
    both.event(CLR, "GCStart", &[1, 2, 1, 0, 7, 0].map(Number));
    [(6, 1), (10, 1), (7, 1), (0, 1), (5, 1), (8, 1), (9, 1)].iter().for_each(|(n, of)| both.step(*n, *of));
    both.event(CLR, "GCEnd", &[1, 2, 7].map(Number));
    let folder = tempfile::tempdir().unwrap();
    let gc = |recorder: &Recorder| Dataset::of(&written(folder.path(), "a.nettrace", &recorder.bytes())).table("gc");
    for recorder in [&of_clr, &both] {
        let found = gc(recorder);
        assert_eq!((found.numbers("generation"), found.bools("complete")), (vec![2], vec![true]));
    }
}

/// Collections whose ends are lost, and a minor one with a major one in the same stop.
#[test]
fn a_stop_may_hold_two_collections_and_an_end_may_be_lost() {
    let mut out = Recorder::new(Form::V4, 8);
    [(10, 1), (7, 1), (0, 0), (5, 0), (0, 1), (5, 1), (8, 1), (9, 1)].iter().for_each(|(n, of)| out.step(*n, *of));
    // Of this one the writer has no PreStartWorld.
    [(10, 0), (7, 0), (0, 0), (5, 0)].iter().for_each(|(n, of)| out.step(*n, *of));
    [(10, 1), (7, 1), (0, 1), (5, 1), (8, 1), (9, 1)].iter().for_each(|(n, of)| out.step(*n, *of));
    let folder = tempfile::tempdir().unwrap();
    let dataset = Dataset::of(&written(folder.path(), "a.nettrace", &out.bytes()));
    let gc = dataset.table("gc");
    assert_eq!(gc.numbers("generation"), [0, 2, 0, 2]);
    assert_eq!(gc.bools("complete"), [true, true, false, true]);
    assert_eq!(gc.numbers("gc_id"), [1, 2, 3, 4]);
}

/// The shipped recording is what the encoder writes: `UPDATE_SAMPLES=1` writes it again.
#[test]
fn the_sample_is_the_cache_of_pages() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/mono/pages.nettrace");
    let bytes = Heap::pages().of_mono(Form::V4, 8).bytes();
    if std::env::var_os("UPDATE_SAMPLES").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(std::fs::read(&path).unwrap() == bytes, "{}", path.display());
    let said = run(&["heap", path.to_str().unwrap(), "--type", "Shop.Page"]);
    assert!(said.out.starts_with("Heap in collection 2 at "), "{}", said.out);
    assert!(said.out.contains("static field Shop.Cache.Shared"), "{}", said.out);
}
