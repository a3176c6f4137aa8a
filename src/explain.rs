//! `tracequet explain`: what is wrong in recordings, the most important first.

use tracequet::analyze::findings::{Explanation, Verdict, explained_tables};
use tracequet::analyze::present::Format;

use super::prelude::*;

pub const ABOUT: &str = "\
Says what is wrong in a recording, or in each recording of a dataset: the most important first, with its figure, your own method that \
has the largest part in it, and the next step. Then what could not be judged, and how to record it. docs/FINDINGS.md has the \
rules, their limits and where these come from. Each finding has a query for DuckDB that gives the rows behind it (--all, --format json). --process chooses among the findings of a \
dataset, too.";

pub const EXAMPLES: &str = "\
Examples:
  tracequet explain app.nettrace
  tracequet explain app.nettrace --own 'Shop*' --all
  tracequet explain machine.etl --process Shop.exe
  tracequet explain lake --format markdown --fail-on warning";

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    #[command(flatten)]
    pub format: FormatArgs,
    /// Show all rules, those that find nothing, too, and the queries
    #[arg(long)]
    pub all: bool,
    /// Exit with code 3 when there is a finding of this weight or more
    #[arg(long, value_enum, value_name = "VERDICT")]
    pub fail_on: Option<FailOn>,
    #[command(flatten)]
    pub asked: AskedArgs,
}

choices! {
    pub enum FailOn for Verdict {
        /// Findings worth a look, and warnings
        Info,
        /// Warnings
        Warning,
    }
}

/// Prints the findings. Exit code 3 when --fail-on asks for it, else 2 when the recording has losses.
pub fn run(args: &ExplainArgs) -> anyhow::Result<Outcome> {
    // All processes are judged, so that the findings about the recording are those of all of it.
    let asked = AskedArgs { own: args.asked.own.clone(), ..AskedArgs::default() };
    // Programs get the key of the recording, which is made of its hash.
    let is_for_people = matches!(args.format.format(), Format::Text | Format::Markdown);
    let request = asked.request().lifetimes(tracequet::LIFETIMES).unhashed(is_for_people);
    let opened = opened::open(&args.input, &explained_tables(), &asked, request)?;
    let input = |trace_id: &str| opened.argument(&args.input, trace_id);
    let mut answer = Explanation::of(&opened.dataset, args.asked.trace(), &args.asked.which.process, &input)?;
    answer.everything = args.all;
    let fails = args.fail_on.is_some_and(|least| answer.has(least.into()));
    let outcome = if fails { Outcome::RuleBroken } else { Outcome::with_losses(opened.losses) };
    args.format.print(&answer, outcome)
}
