//! Names, processes, threads and times beyond what is kept: the rest has no names, and that is reported.

use std::ops::ControlFlow;

use tracequet::trace::error::{Problem, Severity};
use tracequet::trace::reader::{EventType, Order, Process, RawEvent, Thread, TypeId, Visitor};

use super::writer::*;
use crate::support::collect::{Recording, mapped};

const PROCESS: [u8; 16] = [9; 16];
const BUDGET: usize = 24 << 20;

/// Bytes of text that a reading handed out, and what it reported.
#[derive(Default)]
struct Kept {
    processes: usize,
    threads: usize,
    kinds: usize,
    text: usize,
    problems: Vec<Problem>,
}

impl Visitor for Kept {
    fn trace(&mut self, _: &tracequet::trace::reader::TraceInfo) {}
    fn process(&mut self, process: &Process) {
        self.processes += 1;
        self.text += process.name.len() + process.command_line.len();
    }
    fn event_type(&mut self, _: TypeId, kind: &EventType) -> bool {
        self.kinds += 1;
        self.text += kind.provider.len() + kind.name.len();
        true
    }
    fn thread(&mut self, _: u32, thread: &Thread) {
        self.threads += 1;
        self.text += thread.name.as_ref().map_or(0, String::len);
    }
    fn event(&mut self, _: &RawEvent<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}

fn kept(events: &[Vec<u8>]) -> Kept {
    let mut kept = Kept::default();
    let bytes = Writer::sized_file(events, 1 << 20, 10_000_000);
    tracequet::trace::reader::read(mapped(&bytes), Order::Time, &mut kept).expect("a recording");
    kept
}

fn counts(kept: &Kept, code: &str) -> u64 {
    let of_code = kept.problems.iter().filter(|problem| problem.code == code);
    of_code.inspect(|problem| assert!(problem.severity > Severity::Info)).map(|problem| problem.count).sum()
}

#[test]
fn names_of_processes_beyond_the_budget_are_left_out_and_told() {
    let name = "n".repeat(19_000);
    let events: Vec<_> = (0..800).map(|n| process(1, TICKS + i64::from(n), n, &name, 0)).collect();
    let kept = kept(&events);
    assert_eq!(kept.processes, 800);
    assert!((BUDGET - (64 << 10)..=BUDGET).contains(&kept.text), "{}", kept.text);
    let wanted = 800 * (2 * name.len() + 3);
    let stated = counts(&kept, "too_much_text");
    assert!(stated as usize >= (wanted - BUDGET) / (name.len() + 3), "{stated}");
}

#[test]
fn names_of_kinds_of_events_beyond_the_budget_are_left_out_and_told() {
    let traits = |n: u16| {
        let name = format!("{n:050000}\0");
        item(12, false, &[((name.len() + 2) as u16).to_le_bytes().as_slice(), name.as_bytes()].concat())
    };
    let events: Vec<_> = (0..600).map(|n| event(19, PROCESS, n, TICKS + 1, &traits(n), &[])).collect();
    let kept = kept(&events);
    assert!(kept.kinds >= 600, "each is a kind of its own: {}", kept.kinds);
    assert!((BUDGET - (64 << 10)..=BUDGET).contains(&kept.text), "{}", kept.text);
    assert!(counts(&kept, "too_much_text") >= 600 - (BUDGET / 50_000) as u64, "{:?}", kept.problems);
}

/// The name that a thread has at the end is kept, and not those that it had before.
#[test]
fn threads_that_are_renamed_do_not_use_up_the_budget() {
    let rename = |n: i64| {
        let name = format!("{n:010000}\0");
        let payload =
            [[5u32, 7].map(u32::to_le_bytes).concat(), name.encode_utf16().flat_map(u16::to_le_bytes).collect()];
        system(5, 72, 2, TICKS + n, &payload.concat())
    };
    let events: Vec<_> = (0..3000).map(rename).collect();
    let kept = kept(&events);
    assert_eq!(counts(&kept, "too_much_text"), 0);
    assert!((10_000..60_000).contains(&kept.text), "{}", kept.text);
}

#[test]
fn processes_and_threads_beyond_the_bounds_are_told() {
    let starts: Vec<_> = (0..17_000).map(|n| process(1, TICKS + i64::from(n), n, "a", 0)).collect();
    let all = kept(&starts);
    assert_eq!((all.processes, counts(&all, "too_many_processes")), (1 << 14, 17_000 - (1 << 14)));
    let by = |thread_id| By { form: 19, process_id: 5, thread_id, ticks: TICKS };
    let events: Vec<_> = (0..263_000).map(|n| event_by(by(n), PROCESS, 1, 0, &[], &[])).collect();
    let all = kept(&events);
    assert_eq!(all.threads, (1 << 18) + 1);
    assert_eq!(counts(&all, "too_many_threads"), 1, "{:?}", all.problems);
}

#[test]
fn times_beyond_64_bits_are_told() {
    let at = |ticks| event(19, PROCESS, 1, ticks, &[], b"payload!");
    let far = [TICKS + 5, i64::MAX / 2, i64::MAX, i64::MIN].map(at);
    let recording = Recording::mapped(&Writer::file(&far));
    let stated = |recording: &Recording| -> Vec<_> {
        let of_time = recording.problems.iter().filter(|problem| problem.code == "time_out_of_range");
        of_time.map(|problem| (problem.count, problem.severity)).collect()
    };
    assert_eq!((recording.events.len(), stated(&recording)), (5, vec![(3, Severity::Error)]));
    let clock = recording.info.as_ref().expect("a header").clock;
    let times: Vec<_> = recording.events.iter().map(|event| clock.since_start(event.ticks)).collect();
    assert!(times.iter().all(Option::is_some), "each stands at the nearest time: {times:?}");
    // In 2262, an hour before UTC in nanoseconds needs more than 64 bits.
    let mut header = log_file_header();
    let last = i64::MAX / 100 + tracequet::trace::time::FILE_TIME_UNIX_EPOCH;
    patch(&mut header, 0x108, (last - 36_000_000_000).to_le_bytes());
    let hour = |hours: i64| at(TICKS + hours * 36_000_000_000);
    let recording = Recording::mapped(&Writer::with_header(&header).events(1, &[hour(0), hour(2)]).bytes);
    assert_eq!((recording.events.len(), stated(&recording)), (3, vec![(1, Severity::Error)]));
}
