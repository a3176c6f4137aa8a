//! Tables of allocations, exceptions and modules, with their sums over time.

use std::collections::BTreeSet;

use tracequet_analyze::lifetime::lifetimes;
use tracequet_analyze::metrics::TypeNames;
use tracequet_analyze::present::cut;
use tracequet_analyze::profile::What;
use tracequet_analyze::subjects::allocations::{self, Allocation, SOURCES};
use tracequet_analyze::subjects::processor::{State, is_of_runtime};

use crate::prelude::*;
use crate::selection::{Item, Panel};
use crate::timeline::Series;

/// Names that are distinguished; what is beyond them is one row.
const MAX_NAMES: usize = 64 << 10;

/// Bytes of a name that are kept.
const MAX_NAME: usize = 1000;

/// Rows of a table.
const MAX_ROWS: usize = 100;

/// The name that stands for names beyond the bound.
const OTHERS: &str = "(others)";

tracequet_dataset::row! {
    struct ExceptionRow of exception { process_id, thread_id, type_name, catch_method_name, message, ts_ns, callsite_id }
}

tracequet_dataset::row! {
    struct SampleRow of cpu_sample { ts_ns, kind, sample_count }
}

tracequet_dataset::row! {
    struct ModuleRow of managed_module { path, native_path, load_ts_ns, pdb_guid }
}

/// A table with what is to be said of it, and the sums over time.
#[derive(Debug)]
pub(crate) struct Subject {
    pub table: String,
    pub note: String,
    pub rows: u64,
    pub over_time: Series,
    /// The line of the table of each group of rows.
    pub lines: Vec<u32>,
}

/// Sums by names, which stand one behind the other in a key.
#[derive(Debug)]
pub(crate) struct Groups<V> {
    found: Map<String, (u32, V)>,
    key: String,
    /// The number of the names that were asked for last: numbers are in the order in which names were met.
    pub last: u32,
}

/// The lines of a table.
#[derive(Debug)]
pub(crate) struct Largest<V> {
    pub rows: Vec<(Vec<String>, V)>,
    /// How many there are, with those that have no line.
    pub of: usize,
    /// The line of each number; `u32::MAX` of those without a line.
    pub lines: Vec<u32>,
}

/// Between the names of a key.
pub(crate) const BETWEEN: char = '\0';

impl<V: Default> Groups<V> {
    pub(crate) fn new() -> Groups<V> {
        Groups { found: Map::default(), key: String::new(), last: 0 }
    }

    pub(crate) fn of<const N: usize>(&mut self, names: [&str; N]) -> &mut V {
        let write = |key: &mut String, names: [&str; N]| {
            key.clear();
            for (place, name) in names.into_iter().enumerate() {
                key.extend((place > 0).then_some(BETWEEN));
                key.push_str(cut(name, MAX_NAME));
            }
        };
        write(&mut self.key, names);
        if !self.found.contains_key(&self.key) && self.found.len() >= MAX_NAMES {
            write(&mut self.key, [OTHERS; N]);
        }
        let number = self.found.len() as u32;
        let new = || (number, V::default());
        let (number, value) = match self.found.contains_key(&self.key) {
            false => self.found.entry(self.key.clone()).or_insert_with(new),
            true => self.found.entry(std::mem::take(&mut self.key)).or_insert_with(new),
        };
        self.last = *number;
        value
    }

    /// The values, each with its names.
    pub(crate) fn each(&mut self) -> impl Iterator<Item = (&str, &mut V)> {
        self.found.iter_mut().map(|(key, (_, value))| (key.as_str(), value))
    }

