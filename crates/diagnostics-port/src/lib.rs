//! A client of the diagnostics port of .NET processes.
//!
//! Every runtime since .NET Core 3.0 opens a port (a Unix socket, a named pipe on Windows) through which it can be
//! asked what it is, and requested to record events. The protocol is the runtime's "Diagnostic IPC Protocol": one
//! command a connection, little-endian, a header of 20 bytes, then the payload ([`frame`]).
//!
//! ```text
//!  find(pid) ----> Port ----+
//!                           +--> Target --> process_info, resume, attach_profiler, start_session, stop_session
//!  Hub::listen --> cookie --+
//! ```
//! A program that is to be recorded from its first instruction is started with `DOTNET_DiagnosticPorts=PATH`: its
//! runtime connects to us ([`Hub`]) and waits until it is resumed.
//!
//! Everything that waits for a runtime has a limit of time: a process that is stopped answers never.
//!
//! Sockets are in folders where every user may make files, so a name proves nothing. A port that was found by a process
//! id has an [`Owner`]: links are refused, the kernel is asked who listens, and the process id in the answer is
//! compared.

mod candidate;
mod cgroup;
mod command;
mod error;
mod find;
pub mod frame;
mod hub;
#[cfg(target_os = "linux")]
mod linux;
mod owner;
#[cfg(windows)]
mod pipe;
mod port;
mod session;
#[cfg(unix)]
mod sockets;
mod target;
mod wait;

pub use candidate::Candidate;
pub use cgroup::CgroupLimits;
pub use command::{ProcessInfo, attach_profiler, process_info, resume};
pub use error::{Error, Result};
pub use find::{candidates, find};
pub use hub::{Cookie, Hub};
pub use owner::Owner;
pub use port::{Connection, Port, Server};
pub use session::{EventFilter, Provider, Rundown, Session, SessionRequest, WhenFull, start_session, stop_session};
pub use target::Target;
pub use wait::PATIENCE;
