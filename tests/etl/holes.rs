//! Two holes in a log: no event is invented, and each loss is reported.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tracequet::trace::error::Severity;

use super::expected::shared_file;
use super::writer::*;
use crate::support::collect::{Recording, Seen};
use crate::support::dataset::Dataset;
use crate::support::mutate::Random;

/// What must be right of an event: time, OS thread, kind and payload.
type Key = (i64, u64, String, Vec<u8>);

fn key(recording: &Recording, event: &Seen) -> Key {
    let kind = &recording.info_of(event).event_type;
    let name = format!("{:?} {} {:?}", kind.provider_guid, kind.event_id, kind.opcode);
    (event.ticks, recording.threads[event.thread as usize].thread_id, name, event.payload.clone())
}

/// Makes two holes of up to `most` bytes behind the first buffer.
fn with_holes(whole: &[u8], first: usize, most: usize, random: &mut Random) -> (Vec<u8>, [Range<usize>; 2]) {
    let mut damaged = whole.to_vec();
    let holes = [(); 2].map(|()| {
        let len = [64, 600, 5000, 1 << 16][random.below(4)].min(most);
        let at = first + random.below(whole.len() - first - len);
        let noise = random.below(2) as u8;
        damaged[at..at + len].iter_mut().for_each(|byte| *byte = noise * random.below(256) as u8);
        at..at + len
    });
    (damaged, holes)
}

