//! Programs of .NET and recorders of them, for tests of `collect`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::dataset::Table;
use super::dual::{Runtime, runtimes};
use super::patience::{comes, wait_for};

/// The runtimes to record; prints a line without one.
pub fn each_runtime(test: &str) -> &'static [Runtime] {
    let found = runtimes();
    if found.is_empty() {
        assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{test}: no .NET runtime to record");
        println!("{test}: skipped, there is no .NET runtime (samples/record.sh --print-runtime installs one)");
    }
    found
}

/// The program, with pipes for what it prints.
pub fn tracequet(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracequet"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// All that was printed.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// How long a recorder may take. Its own limits add up to less, except the half hour that a runtime has for a heap
/// dump.
const LONGEST: Duration = Duration::from_secs(120);

/// Waits [`LONGEST`] for the end of a recorder. The error names the threads of one that does not end, and has what it
/// printed.
fn end(mut child: Child) -> Result<Output, String> {
    let has_ended = comes(LONGEST, || child.try_wait().expect("a child").is_some());
    let threads = if has_ended { Vec::new() } else { threads(child.id()) };
    child.kill().ok();
    let output = child.wait_with_output().expect("output");
    if has_ended { Ok(output) } else { Err(format!("does not end, with the threads {threads:?}\n{}", text(&output))) }
}

/// Waits for an end, but not for ever.
pub fn ended(child: Child, what: &str) -> Output {
    end(child).unwrap_or_else(|why| panic!("{what}: {why}"))
}

/// The names of the threads of a process: a recorder names each by its task.
fn threads(process: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.map(|name| name.trim_end().to_owned()).collect()
}

/// Runs a command line to its end.
pub fn run(arguments: &[&str]) -> Output {
    ended(tracequet(arguments).spawn().expect("it starts"), &arguments.join(" "))
}

/// Runs a command line that records a runtime. An error when the runtime does not answer: the recorder does not end, or
/// reports that.
pub fn run_or_stuck(arguments: &[&str]) -> Result<Output, String> {
    let output = end(tracequet(arguments).spawn().expect("it starts"))?;
    let said = text(&output);
    let is_stuck = said.contains("no answer to ") || said.contains("the runtime did not end its session");
    if is_stuck { Err(said) } else { Ok(output) }
}

/// Waits until a recorder has kept this many bytes: events come, however slow the machine is.
pub fn wait_for_bytes(kept: &Path, bytes: u64, what: &str) {
    wait_for(&format!("{bytes} recorded bytes of {what}"), || {
        std::fs::metadata(kept).is_ok_and(|data| data.len() >= bytes)
    });
}

/// The first attempt that succeeds. Later ones are not made; fails with all errors when none succeeds.
pub fn first_success<T>(attempts: impl Iterator<Item = Result<T, String>>) -> T {
    let mut errors = Vec::new();
    for attempt in attempts {
        match attempt {
            Ok(done) => return done,
            Err(error) => errors.push(error),
        }
    }
    panic!("{errors:?}");
}

/// Tries a recording again with more time, as long as it says that it saw too little: how much a program does in a
/// second is up to the machine.
pub fn with_time<T>(seconds: &[u32], mut attempt: impl FnMut(&str) -> Result<T, String>) -> T {
    let attempts = seconds
        .iter()
        .map(|seconds| attempt(&seconds.to_string()).map_err(|too_little| format!("{seconds} s: {too_little}")));
    first_success(attempts)
}

/// A program of ours that runs; killed when it is dropped.
pub struct Program {
    pub child: Child,
}

impl Program {
    /// Starts the sample program and waits for its port.
    pub fn start(runtime: &Runtime, mode: &[&str]) -> Program {
        Program::start_as(command(runtime, mode), runtime)
    }

    /// As [`Program::start`], with more in the environment.
    pub fn start_as(mut command: Command, runtime: &Runtime) -> Program {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Program::start_piped(command, runtime)
    }

    /// As [`Program::start_as`], with the input and output that the command has.
    pub fn start_piped(mut command: Command, runtime: &Runtime) -> Program {
        let child = command.spawn();
        let program = Program { child: child.expect("the program starts") };
        let port = || tracequet::trace::source::diagnostics::port::find(program.id())?.connect();
        wait_for(&format!("the port of {}", runtime.name), || port().is_ok());
        program
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The sample program: `settings` of the runtime keep its collections small and many.
pub fn command(runtime: &Runtime, mode: &[&str]) -> Command {
    let prefix = if runtime.is_old() { "COMPlus_" } else { "DOTNET_" };
    let mut command = Command::new(&runtime.dotnet);
    command.arg(&runtime.program).args(mode);
    command.env(format!("{prefix}GCgen0size"), "180000").env(format!("{prefix}DbgEnableMiniDump"), "0");
    command.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1").env_remove("DOTNET_DiagnosticPorts");
    command
}

/// Rows of a table of a dataset of one recording.
pub fn rows(dataset: &Path, table: &str) -> usize {
    Table::open(&dataset.join(format!("{table}.parquet"))).rows()
}

/// What `--json` printed.
pub fn summary(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(output)))
}

/// A folder of a test.
pub struct Folder(pub tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }
}
