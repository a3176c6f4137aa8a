//! `tracequet lifetimes`: which methods and types allocate what survives, what is alive at a time, and what grows.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tracequet::Error;
use tracequet::analyze::lifetime::{
    By, ChangeRow, FullCollection, Group, GroupRow, Growth, GrowthRow, Live, LiveRow, NAMES, Sums, TABLES, changes,
    growth, lifetimes_by, live_at,
};
use tracequet::dataset::error::Evidence;
use tracequet::dataset::read::Recording;

use super::output::{Outcome, print_result};
use super::own::OwnArgs;
use super::text::{Columns, clean, count, duration, moment, size};
use super::{opened, time};

/// What the command does.
pub const ABOUT: &str = "Shows what becomes of sampled objects, by the method of your own that allocates and by type: how many of the \
            bytes survive their first collection, are promoted to generation 2, die in generation 2 or among large or pinned \
            objects, and are alive at the end. With --at what is alive at a time, with --since what grows, with --base how \
            another recording differs.\n\n\
            IN is a dataset made by convert, or a recording, with allocations, their stacks, and the ranges that survived \
            (collect --for lifetimes).";

/// Examples of the command line.
pub const EXAMPLES: &str = "\
Examples:
  tracequet lifetimes app.nettrace
  tracequet lifetimes app.nettrace --own 'Shop*'
  tracequet lifetimes app --by type --all
  tracequet lifetimes app --type MyApp.Order --at 30s
  tracequet lifetimes app --since 30s --json | jq '.[] | select(.growth_bytes > 1000000)'
  tracequet lifetimes after.nettrace --base before.nettrace
  tracequet export app --what gen2-deaths --format folded | flamegraph.pl > gen2-deaths.svg";

/// Rows that are shown without --all.
const SHOWN: usize = 25;

#[derive(Clone, Debug, Args)]
pub struct LifetimesArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// Only types whose name contains this, in whatever case
    #[arg(long = "type", value_name = "PATTERN")]
    pub type_name: Option<String>,
    /// What a row is
    #[arg(long, value_enum, default_value_t = ByArg::Own)]
    pub by: ByArg,
    /// Show what is alive at this time of the recording: 12.5, 1m30s
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    pub at: Option<i64>,
    /// Show what grows from this time of the recording to --at, or to its end
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    pub since: Option<i64>,
    /// Show what differs from this recording or dataset
    #[arg(long, value_name = "IN", conflicts_with_all = ["at", "since"])]
    pub base: Option<PathBuf>,
    /// Show all rows, not only the largest
    #[arg(long)]
    pub all: bool,
    /// Recording in a dataset of several: its trace_id
    #[arg(long, value_name = "KEY")]
    pub trace: Option<String>,
    /// Print a JSON array with all rows
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub own: OwnArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByArg {
    /// The nearest method of your own that leads to the allocation, and a type
    Own,
    /// The method that allocates, and a type
    Site,
    /// A type
    Type,
}

impl From<ByArg> for By {
    fn from(by: ByArg) -> By {
        match by {
            ByArg::Own => By::Own,
            ByArg::Site => By::Site,
            ByArg::Type => By::Type,
        }
    }
}

/// Answers from a dataset, or from a recording that is converted for it.
pub fn run(args: &LifetimesArgs) -> anyhow::Result<Outcome> {
    shown(args).map_err(|error| match error.downcast::<Error>() {
        // Ranges alone would not do.
        Ok(Error::NotRecorded { what: Evidence::SurvivingRanges, message }) => {
            Error::NotRecorded { what: Evidence::AllocatedObjects, message }.into()
        }
        Ok(other) => other.into(),
        Err(other) => other,
    })
}

fn shown(args: &LifetimesArgs) -> anyhow::Result<Outcome> {
    let (text, losses) = asked(&args.input, args, |recording, takes| {
        let by = args.by.into();
        Ok(match (args.at, args.since, &args.base) {
            (_, _, Some(base)) => {
                // The key of one recording is not that of the other.
                let (base, _) = asked(base, &LifetimesArgs { trace: None, ..args.clone() }, |recording, takes| {
                    Ok(lifetimes_by(recording, by, takes)?)
                })?;
                let rows = changes(base, lifetimes_by(recording, by, takes)?);
                printed(args, &rows, change_json, |rows| change_text(rows, args))?
            }
            (at, Some(since), None) => {
                let at = at.unwrap_or(i64::MAX);
                if at <= since {
                    let why = "--since is a time before --at";
                    return Err(Error::Usage(why.into()).into());
                }
                let growth = growth(recording, by, [since, at], takes)?;
                printed(args, &growth.rows, growth_json, |_| growth_text(&growth, args))?
            }
            (Some(at), None, None) => {
                let live = live_at(recording, by, at, takes)?;
                printed(args, &live.rows, live_json, |_| live_text(&live, at, args))?
            }
            (None, None, None) => {
                let rows = lifetimes_by(recording, by, takes)?;
                printed(args, &rows, row_json, |rows| text(rows, args))?
            }
        })
    })?;
    Outcome::with_losses(losses).printed(print_result(&text))
}

