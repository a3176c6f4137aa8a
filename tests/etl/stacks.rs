//! Stacks that are events of their own stand at the events that they belong to.

use std::collections::{BTreeMap, HashMap};

use tracequet::trace::reader::{EtwForm, Layout, Order};
use tracequet::trace::source::Input;

use super::expected::{shared, shared_file};
use super::writer::*;
use crate::support::collect::{Recording, Seen, mapped};

const CLR: [u8; 16] = [0x23, 0x0D, 0x3C, 0xE1, 0xBC, 0xCC, 0x12, 0x4E, 0x93, 0x1B, 0xD9, 0xCC, 0x2E, 0xEE, 0x27, 0xE4];
const K: u64 = 0xFFFF_F800_0000_0000;

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn frames(seen: &Seen) -> Vec<u64> {
    seen.stack.chunks_exact(8).map(|frame| number(frame, 0)).collect()
}

/// What is known of a kernel event or one of the CLR: name of its provider and its opcode or id.
fn kind<'r>(recording: &'r Recording, seen: &Seen) -> (&'r str, u32) {
    let info = recording.info_of(seen);
    (&info.provider, info.event_type.event_id)
}

fn form(recording: &Recording, seen: &Seen) -> EtwForm {
    match &recording.info_of(seen).event_type.layout {
        Layout::Etw(etw) => etw.form,
        other => panic!("{other:?}"),
    }
}

fn is_clr(provider: &str) -> bool {
    matches!(provider, "Microsoft-Windows-DotNETRuntime" | "Microsoft-Windows-DotNETRuntimePrivate")
}

/// Stacks by time and thread of their events, and those of the CLR by time, thread and payload, from events alone.
type Stacks = (BTreeMap<(i64, u64), Vec<u64>>, BTreeMap<(i64, u64, Vec<u8>), Vec<u64>>);

fn independently(recording: &Recording) -> (Stacks, u64) {
    let mut events: Vec<&Seen> = recording.events.iter().collect();
    events.sort_by_key(|e| e.ticks);
    let mut definitions: HashMap<u64, Vec<(usize, Vec<u64>)>> = HashMap::new();
    for (index, seen) in events.iter().enumerate() {
        if let ("Windows-Kernel-StackWalk", 34..=36) = kind(recording, seen) {
            let addresses = seen.payload.chunks_exact(8).map(|b| number(b, 0)).collect::<Vec<_>>();
            definitions.entry(addresses[0]).or_default().push((index, addresses[1..].to_vec()));
        }
    }
    let mut halves: BTreeMap<(i64, u64), [Vec<u64>; 2]> = BTreeMap::new();
    let mut runtime = BTreeMap::new();
    let mut last: HashMap<(u64, &str), &Seen> = HashMap::new();
    let mut count = 0;
    for (index, seen) in events.iter().enumerate() {
        let (provider, id) = kind(recording, seen);
        let target = || (number(&seen.payload, 0) as i64, u64::from(word(&seen.payload, 12)));
        match (provider, id) {
            ("Windows-Kernel-StackWalk", 32) => {
                let addresses: Vec<u64> = seen.payload[16..].chunks_exact(8).map(|b| number(b, 0)).collect();
                let part = usize::from(addresses[0] >> 63 == 0);
                halves.entry(target()).or_default()[part].extend(addresses);
                count += 1;
            }
            ("Windows-Kernel-StackWalk", 37 | 38) => {
                let known = &definitions[&number(&seen.payload, 16)];
                let (_, addresses) = known.iter().find(|(at, _)| *at > index).expect("a definition behind it");
                halves.entry(target()).or_default()[id as usize - 37].extend(addresses);
                count += 1;
            }
            (_, 82) if is_clr(provider) => {
                let thread = recording.threads[seen.thread as usize].thread_id;
                let before = last.remove(&(thread, provider)).expect("an event before it");
                let addresses = &seen.payload[8..];
                // 32-bit processes write narrow addresses.
                let addresses = match addresses.len() / word(&seen.payload, 4) as usize {
                    4 => addresses.chunks_exact(4).map(|b| u64::from(word(b, 0))).collect::<Vec<_>>(),
                    _ => addresses.chunks_exact(8).map(|b| number(b, 0)).collect(),
                };
                runtime.insert((before.ticks, thread, before.payload.clone()), addresses);
                count += 1;
            }
            _ if is_clr(provider) => {
                last.insert((recording.threads[seen.thread as usize].thread_id, provider), seen);
            }
            _ => {}
        }
    }
    let kernel = halves.into_iter().map(|(key, [kernel, user])| (key, [kernel, user].concat())).collect();
    ((kernel, runtime), count)
}

