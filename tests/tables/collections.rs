//! Collections from made-up recordings: ranges cut over events and threads, nested, without a start, without an end.

use std::path::Path;

use crate::support::dataset::Dataset;
use crate::support::writer::{Form, Kind, Row, Writer};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
pub const START: u32 = 1;
pub const END: u32 = 2;
pub const RESTART_END: u32 = 3;
pub const SUSPEND_END: u32 = 8;
const SUSPEND_BEGIN: u32 = 9;
const SURVIVING: u32 = 21;
const MOVED: u32 = 22;
const BOUND: u32 = 23;
const MARK: u32 = 202;
const HEAP_HISTORY: u32 = 204;
const DYNAMIC: u32 = 39;
pub const THROWN: u32 = 80;
pub const CATCH: u32 = 250;
pub const CATCH_STOP: u32 = 251;
pub const CONTENTION: u32 = 81;
pub const CONTENTION_STOP: u32 = 91;
pub const JITTING: u32 = 145;
pub const LOADED: u32 = 143;

pub const BLOCKING: u32 = 0;
pub const BACKGROUND: u32 = 1;

/// Events of a runtime, in order.
#[derive(Default)]
pub struct Story {
    rows: Vec<Row>,
    sequences: std::collections::BTreeMap<u64, u32>,
    /// Which runtime of the process speaks from now on.
    runtime: u16,
}

impl Story {
    pub fn event(&mut self, ticks: i64, thread: u64, id: u32, payload: Vec<u8>) -> &mut Story {
        let sequence = self.sequences.entry(thread).or_default();
        *sequence += 1;
        let (sequence, capture_thread) = (*sequence, thread);
        self.rows.push(Row { metadata_id: id, sequence, capture_thread, thread, ticks, payload, ..Row::default() });
        self
    }

    /// Events of a thread are dropped: its numbers go on behind them.
    pub fn dropped(&mut self, thread: u64, count: u32) -> &mut Story {
        *self.sequences.entry(thread).or_default() += count;
        self
    }

    pub fn runtime(&mut self, runtime: u16) -> &mut Story {
        self.runtime = runtime;
        self
    }

    pub fn start(&mut self, ticks: i64, thread: u64, number: u32, generation: u32, kind: u32) -> &mut Story {
        let mut payload: Vec<u8> = [number, generation, 0, kind].iter().flat_map(|v| v.to_le_bytes()).collect();
        payload.extend(self.runtime.to_le_bytes());
        payload.extend([0; 8]);
        self.event(ticks, thread, START, payload)
    }

    pub fn end(&mut self, ticks: i64, thread: u64, number: u32, generation: u32) -> &mut Story {
        let mut payload: Vec<u8> = [number, generation].iter().flat_map(|v| v.to_le_bytes()).collect();
        payload.extend(self.runtime.to_le_bytes());
        self.event(ticks, thread, END, payload)
    }

    pub fn rows_of(&mut self, ticks: i64, thread: u64, id: u32, rows: &[&[u64]]) -> &mut Story {
        let mut payload = 0u32.to_le_bytes().to_vec();
        payload.extend((rows.len() as u32).to_le_bytes());
        payload.extend(self.runtime.to_le_bytes());
        payload.extend(rows.iter().flat_map(|row| row.iter()).flat_map(|v| v.to_le_bytes()));
        self.event(ticks, thread, id, payload)
    }

    pub fn surviving(&mut self, ticks: i64, thread: u64, rows: &[[u64; 2]]) -> &mut Story {
        self.rows_of(ticks, thread, SURVIVING, &rows.iter().map(|r| r.as_slice()).collect::<Vec<_>>())
    }

    pub fn moved(&mut self, ticks: i64, thread: u64, rows: &[[u64; 3]]) -> &mut Story {
        self.rows_of(ticks, thread, MOVED, &rows.iter().map(|r| r.as_slice()).collect::<Vec<_>>())
    }

    pub fn bound(&mut self, ticks: i64, thread: u64, generation: u8, start: u64, length: u64) -> &mut Story {
        let mut payload = vec![generation];
        payload.extend([start, length, length].iter().flat_map(|v| v.to_le_bytes()));
        payload.extend(self.runtime.to_le_bytes());
        self.event(ticks, thread, BOUND, payload)
    }

    pub fn suspend(&mut self, ticks: i64, thread: u64, reason: u32) -> &mut Story {
        let mut payload = reason.to_le_bytes().to_vec();
        payload.extend([0; 4 + 2]);
        self.event(ticks, thread, SUSPEND_BEGIN, payload)
    }

