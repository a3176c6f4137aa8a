//! A runtime that takes commands, in either direction of connection.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::hub::{Cookie, Hub};
use crate::port::{Connection, Port};
use crate::wait::PATIENCE;

/// A way for commands to reach a runtime: each on a connection of its own.
#[derive(Clone)]
pub enum Target {
    /// We connect to the port of the runtime.
    Port(Port),
    /// The runtime connects to us.
    Reverse(Arc<Hub>, Cookie),
}

impl Target {
    /// A connection for one command.
    pub fn connect(&self) -> Result<Connection> {
        match self {
            Target::Port(port) => port.connect(),
            Target::Reverse(hub, cookie) => hub
                .connection(*cookie, PATIENCE)
                .ok_or_else(|| Error::Silent { what: "our offer of a connection".into(), seconds: PATIENCE.as_secs() }),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Port(port) => write!(f, "Target({port})"),
            Target::Reverse(_, cookie) => write!(f, "Target({cookie:?})"),
        }
    }
}
