//! How long tests wait. No test asserts how fast something is, because a machine may be slow: what does not end is
//! ended.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// What has not happened by then will not.
const PATIENCE: Duration = Duration::from_secs(300);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// The looks that fit in a limit. Tests count looks and do not read a clock: while a virtual machine stands still, what
/// they wait for does not run either.
fn looks(limit: Duration) -> std::ops::Range<u128> {
    0..limit.as_millis() / LOOK.as_millis()
}

/// Waits until something is so, and returns whether it became so within the limit.
pub fn comes(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    looks(limit).any(|_| {
        let is_it = is_so();
        if !is_it {
            std::thread::sleep(LOOK);
        }
        is_it
    })
}

/// Waits until something is so; it is a failure when it never is.
pub fn wait_for(what: &str, is_so: impl FnMut() -> bool) {
    assert!(comes(PATIENCE, is_so), "timed out waiting for: {what}");
}

/// Does something that has to end. A thread cannot be ended from outside, so that a hang ends the test program with a
/// message.
pub fn ends<T>(what: &str, body: impl FnOnce() -> T) -> T {
    let (is_done, waiting) = channel::<()>();
    let what = what.to_owned();
    std::thread::spawn(move || {
        if looks(PATIENCE).all(|_| waiting.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout)) {
            eprintln!("{what} does not end");
            std::process::abort();
        }
    });
    let result = body();
    drop(is_done);
    result
}
