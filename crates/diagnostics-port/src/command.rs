//! Commands about the process as a whole (command set 4), and the one that loads a profiler (command set 3).

use std::path::Path;
use std::time::Duration;

use crate::error::{Error, RUNTIME_UNINITIALIZED, Result};
use crate::frame::{Fields, Message};
use crate::target::Target;
use crate::wait::PATIENCE;

const PROFILER: u8 = 3;
const ATTACH_PROFILER: u8 = 1;
const PROCESS: u8 = 4;
const PROCESS_INFO: u8 = 0;
const RESUME_RUNTIME: u8 = 1;
const PROCESS_INFO_2: u8 = 4;
const PROCESS_INFO_3: u8 = 8;

/// A runtime's description of its process. Fields that an older runtime does not send are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessInfo {
    /// Process id, in the pid namespace of the process.
    pub process: u64,
    /// The runtime's own id, as in [`crate::Cookie`].
    pub cookie: [u8; 16],
    /// Command line.
    pub command_line: String,
    /// `Linux`, `macOS`, `Windows`.
    pub os: String,
    /// `x64`, `arm64`, `x86`, `arm32`.
    pub architecture: String,
    /// Name of the assembly with `Main` (.NET 6).
    pub entry_assembly: String,
    /// Version of the runtime, as `10.0.0` (.NET 6).
    pub runtime_version: String,
    /// Runtime identifier, as `linux-x64` (.NET 8).
    pub runtime_identifier: String,
}

/// Asks a runtime who it is, with the newest of the three commands that it knows. .NET Core 3.1 knows no such command.
/// An answer of another process than the one whose port it is is an error.
pub fn process_info(target: &Target) -> Result<ProcessInfo> {
    let mut last = None;
    for command in [PROCESS_INFO_3, PROCESS_INFO_2, PROCESS_INFO] {
        let message = Message::new(PROCESS, command).finish()?;
        match target.connect()?.ask("ProcessInfo", message, PATIENCE) {
            Ok((_, payload)) => return parse(command, Fields(&payload)).and_then(|info| is_asked(target, info)),
            Err(error) if error.is_unknown_command() => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or(Error::Refused { command: "ProcessInfo", hresult: 0 }))
}

/// The answer, when it is that of the process whose port was asked.
fn is_asked(target: &Target, info: ProcessInfo) -> Result<ProcessInfo> {
    let Target::Port(port) = target else { return Ok(info) };
    match port.process() {
        Some(process) if process != info.process => Err(Error::Stranger {
            port: port.path().to_owned(),
            process: u32::try_from(process).unwrap_or(u32::MAX),
            listener: format!("what says to be process {}", info.process),
        }),
        _ => Ok(info),
    }
}

fn parse(command: u8, mut fields: Fields<'_>) -> Result<ProcessInfo> {
    if command == PROCESS_INFO_3 {
        fields.u32("the version of the answer")?;
    }
    let mut info = ProcessInfo { process: fields.u64("the process id")?, ..ProcessInfo::default() };
    info.cookie.copy_from_slice(fields.bytes(16, "the cookie")?);
    info.command_line = fields.string("the command line")?;
    info.os = fields.string("the operating system")?;
    info.architecture = fields.string("the architecture")?;
    if command != PROCESS_INFO {
        info.entry_assembly = fields.string("the entry assembly")?;
        info.runtime_version = fields.string("the version of the runtime")?;
    }
    if command == PROCESS_INFO_3 {
        info.runtime_identifier = fields.string("the runtime identifier")?;
    }
    Ok(info)
}

/// Resumes a runtime that waits at its start.
pub fn resume(target: &Target) -> Result<()> {
    let message = Message::new(PROCESS, RESUME_RUNTIME).finish()?;
    target.connect()?.ask("ResumeRuntime", message, PATIENCE).map(drop)
}

/// Loads the profiler at `library` into a runtime that runs, as the class `class` (a CLSID as it lies in memory) and
/// with `data`, which its `InitializeForAttach` gets. The profiler has `patience` to begin, and so has the runtime if
/// it has just been started: its port opens before it can take a profiler.
pub fn attach_profiler(
    target: &Target,
    class: [u8; 16],
    library: &Path,
    data: &[u8],
    patience: Duration,
) -> Result<()> {
    let milliseconds = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
    let message = Message::new(PROFILER, ATTACH_PROFILER).u32(milliseconds).raw(&class);
    let message = message.string(&library.to_string_lossy());
    let message = message.u32(u32::try_from(data.len()).unwrap_or(u32::MAX)).raw(data).finish()?;
    let begin = std::time::Instant::now();
    loop {
        // The runtime answers when the profiler has begun.
        match target.connect()?.ask("AttachProfiler", message.clone(), patience + PATIENCE) {
            Err(Error::Refused { hresult: RUNTIME_UNINITIALIZED, .. }) if begin.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(20));
            }
            answer => return answer.map(drop),
        }
    }
}
