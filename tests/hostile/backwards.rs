//! Recordings in which time goes back: blocks that were swapped, copied or changed. Nothing ends before it begins.

use crate::support::dataset::Dataset;
use crate::support::mutate::Random;
use crate::support::writer::{Form, Kind, Row, Type, Writer};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const WORK: u32 = 1000;
const WORK_STOP: u32 = 1001;
const GC_JOIN: u32 = 203;
const GC_MARK: u32 = 202;
/// Events of the runtime with their versions: what begins and what ends things, in pairs.
const PAIRS: [(u32, u8); 20] = [
    (1, 2),
    (2, 1),
    (9, 1),
    (8, 1),
    (3, 1),
    (35, 0),
    (GC_MARK, 0),
    (GC_JOIN, 2),
    (80, 1),
    (250, 0),
    (251, 0),
    (81, 1),
    (91, 0),
    (145, 1),
    (143, 1),
    (301, 0),
    (302, 0),
    (290, 0),
    (291, 0),
    (61, 0),
];
const DEQUEUE: u32 = 62;
const PER_HEAP_HISTORY: u32 = 204;

/// One event of thread 1, with a payload that is zeros but for these numbers.
fn row(id: u32, sequence: u32, ticks: i64, numbers: &[u32]) -> Row {
    let mut payload: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    payload.resize(64, 0);
    let activity = tracequet::trace::guid::Guid([if id >= WORK { 7 } else { 0 }; 16]);
    Row { metadata_id: id, sequence, capture_thread: 1, thread: 1, ticks, payload, activity, ..Row::default() }
}

/// Each list of events is sorted by time by itself: sequence points stand between.
fn dataset(regions: &[Vec<Row>]) -> Dataset {
    let kinds: Vec<Kind<'_>> = PAIRS
        .iter()
        .chain(&[(DEQUEUE, 0), (PER_HEAP_HISTORY, 3)])
        .map(|(id, version)| Kind { id: *id, provider: RUNTIME, event_id: *id, version: *version, name: "" })
        .collect();
    let mut writer = Writer::new(Form::V4);
    writer.metadata(&kinds);
    for (id, name) in [(WORK, "RequestStart"), (WORK_STOP, "RequestStop")] {
        let kind = Kind { id, provider: "Made-Up", event_id: id, version: 0, name };
        writer.described(kind, &[("Id", Type::Long)]);
    }
    let mut written = 0;
    for rows in regions {
        writer.events(rows);
        written += rows.len() as u32;
        let last = rows.iter().map(|row| row.ticks).max().unwrap_or_default();
        writer.sequence_point(last, &[(1, written)]);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), writer.end()).unwrap();
    Dataset::of(file.path())
}

/// Tables of things that begin and end, with the columns of both.
const TABLES: [(&str, &str, &str); 9] = [
    ("gc", "start_ts_ns", "end_ts_ns"),
    ("gc", "trigger_ts_ns", "start_ts_ns"),
    ("gc_join", "start_ts_ns", "end_ts_ns"),
    ("exception", "ts_ns", "end_ts_ns"),
    ("exception", "ts_ns", "catch_ts_ns"),
    ("contention", "start_ts_ns", "end_ts_ns"),
    ("method_compilation", "start_ts_ns", "end_ts_ns"),
    ("wait", "start_ts_ns", "end_ts_ns"),
    ("assembly_load", "start_ts_ns", "end_ts_ns"),
];
const MORE: [(&str, &str, &str); 3] = [
    ("thread_pool_work", "queue_ts_ns", "start_ts_ns"),
    ("activity", "start_ts_ns", "end_ts_ns"),
    ("thread", "first_ts_ns", "last_ts_ns"),
];

/// Checks all tables. Returns how many rows of each have an end, and how many have none.
fn check(dataset: &Dataset, what: &str) -> Vec<(usize, usize)> {
    let count = |(name, begin, end): &(&str, &str, &str)| {
        let table = dataset.table(name);
        let (begin, end) = (table.signed(begin), table.signed(end));
        let rows = || begin.iter().zip(&end);
        for (begin, end) in rows().filter_map(|(begin, end)| begin.zip(*end)) {
            assert!(begin <= end, "{what}: {name} from {begin} to {end}");
        }
        let whole = rows().filter(|(begin, end)| begin.is_some() && end.is_some()).count();
        (whole, begin.len() - whole)
    };
    for (name, column) in [("gc_pause", "duration_ns"), ("gc_pause", "suspend_ns"), ("gc_mark", "duration_ns")] {
        let values = dataset.table(name).signed(column);
        assert!(values.iter().flatten().all(|ns| *ns >= 0), "{what}: {name} {column} {values:?}");
    }
    TABLES.iter().chain(&MORE).map(count).collect()
}