/// Every stack of a real file, once by the reader and once by looking at its events only.
#[test]
fn stacks_of_real_files_stand_at_their_events() {
    let mut attached = 0;
    let files = shared("stacks_of_real_files_stand_at_their_events");
    if files.is_empty() {
        // Said by `shared`.
        return;
    }
    for file in &files {
        let plain = Recording::read_in(Input::open(&file.path).unwrap(), Order::File);
        let kinds = || plain.events.iter().map(|seen| kind(&plain, seen));
        if !kinds().any(|(provider, id)| provider == "Windows-Kernel-StackWalk" || is_clr(provider) && id == 82) {
            continue;
        }
        let (expected, count) = independently(&plain);
        let recording = Recording::open(&file.path);
        let (mut kernel, mut runtime) = (BTreeMap::new(), BTreeMap::new());
        let mut own = 0;
        for seen in &recording.events {
            let (provider, id) = kind(&recording, seen);
            let is_stack = provider == "Windows-Kernel-StackWalk" || is_clr(provider) && id == 82;
            if is_stack {
                assert!(seen.stack.is_empty(), "{}: {provider}/{id} has found its event", file.name);
            } else if form(&recording, seen) == EtwForm::Classic && !seen.stack.is_empty() {
                // Stacks are filed under the thread that wrote the event, or, if none did, the one that it is about.
                let thread = |index: u32| recording.threads[index as usize].thread_id;
                let keys = [seen.capture_thread, seen.thread].map(|index| (seen.ticks, thread(index)));
                let key = keys.into_iter().find(|key| expected.0.contains_key(key)).expect("a stack of this event");
                let twice = kernel.insert(key, frames(seen));
                assert_eq!(twice, None, "{}: one stack, one event", file.name);
            } else if is_clr(provider) && !seen.stack.is_empty() {
                let thread = recording.threads[seen.thread as usize].thread_id;
                runtime.insert((seen.ticks, thread, seen.payload.clone()), frames(seen));
            } else {
                own += u64::from(!seen.stack.is_empty());
            }
        }
        let wrong = expected.0.iter().find(|(key, stack)| kernel.get(*key) != Some(*stack));
        let wrong = wrong.map(|(key, stack)| (key, stack, kernel.get(key)));
        assert_eq!((kernel.len(), wrong), (expected.0.len(), None), "{}", file.name);
        let wrong = expected.1.iter().find(|(key, stack)| runtime.get(*key) != Some(*stack));
        assert_eq!((runtime.len(), wrong), (expected.1.len(), None), "{}", file.name);
        assert_eq!(Some(own), file.expected["with_stack"].as_u64(), "{}: stacks inside of events", file.name);
        let reported: u64 = recording.problems.iter().filter(|p| p.code == "attached_stacks").map(|p| p.count).sum();
        assert_eq!(reported, count, "{}", file.name);
        println!("{}: {} kernel, {} runtime, from {count} events", file.name, kernel.len(), runtime.len());
        attached += reported;
    }
    assert!(attached >= 20_000, "{attached}");
}

/// The stacks of all events, in order, without those that are stacks; and the counts of what became of these.
fn stacks(events: &[Vec<u8>]) -> (Vec<Vec<u64>>, [u64; 2]) {
    let recording = Recording::read(mapped(&Writer::new().events(1, events).bytes));
    let is_stack = |seen: &&Seen| kind(&recording, seen) != ("Windows-Kernel-StackWalk", 36);
    let seen = recording.events.iter().skip(1).filter(is_stack);
    let count = |code| recording.problems.iter().filter(|p| p.code == code).map(|p| p.count).sum();
    (seen.map(frames).collect(), [count("attached_stacks"), count("unattached_stacks")])
}

