//! A made-up process whose threads throw, wait, compile, load, queue work and collect, with ids that are given out
//! again. Events of single threads are dropped, and what is reported then is held against the whole recording: a value
//! that differs is null, or its row says that it touches a gap.

use std::collections::BTreeMap;

use arrow_schema::DataType;

use crate::support::dataset::{Dataset, Table};
use crate::support::mutate::Random;
use crate::support::writer::{Form, Kind, Row, Type, Writer};
use tracequet::Convert;
use tracequet::trace::guid::Guid;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const WORK: u32 = 1000;
const WORK_STOP: u32 = 1001;
const GC_THREAD: u64 = 9;

/// Events of the runtime with their versions.
const KINDS: [(u32, u8); 24] = [
    (1, 2),
    (2, 1),
    (3, 1),
    (8, 1),
    (9, 1),
    (61, 0),
    (62, 0),
    (80, 1),
    (81, 1),
    (91, 0),
    (143, 1),
    (145, 1),
    (159, 0),
    (160, 0),
    (203, 2),
    (250, 0),
    (251, 0),
    (252, 0),
    (254, 0),
    (255, 0),
    (290, 0),
    (291, 0),
    (301, 0),
    (302, 0),
];

/// What a thread is in the middle of: the event that ends it, and what that says.
type Open = (u32, Vec<u32>);

#[derive(Default)]
struct Process {
    now: i64,
    rows: Vec<Row>,
    /// Events of each thread so far.
    sequences: BTreeMap<u64, u32>,
    /// Behind how many rows there is a sequence point, and its numbers.
    points: Vec<(usize, BTreeMap<u64, u32>)>,
    open: BTreeMap<u64, Vec<Open>>,
    queued: Vec<u32>,
    working: Vec<u8>,
    collections: u32,
}

impl Process {
    fn event(&mut self, thread: u64, id: u32, numbers: &[u32], activity: u8) {
        let mut payload: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        payload.resize(64, 0);
        self.now += 1;
        let sequence = self.sequences.entry(thread).or_default();
        *sequence += 1;
        let (sequence, ticks, activity) = (*sequence, self.now, Guid([activity; 16]));
        let row = Row { metadata_id: id, sequence, capture_thread: thread, thread, ticks, payload, ..Row::default() };
        self.rows.push(Row { activity, ..row });
        if self.rows.len().is_multiple_of(250) {
            self.points.push((self.rows.len(), self.sequences.clone()));
        }
    }

    fn begin(&mut self, thread: u64, id: u32, numbers: &[u32], end: u32) {
        self.event(thread, id, numbers, 0);
        self.open.entry(thread).or_default().push((end, numbers.to_vec()));
    }

    fn step(&mut self, random: &mut Random) {
        let thread = 1 + random.below(5) as u64;
        let (id, depth) = (1 + random.below(3) as u32, self.open.get(&thread).map_or(0, Vec::len));
        match random.below(14) {
            // An exception, mostly with a filter, a finally block and a handler.
            0 => {
                self.begin(thread, 80, &[], 251);
                // A filter that was asked answers.
                let steps: [&[u32]; 3] = [&[254, 255], &[252], &[250]];
                let steps = steps.into_iter().filter(|_| random.below(3) > 0).flatten();
                steps.for_each(|id| self.event(thread, *id, &[], 0));
            }
            1 => self.begin(thread, 81, &[], 91),
            2 => self.begin(thread, 145, &[id], 143),
            3 => self.begin(thread, 160, &[id], 159),
            4 => self.begin(thread, 290, &[], 291),
            5 => self.begin(thread, 301, &[], 302),
            6 | 7 if !self.queued.contains(&id) => {
                self.event(thread, 61, &[id], 0);
                self.queued.push(id);
            }
            6 | 7 => {
                self.queued.retain(|queued| *queued != id);
                self.event(thread, 62, &[id], 0);
            }
            8 | 9 if !self.working.contains(&(id as u8)) => {
                self.event(thread, WORK, &[id], id as u8);
                self.working.push(id as u8);
            }
            8 | 9 => {
                self.working.retain(|working| *working != id as u8);
                self.event(thread, WORK_STOP, &[id], id as u8);
            }
            10 if random.below(6) == 0 => self.collect(random),
            _ if depth > 0 => {
                let (end, numbers) = self.open.get_mut(&thread).and_then(Vec::pop).expect("something open");
                self.event(thread, end, &numbers, 0);
            }
            _ => {}
        }
    }

