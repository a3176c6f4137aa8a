//! Context switches of Linux, written by a scheduler that knows what its threads did: by the definition, where an event
//! has the time of switching in, and as record-trace writes it, with that of switching out.

use std::collections::BTreeSet;

use crate::support::dataset::{Dataset, Table};
use crate::support::expected::shared_folder;
use crate::support::mutate::Random;
use crate::support::writer::{Form, Kind, Row, Type, Writer, utf16, varuint};

const KIND: Kind<'_> = Kind { id: 1, provider: "Universal.Events", event_id: 2, version: 0, name: "cswitch" };
/// A file is mapped into a process.
const MAPPING: Kind<'_> = Kind { id: 2, provider: "Universal.System", event_id: 3, version: 0, name: "ProcessMapping" };
const PROCESS: u64 = 4000;
const FIRST_THREAD: u64 = 4001;

/// Which moment the events have the time and the processor of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    Out,
    In,
}

/// A thread was without a processor, in ticks.
#[derive(Clone, Copy, Debug)]
struct Wait {
    thread: u64,
    out: i64,
    back: i64,
    /// Where it ran before, and runs afterwards.
    processors: (u32, u32),
    stack: u32,
}

/// Threads that run and wait at random, each in its own order.
fn schedule(seed: u64, threads: u64, rounds: usize) -> Vec<Wait> {
    let mut random = Random(seed);
    let mut waits = Vec::new();
    for thread in FIRST_THREAD..FIRST_THREAD + threads {
        let (mut now, mut processor) = (random.below(50) as i64, random.below(4) as u32);
        for _ in 0..rounds {
            let out = now + 1 + random.below(30) as i64;
            let back = out + 1 + random.below(400) as i64;
            let next = random.below(4) as u32;
            waits.push(Wait { thread, out, back, processors: (processor, next), stack: 1 + random.below(3) as u32 });
            (now, processor) = (back, next);
        }
    }
    waits
}

fn payload(value: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    varuint(&mut payload, value);
    payload
}

/// The events of some waits; `lost` of them are missing before the event with each of these numbers.
fn recording(waits: &[Wait], moment: Moment, lost: &[usize]) -> Vec<u8> {
    let stacks = [vec![0x1000, 0x2000], vec![0x1100, 0x2000], vec![0x1200]];
    recording_with(waits, moment, lost, &stacks, &[])
}