/// What is found in the recording that is asked about, by a function that gets it and which types are taken; and whether it has losses.
fn asked<T>(
    input: &Path,
    args: &LifetimesArgs,
    answer: impl FnOnce(&Recording<'_>, &dyn Fn(&str) -> bool) -> anyhow::Result<T>,
) -> anyhow::Result<(T, bool)> {
    let tables: Vec<&str> = TABLES.into_iter().chain(NAMES).collect();
    let opened = opened::open_with_symbols(input, &tables, &[], args.own.patterns())?;
    let recording = opened.dataset.recording(args.trace.as_deref())?;
    let pattern = args.type_name.as_deref().unwrap_or_default().to_lowercase();
    let takes = |name: &str| pattern.is_empty() || name.to_lowercase().contains(&pattern);
    Ok((answer(&recording, &takes)?, opened.losses))
}

/// Rows as JSON, or what `text` makes of them.
fn printed<R>(
    args: &LifetimesArgs,
    rows: &[R],
    row_json: impl Fn(&R, ByArg) -> Value,
    text: impl FnOnce(&[R]) -> String,
) -> anyhow::Result<String> {
    if !args.json {
        return Ok(text(rows));
    }
    Ok(serde_json::to_string_pretty(&rows.iter().map(|row| row_json(row, args.by)).collect::<Vec<_>>())? + "\n")
}

/// Figures with the names that they are of.
fn named(group: &Group, by: ByArg, figures: Value) -> Value {
    let mut json = figures;
    if let Some(json) = json.as_object_mut() {
        let text = |text: &str| json!((!text.is_empty()).then_some(text));
        json.insert("type_name".into(), json!(group.type_name));
        if by == ByArg::Site {
            json.insert("method".into(), text(&group.method));
        }
        if by != ByArg::Type {
            json.insert("own_method".into(), text(&group.own_method));
            json.insert("assembly".into(), text(&group.assembly));
        }
    }
    json
}

fn sums_json(sums: &Sums) -> Value {
    let lives = sums.percentiles();
    json!({
        "sample_count": sums.samples,
        "allocated_bytes": sums.allocated,
        "tested_bytes": sums.tested,
        "survived_first_bytes": sums.survived_first,
        "promoted_bytes": sums.promoted,
        "died_old_bytes": sums.died_old,
        "dead_bytes": sums.dead,
        "alive_bytes": sums.alive,
        "unknown_bytes": sums.unknown,
        "life_collections_median": lives.map(|lives| lives.collections_median),
        "life_collections_p90": lives.map(|lives| lives.collections_p90),
        "life_ns_median": lives.map(|lives| lives.ns_median),
        "life_ns_p90": lives.map(|lives| lives.ns_p90),
    })
}

fn row_json(row: &GroupRow, by: ByArg) -> Value {
    named(&row.group, by, sums_json(&row.sums))
}

fn change_json(row: &ChangeRow, by: ByArg) -> Value {
    named(&row.group, by, json!({"base": sums_json(&row.base), "now": sums_json(&row.now)}))
}

fn live_json(row: &LiveRow, by: ByArg) -> Value {
    let figures = json!({"sample_count": row.samples, "alive_bytes": row.alive, "unknown_bytes": row.unknown});
    named(&row.group, by, figures)
}

fn growth_json(row: &GrowthRow, by: ByArg) -> Value {
    let figures = json!({
        "growth_bytes": row.growth(),
        "before_bytes": row.before,
        "after_bytes": row.after,
        "new_bytes": row.new,
        "gone_bytes": row.gone,
        "lost_bytes": row.lost,
    });
    named(&row.group, by, figures)
}

/// The last columns: type and method.
fn names(group: &Group, by: ByArg) -> [String; 2] {
    let Group { method, own_method, type_name, .. } = group;
    let method = match by {
        ByArg::Type => String::new(),
        ByArg::Own if own_method.is_empty() => "(no code of your own)".into(),
        ByArg::Own => clean(own_method),
        ByArg::Site if method.is_empty() => "(no call stack)".into(),
        ByArg::Site => clean(method),
    };
    [clean(type_name), method]
}

fn share(part: u64, whole: u64) -> String {
    if whole == 0 { "-".into() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

fn some(bytes: u64) -> String {
    if bytes == 0 { "-".into() } else { size(bytes) }
}

/// A difference with its sign.
fn signed(bytes: i64) -> String {
    match bytes {
        0 => "-".into(),
        1.. => format!("+{}", size(bytes.unsigned_abs())),
        _ => format!("-{}", size(bytes.unsigned_abs())),
    }
}

/// A table of the first rows behind a few words.
fn table<R, const N: usize>(
    head: String,
    columns: [&str; N],
    rows: &[R],
    args: &LifetimesArgs,
    cells: impl Fn(&R) -> [String; N],
) -> String {
    let mut out = head + "\n\n";
    let mut table = Columns::new(&columns);
    let shown = if args.all { rows.len() } else { SHOWN };
    rows.iter().take(shown).for_each(|row| table.row(cells(row)));
    table.print(&mut out);
    if rows.len() > shown {
        out.push_str(&format!("  and {} smaller ones (--all)\n", count((rows.len() - shown) as u64)));
    }
    out
}

/// The name of the last column.
fn method_column(by: ByArg) -> &'static str {
    match by {
        ByArg::Own => "own method",
        ByArg::Site => "method",
        ByArg::Type => "",
    }
}

fn text(rows: &[GroupRow], args: &LifetimesArgs) -> String {
    let head = "What became of allocated bytes: survived their first collection (of those that met one), promoted to generation 2,\n\
                died in generation 2 or among large or pinned objects, alive at the end; and how long the dead ones lived";
    let columns = [
        ">allocated",
        ">survived",
        ">promoted",
        ">died old",
        ">alive",
        ">unknown",
        ">gcs",
        ">median",
        ">p90",
        "type",
        method_column(args.by),
    ];
    table(head.into(), columns, rows, args, |GroupRow { group, sums, .. }| {
        let lives = sums.percentiles();
        let dash = || "-".to_owned();
        let [type_name, method] = names(group, args.by);
        [
            size(sums.allocated),
            share(sums.survived_first, sums.tested),
            some(sums.promoted),
            some(sums.died_old),
            some(sums.alive),
            some(sums.unknown),
            lives.map_or_else(dash, |lives| lives.collections_median.to_string()),
            lives.map_or_else(dash, |lives| duration(lives.ns_median)),
            lives.map_or_else(dash, |lives| duration(lives.ns_p90)),
            type_name,
            method,
        ]
    })
}

/// How fresh what is known is.
fn behind(full: Option<FullCollection>) -> String {
    match full {
        Some(gc) => {
            format!("the last collection of generation 2 was {}, which ended at {} s", gc.gc_id, moment(gc.end_ns))
        }
        None => "no collection of generation 2 had ended".into(),
    }
}

fn live_text(live: &Live, at: i64, args: &LifetimesArgs) -> String {
    let head = format!(
        "Bytes alive at {} s: they had survived a collection, and none had found them dead ({}).\n\
         Unknown: no collection had collected them so far, or the recording does not say",
        moment(at),
        behind(live.last_full)
    );
    let columns = [">alive", ">unknown", "type", method_column(args.by)];
    table(head, columns, &live.rows, args, |row| {
        let [type_name, method] = names(&row.group, args.by);
        [some(row.alive), some(row.unknown), type_name, method]
    })
}

fn growth_text(growth: &Growth, args: &LifetimesArgs) -> String {
    let [from, to] = growth.last_full.map(behind);
    let since = moment(args.since.unwrap_or_default());
    let until = args.at.map_or_else(|| "the end".to_owned(), |at| format!("{} s", moment(at)));
    let head = format!(
        "What grew from {since} s ({from})\n\
         to {until} ({to}): bytes alive at both times, new and gone between them"
    );
    let columns = [">growth", ">before", ">after", ">new", ">gone", ">lost", "type", method_column(args.by)];
    table(head, columns, &growth.rows, args, |row| {
        let [type_name, method] = names(&row.group, args.by);
        let GrowthRow { before, after, new, gone, lost, .. } = *row;
        [signed(row.growth()), some(before), some(after), some(new), some(gone), some(lost), type_name, method]
    })
}

fn change_text(rows: &[ChangeRow], args: &LifetimesArgs) -> String {
    let head = "How the recording differs from --base: bytes allocated, the part that survived its first collection, bytes that died in\n\
                generation 2 or among large or pinned objects, bytes alive at the end; first in --base, then in the recording";
    let columns = [
        ">allocated",
        ">now",
        ">survived",
        ">now",
        ">died old",
        ">now",
        ">alive",
        ">now",
        "type",
        method_column(args.by),
    ];
    table(head.into(), columns, rows, args, |ChangeRow { group, base, now, .. }| {
        let [type_name, method] = names(group, args.by);
        [
            some(base.allocated),
            some(now.allocated),
            share(base.survived_first, base.tested),
            share(now.survived_first, now.tested),
            some(base.died_old),
            some(now.died_old),
            some(base.alive),
            some(now.alive),
            type_name,
            method,
        ]
    })
}
