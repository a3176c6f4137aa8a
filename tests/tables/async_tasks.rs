//! Tasks, what threads ran for them and what they waited for: against programs that wrote down what they did
//! (`samples/src/Awaits.cs`), and against made-up machines whose buffers of the async profiler are written here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::support::dataset::{Dataset, Table};
use crate::support::mutate::Random;
use crate::support::writer::{FREQUENCY, Form, Kind, Row, Type, Writer, varuint};

const PROFILER: &str = "System.Runtime.CompilerServices.AsyncProfilerEventSource";
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const BUFFER: Kind<'_> = Kind { id: 1, provider: PROFILER, event_id: 1, version: 1, name: "AsyncEvents" };
const METHOD_LOAD: Kind<'_> = Kind { id: 2, provider: RUNTIME, event_id: 143, version: 1, name: "" };

/// Bytes of the length before the payload of each id.
const LENGTHS: [u8; 25] = [0, 1, 1, 0, 0, 1, 2, 2, 2, 0, 0, 1, 1, 0, 0, 1, 2, 0, 0, 2, 0, 0, 2, 1, 1];

fn sample(name: &str) -> Dataset {
    Dataset::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name))
}

/// What a program wrote down: the lines of one kind, as words without the first one.
pub fn stated(name: &str, kind: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name);
    let text = std::fs::read_to_string(path).expect("what the program says");
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<_> = text.lines().map(words).filter(|words| words[0] == kind).collect();
    assert!(!lines.is_empty(), "nothing of {kind}");
    lines.into_iter().map(|words| words[1..].to_vec()).collect()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap()
}

fn ms(ns: Option<i64>) -> f64 {
    ns.expect("a time") as f64 / 1e6
}

fn column(table: &Table, name: &str) -> Vec<Option<i64>> {
    table.signed(name)
}

// ---- what TplEventSource says of runtimes before .NET 11

#[test]
fn methods_wait_and_run_as_long_as_the_program_measures() {
    let dataset = sample("awaits.nettrace.zst");
    let tasks = dataset.table("async_task");
    let (methods, kinds, sources) = (tasks.texts("method"), tasks.texts("kind"), tasks.texts("source"));
    let (waiting, running) = (column(&tasks, "waiting_ns"), column(&tasks, "running_ns"));
    let (created, resumed, ended) =
        (column(&tasks, "created_ts_ns"), column(&tasks, "first_resumed_ts_ns"), column(&tasks, "end_ts_ns"));
    let (resumes, outcomes) = (tasks.numbers("resume_count"), tasks.texts("outcome"));
    assert!(sources.iter().all(|source| source == "tpl"));
    let mut checked = 0;
    for method in ["Order", "Stock", "Pay"] {
        let mut rows: Vec<usize> = (0..tasks.rows()).filter(|row| methods[*row] == method).collect();
        rows.sort_by_key(|row| created[*row]);
        // The first one of each is that before the program began to write down.
        let expected = stated("awaits.truth.txt", "method").into_iter().filter(|line| line[0] == method);
        let expected: Vec<_> = expected.collect();
        assert_eq!(rows.len(), expected.len() + 1, "{method}");
        for (row, line) in rows[1..].iter().copied().zip(&expected) {
            let (waited, ran) = (number(&line[2]), number(&line[3]));
            // The program measures from before the call to behind the wait, and what it ran itself; the events have
            // what lies between.
            let (event_waited, event_ran) = (ms(waiting[row]), ms(running[row]));
            assert!(event_waited <= waited + 0.1, "{line:?}: {event_waited}");
            assert!(event_ran >= ran - 0.1, "{line:?}: {event_ran}");
            if method != "Order" {
                assert!(event_waited > waited - 5.0 && event_ran < ran + 5.0, "{line:?}: {event_waited} {event_ran}");
            }
            let whole = ms(ended[row]) - ms(created[row]);
            assert!((event_waited + event_ran - whole).abs() < 1.0 || method == "Order", "{line:?}: {whole}");
            assert_eq!((kinds[row].as_str(), outcomes[row].as_str()), ("state_machine", "completed"));
            assert_eq!(resumes[row].to_string(), line[4], "{line:?}");
            assert!(created[row] < resumed[row] && resumed[row] < ended[row]);
            checked += 1;
        }
    }
    assert_eq!(checked, 12);
    let row = |method: &str| (0..tasks.rows()).find(|row| methods[*row] == method).unwrap();
    assert_eq!(outcomes[row("Fails")], "failed");
    // A work item: it runs once, between being queued and its end.
    let work = number(&stated("awaits.truth.txt", "work")[0][0]);
    let items: Vec<usize> = (0..tasks.rows()).filter(|row| kinds[*row] == "task").collect();
    let item = items.into_iter().max_by_key(|row| running[*row]).expect("a work item");
    assert!((work..work + 10.0).contains(&ms(running[item])), "{work} {:?}", running[item]);
    assert!(methods[item].contains("Awaits") || methods[item].contains("Run"), "{}", methods[item]);
}

#[test]
fn tasks_are_awaited_by_the_method_that_calls_them() {
    let dataset = sample("awaits.nettrace.zst");
    let tasks = dataset.table("async_task");
    let (methods, ids, parents) = (tasks.texts("method"), tasks.numbers("task_id"), tasks.optional("parent_task_id"));
    let method_of = |id: u64| ids.iter().position(|known| *known == id).map_or("", |row| methods[row].as_str());
    let mut seen = BTreeMap::new();
    for row in 0..tasks.rows() {
        let parent = parents[row].map_or("", method_of);
        *seen.entry((methods[row].as_str(), parent)).or_insert(0) += 1;
    }
    for (pair, count) in
        [(("Stock", "Order"), 5), (("Pay", "Order"), 5), (("Task.Delay", "Stock"), 5), (("Order", ""), 5)]
    {
        assert_eq!(seen.get(&pair), Some(&count), "{pair:?} {seen:?}");
    }
}