    /// A collection with its pause; two other threads of the collector wait for each other meanwhile.
    fn collect(&mut self, random: &mut Random) {
        self.collections += 1;
        let number = self.collections;
        self.event(GC_THREAD, 9, &[1], 0);
        self.event(GC_THREAD, 8, &[], 0);
        self.event(GC_THREAD, 1, &[number, random.below(2) as u32, 0, 0], 0);
        for _ in 0..random.below(3) {
            for time in [0, 1] {
                // Heap, JoinTime, JoinType.
                [7, 8].iter().for_each(|thread| self.event(*thread, 203, &[*thread as u32, time, 1], 0));
            }
        }
        self.event(GC_THREAD, 2, &[number, 0], 0);
        self.event(GC_THREAD, 3, &[], 0);
    }

    /// The recording without some of its events.
    fn written(&self, is_dropped: impl Fn(&Row) -> bool) -> Dataset {
        let kinds = KINDS.map(|(id, version)| Kind { id, provider: RUNTIME, event_id: id, version, name: "" });
        let mut writer = Writer::new(Form::V4);
        writer.metadata(&kinds);
        for (id, name) in [(WORK, "RequestStart"), (WORK_STOP, "RequestStop")] {
            let kind = Kind { id, provider: "Made-Up", event_id: id, version: 0, name };
            writer.described(kind, &[("Id", Type::Long)]);
        }
        let mut from = 0;
        for (until, numbers) in self.points.iter().chain([&(self.rows.len(), self.sequences.clone())]) {
            // A block for each thread, as runtimes write them.
            let region = &self.rows[from..*until];
            for thread in numbers.keys() {
                let of_thread = |row: &&Row| row.thread == *thread && !is_dropped(row);
                let rows: Vec<Row> = region.iter().filter(of_thread).cloned().collect();
                if !rows.is_empty() {
                    writer.events(&rows);
                }
            }
            let last = region.iter().map(|row| row.ticks).max().unwrap_or_default();
            writer.sequence_point(last, &numbers.iter().map(|(thread, number)| (*thread, *number)).collect::<Vec<_>>());
            from = *until;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), writer.end()).unwrap();
        let tables = TABLES.iter().map(|(table, ..)| (*table).to_owned());
        Dataset::with(Convert::default().inputs([file.path().to_owned()]).tables(tables))
    }
}

/// Tables of pairs, with the column of the start.
const TABLES: [(&str, &str); 10] = [
    ("gc", "start_ts_ns"),
    ("gc_pause", "start_ts_ns"),
    ("gc_join", "start_ts_ns"),
    ("exception", "ts_ns"),
    ("contention", "start_ts_ns"),
    ("wait", "start_ts_ns"),
    ("method_compilation", "start_ts_ns"),
    ("assembly_load", "start_ts_ns"),
    ("thread_pool_work", "queue_ts_ns"),
    ("activity", "start_ts_ns"),
];

/// What says nothing of the pair: whether it is whole, and numbers that count what is there.
const LEFT_OUT: [&str; 4] = ["complete", "touches_gap", "callsite_id", "gc_id"];

/// All values of a column; empty for what is null, or 0 where that stands for none.
fn values(table: &Table, column: &str) -> Vec<String> {
    let Some(batch) = table.batches.first() else { return Vec::new() };
    let text = |value: Option<String>| value.unwrap_or_default();
    match batch.schema().field_with_name(column).unwrap().data_type() {
        DataType::Boolean => table
            .batches
            .iter()
            .flat_map(|batch| {
                let array = batch.column_by_name(column).unwrap();
                let array = arrow_array::cast::AsArray::as_boolean(array);
                array.iter().map(|value| text(value.map(|value| value.to_string()))).collect::<Vec<_>>()
            })
            .collect(),
        DataType::Int64 => table.signed(column).into_iter().map(|v| text(v.map(|v| v.to_string()))).collect(),
        DataType::Timestamp(..) | DataType::Float64 => vec![String::new(); table.rows()],
        DataType::Utf8 | DataType::Dictionary(..) => table.texts(column),
        // Counts are no ids: none is something else than not known.
        _ => {
            let shown = |value: &u64| *value != 0 || column.ends_with("_count");
            table.optional(column).into_iter().map(|v| text(v.filter(shown).map(|v| v.to_string()))).collect()
        }
    }
}

/// Rows by thread and start, each with its values and whether it touches a gap.
type Rows = BTreeMap<(String, String), (BTreeMap<String, String>, bool)>;

