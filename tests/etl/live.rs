//! Sessions that run: events one by one become the tables that an .etl of them becomes.

use std::path::Path;

use tracequet::Error;
use tracequet::trace::source::live::{Ending, Feed, Live, Packet};
use tracequet::{Convert, collect_etw};

use super::writer::*;
use crate::support::dataset::{Dataset, Table};
use crate::support::story::{RUNTIME, SURVIVING, collection};

/// The collection of the story, as events of process 5 in a session of the writer's start.
fn events() -> Vec<Vec<u8>> {
    events_from(START)
}

fn events_from(start: i64) -> Vec<Vec<u8>> {
    let one = |(at, clr): (i64, crate::support::story::ClrEvent)| {
        let mut bytes = event(19, RUNTIME, clr.id, start + at * 10, &[], &clr.payload);
        (bytes[0x2A], bytes[0x2D]) = (clr.version, clr.opcode);
        patch(&mut bytes, 0x30, clr.keyword.to_le_bytes());
        bytes
    };
    (1i64..).zip(collection()).map(one).collect()
}

fn name_of(process_id: u32) -> Option<String> {
    (process_id == 5).then(|| "App.exe".to_owned())
}

/// A session of these events that has ended already.
fn session(events: Vec<Vec<u8>>, ending: Ending) -> Live {
    let (feed, live) = Live::new("test", START, name_of);
    offer(&feed, events);
    feed.end(ending);
    live
}

fn offer(feed: &Feed, events: Vec<Vec<u8>>) {
    events.into_iter().for_each(|bytes| feed.offer(Packet { processor: 1, bytes }));
}

fn ranges(table: &Table) -> Vec<[u64; 2]> {
    let lengths = table.numbers("range_length");
    table.numbers("range_start").into_iter().zip(lengths).map(|(start, length)| [start, length]).collect()
}

#[test]
fn a_session_gives_the_tables_of_a_file_with_its_events() {
    let live = Dataset::of_live(Convert::default(), session(events(), Ending::default()));
    let input = &live.summary.inputs[0];
    assert_eq!((input.events, input.complete, input.has_losses()), (8, true, false), "{:?}", input.problems);
    assert_eq!((input.info.container, input.collections), ("etw", 1));
    assert_eq!((input.first_ns, input.last_ns), (1000, 8000));
    assert_eq!(ranges(&live.table("gc_surviving_range")), SURVIVING);
    assert_eq!(live.table("process").texts("name"), ["App.exe"]);
    assert_eq!(live.table("trace").texts("container"), ["etw"]);

    // The clock of the .etl has the same frequency and another zero.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("same.etl");
    std::fs::write(&path, Writer::new().events(1, &events_from(TICKS)).bytes).unwrap();
    let file = Dataset::of(&path);
    for table in ["gc", "gc_pause", "gc_surviving_range", "gc_generation_range", "thread", "type"] {
        let (ours, theirs) = (live.table(table), file.table(table));
        assert_eq!(ours.rows(), theirs.rows(), "{table}");
    }
    for column in ["gc_number", "generation", "surviving_bytes", "process_id"] {
        assert_eq!(live.table("gc").optional(column), file.table("gc").optional(column), "{column}");
    }
    let pauses = |dataset: &Dataset| dataset.table("gc_pause").signed("duration_ns");
    assert_eq!((pauses(&live), pauses(&file)), (vec![Some(7000)], vec![Some(7000)]));
    assert_eq!(ranges(&live.table("gc_surviving_range")), ranges(&file.table("gc_surviving_range")));
}

#[test]
fn a_manifest_describes_the_events_of_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("shop.man");
    std::fs::write(&manifest, super::manifest::MANIFEST).unwrap();
    let paid = || vec![event(19, [9; 16], 2, START + 10, &[], &77u32.to_le_bytes())];
    let request = |manifest: &Path| Convert::default().manifests([manifest.to_owned()]);
    let live = Dataset::of_live(request(&manifest), session(paid(), Ending::default()));
    let table =
        live.summary.tables.iter().find(|t| t.name.starts_with("event/Shop-Orders/")).expect("a described event");
    assert_eq!(live.table(&table.name).numbers("number"), [77]);
    // Before a session is begun that would not be ended.
    let request = request(&folder.path().join("none.man")).output(folder.path().join("out"));
    let outcome = collect_etw(&request, || unreachable!("the manifest is not there"), &mut |_| {});
    assert!(matches!(outcome, Err(Error::Io { .. })), "{outcome:?}");
}