#[test]
fn what_methods_were_blocked_on_is_what_the_program_says() {
    let test = "what_methods_were_blocked_on_is_what_the_program_says";
    let Some(python) = crate::support::python::python(test) else { return };
    let dataset = sample("awaits.nettrace.zst");
    let query = "SELECT method, coalesce(awaited, '?'), chain[-1], source IS NOT NULL, printf('%.4f', duration_ms) FROM blocked_on \
                 WHERE method IN ('Stock', 'Pay') AND kind = 'async' ORDER BY start_ts_ns";
    let found = crate::tables::queries::asked(&python, &dataset, query);
    let found: Vec<&str> = found.lines().skip(2).collect();
    let expected = stated("awaits.truth.txt", "blocked");
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (row, line) in found.iter().zip(&expected) {
        let start = format!("('{}', '{}', 'Order', True, '", line[0], line[1]);
        let event = row.strip_prefix(&start).unwrap_or_else(|| panic!("{row} {line:?}")).trim_end_matches("')");
        let (event, program) = (number(event), number(&line[2]));
        assert!(event <= program + 0.1 && event > program - 5.0, "{row} {line:?}");
    }
    // Every request of the program has its two waits.
    let query = "SELECT count(*), count(DISTINCT request_start_ts_ns) FROM blocked_on WHERE request_start_ts_ns IS NOT NULL AND kind = 'async'";
    assert_eq!(crate::tables::queries::asked(&python, &dataset, query), "(8, 4)\n");
    // The same by request: the two waits of each.
    let query = "SELECT path, printf('%.4f', await_ms), await_method FROM request_time ORDER BY start_ts_ns";
    let found = crate::tables::queries::asked(&python, &dataset, query);
    for (request, line) in found.lines().enumerate() {
        let waits = &expected[2 * request..2 * request + 2];
        let words: Vec<&str> = line.trim_matches(['(', ')']).split(", ").map(|word| word.trim_matches('\'')).collect();
        assert_eq!(words[0], format!("/order/{}", request + 1));
        let sum: f64 = waits.iter().map(|wait| number(&wait[2])).sum();
        assert!((sum - 10.0..sum + 0.2).contains(&number(words[1])), "{line} {waits:?}");
        let longest = waits.iter().max_by(|a, b| number(&a[2]).total_cmp(&number(&b[2]))).unwrap();
        let is_close = (number(&waits[0][2]) - number(&waits[1][2])).abs() < 5.0;
        assert!(words[2] == longest[0] || is_close, "{line} {waits:?}");
    }
    assert_eq!(found.lines().count(), 4);
    // Where another source reports the same requests, they awaited the same.
    let query = "CREATE TABLE once AS FROM activity;
        CREATE OR REPLACE VIEW activity AS FROM once UNION ALL SELECT * REPLACE ('Microsoft-AspNetCore-Server-Kestrel' AS provider_name)
        FROM once WHERE provider_name = 'Microsoft.AspNetCore.Hosting';
        SELECT DISTINCT count(*), printf('%.4f', sum(await_ms)) FROM request_time GROUP BY source";
    let sums: f64 = found.lines().map(|line| number(line.split(", ").nth(1).unwrap().trim_matches('\''))).sum();
    let of_both = crate::tables::queries::asked(&python, &dataset, query);
    let of_both = of_both.trim().strip_prefix("(4, '").and_then(|rest| rest.strip_suffix("')"));
    assert!((number(of_both.expect("the same of both")) - sums).abs() < 0.001, "{of_both:?} {sums}");
    let query = "SELECT method, tasks, failed, not_ended FROM async_by_method WHERE method IN ('Order', 'Fails') ORDER BY method";
    assert_eq!(crate::tables::queries::asked(&python, &dataset, query), "('Fails', 1, 1, 0)\n('Order', 5, 0, 0)\n");
}

/// Events of a thread: ticks, metadata id, payload.
fn rows_of(events: &[(i64, u32, Vec<u8>)], thread: u64) -> Vec<Row> {
    let row = |(number, (ticks, metadata_id, payload)): (usize, &(i64, u32, Vec<u8>))| Row {
        metadata_id: *metadata_id,
        sequence: number as u32 + 1,
        capture_thread: thread,
        thread,
        ticks: *ticks,
        payload: payload.clone(),
        ..Row::default()
    };
    events.iter().enumerate().map(row).collect()
}

/// A recording of TplEventSource of these events: ticks, which of them, payload. All are of thread 9.
fn tpl(events: &[(i64, u32, Vec<u8>)]) -> Dataset {
    let kind =
        |id, name| Kind { id, provider: "System.Threading.Tasks.TplEventSource", event_id: id, version: 1, name };
    let int = |name| (name, Type::Int);
    let head = [int("OriginatingTaskSchedulerID"), int("OriginatingTaskID"), int("TaskID")];
    let mut writer = Writer::new(Form::V4);
    writer.described(kind(1, "TaskWaitBegin"), &[&head[..], &[int("Behavior"), int("ContinueWithTaskID")]].concat());
    writer.described(kind(2, "TraceSynchronousWorkBegin"), &[int("TaskID"), int("Work")]);
    writer.described(kind(3, "TraceSynchronousWorkEnd"), &[int("Work")]);
    writer.described(kind(4, "TraceOperationBegin"), &[int("TaskID"), ("OperationName", Type::String)]);
    writer.described(kind(5, "TraceOperationEnd"), &[int("TaskID"), int("Status")]);
    writer.described(kind(6, "TaskWaitEnd"), &head);
    writer.metadata(&[Kind { id: THROWN, provider: RUNTIME, event_id: 80, version: 1, name: "" }]).metadata(&ABOUT);
    let rows = rows_of(events, 9);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), writer.events(&rows).end()).unwrap();
    Dataset::of(file.path())
}

/// An exception, in such a recording.
const THROWN: u32 = 7;

/// What a thread does that leads to its callers: a sample, an allocation, a wait.
const ABOUT: [Kind<'_>; 4] = [
    Kind { id: 8, provider: "Microsoft-DotNETCore-SampleProfiler", event_id: 0, version: 0, name: "" },
    Kind { id: 9, provider: RUNTIME, event_id: 10, version: 4, name: "" },
    Kind { id: 10, provider: RUNTIME, event_id: 301, version: 0, name: "" },
    Kind { id: 11, provider: RUNTIME, event_id: 302, version: 0, name: "" },
];

/// One of each from a time on.
fn about(ticks: i64) -> [(i64, u32, Vec<u8>); 4] {
    let mut allocation = [&[104, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &104u64.to_le_bytes(), &[0; 8]].concat();
    allocation.extend(utf16z("Shop.Order"));
    allocation.extend([0; 4 + 8 + 8]);
    let wait = [&[1][..], &[0; 8 + 2]].concat();
    [
        (ticks, 8, 2u32.to_le_bytes().to_vec()),
        (ticks + 1, 9, allocation),
        (ticks + 2, 10, wait),
        (ticks + 3, 11, vec![0; 2]),
    ]
}

/// These as a relation: what it was, and when it began.
const WHAT: &str = "WITH what AS (
    SELECT trace_id, process_id, thread_id, ts_ns, 'sample' AS kind FROM cpu_sample
    UNION ALL SELECT trace_id, process_id, thread_id, ts_ns, 'allocation' FROM allocation
    UNION ALL SELECT trace_id, process_id, thread_id, start_ts_ns, 'wait' FROM wait)";

