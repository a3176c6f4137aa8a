//! Tests that change the whole process, each in a process of its own.

/// Runs an ignored test in a process of its own: that the recording ended, and memory that waits for its file, are
/// things of the whole process.
pub fn alone(test: &str) {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--ignored", "--exact", test]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{:?} {said}", output.status);
}
