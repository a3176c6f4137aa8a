//! The program as a person starts it, and what it gave.

use std::process::{Command, Output, Stdio};

/// The program with its arguments, in the folder of the project and without standard input.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracequet"));
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    // tests/program/terminal.rs looks at tables that have less room.
    command.env("COLUMNS", "1000");
    command
}

/// What a command line gave: exit code, standard output, standard error.
pub struct Run {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Run { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Runs the program to its end.
pub fn run(arguments: &[&str]) -> Run {
    finished(&mut command(arguments)).into()
}

/// Waits for what a command gives. Wine now and then fails to start one of many programs, with an "Internal error": it
/// gets another try.
pub fn finished(command: &mut Command) -> Output {
    const INTERNAL_ERROR: i32 = 1359;
    let output = match command.output() {
        Err(error) if cfg!(windows) && error.raw_os_error() == Some(INTERNAL_ERROR) => command.output(),
        output => output,
    };
    output.expect("the program starts")
}