fn ints(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn utf16z(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

fn named(id: u32, name: &str) -> Vec<u8> {
    [ints(&[id]), utf16z(name)].concat()
}

/// Below the verbose level the end of a wait is not recorded: the method that awaited goes on.
#[test]
fn waits_end_when_the_method_goes_on() {
    // Task 5 awaits 6 and then 7, which 8 awaits, too; a thread waits for 5.
    let events = [
        (10, 4, named(5, "Async: <Load>d__3")),
        (11, 1, ints(&[1, 0, 6, 2, 5])),
        (12, 1, ints(&[1, 0, 5, 1, 0])),
        (20, 2, ints(&[5, 2])),
        (22, 4, named(7, "Task.Delay")),
        (23, 1, ints(&[1, 0, 7, 2, 5])),
        (24, 1, ints(&[1, 0, 7, 2, 8])),
        (25, 3, ints(&[2])),
        (30, 2, ints(&[7, 0])),
        (31, 2, ints(&[8, 2])),
        (33, 3, ints(&[2])),
        (40, 2, ints(&[5, 2])),
        (44, 5, ints(&[5, 3])),
        (46, 3, ints(&[2])),
        (47, 6, ints(&[1, 0, 5])),
    ];
    let dataset = tpl(&events);
    let waits = dataset.table("async_wait");
    let (of, awaited) = (waits.optional("task_id"), waits.numbers("awaited_task_id"));
    let (starts, ends, kinds) = (waits.signed("start_ts_ns"), waits.signed("end_ts_ns"), waits.texts("kind"));
    let ticks = |ns: Option<i64>| ns.map(|ns| ns / 100);
    let found: Vec<_> = (0..waits.rows())
        .map(|row| (of[row], awaited[row], ticks(starts[row]), ticks(ends[row]), kinds[row].as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (Some(5), 6, Some(11), Some(20), "async"),
            (None, 5, Some(12), Some(47), "blocking"),
            (Some(5), 7, Some(23), Some(40), "async"),
            (Some(8), 7, Some(24), Some(31), "async"),
        ]
    );
    let tasks = dataset.table("async_task");
    let row = tasks.numbers("task_id").iter().position(|id| *id == 5).unwrap();
    let of_task = |column: &str| ticks(tasks.signed(column)[row]);
    assert_eq!(
        ["created_ts_ns", "first_resumed_ts_ns", "end_ts_ns", "running_ns", "waiting_ns"].map(of_task),
        [10, 20, 44, 5 + 4, 10 + 15].map(Some)
    );
    assert_eq!((tasks.texts("method")[row].as_str(), tasks.texts("outcome")[row].as_str()), ("Load", "failed"));
}

/// Exceptions of today's runtimes lead to the tasks that await the one that threw.
#[test]
fn exceptions_of_tasks_lead_to_the_tasks_that_await_them() {
    let Some(python) = crate::support::python::python("exceptions_of_tasks_lead_to_the_tasks_that_await_them") else {
        return;
    };
    let thrown = |message: &str| [utf16z("System.Exception"), utf16z(message), vec![0; 8 + 4 + 2 + 2]].concat();
    // Task 5 awaits 6, which awaits 7; 8 is awaited by none. Where 6 ends, 5 goes on within it.
    let dataset = tpl(&[
        (10, 4, named(7, "Task.Delay")),
        (11, 4, named(6, "Async: <Inner>d__1")),
        (12, 1, ints(&[1, 0, 7, 2, 6])),
        (13, 4, named(5, "Async: <Outer>d__0")),
        (14, 1, ints(&[1, 0, 6, 2, 5])),
        (15, 4, named(8, "Async: <Other>d__2")),
        (18, THROWN, thrown("of none")),
        (20, 2, ints(&[6, 2])),
        (21, THROWN, thrown("of Inner")),
        (25, 2, ints(&[5, 2])),
        (26, THROWN, thrown("of Outer")),
        (28, 3, ints(&[2])),
        (30, 3, ints(&[2])),
        (40, 2, ints(&[8, 2])),
        (41, THROWN, thrown("of Other")),
        (42, 3, ints(&[2])),
        (43, THROWN, thrown("of none")),
    ]);
    let query = "SELECT e.message, array_to_string(c.callers, ' < ') FROM exception e \
                 ASOF JOIN async_callsite a ON a.trace_id = e.trace_id AND a.thread_id = e.thread_id AND e.ts_ns >= a.start_ts_ns \
                 JOIN async_callers c ON c.trace_id = a.trace_id AND c.source = a.source AND c.task_id = a.task_id \
                 WHERE e.ts_ns < a.end_ts_ns ORDER BY e.ts_ns";
    assert_eq!(
        crate::tables::queries::asked(&python, &dataset, query),
        "('of Inner', 'Inner < Outer')\n('of Outer', 'Outer')\n('of Other', 'Other')\n"
    );
    // A task that is its own caller, by ids that are given out again: the chain ends.
    let dataset = tpl(&[
        (10, 4, named(5, "Async: <A>d__1")),
        (11, 4, named(6, "Async: <B>d__1")),
        (12, 1, ints(&[1, 0, 5, 2, 6])),
        (13, 1, ints(&[1, 0, 6, 2, 5])),
    ]);
    let found = crate::tables::queries::asked(&python, &dataset, "SELECT max(len(callers)) <= 101 FROM async_callers");
    assert_eq!(found, "(True,)\n");
}

/// Of the four samples, allocations and waits, two each lie within a task: the others are rows, too.
fn two_of_each_kind_are_for_no_task(python: &Path, dataset: &Dataset) {
    let query = format!("{WHAT} SELECT kind, count(*) FROM what GROUP BY kind ORDER BY kind");
    assert_eq!(
        crate::tables::queries::asked(python, dataset, &query),
        "('allocation', 4)\n('sample', 4)\n('wait', 4)\n",
        "two of each were for no task"
    );
}

/// The same of samples, allocations and waits.
#[test]
fn samples_allocations_and_waits_lead_to_the_tasks_that_await_them() {
    let test = "samples_allocations_and_waits_lead_to_the_tasks_that_await_them";
    let Some(python) = crate::support::python::python(test) else { return };
    // Task 5 awaits 6, which awaits 7. Where 6 ends, 5 goes on within it.
    let mut events = vec![
        (10, 4, named(7, "Task.Delay")),
        (11, 4, named(6, "Async: <Inner>d__1")),
        (12, 1, ints(&[1, 0, 7, 2, 6])),
        (13, 4, named(5, "Async: <Outer>d__0")),
        (14, 1, ints(&[1, 0, 6, 2, 5])),
    ];
    events.extend(about(15));
    events.push((20, 2, ints(&[6, 2])));
    events.extend(about(21));
    events.push((25, 2, ints(&[5, 2])));
    events.extend(about(26));
    events.extend([(30, 3, ints(&[2])), (31, 3, ints(&[2]))]);
    events.extend(about(32));
    let dataset = tpl(&events);
    let query = format!(
        "{WHAT} SELECT w.kind, w.ts_ns // 100, array_to_string(c.callers, ' < ') FROM what w
         ASOF JOIN async_callsite a ON a.trace_id = w.trace_id AND a.process_id = w.process_id AND a.thread_id = w.thread_id
            AND w.ts_ns >= a.start_ts_ns
         JOIN async_callers c ON c.trace_id = a.trace_id AND c.process_id = a.process_id AND c.source = a.source AND c.task_id = a.task_id
         WHERE w.ts_ns < a.end_ts_ns ORDER BY w.ts_ns"
    );
    assert_eq!(
        crate::tables::queries::asked(&python, &dataset, &query),
        "('sample', 21, 'Inner < Outer')\n('allocation', 22, 'Inner < Outer')\n('wait', 23, 'Inner < Outer')\n\
         ('sample', 26, 'Outer')\n('allocation', 27, 'Outer')\n('wait', 28, 'Outer')\n"
    );
    two_of_each_kind_are_for_no_task(&python, &dataset);
}

// ---- buffers of the async profiler

#[test]
fn buffers_that_a_program_wrote_are_its_tasks() {
    let dataset = sample("async-buffers.nettrace.zst");
    assert_eq!(dataset.problems(), []);
    let tasks = dataset.table("async_task");
    let expected = stated("async-buffers.truth.txt", "task");
    assert_eq!(tasks.rows(), expected.len());
    let methods = tasks.texts("method");
    let (ids, parents) = (tasks.numbers("task_id"), tasks.optional("parent_task_id"));
    for (row, line) in expected.iter().enumerate() {
        assert_eq!(
            (ids[row].to_string(), parents[row].map(|id| id.to_string())),
            (line[0].clone(), Some(line[1].clone()))
        );
        assert_eq!(methods[row], format!("AsyncBuffers.{}", line[2]));
        let near = |column: &str, text: &str| (ms(tasks.signed(column)[row]) - number(text)).abs() < 0.0002;
        assert!(near("running_ns", &line[3]) && near("waiting_ns", &line[4]), "{line:?}");
        assert_eq!(tasks.numbers("resume_count")[row].to_string(), line[5]);
        assert_eq!(tasks.numbers("thread_switch_count")[row].to_string(), line[6]);
        let (created, ended) = (tasks.signed("created_ts_ns")[row], tasks.signed("end_ts_ns")[row]);
        assert!((ms(ended) - ms(created) - number(&line[7])).abs() < 0.0002, "{line:?}");
    }
    assert!(tasks.texts("kind").iter().all(|kind| kind == "state_machine"));
}

/// An exception that a thread threw while a method of a task ran leads to the method, and from there to those that
/// await it.
#[test]
fn exceptions_lead_to_the_logical_callers() {
    let dataset = sample("async-buffers.nettrace.zst");
    let (runs, exceptions) = (dataset.table("async_callsite"), dataset.table("exception"));
    let (starts, ends, threads) = (runs.signed("start_ts_ns"), runs.signed("end_ts_ns"), runs.numbers("thread_id"));
    let chains = Chains::of(&dataset);
    let callsites = runs.numbers("callsite_id");
    let (at, of, messages) = (exceptions.signed("ts_ns"), exceptions.numbers("thread_id"), exceptions.texts("message"));
    let all = ["Reads", "Loads", "Handler"].map(|name| format!("AsyncBuffers.{name}"));
    let mut found = 0;
    for row in 0..exceptions.rows() {
        let Some(name) = messages[row].strip_prefix("in ").and_then(|text| text.split(' ').next()) else { continue };
        let is_it = |run: &usize| threads[*run] == of[row] && starts[*run] <= at[row] && at[row] < ends[*run];
        let run: Vec<usize> = (0..runs.rows()).filter(is_it).collect();
        assert_eq!(run.len(), 1, "{}", messages[row]);
        let first = all.iter().position(|known| known.ends_with(name)).unwrap();
        assert_eq!(chains.names(callsites[run[0]]), all[first..], "{}", messages[row]);
        found += 1;
    }
    assert_eq!(found, 15);
    let frames = dataset.table("frame");
    let named = frames.texts("found_by").into_iter().zip(frames.texts("written_name"));
    let named: BTreeSet<String> = named.filter(|(by, _)| by == "method_id").map(|(_, name)| name).collect();
    assert_eq!(named, all.into_iter().collect());
}

/// The frames of call sites.
struct Chains {
    /// Call site to parent and frame.
    parents: BTreeMap<u64, (u64, u64)>,
    /// Frame to address and name.
    frames: BTreeMap<u64, (u64, String)>,
}

impl Chains {
    fn of(dataset: &Dataset) -> Chains {
        let (callsites, frames) = (dataset.table("callsite"), dataset.table("frame"));
        let parents = callsites.numbers("parent_callsite_id").into_iter().zip(callsites.numbers("frame_id"));
        let names = frames.numbers("address").into_iter().zip(frames.texts("written_name"));
        Chains {
            parents: callsites.numbers("callsite_id").into_iter().zip(parents).collect(),
            frames: frames.numbers("frame_id").into_iter().zip(names).collect(),
        }
    }

    fn each(&self, callsite: u64) -> Vec<&(u64, String)> {
        let (mut chain, mut at) = (Vec::new(), callsite);
        while let Some((parent, frame)) = self.parents.get(&at) {
            chain.push(&self.frames[frame]);
            at = *parent;
        }
        chain
    }

    fn names(&self, callsite: u64) -> Vec<String> {
        self.each(callsite).into_iter().map(|(_, name)| name.clone()).collect()
    }

    fn addresses(&self, callsite: u64) -> Vec<u64> {
        self.each(callsite).into_iter().map(|(address, _)| *address).collect()
    }
}

// ---- made-up machines

/// A buffer in the making.
#[derive(Clone, Default)]
struct Bytes {
    events: Vec<u8>,
    count: u32,
    first: i64,
    last: i64,
}

impl Bytes {
    fn add(&mut self, id: u8, ticks: i64, payload: &[u8]) {
        if self.count == 0 {
            (self.first, self.last) = (ticks, ticks);
        }
        self.events.push(id);
        varuint(&mut self.events, (ticks - self.last) as u64);
        self.events.extend(&(payload.len() as u16).to_le_bytes()[..usize::from(LENGTHS[usize::from(id)])]);
        self.events.extend(payload);
        self.last = ticks;
        self.count += 1;
    }

    /// The payload of the event: its length and the buffer.
    fn payload(&self, thread: u64) -> Vec<u8> {
        let mut buffer = vec![1];
        buffer.extend((37 + self.events.len() as u32).to_le_bytes());
        buffer.extend(7u32.to_le_bytes());
        buffer.extend(thread.to_le_bytes());
        buffer.extend(self.count.to_le_bytes());
        buffer.extend(self.first.to_le_bytes());
        buffer.extend(self.last.to_le_bytes());
        buffer.extend(&self.events);
        let mut payload = (buffer.len() as u32).to_le_bytes().to_vec();
        payload.extend(buffer);
        payload
    }
}

fn numbers(all: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    all.iter().for_each(|number| varuint(&mut out, *number));
    out
}

/// The payload of a call stack, the innermost frame first.
fn stack(parent: Option<u64>, id: u64, frames: &[u64], has_states: bool) -> Vec<u8> {
    let zigzag = |out: &mut Vec<u8>, value: i64| varuint(out, ((value << 1) ^ (value >> 63)) as u64);
    let mut out = vec![0, 0, frames.len() as u8];
    parent.iter().for_each(|parent| varuint(&mut out, *parent));
    varuint(&mut out, id);
    for (number, frame) in frames.iter().enumerate() {
        match number.checked_sub(1).map(|before| frames[before]) {
            None => varuint(&mut out, *frame),
            Some(before) => zigzag(&mut out, frame.wrapping_sub(before) as i64),
        }
        if has_states {
            zigzag(&mut out, number as i64 - 2);
        }
    }
    out
}

/// A method as MethodLoadVerbose has it.
fn method(id: u64, start: u64, size: u32, name: &str) -> Vec<u8> {
    let mut payload = [id, 0x77, start].iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    payload.extend([size, 0x0600_0001, 8].iter().flat_map(|number| number.to_le_bytes()));
    for text in ["Shop.Orders", name, "void ()"] {
        payload.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    }
    payload.extend([0, 0]);
    payload
}

fn recording(rows: &[Row]) -> Vec<u8> {
    Writer::new(Form::V4).metadata(&[BUFFER, METHOD_LOAD]).metadata(&ABOUT).events(rows).end()
}

fn dataset_of(recording: &[u8]) -> Dataset {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), recording).unwrap();
    Dataset::of(file.path())
}

