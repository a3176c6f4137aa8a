//! Prints answers: the options of all commands that answer, and the forms.

use clap::Args;
use tracequet::analyze::present::units::counted;
use tracequet::analyze::present::{Answer, Document, Format, Table};

use super::choices::choices;
use super::output::{Outcome, print_result};
use super::terminal::{self, ColorArg};

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct FormatArgs {
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub format: FormatArg,
    /// Short for --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

choices! {
    #[derive(Default)]
    pub enum FormatArg for Format {
        /// For reading
        #[default]
        Text,
        /// For programs: everything, with values as they are
        Json,
        /// For documents, pull requests and job summaries
        Markdown,
        /// For programs: rows, with values as they are
        Csv,
    }
}

impl FormatArgs {
    /// The form that is asked for.
    pub fn format(self) -> Format {
        if self.json { Format::Json } else { self.format.into() }
    }

    /// Prints an answer to standard output, and gives how the command ended.
    pub fn print(self, answer: &impl Answer, outcome: Outcome) -> anyhow::Result<Outcome> {
        self.print_colored(answer, ColorArg::Never, outcome)
    }

    /// Prints an answer in colours, where they are wanted.
    pub fn print_colored(self, answer: &impl Answer, color: ColorArg, outcome: Outcome) -> anyhow::Result<Outcome> {
        outcome.printed(print_result(&answer.written(self.format(), terminal::standard_output(color))))
    }
}

/// Adds a table, and a line on the rows of it that are not shown: what one and what many of them are called.
pub fn first_rows(out: &mut Document, table: Table, one: &str, many: &str) {
    let rest = table.rest();
    out.table(table);
    if rest > 0 {
        out.note(format!("and {} (--all)", counted(rest, one, many)));
    }
}
