//! Processes, threads, modules and CPU samples of an .etl as tables.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use tracequet::Convert;

use super::expected::{Shared, shared_file};
use super::writer::*;
use crate::support::collect::Recording;
use crate::support::dataset::{Dataset, Table};
use crate::support::expected::shared_folder;

const CLR: [u8; 16] = [0x23, 0x0D, 0x3C, 0xE1, 0xBC, 0xCC, 0x12, 0x4E, 0x93, 0x1B, 0xD9, 0xCC, 0x2E, 0xEE, 0x27, 0xE4];

fn written(events: &[Vec<u8>]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("written.etl");
    std::fs::write(&path, Writer::new().events(1, events).bytes).expect("room");
    (folder, path)
}

fn only(path: &std::path::Path, process: &str) -> Dataset {
    let (inputs, processes) = (vec![path.to_owned()], vec![process.to_owned()]);
    Dataset::with(Convert::default().inputs(inputs).processes(processes))
}

/// Frames of a call stack, innermost first.
fn stack(callsites: &Table, id: u64) -> Vec<u64> {
    let (ids, parents) = (callsites.numbers("callsite_id"), callsites.numbers("parent_callsite_id"));
    let addresses = callsites.numbers("address");
    let mut out = Vec::new();
    let mut next = id;
    while let Some(index) = ids.iter().position(|known| *known == next) {
        out.push(addresses[index]);
        next = parents[index];
    }
    out
}

/// Two processes with the same id, one after the other, each in its collection number 1.
fn reused() -> Vec<Vec<u8>> {
    let gc_start = |ticks| by(event(19, CLR, 1, ticks, &[], &[1, 0, 0, 0, 0, 0, 0, 0]), 5, 7);
    let gc_end = |ticks| by(event(19, CLR, 2, ticks, &[], &[1, 0, 0, 0, 0, 0, 0, 0]), 5, 7);
    vec![
        image(3, 1005, 0, 0xFFFF_F800_0000_0000, r"\SystemRoot\kernel.exe"),
        process(3, 1010, 5, "old.exe", 259),
        thread(3, 1011, 5, 7),
        image(3, 1012, 5, 0x40_0000, r"\Device\old.exe"),
        sample(1015, 7, 0x40_0010, 8 << 3),
        gc_start(1020),
        thread(2, 1029, 5, 7),
        process(2, 1030, 5, "old.exe", -3),
        by(process(1, 1040, 5, "new.exe", 259), 4, 9),
        thread(1, 1041, 5, 7),
        image(10, 1042, 5, 0x40_0000, r"\Device\new.exe"),
        image(10, 1043, 5, 0x50_0000, r"\Device\new.dll"),
        gc_start(1050),
        sample(1055, 7, 0x40_0020, 8 << 3),
        stack_walk(1056, 1055, 7, &[0x40_0020, 0x40_0001]),
        sample(1056, 0, 1, 0),
        sample(1057, 99, 1, 0),
        image(2, 1058, 5, 0x40_0000, r"\Device\new.exe"),
        gc_end(1060),
        // The first place had two modules: which one is meant is not said.
        pdb_id(1070, 5, 0x40_0000),
        pdb_id(1070, 5, 0x50_0000),
    ]
}

/// The same as a file.
pub fn recording() -> Vec<u8> {
    Writer::new().events(1, &reused()).bytes
}

#[test]
fn processes_with_the_same_id_do_not_mix() {
    let (_folder, path) = written(&reused());
    let dataset = Dataset::of(&path);
    let processes = dataset.table("process");
    let of_five = |table: &Table| table.numbers("process_id").iter().map(|id| *id == 5).collect::<Vec<_>>();
    let pick = |texts: Vec<String>, is: &[bool]| {
        texts.into_iter().zip(is).filter(|(_, is)| **is).map(|(t, _)| t).collect::<Vec<_>>()
    };
    let signed = |table: &Table, name: &str, is: &[bool]| {
        table.signed(name).into_iter().zip(is).filter(|(_, is)| **is).map(|(v, _)| v).collect::<Vec<_>>()
    };
    let is = of_five(&processes);
    assert_eq!(pick(processes.texts("name"), &is), ["old.exe", "new.exe"]);
    assert_eq!(pick(processes.texts("command_line"), &is), ["old.exe -x", "new.exe -x"]);
    assert_eq!(signed(&processes, "start_ts_ns", &is), [None, Some(4_000)]);
    assert_eq!(signed(&processes, "end_ts_ns", &is), [Some(3_000), None]);
    assert_eq!(signed(&processes, "exit_code", &is), [Some(-3), None]);
    // All but the header and the sample of a thread that is not known.
    assert_eq!(dataset.summary.inputs[0].events, 22);
    assert_eq!(processes.numbers("event_count").iter().sum::<u64>(), 20);
    let gc = dataset.table("gc");
    assert_eq!((gc.numbers("gc_number"), gc.bools("complete")), (vec![1, 1], vec![false, true]));
    assert_eq!(gc.signed("start_ts_ns"), [Some(2_000), Some(5_000)]);
    let threads = dataset.table("thread");
    let is: Vec<bool> = threads.numbers("thread_id").iter().map(|id| *id == 7).collect();
    assert_eq!(signed(&threads, "start_ts_ns", &is), [None, Some(4_100)]);
    assert_eq!(signed(&threads, "end_ts_ns", &is), [Some(2_900), None]);
    let modules = dataset.table("module");
    let paths = [r"\SystemRoot\kernel.exe", r"\Device\old.exe", r"\Device\new.exe", r"\Device\new.dll"];
    assert_eq!(modules.texts("path"), paths);
    assert_eq!(modules.signed("load_ts_ns"), [None, None, Some(4_200), Some(4_300)]);
    assert_eq!(modules.signed("unload_ts_ns"), [None, None, Some(5_800), None]);
    assert_eq!(modules.numbers("size_bytes"), [0x2000; 4]);
    assert_eq!(modules.texts("pdb_path"), ["", "", "", "app.pdb"]);
    assert_eq!(modules.optional("pdb_age"), [None, None, None, Some(3)]);
    let samples = dataset.table("cpu_sample");
    assert_eq!(samples.numbers("process_id"), [5, 5, 0, u64::from(u32::MAX)], "by their threads; 99 is not known");
    assert_eq!(samples.texts("kind"), ["thread", "thread", "idle", "thread"]);
    assert_eq!(samples.numbers("priority"), [8, 8, 0, 0]);
    let ids = samples.numbers("callsite_id");
    assert_eq!((ids[0], stack(&dataset.table("callsite"), ids[1])), (0, vec![0x40_0020, 0x40_0001]));
    assert_eq!(dataset.table("event/Windows-Kernel-StackWalk/Stack").rows(), 0);
}

