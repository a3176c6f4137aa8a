//! What a test does when something that it needs is not on the machine.

use std::io::Write;

/// Says on standard error that a test is skipped and why. Under `CI=true` it is an error: there everything that the tests
/// need has to be installed.
pub fn skip(test: &str, why: &str) {
    assert!(!in_ci(), "{test} cannot be skipped under CI=true: {why}");
    note(test, why);
}

/// Says on standard error that a test is skipped, also under `CI=true`: for what no machine of CI can have.
pub fn note(test: &str, why: &str) {
    // Past the capture of the test harness: a skipped test should be seen.
    std::io::stderr().write_all(format!("SKIPPED {test}: {why}\n").as_bytes()).ok();
}

/// Whether `CI=true` says that nothing may be skipped.
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|ci| ci == "true")
}

/// Whether strace can trace programs here. Says that the test is skipped if not.
pub fn can_trace(test: &str) -> bool {
    match std::process::Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).output() {
        Ok(traced) if traced.status.success() => return true,
        Ok(_) => note(test, "this system does not let strace trace"),
        Err(_) => skip(test, "no strace"),
    }
    false
}
