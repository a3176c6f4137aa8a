//! Context switches, ready threads, and what threads did meanwhile: by a scheduler that knows what its threads did and
//! writes the documented layouts, and of a real log, which has switches, but none of the events of ready threads.

use std::collections::{BTreeSet, VecDeque};

use super::interrupts::RawEvent;
use super::writer::*;
use crate::support::dataset::{Dataset, Table};

const PROCESS: u32 = 50;
const WAITING: u8 = 5;
const READY: u8 = 1;
const USER_REQUEST: u8 = 6;
const PREEMPTED: u8 = 32;

/// CSwitch of a version, from one thread to another.
fn switch(version: u8, ticks: i64, new: u32, old: u32, state: u8, reason: u8) -> Vec<u8> {
    let mut payload = [new, old].map(u32::to_le_bytes).concat();
    payload.extend([9, 8, 0, 0, reason, 1, state, 0]);
    payload.extend(77u32.to_le_bytes());
    payload.resize(if version == 1 { 20 } else { 24 }, 0);
    perf_info(5, 36, version, ticks, &payload)
}

/// ReadyThread: a thread may run.
fn ready(ticks: i64, thread: u32, flags: u8) -> Vec<u8> {
    let payload = [thread.to_le_bytes(), [1, 2, flags, 0]].concat();
    perf_info(5, 50, 2, ticks, &payload)
}

/// A file of the events of each processor, in buffers of theirs. `lossy` buffers (processor, number) say that events
/// before them were lost.
fn written(processors: &[Vec<Vec<u8>>], lossy: &[(usize, usize)]) -> Vec<u8> {
    let mut writer = Writer::new();
    let mut sequence = 0;
    for (processor, events) in processors.iter().enumerate() {
        for (number, chunk) in events.chunks(40).enumerate() {
            sequence += 1;
            let flags = if lossy.contains(&(processor, number)) { 0x22 } else { 0x20 };
            let head = Head { processor: processor as u16, sequence, flags, ..Head::default() };
            writer = writer.raw(&buffer(&head, chunk));
        }
    }
    writer.bytes
}

fn dataset(processors: &[Vec<Vec<u8>>], lossy: &[(usize, usize)]) -> Dataset {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("written.etl");
    std::fs::write(&path, written(processors, lossy)).expect("room");
    Dataset::of(&path)
}

fn ns(ticks: i64) -> i64 {
    (ticks - TICKS) * 100
}

/// A row of `thread_time`, in ticks: thread, state, start, end, processor, reason, woken by, complete.
type Row = (u64, String, i64, i64, Option<u64>, String, u64, bool);

fn thread_time(dataset: &Dataset) -> BTreeSet<Row> {
    let table = dataset.table("thread_time");
    let [thread, by, process] = ["thread_id", "ready_by_thread_id", "process_id"].map(|name| table.numbers(name));
    assert!(process.iter().all(|process| *process == u64::from(PROCESS)), "{process:?}");
    let (start, end) = (table.signed("start_ts_ns"), table.signed("end_ts_ns"));
    let (state, reason, processor) = (table.texts("state"), table.texts("wait_reason"), table.optional("processor"));
    let complete = table.bools("complete");
    let ticks = |ns: Option<i64>| ns.unwrap() / 100 + TICKS;
    let row = |row: usize| {
        let (state, reason) = (state[row].clone(), reason[row].clone());
        (thread[row], state, ticks(start[row]), ticks(end[row]), processor[row], reason, by[row], complete[row])
    };
    (0..table.rows()).map(row).collect()
}

/// A made-up machine: threads run, wait, are woken and interrupted at random, and every interval is written down.
struct Machine {
    random: u64,
    now: i64,
    running: Vec<u32>,
    queue: VecDeque<u32>,
    waiting: Vec<u32>,
    /// State, since when, why it stopped, by whom it was woken.
    since: std::collections::HashMap<u32, (&'static str, i64, &'static str)>,
    /// Threads that wait since before the recording began.
    untouched: BTreeSet<u32>,
    events: Vec<Vec<Vec<u8>>>,
    truth: BTreeSet<Row>,
}