/// A file that is mapped into the process: start, end and path.
type File = (u64, u64, &'static str);

/// The same with these stacks and files.
fn recording_with(waits: &[Wait], moment: Moment, lost: &[usize], stacks: &[Vec<u64>], files: &[File]) -> Vec<u8> {
    let at = |wait: &Wait| if moment == Moment::Out { wait.out } else { wait.back };
    let mut sorted = waits.to_vec();
    sorted.sort_by_key(|wait| (at(wait), wait.thread));
    let mut sequence = 0;
    let mut all: Vec<Row> = Vec::new();
    for (start, end, path) in files {
        sequence += 1;
        let mut payload: Vec<u8> = [*start, *end, 0, 0].iter().flat_map(|number| number.to_le_bytes()).collect();
        utf16(&mut payload, path);
        all.push(Row { metadata_id: MAPPING.id, sequence, capture_thread: 1, thread: 2, payload, ..Row::default() });
    }
    let rows = sorted.iter().enumerate().map(|(number, wait)| {
        sequence += if lost.contains(&number) { 3 } else { 1 };
        Row {
            metadata_id: 1,
            sequence,
            capture_thread: 1,
            thread: wait.thread - FIRST_THREAD + 2,
            processor: if moment == Moment::Out { wait.processors.0 } else { wait.processors.1 },
            stack_id: wait.stack,
            ticks: at(wait),
            payload: payload((wait.back - wait.out) as u64),
            ..Row::default()
        }
    });
    all.extend(rows);
    let mut threads: Vec<u64> = waits.iter().map(|wait| wait.thread).collect();
    threads.sort_unstable();
    threads.dedup();
    let threads = threads.iter().map(|thread| (thread - FIRST_THREAD + 2, PROCESS, *thread));
    let threads: Vec<_> = [(1, 0, 0)].into_iter().chain(threads).collect();
    let mut writer = Writer::new(Form::V6);
    let long = |name| (name, Type::Long);
    let fields = [long("StartAddress"), long("EndAddress"), long("FileOffset"), long("MetadataId")];
    writer.described(KIND, &[("Value", Type::VarUint)]);
    writer.described(MAPPING, &[&fields[..], &[("FileName", Type::String)]].concat());
    writer.threads(&threads).stacks(1, stacks).events(&all).end()
}

fn dataset(bytes: &[u8]) -> Dataset {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    Dataset::of(file.path())
}

/// Thread, state, start, end, processor and innermost address.
type State = (u64, String, i64, i64, Option<u64>, Option<u64>);

fn ticks(ns: Option<i64>) -> i64 {
    ns.unwrap() / 100
}

/// The innermost address of each call stack.
fn addresses(dataset: &Dataset, of: &Table) -> Vec<Option<u64>> {
    let callsites = dataset.table("callsite");
    let (ids, addresses) = (callsites.numbers("callsite_id"), callsites.numbers("address"));
    let address = |id: &u64| ids.iter().position(|known| known == id).map(|at| addresses[at]);
    of.numbers("callsite_id").iter().map(address).collect()
}

fn states(dataset: &Dataset) -> BTreeSet<State> {
    let table = dataset.table("thread_time");
    let (thread, state, addresses) = (table.numbers("thread_id"), table.texts("state"), addresses(dataset, &table));
    let (start, end, processor) = (table.signed("start_ts_ns"), table.signed("end_ts_ns"), table.optional("processor"));
    assert!(table.numbers("process_id").iter().all(|process| *process == PROCESS));
    assert!(table.texts("wait_reason").iter().all(String::is_empty));
    let row = |row: usize| {
        (thread[row], state[row].clone(), ticks(start[row]), ticks(end[row]), processor[row], addresses[row])
    };
    (0..table.rows()).map(row).collect()
}

/// What the threads did, without looking at events. The time before an event of `unseen` is not known to be running
/// time.
fn truth(waits: &[Wait], unseen: impl Fn(&Wait, &Wait) -> bool) -> BTreeSet<State> {
    let mut states = BTreeSet::new();
    for (number, wait) in waits.iter().enumerate() {
        let address = [0x1000, 0x1100, 0x1200][wait.stack as usize - 1];
        states.insert((wait.thread, "blocked".to_owned(), wait.out, wait.back, None, Some(address)));
        let before = number.checked_sub(1).map(|at| waits[at]).filter(|before| before.thread == wait.thread);
        if let Some(before) = before.filter(|before| !unseen(before, wait)) {
            let processor = Some(u64::from(wait.processors.0));
            states.insert((wait.thread, "running".to_owned(), before.back, wait.out, processor, None));
        }
    }
    states
}

#[test]
fn threads_run_and_wait_as_the_scheduler_says() {
    for (seed, moment) in [(1, Moment::In), (2, Moment::Out), (3, Moment::In), (4, Moment::Out)] {
        let waits = schedule(seed, 5, 60);
        let dataset = dataset(&recording(&waits, moment, &[]));
        assert_eq!(states(&dataset), truth(&waits, |_, _| false), "{moment:?}");
        let is_reported = dataset.problems().contains(&("switches_by_their_beginning", 1));
        assert_eq!(is_reported, moment == Moment::Out, "{:?}", dataset.problems());
        let switches = dataset.table("context_switch");
        let found = switches.numbers("thread_id").into_iter().zip(switches.signed("ts_ns"));
        let found = found.zip(switches.optional("processor")).zip(addresses(&dataset, &switches));
        let found: BTreeSet<_> = found.map(|(((thread, ts), on), stack)| (thread, ticks(ts), on, stack)).collect();
        let expected = waits.iter().map(|wait| {
            let on = (moment == Moment::In).then_some(u64::from(wait.processors.1));
            (wait.thread, wait.back, on, Some([0x1000, 0x1100, 0x1200][wait.stack as usize - 1]))
        });
        assert_eq!(found, expected.collect(), "{moment:?}");
        for unknown in ["priority", "old_process_id", "old_thread_id", "old_priority", "wait_time_ticks"] {
            assert!(switches.optional(unknown).iter().all(Option::is_none), "{unknown}");
        }
    }
}

/// Stacks within the kernel, each called by a function of another file; and those files.
fn places() -> ([Vec<u64>; 3], [File; 4]) {
    const KERNEL: u64 = 0xFFFF_FFFF_8100_0000;
    let stacks = [vec![KERNEL, 0x1010, 0x4010], vec![KERNEL + 8, KERNEL, 0x2010, 0x4010], vec![KERNEL, 0x3010]];
    let files = [
        (0x1000, 0x2000, "/usr/lib/first.so"),
        (0x2000, 0x3000, "/usr/lib/second.so"),
        (0x3000, 0x4000, "/usr/lib/third.so"),
        (0x4000, 0x5000, "/app/shop"),
    ];
    (stacks, files)
}

#[test]
fn waits_are_summed_up_by_the_place_outside_of_the_kernel() {
    let Some(python) = crate::support::python::python("waits_are_summed_up_by_the_place_outside_of_the_kernel") else {
        return;
    };
    let (stacks, files) = places();
    for moment in [Moment::In, Moment::Out] {
        let waits = schedule(9, 4, 30);
        let dataset = dataset(&recording_with(&waits, moment, &[], &stacks, &files));
        let mut expected = String::new();
        for (stack, site) in (1..).zip(["first.so!?", "second.so!?", "third.so!?"]) {
            let of_site: Vec<&Wait> = waits.iter().filter(|wait| wait.stack == stack).collect();
            let ticks = || of_site.iter().map(|wait| wait.back - wait.out);
            let threads: BTreeSet<u64> = of_site.iter().map(|wait| wait.thread).collect();
            let (sum, longest) = (ticks().sum::<i64>(), ticks().max().expect("a wait"));
            expected += &format!("('{site}', {}, {sum}, {longest}, {}, None)\n", of_site.len(), threads.len());
        }
        let query = "SELECT site, how_often, round(total_ms * 1e4)::INT, round(longest_ms * 1e4)::INT, threads, wait_reason \
                     FROM blocked_by_site ORDER BY site";
        assert_eq!(crate::tables::queries::asked(&python, &dataset, query), expected, "{moment:?}");
    }
}

#[test]
fn the_export_of_blocked_time_has_the_stacks_of_the_waits() {
    let (stacks, files) = places();
    let waits = schedule(10, 4, 30);
    let file = tempfile::NamedTempFile::with_suffix(".nettrace").unwrap();
    std::fs::write(file.path(), recording_with(&waits, Moment::Out, &[], &stacks, &files)).unwrap();
    let path = file.path().to_str().unwrap();
    let run = crate::support::program::run(&["export", path, "--what", "blocked", "--format", "folded"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let stacks =
        ["shop!?;first.so!?;[kernel]", "shop!?;second.so!?;[kernel];[kernel]", "third.so!?;[kernel]"].into_iter();
    let expected = (1..).zip(stacks).map(|(stack, names)| {
        let of_stack = waits.iter().filter(|wait| wait.stack == stack);
        format!("{names} {}", of_stack.map(|wait| (wait.back - wait.out) * 100).sum::<i64>())
    });
    let found: BTreeSet<String> = run.out.lines().map(str::to_owned).collect();
    assert_eq!(found, expected.collect());
}

/// A few events do not show which moment they have the time of: the definition holds.
#[test]
fn few_events_are_read_by_the_definition() {
    let waits = schedule(7, 1, 3);
    let dataset = dataset(&recording(&waits, Moment::In, &[]));
    assert_eq!(states(&dataset), truth(&waits, |_, _| false));
}

#[test]
fn no_thread_is_known_to_run_while_events_are_lost() {
    for moment in [Moment::In, Moment::Out] {
        let waits = schedule(5, 3, 40);
        let at = |wait: &Wait| if moment == Moment::Out { wait.out } else { wait.back };
        let mut sorted = waits.clone();
        sorted.sort_by_key(|wait| (at(wait), wait.thread));
        let lost = [20, 50, 51];
        let moments = lost.map(|number| (at(&sorted[number]), sorted[number].thread));
        let dataset = dataset(&recording(&waits, moment, &lost));
        let unseen = |before: &Wait, wait: &Wait| {
            let key = |wait: &Wait| (at(wait), wait.thread);
            moments.iter().any(|moment| key(before) < *moment && *moment <= key(wait))
        };
        assert_eq!(states(&dataset), truth(&waits, unseen), "{moment:?}");
    }
}

#[test]
fn any_number_is_a_time() {
    let at = |ticks: i64| Wait { thread: FIRST_THREAD, out: 0, back: ticks, processors: (0, 0), stack: 1 };
    let mut writer = Writer::new(Form::V6);
    writer.described(KIND, &[("Value", Type::VarUint)]).threads(&[(1, 0, 0), (2, PROCESS, FIRST_THREAD)]);
    let values = [0, 1, u64::MAX, 1 << 63, i64::MAX as u64, 7];
    let row = |(number, value): (usize, &u64)| Row {
        metadata_id: 1,
        sequence: number as u32 + 1,
        capture_thread: 1,
        thread: 2,
        ticks: at(number as i64 * 10).back,
        payload: payload(*value),
        ..Row::default()
    };
    let rows: Vec<Row> = values.iter().enumerate().map(row).collect();
    let bytes = writer.events(&rows).end();
    assert_eq!(dataset(&bytes).table("context_switch").rows(), values.len());
    // Whatever is missing at the end, what is there is read.
    let mut most = 0;
    for length in bytes.len() / 2..bytes.len() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes[..length]).unwrap();
        most = most.max(Dataset::of(file.path()).table("context_switch").rows());
    }
    assert_eq!(most, values.len());
}

/// A file of record-trace's writer that others made: each event is a wait of its length.
#[test]
fn events_of_another_writer_are_waits() {
    let Some(folder) = shared_folder("events_of_another_writer_are_waits", "nettrace") else { return };
    let dataset = Dataset::of(&folder.join("v6-onecollect.nettrace"));
    let (switches, events) = (dataset.table("context_switch"), dataset.table("event/Universal.Events/cswitch"));
    assert_eq!((switches.rows(), events.rows()), (6000, 6000));
    let times = dataset.table("thread_time");
    let blocked = times.texts("state").into_iter().zip(times.signed("duration_ns"));
    let blocked: i64 = blocked.filter(|(state, _)| state == "blocked").map(|(_, ns)| ns.unwrap()).sum();
    assert_eq!(blocked as u64, events.numbers("value").iter().sum::<u64>(), "a tick is a nanosecond");
}