fn dataset(events: &[(i64, u32, Vec<u8>)]) -> Dataset {
    dataset_of(&recording(&rows_of(events, 1)))
}

#[derive(Clone, Debug, Default)]
struct Truth {
    parent: Option<u64>,
    created: i64,
    first_resumed: Option<i64>,
    ended: Option<i64>,
    running: i64,
    waiting: i64,
    resumes: u64,
    switches: u64,
    last_thread: u64,
    off_since: Option<i64>,
    /// The stack that its thread sent last.
    sent: Vec<u64>,
}

/// Thread, task, start, end, logical stack.
type Segment = (u64, u64, i64, i64, Vec<u64>);

/// Threads that run tasks within each other at random, and write down each interval of each.
struct Machine {
    random: Random,
    now: i64,
    tasks: BTreeMap<u64, Truth>,
    /// The tasks of each thread: which one, its stack, how many frames of it have ended.
    stacks: Vec<Vec<(u64, Vec<u64>, usize)>>,
    since: Vec<i64>,
    buffers: Vec<Bytes>,
    events: Vec<(i64, u32, Vec<u8>)>,
    segments: BTreeSet<Segment>,
    waits: BTreeSet<(u64, i64, i64)>,
    is_runtime: bool,
}

impl Machine {
    fn new(seed: u64, threads: usize, is_runtime: bool) -> Machine {
        let mut buffers = vec![Bytes::default(); threads];
        let metadata = numbers(&[FREQUENCY as u64, 5, 5, 4096]).into_iter().chain([32, 0]).collect::<Vec<u8>>();
        buffers[0].add(22, 5, &metadata);
        (0..threads).for_each(|thread| buffers[thread].add(20, 5, &[]));
        Machine {
            random: Random(seed),
            now: 10,
            tasks: BTreeMap::new(),
            stacks: vec![Vec::new(); threads],
            since: vec![0; threads],
            buffers,
            events: Vec::new(),
            segments: BTreeSet::new(),
            waits: BTreeSet::new(),
            is_runtime,
        }
    }

