//! Hardware counters in the headers of events, their names, and the samples that they cause. No recording at hand has
//! them: they are written here from the documented layouts.

use super::writer::*;
use crate::support::dataset::{Dataset, Table};

/// The same PERFINFO event with hardware counters in front of its payload, and perhaps an index of precise sampling
/// before them.
fn counted(event: &[u8], pebs: Option<u64>, counters: &[u64]) -> Vec<u8> {
    let mut out = event[..0x10].to_vec();
    out[1] = counters.len() as u8 | if pebs.is_some() { 0x80 } else { 0 };
    out.extend(pebs.iter().chain(counters).flat_map(|number| number.to_le_bytes()));
    out.extend(&event[0x10..]);
    let size = (out.len() as u16).to_le_bytes();
    patch(&mut out, 4, size);
    out
}

fn switch(ticks: i64, new: u32, old: u32) -> Vec<u8> {
    let mut payload = [new, old].map(u32::to_le_bytes).concat();
    payload.extend([9, 8, 0, 0, 6, 1, 5, 0]);
    payload.extend([0; 8]);
    perf_info(5, 36, 2, ticks, &payload)
}

fn interval(opcode: u8, ticks: i64, source: u32, interval: u32, name: &str) -> Vec<u8> {
    let payload = [[source, interval, interval].map(u32::to_le_bytes).concat(), utf16(name)].concat();
    perf_info(0x0F, opcode, 3, ticks, &payload)
}

fn events() -> Vec<Vec<u8>> {
    let names = [2u32.to_le_bytes().to_vec(), utf16("TotalCycles"), utf16("CacheMisses")].concat();
    let sample_of = |ticks: i64, source: u16| {
        let payload = [
            0x7FF0_0000_1000u64.to_le_bytes().to_vec(),
            101u32.to_le_bytes().to_vec(),
            source.to_le_bytes().to_vec(),
            vec![0; 2],
        ];
        perf_info(0x0F, 47, 2, ticks, &payload.concat())
    };
    let by = By { form: 19, process_id: 50, thread_id: 101, ticks: 1090 };
    let counters = [5u64, 6].map(u64::to_le_bytes).concat();
    vec![
        process(3, 1000, 50, "app.exe", 259),
        thread(3, 1000, 50, 101),
        perf_info(0x0F, 48, 2, 1001, &names),
        interval(73, 1002, 0, 10_000, "Timer"),
        interval(73, 1002, 11, 65_536, "CacheMisses"),
        counted(&switch(1010, 101, 0), None, &[1_000, 10]),
        counted(&sample(1020, 101, 0x7FF0_0000_1000, 0), None, &[1_500, 12]),
        sample_of(1030, 11),
        stack_walk(1031, 1030, 101, &[0x7FF0_0000_1000]),
        counted(&switch(1040, 0, 101), Some(77), &[4_000, 25]),
        switch(1050, 101, 0),
        event_by(by, [9; 16], 1, 0, &item(8, false, &counters), &[]),
        interval(74, 1100, 11, 65_536, "CacheMisses"),
    ]
}

fn written(bytes: &[u8]) -> Dataset {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("written.etl");
    std::fs::write(&path, bytes).expect("room");
    Dataset::of(&path)
}

fn lists(table: &Table, column: &str) -> Vec<Vec<u64>> {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt64Type;
    let list = |batch: &arrow_array::RecordBatch| -> Vec<Vec<u64>> {
        let lists = batch.column_by_name(column).expect("the column").as_list::<i32>().clone();
        (0..lists.len()).map(|row| lists.value(row).as_primitive::<UInt64Type>().values().to_vec()).collect()
    };
    table.batches.iter().flat_map(list).collect()
}

#[test]
fn hardware_counters_stand_beside_their_events() {
    let dataset = written(&Writer::file(&events()));
    let switches = dataset.table("context_switch");
    assert_eq!(lists(&switches, "hardware_counters"), [vec![1_000, 10], vec![4_000, 25], vec![]]);
    // What follows the counters is the payload.
    assert_eq!(switches.numbers("thread_id"), [101, 0, 101]);
    let samples = dataset.table("cpu_sample");
    assert_eq!(lists(&samples, "hardware_counters"), [[1_500, 12]]);
    assert_eq!(samples.numbers("thread_id"), [101]);

    let names = dataset.table("hardware_counter");
    assert_eq!(names.texts("kind"), ["counted", "counted", "sampled", "sampled"]);
    assert_eq!(names.texts("name"), ["TotalCycles", "CacheMisses", "Timer", "CacheMisses"]);
    assert_eq!(names.optional("counter_index"), [Some(1), Some(2), None, None]);
    assert_eq!(names.optional("source"), [None, None, Some(0), Some(11)]);
    assert_eq!(names.optional("interval_count"), [None, None, Some(10_000), Some(65_536)]);

    let sampled = dataset.table("hardware_sample");
    assert_eq!(
        (sampled.numbers("source"), sampled.numbers("thread_id"), sampled.numbers("process_id")),
        (vec![11], vec![101], vec![50])
    );
    assert!(sampled.numbers("callsite_id")[0] > 0, "it has its stack");

    // Events of other kinds have them among their labels.
    let other = dataset.table("event/09090909-0909-0909-0909-090909090909/event_1");
    assert_eq!(other.texts("labels"), [r#"{"hardware_counters":[5,6]}"#]);
    let switch = dataset.table("event/Windows-Kernel-Thread/CSwitch");
    assert_eq!(
        switch.texts("labels")[..2],
        [r#"{"hardware_counters":[1000,10]}"#, r#"{"hardware_counters":[4000,25]}"#]
    );
}

#[test]
fn views_add_hardware_counters_up() {
    let Some(python) = crate::support::python::python("views_add_hardware_counters_up") else { return };
    let dataset = written(&Writer::file(&events()));
    let query = "SELECT process_id, thread_id, counter_index, name, counted, intervals FROM hardware_counters_by_thread ORDER BY counter_index";
    let expected = "(50, 101, 1, 'TotalCycles', 3000, 1)\n(50, 101, 2, 'CacheMisses', 15, 1)\n";
    assert_eq!(crate::tables::queries::asked(&python, &dataset, query), expected);
}

/// Counters that do not fit into their event, and names that are not there, harm nothing beside them.
#[test]
fn hostile_counters_are_no_harm() {
    let whole = Writer::file(&events());
    let first = BUFFER_SIZE as usize + 0x48;
    for at in first..first + 600 {
        let mut bytes = whole.clone();
        bytes[at] = 0xFF;
        drop(super::hostile::read(&bytes));
    }
    // Seven counters in an event that has room for one: the rest of its buffer is lost.
    let mut short = counted(&switch(1010, 101, 0), None, &[1]);
    short.truncate(0x20);
    patch(&mut short, 4, 0x20u16.to_le_bytes());
    short[1] = 7;
    let recording = super::hostile::read(&Writer::file(&[sample(1005, 101, 1, 0), short]));
    assert_eq!((recording.events.len(), recording.codes()), (2, vec!["damaged_event"]));
    let names = [u32::MAX.to_le_bytes().to_vec(), utf16("a")].concat();
    let dataset = written(&Writer::file(&[perf_info(0x0F, 48, 2, 1001, &names)]));
    assert!(dataset.table("hardware_counter").rows() <= 1);
}
