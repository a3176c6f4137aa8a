//! `tracequet dataset`: the recordings of a dataset of several: list, remove, verify.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use tracequet::dataset::Dataset;
use tracequet::pipeline;
use tracequet::sink::NO_RECORDING;

use super::output::{Outcome, print_result};
use super::stored::{self, OpenDataset};
use super::text::{Columns, clean, count};

pub const EXAMPLES: &str = "\
Examples:
  tracequet dataset list lake
  tracequet dataset remove lake app-7be25f48
  tracequet dataset verify lake
  tracequet dataset list s3://bucket/lake";

#[derive(Debug, Args)]
pub struct DatasetArgs {
    #[command(subcommand)]
    pub command: DatasetCommand,
}

#[derive(Debug, Subcommand)]
pub enum DatasetCommand {
    /// List the recordings, with their labels, and those that could not be read
    List(OfDataset),
    /// Remove recordings with all their files
    Remove(RemoveArgs),
    /// Read every table of every recording, and find files that belong to none
    Verify(OfDataset),
}

#[derive(Debug, Args)]
pub struct OfDataset {
    /// Dataset
    #[arg(value_name = "DATASET")]
    pub dataset: PathBuf,
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

/// Does what the subcommand says.
pub fn run(args: &DatasetArgs) -> anyhow::Result<Outcome> {
    match &args.command {
        DatasetCommand::List(of) => list(&stored::dataset_or_folder(&of.dataset)?.dataset),
        DatasetCommand::Verify(of) => verify(&stored::dataset_or_folder(&of.dataset)?),
        DatasetCommand::Remove(args) => {
            pipeline::remove(&args.dataset, &args.keys)?;
            Ok(Outcome::Whole)
        }
    }
}

fn list(dataset: &Dataset) -> anyhow::Result<Outcome> {
    let mut out = String::new();
    let mut columns = Columns::new(&["trace_id", "status", "start", ">events", ">lost", "labels", "path"]);
    let labels = |labels: &std::collections::BTreeMap<String, String>| {
        let all: Vec<String> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        clean(&all.join(" "))
    };
    for r in dataset.recordings() {
        columns.row([
            clean(&r.trace_id),
            clean(&r.status),
            clean(&r.start),
            count(r.events),
            count(r.dropped_events),
            labels(&r.labels),
            clean(&r.path.to_string_lossy()),
        ]);
    }
    for f in dataset.failed() {
        let none = String::new;
        let path = format!("{}: {}", f.path.display(), f.error);
        columns.row([clean(&f.trace_id), "failed".into(), none(), none(), none(), labels(&f.labels), clean(&path)]);
    }
    columns.print(&mut out);
    Outcome::Whole.printed(print_result(&out))
}

/// Exit code 2 when something is wrong.
fn verify(opened: &OpenDataset) -> anyhow::Result<Outcome> {
    let OpenDataset { dataset, stored } = opened;
    let (mut wrong, mut files, mut rows) = (Vec::new(), 0u64, 0u64);
    for recording in dataset.each_recording() {
        if let Some(stored) = stored {
            stored.copy_recording(&recording.info().trace_id)?;
        }
        for table in recording.tables() {
            let table = match recording.table(&table.name) {
                Ok(table) => table,
                Err(error) => {
                    wrong.push(error.to_string());
                    continue;
                }
            };
            files += 1;
            match table.scan().batches().and_then(|batches| batches.map(|b| Ok(b?.num_rows())).sum()) {
                Ok(found) => {
                    let found: usize = found;
                    rows += found as u64;
                }
                Err(error) => wrong.push(error.to_string()),
            }
        }
        // On this machine is one recording at a time.
        if let Some(stored) = stored {
            stored.forget_recording(&recording.info().trace_id);
        }
    }
    match stored {
        Some(stored) => wrong.extend(stored.strays()?),
        None => strays(dataset, &mut wrong)?,
    }
    let mut text = String::new();
    for line in &wrong {
        text.push_str(&format!("{}\n", clean(line)));
    }
    text.push_str(&format!("{} files with {} rows, {} wrong\n", count(files), count(rows), count(wrong.len() as u64)));
    Outcome::with_losses(!wrong.is_empty()).printed(print_result(&text))
}

/// Files of recordings that have no entry.
fn strays(dataset: &Dataset, wrong: &mut Vec<String>) -> anyhow::Result<()> {
    let keys = dataset.recordings().iter().map(|r| &r.trace_id).chain(dataset.failed().iter().map(|f| &f.trace_id));
    let keys = keys.map(String::as_str).chain([NO_RECORDING]);
    let keys: std::collections::HashSet<String> = keys.map(|key| format!("trace={key}")).collect();
    let mut open = vec![dataset.path().to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            // Readers of tables follow links.
            let may_hold_files = kind.is_dir() || kind.is_symlink();
            if name.starts_with("trace=") && may_hold_files && !keys.contains(&name) {
                wrong.push(format!("{}: belongs to no recording", entry.path().display()));
            } else if kind.is_dir() && !name.starts_with('.') {
                // No link: it may lead in circles.
                open.push(entry.path());
            }
        }
    }
    Ok(())
}