    /// The id of an event for the kind of this machine.
    fn id(&self, runtime: u8, machine: u8) -> u8 {
        if self.is_runtime { runtime } else { machine }
    }

    /// The innermost task of a thread had the time until now.
    fn over(&mut self, thread: usize) {
        let since = std::mem::replace(&mut self.since[thread], self.now);
        if let Some((id, frames, done)) = self.stacks[thread].last() {
            self.tasks.get_mut(id).unwrap().running += self.now - since;
            if since < self.now {
                self.segments.insert((100 + thread as u64, *id, since, self.now, frames[*done..].to_vec()));
            }
        }
    }

    fn step(&mut self) {
        self.now += 1 + self.random.below(20) as i64;
        let now = self.now;
        let thread = self.random.below(self.stacks.len());
        let os_thread = 100 + thread as u64;
        let top = self.stacks[thread].last().map(|(id, ..)| *id);
        match self.random.below(10) {
            0..=2 => {
                let id = 1 + self.tasks.len() as u64;
                let parent = top.unwrap_or_default();
                let payload = numbers(&[parent, id]);
                let created = self.id(1, 11);
                self.buffers[thread].add(created, now, &payload);
                let parent = (parent != 0).then_some(parent);
                let truth =
                    Truth { parent, created: now, last_thread: os_thread, off_since: Some(now), ..Truth::default() };
                self.tasks.insert(id, truth);
            }
            3..=5 => {
                let waiting: Vec<u64> =
                    self.tasks.iter().filter(|(_, task)| task.off_since.is_some()).map(|(id, _)| *id).collect();
                if waiting.is_empty() {
                    return;
                }
                let id = waiting[self.random.below(waiting.len())];
                self.over(thread);
                let says = self.random.below(4);
                let count = self.random.below(5);
                let mut frames: Vec<u64> = (0..count).map(|_| 0x1000 * (1 + self.random.below(6) as u64)).collect();
                let is_cached = frames.is_empty();
                let (resume, resume_stack) = (self.id(2, 12), self.id(7, 16));
                let payload = stack(None, id, &frames, !self.is_runtime);
                match says {
                    0 => self.buffers[thread].add(resume, now, &numbers(&[id])),
                    1 => self.buffers[thread].add(resume_stack, now, &payload),
                    2 => {
                        self.buffers[thread].add(resume, now, &numbers(&[id]));
                        self.buffers[thread].add(resume_stack, now, &payload);
                    }
                    _ => {
                        self.buffers[thread].add(resume_stack, now, &payload);
                        self.buffers[thread].add(resume, now, &numbers(&[id]));
                    }
                }
                let task = self.tasks.get_mut(&id).unwrap();
                if says == 0 {
                    frames.clear();
                } else if is_cached {
                    frames.clone_from(&task.sent);
                } else {
                    task.sent.clone_from(&frames);
                }
                let since = task.off_since.take().unwrap();
                task.waiting += now - since;
                task.first_resumed.get_or_insert(now);
                task.resumes += 1;
                task.switches += u64::from(task.last_thread != os_thread);
                task.last_thread = os_thread;
                self.waits.insert((id, since, now));
                self.stacks[thread].push((id, frames, 0));
            }
            6 | 7 => {
                let Some(id) = top else { return };
                self.over(thread);
                let ends = self.random.below(3) == 0;
                let event = if ends { self.id(4, 14) } else { self.id(3, 13) };
                self.buffers[thread].add(event, now, &[]);
                self.stacks[thread].pop();
                let task = self.tasks.get_mut(&id).unwrap();
                if ends {
                    task.ended = Some(now);
                } else {
                    task.off_since = Some(now);
                }
            }
            8 => {
                let Some((_, frames, done)) = self.stacks[thread].last() else { return };
                let left = frames.len() - done;
                let count = 1 + self.random.below(2);
                if left > 0 {
                    self.over(thread);
                }
                if count == 1 {
                    let event = self.id(10, 18);
                    self.buffers[thread].add(event, now, &[]);
                } else {
                    let event = self.id(5, 15);
                    self.buffers[thread].add(event, now, &numbers(&[count as u64]));
                }
                let (_, frames, done) = self.stacks[thread].last_mut().unwrap();
                *done = (*done + count).min(frames.len());
            }
            _ => self.flush(thread),
        }
    }