    pub fn simple(&mut self, ticks: i64, thread: u64, id: u32) -> &mut Story {
        let payload = if id == MARK { vec![0; 4 + 2 + 4 + 8] } else { vec![0; 2] };
        self.event(ticks, thread, id, payload)
    }

    pub fn tell(&self) -> Dataset {
        let versions = [
            (START, 2),
            (END, 1),
            (RESTART_END, 1),
            (SUSPEND_END, 1),
            (SUSPEND_BEGIN, 1),
            (SURVIVING, 0),
            (MOVED, 0),
            (BOUND, 0),
            (MARK, 0),
            (HEAP_HISTORY, 3),
            (DYNAMIC, 0),
            (THROWN, 1),
            (CATCH, 0),
            (CATCH_STOP, 0),
            (CONTENTION, 1),
            (CONTENTION_STOP, 0),
            (JITTING, 1),
            (LOADED, 1),
        ];
        let kinds = versions.map(|(id, version)| Kind { id, provider: RUNTIME, event_id: id, version, name: "" });
        let bytes = Writer::new(Form::V4).metadata(&kinds).events(&self.rows).end();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Dataset::of(Path::new(file.path()))
    }
}

#[test]
fn ranges_of_all_events_and_threads_make_one_union_in_the_order_of_addresses() {
    let dataset = Story::default()
        .start(10, 1, 5, 2, BLOCKING)
        .surviving(11, 2, &[[500, 8], [300, 16]])
        .moved(12, 3, &[[900, 700, 24]])
        .surviving(13, 3, &[[100, 24]])
        .moved(14, 2, &[[800, 800, 32]])
        .end(20, 2, 5, 2)
        .tell();
    let surviving = dataset.table("gc_surviving_range");
    assert_eq!(surviving.numbers("range_start"), [100, 300, 500]);
    assert_eq!(surviving.numbers("range_length"), [24, 16, 8]);
    let moved = dataset.table("gc_moved_range");
    assert_eq!(moved.numbers("old_range_start"), [800, 900]);
    assert_eq!(moved.numbers("new_range_start"), [800, 700]);
    let gc = dataset.table("gc");
    assert_eq!((gc.numbers("surviving_range_count"), gc.numbers("surviving_bytes")), (vec![3], vec![48]));
    assert_eq!((gc.numbers("moved_range_count"), gc.numbers("moved_bytes")), (vec![2], vec![56]));
    assert_eq!(surviving.texts("length_kind"), ["exact"; 3]);
}

#[test]
fn a_foreground_collection_inside_a_background_one_keeps_its_own_ranges() {
    let dataset = Story::default()
        .start(10, 1, 1, 2, BACKGROUND)
        .start(20, 2, 2, 0, BLOCKING)
        .surviving(21, 2, &[[1000, 8]])
        .end(22, 2, 2, 0)
        .start(30, 2, 3, 1, BLOCKING)
        .surviving(31, 2, &[[2000, 8]])
        .end(32, 2, 3, 1)
        .surviving(40, 1, &[[3000, 8]])
        .end(41, 1, 1, 2)
        .start(50, 2, 4, 0, BLOCKING)
        .surviving(51, 2, &[[500, 8]])
        .end(52, 2, 4, 0)
        .tell();
    let gc = dataset.table("gc");
    assert_eq!(gc.numbers("gc_number"), [1, 2, 3, 4], "in the order of starts");
    assert_eq!(gc.numbers("surviving_range_count"), [1, 1, 1, 1]);
    assert_eq!(gc.texts("kind"), ["background", "blocking", "blocking", "blocking"]);
    let ranges = dataset.table("gc_surviving_range");
    let pairs: Vec<_> = ranges.numbers("gc_id").into_iter().zip(ranges.numbers("range_start")).collect();
    // The background collection ends last but one; its rows stand first all the same.
    assert_eq!(pairs, [(1, 3000), (2, 1000), (3, 2000), (4, 500)]);
    let file = std::fs::File::open(dataset.path().join("gc_surviving_range.parquet")).unwrap();
    let reader = parquet::file::reader::SerializedFileReader::new(file).unwrap();
    let groups: Vec<i64> =
        parquet::file::reader::FileReader::metadata(&reader).row_groups().iter().map(|g| g.num_rows()).collect();
    assert_eq!(groups, [4]);
    for (gc, address, fate) in [(1, 3000, "alive"), (2, 1000, "alive"), (4, 500, "alive"), (4, 3000, "unknown")] {
        let steps = crate::support::dataset::survived(&dataset.path(), None, gc, address, false).unwrap();
        assert_eq!(steps[0].fate.as_str(), fate, "{gc} {address}");
    }
}

