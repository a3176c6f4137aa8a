//! The program, killed by strace when it enters a system call.

use std::process::Command;

/// Calls that change names: the steps of a commit.
pub const NAMES: &str = "rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir";

/// The program, killed when it enters one of these calls for the `nth` time, from 1 on. It prints nothing.
pub fn killed_at(calls: &str, nth: usize) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={calls}"));
    command.arg("-e").arg(format!("inject={calls}:signal=SIGKILL:when={nth}")).arg(env!("CARGO_BIN_EXE_tracequet"));
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    command
}