/// What begins at a time, and what would end it at another one.
fn begun_and_ended(begin: i64, end: i64) -> [Vec<Row>; 2] {
    let beginnings = [35, 9, 1, 80, 81, 145, 301, 290, 61, WORK];
    let mut first: Vec<Row> = (1..).zip(beginnings).map(|(n, id)| row(id, n, begin, &[])).collect();
    // A thread of the collector waits; a kind of roots is marked.
    first.push(row(GC_JOIN, 11, begin, &[0, 0, 1]));
    first.push(row(GC_MARK, 12, begin, &[]));
    let ends = [250, 251, 91, 143, 302, 291, DEQUEUE, WORK_STOP, 8];
    let mut last: Vec<Row> = (13..).zip(ends).map(|(n, id)| row(id, n, end, &[])).collect();
    last.push(row(GC_MARK, 22, end, &[]));
    last.push(row(GC_JOIN, 23, end, &[0, 1, 1]));
    last.push(row(2, 24, end, &[]));
    last.push(row(3, 25, end, &[]));
    [first, last]
}

#[test]
fn nothing_ends_before_it_begins() {
    let forward = dataset(&begun_and_ended(1000, 2000));
    let rows = check(&forward, "forward");
    assert!(rows.iter().all(|(whole, open)| (*whole, *open) == (1, 0)), "{rows:?}");
    assert_eq!(forward.table("gc_pause").signed("duration_ns"), [Some(100_000)]);
    assert_eq!(forward.table("gc_mark").signed("duration_ns"), [Some(0), Some(100_000)]);
    assert_eq!(forward.table("activity").texts("paired_by"), ["activity_id_and_fields"]);

    let back = dataset(&begun_and_ended(2000, 1000));
    let rows = check(&back, "back");
    assert_eq!(
        rows.iter().map(|(whole, _)| *whole).sum::<usize>(),
        3,
        "an end by itself, its trigger and the thread: {rows:?}"
    );
    assert_eq!(back.table("gc").bools("complete"), [false, false]);
    assert_eq!(back.table("gc_pause").rows(), 0);
    // One before the collection; the other began with it.
    assert_eq!(back.table("gc_mark").signed("duration_ns"), [None, Some(0)]);
    assert_eq!(back.table("activity").texts("paired_by"), [""]);
    let thread = back.table("thread");
    assert_eq!((thread.signed("first_ts_ns"), thread.signed("last_ts_ns")), (vec![Some(100_000)], vec![Some(200_000)]));
}

#[test]
fn events_in_any_order_make_no_time_that_is_negative() {
    let ids: Vec<u32> = PAIRS.iter().map(|(id, _)| *id).chain([DEQUEUE, WORK, WORK_STOP]).collect();
    let mut whole = 0;
    for seed in 1..=12_u64 {
        let (mut dice, mut sequence) = (Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)), 0);
        let mut region = |_| {
            let begin = dice.below(2000) as i64;
            let rows = (0..40).map(|_| {
                sequence += 1;
                let id = ids[dice.below(ids.len())];
                let numbers = [dice.below(2), dice.below(2), dice.below(4)].map(|number| number as u32);
                row(id, sequence, begin + dice.below(50) as i64, &numbers)
            });
            rows.collect()
        };
        let regions: Vec<Vec<Row>> = (0..12).map(&mut region).collect();
        whole += check(&dataset(&regions), &format!("seed {seed}")).iter().map(|(whole, _)| whole).sum::<usize>();
    }
    assert!(whole > 300, "{whole}");
}

#[test]
fn a_thread_is_at_one_join_at_a_time() {
    let join = |sequence, ticks, time, kind| row(GC_JOIN, sequence, ticks, &[3, time, kind]);
    // The end of the first wait is missing, and the second one ends twice.
    let rows = vec![join(1, 10, 0, 1), join(2, 20, 0, 1), join(3, 25, 1, 1), join(4, 90, 1, 1)];
    let joins = dataset(&[rows]).table("gc_join");
    assert_eq!(joins.signed("start_ts_ns"), [Some(1000), Some(2000)]);
    assert_eq!(joins.signed("end_ts_ns"), [None, Some(2500)]);
}

#[test]
fn a_heap_of_which_a_collection_tells_twice_counts_once() {
    // One generation of 1,000 bytes before the collection.
    let heap = |sequence, index: u32| {
        let mut payload = [vec![0; 2], vec![1; 6 * 8 + 5 * 4]].concat();
        payload.extend(index.to_le_bytes());
        payload.extend(0u64.to_le_bytes());
        payload.extend(1u32.to_le_bytes());
        payload.extend([1000, 0, 0, 0, 0, 0, 0, 0, 0, 0].map(u64::to_le_bytes).concat());
        Row { payload, ..row(PER_HEAP_HISTORY, sequence, 20, &[]) }
    };
    let rows = vec![row(1, 1, 10, &[1]), heap(2, 0), heap(3, 1), heap(4, 0), row(2, 5, 30, &[1])];
    let dataset = dataset(&[rows]);
    assert_eq!(dataset.table("gc").numbers("size_before_bytes"), [2000]);
}
