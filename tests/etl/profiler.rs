//! ETWClrProfiler: calls of ICorProfilerCallback that PerfView's profiler writes to ETW. No recording of the real one
//! is at hand: these are written from what its manifest and its source say.

use tracequet::trace::reader::callback::encode;
use tracequet::trace::reader::callback::format::{self, kind};

use super::writer::*;
use crate::support::callbacks::{Facts, Making, header};
use crate::support::collect::mapped;
use crate::support::dataset::{Dataset, Table};

/// 6652970f-1756-5d8d-0805-e9aad152aa84.
const PROFILER: [u8; 16] =
    [0x0F, 0x97, 0x52, 0x66, 0x56, 0x17, 0x8D, 0x5D, 0x08, 0x05, 0xE9, 0xAA, 0xD1, 0x52, 0xAA, 0x84];
const CLAMP: u64 = 0xFFFF_FFFF;
const GIB4: u64 = 1 << 32;

/// A recording in the making. Each event is a microsecond after the one before it.
pub struct Reports {
    by: By,
    pub events: Vec<Vec<u8>>,
}

impl Reports {
    /// Of a 64-bit process.
    pub fn new() -> Reports {
        Reports { by: By { form: 19, process_id: 64, thread_id: 100, ticks: TICKS }, events: Vec::new() }
    }

    /// The next event is of this moment and thread.
    pub fn at(&mut self, ticks: i64, thread_id: u32) -> &mut Reports {
        self.by = By { ticks: ticks - 10, thread_id, ..self.by };
        self
    }

    /// The events that follow are of another process.
    pub fn of(&mut self, process_id: u32, form: u8) -> &mut Reports {
        self.by = By { form, process_id, ..self.by };
        self
    }

    pub fn event(&mut self, provider: [u8; 16], id: u16, version: u8, payload: &[u8]) -> &mut Reports {
        self.by.ticks += 10;
        self.events.push(event_by(self.by, provider, id, version, &[], payload));
        self
    }

    pub fn reported(&mut self, id: u16, payload: &[u8]) -> &mut Reports {
        self.event(PROFILER, id, 0, payload)
    }

    pub fn words(&mut self, id: u16, numbers: &[u64]) -> &mut Reports {
        self.reported(id, &numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>())
    }

    /// Columns of numbers, of which those `true` are pointers.
    pub fn columns<const N: usize>(
        &mut self,
        id: u16,
        head: &[u8],
        pointers: [bool; N],
        rows: &[[u64; N]],
    ) -> &mut Reports {
        let mut payload = head.to_vec();
        payload.extend((rows.len() as u32).to_le_bytes());
        for (column, is_pointer) in pointers.into_iter().enumerate() {
            let width = if is_pointer && self.by.form == 19 { 8 } else { 4 };
            rows.iter().for_each(|row| payload.extend(&row[column].to_le_bytes()[..width]));
        }
        self.reported(id, &payload)
    }

    pub fn started(&mut self, number: u32, generation: u32, induced: bool) -> &mut Reports {
        self.reported(20, &[number, generation, u32::from(induced)].map(u32::to_le_bytes).concat())
    }

    pub fn finished(&mut self, number: u32) -> &mut Reports {
        self.reported(21, &number.to_le_bytes())
    }

    pub fn moved(&mut self, rows: &[[u64; 3]]) -> &mut Reports {
        self.columns(22, &[], [true, true, false], rows)
    }

    pub fn survived(&mut self, rows: &[[u64; 2]]) -> &mut Reports {
        self.columns(23, &[], [true, false], rows)
    }

    /// Rows of object, kind, flags, id.
    pub fn roots(&mut self, rows: &[[u64; 4]]) -> &mut Reports {
        self.columns(15, &[], [true, false, false, true], rows)
    }

    pub fn object(&mut self, object_id: u64, class_id: u64, size: u64, references: &[u64]) -> &mut Reports {
        let head = [object_id, class_id, size].map(u64::to_le_bytes).concat();
        self.columns(16, &head, [true], &references.iter().map(|r| [*r]).collect::<Vec<_>>())
    }

    pub fn class(&mut self, class_id: u64, module_id: u64, name: &str) -> &mut Reports {
        let head = [&class_id.to_le_bytes()[..], &[7, 0, 0, 2], &[0; 4], &module_id.to_le_bytes()].concat();
        self.reported(1, &[head, utf16(name)].concat())
    }

    pub fn module(&mut self, module_id: u64, path: &str) -> &mut Reports {
        self.reported(2, &[[module_id, 0x900].map(u64::to_le_bytes).concat(), utf16(path)].concat())
    }

