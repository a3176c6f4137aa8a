//! Recordings of a whole machine: lists that one thread writes for all processes, symbols by time, layouts of Windows
//! 7, the part of a recording that is asked for.

use std::path::{Path, PathBuf};

use tracequet::Convert;

use super::writer::*;
use crate::support::dataset::Dataset;

fn written(events: &[Vec<u8>]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("written.etl");
    std::fs::write(&path, Writer::new().events(1, events).bytes).expect("room");
    (folder, path)
}

fn dataset(events: &[Vec<u8>]) -> Dataset {
    let (_folder, path) = written(events);
    Dataset::of(&path)
}

#[test]
fn the_thread_that_writes_lists_is_one_thread_of_one_process() {
    // Thread 7 of process 5 ends the session. It is attached to each process whose images it lists.
    let lists = (10..30u32).map(|process| by(image(4, 1020, process, 0x40_0000, "a.dll"), process, 7));
    let events: Vec<_> = [thread(3, 1001, 5, 7)].into_iter().chain(lists).collect();
    let threads = dataset(&events).table("thread");
    let of_seven = threads.numbers("thread_id").into_iter().zip(threads.numbers("process_id"));
    assert_eq!(of_seven.filter(|(thread, _)| *thread == 7).collect::<Vec<_>>(), [(7, 5)]);
}

#[test]
fn symbols_go_to_the_module_that_was_there_at_the_time() {
    let aged = |ticks, base, age: u8| {
        let mut event = pdb_id(ticks, 5, base);
        let at = event.len() - b"app.pdb\0".len() - 4;
        event[at] = age;
        event
    };
    let modules = dataset(&[
        // The symbols have the time of the event of their image, before or after it.
        aged(1010, 0x40_0000, 1),
        image(10, 1010, 5, 0x40_0000, "first.dll"),
        image(2, 1020, 5, 0x40_0000, "first.dll"),
        image(10, 1030, 5, 0x40_0000, "second.dll"),
        aged(1030, 0x40_0000, 2),
        image(2, 1040, 5, 0x40_0000, "second.dll"),
        // Nothing was there.
        aged(1045, 0x40_0000, 3),
        image(10, 1050, 5, 0x40_0000, "third.dll"),
        image(10, 1060, 5, 0x50_0000, "alone.dll"),
        aged(1055, 0x50_0000, 4),
    ])
    .table("module");
    assert_eq!(modules.texts("path"), ["first.dll", "second.dll", "third.dll", "alone.dll"]);
    assert_eq!(modules.optional("pdb_age"), [Some(1), Some(2), None, Some(4)]);
}

/// A process that had ended, in the list at the start, in the layout of a version.
fn defunct(version: u8, process_id: u32, name: &str) -> Vec<u8> {
    let mut event = process(39, 1005, process_id, name, -7);
    event[0] = version;
    event
}

#[test]
fn processes_that_have_ended_already_have_their_names() {
    let processes = dataset(&[defunct(3, 6, "gone.exe"), sample(1010, 7, 1, 0)]).table("process");
    let gone = processes.numbers("process_id").iter().position(|id| *id == 6).expect("a row");
    assert_eq!(processes.texts("name")[gone], "gone.exe");
    assert_eq!(processes.numbers("parent_process_id")[gone], 4);
    assert_eq!(processes.signed("exit_code")[gone], Some(-7));
}

#[test]
fn layouts_of_windows_7_are_decoded() {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let transfer = [words(&[1, 2, 512, 0]), [4096u64, 5, 6, 77].map(u64::to_le_bytes).concat()].concat();
    let flush = [words(&[1, 2]), [88u64, 6].map(u64::to_le_bytes).concat()].concat();
    let names = ["PCI\\VEN_8086", "Chipset", "PCI bus"];
    let device: Vec<u8> = names
        .iter()
        .flat_map(|name| format!("{name}\0").encode_utf16().collect::<Vec<_>>())
        .flat_map(u16::to_le_bytes)
        .collect();
    let device = [words(&names.map(|name| name.len() as u32 + 1)), device].concat();
    let dataset = dataset(&[
        system(0x0B, 22, 3, 1009, &device),
        system(1, 10, 2, 1010, &transfer),
        system(1, 11, 2, 1011, &transfer),
        system(1, 12, 2, 1012, &6u64.to_le_bytes()),
        system(1, 14, 2, 1013, &flush),
        perf_info(0x0F, 73, 2, 1014, &words(&[0, 10_000, 5_000])),
        defunct(3, 6, "gone.exe"),
    ]);
    let kinds = dataset.table("event_type");
    let decoded: Vec<_> = kinds.texts("event_name").into_iter().zip(kinds.texts("decoded")).collect();
    for name in ["Read", "Write", "ReadInit", "FlushBuffers", "IntervalStart", "Defunct", "PnP"] {
        assert!(decoded.contains(&(name.to_owned(), "full".to_owned())), "{name}: {decoded:?}");
    }
    assert_eq!(dataset.table("event/Windows-Kernel-DiskIo/Read").numbers("high_res_response_time"), [77]);
    let device = dataset.table("event/Windows-Kernel-SystemConfig/PnP");
    let columns = ["device_id", "device_description", "friendly_name"].map(|column| device.texts(column));
    assert_eq!(columns.concat(), names);
    assert_eq!(dataset.table("event/Windows-Kernel-PerfInfo/IntervalStart").numbers("new_interval"), [10_000]);
}