impl Machine {
    fn new(processors: usize, threads: u32) -> Machine {
        let listed = (1..=threads).map(|id| thread(3, TICKS, PROCESS, 100 + id)).collect();
        let mut events = vec![Vec::new(); processors];
        events[0] = listed;
        Machine {
            random: 7,
            now: TICKS + 10,
            running: vec![0; processors],
            queue: VecDeque::new(),
            waiting: (1..=threads).map(|id| 100 + id).collect(),
            since: Default::default(),
            untouched: (1..=threads).map(|id| 100 + id).collect(),
            events,
            truth: BTreeSet::new(),
        }
    }

    fn next(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % below
    }

    /// What a thread did until now is over.
    fn over(&mut self, id: u32, processor: Option<usize>, by: u32) {
        if let Some((state, since, reason)) = self.since.remove(&id) {
            let processor = processor.map(|number| number as u64);
            self.truth.insert((id.into(), state.into(), since, self.now, processor, reason.into(), by.into(), true));
        }
    }

    fn switch(&mut self, processor: usize, state: u8) {
        let old = self.running[processor];
        let new = self.queue.pop_front().unwrap_or(0);
        let (reason, why) = if state == READY { (PREEMPTED, "WrPreempted") } else { (USER_REQUEST, "UserRequest") };
        self.events[processor].push(switch(2 + (self.now % 3) as u8, self.now, new, old, state, reason));
        if old != 0 {
            self.over(old, Some(processor), 0);
            if state == READY {
                self.queue.push_back(old);
                self.since.insert(old, ("ready", self.now, why));
            } else {
                self.waiting.push(old);
                self.since.insert(old, ("blocked", self.now, why));
            }
        }
        if new != 0 {
            self.over(new, None, 0);
            self.since.insert(new, ("running", self.now, ""));
        }
        self.running[processor] = new;
    }

    fn wake(&mut self, processor: usize, index: usize) {
        let id = self.waiting.swap_remove(index);
        // Some are made ready by a deferred procedure call, which no thread asked for.
        let from_dpc = self.now % 3 == 0;
        let by = if from_dpc { 0 } else { self.running[processor] };
        let why = self.since.get(&id).map_or("", |(.., why)| why);
        self.events[processor].push(ready(self.now, id, from_dpc.into()));
        self.over(id, None, by);
        if self.untouched.remove(&id) {
            let row = (id.into(), "blocked".into(), TICKS, self.now, None, String::new(), by.into(), false);
            self.truth.insert(row);
        }
        self.since.insert(id, ("ready", self.now, why));
        self.queue.push_back(id);
    }

    fn step(&mut self) {
        self.now += 1 + self.next(20) as i64;
        let processor = self.next(self.running.len());
        match self.next(4) {
            0 if !self.waiting.is_empty() => {
                let index = self.next(self.waiting.len());
                self.wake(processor, index);
            }
            1 if self.running[processor] != 0 => self.switch(processor, WAITING),
            2 if self.running[processor] != 0 && !self.queue.is_empty() => self.switch(processor, READY),
            _ if self.running[processor] == 0 && !self.queue.is_empty() => self.switch(processor, WAITING),
            _ => {}
        }
    }

    /// What goes on at the end is not complete.
    fn finish(&mut self) {
        let last = self.truth.iter().map(|row| row.3).max().unwrap();
        self.now = self.now.max(last);
        for (id, (state, since, reason)) in std::mem::take(&mut self.since) {
            let processor = self.running.iter().position(|running| *running == id).map(|number| number as u64);
            if since < last {
                self.truth.insert((id.into(), state.into(), since, last, processor, reason.into(), 0, false));
            }
        }
    }
}

