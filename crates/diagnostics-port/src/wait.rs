//! Time limits for operations without one.

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// The longest time that a runtime may take to answer. Busy ones answer in milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Limits are counted in pieces of this length.
const PIECE: Duration = Duration::from_millis(100);

/// Calls `work` on a thread of its own and waits for it so long. What takes longer is left behind: there is no portable
/// way to end a connection attempt or a read.
///
/// While a machine stands still (a laptop that sleeps, a virtual machine that is moved), at most one [`PIECE`] of the
/// limit passes.
pub(crate) fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("diagnostics port".into()).spawn(move || sender.send(work()).ok());
    thread.ok()?;
    let mut left = limit;
    while !left.is_zero() {
        let piece = left.min(PIECE);
        match receiver.recv_timeout(piece) {
            Err(RecvTimeoutError::Timeout) => left -= piece,
            received => return received.ok(),
        }
    }
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn no_time_passes_while_the_process_stands_still() {
        let limit = Duration::from_secs(2);
        let work = || {
            let begin = std::time::Instant::now();
            let script = format!("kill -STOP {0}; sleep 3; kill -CONT {0}", std::process::id());
            let is_run = std::process::Command::new("sh").args(["-c", &script]).status().is_ok_and(|s| s.success());
            (is_run, begin.elapsed())
        };
        let (is_run, took) = within(limit, work).expect("it answers as soon as the process runs again");
        assert!(is_run && took > limit, "{took:?}");
        assert_eq!(within(limit / 10, move || std::thread::sleep(limit)), None);
    }
}