#[test]
fn what_a_session_lost_is_told() {
    let ending = Ending { lost_events: 3, lost_buffers: 2, ..Ending::default() };
    let live = session(events(), ending);
    let dataset = Dataset::of_live(Convert::default(), live);
    let input = &dataset.summary.inputs[0];
    assert_eq!((input.events, input.dropped_events, input.complete, input.has_losses()), (8, 3, true, true));
    assert_eq!(dataset.problems(), [("dropped_buffers", 2), ("dropped_events", 3)]);
    let diagnostic = dataset.table("diagnostic");
    assert_eq!(diagnostic.texts("code"), ["dropped_events", "dropped_buffers"]);

    // What came while the queue was full is reported separately; so is a session that broke off.
    let (feed, live) = Live::new("test", START, |_| None);
    offer(&feed, events());
    feed.refuse();
    feed.end(Ending { failure: Some("it broke off".into()), ..Ending::default() });
    let dataset = Dataset::of_live(Convert::default(), live);
    assert_eq!(dataset.problems(), [("overrun_events", 1), ("stream_error", 1)]);
    assert_eq!((dataset.summary.inputs[0].dropped_events, dataset.summary.inputs[0].complete), (1, false));
}

#[test]
fn processes_are_chosen_by_the_names_that_the_system_tells() {
    let mut both = events();
    let mut other = events();
    other.iter_mut().for_each(|bytes| patch(bytes, 0x0C, 6u32.to_le_bytes()));
    both.extend(other);
    for (asked, events) in [("app", 8), ("6", 8), ("app,6", 16)] {
        let request = Convert::default().processes(asked.split(','));
        let dataset = Dataset::of_live(request, session(both.clone(), Ending::default()));
        assert_eq!(dataset.summary.inputs[0].events, events, "{asked}");
    }
    // The events of the second process are older than the last of the first.
    let dataset = Dataset::of_live(Convert::default(), session(both, Ending::default()));
    assert_eq!(dataset.problems(), [("late_events", 7)]);
}

#[test]
fn an_event_that_is_cut_costs_no_other() {
    let whole = events();
    for cut in (0..whole[3].len()).step_by(9) {
        let mut events = whole.clone();
        events[3].truncate(cut);
        let dataset = Dataset::of_live(Convert::default(), session(events, Ending::default()));
        assert_eq!(dataset.summary.inputs[0].events, 7, "{cut}");
        assert_eq!(dataset.problems()[0], ("damaged_event", 1), "{cut}");
    }
}

#[test]
fn a_manifest_describes_the_events_behind_it() {
    const MANIFEST: &str = r#"<instrumentationManifest><instrumentation><events>
        <provider name="Live-Source" guid="{09090909-0909-0909-0909-090909090909}"><events>
        <event value="1" version="0" level="win:Informational" symbol="Order" template="OrderArgs" task="Order"/></events>
        <tasks><task name="Order" value="1"/></tasks><templates><template tid="OrderArgs">
        <data name="amount" inType="win:UInt32"/></template></templates></provider>
        </events></instrumentation></instrumentationManifest>"#;
    let mut manifest = vec![1, 0, 0, 0x5B, 1, 0, 0, 0];
    manifest.extend(MANIFEST.as_bytes());
    let events = vec![
        event(19, [9; 16], 0xFFFE, START + 1, &[], &manifest),
        event(19, [9; 16], 1, START + 2, &[], &77u32.to_le_bytes()),
    ];
    let dataset = Dataset::of_live(Convert::default(), session(events, Ending::default()));
    assert_eq!(dataset.table("event/Live-Source/Order").numbers("amount"), [77]);
}
