//! How long tests wait. No test asserts how fast something is, because a machine may be slow: what does not end is ended.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// What has not happened by then will not.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until something is so; it is a failure when it never is.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Does something that has to end. A thread cannot be ended from outside, so that a hang ends the test program with a message.
pub fn ends<T>(what: &str, body: impl FnOnce() -> T) -> T {
    let (is_done, waiting) = channel::<()>();
    let what = what.to_owned();
    std::thread::spawn(move || {
        if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{what} does not end");
            std::process::abort();
        }
    });
    let result = body();
    drop(is_done);
    result
}
