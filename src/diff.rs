//! `tracequet diff`: what changed between recordings.

use tracequet::analyze::diff::{By, Options, Per, compared};
use tracequet::analyze::present::Format;

use super::check::{Labels, labels};
use super::compared::{open, print_notes};
use super::diff_report::Report;
use super::prelude::*;
use super::terminal::ColorArg;

pub const ABOUT: &str = "\
Shows what changed between two recordings, or two sets of recordings: findings, metrics (first those that users wait for), CPU time, \
allocations, exceptions, waits for locks and other waits by your own methods, and types on the heap with what holds those that are \
more. Amounts are divided by \
requests where all recordings have them, else by seconds. What a side did not record is reported, and never counts as zero. \
docs/DIFF.md describes the output.

BASE and NEW are recordings, datasets made by convert, directories of recordings, or quoted patterns such as 'before/*.nettrace'. \
Of several recordings medians are compared, by the test of Mann and Whitney where there are four or more on each side. With fewer \
nothing says which changes chance made: they are marked '?', and small ones are left out.";

pub const EXAMPLES: &str = "\
Examples:
  tracequet diff before.nettrace after.nettrace
  tracequet diff 'before/*.nettrace' 'after/*.nettrace' --format markdown
  tracequet diff lake --baseline branch=main --new branch=feature
  tracequet diff before.nettrace after.nettrace --by type --all
  tracequet diff before after --json | jq '.sections[] | {what, first: .rows[0]}'";

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Recordings to compare with; with --baseline and --new, the dataset of both
    #[arg(value_name = "BASE")]
    pub base: PathBuf,
    /// Recordings that are compared
    #[arg(value_name = "NEW", required_unless_present_all = ["baseline", "select_new"])]
    pub new: Option<PathBuf>,
    /// Recordings of BASE, by their labels: branch=main, or scenario=load,branch!=feature
    #[arg(long, value_name = "LABELS", value_parser = labels)]
    pub baseline: Option<Labels>,
    /// Recordings of NEW (or of BASE), by their labels
    #[arg(long = "new", id = "select_new", value_name = "LABELS", value_parser = labels)]
    pub select_new: Option<Labels>,
    /// What rows are distinguished by
    #[arg(long, value_enum, default_value_t = ByArg::Own)]
    pub by: ByArg,
    /// What amounts are divided by [default: request where all recordings have 20 or more, else second]
    #[arg(long, value_enum)]
    pub per: Option<PerArg>,
    /// Leave out changes of at most this part of the base
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = values::share)]
    pub noise: f64,
    /// Show all rows, those within noise, too
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub format: FormatArgs,
    /// Colour what is better or worse
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorArg::Auto)]
    pub color: ColorArg,
    /// Memory limit for the graph of a heap, as of tracequet heap; a larger heap is left out
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = values::size)]
    pub memory: u64,
    #[command(flatten)]
    pub own: OwnArgs,
}

choices! {
    pub enum ByArg for By {
        /// The nearest method on the stack that is your own
        Own,
        /// That method, and the innermost method of the stack
        Method,
        /// That method, and the type of allocations and exceptions
        Type,
    }
}

choices! {
    pub enum PerArg for Per {
        /// Requests that came in
        Request,
        /// Seconds of the recording
        Second,
        /// Nothing: recordings as they are
        Recording,
    }
}

/// Prints what changed. Exit code 2 when recordings have losses or cannot be compared.
pub fn run(args: &DiffArgs) -> anyhow::Result<Outcome> {
    let base = open(&args.base, &[], &args.own)?;
    let new = args.new.as_deref().map(|path| open(path, &[], &args.own)).transpose()?;
    let by = args.by.into();
    let options = Options { noise: args.noise, per: args.per.map(Per::from) };
    let tests = |labels: &Option<Labels>| labels.as_ref().map(Labels::tests).unwrap_or_default().to_vec();
    let (of_base, of_new) = (tests(&args.baseline), tests(&args.select_new));
    let new = new.as_ref().unwrap_or(&base);
    let mut compared = compared((&base.dataset, &of_base), (&new.dataset, &of_new), by, options, args.memory)?;
    let new_input = args.new.as_deref().unwrap_or(&args.base);
    compared.name_steps([&|key| base.argument(&args.base, key), &|key| new.argument(new_input, key)]);
    // People read the notes in the answer.
    if matches!(args.format.format(), Format::Json | Format::Csv) {
        print_notes(&compared)?;
    }
    let outcome = Outcome::with_losses(compared.has_losses);
    let report = Report { compared, noise: args.noise, by, all: args.all };
    args.format.print_colored(&report, args.color, outcome)
}