    /// The largest.
    pub(crate) fn largest(self, size: impl Fn(&V) -> u64) -> Largest<V> {
        let mut all: Vec<_> = self.found.into_iter().collect();
        let (of, mut lines) = (all.len(), vec![u32::MAX; all.len()]);
        all.sort_by(|(a_key, (_, a)), (b_key, (_, b))| size(b).cmp(&size(a)).then_with(|| a_key.cmp(b_key)));
        all.truncate(MAX_ROWS);
        for (line, (_, (number, _))) in all.iter().enumerate() {
            if let Some(of_number) = lines.get_mut(*number as usize) {
                *of_number = line as u32;
            }
        }
        let names = |key: String| key.split(BETWEEN).map(str::to_owned).collect();
        Largest { rows: all.into_iter().map(|(key, (_, value))| (names(key), value)).collect(), of, lines }
    }
}

#[derive(Debug, Default)]
struct Allocated {
    bytes: Option<u64>,
    objects: Option<f64>,
    samples: u64,
}

impl Allocated {
    fn add(&mut self, bytes: Option<u64>, objects: Option<f64>) {
        self.samples += 1;
        add(&mut self.bytes, bytes);
        self.objects = objects.map(|objects| self.objects.unwrap_or_default() + objects).or(self.objects);
    }
}

/// Bytes by names of types.
pub(crate) type BytesByType = Map<String, u64>;

/// Allocations by type, and the bytes of each. Several kinds of samples may stand for the same bytes, so that only
/// those of one are counted.
pub(crate) fn allocations(
    recording: &Recording<'_>,
    panel: &mut Panel<'_>,
    end_ns: i64,
) -> Result<(Subject, BytesByType)> {
    let (best, names) = (allocations::best(recording)?, TypeNames::read(recording)?);
    let mut groups: Groups<Allocated> = Groups::new();
    let mut over_time = Series::new(end_ns, &[("al", "allocated")]);
    let (mut rows, mut unknown) = (0u64, String::new());
    let mut take = |row: &Allocation<'_>| {
        rows += 1;
        let key = (row.process_id, row.type_id);
        let name = word(row.type_name).or_else(|| names.name(key.0, key.1)).unwrap_or_else(|| {
            unknown = format!("type {:x}", key.1);
            &unknown
        });
        let amount = row.allocation_bytes;
        groups.of([name]).add(amount, row.object_count);
        over_time.add(0, row.ts_ns, amount.unwrap_or_default());
        let (thread, ts_ns, callsite) = ((row.process_id, row.thread_id), row.ts_ns, row.callsite_id);
        let more = row.object_count.unwrap_or_default();
        panel.add(Item { thread, ts_ns, callsite, group: groups.last, count: 1, amount, more });
        Ok(())
    };
    if best.is_some() {
        allocations::each(recording, &mut take)?;
    }
    let by_type = groups.found.iter().filter_map(|(name, (_, sum))| Some((name.clone(), sum.bytes?))).collect();
    let Largest { rows: largest, of, lines } = groups.largest(|sum| sum.bytes.unwrap_or_default());
    let table = table!("allocations-table", &largest, |(name, sum)| {
        words("type", "Of the sampled objects") => Cell::optional(name.first().map(String::as_str)),
        numbers("bytes", "That the samples stand for") => Cell::size(sum.bytes),
        numbers("objects", "That the samples stand for; not all kinds of samples say it") =>
            Cell::count(sum.objects.map(|objects| objects.round() as u64)),
        numbers("samples", "Table of the table allocation") => Cell::count(sum.samples),
    });
    let mut note = rows_note(largest.len(), of, ["type", "types"], "the most bytes");
    if let Some((source, _)) = SOURCES.iter().find(|(_, rank)| Some(*rank) == best) {
        note += match *source {
            "tick" => " By ticks, one about every 100 kB: what they say of types is rough.",
            "sampled" => " By samples in which each byte has the same chance.",
            _ => " By the objects that were recorded.",
        };
    }
    Ok((Subject { table: table.html("Allocations by type"), note, rows, over_time, lines }, by_type))
}

#[derive(Debug, Default)]
struct Thrown {
    count: u64,
    first_ns: i64,
    message: String,
}

