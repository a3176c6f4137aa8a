//! Who asks for collections, and how the threads of the collector wait for each other: what the tables say against the
//! events themselves.

use crate::support::dataset::{Dataset, Table};
use crate::support::expected::{shared_traces, traces_in};
use crate::support::writer::{Form, Kind, Row, Writer};

/// The payload table of an event of the runtime, if the recording has such events.
fn events(dataset: &Dataset, name: &str) -> Option<Table> {
    let path = dataset.path().join(format!("event/Microsoft-Windows-DotNETRuntime/{name}.parquet"));
    path.is_file().then(|| Table::open(&path))
}

fn times(table: &Table) -> Vec<i64> {
    table.signed("ts_ns").into_iter().map(Option::unwrap).collect()
}

/// Every trigger that a row of `gc` has is the last one before its start, and gives the reason that the start gives.
/// Returns how many triggers there are, and how many of them have a collection.
fn check_triggers(name: &str, dataset: &Dataset) -> (usize, usize) {
    let Some(triggers) = events(dataset, "GCTriggered") else { return (0, 0) };
    let asked = times(&triggers);
    let threads = triggers.numbers("thread_id");
    let gc = dataset.table("gc");
    let (at, starts) = (gc.signed("trigger_ts_ns"), gc.signed("start_ts_ns"));
    let (trigger_reasons, reasons) = (gc.texts("trigger_reason"), gc.texts("reason"));
    let (trigger_threads, kinds) = (gc.numbers("trigger_thread_id"), gc.texts("kind"));
    let mut used = std::collections::BTreeSet::new();
    for row in 0..gc.rows() {
        let start = starts[row].unwrap();
        let last = (0..asked.len()).filter(|index| asked[*index] <= start).max_by_key(|index| asked[*index]);
        let Some(trigger) = at[row] else {
            // A collection inside of a background collection may begin without being asked for.
            assert!(last.is_none_or(|last| used.contains(&asked[last])), "{name}: row {row} has no trigger");
            continue;
        };
        let last = last.expect("a trigger before the start");
        assert_eq!((trigger, trigger_threads[row]), (asked[last], threads[last]), "{name}: row {row}");
        assert_eq!(trigger_reasons[row], reasons[row], "{name}: row {row}, {}", kinds[row]);
        used.insert(trigger);
    }
    (asked.len(), used.len())
}

#[test]
fn collections_have_the_trigger_that_precedes_them() {
    let Some(folder) = shared_traces("collections_have_the_trigger_that_precedes_them") else { return };
    let (mut all, mut used) = (0, 0);
    for trace in traces_in(&folder) {
        let small = ["gc-basic", "gc-allocsampled-types", "gc-server-survival", "ipc-two-b", "hello-default"];
        if small.iter().any(|name| trace.name.starts_with(name)) {
            let (triggers, with_collection) = check_triggers(&trace.name, &Dataset::of(&trace.path));
            all += triggers;
            used += with_collection;
        }
    }
    assert!(all > 50 && used * 10 >= all * 9, "{used} of {all}");
}

/// What a thread does at a join: (start, end, thread, heap, kind, join).
type Join = (i64, Option<i64>, u64, Option<u64>, String, Option<u64>);

fn joins(dataset: &Dataset) -> Vec<Join> {
    let table = dataset.table("gc_join");
    let (start, end, thread) = (table.signed("start_ts_ns"), table.signed("end_ts_ns"), table.numbers("thread_id"));
    let (heap, kind, id) = (table.optional("heap_index"), table.texts("kind"), table.optional("join_id"));
    (0..table.rows())
        .map(|row| (start[row].unwrap(), end[row], thread[row], heap[row], kind[row].clone(), id[row]))
        .collect()
}

