//! Time limits for operations without one.

use std::time::Duration;

/// How long a runtime may take to answer. Those that are busy answer in milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Calls `work` on a thread of its own and waits for it so long. What takes longer is left behind: there is no portable
/// way to end a connection attempt or a read.
pub(crate) fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("diagnostics port".into()).spawn(move || sender.send(work()).ok());
    thread.ok()?;
    receiver.recv_timeout(limit).ok()
}