/// A recording of such a machine, with stacks of what goes on, and a line of text for each interval: thread, state,
/// start and end in ticks.
pub fn recording() -> (Vec<u8>, String) {
    const KERNEL: u64 = 0xFFFF_F800_0000_1000;
    const CODE: u64 = 0x7FF0_0000_1000;
    let mut machine = Machine::new(2, 5);
    (0..600).for_each(|_| machine.step());
    machine.finish();
    let mut listed = vec![
        process(3, TICKS, PROCESS, "worker.exe", 259),
        image(3, TICKS, 0, KERNEL - 0x1000, r"\SystemRoot\System32\kernel.exe"),
        image(3, TICKS, PROCESS, CODE - 0x1000, r"\Device\worker.exe"),
    ];
    for events in &mut machine.events {
        let mut with_stacks = std::mem::take(&mut listed);
        for event in events.drain(..) {
            let is_switch = (event[6], event[7]) == (36, 5);
            let number = |at: usize| u32::from_le_bytes(event[at..at + 4].try_into().unwrap());
            let (ticks, thread) = (i64::from(number(8)), number(16));
            with_stacks.push(event);
            if is_switch && thread != 0 {
                with_stacks.push(stack_walk(ticks, ticks, thread, &[KERNEL, CODE + u64::from(thread % 2)]));
            }
        }
        *events = with_stacks;
    }
    let line = |row: &Row| format!("{} {} {} {}\n", row.0, row.1, row.2, row.3);
    (written(&machine.events, &[]), machine.truth.iter().map(line).collect())
}

#[test]
fn threads_do_what_the_scheduler_says() {
    let mut machine = Machine::new(3, 9);
    (0..3_000).for_each(|_| machine.step());
    machine.finish();
    let dataset = dataset(&machine.events, &[]);
    let found = thread_time(&dataset);
    let states = ["running", "ready", "blocked"];
    assert!(states.iter().all(|state| machine.truth.iter().filter(|row| row.1 == *state).count() > 300));
    let different: Vec<_> = found.symmetric_difference(&machine.truth).collect();
    assert!(different.is_empty(), "{} of {}: {:?}", different.len(), found.len(), &different[..4.min(different.len())]);

    let switches = dataset.table("context_switch");
    let is_switch = |event: &&Vec<u8>| (event[6], event[7]) == (36, 5);
    let written = machine.events.iter().flatten().filter(is_switch).count();
    assert_eq!(switches.rows(), written);
    let [old, new] = ["old_process_id", "process_id"].map(|name| switches.numbers(name));
    assert!(old.iter().chain(&new).all(|process| *process == 0 || *process == u64::from(PROCESS)));
    // The header of the file is kept raw, nothing else is.
    assert_eq!(dataset.problems(), [("raw_payload", 1)]);
}

fn column(table: &Table, name: &str) -> Vec<String> {
    match table.names().iter().any(|known| known == name) {
        true => table.texts(name),
        false => panic!("no {name}"),
    }
}