    pub fn bytes(&self) -> Vec<u8> {
        Writer::file(&self.events)
    }

    pub fn facts(&self) -> Facts {
        facts(&self.bytes())
    }

    pub fn dataset(&self) -> Dataset {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("profiled.etl");
        std::fs::write(&path, self.bytes()).expect("room");
        Dataset::of(&path)
    }
}

pub fn facts(bytes: &[u8]) -> Facts {
    crate::support::events::facts(mapped(bytes)).expect("a readable recording")
}

/// A process with something of everything; every address is below 4 GiB when it is a 32-bit one.
fn story(t: &mut Reports, base: u64) {
    t.module(base + 0x10, "C:\\App\\app.exe").class(base + 0x20, base + 0x10, "App.Node");
    t.words(12, &[base + 0x30, base + 0x1000]).words(10, &[base + 0x1000, base + 0x20, 24, 24]);
    t.words(10, &[base + 0x1018, base + 0x20, 24, 2400]);
    t.started(1, 1, true).words(11, &[base + 0x1018, base + 0x20]);
    t.moved(&[[base + 0x1000, base + 0x800, 0x18], [base + 0x2000, base + 0x2000, 0x40]]);
    t.survived(&[[base + 0x10_0000, CLAMP], [base + 0x9000, 0x100]]);
}

fn rest_of_story(t: &mut Reports, base: u64) {
    t.roots(&[[base + 0x800, 1, 0, 0], [base + 0x808, 3, 1, base + 0x30], [base + 0x2000, 2, 0, 0], [0, 0, 4, 0]]);
    t.class(base + 0x28, 0, "App.Node[]").object(base + 0x800, base + 0x20, 24, &[base + 0x2000, base + 0x9000]);
    t.object(base + 0x2000, base + 0x28, 64, &[]).finished(1).words(13, &[base + 0x30]);
}

/// Two processes of different widths, whose collections overlap in time.
fn two_processes() -> Reports {
    let (wide, narrow) = (0x7F_0000_0000, 0x100_0000);
    let mut t = Reports::new();
    story(&mut t, wide);
    story(t.of(32, 18), narrow);
    rest_of_story(t.of(64, 19), wide);
    rest_of_story(t.of(32, 18), narrow);
    t.reported(27, &[]).of(64, 19).reported(24, &[]).reported(25, &[]);
    t
}

/// The rows of a table as text: the wanted columns.
fn rows(table: &Table, columns: &str) -> String {
    let mut cells: Vec<Vec<String>> = Vec::new();
    for column in columns.split(' ') {
        let schema = table.batches[0].schema();
        let hex = |v: u64| if v > 0xFFFF { format!("{v:#x}") } else { v.to_string() };
        let text = |v: Option<u64>| v.map_or_else(|| "-".to_owned(), hex);
        cells.push(match schema.field_with_name(column).expect("a column").data_type().to_string().as_str() {
            "Boolean" => table.bools(column).iter().map(bool::to_string).collect(),
            "Int64" => table.signed(column).iter().map(|v| v.map_or_else(|| "-".into(), |v| v.to_string())).collect(),
            "Float64" => table.floats(column).iter().map(|v| v.map_or_else(|| "-".into(), |v| v.to_string())).collect(),
            kind if kind.starts_with("UInt") => table.optional(column).into_iter().map(text).collect(),
            _ => table.texts(column),
        });
    }
    let line = |row: usize| cells.iter().map(|column| column[row].as_str()).collect::<Vec<_>>().join(" ");
    (0..table.rows()).map(|row| format!("  {}\n", line(row))).collect()
}

