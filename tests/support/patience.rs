//! How long tests wait. No test asserts how fast something is, because a machine may be slow: what does not end is ended.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// What has not happened by then will not.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(10);

/// The looks in a time. They are counted and no clock is read: a virtual machine that stood still for a minute has looked once, and what
/// is waited for has not run meanwhile.
fn looks(limit: Duration) -> impl Iterator<Item = Duration> {
    std::iter::successors(Some(LOOK), |spent| Some(*spent + LOOK)).take_while(move |spent| *spent <= limit)
}

/// Waits until something is so, and says whether it is.
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
    assert!(comes(PATIENCE, is_so), "{what}: waited for in vain");
}

/// Does something that has to end. A thread cannot be ended from outside, so that a hang ends the test program with a message.
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
