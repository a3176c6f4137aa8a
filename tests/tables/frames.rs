//! What the frames of call stacks are: the names that TraceEvent gives, code that follows code, walks of the tree.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde_json::Value as Json;
use tracequet::inspect::frame_names;
use tracequet::trace::reader::etl::EventManifests;
use tracequet::trace::source::RecordingPath;

use crate::support::dataset::Dataset;
use crate::support::expected::{packed_lines, shared_folder, traces_in};
use crate::support::writer::{Form, Kind, Row, Writer};

/// Call sites of a dataset: parent and frame of each, the first one at index 1.
struct Stacks {
    sites: Vec<(usize, usize)>,
    names: Vec<String>,
}

impl Stacks {
    fn of(dataset: &Dataset) -> Stacks {
        let table = dataset.table("callsite");
        let numbers = |name: &str| table.numbers(name).into_iter().map(|number| number as usize);
        assert!(numbers("callsite_id").eq(1..=table.rows()));
        let sites = std::iter::once((0, 0)).chain(numbers("parent_callsite_id").zip(numbers("frame_id"))).collect();
        let frames = dataset.table("frame");
        assert!(frames.numbers("frame_id").into_iter().eq(1..=frames.rows() as u64));
        let names = std::iter::once(String::new()).chain(frames.texts("name")).collect();
        Stacks { sites, names }
    }

    /// The names of a stack, innermost first.
    fn names(&self, mut callsite: usize) -> Vec<&str> {
        let mut names = Vec::new();
        while callsite != 0 {
            let (parent, frame) = self.sites[callsite];
            names.push(self.names[frame].as_str());
            callsite = parent;
        }
        names
    }
}

/// A name of TraceEvent without the addresses of types that the runtime cannot name (`pMT: 00007F1C2A3B4C5D`), which the table leaves out.
fn without_addresses(name: &str) -> String {
    let mut parts = name.split("pMT: ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + "?" + part.trim_start_matches("0x").trim_start_matches(|digit: char| digit.is_ascii_hexdigit())
    })
}

/// Every frame of every sample against the names of TraceEvent, and the counts by method. Returns how many frames were compared.
fn compare_with_traceevent(path: &Path, mut expected: Vec<Json>) -> usize {
    let totals = expected.pop().expect("a line of totals");
    let name = path.display();
    let dataset = Dataset::of(path);
    let stacks = Stacks::of(&dataset);
    let samples = dataset.table("cpu_sample");
    let (times, threads) = (samples.signed("ts_ns"), samples.numbers("thread_id"));
    let mut by_time: HashMap<(i64, u64), Vec<usize>> = HashMap::new();
    for ((ts_ns, thread), callsite) in times.iter().zip(threads).zip(samples.numbers("callsite_id")) {
        // TraceEvent's milliseconds have six digits.
        by_time.entry((ts_ns.expect("a time") / 1000, thread)).or_default().push(callsite as usize);
    }
    assert_eq!(samples.rows(), expected.len(), "{name}");
    let (mut frames, mut unnamed) = (0, 0);
    for line in &expected {
        let micros = (line["ms"].as_f64().expect("a time") * 1000.0).floor() as i64;
        let thread = line["tid"].as_u64().expect("a thread");
        let names = line["frames"].as_array().expect("frames").iter();
        let names: Vec<String> = names.map(|name| without_addresses(name.as_str().unwrap())).collect();
        frames += names.len();
        unnamed += names.iter().filter(|name| *name == "?").count();
        let near = (-1..=1).filter_map(|off| by_time.get(&(micros + off, thread))).flatten();
        // TraceEvent has one name for all that has none.
        let plain = |name| if str::starts_with(name, '[') { "?" } else { name };
        let found: Vec<Vec<&str>> =
            near.map(|callsite| stacks.names(*callsite).into_iter().map(plain).collect()).collect();
        assert!(
            found.iter().any(|found| *found == names),
            "{name} at {micros} µs on {thread}: {names:?}, found {found:?}"
        );
    }
    // With the callees, by the places of the walk: each method once a stack.
    let sites = dataset.table("callsite");
    let (first, last) = (sites.numbers("walk_first"), sites.numbers("walk_last"));
    let mut own = vec![0u64; sites.rows() + 2];
    let callsites = samples.numbers("callsite_id");
    let with_stack = callsites.iter().filter(|callsite| **callsite != 0);
    with_stack.for_each(|callsite| own[first[*callsite as usize - 1] as usize + 1] += 1);
    let upto: Vec<u64> = own
        .iter()
        .scan(0, |sum, own| {
            *sum += own;
            Some(*sum)
        })
        .collect();
    let mut inclusive: BTreeMap<&str, u64> = BTreeMap::new();
    for (at, is_recursive) in sites.bools("is_recursive").into_iter().enumerate().filter(|(_, recursive)| !recursive) {
        assert!(!is_recursive);
        let name = stacks.names[stacks.sites[at + 1].1].as_str();
        *inclusive.entry(name).or_default() += upto[last[at] as usize + 1] - upto[first[at] as usize];
    }
    let mut reported: BTreeMap<String, u64> = BTreeMap::new();
    for (method, count) in totals["incl"].as_object().expect("counts").iter().filter(|(method, _)| *method != "?") {
        *reported.entry(without_addresses(method)).or_default() += count.as_u64().expect("a count");
    }
    for (method, count) in &reported {
        assert_eq!(inclusive.get(method.as_str()), Some(count), "{name}: {method}");
    }
    println!(
        "{name}: {frames} frames of {} stacks, {unnamed} without a name, {} methods",
        expected.len(),
        reported.len()
    );
    frames
}