#[test]
fn the_halves_of_a_stack_are_joined_however_late_they_come() {
    let (found, counts) = stacks(&[
        sample(1010, 7, K + 1, 0),
        stack_walk(1011, 1010, 7, &[K + 1, K + 2]),
        sample(1020, 8, 3, 0),
        // Another thread, another time: neither is meant.
        sample(1020, 7, 3, 0),
        sample(5000, 7, 3, 0),
        stack_walk(90_000, 1010, 7, &[1, 2]),
        stack_walk(90_001, 1020, 8, &[3, 4]),
    ]);
    let none = Vec::new();
    let expected = [vec![K + 1, K + 2, 1, 2], none.clone(), vec![3, 4], none.clone(), none.clone(), none.clone(), none];
    assert_eq!((found, counts), (expected.to_vec(), [3, 0]));
}

#[test]
fn a_key_means_what_is_defined_behind_it() {
    let (found, counts) = stacks(&[
        sample(1010, 7, K, 0),
        stack_key(37, 1011, 1010, 7, 0xAA),
        stack_key(38, 1012, 1010, 7, 0xBB),
        stack_definition(1013, 0xAA, &[K + 3]),
        sample(1020, 7, K, 0),
        stack_key(37, 1021, 1020, 7, 0xAA),
        stack_definition(1022, 0xAA, &[K + 9]),
        // Never defined.
        stack_key(38, 1023, 1020, 7, 0xCC),
        stack_definition(1024, 0xBB, &[5, 6]),
    ]);
    let none = Vec::new();
    let expected = [vec![K + 3, 5, 6], none.clone(), none.clone(), vec![K + 9], none.clone(), none];
    assert_eq!((found, counts), (expected.to_vec(), [3, 1]));
}

#[test]
fn a_stack_belongs_to_one_event() {
    // Two events of a thread at the same time: each takes one stack, in order; what is too much stays with its frames.
    let (found, counts) = stacks(&[
        by(system(4, 64, 2, 1010, b"one"), 5, 7),
        by(system(4, 64, 2, 1010, b"two"), 5, 7),
        by(system(4, 64, 2, 1010, b"six"), 5, 7),
        stack_walk(1011, 1010, 7, &[1]),
        stack_walk(1012, 1010, 7, &[2]),
        stack_walk(1013, 2000, 7, &[3]),
    ]);
    let none = Vec::new();
    assert_eq!((found, counts), (vec![vec![1], vec![2], none.clone(), none.clone(), none, vec![3]], [2, 1]));
}

#[test]
fn narrow_stacks_are_widened() {
    let mut narrow = stack_walk(1011, 1010, 7, &[]);
    narrow.extend([0x8000_0001u32, 0x10].map(u32::to_le_bytes).concat());
    let size = narrow.len() as u16;
    patch(&mut narrow, 4, size.to_le_bytes());
    narrow[2] = 1;
    let (found, counts) = stacks(&[sample(1010, 7, 1, 0), narrow]);
    assert_eq!((found, counts), (vec![vec![0x8000_0001, 0x10], Vec::new()], [1, 0]));
}

#[test]
fn a_stack_of_the_runtime_belongs_to_the_event_before_it_on_its_thread() {
    let walk = |ticks, frames: &[u64]| {
        let mut payload = vec![8, 0, 0, 0];
        payload.extend((frames.len() as u32).to_le_bytes());
        frames.iter().for_each(|frame| payload.extend(frame.to_le_bytes()));
        event(19, CLR, 82, ticks, &[], &payload)
    };
    let clr = |ticks| event(19, CLR, 3, ticks, &[], &[1, 0]);
    let (found, counts) = stacks(&[
        // At the same time as its neighbours of its own and of another thread.
        by(clr(1010), 5, 7),
        by(clr(1010), 5, 7),
        by(clr(1010), 5, 8),
        by(walk(1010, &[1, 2]), 5, 7),
        by(walk(1020, &[3]), 5, 8),
        // There is no event before it any more.
        by(walk(1030, &[4]), 5, 8),
    ]);
    let none = Vec::new();
    let expected = vec![none.clone(), vec![1, 2], vec![3], none.clone(), none, vec![4]];
    assert_eq!((found, counts), (expected, [2, 1]));
}