#[test]
fn generations_come_from_the_bounds_at_start_and_end() {
    let dataset = Story::default()
        .start(10, 1, 1, 1, BLOCKING)
        .bound(11, 1, 1, 1000, 1000)
        .bound(11, 1, 0, 2000, 1000)
        .simple(12, 1, MARK)
        .surviving(13, 2, &[[2100, 50], [9000, 8]])
        .moved(14, 2, &[[1100, 2500, 40]])
        .bound(18, 2, 2, 1000, 500)
        .bound(18, 2, 1, 2000, 1000)
        .end(20, 1, 1, 1)
        .tell();
    let bounds = dataset.table("gc_generation_range");
    assert_eq!(bounds.texts("phase"), ["start", "start", "end", "end"]);
    let surviving = dataset.table("gc_surviving_range");
    assert_eq!(surviving.optional("generation_before"), [Some(0), None], "an address in no bounds has no generation");
    assert_eq!(surviving.optional("generation_after"), [Some(1), None]);
    let moved = dataset.table("gc_moved_range");
    assert_eq!(
        (moved.optional("generation_before"), moved.optional("generation_after")),
        (vec![Some(1)], vec![Some(1)])
    );
}

#[test]
fn ranges_before_any_start_belong_to_an_incomplete_collection() {
    let dataset = Story::default()
        .surviving(5, 1, &[[100, 8]])
        .end(6, 1, 7, 1)
        .start(10, 1, 8, 0, BLOCKING)
        .surviving(11, 1, &[[200, 8]])
        .tell();
    let gc = dataset.table("gc");
    assert_eq!(gc.numbers("gc_number"), [7, 8]);
    assert_eq!(gc.bools("complete"), [false, false]);
    assert_eq!(gc.optional("generation"), [Some(1), Some(0)]);
    assert_eq!(gc.signed("end_ts_ns"), [Some(600), None]);
    assert_eq!(dataset.table("gc_surviving_range").numbers("gc_id"), [1, 2]);
    let problem = &dataset.summary.inputs[0].problems;
    // It was running when the recording was stopped: nothing is lost.
    assert!(problem.iter().any(|p| p.code == "running_collection" && p.count == 1), "{problem:?}");
    assert!(!dataset.summary.inputs[0].has_losses());
    assert_eq!(gc.bools("touches_gap"), [false, false]);
}

#[test]
fn a_start_without_its_end_is_closed_by_the_next_one() {
    let dataset = Story::default()
        .start(10, 1, 1, 0, BLOCKING)
        .surviving(11, 1, &[[100, 8]])
        .start(20, 1, 2, 0, BLOCKING)
        .end(21, 1, 2, 0)
        .tell();
    let gc = dataset.table("gc");
    assert_eq!((gc.numbers("gc_number"), gc.bools("complete")), (vec![1, 2], vec![false, true]));
    assert_eq!(gc.numbers("surviving_range_count"), [1, 0]);
}

#[test]
fn pauses_belong_to_the_collection_that_starts_in_them() {
    let dataset = Story::default()
        .suspend(10, 1, 1)
        // A sampling profiler asks for the same, waits, and gets its turn later.
        .suspend(11, 9, 0)
        .simple(12, 1, SUSPEND_END)
        .start(13, 1, 1, 0, BLOCKING)
        .end(18, 1, 1, 0)
        .simple(20, 1, RESTART_END)
        .simple(22, 9, SUSPEND_END)
        .simple(25, 9, RESTART_END)
        .tell();
    let gc = dataset.table("gc");
    assert_eq!((gc.signed("pause_ns"), gc.numbers("pause_count")), (vec![Some(1000)], vec![1]));
    let pauses = dataset.table("gc_pause");
    assert_eq!(pauses.numbers("gc_id"), [1, 0]);
    assert_eq!(pauses.signed("duration_ns"), [Some(1000), Some(1400)]);
    assert_eq!(pauses.signed("suspend_ns"), [Some(200), Some(1100)]);
}