#[test]
fn frames_have_the_names_that_traceevent_gives() {
    let Some(folder) = shared_folder("frames_have_the_names_that_traceevent_gives", "nettrace") else { return };
    let mut compared = 0;
    for trace in traces_in(&folder).into_iter().chain(traces_in(&folder.join("net10"))) {
        if let Some(expected) = trace.packed_lines("stacks") {
            compared += compare_with_traceevent(&trace.path, expected);
        }
    }
    assert!(compared > 200_000, "{compared}");
}

/// The same of a sample, whose names TraceEvent 4.0.0 resolved when it was recorded.
#[test]
fn frames_of_a_sample_have_the_names_that_traceevent_gives() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let expected = packed_lines(&folder.join("stacks.traceevent.jsonl.gz")).expect("what TraceEvent says");
    assert_eq!(compare_with_traceevent(&folder.join("stacks.nettrace"), expected), 3624);
}

/// What an address is that belongs to no method is said by where it lies, in tables and in exports.
#[test]
fn frames_without_a_name_say_what_they_are() {
    let kernel = 0xFFFF_8000_0000_1000u64;
    let stacks = [vec![0x1010, 0x9000], vec![0x1800, 0x9000], vec![0x7000_0000, 0x9000], vec![kernel, 0x9000]];
    let mut events = vec![
        (1, LOAD, 0, method(1, 0x1000, 0x40, true, "First")),
        (2, UNLOAD, 0, method(1, 0x1000, 0x40, true, "First")),
    ];
    events.extend((1..=4).map(|stack| sample(10 + i64::from(stack), stack)));
    events.push((90, LISTED, 0, method(9, 0x9000, 0x10, false, "Main")));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.nettrace");
    std::fs::write(&path, bytes(&stacks, &events)).unwrap();
    let frames = Dataset::of(&path).table("frame");
    let named = frames.bools("is_named");
    let kinds: Vec<_> = frames.texts("kind").into_iter().zip(frames.texts("name")).zip(named).collect();
    let expected = [
        ("managed", "App.Type.Main(int32)", true),
        ("unloaded", "[unloaded method]", false),
        ("unlisted", "[stub or unlisted method]", false),
        ("unknown", "[unknown]", false),
        ("kernel", "[kernel]", false),
    ];
    for (kind, name, is_named) in expected {
        assert!(kinds.contains(&((kind.into(), name.into()), is_named)), "{kind}: {kinds:?}");
    }
    assert_eq!(kinds.len(), expected.len());
    let program = || std::process::Command::new(env!("CARGO_BIN_EXE_tracequet"));
    let output = program().args(["export", "--format", "folded"]).arg(&path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let stats = program().arg("stats").arg(&path).env("COLUMNS", "200").output().unwrap();
    let stats = String::from_utf8(stats.stdout).unwrap();
    for name in expected.map(|(_, name, _)| name).iter().skip(1) {
        assert!(text.contains(&format!(";{name} ")), "{name}: {text}");
        assert!(stats.contains(&format!("cpu.by_method[{name}]")), "{name}: {stats}");
    }
}

/// `inspect --frames` counts as `convert` does.
#[test]
fn an_inspection_says_how_many_frames_have_a_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    for (sample, all_named) in [("stacks", true), ("subjects", false), ("gc-churn", false), ("exit-early", false)] {
        let path = folder.join(format!("{sample}.nettrace"));
        let recording = RecordingPath::all_in(&path).remove(0);
        let names = frame_names(&recording, &EventManifests::default()).unwrap().expect("call stacks");
        let dataset = Dataset::of(&path);
        let input = &dataset.summary.inputs[0];
        assert_eq!(names.counts, input.frames, "{sample}");
        assert!(names.counts.frames > 0 && (names.counts.named == names.counts.frames) == all_named, "{sample}");
        let reported = input.problems.iter().find(|p| p.code == "unnamed_frames").map(|p| p.message.clone());
        assert_eq!(names.unnamed, reported, "{sample}");
    }
    let callbacks = RecordingPath::all_in(&folder.join("callbacks.corprof")).remove(0);
    assert!(frame_names(&callbacks, &EventManifests::default()).unwrap().is_none());
}

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
const LOAD: u32 = 1;
const UNLOAD: u32 = 2;
const LISTED: u32 = 3;
pub const SAMPLE: u32 = 4;

