//! What a recording can make the reader hold and repeat is bounded, and what does not fit is said.

use std::ops::ControlFlow;

use tracequet::trace::error::Problem;
use tracequet::trace::reader::{EventType, Order, RawEvent, TypeId, Visitor, nettrace};

use crate::support::collect::{Recording, mapped, piped};
use crate::support::skip::of_this_run;
use crate::support::writer::{Form, Kind, Row, Writer};

const KIND: Kind<'static> = Kind { id: 1, provider: "Shop", event_id: 1, version: 0, name: "Order" };

/// Counts only, since there are many.
#[derive(Default)]
struct Count {
    events: u64,
    older: u64,
    newest: i64,
    types: u32,
    threads: u32,
    unwanted: bool,
    codes: Vec<&'static str>,
}

impl Visitor for Count {
    fn event_type(&mut self, id: TypeId, _: &EventType) -> bool {
        self.types = self.types.max(id.0 + 1);
        !self.unwanted
    }

    fn thread(&mut self, index: u32, _: &tracequet::trace::reader::Thread) {
        self.threads = self.threads.max(index + 1);
    }

    fn event(&mut self, event: &RawEvent<'_>) -> ControlFlow<()> {
        assert!(event.event_type.0 < self.types && event.thread < self.threads);
        self.events += 1;
        self.older += u64::from(event.ticks < self.newest);
        self.newest = self.newest.max(event.ticks);
        ControlFlow::Continue(())
    }

    fn problem(&mut self, problem: Problem) {
        self.codes.push(problem.code);
    }
}

fn count(bytes: &[u8], pipe: bool) -> Count {
    let mut count = Count::default();
    let input = if pipe { piped(bytes) } else { mapped(bytes) };
    nettrace::read(input, Order::Time, &mut count).expect("a recording");
    count.codes.sort_unstable();
    count.codes.dedup();
    count
}

fn row(sequence: u32, ticks: i64) -> Row {
    Row { metadata_id: 1, sequence, capture_thread: 1, thread: 1, ticks, payload: vec![7; 4], ..Row::default() }
}

#[test]
fn a_stream_without_sequence_points_is_delivered_before_it_ends() {
    // More than a million events wait at most: no mark lets any of them go, and the second half is in order.
    let mut writer = Writer::new(Form::V4);
    writer.metadata(&[KIND]);
    const BLOCKS: u32 = 130;
    for block in 0..BLOCKS {
        let first = block * 10_000;
        writer.events(&(first..first + 10_000).map(|n| row(n + 1, i64::from(n ^ 1))).collect::<Vec<_>>());
    }
    let bytes = writer.end();
    for pipe in [false, true] {
        let count = count(&bytes, pipe);
        assert_eq!(count.events, u64::from(BLOCKS) * 10_000);
        assert_eq!((count.older, count.codes), (0, vec![]), "blocks follow each other in time");
    }
}

#[test]
fn events_that_come_too_late_for_the_bound_are_delivered_all_the_same() {
    // The last block is older than everything, and a million events are between.
    let mut writer = Writer::new(Form::V4);
    writer.metadata(&[KIND]);
    for block in 0..12u32 {
        let first = block * 100_000;
        writer.events(&(first..first + 100_000).map(|n| row(n + 1, 100 + i64::from(n))).collect::<Vec<_>>());
    }
    writer.events(&[Row { capture_thread: 2, ..row(1, 5) }]);
    let count = count(&writer.end(), false);
    assert_eq!((count.events, count.older), (1_200_001, 1));
    assert_eq!(count.codes, ["out_of_order"]);
}

#[test]
fn blocks_that_nothing_waits_in_are_let_go() {
    if !is_alone("hostile::limits::blocks_that_nothing_waits_in_are_let_go") {
        return;
    }
    // 200 MB of events that are not wanted, through a pipe; each block is given back before the next one is read.
    let mut block = Writer::new(Form::V4);
    block.metadata(&[KIND]);
    let head = block.bytes.len();
    let event = |n: u32| Row { payload: vec![0; 1000 + usize::from(n == 0) * 4], ..row(n + 1, i64::from(n)) };
    block.events(&(0..1000).map(event).collect::<Vec<_>>());
    let one = block.bytes.split_off(head);
    struct Repeat {
        head: std::io::Cursor<Vec<u8>>,
        one: Vec<u8>,
        at: usize,
        left: usize,
    }
    impl std::io::Read for Repeat {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let n = self.head.read(buffer)?;
            if n > 0 || self.left == 0 {
                return Ok(n);
            }
            let rest = &self.one[self.at..];
            let n = rest.len().min(buffer.len());
            buffer[..n].copy_from_slice(&rest[..n]);
            self.at += n;
            if self.at == self.one.len() {
                (self.at, self.left) = (0, self.left - 1);
            }
            Ok(n)
        }
    }
    assert_eq!(one.len() % 4, 0, "each block begins at the same place between two borders of alignment");
    let reader = Repeat { head: std::io::Cursor::new(block.bytes), one, at: 0, left: 200 };
    let input = tracequet::trace::source::Input::from_reader("-".as_ref(), Box::new(reader), None).expect("a pipe");
    let mut count = Count { unwanted: true, ..Count::default() };
    let end = nettrace::read(input, Order::Time, &mut count).expect("a recording");
    assert_eq!(count.events, 0);
    assert!(end.bytes > 200_000_000, "{end:?}");
    // 8 MB where this was written.
    assert!(peak_mb().is_none_or(|peak| peak < 64), "{:?} MB", peak_mb());
}

