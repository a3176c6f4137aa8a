//! `tracequet lifetimes`: which methods and types allocate what survives.

use std::path::PathBuf;

use crate::analyze::lifetime::{GroupRow, NAMES, TABLES, by_site, by_type};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::opened;
use super::output::{Outcome, print_result};
use super::text::{Columns, clean, count, duration, size};

/// What the command does.
pub const ABOUT: &str = "Shows what becomes of sampled objects, by the method that allocates and by type: how many of the bytes \
            survive their first collection, are promoted to generation 2, die in generation 2 or among large or pinned objects, \
            and are alive at the end.\n\n\
            IN is a dataset made by convert, or a recording, with allocations, their stacks, and the ranges that survived \
            (collect --for lifetimes).";

/// Examples of the command line.
pub const EXAMPLES: &str = "\
Examples:
  tracequet lifetimes app.nettrace
  tracequet lifetimes app --by type --all
  tracequet lifetimes app --type MyApp.Order
  tracequet lifetimes app --json | jq '.[] | select(.died_old_bytes > 1000000)'
  tracequet export app --what gen2-deaths --format folded | flamegraph.pl > gen2-deaths.svg";

/// Rows that are shown without --all.
const SHOWN: usize = 25;

#[derive(Debug, Args)]
pub struct LifetimesArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// Only types whose name contains this, in whatever case
    #[arg(long = "type", value_name = "PATTERN")]
    pub type_name: Option<String>,
    /// What a row is
    #[arg(long, value_enum, default_value_t = ByArg::Site)]
    pub by: ByArg,
    /// Show all rows, not only the largest
    #[arg(long)]
    pub all: bool,
    /// Recording in a dataset of several: its trace_id
    #[arg(long, value_name = "KEY")]
    pub trace: Option<String>,
    /// Print a JSON array with all rows
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByArg {
    /// A method that allocates, and a type
    Site,
    /// A type
    Type,
}

/// Answers from a dataset, or from a recording that is converted for it.
pub fn run(args: &LifetimesArgs) -> anyhow::Result<Outcome> {
    let tables: Vec<&str> = TABLES.into_iter().chain(NAMES).collect();
    let opened = opened::open(&args.input, &tables)?;
    let recording = opened.dataset.recording(args.trace.as_deref())?;
    let pattern = args.type_name.as_deref().unwrap_or_default().to_lowercase();
    let takes = |name: &str| pattern.is_empty() || name.to_lowercase().contains(&pattern);
    let rows = match args.by {
        ByArg::Site => by_site(&recording, takes)?,
        ByArg::Type => by_type(&recording, takes)?,
    };
    let text = if args.json {
        serde_json::to_string_pretty(&rows.iter().map(|row| row_json(row, args.by)).collect::<Vec<_>>())? + "\n"
    } else {
        text(&rows, args)
    };
    Outcome::with_losses(opened.losses).printed(print_result(&text))
}

fn row_json(row: &GroupRow, by: ByArg) -> serde_json::Value {
    let (sums, lives) = (&row.sums, row.sums.percentiles());
    let mut json = json!({
        "type_name": row.type_name,
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
    });
    if let (ByArg::Site, Some(json)) = (by, json.as_object_mut()) {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        json.insert("method".into(), json!(text(&row.method)));
        json.insert("assembly".into(), json!(text(&row.assembly)));
    }
    json
}

fn text(rows: &[GroupRow], args: &LifetimesArgs) -> String {
    let mut out = String::from(
        "What became of allocated bytes: survived their first collection (of those that met one), promoted to generation 2,\n\
         died in generation 2 or among large or pinned objects, alive at the end; and how long the dead ones lived\n\n",
    );
    let mut columns = Columns::new(&[
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
        "method",
    ]);
    let share = |part: u64, whole: u64| {
        if whole == 0 { "-".into() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
    };
    let some = |bytes: u64| if bytes == 0 { "-".into() } else { size(bytes) };
    let shown = if args.all { rows.len() } else { SHOWN };
    for GroupRow { method, type_name, sums, .. } in rows.iter().take(shown) {
        let lives = sums.percentiles();
        let dash = || "-".to_owned();
        let method = match (args.by, method.is_empty()) {
            (ByArg::Type, _) => String::new(),
            (ByArg::Site, true) => "(no call stack)".into(),
            (ByArg::Site, false) => clean(method),
        };
        columns.row([
            size(sums.allocated),
            share(sums.survived_first, sums.tested),
            some(sums.promoted),
            some(sums.died_old),
            some(sums.alive),
            some(sums.unknown),
            lives.map_or_else(dash, |lives| lives.collections_median.to_string()),
            lives.map_or_else(dash, |lives| duration(lives.ns_median)),
            lives.map_or_else(dash, |lives| duration(lives.ns_p90)),
            clean(type_name),
            method,
        ]);
    }
    columns.print(&mut out);
    if rows.len() > shown {
        out.push_str(&format!("  and {} smaller ones (--all)\n", count((rows.len() - shown) as u64)));
    }
    out
}
