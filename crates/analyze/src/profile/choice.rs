//! Which rows of a recording become a profile: of what kind, from when to when, of which thread, of which activity.

use tracequet_dataset::error::Evidence;
use tracequet_dataset::table::schema;
use tracequet_trace::error::did_you_mean;

use super::labels::Labels;
use super::model::What;
use super::spans::{ACTIVITIES, SpanWork, Worked};
use crate::lifetime;
use crate::prelude::*;
use crate::subjects::processor::Samples;

/// The tables that the profiles of all but a few kinds are found in: [`Choice::tables`] says it of each.
pub const TABLES: [&str; 11] = [
    "trace", "process", "thread", "callsite", "frame", "cpu_sample", "allocation", "exception", "contention",
    "thread_time", "gc_pause",
];

/// Which rows of a recording become a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The kind of rows.
    pub what: What,
    /// Of [`What::Rows`] the table: any one with call stacks and threads.
    pub table: String,
    /// The column whose whole numbers are the weights, instead of what rows of the kind are weighed by.
    pub weight: Option<String>,
    /// Of [`What::Cpu`] which samples are meant.
    pub samples: Samples,
    /// Only rows of this time or later, nanoseconds since the recording began. Rows with a beginning and an end count
    /// by their beginning.
    pub from_ns: Option<i64>,
    /// Only rows before this time.
    pub to_ns: Option<i64>,
    /// Only rows of the threads with this id or name.
    pub thread: Option<String>,
    /// Only what threads did while they worked on this activity, or on one that lies in it: an id, a path such as `//1/34`, or a trace or
    /// span of W3C Trace Context (32 or 16 hexadecimal digits).
    pub activity: Option<String>,
}

impl Choice {
    /// All rows of a kind.
    pub fn of(what: What) -> Choice {
        Choice { what, ..Choice::default() }
    }

    /// Reads a kind of samples, or the name of a table with call stacks.
    pub fn parse(text: &str) -> Result<Choice> {
        if let Some(kind) = What::named(text).filter(|kind| *kind != What::Rows) {
            return Ok(Choice::of(kind));
        }
        let all = schema::all()?;
        let has_stacks = |table: &&schema::TableSchema| table.columns.iter().any(|column| column.name == "callsite_id");
        let tables = || all.iter().filter(has_stacks).map(|table| table.name.as_str());
        if text.starts_with("event/") || tables().any(|name| name == text) {
            return Ok(Choice { table: text.to_owned(), ..Choice::of(What::Rows) });
        }
        let names: Vec<&str> = What::ALL.into_iter().filter(|kind| *kind != What::Rows).map(What::as_str).collect();
        let near = did_you_mean(text, names.iter().copied().chain(tables()));
        let names = names.join(", ");
        Err(Error::Usage(format!("expected {names}, event/PROVIDER/NAME or another table with call stacks{near}")))
    }

    /// The tables that it is read from.
    pub fn tables(&self) -> Vec<&str> {
        let mut tables = TABLES.to_vec();
        match self.what {
            What::Rows => tables.push(&self.table),
            What::Heap => tables.extend(crate::heap::TABLES),
            What::Survivors | What::Gen2Deaths | What::Live => {
                tables.extend(lifetime::TABLES.into_iter().chain([lifetime::TABLE]));
            }
            what => tables.extend(what.of().map(|of| of.table.as_str())),
        }
        tables.extend(self.activity.is_some().then_some(ACTIVITIES));
        tables.extend(self.activity.as_deref().is_some_and(is_of_w3c).then_some("activity"));
        tables.sort_unstable();
        tables.dedup();
        tables
    }

    /// Whether some rows of the kind may be left out.
    pub fn is_of_some(&self) -> bool {
        self.from_ns.is_some() || self.to_ns.is_some() || self.thread.is_some() || self.activity.is_some()
    }
}

row!(struct Id of thread_activity { activity_id, activity_path });

/// Whether an id is one of W3C Trace Context: of a trace or of a span.
fn is_of_w3c(id: &str) -> bool {
    matches!(id.len(), 16 | 32) && id.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// From when to when each process and thread worked on an activity, in nanoseconds since the recording began.
type Work = Map<(u64, u64), Vec<(i64, i64)>>;

/// Says of a row whether it is chosen.
pub(super) struct Filter<'c> {
    choice: &'c Choice,
    /// The threads, where they are chosen by name and not by id.
    names: Option<Labels>,
    /// Of each process and thread when it worked on the activity, in the order of time.
    work: Option<Work>,
}

