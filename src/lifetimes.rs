//! `tracequet lifetimes`: which methods and types allocate what survives, what is alive at a time, and what grows.

use tracequet::analyze::lifetime::{
    By, ChangeRow, FullCollection, Group, GroupRow, Growth, GrowthRow, Live, LiveRow, NAMES, Sums, TABLE, TABLES,
    changes, growth, lifetimes_by, live_at,
};
use tracequet::analyze::present::Amount;
use tracequet::analyze::present::Unit::Bytes;
use tracequet::analyze::present::times;
use tracequet::analyze::present::units::moment;
use tracequet::dataset::error::Evidence;
use tracequet::dataset::read::Recording;

use super::prelude::*;

/// The description of the command.
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
    #[arg(long, value_name = "TIME", value_parser = times::parse)]
    pub at: Option<i64>,
    /// Show what grows from this time of the recording to --at, or to its end
    #[arg(long, value_name = "TIME", value_parser = times::parse)]
    pub since: Option<i64>,
    /// Show what differs from this recording or dataset
    #[arg(long, value_name = "IN", conflicts_with_all = ["at", "since"])]
    pub base: Option<PathBuf>,
    /// Show all rows, not only the largest
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub format: FormatArgs,
    #[command(flatten)]
    pub asked: AskedArgs,
}

