//! Errors in the communication with a runtime, each with advice.

use std::io;
use std::path::{Path, PathBuf};

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a runtime could not be reached, or did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no process with this id.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// The process has no .NET runtime in it.
    #[error("process {0} has no .NET runtime")]
    NotDotnet(u32),
    /// The process has a .NET runtime, but there is no port of it where ports are.
    #[error("{}", no_port(*.process, .folder, *.turned_off))]
    NoPort {
        /// Process id.
        process: u32,
        /// Where its port should be.
        folder: PathBuf,
        /// Whether the environment of the process turns the port off.
        turned_off: bool,
    },
    /// The operating system does not let us in.
    #[error("{what} {}", denied(.owner.as_deref()))]
    Denied {
        /// The port, or what belongs to the process.
        what: String,
        /// The user that it belongs to.
        owner: Option<String>,
    },
    /// A socket exists, but no process listens: it was left behind by a process that was killed.
    #[error(
        "no process listens at {0}: its process was killed, or has not opened its port yet; remove the file \
         if the process is gone"
    )]
    Stale(String),
    /// Somebody else listens where the port of a process should be.
    #[error("{port} is not the port of process {process}: {listener} listens there; nothing was sent to it")]
    Stranger {
        /// The port.
        port: PathBuf,
        /// The process whose port it should be.
        process: u32,
        /// The process that listens, as `process 7 of alice`.
        listener: String,
    },
    /// A link stands where the socket of a process should be.
    #[error("{0} is a link, and the port of a process is a socket; links are not followed")]
    Link(PathBuf),
    /// A socket's path does not fit into a socket address.
    #[error(
        "{path}: the path of a socket may have {limit} bytes at most and this one has {}; choose a shorter path \
         (for a process that is launched: a shorter TMPDIR)",
        .path.as_os_str().len()
    )]
    TooLong {
        /// The path.
        path: PathBuf,
        /// Bytes that fit.
        limit: usize,
    },
    /// The path of a new socket exists already.
    #[error("{0}: the path exists already; choose another path or remove it")]
    Taken(PathBuf),
    /// The runtime refused a command.
    #[error("the runtime refuses {command} ({hresult:#010x}): {}", refused(*.hresult))]
    Refused {
        /// The command.
        command: &'static str,
        /// The reason as an HRESULT.
        hresult: u32,
    },
    /// There was no answer in time.
    #[error(
        "no answer to {what} within {seconds} s; is the process stopped (a debugger, Ctrl+Z, a paused \
         container) or suspended at its start?"
    )]
    Silent {
        /// The answer that was waited for.
        what: String,
        /// For how long.
        seconds: u64,
    },
    /// The answer is not what the protocol says.
    #[error("{what}, expected {expected}; no .NET runtime listens there")]
    Protocol {
        /// The answer that was found.
        what: String,
        /// The answer that was expected.
        expected: &'static str,
    },
    /// A request does not fit into a message.
    #[error(
        "the request has {bytes} bytes, and a message of the diagnostics port has 65535 at most; name fewer \
         providers or shorter arguments"
    )]
    TooLarge {
        /// Bytes of the message.
        bytes: usize,
    },
    /// The system failed otherwise.
    #[error("{what}: {source}")]
    Io {
        /// The attempt, in words.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
}

/// The runtime's own names of why it refuses a command (`ipc-protocol.md`, and `CORDIAGIPC_E_` in `corerror.xml`).
pub(crate) const BAD_ENCODING: u32 = 0x8013_1384;
pub(crate) const UNKNOWN_COMMAND: u32 = 0x8013_1385;
pub(crate) const UNKNOWN_MAGIC: u32 = 0x8013_1386;
const UNKNOWN_ERROR: u32 = 0x8013_1387;
/// `CORPROF_E_RUNTIME_UNINITIALIZED` and `CORPROF_E_PROFILER_ALREADY_ACTIVE`.
pub(crate) const RUNTIME_UNINITIALIZED: u32 = 0x8013_135B;
const PROFILER_ALREADY_ACTIVE: u32 = 0x8013_136A;

impl Error {
    /// Wraps what the system said while `what` was done.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let what = what.into();
        move |source| Error::Io { what, source }
    }

    /// Whether the runtime answered that it does not do it: it is too old for the command, or the answer would be too
    /// long.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Error::Refused { .. })
    }

    /// Whether the runtime is too old for the command.
    pub fn is_unknown_command(&self) -> bool {
        matches!(self, Error::Refused { hresult: UNKNOWN_COMMAND, .. })
    }
}

fn no_port(process: u32, folder: &Path, turned_off: bool) -> String {
    if turned_off {
        return format!(
            "process {process} was started with its diagnostics port turned off (DOTNET_EnableDiagnostics=0); \
             start it again without that"
        );
    }
    let folder = folder.display();
    format!(
        "process {process} has no diagnostics port in {folder}; if it has just been started, try again in a moment, \
         and if it uses another TMPDIR, set TMPDIR to it"
    )
}

fn denied(owner: Option<&str>) -> String {
    match owner {
        Some("root") => "belongs to root; run this as root".to_owned(),
        Some(owner) => format!("belongs to {owner}; run this as {owner} or as root"),
        None => "may not be used; run this as the user of the process or as an administrator".to_owned(),
    }
}

fn refused(hresult: u32) -> &'static str {
    match hresult {
        UNKNOWN_COMMAND => "this runtime is too old for it",
        BAD_ENCODING => "it does not understand the request",
        UNKNOWN_MAGIC => "it speaks another version of the protocol",
        0x8007_0057 => "the arguments are not valid; check providers and the size of the buffer",
        0x8007_000E => "it has not enough memory; choose a smaller buffer",
        UNKNOWN_ERROR | 0x8000_4005 => "no reason given; a smaller buffer or fewer sessions at a time may help",
        RUNTIME_UNINITIALIZED => "it has not started yet; try again in a moment",
        PROFILER_ALREADY_ACTIVE => "the process has a profiler already, and can have one only",
        _ => "unknown reason",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_use_a_process_is_said_once() {
        let of = |owner: &str| Error::Denied { what: "process 7".into(), owner: Some(owner.into()) }.to_string();
        assert_eq!(of("root"), "process 7 belongs to root; run this as root");
        assert_eq!(of("app"), "process 7 belongs to app; run this as app or as root");
    }
}