    fn flush(&mut self, thread: usize) {
        let buffer = std::mem::take(&mut self.buffers[thread]);
        if buffer.count > 0 {
            self.events.push((self.now, 1, buffer.payload(100 + thread as u64)));
        }
    }

    /// All waits and runs end; then the rest is written, so that a thread's events may come long after those of others.
    fn finish(&mut self) {
        for thread in 0..self.stacks.len() {
            self.now += 1;
            while let Some((id, ..)) = self.stacks[thread].last() {
                let id = *id;
                self.over(thread);
                let (now, event) = (self.now, self.id(4, 14));
                self.buffers[thread].add(event, now, &[]);
                self.stacks[thread].pop();
                self.tasks.get_mut(&id).unwrap().ended = Some(now);
            }
        }
        self.now += 10;
        (0..self.stacks.len()).for_each(|thread| self.flush(thread));
    }
}

/// One thread, or several whose buffers are written when each of their events has been: what happens on one is known
/// before the other's.
#[test]
fn tasks_run_and_wait_as_the_machine_says() {
    for (seed, threads, is_runtime) in [(1, 1, true), (2, 1, false), (3, 1, true), (4, 1, false), (5, 1, true)] {
        let mut machine = Machine::new(seed, threads, is_runtime);
        (0..600).for_each(|_| machine.step());
        machine.finish();
        check(&machine, &dataset(&machine.events));
    }
}

/// Several threads hand tasks to each other: their buffers are written at every step, in the order of time.
#[test]
fn tasks_go_from_thread_to_thread() {
    for (seed, is_runtime) in [(11, true), (12, false), (13, true)] {
        let mut machine = Machine::new(seed, 4, is_runtime);
        for _ in 0..500 {
            machine.step();
            (0..4).for_each(|thread| machine.flush(thread));
        }
        machine.finish();
        check(&machine, &dataset(&machine.events));
    }
}

/// Several threads whose buffers are written whenever they are full: those of one come before earlier events of
/// another.
#[test]
fn tasks_go_from_thread_to_thread_in_late_buffers() {
    for (seed, is_runtime) in [(21, true), (22, false), (23, true)] {
        let mut machine = Machine::new(seed, 4, is_runtime);
        (0..500).for_each(|_| machine.step());
        machine.finish();
        check(&machine, &dataset(&machine.events));
    }
}

fn check(machine: &Machine, dataset: &Dataset) {
    assert_eq!(
        dataset.problems().iter().filter(|(code, _)| code.contains("async")).count(),
        0,
        "{:?}",
        dataset.problems()
    );
    let ticks = |ns: Option<i64>| ns.map(|ns| ns / 100);
    let tasks = dataset.table("async_task");
    let ids = tasks.numbers("task_id");
    assert_eq!(ids.len(), machine.tasks.len());
    let [created, resumed, ended, running, waiting] =
        ["created_ts_ns", "first_resumed_ts_ns", "end_ts_ns", "running_ns", "waiting_ns"]
            .map(|name| tasks.signed(name));
    let (parents, resumes, switches) =
        (tasks.optional("parent_task_id"), tasks.numbers("resume_count"), tasks.numbers("thread_switch_count"));
    for (row, id) in ids.iter().enumerate() {
        let truth = &machine.tasks[id];
        assert_eq!(parents[row], truth.parent, "{id}");
        assert_eq!(ticks(created[row]), Some(truth.created), "{id}");
        assert_eq!((ticks(resumed[row]), ticks(ended[row])), (truth.first_resumed, truth.ended), "{id}");
        assert_eq!(ticks(running[row]), truth.first_resumed.map(|_| truth.running), "{id}");
        let waited = truth.resumes > 0;
        assert_eq!(ticks(waiting[row]), waited.then_some(truth.waiting), "{id}");
        assert_eq!((resumes[row], switches[row]), (truth.resumes, truth.switches), "{id}");
    }
    let (runs, chains) = (dataset.table("async_callsite"), Chains::of(dataset));
    let (threads, of, callsites) = (runs.numbers("thread_id"), runs.numbers("task_id"), runs.numbers("callsite_id"));
    let (starts, ends) = (runs.signed("start_ts_ns"), runs.signed("end_ts_ns"));
    let segment = |row: usize| {
        let chain = chains.addresses(callsites[row]);
        (threads[row], of[row], ticks(starts[row]).unwrap(), ticks(ends[row]).unwrap(), chain)
    };
    let found: BTreeSet<Segment> = (0..runs.rows()).map(segment).collect();
    assert_eq!(found.len(), runs.rows());
    assert_eq!(found, machine.segments);
    let waits = dataset.table("async_wait");
    let (of, starts, ends) = (waits.numbers("task_id"), waits.signed("start_ts_ns"), waits.signed("end_ts_ns"));
    let ended = (0..waits.rows()).filter(|row| ends[*row].is_some());
    let found: BTreeSet<_> =
        ended.map(|row| (of[row], ticks(starts[row]).unwrap(), ticks(ends[row]).unwrap())).collect();
    assert_eq!(found, machine.waits);
    let open = machine.tasks.values().filter(|task| task.off_since.is_some()).count();
    assert_eq!(ends.iter().filter(|end| end.is_none()).count(), open);
    assert!(machine.segments.len() > 50 && machine.waits.len() > 20);
}

