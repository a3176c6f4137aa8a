//! Every recording among the shared traces against what an independent decoder found in it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::Value as Json;
use tracequet::trace::error::Problem;
use tracequet::trace::event::{self, Event, EventInfo, EventVisitor};
use tracequet::trace::reader::{End, Order, RawEvent, TraceInfo, TypeId, Visitor, nettrace};
use tracequet::trace::source::Input;

use crate::support::collect::{Recording, Seen};
use crate::support::compare::event_differences;
use crate::support::expected::{SharedTrace, shared_traces, traces_in};

/// Counts events by kind without keeping them.
#[derive(Default)]
struct Counts {
    info: Option<TraceInfo>,
    types: Vec<(EventInfo, u64)>,
    dropped_by_thread: BTreeMap<u64, u64>,
    codes: BTreeMap<&'static str, u64>,
    first: Option<i64>,
    last: Option<i64>,
    newest: i64,
    older: u64,
    end: End,
}

impl EventVisitor for Counts {
    fn trace(&mut self, info: &TraceInfo) {
        self.info = Some(info.clone());
        self.newest = i64::MIN;
    }

    fn event_type(&mut self, _id: TypeId, info: &EventInfo) -> bool {
        self.types.push((info.clone(), 0));
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let event = event.raw;
        self.types[event.event_type.0 as usize].1 += 1;
        self.first = Some(self.first.map_or(event.ticks, |first| first.min(event.ticks)));
        self.last = Some(self.last.map_or(event.ticks, |last| last.max(event.ticks)));
        self.older += u64::from(event.ticks < self.newest);
        self.newest = event.ticks.max(self.newest);
        ControlFlow::Continue(())
    }

    fn problem(&mut self, problem: Problem) {
        *self.codes.entry(problem.code).or_default() += problem.count;
        if problem.code == "dropped_events" {
            *self.dropped_by_thread.entry(problem.thread_id).or_default() += problem.count;
        }
    }
}

fn count(path: &Path) -> Counts {
    let mut counts = Counts::default();
    let input = Input::open(path).expect("the file can be opened");
    counts.end = event::read(input, Order::Time, &mut counts).expect("a readable recording");
    counts
}

/// How often an event in the file is older than the one before it.
fn file_order_inversions(path: &Path) -> u64 {
    struct Inversions(u64, i64);
    impl Visitor for Inversions {
        fn event(&mut self, event: &RawEvent<'_>) -> ControlFlow<()> {
            self.0 += u64::from(event.ticks < self.1);
            self.1 = event.ticks;
            ControlFlow::Continue(())
        }
        fn problem(&mut self, _: Problem) {}
    }
    let mut inversions = Inversions(0, i64::MIN);
    let input = Input::open(path).expect("the file can be opened");
    nettrace::read(input, Order::File, &mut inversions).expect("a readable recording");
    inversions.0
}

/// The codes of ours that stand for what the independent decoder noted.
fn expected_codes(info: &Json) -> Vec<&'static str> {
    let mut codes = Vec::new();
    if info["dropped"].as_u64() > Some(0) {
        codes.push("dropped_events");
    }
    let noted = &info["diag_counts"];
    if noted["truncated"].is_number() {
        codes.push("truncated");
    } else if noted["no-end-tag"].is_number() {
        codes.push("no_end_mark");
    }
    codes
}

fn whole_recordings(test: &str) -> Vec<SharedTrace> {
    let Some(folder) = shared_traces(test) else { return Vec::new() };
    let mut traces = traces_in(&folder);
    traces.extend(traces_in(&folder.join("net10")));
    traces
}