#[test]
fn a_process_is_chosen_with_its_kernel_events() {
    let (_folder, path) = written(&reused());
    let dataset = only(&path, "new");
    let names = dataset.table("process").texts("name");
    assert!(names.contains(&"new.exe".to_owned()) && !names.contains(&"old.exe".to_owned()), "{names:?}");
    assert_eq!(dataset.table("cpu_sample").signed("ts_ns"), [Some(5_500)]);
    assert_eq!(dataset.table("gc").rows(), 1);
    // The kernel's modules are in every process.
    let paths = [r"\SystemRoot\kernel.exe", r"\Device\new.exe", r"\Device\new.dll"];
    assert_eq!(dataset.table("module").texts("path"), paths);
    assert_eq!(dataset.table("module").texts("pdb_path")[2], "app.pdb");
    // The header event is about the machine.
    assert_eq!(dataset.summary.inputs[0].events, 13);
}

/// The same table for samples of other kinds of recordings: each event is a row, with its stack.
#[test]
fn samples_of_eventpipe_are_rows_of_the_same_table() {
    let Some(folder) = shared_folder("samples_of_eventpipe_are_rows_of_the_same_table", "nettrace") else { return };
    for (name, table, kinds) in [
        ("v6-record-trace-universal", "Universal.Events/cpu", &[""][..]),
        (
            "mixed_managed_external_samples",
            "Microsoft-DotNETCore-SampleProfiler/ThreadSample",
            &["external", "managed"],
        ),
    ] {
        let dataset = Dataset::of(&folder.join(format!("{name}.nettrace")));
        let (samples, events) = (dataset.table("cpu_sample"), dataset.table(&format!("event/{table}")));
        assert!(samples.rows() > 0);
        for column in ["process_id", "thread_id", "callsite_id"] {
            assert_eq!(samples.numbers(column), events.numbers(column), "{name}: {column}");
        }
        let found: std::collections::BTreeSet<String> = samples.texts("kind").into_iter().collect();
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), kinds, "{name}");
    }
}

fn x64(test: &str) -> Option<Shared> {
    shared_file(test, "net.4.5.2.x64.etl")
}

