//! A recording gives the same bytes on one processor, where the thread that reads decodes as well, and on all.

use std::path::Path;
use std::process::Command;

use crate::support::dataset::Table;
use crate::support::files::files;
use crate::support::writer::{Form, Kind, Row, Type, Writer, utf16};

const EVENTS: u32 = 120_000;
const PAIR: Kind<'_> = Kind { id: 1, provider: "A", event_id: 1, version: 0, name: "Pair" };
const LONG: Kind<'_> = Kind { id: 2, provider: "A", event_id: 2, version: 0, name: "Long" };

/// Of three events two are pairs of a number and a text. Some pairs end too early, and some go on behind their text.
fn event(number: u32) -> Row {
    let mut payload = Vec::new();
    let metadata_id = if number % 3 == 2 { LONG.id } else { PAIR.id };
    if metadata_id == LONG.id {
        payload.extend((u64::from(number) << 20).to_le_bytes());
    } else {
        payload.extend(u64::from(number).to_le_bytes());
        utf16(&mut payload, &format!("text {}", number % 1000));
        if is_short(number) {
            payload.truncate(10);
        } else if is_long(number) {
            payload.extend([1, 2, 3]);
        }
    }
    Row { metadata_id, sequence: number + 1, ticks: i64::from(number), sorted: true, payload, ..Row::default() }
}

fn is_short(number: u32) -> bool {
    number % 3 != 2 && number.is_multiple_of(700)
}

fn is_long(number: u32) -> bool {
    number % 3 != 2 && number % 1100 == 1
}

/// Converts on all processors, or on the first alone.
fn convert(recording: &Path, out: &Path, alone: bool) {
    let program = env!("CARGO_BIN_EXE_tracequet");
    let mut command = Command::new(if alone { "taskset" } else { program });
    if alone {
        command.args(["--cpu-list", "0", program]);
    }
    let run = command.args(["convert", "--quiet"]).arg(recording).arg("-o").arg(out).output().unwrap();
    assert_eq!(run.status.code(), Some(2), "{run:?}");
}

#[test]
fn the_number_of_processors_changes_no_byte_and_no_event() {
    let folder = tempfile::tempdir().unwrap();
    let [recording, alone, all] = ["a.nettrace", "alone", "all"].map(|name| folder.path().join(name));
    let mut writer = Writer::new(Form::V4);
    writer.described(PAIR, &[("number", Type::Long), ("text", Type::String)]).described(LONG, &[("value", Type::Long)]);
    let rows: Vec<Row> = (0..EVENTS).map(event).collect();
    rows.chunks(500).for_each(|rows| _ = writer.events(rows));
    std::fs::write(&recording, writer.end()).unwrap();
    convert(&recording, &alone, true);
    convert(&recording, &all, false);
    let (alone, files_of_all) = (files(&alone), files(&all));
    assert_eq!(alone.keys().collect::<Vec<_>>(), files_of_all.keys().collect::<Vec<_>>());
    let differ: Vec<&String> = alone.keys().filter(|name| alone[*name] != files_of_all[*name]).collect();
    // The manifest says how long it took.
    assert!(differ.iter().all(|name| *name == "manifest.json"), "{differ:?}");

    let pairs: Vec<u32> = (0..EVENTS).filter(|number| number % 3 != 2).collect();
    let table = Table::open(&all.join("event/A/Pair.parquet"));
    assert_eq!(table.signed("ts_ns"), pairs.iter().map(|number| Some(i64::from(*number) * 100)).collect::<Vec<_>>());
    assert_eq!(table.numbers("number"), pairs.iter().map(|number| u64::from(*number)).collect::<Vec<_>>());
    let text = |number: &u32| if is_short(*number) { "t".to_owned() } else { format!("text {}", number % 1000) };
    assert_eq!(table.texts("text"), pairs.iter().map(text).collect::<Vec<_>>());
    let longs = (0..EVENTS).filter(|number| number % 3 == 2).map(|number| u64::from(number) << 20);
    assert_eq!(Table::open(&all.join("event/A/Long.parquet")).numbers("value"), longs.collect::<Vec<_>>());

    let (short, long) = (pairs.iter().filter(|n| is_short(**n)).count(), pairs.iter().filter(|n| is_long(**n)).count());
    let kinds = Table::open(&all.join("event_type.parquet"));
    let pair = kinds.texts("event_name").iter().position(|name| name == "Pair").unwrap();
    let counted = ["event_count", "shorter_count", "longer_count"].map(|column| kinds.numbers(column)[pair]);
    assert_eq!(counted, [pairs.len() as u64, short as u64, long as u64]);
    assert!(short > 100, "more than are reported one by one");
    let problems = Table::open(&all.join("diagnostic.parquet"));
    let of_short =
        problems.texts("code").into_iter().zip(problems.numbers("count")).filter(|(code, _)| code == "short_payload");
    let counts: Vec<u64> = of_short.map(|(_, count)| count).collect();
    assert_eq!((counts.len(), counts.iter().sum::<u64>()), (101, short as u64), "{counts:?}");
}