choices! {
    pub enum ByArg for By {
        /// The nearest method of your own that leads to the allocation, and a type
        Own,
        /// The method that allocates, and a type
        Site,
        /// A type
        Type,
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
    let (answer, losses) = asked(&args.input, args, |recording, takes| {
        let by = args.by.into();
        Ok(match (args.at, args.since, &args.base) {
            (_, _, Some(base)) => {
                // The key of one recording is not that of the other.
                let (base, _) = asked(
                    base,
                    &LifetimesArgs {
                        asked: AskedArgs { own: args.asked.own.clone(), ..AskedArgs::default() },
                        ..args.clone()
                    },
                    |recording, takes| Ok(lifetimes_by(recording, by, takes)?),
                )?;
                change_answer(&changes(base, lifetimes_by(recording, by, takes)?), args)
            }
            (at, Some(since), None) => {
                let at = at.unwrap_or(i64::MAX);
                if at <= since {
                    let why = "--since is a time before --at";
                    return Err(Error::Usage(why.into()).into());
                }
                growth_answer(&growth(recording, by, [since, at], takes)?, args)
            }
            (Some(at), None, None) => live_answer(&live_at(recording, by, at, takes)?, at, args),
            (None, None, None) => answer(&lifetimes_by(recording, by, takes)?, args),
        })
    })?;
    args.format.print(&answer, Outcome::with_losses(losses))
}

/// Asks a function about the recording, which gets it and which types are taken. Gives the answer, and whether the
/// recording has losses.
fn asked<T>(
    input: &Path,
    args: &LifetimesArgs,
    answer: impl FnOnce(&Recording<'_>, &dyn Fn(&str) -> bool) -> anyhow::Result<T>,
) -> anyhow::Result<(T, bool)> {
    let tables: Vec<&str> = TABLES.into_iter().chain(NAMES).chain([TABLE]).collect();
    let opened = opened::open(input, &tables, &args.asked, args.asked.request())?;
    let recording = opened.dataset.recording(args.asked.trace())?;
    let pattern = args.type_name.as_deref().unwrap_or_default().to_lowercase();
    let takes = |name: &str| pattern.is_empty() || name.to_lowercase().contains(&pattern);
    Ok((answer(&recording, &takes)?, opened.losses))
}

/// A few words, and a table.
struct Lifetimes {
    head: Vec<Sentence>,
    table: Table,
}

impl Answer for Lifetimes {
    fn document(&self) -> Document {
        let mut out = Document::default();
        self.head.iter().cloned().for_each(|line| out.line(line));
        out.gap();
        first_rows(&mut out, self.table.clone(), "smaller one", "smaller ones");
        out
    }

    fn rows(&self) -> Table {
        self.table.clone()
    }
}

/// A table of rows, each with the names that it is of in its last columns.
fn table<R>(
    columns: &[Column],
    rows: &[R],
    args: &LifetimesArgs,
    group: impl Fn(&R) -> &Group,
    cells: impl Fn(&R) -> Vec<Cell>,
) -> Table {
    let method = match args.by {
        ByArg::Type => None,
        ByArg::Own => Some(words("own method", "").key("own_method")),
        ByArg::Site => Some(words("method", "").key("method")),
    };
    let own = Some(Column::raw("own_method")).filter(|_| args.by == ByArg::Site);
    let assembly = Some(Column::raw("assembly")).filter(|_| args.by != ByArg::Type);
    let names = std::iter::once(words("type", "").key("type_name")).chain(method).chain(own).chain(assembly);
    let all: Vec<Column> = columns.iter().copied().chain(names).collect();
    let mut table = Table::new("lifetimes", &all).first(if args.all { usize::MAX } else { SHOWN });
    for row in rows {
        let Group { method, own_method, type_name, assembly, is_unnamed, .. } = group(row);
        let none = if *is_unnamed { "(names were not recorded)" } else { "(no code of your own)" };
        let shown = |name: &str, none: &'static str| match name {
            "" => Cell::Missing.shown_as(Cell::words(none)),
            name => Cell::text(name),
        };
        let names = match args.by {
            ByArg::Type => vec![],
            ByArg::Own => vec![shown(own_method, none), Cell::text(assembly)],
            ByArg::Site => vec![shown(method, "(no call stack)"), Cell::text(own_method), Cell::text(assembly)],
        };
        table.row([cells(row), vec![Cell::text(type_name)], names].concat());
    }
    table
}

/// Bytes; for people none are a dash.
fn some(bytes: u64) -> Cell {
    if bytes == 0 { Cell::size(0).shown_as(Cell::Missing) } else { Cell::size(bytes) }
}

/// The keys of sums for programs: alone, of the base, and of the recording that is compared with it.
const SUMS: [[&str; 3]; 13] = [
    ["sample_count", "base.sample_count", "now.sample_count"],
    ["allocated_bytes", "base.allocated_bytes", "now.allocated_bytes"],
    ["tested_bytes", "base.tested_bytes", "now.tested_bytes"],
    ["survived_first_bytes", "base.survived_first_bytes", "now.survived_first_bytes"],
    ["promoted_bytes", "base.promoted_bytes", "now.promoted_bytes"],
    ["died_old_bytes", "base.died_old_bytes", "now.died_old_bytes"],
    ["dead_bytes", "base.dead_bytes", "now.dead_bytes"],
    ["alive_bytes", "base.alive_bytes", "now.alive_bytes"],
    ["unknown_bytes", "base.unknown_bytes", "now.unknown_bytes"],
    ["life_collections_median", "base.life_collections_median", "now.life_collections_median"],
    ["life_collections_p90", "base.life_collections_p90", "now.life_collections_p90"],
    ["life_ns_median", "base.life_ns_median", "now.life_ns_median"],
    ["life_ns_p90", "base.life_ns_p90", "now.life_ns_p90"],
];

/// The columns of sums of a side; people see those that have a head here, by their keys.
fn columns_of(side: usize, heads: &[(&str, &'static str)]) -> Vec<Column> {
    let column = |keys: &[&'static str; 3]| {
        let key = keys.get(side).copied();
        let head = heads.iter().find(|(key, _)| keys.first() == Some(key));
        Column { name: head.map(|(_, head)| *head), meaning: "", key, is_number: true }
    };
    SUMS.iter().map(column).collect()
}

/// The cells of these columns.
fn cells_of(sums: &Sums) -> Vec<Cell> {
    let lives = sums.percentiles();
    vec![
        Cell::count(sums.samples),
        Cell::size(sums.allocated),
        Cell::size(sums.tested),
        // For people the share of those that met a collection.
        Cell::size(sums.survived_first)
            .shown_as(Cell::share(Some(sums.survived_first as f64 / sums.tested as f64).filter(|_| sums.tested > 0))),
        some(sums.promoted),
        some(sums.died_old),
        some(sums.dead),
        some(sums.alive),
        some(sums.unknown),
        Cell::count(lives.map(|lives| lives.collections_median.into())),
        Cell::count(lives.map(|lives| lives.collections_p90.into())),
        Cell::duration(lives.map(|lives| lives.ns_median)),
        Cell::duration(lives.map(|lives| lives.ns_p90)),
    ]
}

fn answer(rows: &[GroupRow], args: &LifetimesArgs) -> Lifetimes {
    let head = "What became of allocated bytes: survived their first collection (of those that met one), promoted to gen 2, died in \
                gen 2, LOH or POH, alive at the end; and how many GCs and how long the dead ones lived";
    let heads = [
        ("allocated_bytes", "allocated"),
        ("survived_first_bytes", "survived"),
        ("promoted_bytes", "promoted"),
        ("died_old_bytes", "died gen2+"),
        ("alive_bytes", "alive"),
        ("unknown_bytes", "unknown"),
        ("life_collections_median", "gcs"),
        ("life_ns_median", "median"),
        ("life_ns_p90", "p90"),
    ];
    let table = table(&columns_of(0, &heads), rows, args, |row| &row.group, |row| cells_of(&row.sums));
    Lifetimes { head: vec![head.into()], table }
}

fn change_answer(rows: &[ChangeRow], args: &LifetimesArgs) -> Lifetimes {
    let head = "How the recording differs from --base: bytes allocated, the part that survived its first collection, bytes that died in \
                gen 2, LOH or POH, bytes alive at the end; first in --base, then in the recording";
    let of_base = [
        ("allocated_bytes", "allocated"),
        ("survived_first_bytes", "survived"),
        ("died_old_bytes", "died gen2+"),
        ("alive_bytes", "alive"),
    ];
    let of_now = of_base.map(|(key, head)| (key, if head == "allocated" { "now allocated" } else { head }));
    let columns = [columns_of(1, &of_base), columns_of(2, &of_now)].concat();
    let cells = |row: &ChangeRow| [cells_of(&row.base), cells_of(&row.now)].concat();
    Lifetimes { head: vec![head.into()], table: table(&columns, rows, args, |row| &row.group, cells) }
}

/// A sentence on the last collection of generation 2.
fn behind(full: Option<FullCollection>) -> String {
    match full {
        Some(gc) => {
            format!("the last collection of generation 2 was {}, which ended at {} s", gc.gc_id, moment(gc.end_ns))
        }
        None => "no collection of generation 2 had ended".into(),
    }
}

fn live_answer(live: &Live, at: i64, args: &LifetimesArgs) -> Lifetimes {
    let at = moment(at);
    let known = behind(live.last_full);
    let head = [
        format!("Bytes alive at {at} s: they had survived a collection, and none had found them dead ({known})."),
        "Unknown: no collection had collected them so far, or the recording does not say".into(),
    ];
    let columns = [
        Column::raw("sample_count"),
        numbers("alive", "").key("alive_bytes"),
        numbers("unknown", "").key("unknown_bytes"),
    ];
    let cells = |row: &LiveRow| vec![Cell::count(row.samples), some(row.alive), some(row.unknown)];
    let table = table(&columns, &live.rows, args, |row| &row.group, cells);
    Lifetimes { head: head.map(Sentence::from).into(), table }
}

fn growth_answer(growth: &Growth, args: &LifetimesArgs) -> Lifetimes {
    let [from, to] = growth.last_full.map(behind);
    let since = moment(args.since.unwrap_or_default());
    let until = args.at.map_or_else(|| "the end".to_owned(), |at| format!("{} s", moment(at)));
    let head = [
        format!("What grew from {since} s ({from})"),
        format!("to {until} ({to}): bytes alive at both times, new and gone between them"),
    ];
    let columns = [
        numbers("growth", "").key("growth_bytes"),
        numbers("before", "").key("before_bytes"),
        numbers("after", "").key("after_bytes"),
        numbers("new", "").key("new_bytes"),
        numbers("gone", "").key("gone_bytes"),
        numbers("lost", "").key("lost_bytes"),
    ];
    let cells = |row: &GrowthRow| {
        let growth = Cell::from(Amount::new(row.growth(), Bytes).change());
        let GrowthRow { before, after, new, gone, lost, .. } = *row;
        std::iter::once(growth).chain([before, after, new, gone, lost].map(some)).collect()
    };
    let table = table(&columns, &growth.rows, args, |row| &row.group, cells);
    Lifetimes { head: head.map(Sentence::from).into(), table }
}
