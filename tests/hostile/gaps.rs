//! Lost events and records: what touches a gap says so, and nothing is joined across it.

use crate::support::callbacks::Making;
use crate::support::dataset::{Dataset, survived};
use crate::tables::collections::{
    BACKGROUND, BLOCKING, CATCH, CATCH_STOP, CONTENTION, CONTENTION_STOP, JITTING, LOADED, RESTART_END, SUSPEND_END,
    Story, THROWN,
};
use tracequet::trace::reader::callback::format::{self, kind};

const FOR_GC: u32 = 1;

/// A whole collection with its pause, from `at` on, on thread 1.
fn collection(story: &mut Story, at: i64, number: u32) {
    story.suspend(at, 1, FOR_GC).simple(at + 1, 1, SUSPEND_END).start(at + 2, 1, number, 0, BLOCKING);
    story.end(at + 8, 1, number, 0).simple(at + 9, 1, RESTART_END);
}

#[test]
fn the_start_of_one_collection_is_not_joined_with_the_end_of_another() {
    let mut story = Story::default();
    collection(&mut story, 10, 1);
    story.suspend(30, 1, FOR_GC).simple(31, 1, SUSPEND_END).start(32, 1, 2, 0, BLOCKING);
    // The end of 2, its restart, and all of 3 but its end are dropped.
    story.dropped(1, 5).end(58, 1, 3, 0).simple(59, 1, RESTART_END);
    collection(&mut story, 70, 4);
    let dataset = story.tell();
    let gc = dataset.table("gc");
    assert_eq!(gc.numbers("gc_number"), [1, 2, 3, 4]);
    assert_eq!(gc.bools("complete"), [true, false, false, true]);
    assert_eq!(gc.bools("touches_gap"), [false, true, true, false]);
    assert_eq!(gc.signed("end_ts_ns"), [Some(1800), None, Some(5800), Some(7800)]);
    // The pause that began at 30 may have ended in the gap, and the restart at 59 ends another one.
    let pauses = dataset.table("gc_pause");
    assert_eq!(pauses.signed("start_ts_ns"), [Some(1000), Some(7000)]);
    assert_eq!(pauses.numbers("gc_id"), [1, 4]);
    assert_eq!(gc.signed("pause_ns"), [Some(900), Some(0), Some(0), Some(900)]);
    assert!(dataset.summary.inputs[0].has_losses());
}

#[test]
fn a_collection_whose_pause_is_lost_is_not_complete() {
    let mut story = Story::default();
    collection(&mut story, 10, 1);
    // The suspension of 2 is dropped: its start is the first event behind the gap.
    story.dropped(1, 2).start(32, 1, 2, 0, BLOCKING).end(38, 1, 2, 0).simple(39, 1, RESTART_END);
    // The restart of 3 is dropped: it shows at the suspension of 4.
    story.suspend(50, 1, FOR_GC).simple(51, 1, SUSPEND_END).start(52, 1, 3, 0, BLOCKING).end(58, 1, 3, 0);
    story.dropped(1, 1);
    collection(&mut story, 70, 4);
    // That of 5 is dropped behind another event of the thread, so that the gap begins behind the end of 5.
    story.suspend(80, 1, FOR_GC).simple(81, 1, SUSPEND_END).start(82, 1, 5, 0, BLOCKING).end(88, 1, 5, 0);
    story.simple(89, 1, SUSPEND_END).dropped(1, 1);
    collection(&mut story, 100, 6);
    let dataset = story.tell();
    let gc = dataset.table("gc");
    assert_eq!(gc.bools("touches_gap"), [false, true, true, false, true, false]);
    assert_eq!(gc.bools("complete"), [true, false, false, true, false, true]);
    let pauses = dataset.table("gc_pause");
    let sum = |gc_id| -> i64 {
        let rows = pauses.numbers("gc_id").into_iter().zip(pauses.signed("duration_ns"));
        rows.filter(|(id, _)| *id == gc_id).filter_map(|(_, ns)| ns).sum()
    };
    let reported: Vec<_> = (1..=6).map(sum).map(Some).collect();
    assert_eq!(gc.signed("pause_ns"), reported, "gc and gc_pause agree");
}