/// Followed objects that died in generation 2, or among large or pinned objects, by type and by the own method that made them. Their time
/// is that of the collection that found them dead.
pub(crate) fn deaths(recording: &Recording<'_>, panel: &mut Panel<'_>, end_ns: i64) -> Result<Subject> {
    let names = TypeNames::read(recording)?;
    let mut groups: Groups<Allocated> = Groups::new();
    let mut over_time = Series::new(end_ns, &[("g2", "died")]);
    let (mut owners, mut rows) = (Owners::of(panel.profile), 0u64);
    lifetimes(recording, |lifetime| {
        let (sample, Some(dead_ns)) = (lifetime.sample, lifetime.life.dead_ns) else { return Ok(()) };
        if !lifetime.life.died_old() {
            return Ok(());
        }
        rows += 1;
        let unknown = format!("type {:x}", sample.type_id);
        let name = names.name(sample.process_id, sample.type_id).unwrap_or(&unknown);
        let (amount, objects) = (lifetime.bytes(), lifetime.objects());
        groups.of([name, owners.name(sample.callsite_id)]).add(amount, objects);
        over_time.add(0, dead_ns, amount.unwrap_or_default());
        let (thread, callsite) = ((sample.process_id, sample.thread_id), sample.callsite_id);
        let more = objects.unwrap_or_default();
        panel.add(Item { thread, ts_ns: dead_ns, callsite, group: groups.last, count: 1, amount, more });
        Ok(())
    })?;
    let Largest { rows: largest, of, lines } = groups.largest(|sum| sum.bytes.unwrap_or_default());
    let table = table!("deaths-table", &largest, |(names, sum)| {
        let name = |place: usize| Cell::optional(names.get(place).map(String::as_str));
    } {
        words("type", "Of the objects") => name(0),
        words("made in", "The user's own method that allocated them; empty without one on the stack") => name(1),
        numbers("bytes", "That the samples stand for") => Cell::size(sum.bytes),
        numbers("objects", "That the samples stand for") => Cell::count(sum.objects.map(|objects| objects.round() as u64)),
        numbers("samples", "Objects that were followed") => Cell::count(sum.samples),
    });
    let kinds = ["type by what made it", "types by what made them"];
    let note = rows_note(largest.len(), of, kinds, "the most bytes")
        + " They lived long enough to come into generation 2, and died there: only full collections find that. Their time is that of the collection that found them dead.";
    Ok(Subject { table: table.html("Died in generation 2"), note, rows, over_time, lines })
}

/// Exceptions by type, by the method that caught them, and by the user's own method that threw them.
pub(crate) fn exceptions(recording: &Recording<'_>, panel: &mut Panel<'_>, end_ns: i64) -> Result<Subject> {
    let mut groups: Groups<Thrown> = Groups::new();
    let mut over_time = Series::new(end_ns, &[("ex", "thrown")]);
    let (mut owners, mut rows) = (Owners::of(panel.profile), 0u64);
    recording.each_recorded::<ExceptionRow<'_>>(|row| {
        rows += 1;
        over_time.add(0, row.ts_ns, 1);
        let names = [row.type_name, row.catch_method_name.unwrap_or_default(), owners.name(row.callsite_id)];
        let thrown = groups.of(names);
        if thrown.count == 0 || row.ts_ns < thrown.first_ns {
            thrown.first_ns = row.ts_ns;
            thrown.message.clear();
            thrown.message.push_str(cut(row.message, MAX_NAME));
        }
        thrown.count += 1;
        let (thread, ts_ns, callsite) = ((row.process_id, row.thread_id), row.ts_ns, row.callsite_id);
        panel.add(Item { thread, ts_ns, callsite, group: groups.last, count: 1, amount: Some(1), more: 0.0 });
    })?;
    let Largest { rows: largest, of, lines } = groups.largest(|thrown| thrown.count);
    let table = table!("exceptions-table", &largest, |(names, thrown)| {
        words("type", "Of the exception") => Cell::optional(names.first().map(String::as_str)),
        numbers("thrown", "How often") => Cell::count(thrown.count),
        numbers("first s", "When the first one was thrown, in seconds since the recording began") =>
            Cell::moment(thrown.first_ns),
        words("message of the first", "NULL is what the runtime writes for none") => Cell::text(&thrown.message),
        words("caught in", "The method of the last handler, where it is recorded") =>
            Cell::optional(names.get(1).map(String::as_str)),
        words("thrown in", "The user's own method that threw it, or called what did; empty without one on the stack") =>
            Cell::optional(names.get(2).map(String::as_str)),
    });
    let kinds = ["kind by type, handler and place", "kinds by type, handler and place"];
    let note = rows_note(largest.len(), of, kinds, "the most exceptions");
    Ok(Subject { table: table.html("Exceptions"), note, rows, over_time, lines })
}