/// Payload of MethodLoadVerbose, version 1: tier 3 (QuickJitted), and compiled by the JIT or ahead of time.
fn method(id: u64, start: u64, size: u32, jitted: bool, name: &str) -> Vec<u8> {
    let mut payload: Vec<u8> = [id, 0x77, start].iter().flat_map(|v| v.to_le_bytes()).collect();
    let flags = 3 << 7 | if jitted { 8 } else { 0 };
    payload.extend([size, 0x0600_0001, flags].iter().flat_map(|v: &u32| v.to_le_bytes()));
    for text in ["App.Type", name, "instance void  (int32)"] {
        payload.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    }
    payload.extend([0; 2]);
    payload
}

fn recording(stacks: &[Vec<u64>], events: &[(i64, u32, u32, Vec<u8>)]) -> Dataset {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.nettrace");
    std::fs::write(&path, bytes(stacks, events)).unwrap();
    Dataset::of(&path)
}

/// Of samples, `1` is a thread in external code and `2` one in managed code.
pub fn bytes(stacks: &[Vec<u64>], events: &[(i64, u32, u32, Vec<u8>)]) -> Vec<u8> {
    let kind = |id, provider, event_id, version| Kind { id, provider, event_id, version, name: "" };
    let kinds = [
        kind(LOAD, RUNTIME, 143, 1),
        kind(UNLOAD, RUNTIME, 144, 1),
        kind(LISTED, RUNDOWN, 144, 1),
        kind(SAMPLE, SAMPLER, 0, 0),
    ];
    let row = |(sequence, (ticks, metadata_id, stack_id, payload)): (usize, &(i64, u32, u32, Vec<u8>))| Row {
        metadata_id: *metadata_id,
        sequence: sequence as u32 + 1,
        capture_thread: 1,
        thread: 1,
        ticks: *ticks,
        stack_id: *stack_id,
        payload: payload.clone(),
        ..Row::default()
    };
    let rows: Vec<Row> = events.iter().enumerate().map(row).collect();
    Writer::new(Form::V4).metadata(&kinds).stacks(1, stacks).events(&rows).end()
}

fn sample(ticks: i64, stack_id: u32) -> (i64, u32, u32, Vec<u8>) {
    (ticks, SAMPLE, stack_id, 2u32.to_le_bytes().to_vec())
}