#[test]
fn threads_of_the_collector_wait_until_one_is_alone() {
    let sample = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/server-gc.nettrace");
    let mut recordings = vec![("server-gc".to_owned(), sample)];
    if let Some(folder) = shared_traces("threads_of_the_collector_wait_until_one_is_alone") {
        let own = traces_in(&folder).into_iter().filter(|trace| trace.name.starts_with("gc-server-survival"));
        recordings.extend(own.map(|trace| (trace.name, trace.path)));
    }
    for (name, path) in recordings {
        let dataset = Dataset::of(&path);
        let (rows, raw) = (joins(&dataset), events(&dataset, "GCJoin").expect("joins"));
        let (kinds, moments) = (raw.numbers("join_type"), raw.numbers("join_time"));
        let begun = |types: &[u64]| kinds.iter().zip(&moments).filter(|(t, m)| types.contains(t) && **m == 0).count();
        let of = |kind: &str| rows.iter().filter(|row| row.4 == kind).collect::<Vec<_>>();
        let (waits, alone, restarts) = (of("wait"), of("alone"), of("restart"));
        assert_eq!([waits.len(), alone.len(), restarts.len()], [begun(&[1]), begun(&[0, 3]), begun(&[2])], "{name}");
        assert!(waits.len() > 20, "{name}");
        // A wait is over when the last thread has come to the same join: that one is alone from then on.
        let mut met = 0;
        for (start, end, thread, _, _, id) in &waits {
            let Some(end) = end else { continue };
            // The events of both may come in either order.
            let overlaps = |other: &Join| other.0 <= *end && other.1.is_none_or(|other_end| other_end >= *start);
            let last = |other: &&&Join| other.5 == *id && other.2 != *thread && overlaps(other);
            met += usize::from(alone.iter().find(last).is_some());
        }
        assert!(met * 100 >= waits.len() * 95, "{name}: {met} of {}", waits.len());
        assert!(restarts.iter().all(|row| row.1 >= Some(row.0) && row.3.is_none() && row.5.is_none()), "{name}");
    }
}

/// A recording of known contents: waits of three threads, one with another reason at its end, one without an end, and
/// an end alone.
#[test]
fn who_allocates_during_a_background_collection_waits() {
    const BEGIN: u32 = 23;
    const END: u32 = 24;
    let events: [(u32, u64, i64, u32); 9] = [
        (BEGIN, 1, 1000, 11),
        (BEGIN, 2, 1500, 3),
        (END, 1, 4000, 11),
        (END, 2, 2500, 3),
        // A reason without a name.
        (BEGIN, 1, 5000, 99),
        (END, 1, 5250, 99),
        // The end of the first is lost.
        (BEGIN, 3, 6000, 0),
        (BEGIN, 3, 7000, 6),
        (END, 4, 8000, 11),
    ];
    let mut writer = Writer::new(Form::V4);
    let kind = |id| Kind { id, provider: "Microsoft-Windows-DotNETRuntimePrivate", event_id: id, version: 0, name: "" };
    writer.metadata(&[kind(BEGIN), kind(END)]);
    let mut sorted = events;
    sorted.sort_by_key(|event| event.2);
    let mut sequences = [0u32; 5];
    for (metadata_id, thread, ticks, reason) in sorted {
        let sequence = &mut sequences[thread as usize];
        *sequence += 1;
        let payload = [&reason.to_le_bytes()[..], &[0, 0]].concat();
        let row =
            Row { metadata_id, sequence: *sequence, capture_thread: thread, thread, ticks, payload, ..Row::default() };
        writer.events(&[row]);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), writer.end()).unwrap();
    let table = Dataset::of(file.path()).table("gc_allocation_wait");
    let (start, end, reasons) = (table.signed("start_ts_ns"), table.signed("end_ts_ns"), table.texts("reason"));
    let first = start.iter().flatten().min().copied().unwrap();
    let rows: Vec<(u64, i64, Option<i64>, &str)> = (0..table.rows())
        .map(|row| {
            let (start, end) = (start[row].unwrap() - first, end[row].map(|end| end - first));
            (table.numbers("thread_id")[row], start, end, reasons[row].as_str())
        })
        .collect();
    // The writer's clock has ticks of 100 ns.
    let expected = [
        (1, 0, Some(300_000), "uoh_alloc_during_bgc"),
        (2, 50_000, Some(150_000), "loh_alloc"),
        (1, 400_000, Some(425_000), ""),
        (3, 500_000, None, "low_memory"),
        (3, 600_000, None, "gen0_oos_bgc"),
    ];
    assert_eq!(rows, expected);
}
