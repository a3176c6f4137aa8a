//! `tracequet dataset`: the recordings of a dataset of several: list, remove, label, expire, compact, verify,
//! repair.

use std::collections::HashSet;
use std::time::Duration;

use clap::Subcommand;
use tracequet::analyze::present::units::count;
use tracequet::dataset::read::{Dataset, Found, TableFile, What};

use super::prelude::*;
use super::stored::{self, OpenDataset};

pub const EXAMPLES: &str = "\
Examples:
  tracequet dataset list lake
  tracequet dataset remove lake app-47551c824a692fa9
  tracequet dataset label lake --set baseline=2026-11 --where branch=main
  tracequet dataset expire lake --older-than 30d --keep-last 100 --dry-run
  tracequet dataset expire lake --older-than 14d --where branch=main --keep-tables metric,finding
  tracequet dataset compact lake
  tracequet dataset verify lake
  tracequet dataset repair lake
  tracequet dataset list s3://bucket/lake";

#[derive(Debug, Args)]
pub struct DatasetArgs {
    #[command(subcommand)]
    pub command: DatasetCommand,
}

#[derive(Debug, Subcommand)]
pub enum DatasetCommand {
    /// List the recordings, with their labels, and those that could not be read
    List(ListArgs),
    /// Remove recordings with all their files
    Remove(RemoveArgs),
    /// Change the labels of recordings
    Label(LabelArgs),
    /// Remove old recordings, or all but some of their tables
    Expire(ExpireArgs),
    /// Put the tables of many recordings together in few large files
    Compact(CompactArgs),
    /// Compare the files with the entries of the dataset, and read every table
    Verify(OfDataset),
    /// Write manifest.json and views.sql anew, by the entries of the recordings
    Repair(OfDataset),
}

#[derive(Debug, Args)]
pub struct OfDataset {
    /// Dataset
    #[arg(value_name = "DATASET")]
    pub dataset: PathBuf,
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Dataset
    #[arg(value_name = "DATASET")]
    pub dataset: PathBuf,
    #[command(flatten)]
    pub format: FormatArgs,
}

#[derive(Debug, Args)]
pub struct CompactArgs {
    /// Dataset of several recordings
    #[arg(value_name = "DATASET")]
    pub dataset: PathBuf,
    /// Keep the files that were there for so long under a hidden name, for readers that have begun: 0, 30m, 12h, 1d [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = grace)]
    pub grace: Option<Duration>,
}

#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Dataset of several recordings
    #[arg(value_name = "DATASET")]
    pub dataset: PathBuf,
    /// Recordings: their trace_id
    #[arg(value_name = "KEY", required = true)]
    pub keys: Vec<String>,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("chosen").required(true).multiple(true))]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
pub struct LabelArgs {
    /// Dataset of several recordings
    #[arg(value_name = "DATASET")]
    pub dataset: PathBuf,
    /// Recordings: their trace_id
    #[arg(value_name = "KEY", group = "chosen")]
    pub keys: Vec<String>,
    /// Recordings with this label (repeat for several)
    #[arg(long = "where", value_name = "NAME=VALUE", value_parser = super::values::label, group = "chosen")]
    pub labels: Vec<(String, String)>,
    /// All recordings, but for those that are still written
    #[arg(long, group = "chosen", conflicts_with_all = ["keys", "labels"])]
    pub all: bool,
    /// Give them this label, in place of one with the same name (repeat for several)
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::values::label, group = "change")]
    pub set: Vec<(String, String)>,
    /// Remove the label with this name (repeat for several)
    #[arg(long, value_name = "NAME", group = "change")]
    pub unset: Vec<String>,
    /// List the recordings that would be changed, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("which").required(true).multiple(true))]