/// Runs a test in a process of its own, where its memory can be seen. Gives whether this is that process.
pub fn is_alone(test: &str) -> bool {
    if std::env::var_os("TRACEQUET_TEST_ALONE").is_some() {
        return true;
    }
    let mut child = std::process::Command::new(std::env::current_exe().expect("this binary"));
    let run = child
        .args(["--exact", test])
        .env("TRACEQUET_TEST_ALONE", "1")
        .envs([of_this_run()])
        .output()
        .expect("a process");
    let said = String::from_utf8_lossy(&run.stdout);
    // One that was killed says nothing itself.
    assert!(run.status.success(), "{}: {said}{}", run.status, String::from_utf8_lossy(&run.stderr));
    // A name that no test has ends with success, too.
    assert!(said.contains("test result: ok. 1 passed; 0 failed; 0 ignored"), "{test} did not run: {said}");
    false
}

#[test]
fn a_test_that_does_not_exist_is_not_taken_for_one_that_passed() {
    if std::env::var_os("TRACEQUET_TEST_ALONE").is_none() {
        assert!(std::panic::catch_unwind(|| is_alone("hostile::limits::no_such_test")).is_err());
    }
}

/// Most memory that this process had at a time; `None` on systems that do not say.
pub fn peak_mb() -> Option<u64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("what Linux says about this process");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    let kb = peak.trim().strip_suffix(" kB").expect("a number of kB");
    Some(kb.parse::<u64>().expect("a number") / 1024)
}

#[test]
fn made_up_ids_have_a_bound_and_one_stand_in() {
    let mut writer = Writer::new(Form::V4);
    writer.metadata(&[KIND]);
    let ids = 200_000u32;
    writer.events(&(0..ids).map(|n| Row { metadata_id: n + 2, ..row(n + 1, i64::from(n)) }).collect::<Vec<_>>());
    writer.events(&[Row { metadata_id: 1, ..row(ids + 1, i64::from(ids)) }]);
    let recording = Recording::mapped(&writer.end());
    assert_eq!(recording.events.len(), ids as usize + 1);
    assert_eq!(recording.codes(), ["too_many_event_types", "unknown_metadata"]);
    assert!(recording.problems.len() < 1100, "{} problems", recording.problems.len());
    let reported: u64 = recording.problems.iter().filter(|p| p.code == "unknown_metadata").map(|p| p.count).sum();
    assert_eq!(reported, u64::from(ids));
    let last = recording.events.last().expect("an event");
    assert_eq!(recording.info_of(last).name, "Order", "a kind that was known stays known");
    let stand_in = recording.info_of(&recording.events[ids as usize - 1]);
    assert_eq!(stand_in.event_type.name, "other_events");
}

#[test]
fn threads_without_ids_of_the_os_do_not_share_their_counters() {
    // V6 may declare threads by index alone: both look the same, but each counts for itself.
    let mut writer = Writer::new(Form::V6);
    writer.metadata(&[KIND]).block("", 6, &[1, 0, 1, 1, 0, 2]);
    let on = |thread, sequence, ticks| Row { capture_thread: thread, thread, ..row(sequence, ticks) };
    writer.events(&[on(1, 1, 10), on(2, 1, 11), on(1, 2, 12), on(2, 2, 13), on(2, 5, 14)]);
    let recording = Recording::mapped(&writer.end());
    assert_eq!(recording.events.len(), 5);
    assert_eq!(recording.end.dropped_events, 2);
}

#[test]
fn one_lost_number_is_found_where_it_is_missing() {
    for form in [Form::V4, Form::V6] {
        let mut writer = Writer::new(form);
        writer.metadata(&[KIND]).threads(&[(1, 77, 1)]);
        writer.events(&[row(1, 10), row(2, 11)]).events(&[row(4, 12)]).sequence_point(20, &[(1, 6)]);
        let recording = Recording::mapped(&writer.end());
        let drops: Vec<_> = recording.problems.iter().map(|p| (p.code, p.count, p.thread_id)).collect();
        assert_eq!(drops, [("dropped_events", 1, 1), ("dropped_events", 2, 1)], "{form:?}");
        assert_eq!(recording.end.dropped_events, 3);
    }
}

/// Each thread takes memory until the end: a small file that names millions would take gigabytes.
#[test]
fn threads_without_end_are_one() {
    const MOST: u32 = 1 << 18;
    let mut writer = Writer::new(Form::V4);
    writer.metadata(&[KIND]);
    let rows: Vec<Row> =
        (1..=u64::from(MOST) + 1000).map(|id| Row { capture_thread: id, thread: id, ..row(1, 5) }).collect();
    for rows in rows.chunks(10_000) {
        writer.events(rows);
    }
    let found = count(&writer.end(), false);
    assert_eq!((found.events, found.threads), (u64::from(MOST) + 1000, MOST));
    assert_eq!(found.codes, ["too_many_threads"]);
}

#[test]
fn no_recording_makes_a_reader_repeat_itself_without_a_bound() {
    use crate::support::expected::{shared_traces, traces_in};
    const TEST: &str = "no_recording_makes_a_reader_repeat_itself_without_a_bound";
    let Some(folder) = shared_traces(TEST) else { return };
    let mut files = 0;
    for sub in ["", "net10", "damaged", "v6-writer"] {
        for trace in traces_in(&folder.join(sub)) {
            let recording = Recording::open(&trace.path);
            // A repetition without a bound would keep the test from ending.
            for event in &recording.events {
                recording.with_event(event, |event| event.fields().is_ok());
            }
            files += 1;
        }
    }
    assert!(files >= 208, "only {files} recordings");
}
