//! Sums of a recording's rows by call site: what each subject counts, and what is left out.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use tracequet_dataset::read::Recording;
use tracequet_trace::error::Result;

use super::place::By;
use crate::allocation_source::rank;
use crate::heap::Texts;
use crate::held;
use crate::metrics::Missing;
use crate::profile::{Rounds, Unit};
use crate::rows::{Row, each};

/// What is compared by method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Subject {
    /// Samples of running threads, by time where the recording says how long one stands for. Those of an idle processor, and of
    /// threads outside of managed code, are left out, as in the view `cpu_by_site`.
    Cpu,
    /// Bytes of sampled allocations, of the samples that the view `allocation_source` names.
    Allocation,
    /// Exceptions that were thrown.
    Exception,
    /// Time of waits for locks.
    Contention,
    /// Time of waits for events, tasks and the like. One without an end counts until the last event of its process, unless a
    /// loss may hide the end.
    Wait,
}

impl Subject {
    /// All of them.
    pub const ALL: [Subject; 5] =
        [Subject::Cpu, Subject::Allocation, Subject::Exception, Subject::Contention, Subject::Wait];

    /// The word of JSON; the same as the table where there is one.
    pub fn word(self) -> &'static str {
        match self {
            Subject::Cpu => "cpu",
            Subject::Allocation => "allocation",
            Subject::Exception => "exception",
            Subject::Contention => "contention",
            Subject::Wait => "wait",
        }
    }

    /// The table of its rows.
    pub fn table(self) -> &'static str {
        match self {
            Subject::Cpu => "cpu_sample",
            other => other.word(),
        }
    }

    /// The list of events of `schemas/metrics.toml` that it is made of.
    pub(super) fn need(self) -> &'static str {
        match self {
            Subject::Cpu => "samples",
            Subject::Allocation => "allocations",
            Subject::Exception => "exceptions",
            Subject::Contention => "contentions",
            Subject::Wait => "waits",
        }
    }

    /// Whether its rows come by chance, one independent of the other, so that their number says how sure it is.
    pub(super) fn is_counted(self) -> bool {
        matches!(self, Subject::Cpu | Subject::Allocation | Subject::Exception)
    }
}

/// Why a recording says nothing of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absent {
    /// Its events were not recorded, or nothing says whether they were.
    Events(Missing),
    /// The dataset was made without this table.
    Table(&'static str),
}

impl Absent {
    /// The word of JSON.
    pub fn word(self) -> &'static str {
        match self {
            Absent::Events(missing) => missing.word(),
            Absent::Table(_) => "no_table",
        }
    }
}

/// How often something happened, and how much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Sum {
    /// Rows, or samples.
    pub count: u64,
    /// In the unit of the subject.
    pub amount: u64,
}

impl Sum {
    pub(super) fn join(&mut self, other: Sum) {
        self.count = self.count.saturating_add(other.count);
        self.amount = self.amount.saturating_add(other.amount);
    }
}

/// What the type of a row is known by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    None,
    Text(Arc<str>),
    Id(u64),
}

/// What rows are summed by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) process: u64,
    pub(super) callsite: u32,
    pub(super) kind: Kind,
}

/// The sums of a subject by call site.
pub(super) type Raw = HashMap<Key, Sum, RandomState>;

/// Memory of a sum with its key.
const SUM_STORED: u64 = 64;

/// Rows are not kept: only their sums are.
const ROW_STORED: u64 = 0;

/// The sums of a subject, and whether amounts are time; `None` when the dataset does not have the table.
pub(super) fn summed(
    recording: &Recording<'_>,
    subject: Subject,
    by: By,
    texts: &mut Texts,
) -> Result<Option<(Raw, Unit)>> {
    if recording.table(subject.table()).is_err() {
        return Ok(None);
    }
    let mut sums = Sums { recording, table: subject.table(), all: Raw::default() };
    let unit = match subject {
        Subject::Cpu => return cpu(sums).map(Some),
        Subject::Allocation => {
            allocations(&mut sums, by, texts)?;
            Unit::Bytes
        }
        Subject::Exception => {
            each(recording, ROW_STORED, "exception", &["process_id", "callsite_id", "type_name"], |row| {
                let kind = if by == By::Type { Kind::Text(texts.keep(row.text(2))?) } else { Kind::None };
                sums.add(row, kind, Sum { count: 1, amount: 1 })
            })?;
            Unit::Count
        }
        Subject::Contention => {
            each(recording, ROW_STORED, "contention", &["process_id", "callsite_id", "duration_ns"], |row| {
                sums.add(row, Kind::None, Sum { count: 1, amount: positive(row.number(2).cast_signed()) })
            })?;
            Unit::Nanoseconds
        }
        Subject::Wait => {
            waits(&mut sums)?;
            Unit::Nanoseconds
        }
    };
    Ok(Some((sums.all, unit)))
}

/// Sums in the making.
struct Sums<'r, 'd> {
    recording: &'r Recording<'d>,
    table: &'static str,
    all: Raw,
}

