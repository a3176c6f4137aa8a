//! What happens when a file shrinks while it is read: files are mapped, and the system ends a program by SIGBUS that
//! touches what is no longer there. Reading by copies would cost every run for this rare case, so the signal is handled
//! instead: the program says what happened and ends with 1. What it had written so far is no dataset yet.

/// Says what happened when the system reports a mapped file that lost its end.
#[cfg(unix)]
#[allow(unsafe_code, reason = "installing a signal handler")]
pub fn handle() {
    extern "C" fn on_bus_error(_: libc::c_int) {
        const MESSAGE: &[u8] =
            b"tracequet: error: a file became shorter while it was read (or its disk failed); nothing was written\n";
        // SAFETY: both functions may be called in a signal handler, and the message is static.
        unsafe {
            libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
            libc::_exit(1);
        }
    }
    let handler: extern "C" fn(libc::c_int) = on_bus_error;
    // SAFETY: the handler only calls functions that are allowed in one, and does not return.
    unsafe {
        libc::signal(libc::SIGBUS, handler as libc::sighandler_t);
    }
}

/// Mapped files cannot shrink on Windows.
#[cfg(not(unix))]
pub fn handle() {}