/// The first stop of a background collection, with a collection of generation 0 inside, is two pauses.
#[test]
fn a_stop_for_two_collections_is_split_where_the_second_one_starts() {
    let dataset = Story::default()
        .suspend(10, 1, 1)
        .simple(12, 1, SUSPEND_END)
        .start(13, 1, 1, 2, BACKGROUND)
        .start(16, 1, 2, 0, BLOCKING)
        .end(18, 1, 2, 0)
        .simple(20, 1, RESTART_END)
        .end(40, 1, 1, 2)
        .tell();
    let gc = dataset.table("gc");
    assert_eq!(gc.signed("pause_ns"), [Some(600), Some(400)]);
    let pauses = dataset.table("gc_pause");
    assert_eq!(pauses.numbers("gc_id"), [1, 2]);
    assert_eq!(pauses.signed("duration_ns"), [Some(600), Some(400)]);
    assert_eq!(pauses.signed("suspend_ns"), [Some(200), Some(0)]);
}

#[test]
fn an_object_is_followed_in_its_own_runtime_only() {
    let dataset = Story::default()
        .start(10, 1, 1, 0, BLOCKING)
        .bound(11, 1, 0, 1000, 1000)
        .moved(12, 1, &[[1000, 5000, 24]])
        .bound(13, 1, 1, 5000, 1000)
        .end(14, 1, 1, 0)
        .runtime(7)
        .start(20, 1, 1, 1, BLOCKING)
        .bound(21, 1, 1, 5000, 1000)
        .surviving(22, 1, &[[5800, 24]])
        .end(24, 1, 1, 1)
        .runtime(0)
        .start(30, 1, 2, 0, BLOCKING)
        .bound(31, 1, 1, 5000, 1000)
        .end(34, 1, 2, 0)
        .tell();
    let steps = crate::support::dataset::survived(&dataset.path(), None, 1, 1008, true).unwrap();
    let seen: Vec<_> = steps.iter().map(|s| (s.gc_id, s.fate.as_str(), s.address_after)).collect();
    assert_eq!(seen, [(1, "moved", Some(5008)), (3, "not_collected", Some(5008))]);
}

#[test]
fn rows_that_are_missing_are_told() {
    let mut story = Story::default();
    story.start(10, 1, 1, 0, BLOCKING);
    story.surviving(11, 1, &[[100, 8], [200, 8]]);
    let last = story.rows.last_mut().unwrap();
    last.payload.truncate(last.payload.len() - 3);
    let dataset = story.end(12, 1, 1, 0).tell();
    assert_eq!(dataset.table("gc_surviving_range").numbers("range_start"), [100]);
    let problems = &dataset.summary.inputs[0].problems;
    assert!(problems.iter().any(|p| p.code == "short_bulk_event" && p.count == 1), "{problems:?}");
    assert!(problems.iter().any(|p| p.code == "short_payload"), "{problems:?}");
}

/// GCPerHeapHistory of a heap: its numbers count up from `first`, in the order of the event.
fn heap_history(heap_index: u32, first: u64, [reasons, conditions, compact, expand]: [u32; 4]) -> Vec<u8> {
    let pointers = |range: std::ops::Range<u64>| range.flat_map(|at| (first + at).to_le_bytes());
    let mut payload = vec![0; 2];
    payload.extend(pointers(0..6));
    payload.extend([33, reasons, conditions, compact, expand, heap_index].map(u32::to_le_bytes).concat());
    payload.extend(pointers(6..7));
    // No generations.
    payload.extend(0u32.to_le_bytes());
    payload
}

