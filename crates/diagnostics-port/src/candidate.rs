//! A process that may be recorded.

use crate::error::Result;
use crate::port::Port;

/// A process with a .NET runtime.
#[derive(Debug)]
pub struct Candidate {
    /// Process id, as this system calls it.
    pub process: u32,
    /// File name of the program; empty when it is not known.
    pub name: String,
    /// User; empty when it is not known.
    pub user: String,
    /// Command line; empty when it is not known.
    pub command_line: String,
    /// The port of the process, or the reason why it cannot be reached.
    pub port: Result<Port>,
}