#[test]
fn two_processes_give_the_tables_of_callbacks() {
    let dataset = two_processes().dataset();
    let mut out = String::new();
    for (table, columns) in [
        (
            "gc",
            "gc_id process_id gc_number generation reason kind start_ts_ns end_ts_ns complete root_count heap_object_count",
        ),
        ("gc_surviving_range", "gc_id range_start range_length length_kind generation_before generation_after"),
        ("gc_moved_range", "gc_id old_range_start new_range_start range_length length_kind generation_before"),
        ("gc_root", "gc_id object_id root_kind root_flags root_id"),
        ("heap_object", "gc_id object_id type_id size_bytes reference_count"),
        ("heap_reference", "gc_id object_id target_object_id"),
        ("gc_handle", "process_id thread_id action handle_id object_id"),
        ("gc_finalizable", "gc_id process_id action object_id type_id"),
        ("allocation", "process_id source allocation_bytes object_count type_id object_id object_size_bytes"),
        ("type", "process_id type_id name module_id flags"),
        ("process", "process_id event_count"),
        ("diagnostic", "severity code count"),
        ("event/ETWClrProfiler/ModuleIDDefintion", "process_id module_id assembly_id path"),
        ("event/ETWClrProfiler/ObjectsMoved", "process_id count decode_problem"),
        ("event/ETWClrProfiler/ObjectReferences", "process_id object_id class_id size object_ref_count"),
    ] {
        out.push_str(&format!("{table}: {columns}\n{}", rows(&dataset.table(table), columns)));
    }
    let payloads = dataset.summary.tables.iter().filter(|t| t.name.starts_with("event/ETW"));
    payloads.for_each(|t| out.push_str(&format!("{} {} rows\n", t.name, t.rows)));
    insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "../snapshots" }, {
        insta::assert_snapshot!("etw_clr_profiler", out);
    });
    // Rows of bulk events stand in tables of their own.
    let columns = |name: &str| dataset.table(name).batches[0].schema().fields().len();
    assert_eq!(columns("event/ETWClrProfiler/ObjectsMoved"), columns("event/ETWClrProfiler/CaptureStateStart") + 1);
}

#[test]
fn the_same_story_as_callbacks_and_as_events_gives_the_same_rows() {
    let survived = [[0x1000, 0x18], [0x20_0000, CLAMP], [0x8_0000_0000, 0x40]];
    let moved = [[0x9000, 0x8000, 0x30], [0xA000, 0xA000, 8], [0x20_0000_0000, 0x10_0000_0000, CLAMP]];
    let roots = [[0, 1, 4, 0], [0x8000, 2, 0, 0], [0x8008, 3, 3, 0x77], [0x1000, 0, 0, 0]];
    for (form, pointer_size) in [(19, 8), (18, 4)] {
        let narrow = |address: u64| if pointer_size == 8 { address } else { address & 0xFFFF_FFFF };
        let survived = survived.map(|[start, length]| [narrow(start), length]);
        let moved = moved.map(|[old, new, length]| [narrow(old), narrow(new), length]);
        let mut etw = Reports::new();
        let mut recorded = Making::with(&format::Header { pointer_size, policy: format::POLICY_V1, ..header() });
        etw.of(42, form).words(12, &[0x77, 0x9000]);
        recorded.numbers(kind::HANDLE_CREATED, &[0x77, 0x9000]);
        for number in 1..=2 {
            etw.started(number, 2, false).words(11, &[0x9010, 5]).survived(&survived[..1]).survived(&survived[1..]);
            etw.moved(&moved).roots(&roots).object(0x8000, 5, 24, &[0x1000, 0x8000]).finished(number);
            recorded.started(2, &[]).numbers(kind::FINALIZEABLE, &[0, 0x9010]);
            recorded.surviving(0, 1, &survived[..1]).surviving(1, 1, &survived[1..]).moved(0, 1, &moved).roots2(&roots);
            recorded.record(0, kind::OBJECT, 0, |out| encode::object(out, 0x8000, 5, [0x1000, 0x8000].into_iter()));
            recorded.finished(&[]);
        }
        let (etw, recorded) = (etw.facts(), recorded.facts());
        assert_eq!((etw.surviving.len(), etw.moved.len(), etw.roots.len()), (6, 6, 8));
        assert_eq!((&etw.surviving, &etw.moved, &etw.roots), (&recorded.surviving, &recorded.moved, &recorded.roots));
        assert_eq!((&etw.objects, &etw.references), (&recorded.objects, &recorded.references));
        assert_eq!((&etw.handles, &etw.finalizable), (&recorded.handles, &recorded.finalizable));
        let shapes = |facts: &Facts| -> Vec<_> {
            facts.collections.iter().map(|c| (c.gc_id, c.generation, c.reason, c.kind, c.complete)).collect()
        };
        assert_eq!(shapes(&etw), shapes(&recorded));
        assert_eq!(etw.codes(), recorded.codes());
    }
}

#[test]
fn lengths_are_clamped_in_64_bit_processes_only() {
    let facts = two_processes().facts();
    let of = |gc_id| -> Vec<_> {
        facts.surviving.iter().filter(|r| r.gc_id == gc_id).map(|r| (r.range_length, r.length_kind)).collect()
    };
    assert_eq!(of(1), [(0x100, "exact"), (GIB4, "clamped")]);
    assert_eq!(of(2), [(0x100, "exact"), (CLAMP, "exact")]);
}

