//! Waits and compiled methods: what takes time at call sites, by the method that it belongs to.

use tracequet_analyze::present::Column;
use tracequet_analyze::subjects::compiling::Compilation;
use tracequet_analyze::subjects::waits::{LockWait, OF_LOCKS, Wait, Waited};

use crate::prelude::*;
use crate::read::span;
use crate::selection::{Item, Panel, Thread};
use crate::subjects::{Groups, Largest, Subject};
use crate::timeline::Series;

/// A table of what took time, that which took most first. The heads are those of the two names that rows begin with, of number, sum and
/// longest, and of the names behind them.
fn table(
    groups: Groups<Waited>,
    [id, title]: [&'static str; 2],
    heads: &[Column],
    kinds: [&str; 2],
) -> (String, String, Vec<u32>) {
    let mut table = Table::new(id, heads);
    let Largest { rows: largest, of, lines } = groups.largest(|waited| waited.total_ns);
    for (names, waited) in &largest {
        let mut names = names.iter().map(|name| Cell::text(name));
        let mut row: Vec<Cell> = names.by_ref().take(2).collect();
        row.extend([Cell::count(waited.count), Cell::span(waited.total()), Cell::span(waited.longest_ns)]);
        row.extend(names);
        table.row(row);
    }
    (table.html(title), rows_note(largest.len(), of, kinds, "the most time"), lines)
}

/// Time by the method that it belongs to and by a kind.
struct Times<'p, 's> {
    panel: &'s mut Panel<'p>,
    owners: Owners<'p>,
    groups: Groups<Waited>,
    over_time: Series,
    rows: u64,
}

impl<'p, 's> Times<'p, 's> {
    /// `class` and `name` are those of the sums over time.
    fn new(
        panel: &'s mut Panel<'p>,
        owners: Owners<'p>,
        end_ns: i64,
        [class, name]: [&'static str; 2],
    ) -> Times<'p, 's> {
        Times { panel, owners, groups: Groups::new(), over_time: Series::new(end_ns, &[(class, name)]), rows: 0 }
    }

    /// Adds what took time to the group that was asked for last.
    fn at(&mut self, thread: Thread, callsite: u32, ts_ns: i64, duration_ns: Option<i64>) {
        self.rows += 1;
        self.over_time.add(0, ts_ns, duration_ns.map_or(0, span));
        let (group, amount) = (self.groups.last, duration_ns.map(span));
        self.panel.add(Item { thread, ts_ns, callsite, group, count: 1, amount, more: 0.0 });
    }

    fn wait(&mut self, thread: Thread, callsite: u32, kind: Option<&str>, ts_ns: i64, duration_ns: Option<i64>) {
        self.groups.of([self.owners.name(callsite), kind.unwrap_or_default()]).add(duration_ns);
        self.at(thread, callsite, ts_ns, duration_ns);
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
        let (table, note, lines) = table(self.groups, titles, heads, kinds);
        Subject { table, note, rows: self.rows, over_time: self.over_time, lines }
    }
}

/// Waits for locks by the method that waited.
pub(crate) fn locks(recording: &Recording<'_>, panel: &mut Panel<'_>, end_ns: i64) -> Result<Subject> {
    let owners = Owners::by(panel.profile, |function| !OF_LOCKS.iter().any(|part| function.name.starts_with(part)));
    let mut times = Times::new(panel, owners, end_ns, ["lk", "waited"]);
    recording.each_recorded::<LockWait<'_>>(|row| {
        let thread = (row.process_id, row.thread_id);
        times.wait(thread, row.callsite_id, row.kind, row.start_ts_ns, row.duration_ns);
    })?;
    let heads = ["The innermost method outside of the lock's own code; empty without a stack", "Of lock"];
    Ok(times.waits(["locks-table", "Waits for locks"], heads))
}

/// Other waits by own method and kind.
pub(crate) fn waits(recording: &Recording<'_>, panel: &mut Panel<'_>, end_ns: i64) -> Result<Subject> {
    let owners = Owners::of(panel.profile);
    let mut times = Times::new(panel, owners, end_ns, ["po", "waited"]);
    recording.each_recorded::<Wait<'_>>(|row| {
        let thread = (row.process_id, row.thread_id);
        times.wait(thread, row.callsite_id, row.source, row.start_ts_ns, row.duration_ns);
    })?;
    let heads = [
        "The user's own method that waited; empty without one on the stack",
        "MonitorWait, or Unknown for everything else, as the runtime says",
    ];
    Ok(times.waits(["waits-table", "Waits"], heads))
}

/// Compiled methods, with the own method that needed them.
pub(crate) fn compiled(recording: &Recording<'_>, panel: &mut Panel<'_>, end_ns: i64) -> Result<Subject> {
    let owners = Owners::of(panel.profile);
    let mut times = Times::new(panel, owners, end_ns, ["g2", "compiled"]);
    recording.each_recorded::<Compilation<'_>>(|row| {
        if row.is_jit() {
            let names = [&*row.method(), row.tier.unwrap_or_default(), times.owners.name(row.callsite_id)];
            times.groups.of(names).add(row.duration_ns);
            times.at((row.process_id, row.thread_id), row.callsite_id, row.start_ts_ns, row.duration_ns);
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