fn rows(dataset: &Dataset, name: &str, start: &str) -> Rows {
    let table = dataset.table(name);
    let names = table.names();
    let mut columns: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for column in names.iter().filter(|name| !LEFT_OUT.contains(&name.as_str())) {
        columns.insert(column.clone(), values(&table, column));
    }
    if name != "gc" && names.iter().any(|name| name == "gc_id") {
        // A lost collection shifts the numbers of those behind it, so that collections are matched by their starts.
        let gc = dataset.table("gc");
        let starts: BTreeMap<u64, String> = gc.numbers("gc_id").into_iter().zip(values(&gc, "start_ts_ns")).collect();
        let of = |id: &u64| starts.get(id).cloned().unwrap_or_default();
        columns.insert("gc".to_owned(), table.numbers("gc_id").iter().map(of).collect());
    }
    let (starts, none) = (values(&table, start), vec![String::new(); table.rows()]);
    let threads = columns.get("thread_id").cloned().unwrap_or(none);
    let touches = if names.is_empty() { Vec::new() } else { table.bools("touches_gap") };
    (0..table.rows())
        .map(|row| {
            let values = columns.iter().map(|(name, values)| (name.clone(), values[row].clone())).collect();
            ((threads[row].clone(), starts[row].clone()), (values, touches[row]))
        })
        .collect()
}

#[test]
fn what_a_loss_makes_different_is_null_or_marked() {
    let mut marked: BTreeMap<&str, usize> = BTreeMap::new();
    for seed in 1..=3 {
        let (mut process, mut random) = (Process::default(), Random(seed * 7919));
        (0..1500).for_each(|_| process.step(&mut random));
        let whole = process.written(|_| false);
        assert_eq!(whole.problems(), []);
        let whole = TABLES.map(|(table, start)| rows(&whole, table, start));
        assert!(whole.iter().all(|rows| rows.len() > 10 && rows.values().all(|(_, touches_gap)| !touches_gap)));
        for trial in 0..12 {
            let drops: Vec<(u64, u32, u32)> = (0..1 + random.below(3))
                .map(|_| {
                    let thread = *process.sequences.keys().nth(random.below(process.sequences.len())).unwrap();
                    let first = 2 + random.below(process.sequences[&thread] as usize - 2) as u32;
                    (thread, first, first + random.below(8) as u32)
                })
                .collect();
            let is_dropped = |row: &Row| {
                drops
                    .iter()
                    .any(|(thread, first, last)| row.thread == *thread && (first..=last).contains(&&row.sequence))
            };
            let lossy = process.written(is_dropped);
            assert!(lossy.problems().iter().any(|problem| problem.0 == "dropped_events"), "{drops:?}");
            for ((table, start), whole) in TABLES.iter().zip(&whole) {
                for (key, (found, touches_gap)) in rows(&lossy, table, start) {
                    let Some((expected, _)) = whole.get(&key) else {
                        assert!(
                            touches_gap,
                            "seed {seed}, trial {trial} {drops:?}: {table} {key:?} is no row of the whole"
                        );
                        continue;
                    };
                    let differs = |column: &&String| found[*column] != expected[*column] && !found[*column].is_empty();
                    let different: Vec<_> = found.keys().filter(differs).collect();
                    let what = || different.iter().map(|c| (c, &found[*c], &expected[*c])).collect::<Vec<_>>();
                    assert!(
                        touches_gap || different.is_empty(),
                        "{seed} {trial} {drops:?} {table} {key:?}: {:?}",
                        what()
                    );
                    *marked.entry(table).or_default() += usize::from(touches_gap);
                }
            }
        }
    }
    assert!(TABLES.iter().all(|(table, _)| marked.get(table).is_some_and(|rows| *rows > 0)), "{marked:?}");
}

/// The least that goes wrong: the gap of one thread shows behind the stop of another one, which ends later work of the
/// same id.
#[test]
fn no_work_is_joined_across_a_gap_that_shows_later() {
    let event = |thread: u64, sequence: u32, ticks: i64, metadata_id: u32| Row {
        metadata_id,
        sequence,
        capture_thread: thread,
        thread,
        ticks,
        payload: vec![0; 8],
        activity: Guid([7; 16]),
        ..Row::default()
    };
    let mut process = Process { now: 0, ..Process::default() };
    process.sequences = [(1, 2), (2, 6), (3, 2)].into();
    process.rows = vec![
        event(2, 1, 50, 302),
        event(1, 1, 100, WORK),
        event(1, 2, 101, 61),
        // Thread 2 ends this work, begins another one, and takes the item.
        event(3, 1, 400, WORK_STOP),
        event(3, 2, 401, 62),
        event(2, 5, 500, 302),
        event(2, 6, 600, WORK),
    ];
    let dataset = process.written(|_| false);
    let activity = dataset.table("activity");
    assert_eq!((activity.signed("end_ts_ns"), activity.bools("touches_gap")), (vec![None, None], vec![true, false]));
    let work = dataset.table("thread_pool_work");
    assert_eq!((work.signed("start_ts_ns"), work.bools("touches_gap")), (vec![None], vec![true]));
}