/// CPU samples of threads that ran over time, by who took them.
pub(crate) fn samples(recording: &Recording<'_>, end_ns: i64) -> Result<Series> {
    let mut over_time = Series::new(end_ns, &[("c0", "in managed code"), ("c2", "of the kernel's sampler")]);
    recording.each_recorded::<SampleRow<'_>>(|row| {
        let kind = match row.kind {
            kind if State::of(kind) != State::Running => return,
            kind if is_of_runtime(kind) => 0,
            _ => 1,
        };
        over_time.add(kind, row.ts_ns, row.sample_count.into());
    })?;
    over_time.kinds.retain(|(_, _, sums)| sums.iter().any(|sum| *sum > 0));
    Ok(over_time)
}

/// Modules with managed code, and what to say of them.
pub(crate) fn modules(recording: &Recording<'_>) -> Result<(String, String, u64)> {
    let mut found: BTreeSet<(String, Option<i64>, Option<String>)> = BTreeSet::new();
    let mut rows = 0u64;
    recording.each_recorded::<ModuleRow<'_>>(|row| {
        rows += 1;
        let path = word(Some(row.path)).or(word(Some(row.native_path)));
        let Some(path) = path.filter(|_| found.len() < MAX_NAMES) else { return };
        let path = cut(path, MAX_NAME);
        found.insert((path.to_owned(), row.load_ts_ns, word(row.pdb_guid).map(str::to_owned)));
    })?;
    let table = table!("modules-table", found.iter().take(2 * MAX_ROWS), |(path, load_ns, pdb)| {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    } {
        words("module", "Name of the file") => Cell::text(name),
        words("path", "As the runtime has it") => Cell::text(path),
        numbers("loaded s", "Seconds since the recording began; empty when it was loaded before, or when that is not recorded") =>
            Cell::moment(*load_ns),
        words("symbols", "Id of its portable PDB") => Cell::optional(pdb.as_deref()),
    });
    let note = rows_note(
        found.len().min(2 * MAX_ROWS),
        found.len(),
        ["module with managed code", "modules with managed code"],
        "the first paths",
    );
    Ok((table.html("Modules"), note, rows))
}

/// The kinds of stacks that flame graphs are drawn of.
pub(crate) const STACKS: [(What, &str, &str); 10] = [
    (What::Cpu, "cpu", "CPU"),
    (What::Allocation, "allocations", "Allocations"),
    (What::Exception, "exceptions", "Exceptions"),
    (What::Contention, "locks", "Locks"),
    (What::Wait, "waits", "Waits"),
    (What::Blocked, "blocked", "Blocked threads"),
    (What::Jit, "jit", "Compiled methods, by what needed them"),
    (What::Survivors, "survivors", "Allocations that survived their first collection"),
    (What::Gen2Deaths, "deaths", "Allocations that died in gen 2, or among large or pinned objects"),
    (
        What::Live,
        "live",
        "Allocations that are alive at the chosen moment: the end of the chosen time, or of the recording",
    ),
];
