//! Waits and compiled methods: what takes time at call sites, by the method that it belongs to.

use tracequet_analyze::present::Column;
use tracequet_analyze::profile::Profile;
use tracequet_analyze::subjects::compiling::Compilation;
use tracequet_analyze::subjects::waits::{LockWait, OF_LOCKS, Wait, Waited};

use crate::prelude::*;
use crate::read::span;
use crate::subjects::{Groups, Subject};
use crate::timeline::Series;

/// A table of what took time, that which took most first. The heads are those of the two names that rows begin with, of number, sum and
/// longest, and of the names behind them.
fn table(
    groups: Groups<Waited>,
    [id, title]: [&'static str; 2],
    heads: &[Column],
    kinds: [&str; 2],
) -> (String, String) {
    let mut table = Table::new(id, heads);
    let (largest, of) = groups.largest(|waited| waited.total_ns);
    for (names, waited) in &largest {
        let mut names = names.iter().map(|name| Cell::text(name));
        let mut row: Vec<Cell> = names.by_ref().take(2).collect();
        row.extend([Cell::count(waited.count), Cell::span(waited.total()), Cell::span(waited.longest_ns)]);
        row.extend(names);
        table.row(row);
    }
    (table.html(title), rows_note(largest.len(), of, kinds, "the most time"))
}

/// Time by the method that it belongs to and by a kind.
struct Times<'p> {
    owners: Owners<'p>,
    groups: Groups<Waited>,
    over_time: Series,
    rows: u64,
}

impl<'p> Times<'p> {
    /// `class` and `name` are those of the sums over time.
    fn new(owners: Owners<'p>, end_ns: i64, class: &'static str, name: &'static str) -> Times<'p> {
        Times { owners, groups: Groups::new(), over_time: Series::new(end_ns, &[(class, name)]), rows: 0 }
    }

    fn at(&mut self, start_ns: i64, duration_ns: Option<i64>) {
        self.rows += 1;
        self.over_time.add(0, start_ns, duration_ns.map_or(0, span));
    }

    fn wait(&mut self, callsite: u32, kind: Option<&str>, start_ns: i64, duration_ns: Option<i64>) {
        self.at(start_ns, duration_ns);
        self.groups.of([self.owners.name(callsite), kind.unwrap_or_default()]).add(duration_ns);
    }

    /// The table of waits: of methods and of kinds, as `heads` explains them.
    fn waits(self, titles: [&'static str; 2], [of_method, of_kind]: [&'static str; 2]) -> Subject {
        let heads = [
            words("waits in", of_method),
            words("kind", of_kind),
            numbers("waits", "How many"),
            numbers("waited", "All waits together that ended in the recording"),
            numbers("longest", "The longest of them"),
        ];
        self.subject(titles, &heads, ["method that waited", "methods that waited"])
    }

    fn subject(self, titles: [&'static str; 2], heads: &[Column], kinds: [&str; 2]) -> Subject {
        let (table, note) = table(self.groups, titles, heads, kinds);
        Subject { table, note, rows: self.rows, over_time: self.over_time }
    }
}

/// Waits for locks by the method that waited.
pub(crate) fn locks(recording: &Recording<'_>, profile: Option<&Profile>, end_ns: i64) -> Result<Subject> {
    let owners = Owners::by(profile, |function| !OF_LOCKS.iter().any(|part| function.name.starts_with(part)));
    let mut times = Times::new(owners, end_ns, "lk", "waited");
    recording.each_recorded::<LockWait<'_>>(|row| {
        times.wait(row.callsite_id, row.kind, row.start_ts_ns, row.duration_ns);
    })?;
    let heads = ["The innermost method outside of the lock's own code; empty without a stack", "Of lock"];
    Ok(times.waits(["locks-table", "Waits for locks"], heads))
}

/// Other waits by own method and kind.
pub(crate) fn waits(recording: &Recording<'_>, profile: Option<&Profile>, end_ns: i64) -> Result<Subject> {
    let mut times = Times::new(Owners::of(profile), end_ns, "po", "waited");
    recording.each_recorded::<Wait<'_>>(|row| {
        times.wait(row.callsite_id, row.source, row.start_ts_ns, row.duration_ns);
    })?;
    let heads = [
        "The user's own method that waited; empty without one on the stack",
        "MonitorWait, or Unknown for everything else, as the runtime says",
    ];
    Ok(times.waits(["waits-table", "Waits"], heads))
}

/// Compiled methods, with the own method that needed them.
pub(crate) fn compiled(recording: &Recording<'_>, profile: Option<&Profile>, end_ns: i64) -> Result<Subject> {
    let mut times = Times::new(Owners::of(profile), end_ns, "g2", "compiled");
    recording.each_recorded::<Compilation<'_>>(|row| {
        if row.is_jit() {
            times.at(row.start_ts_ns, row.duration_ns);
            let names = [&*row.method(), row.tier.unwrap_or_default(), times.owners.name(row.callsite_id)];
            times.groups.of(names).add(row.duration_ns);
        }
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
    Ok(times.subject(["jit-table", "Compiled methods"], &heads, kinds))
}
