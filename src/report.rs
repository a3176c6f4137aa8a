//! `tracequet report`: a recording, or a dataset of several, as one HTML page.

use std::io::Write;

use anyhow::Context;
use tracequet::Keep;
use tracequet::analyze::diff::{By, Options, compared};
use tracequet::report::changes::{self, changes};
use tracequet::report::{MAX_HEAP, TABLES, page_of};

use super::compared::{open, print_notes};
use super::output::{check_output, create_output};
use super::prelude::*;

/// Memory of the graph of a heap, as tracequet diff has it.
const MAX_GRAPH: u64 = 4 << 30;

/// The description of the command.
pub const ABOUT: &str = "Writes a recording as one HTML page: findings, figures, a timeline of pauses, heap, allocations and samples, flame graphs, \
            collections, a map of where memory lies and survives, requests, exceptions, locks, and what was lost. Of a dataset \
            of several recordings it writes their figures over time and by label, and the findings of all.\n\n\
            The page needs no server and no network, and opens from disk. It is read without script, too: a script only makes \
            its tables sortable, its timeline zoom, and draws flame graphs and the map. A page has at most 5 MB: what is \
            merged or left out stands in it. docs/REPORT.md explains how to read it.\n\n\
            IN is a dataset made by convert, or a recording. With NEW the page shows what changed from IN to NEW, as tracequet diff \
            does: methods, types on the heap, findings, figures. Both may then be directories or patterns of recordings, too.";

/// Examples of the command line.
pub const EXAMPLES: &str = "\
Examples:
  tracequet report app.nettrace -o report.html
  tracequet report before.nettrace after.nettrace -o changes.html
  tracequet report app.nettrace --symbols bin -o report.html
  tracequet report lake -o trends.html
  tracequet report lake --trace app-7be25f48 -o report.html --overwrite";

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// The page shows what changed from IN to this
    #[arg(value_name = "NEW", conflicts_with_all = ["trace", "symbols"])]
    pub new: Option<PathBuf>,
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
    #[command(flatten)]
    pub asked: AskedArgs,
}

/// The page of what changed, and whether something is missing on a side.
fn difference_of(base: &Path, new: &Path, own: &OwnArgs) -> anyhow::Result<(String, bool)> {
    let open = |path| open(path, &changes::tables(), own);
    let (before, now) = (open(base)?, open(new)?);
    let mut compared = compared((&before.dataset, &[]), (&now.dataset, &[]), By::Own, Options::default(), MAX_GRAPH)?;
    print_notes(&compared)?;
    compared.name_steps([&|key| before.argument(base, key), &|key| now.argument(new, key)]);
    let file =
        |path: &Path| path.file_name().map_or_else(|| "dataset".into(), |name| name.to_string_lossy().into_owned());
    let name = format!("{} and {}", file(base), file(new));
    Ok((changes(&name, [&before.dataset, &now.dataset], &compared)?, compared.has_losses))
}

/// Writes the page of a dataset, or of a recording that is converted for it.
pub fn run(args: &ReportArgs) -> anyhow::Result<Outcome> {
    check_output(args.output.as_deref(), args.overwrite)?;
    let (html, losses) = match &args.new {
        Some(new) => difference_of(&args.input, new, &args.asked.own)?,
        None => {
            let keep = Keep::walk(MAX_HEAP, None).with_ranges(tracequet::LIFETIMES);
            let request = args.asked.request().symbols(args.symbols.iter().cloned());
            // An archive may have several recordings: which one is kept is not known.
            let keep = args.asked.trace().is_none().then_some(keep);
            let request = request.lifetimes(tracequet::LIFETIMES).keep(keep);
            let opened = opened::open(&args.input, &TABLES, &args.asked, request)?;
            (page_of(&opened.dataset, &args.input, args.asked.trace(), "", opened.kept)?, opened.losses)
        }
    };
    let outcome = Outcome::with_losses(losses);
    let Some(path) = &args.output else { return outcome.printed(print_result(&html)) };
    create_output(path, args.overwrite)?
        .write_all(html.as_bytes())
        .with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(outcome)
}