#[test]
fn headers_ends_and_losses_of_whole_recordings() {
    let mut wrong = Vec::new();
    for trace in whole_recordings("headers_ends_and_losses_of_whole_recordings") {
        let expected = trace.json("info").expect("an info file");
        let counts = count(&trace.path);
        let info = counts.info.as_ref().expect("a header");
        let mut check = |name: &str, ours: Json| {
            let theirs = match &expected[name] {
                Json::Null => Json::from(0),
                other => other.clone(),
            };
            // V1 and V2 do not say how many processors there are: 0 for us, 1 for the independent decoder.
            let unknown = name == "processors" && info.version < 3;
            if theirs != ours && !unknown {
                wrong.push(format!("{}: {name}: expected {theirs}, read {ours}", trace.name));
            }
        };
        check("container", info.container.into());
        check("version", info.version.into());
        check("minor", info.minor.into());
        check("sync_utc_ns", info.clock.sync_utc_ns.into());
        check("sync_qpc", info.clock.sync_ticks.into());
        check("freq", info.clock.frequency.into());
        check("pointer_size", info.pointer_size.into());
        check("pid", info.process_id.into());
        check("processors", info.processor_count.into());
        check("sampling_ns", info.sampling_ns.into());
        check("key_values", info.key_values.iter().map(|(k, v)| (k.clone(), Json::from(v.as_str()))).collect());
        check("complete", counts.end.complete.into());
        if trace.path.extension().is_none_or(|e| e != "zst") {
            check("trailing_bytes", counts.end.trailing_bytes.into());
        }
        check("events", counts.types.iter().map(|(_, n)| n).sum::<u64>().into());
        check("first_ts", counts.first.unwrap_or_default().into());
        check("last_ts", counts.last.unwrap_or_default().into());
        check("dropped", counts.end.dropped_events.into());
        let by_thread = counts.dropped_by_thread.iter().map(|(t, n)| (t.to_string(), Json::from(*n)));
        check("dropped_by_thread", by_thread.collect());
        check("file_order_inversions", file_order_inversions(&trace.path).into());
        if counts.older > 0 {
            wrong.push(format!("{}: {} events are older than one before them", trace.name, counts.older));
        }
        let codes: Vec<_> = counts.codes.keys().copied().collect();
        if codes != expected_codes(&expected) {
            wrong.push(format!("{}: problems {:?}, expected {}", trace.name, counts.codes, expected["diag_counts"]));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn counts_by_kind_of_whole_recordings() {
    let mut wrong = Vec::new();
    for trace in whole_recordings("counts_by_kind_of_whole_recordings") {
        let expected = trace.json("counts").expect("a counts file");
        let mut theirs = BTreeMap::new();
        for row in expected["counts"].as_array().expect("a list") {
            let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
            let number = |name: &str| row[name].as_u64().unwrap_or_default();
            *theirs.entry((text("provider"), number("event_id"), text("name"), number("version"))).or_default() +=
                number("count");
        }
        let mut ours: BTreeMap<_, u64> = BTreeMap::new();
        for (info, n) in count(&trace.path).types.iter().filter(|(_, n)| *n > 0) {
            let t = &info.event_type;
            let key = (info.provider.clone(), u64::from(t.event_id), t.name.clone(), u64::from(t.version));
            *ours.entry(key).or_default() += n;
        }
        for key in theirs.keys().chain(ours.keys()).collect::<std::collections::BTreeSet<_>>() {
            if theirs.get(key) != ours.get(key) {
                wrong.push(format!(
                    "{}: {key:?}: expected {:?}, read {:?}",
                    trace.name,
                    theirs.get(key),
                    ours.get(key)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_event_of_whole_recordings() {
    let mut wrong = Vec::new();
    let (mut files, mut events) = (0, 0);
    let traces = whole_recordings("every_event_of_whole_recordings");
    if traces.is_empty() {
        return;
    }
    for trace in traces {
        let Some(expected) = trace.events() else { continue };
        let recording = Recording::open(&trace.path);
        if expected.len() != recording.events.len() {
            wrong.push(format!("{}: expected {} events, read {}", trace.name, expected.len(), recording.events.len()));
        }
        let before = wrong.len();
        for (index, (expected, seen)) in expected.iter().zip(&recording.events).enumerate() {
            for difference in event_differences(expected, seen, &recording) {
                if wrong.len() < before + 20 {
                    let what = (&expected["provider"], &expected["event_id"]);
                    wrong.push(format!("{} event {index} {what:?}: {difference}", trace.name));
                }
            }
        }
        if trace.path.extension().is_none_or(|e| e != "zst") {
            let bytes = std::fs::read(&trace.path).expect("a readable file");
            let there = |e: &Seen| bytes.get(e.offset as usize..).is_some_and(|rest| rest.starts_with(&e.payload));
            if !recording.events.iter().all(there) {
                wrong.push(format!("{}: a payload is not where its offset says", trace.name));
            }
        }
        files += 1;
        events += expected.len();
    }
    println!("{events} events of {files} files");
    // Of the largest ones there are counts only.
    assert!(files >= 22 && events > 100_000, "{events} events of {files} files");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
