//! Tasks of the Task Parallel Library, against what another decoder read of the same recording.

use std::collections::BTreeMap;

use crate::support::dataset::Dataset;
use crate::support::expected::{shared_traces, traces_in};

/// Starts and ends by task and time, as the events are: (start, end) in nanoseconds since the recording began.
fn pairs(events: &[serde_json::Value], begin: &str, end: &str) -> Vec<(u64, i64, i64)> {
    let (mut open, mut pairs) = (BTreeMap::<u64, Vec<i64>>::new(), Vec::new());
    for event in events {
        let Some(task) = event["fields"]["TaskID"].as_u64() else { continue };
        let at = event["utc_ns"].as_i64().unwrap();
        if event["name"] == begin {
            open.entry(task).or_default().push(at);
        } else if event["name"] == end
            && let Some(start) = open.get_mut(&task).and_then(Vec::pop)
        {
            pairs.push((task, start, at));
        }
    }
    pairs.sort_unstable();
    pairs
}

#[test]
fn tasks_run_from_their_start_to_their_end() {
    let Some(folder) = shared_traces("tasks_run_from_their_start_to_their_end") else { return };
    let traces = traces_in(&folder.join("net10"));
    let trace = traces.iter().find(|trace| trace.name.starts_with("net10-threads")).expect("net10-threads");
    let provider = "System.Threading.Tasks.TplEventSource";
    let events = trace.events().expect("events");
    let events: Vec<serde_json::Value> = events.into_iter().filter(|event| event["provider"] == provider).collect();
    let activity = Dataset::of(&trace.path).table("activity");
    let (start, end) = (activity.signed("start_ts_ns"), activity.signed("end_ts_ns"));
    let (names, providers) = (activity.texts("name"), activity.texts("provider_name"));
    let (fields, outcomes, paired) =
        (activity.texts("start_fields"), activity.texts("outcome"), activity.texts("paired_by"));
    // Times of the other decoder are UTC: compared are differences to the first start.
    for (name, begin, stop, at_least) in [
        ("Task", "TaskStarted", "TaskCompleted", 2400),
        ("TaskWait", "TaskWaitBegin", "TaskWaitEnd", 5),
        ("Operation", "TraceOperationBegin", "TraceOperationEnd", 2400),
    ] {
        let mut found = Vec::new();
        for row in (0..activity.rows()).filter(|row| providers[*row] == provider && names[*row] == name) {
            let Some(end) = end[row] else { continue };
            let fields: serde_json::Value = serde_json::from_str(&fields[row]).unwrap();
            found.push((fields["TaskID"].as_u64().unwrap(), start[row].unwrap(), end));
            assert_eq!(paired[row], "fields");
            let known = ["completed", "failed", "canceled"].contains(&outcomes[row].as_str());
            assert_eq!(known, name != "TaskWait", "{name}: {}", outcomes[row]);
        }
        found.sort_unstable();
        let expected = pairs(&events, begin, stop);
        assert_eq!(found.len(), expected.len(), "{name}");
        assert!(found.len() >= at_least, "{name}: {}", found.len());
        let offset = expected[0].1 - found[0].1;
        for (found, expected) in found.iter().zip(&expected) {
            let shifted = (found.0, found.1 + offset, found.2 + offset);
            let near = |a: i64, b: i64| (a - b).abs() <= 1;
            assert!(
                shifted.0 == expected.0 && near(shifted.1, expected.1) && near(shifted.2, expected.2),
                "{name}: {shifted:?}, expected {expected:?}"
            );
        }
    }
}