/// Whether the profiler writes addresses of code or ids of methods is not settled: both lead to the method, and
/// `found_by` says which.
#[test]
fn frames_are_found_by_address_and_by_method() {
    let mut buffer = Bytes::default();
    buffer.add(6, 20, &stack(Some(3), 9, &[0x50_0010, 0x51_0000], false));
    buffer.add(7, 30, &stack(None, 9, &[0x50_0010, 0x51_0000], false));
    buffer.add(8, 39, &stack(None, 9, &[], false));
    buffer.add(3, 40, &[]);
    buffer.add(16, 50, &stack(None, 10, &[0xAAA0], true));
    buffer.add(19, 60, &stack(None, 10, &[0xAAB0, 0xDEAD], true));
    buffer.add(14, 70, &[]);
    let events = [
        (10, 2, method(0xAAA0, 0x50_0000, 0x40, "Load")),
        (11, 2, method(0xAAB0, 0x51_0000, 0x40, "Run")),
        (90, 1, buffer.payload(5)),
    ];
    let dataset = dataset(&events);
    let runs = dataset.table("async_callsite");
    let chains = Chains::of(&dataset);
    let names: Vec<Vec<String>> = runs.numbers("callsite_id").into_iter().map(|id| chains.names(id)).collect();
    let (load, run) = ("Shop.Orders.Load", "Shop.Orders.Run");
    assert_eq!(names, [vec![load, run], vec![load], vec![load, run, "[unknown]"]]);
    let frames = dataset.table("frame");
    let found: BTreeSet<_> = frames.numbers("address").into_iter().zip(frames.texts("found_by")).collect();
    let expected =
        [(0x50_0010, "address"), (0x51_0000, "address"), (0xAAA0, "method_id"), (0xAAB0, "method_id"), (0xDEAD, "")];
    assert_eq!(found, expected.map(|(address, by)| (address, by.to_owned())).into_iter().collect());
    let tasks = dataset.table("async_task");
    assert_eq!((tasks.numbers("task_id"), tasks.texts("method")), (vec![9, 10], vec![run.to_owned(), String::new()]));
    assert_eq!(tasks.texts("kind"), ["runtime", "state_machine"]);
    assert_eq!(tasks.optional("parent_task_id"), [Some(3), None]);
    assert_eq!(
        (tasks.signed("created_ts_ns"), tasks.signed("waiting_ns")),
        (vec![Some(2000), None], vec![Some(1000), None])
    );
}

/// What a thread samples, allocates and waits for before, within and behind a task, in which `Run` goes on where `Load`
/// ends.
pub fn samples_within_a_task() -> Vec<u8> {
    let frames = [0x50_0010, 0x51_0010];
    let mut buffer = Bytes::default();
    buffer.add(7, 20, &stack(None, 9, &frames, false));
    buffer.add(10, 30, &[]);
    buffer.add(4, 40, &[]);
    let events = [
        (10, 2, method(0xAAA0, 0x50_0000, 0x40, "Load")),
        (11, 2, method(0xAAB0, 0x51_0000, 0x40, "Run")),
        (90, 1, buffer.payload(5)),
    ];
    let of_thread: Vec<_> = [12, 22, 32, 42].into_iter().flat_map(about).collect();
    recording(&[rows_of(&events, 1), rows_of(&of_thread, 5)].concat())
}

/// The same as of exceptions in the program's buffers: here of what a thread samples, allocates and waits for.
#[test]
fn samples_allocations_and_waits_lead_to_the_logical_callers() {
    let test = "samples_allocations_and_waits_lead_to_the_logical_callers";
    let Some(python) = crate::support::python::python(test) else { return };
    let dataset = dataset_of(&samples_within_a_task());
    assert!(dataset.problems().iter().all(|(code, _)| !code.contains("lost") && !code.contains("async")));
    let query = format!(
        "{WHAT} SELECT w.kind, w.ts_ns // 100, s.written_name, string_agg(c.written_name, ' < ' ORDER BY c.depth DESC) FROM what w
         ASOF JOIN async_callsite a ON a.trace_id = w.trace_id AND a.process_id = w.process_id AND a.thread_id = w.thread_id
            AND w.ts_ns >= a.start_ts_ns
         JOIN site s ON s.trace_id = a.trace_id AND s.callsite_id = a.callsite_id
         LEFT JOIN site c ON c.trace_id = s.trace_id AND c.depth < s.depth AND s.walk_first BETWEEN c.walk_first AND c.walk_last
         WHERE w.ts_ns < a.end_ts_ns GROUP BY ALL ORDER BY w.ts_ns // 100"
    );
    let (load, run) = ("Shop.Orders.Load", "Shop.Orders.Run");
    let row = |kind: &str, at: i64| match at {
        ..30 => format!("('{kind}', {at}, '{load}', '{run}')\n"),
        _ => format!("('{kind}', {at}, '{run}', None)\n"),
    };
    let kinds = ["sample", "allocation", "wait"];
    let expected: String =
        [22, 32].into_iter().flat_map(|from| kinds.into_iter().zip(from..)).map(|(kind, at)| row(kind, at)).collect();
    assert_eq!(crate::tables::queries::asked(&python, &dataset, &query), expected);
    two_of_each_kind_are_for_no_task(&python, &dataset);
}

