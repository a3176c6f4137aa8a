//! Runtimes that connect to us.
//!
//! A process that was started with `DOTNET_DiagnosticPorts=PATH` connects to PATH, says who it is in 34 bytes, and
//! waits for one command on that connection; then it connects again at once. The hub keeps the newest connection of
//! each runtime until it is wanted.

use std::collections::HashMap;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::port::{Connection, Port, Server};
use crate::wait::within;

/// The first bytes of what a runtime says when it connects.
const ADVERTISE: &[u8; 8] = b"ADVR_V1\0";
/// The longest time that a runtime may take to introduce itself.
const INTRODUCTION: Duration = Duration::from_secs(5);
/// Runtimes that are kept at most.
const MAX_RUNTIMES: usize = 1024;

/// The name that a runtime gives itself, for its life long: the same on each of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cookie {
    /// Made up by the runtime when it started.
    pub id: [u8; 16],
    /// Process id, in the pid namespace of the process.
    pub process: u64,
}

#[derive(Default)]
struct HubState {
    waiting: HashMap<Cookie, Connection>,
    /// All that ever came, in the order in which they came first.
    met: Vec<Cookie>,
}

/// Where runtimes connect to.
pub struct Hub {
    port: Port,
    state: Arc<(Mutex<HubState>, Condvar)>,
    closed: Arc<AtomicBool>,
}

impl Hub {
    /// Begins to listen at `port`.
    pub fn listen(port: Port) -> Result<Hub> {
        let server = Server::bind(port.clone())?;
        let hub = Hub { port, state: Arc::default(), closed: Arc::default() };
        let (state, closed) = (hub.state.clone(), hub.closed.clone());
        let accept = move || {
            while let Ok(connection) = server.accept() {
                if closed.load(Ordering::Relaxed) {
                    break;
                }
                let state = state.clone();
                // A thread for each: one that says nothing must not keep others waiting.
                std::thread::Builder::new().name("hub".into()).spawn(move || introduce(connection, &state)).ok();
            }
        };
        std::thread::Builder::new().name("hub".into()).spawn(accept).map_err(Error::io("starting a thread"))?;
        Ok(hub)
    }

    /// Where it listens: the value of `DOTNET_DiagnosticPorts`.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// The first runtime that `wanted` accepts; waits for this time at most.
    pub fn wait(&self, limit: Duration, wanted: impl Fn(&Cookie) -> bool) -> Option<Cookie> {
        let end = Instant::now() + limit;
        let mut state = self.state.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(cookie) = state.met.iter().find(|cookie| wanted(cookie)) {
                return Some(*cookie);
            }
            let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
            state = self.state.1.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The runtime that came last of those that are not forgotten.
    pub fn newest(&self) -> Option<Cookie> {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner).met.last().copied()
    }

    /// Forgets a runtime that has ended. One that connects again is met again.
    pub fn forget(&self, cookie: Cookie) {
        let mut state = self.state.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.met.retain(|met| *met != cookie);
        state.waiting.remove(&cookie);
    }

    /// Forgets all but this many, the newest. Returns those that are left, the oldest first.
    pub fn keep_newest(&self, count: usize) -> Vec<Cookie> {
        let mut state = self.state.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = state.met.len().saturating_sub(count);
        for cookie in state.met.drain(..gone).collect::<Vec<_>>() {
            state.waiting.remove(&cookie);
        }
        state.met.clone()
    }

    /// Whether a runtime has a connection for the next command; waits for this time at most.
    pub fn is_connected(&self, cookie: Cookie, limit: Duration) -> bool {
        let state = self.state.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.state.1.wait_timeout_while(state, limit, |state| !state.waiting.contains_key(&cookie));
        waited.unwrap_or_else(PoisonError::into_inner).0.waiting.contains_key(&cookie)
    }

    /// The connection of a runtime, which is then ours; waits for this time at most for the runtime to connect (again).
    pub fn connection(&self, cookie: Cookie, limit: Duration) -> Option<Connection> {
        let end = Instant::now() + limit;
        let mut state = self.state.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(connection) = state.waiting.remove(&cookie) {
                return Some(connection);
            }
            let left = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
            state = self.state.1.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Reads who has connected, and keeps the connection for it.
fn introduce(mut connection: Connection, state: &(Mutex<HubState>, Condvar)) {
    let met = within(INTRODUCTION, move || {
        let mut bytes = [0; 34];
        connection.read_exact(&mut bytes).ok()?;
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (id, rest) = rest.split_first_chunk::<16>()?;
        let process = u64::from_le_bytes(*rest.first_chunk()?);
        (magic == ADVERTISE).then_some((Cookie { id: *id, process }, connection))
    });
    if let Some(Some((cookie, connection))) = met {
        let mut known = state.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.met.contains(&cookie) {
            if known.met.len() >= MAX_RUNTIMES {
                return;
            }
            known.met.push(cookie);
        }
        known.waiting.insert(cookie, connection);
        drop(known);
        state.1.notify_all();
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts, which then closes the port.
        self.port.connect().ok();
    }
}