#[test]
fn collections_that_are_missing_are_told() {
    // The session begins in mid-collection, 3 to 5 are lost, and so are the end of 6 and the start of 7.
    let mut t = Reports::new();
    t.survived(&[[0x1000, 8]]).finished(1).started(2, 0, false).finished(2);
    t.started(6, 1, false).survived(&[[0x2000, 8]]).finished(7).started(8, 2, true).survived(&[[0x3000, 8]]);
    let facts = t.facts();
    let seen: Vec<_> = facts.collections.iter().map(|c| (c.generation, c.complete, c.surviving_range_count)).collect();
    let expected = [(None, false, 1), (Some(0), true, 0), (Some(1), false, 1), (None, false, 0), (Some(2), false, 1)];
    assert_eq!(seen, expected);
    let counts: Vec<_> = facts.problems.iter().map(|p| (p.code, p.count)).collect();
    let expected = [
        ("finished_without_started", 1),
        ("finished_without_started", 1),
        ("open_collection", 1),
        ("running_collection", 1),
        ("lost_collections", 3),
    ];
    assert_eq!(counts, expected);
}

#[test]
fn an_id_that_is_used_again_is_another_process_with_a_count_of_its_own() {
    let mut t = Reports::new();
    t.started(5, 0, false).reported(27, &[]).of(64, 18).started(1, 0, false).survived(&[[0x1000, CLAMP]]).finished(1);
    let facts = t.facts();
    assert_eq!(facts.collections.iter().map(|c| c.complete).collect::<Vec<_>>(), [false, true]);
    assert_eq!(facts.survived(), [(0x1000, CLAMP, "exact")]);
    // In 32 bits 0xFFFFFFFF is no length that a range can have.
    assert_eq!(facts.codes(), ["range_beyond_pointer", "running_collection", "unaligned_range"]);
}

#[test]
fn what_the_profiler_cannot_do_and_classes_it_does_not_know_are_told() {
    let mut t = Reports::new();
    t.class(u64::MAX, 0, "?").of(32, 18).class(CLAMP, 0, "?").class(0x77, 1, "First").class(0x77, 1, "First");
    t.class(0x77, 1, "Second")
        .reported(26, &[&0x8013_1363u64.to_le_bytes()[..], &utf16("Profiler ForceGC Failed")].concat());
    let facts = t.facts();
    assert_eq!(facts.types, [(0x77, "First".to_owned()), (0x77, "Second".to_owned())]);
    let said: Vec<_> = facts.problems.iter().map(|p| (p.code, p.message.as_str(), p.thread_id)).collect();
    assert_eq!(
        said,
        [("profiler_error", "the profiler of process 32 says: Profiler ForceGC Failed (0x80131363)", 100)]
    );
}

#[test]
fn hostile_counts_cost_their_rows_and_no_memory() {
    let mut t = Reports::new();
    t.started(1, 9, false);
    for id in [15, 22, 23] {
        t.reported(id, &[&u32::MAX.to_le_bytes()[..], &[1; 40]].concat()).reported(id, &[1, 0]);
    }
    t.reported(16, &[&[0; 24][..], &u32::MAX.to_le_bytes()].concat())
        .reported(20, &[])
        .reported(1, &[0; 9])
        .reported(21, &[]);
    let facts = t.facts();
    assert!(facts.surviving.is_empty() && facts.moved.is_empty() && facts.roots.is_empty());
    assert_eq!(facts.objects, [(0, 0, 0)]);
    assert!(facts.codes().contains(&"short_bulk_event"), "{:?}", facts.codes());
    assert_eq!(facts.collections.iter().map(|c| c.generation).collect::<Vec<_>>(), [None, None]);
}

#[test]
fn a_recording_can_be_cut_anywhere() {
    let whole = two_processes().bytes();
    let all = facts(&whole);
    let known: Vec<_> = all.surviving.iter().map(|r| (r.range_start, r.range_length)).collect();
    let (mut most, mut readable) = (0, 0);
    for end in 0..whole.len() {
        let Ok(part) = crate::support::events::facts(mapped(&whole[..end])) else { continue };
        readable += 1;
        most = most.max(part.surviving.len());
        assert!(
            part.surviving.iter().all(|r| known.contains(&(r.range_start, r.range_length))),
            "invented ranges at {end}"
        );
        assert!(part.collections.len() <= all.collections.len(), "{end}");
        assert!(!part.problems.is_empty(), "nothing is said of the cut at {end}");
    }
    assert!(readable > whole.len() / 2 && most == known.len());
}
