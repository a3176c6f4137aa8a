//! A client of the diagnostics port of .NET processes.
//!
//! Every runtime since .NET Core 3.0 opens a port (a Unix socket, a named pipe on Windows) through which it can be asked
//! what it is, and told to record events. The protocol is the runtime's "Diagnostic IPC Protocol": one command a
//! connection, little-endian, a header of 20 bytes, then the payload ([`frame`]).
//!
//! ```text
//!  find(pid) ----> Port ----+
//!                           +--> Target --> process_info, resume, start_session, stop_session
//!  Hub::listen --> cookie --+
//! ```
//! A program that is to be recorded from its first instruction is started with `DOTNET_DiagnosticPorts=PATH`: its runtime
//! connects to us ([`Hub`]) and waits until it is resumed.
//!
//! Everything that waits for a runtime has a limit of time: a process that is stopped answers never.

mod command;
mod error;
mod find;
pub mod frame;
mod hub;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(windows)]
mod pipe;
mod port;
mod session;

use std::time::Duration;

pub use command::{ProcessInfo, process_info, resume};
pub use error::{Error, Result};
pub use find::{Candidate, candidates, find};
pub use hub::{Cookie, Hub};
pub use port::{Connection, Port, Server, Target};
pub use session::{Provider, Rundown, Session, SessionRequest, start_session, stop_session};

/// How long a runtime may take to answer. Those that are busy answer in milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Calls `work` on a thread of its own and waits for it so long. What takes longer is left behind: there is no portable
/// way to end a connection attempt or a read.
fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("diagnostics port".into()).spawn(move || sender.send(work()).ok());
    thread.ok()?;
    receiver.recv_timeout(limit).ok()
}