impl<'c> Filter<'c> {
    pub fn new(recording: &Recording<'_>, choice: &'c Choice) -> Result<Filter<'c>> {
        let is_name = choice.thread.as_ref().is_some_and(|thread| thread.parse::<u64>().is_err());
        let names = if is_name { Some(Labels::read(recording)?) } else { None };
        let work = choice.activity.as_ref().map(|activity| work(recording, activity)).transpose()?;
        Ok(Filter { choice, names, work })
    }

    /// Whether a row of a thread at a time is chosen.
    pub fn takes(&self, thread: (u64, u64), ts_ns: i64) -> bool {
        let Choice { from_ns, to_ns, thread: wanted, .. } = self.choice;
        let is_thread = match (wanted, &self.names) {
            (None, _) => true,
            (Some(wanted), None) => wanted.parse() == Ok(thread.1),
            (Some(wanted), Some(names)) => names.thread(thread) == Some(wanted),
        };
        let is_of_work = |work: &Work| {
            let Some(times) = work.get(&thread) else { return false };
            let place = times.partition_point(|(start, _)| *start <= ts_ns);
            place.checked_sub(1).and_then(|place| times.get(place)).is_some_and(|(_, end)| ts_ns < *end)
        };
        is_thread
            && from_ns.is_none_or(|from| ts_ns >= from)
            && to_ns.is_none_or(|to| ts_ns < to)
            && self.work.as_ref().is_none_or(is_of_work)
    }
}

/// Times in their order, those that overlap or meet as one.
fn merged(times: &mut Vec<(i64, i64)>) {
    times.sort_unstable();
    times.dedup_by(|next, before| {
        let is_within = next.0 <= before.1;
        before.1 = if is_within { before.1.max(next.1) } else { before.1 };
        is_within
    });
}

/// Memory of a time.
const STORED: u64 = size_of::<(i64, i64)>() as u64;

/// When threads worked on an activity or on one that lies in it.
fn work(recording: &Recording<'_>, activity: &str) -> Result<Work> {
    if is_of_w3c(activity) {
        let is_it = |id: &str| id.eq_ignore_ascii_case(activity);
        let mut work = Work::default();
        for (thread, of_thread) in SpanWork::read(recording, |trace, span| is_it(trace) || is_it(span))?.threads {
            let times = work.entry(thread).or_default();
            times.extend(of_thread.iter().map(|worked| (worked.start_ns, worked.end_ns)));
            merged(times);
        }
        return Ok(work);
    }
    // An id is the same text in each of its rows, and so is its path.
    let (mut path, mut rows) = (activity.starts_with('/').then(|| activity.to_owned()), 0);
    each_row::<Id<'_>>(recording, 0, |row| {
        rows += 1;
        let own_path = row.activity_path.filter(|path| !path.is_empty());
        if path.is_none() && row.activity_id.is_some_and(|id| id.eq_ignore_ascii_case(activity)) {
            path = own_path.map(str::to_owned);
        }
        Ok(())
    })?;
    if rows == 0 {
        let key = &recording.info().trace_id;
        let message = format!(
            "the recording {key} has no activity ids; they are recorded with System.Threading.Tasks.TplEventSource:0x80"
        );
        return Err(Error::NotRecorded { what: Evidence::Activities, message });
    }
    let is_inside = |inner: &str| {
        let rest = path.as_ref().and_then(|path| inner.strip_prefix(path.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '$']))
    };
    let mut work: Work = Map::default();
    let mut found = 0;
    each_row::<Worked<'_>>(recording, 0, |row| {
        let is_it = row.activity_id.is_some_and(|id| id.eq_ignore_ascii_case(activity));
        if is_it || row.activity_path.is_some_and(is_inside) {
            let times = work.entry((row.process_id, row.thread_id)).or_default();
            times.push((row.start_ts_ns, row.end_ts_ns));
            found += 1;
        }
        held(recording, ACTIVITIES, found, STORED)
    })?;
    work.values_mut().for_each(|times| times.sort_unstable());
    Ok(work)
}
