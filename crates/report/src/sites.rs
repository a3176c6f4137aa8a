//! Waits and compiled methods: what takes time at call sites, by the method that it belongs to.

use tracequet_analyze::profile::Profile;
use tracequet_dataset::error::Result;
use tracequet_dataset::read::Recording;

use crate::html::{Cell, Head, Rows, numbers, words};
use crate::owners::Owners;
use crate::read::each;
use crate::subjects::{Groups, Subject, rows_note};
use crate::timeline::Series;
use crate::units::count;

/// Waits of a kind, or methods that were compiled.
#[derive(Debug, Default)]
struct Waited {
    count: u64,
    total_ns: u64,
    longest_ns: Option<u64>,
}

impl Waited {
    /// Adds a wait. One that did not end in the recording has no time.
    fn add(&mut self, ns: Option<u64>) {
        self.count += 1;
        if let Some(ns) = ns {
            self.total_ns = self.total_ns.saturating_add(ns);
            self.longest_ns = self.longest_ns.max(Some(ns));
        }
    }

    /// The time of those that ended, if any did.
    fn total(&self) -> Option<u64> {
        self.longest_ns.map(|_| self.total_ns)
    }
}

/// What a lock and its report are made of: a wait belongs to the method that called it.
const OF_LOCKS: [&str; 3] =
    ["System.Threading.Monitor.", "System.Threading.Lock.", "System.Diagnostics.Tracing.NativeRuntimeEventSource."];

/// A table of what took time, that which took most first. The heads are those of the two names that rows begin with, of number, sum and
/// longest, and of the names behind them.
fn table(groups: Groups<Waited>, [id, title]: [&'static str; 2], heads: &[Head], kinds: [&str; 2]) -> (String, String) {
    let mut table = Rows::new(id, heads);
    let (largest, of) = groups.largest(|waited| waited.total_ns);
    for (names, waited) in &largest {
        let mut names = names.iter().map(|name| Cell::text(Some(name)));
        let mut row: Vec<Cell> = names.by_ref().take(2).collect();
        row.extend([
            Cell::number(Some(waited.count), count),
            Cell::span(waited.total()),
            Cell::span(waited.longest_ns),
        ]);
        row.extend(names);
        table.row(row);
    }
    (table.html(title), rows_note(largest.len(), of, kinds, "the most time"))
}

/// Waits of a table by method and by the kind in a column.
fn waited(
    recording: &Recording<'_>,
    [name, kind]: [&str; 2],
    mut owners: Owners<'_>,
    mut over_time: Series,
    [titles, first, kinds]: [[&'static str; 2]; 3],
) -> Result<Subject> {
    let mut groups: Groups<Waited> = Groups::new();
    let mut rows = 0u64;
    each(recording, name, &["callsite_id", kind, "start_ts_ns", "duration_ns"], |row| {
        rows += 1;
        let method = owners.name(row.number(0).unwrap_or_default() as u32);
        groups.of([method, row.text(1).unwrap_or_default()]).add(row.number(3));
        over_time.add(0, row.signed(2).unwrap_or_default(), row.number(3).unwrap_or_default());
    })?;
    let [of_method, of_kind] = first;
    let heads = [
        words("waits in", of_method),
        words("kind", of_kind),
        numbers("waits", "How many"),
        numbers("waited", "All waits together that ended in the recording"),
        numbers("longest", "The longest of them"),
    ];
    let (table, note) = table(groups, titles, &heads, kinds);
    Ok(Subject { table, note, rows, over_time })
}

const WAITING: [&str; 2] = ["method that waited", "methods that waited"];

/// Waits for locks by the method that waited.
pub(crate) fn locks(recording: &Recording<'_>, profile: Option<&Profile>, end_ns: i64) -> Result<Subject> {
    let owners = Owners::by(profile, |function| !OF_LOCKS.iter().any(|part| function.name.starts_with(part)));
    let heads = ["The innermost method outside of the lock's own code; empty without a stack", "Of lock"];
    let over_time = Series::new(end_ns, &[("lk", "waited")]);
    let titles = ["locks-table", "Waits for locks"];
    waited(recording, ["contention", "kind"], owners, over_time, [titles, heads, WAITING])
}

/// Other waits by own method and kind.
pub(crate) fn waits(recording: &Recording<'_>, profile: Option<&Profile>, end_ns: i64) -> Result<Subject> {
    let heads = [
        "The user's own method that waited; empty without one on the stack",
        "MonitorWait, or Unknown for everything else, as the runtime says",
    ];
    let over_time = Series::new(end_ns, &[("po", "waited")]);
    waited(recording, ["wait", "source"], Owners::of(profile), over_time, [["waits-table", "Waits"], heads, WAITING])
}

/// Compiled methods, with the own method that needed them.
pub(crate) fn compiled(recording: &Recording<'_>, profile: Option<&Profile>, end_ns: i64) -> Result<Subject> {
    let mut groups: Groups<Waited> = Groups::new();
    let mut over_time = Series::new(end_ns, &[("g2", "compiled")]);
    let (mut owners, mut rows) = (Owners::of(profile), 0u64);
    let columns = ["callsite_id", "kind", "start_ts_ns", "duration_ns", "namespace", "name", "tier"];
    let mut name = String::new();
    each(recording, "method_compilation", &columns, |row| {
        if row.text(1) != Some("jit") {
            return;
        }
        rows += 1;
        name.clear();
        name.extend(row.word(4));
        name.push_str(if name.is_empty() { "" } else { "." });
        name.push_str(row.text(5).unwrap_or_default());
        let owner = owners.name(row.number(0).unwrap_or_default() as u32);
        groups.of([name.as_str(), row.text(6).unwrap_or_default(), owner]).add(row.number(3));
        over_time.add(0, row.signed(2).unwrap_or_default(), row.number(3).unwrap_or_default());
    })?;
    let heads = [
        words("method", "That was compiled"),
        words("tier", "How well it was optimised"),
        numbers("times", "How often: generic methods are compiled for several types"),
        numbers("took", "Time of all, with what was compiled meanwhile on the same thread"),
        numbers("longest", "The longest of them"),
        words("needed by", "The user's own method on the stack; empty without one"),
    ];
    let kinds = ["method by tier and by what needed it", "methods by tier and by what needed them"];
    let (table, note) = table(groups, ["jit-table", "Compiled methods"], &heads, kinds);
    Ok(Subject { table, note, rows, over_time })
}
