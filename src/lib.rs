//! The command line: the commands and their exit codes.

#![allow(rustdoc::invalid_html_tags, reason = "the comments of arguments are the help, where <key> stands for a key")]

mod answer;
mod args;
mod asked;
mod check;
mod check_history;
mod check_report;
mod choices;
mod cohorts;
mod collect;
mod compared;
mod conversion_bar;
mod convert;
mod dataset;
mod diff;
mod diff_report;
mod egress;
mod explain;
mod export;
mod failure;
mod freed;
mod generate;
mod guide;
mod heap;
mod heap_diff;
mod inspect;
mod interrupt;
mod json;
mod lifetimes;
mod live;
mod lock;
mod opened;
mod output;
mod own;
mod prelude;
mod progress;
mod ps;
mod report;
mod schema;
mod stats;
mod stored;
mod survived;
mod terminal;
mod text;
mod truncated;
mod values;

use std::ffi::OsString;

use clap::Parser;

use args::{Cli, Command};
use output::Outcome;

const WHOLE: u8 = 0;
const FAILED: u8 = 1;
const LOSSES: u8 = 2;
const RULE_BROKEN: u8 = 3;

/// Runs one command line to its end, and gives the exit code.
pub fn code(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    freed::keep();
    truncated::handle();
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return print_usage(&error),
    };
    let result = match cli.command {
        Command::Convert(args) => convert::run(*args),
        Command::Collect(args) => collect::run(*args),
        Command::Watch(args) => live::again(*args),
        Command::Ps(args) => ps::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Survived(args) => survived::run(&args),
        Command::Heap(args) => heap::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Stats(args) => stats::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Dataset(args) => dataset::run(&args),
        Command::Lifetimes(args) => lifetimes::run(&args),
        Command::Cohorts(args) => cohorts::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Egress(args) => egress::run(&args),
        Command::Guide => guide::run(),
        Command::Generate(args) => generate::run(&args),
    };
    match result {
        Ok(Outcome::Whole) => WHOLE,
        Ok(Outcome::Losses) => LOSSES,
        Ok(Outcome::Nothing) => FAILED,
        Ok(Outcome::RuleBroken) => RULE_BROKEN,
        Err(error) if failure::is_closed_pipe(&error) => WHOLE,
        Err(error) => {
            failure::print(&error);
            FAILED
        }
    }
}

/// Help and version are results; anything else that clap has to say is a usage error, for which clap's own code is 2.
fn print_usage(error: &clap::Error) -> u8 {
    match error.print() {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => FAILED,
        _ if error.use_stderr() => FAILED,
        _ => WHOLE,
    }
}
