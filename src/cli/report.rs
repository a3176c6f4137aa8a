//! `tracequet report`: a recording as one HTML page.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use crate::report::{TABLES, page};
use anyhow::Context;
use clap::Args;

use super::opened;
use super::output::{Outcome, print_result};
use super::own::OwnArgs;

/// What the command does.
pub const ABOUT: &str = "Writes a recording as one HTML page: figures, a timeline of pauses, heap, allocations and samples, flame graphs, \
            collections, a map of where memory lies and survives, exceptions, locks, and what was lost.\n\n\
            The page needs no server and no network, and opens from disk. It is read without script, too: a script only makes \
            its tables sortable, its timeline zoom, and draws flame graphs and the map. It has at most 5 MB: what is \
            merged or left out stands in it. docs/REPORT.md explains how to read it.\n\n\
            IN is a dataset made by convert, or a recording.";

/// Examples of the command line.
pub const EXAMPLES: &str = "\
Examples:
  tracequet report app.nettrace -o report.html
  tracequet report app.nettrace --symbols bin -o report.html
  tracequet report lake --trace app-7be25f48 -o report.html --overwrite";

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub overwrite: bool,
    /// Directory with symbols for names of native code, if IN is a recording; repeatable
    ///
    /// A dataset already has the names of its conversion.
    #[arg(long, value_name = "DIR")]
    pub symbols: Vec<PathBuf>,
    /// Recording in a dataset of several: its trace_id
    #[arg(long, value_name = "KEY")]
    pub trace: Option<String>,
    #[command(flatten)]
    pub own: OwnArgs,
}

/// Writes the page of a dataset, or of a recording that is converted for it.
pub fn run(args: &ReportArgs) -> anyhow::Result<Outcome> {
    let opened = opened::open_with_symbols(&args.input, &TABLES, &args.symbols, args.own.patterns())?;
    let recording = opened.dataset.recording(args.trace.as_deref())?;
    let html = page(&recording)?;
    let outcome = Outcome::with_losses(opened.losses);
    let Some(path) = &args.output else { return outcome.printed(print_result(&html)) };
    let mut options = File::options();
    options.write(true).create(args.overwrite).create_new(!args.overwrite).truncate(args.overwrite);
    let mut file = options.open(path).with_context(|| format!("{} cannot be made", path.display()))?;
    file.write_all(html.as_bytes()).with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(outcome)
}