/// The views of asynchronous work, on what the async profiler says.
#[test]
fn views_say_where_the_time_of_chains_of_methods_went() {
    let Some(python) = crate::support::python::python("views_say_where_the_time_of_chains_of_methods_went") else {
        return;
    };
    let (load, run, save) = (0x50_0010, 0x51_0010, 0x52_0010);
    let mut buffer = Bytes::default();
    buffer.add(6, 10, &stack(Some(0), 3, &[run], false));
    buffer.add(6, 12, &stack(Some(3), 9, &[load, save], false));
    buffer.add(7, 20, &stack(None, 9, &[load, save], false));
    buffer.add(4, 30, &[]);
    buffer.add(7, 32, &stack(None, 3, &[run], false));
    buffer.add(3, 33, &[]);
    buffer.add(2, 40, &numbers(&[3]));
    buffer.add(4, 45, &[]);
    // The outermost method of this one is not known, and it has not ended.
    buffer.add(7, 50, &stack(None, 10, &[load, 0xDEAD], false));
    buffer.add(3, 60, &[]);
    let dataset = dataset(&[
        (1, 2, method(0xAAA0, 0x50_0000, 0x40, "Load")),
        (2, 2, method(0xAAB0, 0x51_0000, 0x40, "Run")),
        (3, 2, method(0xAAC0, 0x52_0000, 0x40, "Save")),
        (90, 1, buffer.payload(5)),
    ]);
    let query = "SELECT method, kind, tasks, round(running_ms * 1e4)::INT, round(waiting_ms * 1e4)::INT, round(longest_ms * 1e4)::INT,
                 thread_switches, not_ended, failed, touch_gap FROM async_by_method WHERE source = 'async_profiler' ORDER BY method";
    assert_eq!(
        crate::tables::queries::asked(&python, &dataset, query),
        "('Shop.Orders.Load', 'runtime', 1, 10, None, None, 0, 1, 0, 0)\n\
         ('Shop.Orders.Run', 'runtime', 1, 6, 29, 35, 0, 0, 0, 0)\n\
         ('Shop.Orders.Save', 'runtime', 1, 10, 8, 18, 0, 0, 0, 0)\n"
    );
    let query = "SELECT task_id, start_ts_ns // 100, round(duration_ms * 1e4)::INT, method, root_method, chain, awaited, awaited_task_id, kind, \
                 thread_id, end_thread_id FROM blocked_on WHERE reported_by = 'async_profiler' ORDER BY start_ts_ns";
    assert_eq!(
        crate::tables::queries::asked(&python, &dataset, query),
        "(3, 10, 22, 'Shop.Orders.Run', 'Shop.Orders.Run', ['Shop.Orders.Run'], None, None, 'async', 5, 5)\n\
         (9, 12, 8, 'Shop.Orders.Save', 'Shop.Orders.Run', ['Shop.Orders.Save', 'Shop.Orders.Run'], None, None, 'async', 5, 5)\n\
         (3, 33, 7, 'Shop.Orders.Run', 'Shop.Orders.Run', ['Shop.Orders.Run'], None, None, 'async', 5, 5)\n\
         (10, 60, None, '?', '?', ['?'], None, None, 'async', 5, None)\n"
    );
}

/// Another clock than the recording's: times go by UTC, which both have.
#[test]
fn a_profiler_with_another_clock_is_put_in_its_place() {
    // The recording begins at 2026-11-20 18:12:29.912 with tick 0 of 100 ns; the profiler's clock has microseconds.
    let began = 1_795_198_349_912i64 * 10_000 + 116_444_736_000_000_000;
    let mut buffer = Bytes::default();
    let metadata =
        numbers(&[1_000_000, 5_000_000, began as u64 + 1_000, 0]).into_iter().chain([32, 0]).collect::<Vec<u8>>();
    buffer.add(22, 5_000_000, &metadata);
    buffer.add(12, 5_000_500, &numbers(&[4]));
    buffer.add(14, 5_000_600, &[]);
    let dataset = dataset(&[(90_000, 1, buffer.payload(5))]);
    // 100 µs behind the beginning by the metadata, and 500 and 600 µs behind that.
    let tasks = dataset.table("async_task");
    assert_eq!(
        (tasks.signed("first_resumed_ts_ns"), tasks.signed("end_ts_ns")),
        (vec![Some(600_000)], vec![Some(700_000)])
    );
}

#[test]
fn what_is_before_damage_is_kept_and_reported() {
    let mut buffer = Bytes::default();
    buffer.add(11, 10, &numbers(&[0, 4]));
    buffer.add(12, 20, &numbers(&[4]));
    buffer.add(16, 20, &stack(None, 4, &[0x1000, 0x2000], true));
    buffer.add(14, 30, &[]);
    let whole = buffer.payload(5);
    let mut most = 0;
    for length in 0..whole.len() {
        let dataset = dataset(&[(90, 1, whole[..length].to_vec())]);
        let problems = dataset.problems();
        assert!(problems.iter().any(|(code, _)| *code == "damaged_async_buffer"), "{length}: {problems:?}");
        let tasks = dataset.table("async_task");
        most = most.max(tasks.rows());
        assert!(tasks.bools("touches_gap").iter().all(|touches| *touches), "{length}");
        assert!(tasks.signed("end_ts_ns").iter().all(Option::is_none), "{length}");
    }
    assert_eq!(most, 1);
    let dataset = dataset(&[(90, 1, whole)]);
    assert_eq!(dataset.table("async_task").signed("end_ts_ns"), [Some(3000)]);
    assert!(dataset.problems().iter().all(|(code, _)| *code != "damaged_async_buffer"));
}

#[test]
fn hostile_buffers_end() {
    let mut buffer = Bytes::default();
    for id in [11u64, 12] {
        buffer.add(11, 10, &numbers(&[0, id]));
        buffer.add(12, 20, &numbers(&[id]));
        buffer.add(16, 20, &stack(None, id, &[0x1000, u64::MAX, 3], true));
        buffer.add(18, 25, &[]);
        buffer.add(14, 30, &[]);
    }
    let whole = buffer.payload(5);
    let mut random = Random(77);
    let mut events = vec![];
    for number in 0..400 {
        let mut payload = whole.clone();
        for _ in 0..1 + random.below(5) {
            let at = random.below(payload.len());
            payload[at] = [0, 1, 0x7F, 0x80, 0xFF, random.below(256) as u8][random.below(6)];
        }
        events.push((100 + number, 1, payload));
    }
    let dataset = dataset(&events);
    assert!(dataset.problems().iter().any(|(code, _)| *code == "damaged_async_buffer"));
    assert!(dataset.table("async_task").rows() > 1);
}