#[test]
fn events_that_another_thread_lost_mark_the_collections_of_that_time() {
    let mut story = Story::default();
    story.surviving(5, 7, &[[100, 8]]).end(6, 1, 1, 0);
    collection(&mut story, 10, 2);
    // Thread 7 reports ranges in 3, and in 4 behind a gap: those of 3 may be among the lost.
    story.suspend(30, 1, FOR_GC).simple(31, 1, SUSPEND_END).start(32, 1, 3, 0, BLOCKING);
    story.surviving(33, 7, &[[200, 8]]).end(38, 1, 3, 0).simple(39, 1, RESTART_END);
    story.suspend(50, 1, FOR_GC).simple(51, 1, SUSPEND_END).start(52, 1, 4, 0, BLOCKING);
    story.dropped(7, 3).surviving(53, 7, &[[300, 8]]).end(58, 1, 4, 0).simple(59, 1, RESTART_END);
    collection(&mut story, 70, 5);
    let dataset = story.tell();
    let gc = dataset.table("gc");
    assert_eq!(gc.bools("touches_gap"), [false, false, true, true, false]);
    let pauses = dataset.table("gc_pause");
    assert_eq!(pauses.numbers("gc_id"), [2, 3, 4, 5]);
    assert_eq!(pauses.bools("touches_gap"), [false, true, true, false]);
}

#[test]
fn a_background_collection_is_matched_by_its_number() {
    let mut story = Story::default();
    story.start(10, 1, 1, 2, BACKGROUND).start(20, 2, 2, 0, BLOCKING);
    // The end of 2 is dropped, and so is the start of 3.
    story.dropped(2, 2).end(40, 2, 3, 0).end(50, 1, 1, 2);
    let gc = story.tell().table("gc");
    assert_eq!(gc.numbers("gc_number"), [1, 2, 3]);
    assert_eq!(gc.signed("end_ts_ns"), [Some(5000), None, Some(4000)]);
    assert_eq!(gc.bools("complete"), [false, false, false]);
}

#[test]
fn suspensions_of_others_are_no_pauses_of_the_collector() {
    let mut story = Story::default();
    for at in [10, 20, 30] {
        story.suspend(at, 1, 0).simple(at + 1, 1, SUSPEND_END).simple(at + 5, 1, RESTART_END);
    }
    collection(&mut story, 50, 1);
    let pauses = story.tell().table("gc_pause");
    assert_eq!(pauses.texts("kind"), ["other", "other", "other", "gc"]);
    assert_eq!(pauses.numbers("gc_id"), [0, 0, 0, 1]);
}

/// A payload of a number, texts, and zeros for the rest.
fn payload(number: u64, numbers: usize, texts: &[&str], rest: usize) -> Vec<u8> {
    let mut out = number.to_le_bytes().to_vec();
    out.resize(numbers, 0);
    for text in texts {
        out.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    }
    out.resize(out.len() + rest, 0);
    out
}

#[test]
fn nothing_that_a_thread_does_is_joined_across_its_gap() {
    let thrown = |name: &str| payload(0, 0, &[name, "why"], 8 + 4 + 2 + 2);
    let catch = || payload(0, 16, &["handler"], 2);
    let method = |id: u64, before_names: usize| payload(id, before_names, &["Type", "Method", "sig"], 2);
    let mut story = Story::default();
    // Thread 1: each start is behind a gap of another thread only. Thread 2: each stop is behind a gap of its own.
    for thread in [1, 2] {
        let at = thread as i64 * 100;
        story.event(at, thread, THROWN, thrown("A")).event(at + 1, thread, CATCH, catch());
        story.dropped(2, 1).event(at + 2, 2, SUSPEND_END, vec![0; 2]);
        story.event(at + 5, thread, CATCH_STOP, Vec::new());
        story.event(at + 10, thread, CONTENTION, vec![0; 3]);
        story.dropped(2, 1).event(at + 11, 2, SUSPEND_END, vec![0; 2]);
        story.event(at + 15, thread, CONTENTION_STOP, vec![0; 3]);
        story.event(at + 20, thread, JITTING, method(7, 24));
        story.dropped(2, 1).event(at + 21, 2, SUSPEND_END, vec![0; 2]);
        story.event(at + 25, thread, LOADED, method(7, 36));
    }
    // Without a gap, the inner of two compilations ends first.
    story.event(300, 1, JITTING, method(8, 24)).event(301, 1, JITTING, method(9, 24));
    story.event(305, 1, LOADED, method(9, 36)).event(309, 1, LOADED, method(8, 36));
    let dataset = story.tell();
    let ends = |table: &str, column: &str| dataset.table(table).signed(column);
    assert_eq!(ends("exception", "end_ts_ns"), [Some(10_500), None]);
    assert_eq!(ends("exception", "catch_ts_ns"), [Some(10_100), Some(20_100)]);
    assert_eq!(ends("contention", "duration_ns"), [Some(500), None]);
    assert_eq!(ends("method_compilation", "duration_ns"), [Some(500), None, Some(900), Some(400)]);
    assert_eq!(dataset.table("method_compilation").numbers("method_id"), [7, 7, 8, 9]);
}

