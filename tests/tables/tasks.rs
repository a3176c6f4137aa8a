//! Tasks of the Task Parallel Library, against what another decoder read of the same recording.

use std::collections::{BTreeMap, BTreeSet};

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

/// An event of the other decoder: its name, time in nanoseconds since the recording began, thread and fields.
struct Event<'e> {
    name: &'e str,
    ns: i64,
    thread: u64,
    fields: &'e serde_json::Value,
}

impl Event<'_> {
    fn number(&self, field: &str) -> u64 {
        self.fields[field].as_u64().unwrap_or_else(|| panic!("{}: no {field}", self.name))
    }

    fn task(&self) -> u64 {
        self.number("TaskID")
    }

    /// The work is that of the task itself: not that of those who wait for its end.
    fn is_execution(&self) -> bool {
        self.number("Work") == 2
    }
}

/// What the events say of one task. Times are nanoseconds.
#[derive(Debug, Default, PartialEq)]
struct Task {
    parent: Option<u64>,
    kind: String,
    created: Option<i64>,
    thread: u64,
    resumed: Option<i64>,
    end: Option<i64>,
    outcome: String,
    running: Option<i64>,
    waiting: Option<i64>,
    resumes: u64,
    switches: u64,
}

/// A thread ran a task from one time to another: thread, task, start, end.
type Stretch = (u64, u64, i64, i64);