/// Whom kernel events are about, against the first five events of each kind that TraceEvent printed.
#[test]
fn kernel_events_are_about_whom_trace_event_says() {
    let Some(file) = x64("kernel_events_are_about_whom_trace_event_says") else { return };
    let path = file.path.with_file_name("net.4.5.2.x64.traceevent-baseline.txt.gz");
    let lines = BufReader::new(flate2::read::MultiGzDecoder::new(std::fs::File::open(path).expect("a list"))).lines();
    let lines: Vec<String> = lines.map(|line| line.expect("a line")).collect();
    let recording = Recording::open(&file.path);
    let clock = recording.info.as_ref().expect("a header").clock;
    let mut by_time: HashMap<(i64, u64, usize), Vec<(u64, u64)>> = HashMap::new();
    for seen in &recording.events {
        let ns = clock.since_start(seen.ticks).expect("a time");
        let thread = &recording.threads[seen.thread as usize];
        // The list has microseconds, rounded one way or the other.
        for us in [ns / 1000, ns / 1000 + 1] {
            let key = (us, u64::from(seen.processor), seen.payload.len());
            by_time.entry(key).or_default().push((thread.process_id, thread.thread_id));
        }
    }
    let groups =
        ["PerfInfo/Sample", "Thread/", "Process/", "Image/", "DiskIO/", "Memory/HardFault", "TcpIp/", "UdpIp/"];
    let mut checked = 0;
    for line in &lines {
        let Some((time, rest)) = line.strip_prefix("EVENT ").and_then(|l| l.split_once(": Windows Kernel/")) else {
            continue;
        };
        let name = rest.split(' ').next().expect("a name");
        // Of a flush TraceEvent reads the ids from a place where they are not; of the begin of a transfer it leaves the
        // thread that the processor ran, which is not always the one that asked for it.
        let differs = name == "DiskIO/FlushBuffers" || name.ends_with("Init");
        if !groups.iter().any(|group| name.starts_with(group)) || differs {
            continue;
        }
        let number = |key: &str| {
            let text = rest.split_once(key).expect(key).1.split_once(';').expect("an end").0;
            text.replace(',', "").parse::<i64>().expect("a number")
        };
        let us = time.replace([',', '.'], "").parse().expect("a time");
        let (process, thread) = (number(" PID=") as u32, number(" TID="));
        let key = (us, number("ProceNum=") as u64, number("DataLen=") as usize);
        let ours = by_time.get(&key).unwrap_or_else(|| panic!("no event for {line}"));
        let same = |(p, t): &(u64, u64)| *p == u64::from(process) && (thread == -1 || *t == thread as u64);
        assert!(ours.iter().any(same), "{ours:?} for {line}");
        checked += 1;
    }
    assert!(checked > 60, "{checked}");
    let samples = Dataset::of(&file.path).table("cpu_sample");
    // It leaves out idle processors.
    let busy = samples.texts("kind").iter().filter(|kind| *kind != "idle").count();
    assert_eq!(samples.rows(), 79_528);
    assert!(lines.contains(&format!("COUNT Windows Kernel/PerfInfo/Sample:{busy}")), "{busy}");
}

/// Modules of a real file: all of its images, each address of a sample in at most one of them.
#[test]
fn modules_of_a_real_file() {
    let Some(file) = x64("modules_of_a_real_file") else { return };
    let dataset = Dataset::of(&file.path);
    let modules = dataset.table("module");
    let rows = |name: &str| dataset.table(&format!("event/Windows-Kernel-Image/{name}")).rows();
    let (loaded, listed) = (rows("Load"), rows("DCEnd").max(rows("DCStart")));
    assert!((listed..=listed + loaded).contains(&modules.rows()), "{} of {listed} + {loaded}", modules.rows());
    assert_eq!(modules.signed("unload_ts_ns").iter().flatten().count(), rows("Unload"));
    let ranges: Vec<_> = modules.numbers("base_address").into_iter().zip(modules.numbers("size_bytes")).collect();
    let owners = modules.numbers("process_id");
    let paths = modules.texts("path");
    let samples = dataset.table("cpu_sample");
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    for (process, at) in samples.numbers("process_id").into_iter().zip(samples.numbers("instruction_pointer")) {
        let holds =
            |i: &usize| [process, 0].contains(&owners[*i]) && (ranges[*i].0..ranges[*i].0 + ranges[*i].1).contains(&at);
        if let Some(index) = (0..ranges.len()).find(holds) {
            *found.entry(paths[index].rsplit('\\').next().unwrap_or_default()).or_default() += 1;
        }
    }
    println!("{found:?}");
    assert!(found.values().sum::<u64>() * 10 > samples.rows() as u64 * 9, "{found:?}");
    assert!(modules.texts("pdb_guid").iter().any(|guid| !guid.is_empty()));
}

#[test]
fn a_page_of_three_hundred_processes_says_whose_collections_it_has() {
    let numbers = |numbers: &[u32]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let mut events = vec![];
    for process_id in 1000..1300u32 {
        events.push(process(3, TICKS, process_id, &format!("app{process_id}.exe"), 0));
        // One of them has two collections.
        for collection in 0..1 + u32::from(process_id == 1250) {
            let at = TICKS + i64::from(process_id) * 100 + i64::from(collection) * 40;
            let start = event(19, CLR, 1, at, &[], &numbers(&[collection + 1, 0, 0, 0]));
            let end = event(19, CLR, 2, at + 9, &[], &numbers(&[collection + 1, 0]));
            events.extend([start, end].map(|event| by(event, process_id, process_id + 1)));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.etl");
    std::fs::write(&path, Writer::file(&events)).unwrap();
    let request = Convert::new([path], folder.path().join("set")).tables(tracequet::report::TABLES);
    tracequet::convert(&request, &mut |_| {}).unwrap();
    let dataset = tracequet::dataset::read::Dataset::open(folder.path().join("set")).unwrap();
    let html = tracequet::report::page(&dataset.recording(None).unwrap()).unwrap();
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
    assert!(html.contains("All of them: 2 collections. Of process 1250, which has most; 299 more have collections."));
    assert!(html.contains("<p class=\"note\">Of all processes together.</p>"));
    let (head, _) = html.split_once("</header>").unwrap();
    assert!(head.contains("<dd>1250, app1250.exe"), "the one with the most events is listed: {head}");
    assert!(head.contains(" more, with fewer events</dd>"), "{head}");
}
