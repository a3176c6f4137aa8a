//! Runs work that Ctrl+C can end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;
use tracequet::{Error, Result};

use super::errors::exception;

/// The longest wait before Python is asked whether Ctrl+C was pressed.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// Runs `work` on a thread of its own, so that Ctrl+C is handled meanwhile. The argument of the thread shows that its
/// result is not wanted any more.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<T> + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, mut receiver) = channel();
    let stopped = stop.clone();
    // Whoever is gone does not want to know.
    let run = move || drop(sender.send(work(&stopped)));
    let spawned = std::thread::Builder::new().name("tracequet".into()).spawn(run);
    spawned.map_err(Error::io("a thread")).map_err(|error| exception(py, &error))?;
    loop {
        let receiver = &mut receiver;
        let waited = py.detach(move || receiver.recv_timeout(PATIENCE));
        match waited {
            Ok(result) => return result.map_err(|error| exception(py, &error)),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals().inspect_err(|_| stop.store(true, Ordering::Relaxed))?
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(exception(py, &Error::Internal("the thread that reads died".into())));
            }
        }
    }
}