/// From the event that starts a task to its end; of tasks that no thread starts (async methods) each time of
/// synchronous work.
fn stretches(events: &[Event<'_>]) -> Vec<Stretch> {
    let started = events.iter().filter(|event| event.name == "TaskStarted").map(|event| event.task());
    let started: BTreeSet<u64> = started.collect();
    let (mut stretches, mut open) = (Vec::new(), BTreeMap::new());
    let mut works = BTreeMap::<u64, Vec<(u64, i64)>>::new();
    for event in events {
        match event.name {
            "TaskStarted" => {
                open.insert(event.task(), (event.thread, event.ns));
            }
            "TraceOperationEnd" | "TaskCompleted" => {
                if let Some((thread, start)) = open.remove(&event.task()) {
                    assert_eq!(thread, event.thread, "a task ends on the thread that started it");
                    stretches.push((thread, event.task(), start, event.ns));
                }
            }
            "TraceSynchronousWorkBegin" if event.is_execution() => {
                works.entry(event.thread).or_default().push((event.task(), event.ns));
            }
            "TraceSynchronousWorkEnd" if event.is_execution() => {
                let (task, start) = works.get_mut(&event.thread).and_then(Vec::pop).expect("work that began");
                if !started.contains(&task) {
                    stretches.push((event.thread, task, start, event.ns));
                }
            }
            _ => {}
        }
    }
    assert!(open.is_empty() && works.values().all(Vec::is_empty));
    stretches
}

/// A thread had this task alone: a stretch without those that lie in it, and how many lie around it.
fn alone(stretches: &[Stretch]) -> BTreeSet<(Stretch, u64)> {
    let mut alone = BTreeSet::new();
    for thread in stretches.iter().map(|stretch| stretch.0).collect::<BTreeSet<_>>() {
        let of_thread: Vec<&Stretch> = stretches.iter().filter(|stretch| stretch.0 == thread).collect();
        let times: BTreeSet<i64> = of_thread.iter().flat_map(|stretch| [stretch.2, stretch.3]).collect();
        for (from, to) in times.iter().zip(times.iter().skip(1)) {
            let around = of_thread.iter().filter(|stretch| stretch.2 <= *from && *to <= stretch.3);
            if let Some(inner) = around.clone().max_by_key(|stretch| stretch.2) {
                alone.insert(((thread, inner.1, *from, *to), around.count() as u64 - 1));
            }
        }
    }
    alone
}

fn tasks(events: &[Event<'_>], stretches: &[Stretch], alone: &BTreeSet<(Stretch, u64)>) -> BTreeMap<u64, Task> {
    let mut tasks = BTreeMap::<u64, Task>::new();
    for event in events {
        let Some(task) = event.fields["TaskID"].as_u64().map(|id| tasks.entry(id).or_default()) else { continue };
        match event.name {
            "TraceOperationBegin" | "TaskScheduled" => {
                if task.created.is_none() {
                    (task.created, task.thread) = (Some(event.ns), event.thread);
                }
                let name = event.fields["OperationName"].as_str();
                task.kind = match name.and_then(|name| name.split_once(": ")) {
                    Some(("Async", _)) => "state_machine".to_owned(),
                    _ if event.name == "TaskScheduled" => "task".to_owned(),
                    _ => std::mem::take(&mut task.kind),
                };
                if let Some(parent) = event.fields["CreatingTaskID"].as_u64().filter(|id| *id != 0) {
                    task.parent = Some(parent);
                }
            }
            "TaskWaitBegin" if event.number("Behavior") == 2 => {
                task.parent = Some(event.number("ContinueWithTaskID"));
            }
            "TraceOperationEnd" | "TaskCompleted" if task.end.is_none() => {
                task.end = Some(event.ns);
                let is_failed =
                    event.fields["Status"] == 3 || event.fields["IsExceptional"].as_bool().unwrap_or_default();
                task.outcome = if is_failed { "failed" } else { "completed" }.to_owned();
            }
            _ => {}
        }
    }
    for (id, task) in &mut tasks {
        let runs: Vec<&Stretch> = stretches.iter().filter(|stretch| stretch.1 == *id).collect();
        assert!(runs.len() <= 1, "{id} goes on once at most");
        let (created, end) = (task.created.expect("a beginning"), task.end.expect("an end"));
        task.waiting = Some(end - created);
        let Some(run) = runs.first() else { continue };
        (task.resumed, task.waiting, task.resumes) = (Some(run.2), Some(run.2 - created), 1);
        task.switches = u64::from(run.0 != task.thread);
        // What the thread does behind the end of the task is not the task's.
        let own = alone.iter().filter(|((_, task, ..), _)| task == id);
        task.running = Some(own.map(|((.., from, to), _)| (end.min(*to) - from).max(0)).sum());
    }
    tasks
}

#[test]
fn tasks_and_their_waits_are_those_of_another_decoder() {
    let Some(folder) = shared_traces("tasks_and_their_waits_are_those_of_another_decoder") else { return };
    let traces = traces_in(&folder.join("net10"));
    let trace = traces.iter().find(|trace| trace.name.starts_with("net10-threads")).expect("net10-threads");
    let info = trace.json("info").expect("what it says of the recording");
    assert_eq!(info["freq"], 1_000_000_000);
    let began = info["sync_qpc"].as_i64().unwrap();
    let lines = trace.events().expect("events");
    let of_tasks = lines.iter().filter(|line| line["provider"] == "System.Threading.Tasks.TplEventSource");
    let events: Vec<Event<'_>> = of_tasks
        .map(|line| Event {
            name: line["name"].as_str().unwrap(),
            ns: line["ts"].as_i64().unwrap() - began,
            thread: line["tid"].as_u64().unwrap(),
            fields: &line["fields"],
        })
        .collect();
    let stretches = stretches(&events);
    let alone = alone(&stretches);
    let expected = tasks(&events, &stretches, &alone);
    // 2,412 that a thread started, six async methods, Task.Delay and Task.Unwrap.
    assert_eq!((expected.len(), stretches.len()), (2420, 2418));
    assert!(alone.len() > stretches.len() && alone.iter().any(|(_, nesting)| *nesting > 1), "some lie in others");

    let dataset = Dataset::of(&trace.path);
    let table = dataset.table("async_task");
    let [created, resumed, end, running, waiting] =
        ["created_ts_ns", "first_resumed_ts_ns", "end_ts_ns", "running_ns", "waiting_ns"]
            .map(|column| table.signed(column));
    let [threads, resumes, switches] =
        ["thread_id", "resume_count", "thread_switch_count"].map(|column| table.numbers(column));
    let (parents, kinds, outcomes) = (table.optional("parent_task_id"), table.texts("kind"), table.texts("outcome"));
    let task = |row: usize| Task {
        parent: parents[row],
        kind: kinds[row].clone(),
        created: created[row],
        thread: threads[row],
        resumed: resumed[row],
        end: end[row],
        outcome: outcomes[row].clone(),
        running: running[row],
        waiting: waiting[row],
        resumes: resumes[row],
        switches: switches[row],
    };
    let ids = table.numbers("task_id");
    assert_eq!(ids.len(), expected.len());
    for (row, id) in ids.iter().enumerate() {
        assert_eq!(Some(&task(row)), expected.get(id), "{id}");
    }
    assert!(table.texts("source").iter().all(|source| source == "tpl"));
    assert!(!table.bools("touches_gap").iter().any(|touches| *touches));

    let table = dataset.table("async_callsite");
    let [threads, of, nesting] = ["thread_id", "task_id", "nesting"].map(|column| table.numbers(column));
    let [starts, ends] = ["start_ts_ns", "end_ts_ns"].map(|column| table.signed(column));
    let row = |row: usize| ((threads[row], of[row], starts[row].unwrap(), ends[row].unwrap()), nesting[row]);
    let found: BTreeSet<_> = (0..table.rows()).map(row).collect();
    assert_eq!(found.len(), table.rows());
    // What a thread does behind the end of a task is work for those that waited for it.
    let of_task = |((thread, task, start, end), nesting): &(Stretch, u64)| {
        let end = expected.get(task).and_then(|task| task.end).map_or(*end, |over| over.min(*end));
        (*start < end).then_some(((*thread, *task, *start, end), *nesting))
    };
    let alone: BTreeSet<_> = alone.iter().filter_map(of_task).collect();
    let different: Vec<_> = found.symmetric_difference(&alone).collect();
    assert!(different.is_empty(), "{}: {:?}", different.len(), &different[..different.len().min(6)]);
    assert!(table.bools("complete").iter().all(|complete| *complete));

    // A wait is over when its task goes on, or when the event says so.
    let begins = events.iter().enumerate().filter(|(_, event)| event.name == "TaskWaitBegin");
    let waits = begins.map(|(at, begin)| {
        let is_blocking = begin.number("Behavior") == 1;
        let waiter = begin.number(if is_blocking { "OriginatingTaskID" } else { "ContinueWithTaskID" });
        let is_end = |event: &&Event<'_>| match event.name {
            "TaskWaitEnd" => event.task() == begin.task(),
            "TraceSynchronousWorkBegin" => !is_blocking && event.is_execution() && event.task() == waiter,
            _ => false,
        };
        let end = events[at..].iter().find(is_end).expect("an end");
        let waiter = (waiter != 0).then_some(waiter);
        let kind = if is_blocking { "blocking" } else { "async" };
        (begin.ns, waiter, begin.task(), kind.to_owned(), end.ns, begin.thread, end.thread)
    });
    let expected: Vec<_> = waits.collect();
    assert_eq!(expected.len(), 7);
    let table = dataset.table("async_wait");
    let (of, awaited, kinds) = (table.optional("task_id"), table.numbers("awaited_task_id"), table.texts("kind"));
    let [starts, ends] = ["start_ts_ns", "end_ts_ns"].map(|column| table.signed(column));
    let [threads, end_threads] = ["thread_id", "end_thread_id"].map(|column| table.numbers(column));
    let row = |row: usize| {
        let (start, end) = (starts[row].unwrap(), ends[row].unwrap());
        (start, of[row], awaited[row], kinds[row].clone(), end, threads[row], end_threads[row])
    };
    let mut found: Vec<_> = (0..table.rows()).map(row).collect();
    found.sort_unstable();
    assert_eq!(found, expected);
}
