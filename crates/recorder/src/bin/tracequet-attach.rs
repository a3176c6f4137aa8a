//! Attaches the recorder to a running .NET process: `tracequet-attach PID [NAME=VALUE...]`.
//!
//! The runtime is asked through its diagnostics port. The recorder is the library beside this program.

use std::process::ExitCode;
use std::time::Duration;

use diagnostics_port::{Target, attach_profiler, find, process_info};

const USAGE: &str = "usage: tracequet-attach PID [NAME=VALUE...]
Attaches the recorder to the .NET process PID. NAME=VALUE are its settings, as TRACEQUET_OUTPUT=/path/app-%p.corprof.";

/// The longest time until the recorder begins.
const PATIENCE: Duration = Duration::from_secs(10);
/// {6c1a7a1c-53a1-4b4b-9f2a-7c6f8f0f7c01}, as it lies in memory. Any id would do: the library answers to all.
const CLASS: [u8; 16] =
    [0x1c, 0x7a, 0x1a, 0x6c, 0xa1, 0x53, 0x4b, 0x4b, 0x9f, 0x2a, 0x7c, 0x6f, 0x8f, 0x0f, 0x7c, 0x01];
#[cfg(windows)]
const LIBRARY: &str = "tracequet_recorder.dll";
#[cfg(target_os = "macos")]
const LIBRARY: &str = "libtracequet_recorder.dylib";
#[cfg(not(any(windows, target_os = "macos")))]
const LIBRARY: &str = "libtracequet_recorder.so";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((process, settings)) = words.split_first().and_then(|(pid, rest)| Some((pid.parse().ok()?, rest))) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match attach(process, settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tracequet-attach: {error}");
            ExitCode::FAILURE
        }
    }
}

fn attach(process: u32, settings: &[String]) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let library = program.with_file_name(LIBRARY);
    if !library.is_file() {
        return Err(format!("there is no {}", library.display()));
    }
    let data = absolute(settings)?;
    let port = find(process).map_err(|error| error.to_string())?;
    let target = Target::Port(port);
    // The process that answers loads the library, so it has to be the one that was named. .NET Core 3.1 does not report
    // its id.
    match process_info(&target) {
        Err(error) if !error.is_unknown_command() => return Err(error.to_string()),
        _ => {}
    }
    let attached = attach_profiler(&target, CLASS, &library, data.as_bytes(), PATIENCE);
    attached.map_err(|error| error.to_string())
}

/// The process may have another current folder: a path for the recording is made absolute here.
fn absolute(settings: &[String]) -> Result<String, String> {
    let output = |path: &str| match std::path::absolute(path) {
        Ok(path) => Ok(format!("TRACEQUET_OUTPUT={}", path.display())),
        Err(error) => Err(format!("{path}: {error}")),
    };
    let line = |setting: &String| match setting.split_once('=') {
        Some(("TRACEQUET_OUTPUT", path)) => output(path),
        Some(_) => Ok(setting.clone()),
        None => Err(format!("{setting} is not NAME=VALUE")),
    };
    let mut lines = settings.iter().map(line).collect::<Result<Vec<_>, _>>()?;
    if !lines.iter().any(|line| line.starts_with("TRACEQUET_OUTPUT=")) {
        lines.push(output("tracequet-%p.corprof")?);
    }
    Ok(lines.join("\n"))
}
