//! What a person can type: the commands, and what becomes of each.
//!
//! Results go to standard output, everything about them (progress, summaries, errors) to standard error. Both are
//! written with checks: a reader that has seen enough and closes the pipe is no failure.

mod args;
mod collect;
mod convert;
mod failure;
mod generate;
mod inspect;
mod interrupt;
mod json;
mod live;
mod number;
mod progress;
mod ps;
mod schema;
mod survived;
mod text;
mod time;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};

/// How a command ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was read.
    Whole,
    /// Everything that is left was read; something was lost.
    Losses,
}

impl Outcome {
    /// The outcome of reading something that has losses or not.
    pub fn with_losses(losses: bool) -> Outcome {
        if losses { Outcome::Losses } else { Outcome::Whole }
    }
}

const FAILED: u8 = 1;
const LOSSES: u8 = 2;

/// Runs one command line to its end.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return print_usage(&error),
    };
    let result = match cli.command {
        Command::Convert(args) => convert::run(args),
        Command::Collect(args) => collect::run(*args),
        Command::Ps(args) => ps::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Survived(args) => survived::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Generate(args) => generate::run(&args),
    };
    match result {
        Ok(Outcome::Whole) => ExitCode::SUCCESS,
        Ok(Outcome::Losses) => ExitCode::from(LOSSES),
        Err(error) if failure::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            failure::print(&error);
            ExitCode::from(FAILED)
        }
    }
}

/// Help and version are results; anything else that clap has to say is a usage error, for which clap's own code is 2.
fn print_usage(error: &clap::Error) -> ExitCode {
    match error.print() {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::from(FAILED),
        _ if error.use_stderr() => ExitCode::from(FAILED),
        _ => ExitCode::SUCCESS,
    }
}

/// Writes a result to standard output, whole.
fn print_result(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    write_all(&mut out, text).map_err(|e| failure::Output::new("standard output", e).into())
}

/// Writes something about a result to standard error.
fn print_note(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stderr().lock();
    write_all(&mut out, text).map_err(|e| failure::Output::new("standard error", e).into())
}

fn write_all(out: &mut impl Write, text: &str) -> std::io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}
