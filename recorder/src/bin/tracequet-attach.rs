//! Attaches the recorder to a running .NET process: `tracequet-attach PID [NAME=VALUE...]`.
//!
//! A client of the runtime's diagnostics port, as much of it as one command needs. The port is a socket (a named pipe on
//! Windows) that every runtime since .NET Core 3.0 opens; what goes through it stands in the runtime's documentation,
//! "Diagnostic IPC Protocol". The recorder is the library beside this program.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: tracequet-attach PID [NAME=VALUE...]
Attaches the recorder to the .NET process PID. NAME=VALUE are its settings, as TRACEQUET_OUTPUT=/path/app-%p.corprof.";

const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";
const HEADER: usize = 20;
/// Command set and command AttachProfiler.
const ATTACH_PROFILER: [u8; 2] = [3, 1];
/// CORPROF_E_RUNTIME_UNINITIALIZED: the port opens before the runtime is ready.
const RUNTIME_UNINITIALIZED: u32 = 0x8013_135B;
/// CORPROF_E_PROFILER_ALREADY_ACTIVE.
const ALREADY_ACTIVE: u32 = 0x8013_136A;
/// How long the runtime may take, ms.
const PATIENCE: u32 = 10_000;
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

fn attach(process: u32, settings: &[String]) -> Result<()> {
    let library = std::env::current_exe()?.with_file_name(LIBRARY);
    if !library.is_file() {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no {}", library.display())));
    }
    let message = message(&library, &absolute(settings)?)?;
    let begin = Instant::now();
    loop {
        match ask(process, &message)? {
            (0, 0) => return Ok(()),
            (_, RUNTIME_UNINITIALIZED) if begin.elapsed() < Duration::from_millis(PATIENCE.into()) => {
                std::thread::sleep(Duration::from_millis(20));
            }
            (_, ALREADY_ACTIVE) => return Err(Error::other("the process has a profiler already (0x8013136a)")),
            (_, hresult) => return Err(Error::other(format!("the runtime refuses the profiler: {hresult:#010x}"))),
        }
    }
}

/// Sends a message; the outcome (0 is success) and the HRESULT of the answer.
fn ask(process: u32, message: &[u8]) -> Result<(u8, u32)> {
    let mut port = connect(process)?;
    port.write_all(message)?;
    let mut header = [0; HEADER];
    port.read_exact(&mut header)?;
    let [.., size_low, size_high, _, outcome, _, _] = header;
    let size = usize::from(u16::from_le_bytes([size_low, size_high]));
    let mut answer = vec![0; size.saturating_sub(HEADER)];
    port.read_exact(&mut answer)?;
    Ok((outcome, answer.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))))
}

/// The process may have another current folder: a path for the recording is made absolute here.
fn absolute(settings: &[String]) -> Result<String> {
    let output = |path: &str| std::path::absolute(path).map(|p| format!("TRACEQUET_OUTPUT={}", p.display()));
    let lines: Result<Vec<_>> = settings
        .iter()
        .map(|setting| match setting.split_once('=') {
            Some(("TRACEQUET_OUTPUT", path)) => output(path),
            Some(_) => Ok(setting.clone()),
            None => Err(Error::new(ErrorKind::InvalidInput, format!("{setting} is not NAME=VALUE"))),
        })
        .collect();
    let mut lines = lines?;
    if !lines.iter().any(|line| line.starts_with("TRACEQUET_OUTPUT=")) {
        lines.push(output("tracequet-%p.corprof")?);
    }
    Ok(lines.join("\n"))
}

/// Header (magic, u16 size of all, command set, command, u16 zero) and payload (u32 timeout, class id, path as a u32
/// count of UTF-16 units and these with a zero, u32 count of bytes and the client's data).
fn message(library: &Path, data: &str) -> Result<Vec<u8>> {
    let path: Vec<u16> = library.to_string_lossy().encode_utf16().chain([0]).collect();
    let mut payload = PATIENCE.to_le_bytes().to_vec();
    payload.extend(CLASS);
    payload.extend((path.len() as u32).to_le_bytes());
    payload.extend(path.iter().flat_map(|unit| unit.to_le_bytes()));
    payload.extend((data.len() as u32).to_le_bytes());
    payload.extend(data.as_bytes());
    let size = u16::try_from(HEADER + payload.len());
    let size = size.map_err(|_| Error::new(ErrorKind::InvalidInput, "settings of more than 64 KiB"))?;
    let mut message = MAGIC.to_vec();
    message.extend(size.to_le_bytes());
    message.extend(ATTACH_PROFILER);
    message.extend([0, 0]);
    message.extend(payload);
    Ok(message)
}

#[cfg(unix)]
fn connect(process: u32) -> Result<std::os::unix::net::UnixStream> {
    // The runtime uses TMPDIR, too.
    let folder =
        std::env::var_os("TMPDIR").filter(|f| !f.is_empty()).map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    let prefix = format!("dotnet-diagnostic-{process}-");
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let entries = std::fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
    let mut sockets: Vec<PathBuf> =
        entries.filter(|path| name(path).starts_with(&prefix) && name(path).ends_with("-socket")).collect();
    // An old process may have had the same id: the newest last.
    sockets.sort();
    let socket = sockets.last().ok_or_else(|| {
        let message =
            format!("{} has no diagnostics port of process {process}: is it a .NET process?", folder.display());
        Error::new(ErrorKind::NotFound, message)
    })?;
    std::os::unix::net::UnixStream::connect(socket)
}

#[cfg(windows)]
fn connect(process: u32) -> Result<std::fs::File> {
    std::fs::File::options()
        .read(true)
        .write(true)
        .open(PathBuf::from(format!(r"\\.\pipe\dotnet-diagnostic-{process}")))
}
