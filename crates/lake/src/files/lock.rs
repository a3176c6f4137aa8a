//! The lock of a dataset that grows: a file that one process at a time has.

use std::fs::File;
use std::path::Path;

/// Waits for the lock; the system gives it back when the file is closed, however the process ends.
#[cfg(unix)]
pub(super) fn lock(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{FlockOperation, flock};

    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    match flock(&file, FlockOperation::LockExclusive) {
        // Some network drives have no locks: then the user has to run one writer at a time.
        Err(e) if e != rustix::io::Errno::OPNOTSUPP && e != rustix::io::Errno::NOSYS => Err(e.into()),
        _ => Ok(file),
    }
}

/// Windows refuses to open a file twice that is not shared, which is a lock.
#[cfg(windows)]
pub(super) fn lock(path: &Path) -> std::io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;

    const SHARING_VIOLATION: i32 = 32;
    loop {
        match File::options().create(true).truncate(false).write(true).share_mode(0).open(path) {
            Err(e) if e.raw_os_error() == Some(SHARING_VIOLATION) => {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

#[cfg(not(any(unix, windows)))]
pub(super) fn lock(path: &Path) -> std::io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(path)
}