#[test]
fn stacks_of_one_moment_are_looked_at_up_to_a_bound() {
    let events = (0..40).map(|_| sample(1010, 7, 1, 0));
    let walks = (0..40).map(|i| stack_walk(1011, 1010, 7, &[i]));
    let (found, counts) = stacks(&events.chain(walks).collect::<Vec<_>>());
    assert_eq!(counts, [16, 24]);
    assert_eq!(found[..17], [(0..16).map(|i| vec![i]).collect(), vec![Vec::new()]].concat());
    assert_eq!(found.iter().map(Vec::len).sum::<usize>(), 40, "no stack is lost");
}

/// Every byte of events that the first walk looks into, damaged in three ways.
#[test]
fn damage_to_stacks_and_processes_is_no_panic() {
    let events = [
        process(3, 1001, 5, "a", 259),
        thread(3, 1002, 5, 7),
        image(3, 1003, 5, 0x40_0000, "b"),
        sample(1010, 7, K, 0),
        stack_walk(1011, 1010, 7, &[K, 1]),
        sample(1020, 7, K, 0),
        stack_key(37, 1021, 1020, 7, 0xAA),
        stack_key(38, 1022, 1020, 7, 0xAA),
        by(event(19, CLR, 3, 1030, &[], &[1, 0]), 5, 7),
        by(event(19, CLR, 82, 1031, &[], &[0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]), 5, 7),
        stack_definition(1032, 0xAA, &[K]),
        process(2, 1040, 5, "a", 1),
        thread(2, 1041, 5, 7),
    ];
    let whole = Writer::new().events(1, &events).bytes;
    let used: usize = events.iter().map(|e| e.len().next_multiple_of(8)).sum();
    let first = whole.len() - BUFFER_SIZE as usize + 0x48;
    let mut bytes = whole.clone();
    for at in first..first + used {
        for damage in [0, 0x80, 0xFF] {
            bytes[at] = damage;
            assert!(Recording::read(mapped(&bytes)).events.len() <= events.len() + 1);
        }
        bytes[at] = whole[at];
    }
}

/// What the merge step adds has the time and the thread of the event that it describes further, and may stand before
/// it.
#[test]
fn the_stack_of_an_image_load_does_not_stand_at_what_the_merge_added() {
    let image_id = || by(full(IMAGE_ID, 0, 1010, &[0; 26]), 5, 7);
    let (found, counts) = stacks(&[
        image_id(),
        by(full(IMAGE_ID, 64, 1010, &[0; 28]), 5, 7),
        image(10, 1010, 5, 0x40_0000, "a.dll"),
        image_id(),
        stack_walk(1011, 1010, 7, &[K + 1, K + 2]),
    ]);
    let none = Vec::new;
    assert_eq!((found, counts), (vec![none(), none(), vec![K + 1, K + 2], none(), none()], [1, 0]));
    // No stack of a real file stands there, and each load of an image has one.
    let Some(file) = shared_file("the_stack_of_an_image_load", "net.4.5.2.x64.etl") else { return };
    let recording = Recording::open(&file.path);
    let with_stack = |provider: &str, id: u32| {
        let of_kind = recording.events.iter().filter(|seen| kind(&recording, seen) == (provider, id));
        of_kind.map(|seen| !seen.stack.is_empty()).collect::<Vec<_>>()
    };
    assert_eq!(with_stack("Windows-Kernel-Image", 10), [true; 35]);
    for id in [0, 36, 64] {
        let found = with_stack("KernelTraceControl-ImageId", id);
        assert!(found.len() > 700 && !found.contains(&true), "{id}");
    }
}

/// The idle threads of all processors have the id 0.
#[test]
fn the_stacks_of_idle_threads_stay_on_their_processors() {
    let first = [sample(1010, 0, K + 1, 0), stack_walk(1013, 1010, 0, &[K + 1, K + 11])];
    let second = [sample(1010, 0, K + 2, 0), stack_walk(1012, 1010, 0, &[K + 2, K + 12])];
    let head = Head { sequence: 2, processor: 1, ..Head::default() };
    let bytes = Writer::new().events(1, &first).raw(&buffer(&head, &second)).bytes;
    let recording = Recording::read(mapped(&bytes));
    let samples = recording.events.iter().filter(|seen| kind(&recording, seen).0 == "Windows-Kernel-PerfInfo");
    let found: Vec<_> = samples.map(|seen| (seen.processor, frames(seen))).collect();
    assert_eq!(found, [(0, vec![K + 1, K + 11]), (1, vec![K + 2, K + 12])]);
}