#[test]
fn the_history_of_each_heap_is_a_row_of_its_collection() {
    let mut story = Story::default();
    story.start(10, 1, 1, 0, BLOCKING).end(20, 1, 1, 0);
    // Of both heaps: generation 1 was meant at first, 2 in the end, 0 by budget, 1 by time. 0x8000_0000: it happened.
    let reasons = 1 | 2 << 2 | 1 << 6;
    story.start(30, 1, 2, 2, BLOCKING);
    story.event(35, 1, HEAP_HISTORY, heap_history(0, 1000, [reasons, 0x5, 0x8000_0020, 0]));
    story.event(36, 1, HEAP_HISTORY, heap_history(1, 2000, [reasons, 0, 0x20, 0x8000_0008]));
    story.end(40, 1, 2, 2);
    let table = story.tell().table("gc_heap");
    assert_eq!((table.numbers("gc_id"), table.numbers("heap_index")), (vec![2, 2], vec![0, 1]));
    for (column, expected) in [
        ("condemned_initial", 1),
        ("condemned_final", 2),
        ("condemned_by_budget", 0),
        ("condemned_by_time", 1),
        ("free_list_efficiency_percent", 33),
    ] {
        assert_eq!(table.numbers(column), [expected; 2], "{column}");
    }
    assert_eq!(table.numbers("condemn_conditions"), [5, 0]);
    assert_eq!(table.texts("condemn_conditions_text"), ["InducedFullGC|HighMemory", ""]);
    assert_eq!(table.texts("compact_reason"), ["InducedCompacting", ""]);
    assert_eq!(table.texts("expand_mechanism"), ["", "NewSegment"]);
    let numbers = [
        "free_list_allocated_bytes",
        "free_list_rejected_bytes",
        "end_of_segment_allocated_bytes",
        "condemned_allocated_bytes",
        "pinned_allocated_bytes",
        "pinned_allocated_advance_bytes",
        "extra_gen0_commit_bytes",
    ];
    for (at, column) in (0..).zip(numbers) {
        assert_eq!(table.numbers(column), [1000 + at, 2000 + at], "{column}");
    }
}

/// GCDynamicEvent: a name, and data that begin with a version.
fn dynamic(name: &str, data: &[u8]) -> Vec<u8> {
    let data = [&[1, 0], data].concat();
    let mut payload: Vec<u8> = name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    payload.extend((data.len() as u32).to_le_bytes());
    payload.extend(data);
    payload.extend([0; 2]);
    payload
}

#[test]
fn tuning_values_are_rows_of_the_collection_that_they_come_with() {
    let mut story = Story::default();
    let committed = [11u64, 22, 33, 44, 55].map(u64::to_le_bytes).concat();
    let sample = [7u64, 1_000].map(u64::to_le_bytes).concat();
    let mut full = [3u16.to_le_bytes().to_vec(), 9u64.to_le_bytes().to_vec(), 1.5f32.to_le_bytes().to_vec()].concat();
    full.extend([4u32, 5].map(u32::to_le_bytes).concat());
    story.event(5, 1, DYNAMIC, dynamic("CommittedUsage", &committed));
    story.start(10, 1, 1, 0, BLOCKING);
    // What a newer runtime appends is left alone, what is missing at the end has no rows, and other names have none
    // either.
    story.event(12, 1, DYNAMIC, dynamic("CommittedUsage", &[committed.as_slice(), &[9; 8]].concat()));
    story.event(13, 1, DYNAMIC, dynamic("HeapCountSample", &sample));
    story.event(14, 1, DYNAMIC, dynamic("Other", &committed));
    story.end(20, 1, 1, 0);
    story.event(25, 1, DYNAMIC, dynamic("SizeAdaptationFullGCTuning", &full));
    let dataset = story.tell();
    let table = dataset.table("gc_tuning");
    let (times, collections) = (table.signed("ts_ns"), table.numbers("gc_id"));
    let (events, fields, values) = (table.texts("event_name"), table.texts("field"), table.floats("value"));
    let row = |row: usize| {
        let at = times[row].unwrap() / 100;
        (at, collections[row], events[row].as_str(), fields[row].as_str(), values[row].unwrap())
    };
    let found: Vec<_> = (0..table.rows()).map(row).collect();
    let committed = |at, collection| {
        let fields = [
            ("total_committed_in_use", 11.0),
            ("total_committed_in_global_decommit", 22.0),
            ("total_committed_in_free", 33.0),
            ("total_committed_in_global_free", 44.0),
            ("total_bookkeeping_committed", 55.0),
        ];
        fields.map(|(field, value)| (at, collection, "CommittedUsage", field, value))
    };
    let mut expected = [committed(5, 0), committed(12, 1)].concat();
    expected.extend(
        [("gc_index", 7.0), ("elapsed_time_between_gcs", 1000.0)]
            .map(|(field, value)| (13, 1, "HeapCountSample", field, value)),
    );
    let full = [
        ("new_heap_count", 3.0),
        ("current_gc_index", 9.0),
        ("median_gen2_throughput_cost_percent", 1.5),
        ("gen2_count_since_last_change", 4.0),
        ("gen2_sample0_gc_index_distance", 5.0),
    ];
    expected.extend(full.map(|(field, value)| (25, 1, "SizeAdaptationFullGCTuning", field, value)));
    assert_eq!(found, expected);
    assert!(table.numbers("process_id").iter().all(|process| *process == 77));
}