const GEN0: [u64; 3] = [0, 0x1000, 0x1000];

/// A recording in which the second of three ranges is missing in one way or another.
fn lossy() -> Vec<(&'static str, Vec<u8>)> {
    let one = [[0x1000, 0x20]];
    let begin = || {
        let mut m = Making::new();
        m.started(0, &[GEN0]).surviving(0, 2, &one);
        m
    };
    let mut lost = begin();
    let lost = lost.numbers(kind::LOST, &[1]).finished(&[GEN0]).bytes();
    let mut cut = begin();
    let cut = cut.record(0, kind::SURVIVING2, format::FLAG_CUT, |out| {
        format_rows(out, &[[0x1200, 0x20]]);
    });
    let cut = cut.finished(&[GEN0]).bytes();
    let mut bad = begin();
    let bad = bad.record(0, kind::SURVIVING2, 0, |out| out.extend([0xFF; 9])).finished(&[GEN0]).bytes();
    let mut damaged = begin();
    let whole = damaged.surviving(0, 2, &[[0x1AB8, 0x20]]).finished(&[GEN0]).bytes();
    // The record's bytes are damaged, so that its number does not occur.
    let mut record = Vec::new();
    format_rows(&mut record, &[[0x1AB8, 0x20]]);
    let at = whole.windows(record.len()).position(|w| w == record).expect("the record");
    let mut damaged = whole;
    damaged[at] ^= 0x40;
    vec![("lost records", lost), ("rows left out", cut), ("a bad record", bad), ("a damaged record", damaged)]
}

fn format_rows(out: &mut Vec<u8>, rows: &[[u64; 2]]) {
    tracequet::trace::reader::callback::encode::surviving(out, rows.iter().copied());
}

/// What is not listed may be alive where ranges are lost: the command and the macros say so.
#[test]
fn nothing_is_dead_where_ranges_may_be_lost() {
    let python = crate::support::python::python("nothing_is_dead_where_ranges_may_be_lost");
    for (name, bytes) in lossy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lossy.corprof");
        std::fs::write(&path, bytes).unwrap();
        let dataset = Dataset::of(&path);
        let gc = dataset.table("gc");
        assert_eq!((gc.bools("complete"), gc.bools("touches_gap")), (vec![false], vec![true]), "{name}");
        for (address, fate) in [(0x1000, "alive"), (0x1F00, "unknown")] {
            let steps = survived(&dataset.path(), None, 1, address, false).unwrap();
            assert_eq!(steps[0].fate.as_str(), fate, "{name} {address:#x}");
        }
        let Some(python) = &python else { continue };
        let query = "SELECT survived(1, 4096), survived(1, 7936)";
        let out = crate::support::python::ask_views(
            python,
            &dataset.path(),
            "print(c.execute(sys.argv[1]).fetchone())",
            query,
        );
        let printed = String::from_utf8_lossy(&out.stdout);
        assert_eq!(printed.trim(), "('alive', 'unknown')", "{name}: {}", String::from_utf8_lossy(&out.stderr));
    }
}
