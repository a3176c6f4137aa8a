//! Sums of a recording's rows by call site: what each subject counts, and what is left out.

use super::place::By;
use crate::heap::Texts;
use crate::metrics::Missing;
use crate::prelude::*;
use crate::profile::Unit;
use crate::subjects::allocations;
use crate::subjects::processor::{Processor, Samples};

tracequet_trace::worded! {
    /// A subject that is compared by method.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Subject {
        /// Samples of running threads, by time where the recording says how long one stands for. Those of an idle
        /// processor, and of threads outside of managed code, are left out, as in the view `cpu_by_site`.
        Cpu = "cpu": "samples",
        /// Bytes of sampled allocations, of the samples that the view `allocation_source` names.
        Allocation = "allocation": "allocations",
        /// Exceptions that were thrown.
        Exception = "exception": "exceptions",
        /// Time of waits for locks.
        Contention = "contention": "contentions",
        /// Time of waits for events, tasks and the like. One without an end counts until the last event of its process,
        /// unless a loss may hide the end.
        Wait = "wait": "waits",
    }
    /// The word of JSON; the same as the table where there is one.
    pub fn word;
    /// The list of events of `schemas/metrics.toml` that it is made of.
    pub(super) fn need;
}

impl Subject {
    /// The table of its rows.
    pub fn table(self) -> &'static str {
        match self {
            Subject::Cpu => "cpu_sample",
            other => other.word(),
        }
    }

    /// Whether its rows come by chance, one independent of the other, so that their number says how sure it is.
    pub(super) fn is_counted(self) -> bool {
        matches!(self, Subject::Cpu | Subject::Allocation | Subject::Exception)
    }
}

/// Why a recording says nothing of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A count and an amount.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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

/// The name or the id of a row's type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    None,
    Text(Arc<str>),
    Id(u64),
}

row!(struct Exception of exception { process_id, callsite_id, type_name });

row!(struct Contention of contention { process_id, callsite_id, duration_ns });

row!(struct Wait of wait { process_id, callsite_id, start_ts_ns, duration_ns, touches_gap });

row!(struct Process of process { process_id, last_ts_ns });

/// The key of a sum.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) process: u64,
    pub(super) callsite: u32,
    pub(super) kind: Kind,
}

/// The sums of a subject by call site.
pub(super) type Raw = Map<Key, Sum>;

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
        Subject::Cpu => cpu(&mut sums)?,
        Subject::Allocation => {
            allocated(&mut sums, by, texts)?;
            Unit::Bytes
        }
        Subject::Exception => {
            each_row::<Exception<'_>>(recording, ROW_STORED, |row| {
                let kind = if by == By::Type { Kind::Text(texts.keep(row.type_name)?) } else { Kind::None };
                sums.add(row.process_id, row.callsite_id, kind, Sum { count: 1, amount: 1 })
            })?;
            Unit::Count
        }
        Subject::Contention => {
            each_row::<Contention<'_>>(recording, ROW_STORED, |row| {
                let amount = positive(row.duration_ns.unwrap_or_default());
                sums.add(row.process_id, row.callsite_id, Kind::None, Sum { count: 1, amount })
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
    fn add(&mut self, process: u64, callsite: u32, kind: Kind, sum: Sum) -> Result<()> {
        self.all.entry(Key { process, callsite, kind }).or_default().join(sum);
        held(self.recording, self.table, self.all.len() as u64, SUM_STORED)
    }
}

/// Durations of damaged rows may be negative.
fn positive(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or_default()
}

/// Samples of threads that ran, as time where the recording says how far apart they are.
fn cpu(sums: &mut Sums<'_, '_>) -> Result<Unit> {
    let processor = Processor::of(sums.recording)?;
    processor.each(sums.recording, Samples::Running, |sample| {
        let sum = Sum { count: sample.count, amount: sample.weight };
        sums.add(sample.process_id, sample.callsite_id, Kind::None, sum)
    })?;
    Ok(if processor.is_time() { Unit::Nanoseconds } else { Unit::Count })
}

/// Allocations of the samples that count.
fn allocated(sums: &mut Sums<'_, '_>, by: By, texts: &mut Texts) -> Result<()> {
    allocations::each(sums.recording, |row| {
        let kind = match (by, row.type_name.unwrap_or_default()) {
            (By::Type, "") => Kind::Id(row.type_id),
            (By::Type, name) => Kind::Text(texts.keep(name)?),
            _ => Kind::None,
        };
        let sum = Sum { count: 1, amount: row.allocation_bytes.unwrap_or_default() };
        sums.add(row.process_id, row.callsite_id, kind, sum)
    })
}

/// Waits, those without an end until the last event of their process.
fn waits(sums: &mut Sums<'_, '_>) -> Result<()> {
    let mut ends: Map<u64, i64> = Map::default();
    if sums.recording.has::<Process<'_>>() {
        each_row::<Process<'_>>(sums.recording, SUM_STORED, |row| {
            let end = ends.entry(row.process_id).or_insert(i64::MIN);
            *end = (*end).max(row.last_ts_ns);
            Ok(())
        })?;
    }
    each_row::<Wait<'_>>(sums.recording, ROW_STORED, |row| {
        let open = || Some(ends.get(&row.process_id).filter(|_| !row.touches_gap)?.saturating_sub(row.start_ts_ns));
        let amount = positive(row.duration_ns.or_else(open).unwrap_or_default());
        sums.add(row.process_id, row.callsite_id, Kind::None, Sum { count: 1, amount })
    })
}
