//! What a test does when something that it needs is not on the machine.

pub use tracequet_untested::{note, of_this_run, skip};

/// What it takes to mount a small disk.
pub const MOUNTS: &str = "run the tests as root: they mount small disks";
/// What it takes to have a .NET runtime.
pub const RUNTIME: &str = "`samples/record.sh --print-runtime` installs a .NET runtime; DOTNET_ROOT names one";

/// Whether strace can trace programs here. Says that the test is skipped if not.
pub fn can_trace(test: &str) -> bool {
    match std::process::Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).output() {
        Ok(traced) if traced.status.success() => return true,
        Ok(_) => note(test, "this system does not let strace trace", "let processes be traced (ptrace)"),
        Err(_) => skip(test, "no strace", "`apt-get install strace`"),
    }
    false
}