/// Holes in a log whose buffers have `size` bytes, when expanded. Returns how many events are left, of how many.
fn check(whole: &[u8], size: usize, runs: usize, name: &str) -> (usize, usize) {
    let all = Recording::mapped(whole);
    let mut known: HashMap<Key, Vec<&Seen>> = HashMap::new();
    for event in &all.events {
        known.entry(key(&all, event)).or_default().push(event);
    }
    let first = u32::from_le_bytes(*whole.first_chunk().unwrap()) as usize;
    let (mut left, mut unknown) = (0, 0);
    for run in 0..runs {
        let mut random = Random((run as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let (damaged, holes) = with_holes(whole, first, (whole.len() - first) / 8, &mut random);
        let part = Recording::mapped(&damaged);
        let what = format!("{name}, run {run}: {holes:?} {:#?}", part.problems);
        for event in &part.events {
            // No checksum reveals changed bytes within an event. Of a compressed buffer all events have one offset.
            let at = event.offset as usize;
            if holes.iter().any(|hole| hole.start < at + event.payload.len().max(size) && at < hole.end + 0x50) {
                unknown += 1;
                continue;
            }
            let Some(same) = known.get(&key(&part, event)) else { panic!("{event:?} is made up; {what}") };
            let process = |recording: &Recording, event: &Seen| recording.threads[event.thread as usize].process_id;
            let stated = process(&part, event);
            assert!(
                stated == u64::from(u32::MAX) || same.iter().any(|same| process(&all, same) == stated),
                "process {stated} of {event:?} is made up; {what}"
            );
            // Of a stack in two parts one may be lost; one that was an event of its own may stay one.
            let stacks: HashSet<&[u8]> = same.iter().flat_map(|same| [&same.stack[..], &same.payload[..]]).collect();
            let stack = event.stack.as_slice();
            assert!(
                stack.is_empty() || stacks.iter().any(|whole| whole.windows(stack.len()).any(|part| part == stack)),
                "the stack of {event:?} is made up, not {stacks:?}; {what}"
            );
        }
        let is_told = part.problems.iter().any(|problem| problem.severity != Severity::Info);
        assert!(is_told || part.events.len() >= all.events.len(), "{} events; {what}", part.events.len());
        left += part.events.len();
    }
    println!("{name}: {left} of {} events are left, {unknown} of them in damaged buffers", all.events.len() * runs);
    (left, all.events.len() * runs)
}

#[test]
fn two_holes_make_no_event_up() {
    let events: Vec<Vec<u8>> = (0..4000)
        .map(|n| match n % 4 {
            0 => thread(3, 1000 + n, 50 + n as u32 % 3, 100 + n as u32 % 40),
            1 => sample(1000 + n, 100 + n as u32 % 40, 0x7000 + n.cast_unsigned(), 0),
            2 => {
                stack_walk(1000 + n, 999 + n, 100 + (n as u32 - 1) % 40, &[0x7000 + n.cast_unsigned(), 0x8000, 0x9000])
            }
            _ => event(19, RUNTIME, 9999, 1000 + n, &[], &n.to_le_bytes()),
        })
        .collect();
    let (left, all) = check(&Writer::file(&events), BUFFER_SIZE as usize, 25, "written");
    assert!(left * 100 > all * 80, "{left} of {all}");
}

#[test]
fn two_holes_in_real_logs_make_no_event_up() {
    for (name, runs) in [("DynamicEvents.etl", 6), ("tx_Process.etl", 4)] {
        let Some(file) = shared_file("two_holes_in_real_logs_make_no_event_up", name) else { return };
        let (left, all) = check(&std::fs::read(&file.path).expect("a readable file"), 1 << 16, runs, name);
        assert!(left * 100 > all * 60, "{name}: {left} of {all}");
    }
}

/// A thread begins to wait in the first buffer, an operation on a file begins there, and both end in the third.
#[test]
fn nothing_is_joined_across_buffers_that_are_missing() {
    let operation = |ticks: i64, packet: u64| {
        let payload = [[packet, 1, 2].map(u64::to_le_bytes).concat(), 101u32.to_le_bytes().to_vec()].concat();
        perf_info(4, 66, 3, ticks, &payload)
    };
    let operation_end =
        |ticks: i64, packet: u64| perf_info(4, 76, 2, ticks, &[packet.to_le_bytes().as_slice(), &[0; 12]].concat());
    let switch = |ticks: i64, new: u32, old: u32| {
        let mut payload = [new, old].map(u32::to_le_bytes).concat();
        payload.extend([9, 8, 0, 0, 6, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        perf_info(5, 36, 2, ticks, &payload)
    };
    let buffers = [
        // Whatever is in the second buffer, it may be of the processor of the others.
        (0, vec![switch(1010, 101, 0), switch(1020, 0, 101), operation(1030, 7)]),
        (1, vec![switch(1040, 102, 0)]),
        (0, vec![switch(1050, 101, 0), operation_end(1060, 7), switch(1070, 0, 101)]),
    ];
    let written = |buffers: &[(u16, Vec<Vec<u8>>)]| {
        let mut header = log_file_header();
        patch(&mut header, 0x24, (buffers.len() as u32 + 1).to_le_bytes());
        let writer = Writer::with_header(&header);
        let each = buffers.iter().zip(1..);
        each.fold(writer, |writer, ((processor, events), sequence)| {
            writer.raw(&buffer(&Head { processor: *processor, sequence, ..Head::default() }, events))
        })
        .bytes
    };
    let whole = written(&buffers);
    let size = BUFFER_SIZE as usize;
    let (mut hole, mut removed, mut size_is_wrong) = (whole.clone(), whole.clone(), whole.clone());
    hole[2 * size..3 * size].fill(0);
    removed.drain(2 * size..3 * size);
    // Its valid bytes are more than it has.
    patch(&mut size_is_wrong, 2 * size + 0x30, 8u32.to_le_bytes());
    let ends = |bytes: &[u8]| {
        let file = tempfile::Builder::new().suffix(".etl").tempfile().expect("room");
        std::fs::write(file.path(), bytes).expect("room");
        let dataset = Dataset::of(file.path());
        let (states, complete) =
            (dataset.table("thread_time").texts("state"), dataset.table("thread_time").bools("complete"));
        let states: Vec<(String, bool)> = states.into_iter().zip(complete).collect();
        (states, dataset.table("file_io").signed("duration_ns"))
    };
    // An end on another processor, between the last event before the hole and the first one behind it.
    let buffers = [
        (0, vec![operation(1030, 7)]),
        (1, vec![operation_end(1045, 7)]),
        (0, vec![switch(1050, 101, 0)]),
        (0, vec![switch(1070, 0, 101)]),
    ];
    let between = written(&buffers);
    let mut hole_behind = between.clone();
    hole_behind[3 * size..4 * size].fill(0);
    assert_eq!([between, hole_behind].map(|bytes| ends(&bytes).1), [[Some(1500)], [None]]);
    let row = |state: &str, complete| (state.to_owned(), complete);
    let (states, operations) = ends(&whole);
    assert!(states.contains(&row("blocked", true)) && operations == [Some(3000)], "{states:?} {operations:?}");
    for (name, bytes) in [("a hole", hole), ("removed", removed), ("a wrong size", size_is_wrong)] {
        let (states, operations) = ends(&bytes);
        assert_eq!(operations, [None], "{name}");
        assert_eq!(states, [row("running", true), row("running", true)], "{name}");
    }
}