pub struct ExpireArgs {
    /// Dataset of several recordings
    #[arg(value_name = "DATASET")]
    pub dataset: PathBuf,
    /// Remove recordings that began longer ago than this: 12h, 30d, 8w
    #[arg(long, value_name = "AGE", value_parser = super::values::age, group = "which")]
    pub older_than: Option<Duration>,
    /// Keep this many of the newest recordings, however old they are
    #[arg(long, value_name = "COUNT", group = "which")]
    pub keep_last: Option<usize>,
    /// Only recordings with this label (repeat for several)
    #[arg(long = "where", value_name = "NAME=VALUE", value_parser = super::values::label)]
    pub labels: Vec<(String, String)>,
    /// Keep these tables of the recordings; trace, trace_label and diagnostic stay with them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub keep_tables: Vec<String>,
    /// List what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Reads `0`, `30m`, `12h` or `1d`.
fn grace(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let minutes = text.strip_suffix('m').and_then(|number| number.parse::<u64>().ok()).and_then(|n| n.checked_mul(60));
    let found = minutes.map(Duration::from_secs).map_or_else(|| super::values::age(text), Ok);
    found.map_err(|_| "expected 0, minutes, hours or days: 30m, 12h, 1d".into())
}

/// Does what the subcommand says.
pub fn run(args: &DatasetArgs) -> anyhow::Result<Outcome> {
    match &args.command {
        DatasetCommand::List(args) => list(&stored::dataset_or_folder(&args.dataset)?.dataset, args),
        DatasetCommand::Verify(of) => verify(&stored::dataset_or_folder(&of.dataset)?),
        DatasetCommand::Remove(args) => {
            tracequet::remove(&args.dataset, &args.keys)?;
            Ok(Outcome::Whole)
        }
        DatasetCommand::Label(args) => label(args),
        DatasetCommand::Expire(args) => expire(args),
        DatasetCommand::Compact(args) => compact(args),
        DatasetCommand::Repair(of) => {
            let damaged = tracequet::repair(&of.dataset)?;
            for damaged in &damaged {
                print_note(&format!("tracequet: {}\n", clean(damaged)))?;
            }
            Ok(Outcome::with_losses(!damaged.is_empty()))
        }
    }
}

/// Exit code 2 when an entry is damaged.
fn list(dataset: &Dataset, args: &ListArgs) -> anyhow::Result<Outcome> {
    let is_damaged = stored::note_damaged(dataset, &args.dataset)?;
    args.format.print(&listed(dataset), Outcome::with_losses(is_damaged))
}

/// The recordings of a dataset, and those that could not be read.
fn listed(dataset: &Dataset) -> Table {
    let labels = |labels: &std::collections::BTreeMap<String, String>| {
        let all: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Cell::text(&all.join(" "))
    };
    let mut table = table!("recordings", dataset.recordings(), |r| {
        words("trace_id", "").key("trace_id") => Cell::text(&r.trace_id),
        words("status", "").key("status") => Cell::text(&r.status),
        words("start", "").key("start") => Cell::text(&r.start),
        numbers("events", "").key("event_count") => Cell::count(r.events),
        numbers("lost", "").key("dropped_event_count") => Cell::count(r.dropped_events),
        words("labels", "").key("labels") => labels(&r.labels),
        words("path", "").key("path") => Cell::text(&r.path.to_string_lossy()),
        Column::raw("error") => Cell::Missing,
    });
    for f in dataset.failed() {
        let path = Cell::text(&f.path.to_string_lossy());
        let [start, events, lost] = [Cell::Missing, Cell::Missing, Cell::Missing];
        let shown = Cell::sentence(&format!("{}: {}", f.path.display(), f.error));
        table.row([
            Cell::text(&f.trace_id),
            Cell::words("failed"),
            start,
            events,
            lost,
            labels(&f.labels),
            path.shown_as(shown),
            Cell::text(&f.error),
        ]);
    }
    table
}

fn label(args: &LabelArgs) -> anyhow::Result<Outcome> {
    let wanted = tracequet::Relabel {
        keys: args.keys.clone(),
        labels: args.labels.iter().cloned().collect(),
        set: super::values::labels(&args.set, "--set")?,
        unset: args.unset.iter().cloned().collect(),
        dry_run: args.dry_run,
    };
    let changed = tracequet::relabel(&args.dataset, &wanted)?;
    let mut out: String = changed.iter().map(|key| format!("{}\n", clean(key))).collect();
    let what = if args.dry_run { "would get other labels" } else { "have other labels now" };
    out.push_str(&format!("{} recordings {what}\n", count(changed.len() as u64)));
    Outcome::Whole.printed(print_result(&out))
}

fn expire(args: &ExpireArgs) -> anyhow::Result<Outcome> {
    let wanted = tracequet::Expire {
        older_than: args.older_than,
        keep_last: args.keep_last,
        labels: args.labels.iter().cloned().collect(),
        keep_tables: args.keep_tables.clone(),
        dry_run: args.dry_run,
    };
    let gone = tracequet::expire(&args.dataset, &wanted)?;
    let mut out = String::new();
    let table = table!("expired", &gone, |one| {
        words("trace_id", "") => Cell::text(&one.trace_id),
        words("start", "") => Cell::text(&one.start),
        numbers("bytes", "") => Cell::count(one.bytes),
    });
    if !gone.is_empty() {
        out += &table.text(usize::MAX);
    }
    let what = match (args.dry_run, args.keep_tables.is_empty()) {
        (false, true) => "removed",
        (false, false) => "reduced to the tables that stay",
        (true, true) => "would be removed",
        (true, false) => "would be reduced to the tables that stay",
    };
    let bytes = gone.iter().fold(0u64, |sum, one| sum.saturating_add(one.bytes));
    out.push_str(&format!("{} recordings {what}, {} bytes\n", count(gone.len() as u64), count(bytes)));
    Outcome::Whole.printed(print_result(&out))
}

/// Exit code 2 when a recording cannot be read.
fn compact(args: &CompactArgs) -> anyhow::Result<Outcome> {
    let done = tracequet::compact(&args.dataset, args.grace.unwrap_or(tracequet::GRACE))?;
    for left in &done.left_out {
        print_note(&format!("tracequet: {} stays as it is: {}\n", clean(&left.key), clean(&left.error.to_string())))?;
    }
    let text = format!(
        "{} recordings compacted: {} files with {} bytes became {} files with {} bytes\n",
        count(done.recordings),
        count(done.files.0),
        count(done.bytes.0),
        count(done.files.1),
        count(done.bytes.1)
    );
    Outcome::with_losses(!done.left_out.is_empty()).printed(print_result(&text))
}

/// Exit code 2 when something is wrong.
fn verify(opened: &OpenDataset) -> anyhow::Result<Outcome> {
    let OpenDataset { dataset, stored } = opened;
    let shown = |name: &str| match stored {
        Some(stored) => stored.shown(name),
        None => dataset.path().join(name),
    };
    let expected = dataset.files()?;
    let object = |(name, bytes): (&str, u64)| Found { name: name.to_owned(), what: What::File(bytes) };
    let found = match stored {
        Some(stored) => stored.objects().map(object).collect(),
        None => dataset.found()?,
    };
    let mut wrong = expected.wrong(&found);
    let is_wrong: HashSet<String> = wrong.iter().map(|(name, _)| name.clone()).collect();
    let (mut files, mut rows) = (0u64, 0u64);
    for (key, tables) in expected.by_recording() {
        if let Some(stored) = stored {
            stored.copy_recording(key)?;
        }
        for file in tables.iter().filter(|file| !is_wrong.contains(&file.name)) {
            files += 1;
            match read(dataset, file) {
                Ok(found) => {
                    rows += found;
                    if found != file.rows {
                        wrong.push((file.name.clone(), format!("has {found} rows, expected {}", file.rows)));
                    }
                }
                // Without the path, which may be that of a copy.
                Err(Error::Dataset { what, expected, .. }) => {
                    wrong.push((file.name.clone(), format!("{what}, expected {expected}")));
                }
                Err(Error::Io { source, .. }) => wrong.push((file.name.clone(), source.to_string())),
                Err(error) => return Err(error.into()),
            }
        }
        // On this machine is one recording at a time.
        if let Some(stored) = stored {
            stored.forget_recording(key);
        }
    }
    let mut text = String::new();
    for (name, what) in &wrong {
        text.push_str(&clean(&format!("{}: {what}", shown(name).display())));
        text.push('\n');
    }
    text.push_str(&format!("{} files with {} rows, {} wrong\n", count(files), count(rows), count(wrong.len() as u64)));
    Outcome::with_losses(!wrong.is_empty()).printed(print_result(&text))
}

/// Reads a table to its end, and gives the number of its rows.
fn read(dataset: &Dataset, file: &TableFile) -> Result<u64, Error> {
    let batches = dataset.table_in(file).scan().batches()?;
    batches.map(|batch| batch.map(|batch| batch.num_rows() as u64)).sum()
}