#[test]
fn an_address_is_named_by_the_code_that_was_there_at_that_time() {
    let dataset = recording(
        &[vec![0x1010, 0x9010], vec![0x1050], vec![0x9020]],
        &[
            sample(5, 1),
            (10, LOAD, 0, method(1, 0x1000, 0x40, true, "First")),
            sample(20, 1),
            (30, UNLOAD, 0, method(1, 0x1000, 0x40, true, "First")),
            sample(40, 1),
            (50, LOAD, 0, method(2, 0x1000, 0x80, true, "Second")),
            sample(60, 1),
            sample(61, 2),
            // What took the place of the second one, whose unloading was lost.
            (70, LOAD, 0, method(3, 0x1000, 0x80, true, "Third")),
            sample(80, 1),
            sample(81, 1),
            // The rundown: code that was there all the time.
            (90, LISTED, 0, method(9, 0x9000, 0x10, false, "Main")),
            (91, LISTED, 0, method(3, 0x1000, 0x80, true, "Third")),
        ],
    );
    let stacks = Stacks::of(&dataset);
    let found: Vec<Vec<&str>> =
        dataset.table("cpu_sample").numbers("callsite_id").iter().map(|id| stacks.names(*id as usize)).collect();
    // The address behind the last instruction of Main belongs to it: a call that does not return.
    let main = "App.Type.Main(int32)";
    let [first, second, third] = ["First", "Second", "Third"].map(|name| format!("App.Type.{name}(int32)"));
    // Before the first one was compiled, and when it had gone.
    let (before, gone) = ("[stub or unlisted method]", "[unloaded method]");
    let expected: [&[&str]; 7] = [
        &[before, main],
        &[&first, main],
        &[gone, main],
        &[&second, main],
        &[&second],
        &[&third, main],
        &[&third, main],
    ];
    assert_eq!(found, expected);
    let frames = dataset.table("frame");
    assert_eq!(frames.numbers("offset_bytes").iter().filter(|offset| **offset == 0x10).count(), 4);
    assert!(
        frames.texts("tier").contains(&"ReadyToRun".to_owned())
            && frames.texts("tier").contains(&"QuickJitted".to_owned())
    );
    let input = &dataset.summary.inputs[0];
    assert_eq!((input.frames.frames, input.frames.named), (7, 5));
    assert_eq!(dataset.table("method").texts("name"), ["First", "Second", "Third", "Main"]);
    // Nothing was lost by that.
    assert!(input.problems.iter().any(|p| p.code == "unnamed_frames" && p.count == 2), "{:?}", input.problems);
}

/// One long name for many addresses: each of their frames would have it.
#[test]
fn a_long_name_is_cut_where_each_frame_has_it() {
    let stacks: Vec<Vec<u64>> = (0..200).map(|n| vec![0x1000 + n]).collect();
    let mut events = vec![(1, LOAD, 0, method(1, 0x1000, 0x100, true, &"ä".repeat(20_000)))];
    events.extend((1..=200).map(|stack| sample(10 + i64::from(stack), stack)));
    let dataset = recording(&stacks, &events);
    let names = dataset.table("frame").texts("name");
    assert!(names.len() == 200 && names.iter().all(|name| (4090..=4096).contains(&name.len())), "{}", names[0].len());
    let problems = &dataset.summary.inputs[0].problems;
    assert!(problems.iter().any(|p| (p.code, p.count) == ("long_frame_names", 200)), "{problems:?}");
}

#[test]
fn without_a_rundown_the_recording_says_so() {
    let dataset = recording(&[vec![0x1010, 0x9010]], &[sample(5, 1)]);
    let input = &dataset.summary.inputs[0];
    assert_eq!((input.frames.frames, input.frames.named), (2, 0));
    assert!(input.problems.iter().any(|p| p.message.contains("no rundown")), "{:?}", input.problems);
    let trace = dataset.table("trace");
    assert_eq!((trace.numbers("frame_count"), trace.numbers("named_frame_count")), (vec![2], vec![0]));
}