impl Sums<'_, '_> {
    /// Adds a row that begins with process and call site.
    fn add(&mut self, row: &Row<'_>, kind: Kind, sum: Sum) -> Result<()> {
        let key = Key { process: row.number(0), callsite: row.number(1) as u32, kind };
        self.all.entry(key).or_default().join(sum);
        held(self.recording, self.table, self.all.len() as u64, SUM_STORED)
    }
}

/// Durations of damaged rows may be negative.
fn positive(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or_default()
}

/// Threads whose samples are counted, with room in a map.
const THREAD_STORED: u64 = 64;

/// Samples as time: of the runtime's sampler by the time between two that is observed, of others by the one that was asked for.
fn cpu(mut sums: Sums<'_, '_>) -> Result<(Raw, Unit)> {
    let mut sampling_ns = 0;
    if sums.recording.table("trace").is_ok() {
        each(sums.recording, ROW_STORED, "trace", &["sampling_ns"], |row| {
            sampling_ns = row.number(0);
            Ok(())
        })?;
    }
    let mut rounds = Rounds::default();
    let mut of_kernel: Raw = Raw::default();
    let recording = sums.recording;
    let columns = ["process_id", "callsite_id", "kind", "sample_count", "thread_id", "ts_ns"];
    each(recording, ROW_STORED, "cpu_sample", &columns, |row| {
        let is_of_runtime = matches!(row.text(2), "managed" | "external" | "error");
        if is_of_runtime {
            rounds.see((row.number(0), row.number(4)), row.number(5).cast_signed());
            held(recording, "cpu_sample", rounds.threads() as u64, THREAD_STORED)?;
        }
        if matches!(row.text(2), "idle" | "external") {
            return Ok(());
        }
        let sum = Sum { count: row.number(3), amount: 0 };
        if is_of_runtime {
            return sums.add(row, Kind::None, sum);
        }
        let key = Key { process: row.number(0), callsite: row.number(1) as u32, kind: Kind::None };
        of_kernel.entry(key).or_default().join(sum);
        held(recording, "cpu_sample", of_kernel.len() as u64, SUM_STORED)
    })?;
    let intervals = rounds.intervals();
    let weigh = |sum: &mut Sum, interval: u64| sum.amount = sum.count.saturating_mul(interval);
    // Without an interval there is no time, and samples are what is compared.
    let interval =
        |process: &u64| if sampling_ns == 0 { 1 } else { intervals.get(process).copied().unwrap_or(sampling_ns) };
    sums.all.iter_mut().for_each(|(key, sum)| weigh(sum, interval(&key.process)));
    of_kernel.values_mut().for_each(|sum| weigh(sum, sampling_ns.max(1)));
    for (key, sum) in of_kernel {
        sums.all.entry(key).or_default().join(sum);
    }
    Ok((sums.all, if sampling_ns == 0 { Unit::Count } else { Unit::Nanoseconds }))
}

/// Allocations of the best source that there is.
fn allocations(sums: &mut Sums<'_, '_>, by: By, texts: &mut Texts) -> Result<()> {
    let mut best: Option<u8> = None;
    let columns = ["process_id", "callsite_id", "source", "allocation_bytes", "type_id", "type_name"];
    each(sums.recording, ROW_STORED, "allocation", &columns, |row| {
        let Some(found) = rank(row.text(2)) else { return Ok(()) };
        if best.is_some_and(|best| best < found) {
            return Ok(());
        }
        if best != Some(found) {
            best = Some(found);
            sums.all.clear();
        }
        let kind = match (by, row.text(5)) {
            (By::Type, "") => Kind::Id(row.number(4)),
            (By::Type, name) => Kind::Text(texts.keep(name)?),
            _ => Kind::None,
        };
        sums.add(row, kind, Sum { count: 1, amount: row.number(3) })
    })
}

/// Waits, those without an end until the last event of their process.
fn waits(sums: &mut Sums<'_, '_>) -> Result<()> {
    let mut ends: HashMap<u64, i64, RandomState> = HashMap::default();
    if sums.recording.table("process").is_ok() {
        each(sums.recording, SUM_STORED, "process", &["process_id", "last_ts_ns"], |row| {
            let end = ends.entry(row.number(0)).or_insert(i64::MIN);
            *end = (*end).max(row.number(1).cast_signed());
            Ok(())
        })?;
    }
    let columns = ["process_id", "callsite_id", "start_ts_ns", "duration_ns", "touches_gap"];
    each(sums.recording, ROW_STORED, "wait", &columns, |row| {
        let open = || {
            let end = ends.get(&row.number(0)).filter(|_| row.number(4) == 0)?;
            Some(end.saturating_sub(row.number(2).cast_signed()))
        };
        let duration = row.known(3).map(u64::cast_signed).or_else(open).unwrap_or_default();
        sums.add(row, Kind::None, Sum { count: 1, amount: positive(duration) })
    })
}