#[test]
fn the_interval_between_samples_is_that_of_the_timer() {
    let interval = |opcode, version, source: u32, new: u32| {
        let name: &[u8] = if version == 3 { &[b'T', 0, 0, 0] } else { &[] };
        let words = [source, new, 1].map(u32::to_le_bytes).concat();
        perf_info(0x0F, opcode, version, 1010, &[&words, name].concat())
    };
    let of = |events: &[Vec<u8>]| dataset(events).table("trace").numbers("sampling_ns")[0];
    // A counter of the processor counts something else.
    assert_eq!(of(&[interval(73, 3, 2, 65_536), interval(73, 3, 0, 10_000)]), 1_000_000);
    assert_eq!(of(&[interval(72, 2, 0, 1_221)]), 122_100);
    assert_eq!(of(&[interval(74, 3, 0, 5)]), 0, "the interval of the end is that of nobody's samples");
}

fn part(path: &Path, change: impl FnOnce(Convert) -> Convert) -> Dataset {
    Dataset::with(change(Convert::default().inputs([path])))
}

#[test]
fn a_part_of_the_time_has_the_modules_and_methods_of_all() {
    let (method, namespace) = ([1u64, 2, 0x7000].map(u64::to_le_bytes).concat(), "N\0M\0S\0");
    let text: Vec<u8> = namespace.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let method = [&method, &[1, 0, 0, 0, 9, 0, 0, 6, 0, 0, 0, 0][..], &text, &[8, 0], &[0; 8]].concat();
    let mut loaded = event(19, RUNTIME, 143, TICKS + 900, &[], &method);
    loaded[0x2A] = 1;
    let (_folder, path) = written(&[
        image(3, TICKS + 10, 5, 0x40_0000, "a.dll"),
        sample(TICKS + 20, 7, 0x40_0010, 0),
        sample(TICKS + 500, 7, 0x40_0020, 0),
        loaded,
        by(image(4, TICKS + 950, 5, 0x50_0000, "b.dll"), 5, 7),
        pdb_id(TICKS + 950, 5, 0x50_0000),
    ]);
    // Ticks are 100 ns.
    let dataset = part(&path, |request| request.from_ns(40_000).to_ns(60_000));
    assert_eq!(dataset.table("cpu_sample").rows(), 1);
    assert_eq!(dataset.table("module").texts("path"), ["a.dll", "b.dll"]);
    assert_eq!(dataset.table("module").texts("pdb_path"), ["", "app.pdb"]);
    assert_eq!(dataset.table("method").texts("name"), ["M"]);
    assert_eq!(dataset.summary.inputs[0].events, 1);
}

#[test]
fn threads_are_those_of_the_process_that_is_asked_for() {
    let (_folder, path) = written(&[
        process(3, 1001, 5, "wanted.exe", 259),
        process(3, 1001, 6, "other.exe", 259),
        thread(3, 1002, 5, 7),
        thread(3, 1002, 6, 8),
        sample(1010, 7, 1, 0),
        sample(1010, 8, 1, 0),
    ]);
    let dataset = part(&path, |request| request.processes(["wanted"]));
    assert_eq!(dataset.table("thread").numbers("thread_id"), [7]);
    let all = part(&path, |request| request);
    assert!(all.table("thread").numbers("thread_id").contains(&8));
}

/// .NET Framework up to 4.5.2 sends the history of the heap by its private provider, in layouts that only their size
/// identifies apart.
#[test]
fn the_heap_history_of_net_framework_4_5_is_that_of_the_collection() {
    const PRIVATE: [u8; 16] =
        [0x54, 0xD7, 0x3F, 0x76, 0x86, 0x70, 0xFE, 0x4D, 0x95, 0xEB, 0xC0, 0x1A, 0x46, 0xFA, 0xF4, 0xCA];
    let clr = |provider, ticks, id, version, payload: &[u8]| {
        event_by(By { form: 19, process_id: 5, thread_id: 7, ticks }, provider, id, version, &[], payload)
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    // The layout of 433 bytes: five generations of ten sizes; the last field is the number of the runtime.
    let sizes: Vec<u8> = (0..50u64).flat_map(|n| (if n % 10 == 0 { 1000 + n } else { 7 }).to_le_bytes()).collect();
    let mut history = [&sizes[..], &[0; 33]].concat();
    let end = history.len();
    history[end - 1] = 8;
    let global = [&[0; 8][..], &words(&[4, 1, 0, 0, 3]), &[8, 0]].concat();
    let gc = dataset(&[
        clr(RUNTIME, 1010, 1, 1, &[&words(&[1, 0, 0, 0])[..], &[8, 0]].concat()),
        clr(RUNTIME, 1020, 2, 1, &[&words(&[1, 0])[..], &[8, 0]].concat()),
        clr(PRIVATE, 1021, 4, 2, &history),
        clr(PRIVATE, 1022, 5, 1, &global),
    ])
    .table("gc");
    assert_eq!(gc.optional("size_before_bytes"), [Some(5 * 1000 + 10 + 20 + 30 + 40)]);
    assert_eq!(gc.numbers("heap_count"), [4]);
}
