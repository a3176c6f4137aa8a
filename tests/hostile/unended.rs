//! Starts whose ends are not looked for any more, because too many went on: each kind says how many.

use tracequet::Convert;

use crate::support::dataset::Dataset;
use crate::support::writer::{Form, Kind, Row, Type, Writer};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// Number of events of a kind on one thread, where 256 may be open.
const STARTS: u32 = 300;

fn dataset(kinds: &[Kind<'_>], events: impl Iterator<Item = (u32, Vec<u8>)>) -> Dataset {
    let mut writer = Writer::new(Form::V4);
    writer.metadata(kinds);
    finished(writer, events)
}

fn finished(mut writer: Writer, events: impl Iterator<Item = (u32, Vec<u8>)>) -> Dataset {
    let row = |((metadata_id, payload), sequence)| {
        let ticks = i64::from(sequence);
        Row { metadata_id, sequence, capture_thread: 1, thread: 1, ticks, payload, ..Row::default() }
    };
    let rows: Vec<Row> = events.zip(1..).map(row).collect();
    for rows in rows.chunks(1000) {
        writer.events(rows);
    }
    of(&mut writer)
}

fn of(writer: &mut Writer) -> Dataset {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), writer.end()).unwrap();
    Dataset::with(Convert::default().inputs([file.path().to_owned()]))
}

fn kind(id: u32, provider: &'static str, version: u8) -> Kind<'static> {
    Kind { id, provider, event_id: id, version, name: "" }
}

#[test]
fn starts_that_nest_deeper_than_is_remembered_are_told_by_kind() {
    // Exceptions, waits for locks and others, compilations, loads: of each the events that begin one, with texts that
    // are empty.
    let kinds = [(80, 1, 30), (81, 1, 3), (301, 0, 11), (145, 1, 32), (290, 0, 40)];
    let all = (0..STARTS).flat_map(|_| kinds.map(|(id, _, bytes)| (id, vec![0; bytes])));
    let dataset = dataset(&kinds.map(|(id, version, _)| kind(id, RUNTIME, version)), all);
    let mut reported: Vec<_> =
        dataset.problems().into_iter().filter(|(code, _)| code.starts_with("too_many")).collect();
    reported.sort_unstable();
    let each = u64::from(STARTS) - 256;
    let expected = [
        ("too_many_compilations", each),
        ("too_many_exceptions", each),
        ("too_many_loads", each),
        ("too_many_waits", 2 * each),
    ];
    assert_eq!(reported, expected);
    assert_eq!(dataset.table("exception").rows() as u32, STARTS, "each has its row");
}

#[test]
fn joins_of_more_threads_than_are_remembered_are_told() {
    const THREADS: u32 = (1 << 14) + 44;
    // GCJoin: heap, time (0: it begins), type (1: a thread waits), CLR, id. A thread is at one join at a time.
    let payload = [[0; 8].as_slice(), &[1, 0, 0, 0, 0, 0], &[1, 0, 0, 0]].concat();
    let row = |thread: u32| Row {
        metadata_id: 203,
        sequence: 1,
        capture_thread: u64::from(thread),
        thread: u64::from(thread),
        ticks: i64::from(thread),
        payload: payload.clone(),
        ..Row::default()
    };
    let mut writer = Writer::new(Form::V4);
    writer.metadata(&[kind(203, RUNTIME, 2)]);
    for rows in (1..=THREADS).map(row).collect::<Vec<_>>().chunks(1000) {
        writer.events(rows);
    }
    let dataset = of(&mut writer);
    assert!(dataset.problems().contains(&("too_many_joins", 44)), "{:?}", dataset.problems());
}

#[test]
fn activities_that_are_more_than_are_remembered_are_told() {
    let mut writer = Writer::new(Form::V4);
    let kind = Kind { id: 1, provider: "Shop", event_id: 1, version: 0, name: "OrderStart" };
    writer.described(kind, &[("orderId", Type::Long)]);
    let dataset = finished(writer, (0..17_000u64).map(|order| (1, order.to_le_bytes().to_vec())));
    assert!(dataset.problems().contains(&("too_many_activities", 17_000 - 256)), "{:?}", dataset.problems());
    assert_eq!(dataset.table("activity").rows(), 17_000);
}

#[test]
fn pauses_of_more_threads_than_are_remembered_are_told() {
    const THREADS: u64 = 64 + 44;
    // GCSuspendEEBegin: reason (0: other than a collection), count, CLR.
    let row = |thread: u64| Row {
        metadata_id: 9,
        sequence: 1,
        capture_thread: thread,
        thread,
        ticks: thread as i64,
        payload: vec![0; 10],
        ..Row::default()
    };
    let mut writer = Writer::new(Form::V4);
    writer.metadata(&[kind(9, RUNTIME, 1)]);
    writer.events(&(1..=THREADS).map(row).collect::<Vec<_>>());
    let dataset = of(&mut writer);
    assert!(dataset.problems().contains(&("too_many_pauses", 44)), "{:?}", dataset.problems());
}