#[test]
fn switches_and_wakes_have_their_fields_and_stacks() {
    const CODE: u64 = 0x7FF0_0000_1000;
    // Thread 101 runs on processor 0 and wakes 102, whose stack comes when it runs.
    let first = vec![
        thread(3, 1000, PROCESS, 101),
        thread(3, 1000, PROCESS, 102),
        switch(4, 1010, 101, 0, 2, 0),
        ready(1030, 102, 4),
        stack_walk(1031, 1030, 101, &[CODE + 1]),
        switch(3, 1060, 0, 101, 4, 22),
    ];
    let second = vec![
        switch(2, 1005, 102, 0, 2, 0),
        switch(2, 1020, 0, 102, WAITING, USER_REQUEST),
        switch(2, 1040, 102, 0, 2, 0),
        stack_walk(1041, 1040, 102, &[CODE + 2, CODE + 3]),
    ];
    let dataset = dataset(&[first, second], &[]);
    let switches = dataset.table("context_switch");
    assert_eq!(switches.signed("ts_ns"), [1005, 1010, 1020, 1040, 1060].map(|ticks| Some(ns(ticks))));
    assert_eq!(switches.optional("processor"), [1, 0, 1, 1, 0].map(Some));
    assert_eq!(switches.numbers("thread_id"), [102, 101, 0, 102, 0]);
    assert_eq!(switches.numbers("old_thread_id"), [0, 0, 102, 0, 101]);
    assert_eq!(switches.numbers("old_process_id"), [0, 0, 50, 0, 50]);
    assert_eq!((switches.numbers("priority")[0], switches.numbers("old_priority")[0]), (9, 8));
    assert_eq!(column(&switches, "old_state")[2..], ["Waiting", "Running", "Terminated"]);
    assert_eq!(column(&switches, "old_wait_reason")[2..], ["UserRequest", "Executive", "WrTerminated"]);
    assert_eq!(switches.numbers("wait_time_ticks"), [77; 5]);

    let wakes = dataset.table("ready_thread");
    assert_eq!((wakes.numbers("thread_id"), wakes.numbers("ready_by_thread_id")), (vec![102], vec![101]));
    assert_eq!(column(&wakes, "reason"), ["Unwait"]);
    assert_eq!(column(&wakes, "flags_text"), ["ProcessSwappedOut"]);

    let callsites = dataset.table("callsite");
    let top: std::collections::HashMap<u64, u64> =
        callsites.numbers("callsite_id").into_iter().zip(callsites.numbers("address")).collect();
    let [wake] = wakes.numbers("callsite_id")[..] else { panic!("one") };
    assert_eq!(top.get(&wake), Some(&(CODE + 1)), "the stack of the thread that woke the other one");
    let time = dataset.table("thread_time");
    let of_wait: Vec<u64> = (0..time.rows())
        .filter(|row| time.texts("state")[*row] != "running")
        .map(|row| top[&time.numbers("callsite_id")[row]])
        .collect();
    assert_eq!(of_wait, [CODE + 2; 2], "blocked and ready have the stack with which the thread went on");
    let rows: Vec<Row> = thread_time(&dataset).into_iter().collect();
    let row = |id, state: &str, start, end, processor, reason: &str, by, complete| -> Row {
        (id, state.into(), start, end, processor, reason.into(), by, complete)
    };
    let expected = [
        row(101, "running", 1010, 1060, Some(0), "", 0, true),
        row(102, "blocked", 1020, 1030, None, "UserRequest", 101, true),
        row(102, "ready", 1030, 1040, None, "UserRequest", 0, true),
        row(102, "running", 1005, 1020, Some(1), "", 0, true),
        row(102, "running", 1040, 1060, Some(1), "", 0, false),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn no_interval_crosses_lost_events() {
    // Forty events fill the first buffer of processor 0; those between it and the next one are lost. The thread runs at
    // the end of the first one, and at the beginning of the next one.
    let mut events = vec![thread(3, 1000, PROCESS, 101)];
    for index in 1..40 {
        let (new, old) = if index % 2 == 0 { (0, 101) } else { (101, 0) };
        events.push(switch(2, 1000 + 10 * index, new, old, WAITING, USER_REQUEST));
    }
    events.push(switch(2, 2000, 0, 101, WAITING, USER_REQUEST));
    events.push(switch(2, 2010, 101, 0, 2, 0));
    let whole = thread_time(&dataset(&[events.clone()], &[]));
    assert!(whole.iter().any(|row| (row.2, row.3, row.7) == (1390, 2000, true)), "{whole:?}");
    let lossy = thread_time(&dataset(&[events], &[(0, 1)]));
    assert!(lossy.iter().all(|row| row.3 <= 1390 || row.2 >= 2000), "{lossy:?}");
    assert!(lossy.iter().any(|row| (row.2, row.3) == (2000, 2010)), "what comes behind the gap is reported");
    // The same without any sign of a loss: what ran on the processor was not what stops there.
    let unseen = [
        thread(3, 1000, PROCESS, 101),
        thread(3, 1000, PROCESS, 102),
        switch(2, 1010, 101, 0, 2, 0),
        switch(2, 1020, 0, 102, WAITING, 6),
        switch(2, 1030, 101, 0, 2, 0),
        switch(2, 1040, 0, 101, WAITING, 6),
    ];
    let rows = thread_time(&dataset(&[unseen.to_vec()], &[]));
    let of_101: Vec<_> = rows.iter().filter(|row| row.0 == 101).map(|row| (row.2, row.3)).collect();
    assert_eq!(of_101, [(1030, 1040)]);
}

/// Clocks of processors differ: the event that made a thread ready may stand behind its running. It ends no later wait.
#[test]
fn a_wake_that_comes_late_does_not_end_the_next_wait() {
    for at in [1010, 1011, 1019] {
        let waker = vec![switch(2, 1001, 102, 0, 2, 0), ready(at, 101, 0)];
        let events = vec![
            thread(3, 1000, PROCESS, 101),
            thread(3, 1000, PROCESS, 102),
            switch(2, 1010, 101, 0, 2, 0),
            switch(2, 1020, 0, 101, WAITING, 6),
            switch(2, 1050, 101, 0, 2, 0),
        ];
        let rows = thread_time(&dataset(&[events, waker], &[]));
        let of_101 = |state: &str| -> Vec<_> {
            rows.iter().filter(|row| (row.0, row.1.as_str()) == (101, state)).map(|row| (row.2, row.3, row.6)).collect()
        };
        assert_eq!(of_101("blocked"), [(1020, 1050, 0)], "{at}");
        assert!(of_101("ready").iter().all(|row| row.1 <= 1010), "{at}: {rows:?}");
    }
}

/// The thread that a deferred procedure call interrupts has not woken anybody.
#[test]
fn an_interrupted_thread_is_no_waker() {
    let by = |flags| {
        let events = vec![
            thread(3, 1000, PROCESS, 101),
            thread(3, 1000, PROCESS, 102),
            switch(2, 1010, 101, 0, 2, 0),
            switch(2, 1020, 102, 101, WAITING, 6),
            ready(1030, 101, flags),
            switch(2, 1040, 101, 102, READY, PREEMPTED),
        ];
        let dataset = dataset(&[events], &[]);
        let time = dataset.table("thread_time");
        let blocked = time.texts("state").iter().position(|state| state == "blocked").expect("a wait");
        (dataset.table("ready_thread").numbers("ready_by_thread_id"), time.numbers("ready_by_thread_id")[blocked])
    };
    assert_eq!([by(0), by(1), by(5)], [(vec![102], 102), (vec![0], 0), (vec![0], 0)]);
}

/// What a processor runs when the recording begins ran before, and what goes on at its end goes on.
#[test]
fn states_begin_and_end_with_the_recording() {
    let first = vec![
        thread(3, 1000, PROCESS, 101),
        thread(3, 1000, PROCESS, 102),
        switch(2, 1100, 102, 101, WAITING, 6),
        switch(2, 1200, 0, 102, WAITING, 6),
    ];
    // The last event does not come from the scheduler.
    let second = vec![process(3, 1001, PROCESS, "app.exe", 0), process(3, 1500, 60, "other.exe", 0)];
    let rows: Vec<Row> = thread_time(&dataset(&[first, second], &[])).into_iter().collect();
    let begin = rows[0].2.min(rows[1].2);
    assert!(begin <= 1000, "{rows:?}");
    let row = |id, state: &str, start, end, processor, reason: &str, complete| -> Row {
        (id, state.into(), start, end, processor, reason.into(), 0, complete)
    };
    let expected = [
        row(101, "blocked", 1100, 1500, None, "UserRequest", false),
        row(101, "running", begin, 1100, Some(0), "", false),
        row(102, "blocked", 1200, 1500, None, "UserRequest", false),
        row(102, "running", 1100, 1200, Some(0), "", true),
    ];
    assert_eq!(rows, expected);
}

/// Buffers of one processor are lost. What threads do on the others meanwhile may not be all that they do.
#[test]
fn states_within_lost_buffers_of_another_processor_say_so() {
    let mut machine = Machine::new(3, 9);
    (0..2_000).for_each(|_| machine.step());
    machine.finish();
    let number = |event: &Vec<u8>| i64::from(u32::from_le_bytes(event[8..12].try_into().unwrap()));
    // The third buffer of the second processor is not there; the fourth one says so.
    let mut events = machine.events.clone();
    let (since, until) = (number(&events[1][79]), number(&events[1][120]));
    events[1].drain(80..120);
    let dataset = dataset(&events, &[(1, 2)]);
    let table = dataset.table("thread_time");
    let touches = table.bools("touches_gap");
    let [start, end] = ["start_ts_ns", "end_ts_ns"].map(|name| table.signed(name).into_iter().map(Option::unwrap));
    let within: Vec<bool> = start.zip(end).map(|(start, end)| end > ns(since) && start < ns(until)).collect();
    assert!(touches == within, "rows that touch the gap are those within it");
    let complete = table.bools("complete");
    assert!(touches.iter().filter(|touches| **touches).count() > 20);
    assert!(touches.iter().zip(&complete).all(|(touches, complete)| !(*touches && *complete)));
    // All that is complete is true.
    let found = thread_time(&dataset);
    let wrong: Vec<_> = found.iter().filter(|row| row.7 && !machine.truth.contains(*row)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// One process of a recording of several has the same rows as among all.
#[test]
fn one_process_of_several_has_all_its_states() {
    let mut machine = Machine::new(2, 8);
    // Threads with even numbers are of another process.
    for event in &mut machine.events[0] {
        let at = event.len() - 8;
        let is_thread = |event: &[u8], at: usize| u32::from_le_bytes(event[at..at + 4].try_into().unwrap()) % 2 == 0;
        let places: Vec<usize> = (0..=at).filter(|at| event[*at..*at + 4] == PROCESS.to_le_bytes()).collect();
        if is_thread(event, places[0] + 4) {
            event[places[0]..places[0] + 4].copy_from_slice(&60u32.to_le_bytes());
        }
    }
    (0..2_000).for_each(|_| machine.step());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("two.etl");
    std::fs::write(&path, written(&machine.events, &[])).expect("room");
    let request = || tracequet::Convert::default().inputs([path.clone()]);
    let (all, one) = (Dataset::with(request()), Dataset::with(request().processes(["50"])));
    let of_50 = |dataset: &Dataset, name: &str, columns: &[&str]| {
        let table = dataset.table(name);
        let process = table.numbers("process_id");
        let columns: Vec<Vec<String>> = columns.iter().map(|column| shown(&table, column)).collect();
        let rows = (0..table.rows()).filter(|row| process[*row] == 50);
        let mut rows: Vec<Vec<String>> =
            rows.map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect();
        rows.sort();
        (rows, process.iter().any(|process| *process != 50))
    };
    let columns = ["thread_id", "state", "start_ts_ns", "end_ts_ns", "complete", "ready_by_thread_id", "wait_reason"];
    let (expected, others) = of_50(&all, "thread_time", &columns);
    assert!(expected.len() > 300 && others, "{} {others}", expected.len());
    assert_eq!(of_50(&one, "thread_time", &columns), (expected, false));
    let columns = ["ts_ns", "thread_id", "ready_by_thread_id"];
    assert_eq!(of_50(&one, "ready_thread", &columns), (of_50(&all, "ready_thread", &columns).0, false));
    // Switches away from its threads are kept, as are those to them.
    let columns = ["ts_ns", "thread_id", "old_thread_id", "old_process_id"];
    assert_eq!(of_50(&one, "context_switch", &columns).0, of_50(&all, "context_switch", &columns).0);
    let switches = one.table("context_switch");
    let old = switches.numbers("old_process_id");
    assert!(switches.numbers("process_id").iter().zip(old).all(|(new, old)| *new == 50 || old == 50));
}

/// Values of a column of whatever type these tables have, as text.
fn shown(table: &Table, column: &str) -> Vec<String> {
    match column {
        "complete" => table.bools(column).iter().map(bool::to_string).collect(),
        "state" | "wait_reason" => table.texts(column),
        name if name.ends_with("_ns") => table.signed(column).iter().map(|ns| format!("{ns:?}")).collect(),
        _ => table.numbers(column).iter().map(u64::to_string).collect(),
    }
}

/// A real log with eight processors. The figures are those of the whole recording: 89,165 ms until the last context
/// switch, and the waits of seven threads until the last event, 1.3 ms later.
#[test]
fn one_process_of_a_real_log_has_all_its_states() {
    let test = "one_process_of_a_real_log_has_all_its_states";
    let Some(folder) = crate::support::expected::shared_folder(test, "third") else { return };
    let request = tracequet::Convert::default().inputs([folder.join("slowppt.etl.zst")]);
    let tables = ["thread_time", "context_switch", "process"];
    let table = Dataset::with(request.processes(["POWERPNT.EXE"]).tables(tables)).table("thread_time");
    assert!(table.numbers("process_id").iter().all(|process| *process == 5100));
    assert_eq!(table.rows(), 2_042);
    let took: Vec<i64> = table.signed("duration_ns").into_iter().map(Option::unwrap).collect();
    let ms = |state: &str| -> i64 {
        let rows = table.texts("state").into_iter().zip(&took).filter(|(of, _)| of == state);
        rows.map(|(_, ns)| ns).sum::<i64>() / 1_000_000
    };
    assert_eq!((ms("running"), ms("blocked")), (8_752, 89_174));
}

/// KTHREAD_STATE of Windows 7.
const STATES: [&str; 9] =
    ["Initialized", "Ready", "Running", "Standby", "Terminated", "Waiting", "Transition", "DeferredReady", "GateWait"];

/// KWAIT_REASON of Windows 7.
const REASONS: [&str; 37] = [
    "Executive", "FreePage", "PageIn", "PoolAllocation", "DelayExecution", "Suspended", "UserRequest", "WrExecutive",
    "WrFreePage", "WrPageIn", "WrPoolAllocation", "WrDelayExecution", "WrSuspended", "WrUserRequest", "WrEventPair",
    "WrQueue", "WrLpcReceive", "WrLpcReply", "WrVirtualMemory", "WrPageOut", "WrRendezvous", "WrKeyedEvent",
    "WrTerminated", "WrProcessInSwap", "WrCpuRateControl", "WrCalloutStack", "WrKernel", "WrResource", "WrPushLock",
    "WrMutex", "WrQuantumEnd", "WrDispatchInt", "WrPreempted", "WrYieldExecution", "WrFastMutex", "WrGuardedMutex",
    "WrRundown",
];

/// A real log with eight processors, whose events are read byte by byte. Every column is compared but the processes of
/// the threads: an event has only the threads.
#[test]
fn context_switches_of_a_real_log_are_those_of_its_bytes() {
    let test = "context_switches_of_a_real_log_are_those_of_its_bytes";
    let Some((path, log)) = super::interrupts::real_log(test) else { return };
    let (raw, start, frequency) = super::interrupts::raw_events(&log);
    let request = tracequet::Convert::default().inputs([path]).tables(["context_switch", "ready_thread"]);
    let dataset = Dataset::with(request);
    let table = dataset.table("context_switch");
    let at = |ticks: i64| ((i128::from(ticks) - i128::from(start)) * 1_000_000_000 / i128::from(frequency)) as i64;
    let of_raw = |event: &RawEvent<'_>| {
        let long = |at: usize| u64::from(u32::from_le_bytes(event.payload[at..at + 4].try_into().unwrap()));
        let [new_priority, old_priority] = [8, 9].map(|at: usize| u64::from(event.payload[at]));
        let (reason, state) = (REASONS[usize::from(event.payload[12])], STATES[usize::from(event.payload[14])]);
        let threads = [long(0), new_priority, long(16), long(4), old_priority];
        (at(event.ticks), u64::from(event.processor), threads, state.to_owned(), reason.to_owned())
    };
    let mut expected: Vec<_> = raw.iter().filter(|event| event.kind == (5, 36)).map(of_raw).collect();
    let numbers = ["thread_id", "priority", "wait_time_ticks", "old_thread_id", "old_priority"]
        .map(|column| table.numbers(column));
    let (times, processors) = (table.signed("ts_ns"), table.numbers("processor"));
    let (states, reasons) = (table.texts("old_state"), table.texts("old_wait_reason"));
    let found = |row: usize| {
        let threads = numbers.each_ref().map(|column| column[row]);
        (times[row].unwrap(), processors[row], threads, states[row].clone(), reasons[row].clone())
    };
    let mut found: Vec<_> = (0..table.rows()).map(found).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert!(found == expected, "{} rows, {} events", found.len(), expected.len());
    assert_eq!(found.len(), 29_533);
    let kinds = |column: &[String]| column.iter().collect::<BTreeSet<_>>().len();
    assert!(kinds(&states) >= 3 && kinds(&reasons) >= 8, "{} {}", kinds(&states), kinds(&reasons));
    // The log has no event of threads that become ready: docs/QUERIES.md says what that means.
    assert_eq!(raw.iter().filter(|event| event.kind == (5, 50)).count(), 0);
    assert_eq!(dataset.table("ready_thread").rows(), 0);
}
