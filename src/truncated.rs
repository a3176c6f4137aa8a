//! Handles files that shrink while they are read: files are mapped, and the system sends the signal SIGBUS to a program
//! that touches what is no longer there. Reading by copies would cost every run for this rare case, so the signal is
//! handled instead: zeros take the place of what is gone, and the reader reports it. Elsewhere than in an input, the
//! program says what happened and ends with 1.

/// Handles the loss of mapped files.
#[cfg(unix)]
#[allow(unsafe_code, reason = "installing a signal handler")]
pub fn handle() {
    // SAFETY: the handler has the signature that SA_SIGINFO asks for, and the structure is whole.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bus_error as extern "C" fn(_, _, _) as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
    }
}

#[cfg(unix)]
#[allow(unsafe_code, reason = "a signal handler")]
extern "C" fn on_bus_error(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    const MESSAGE: &[u8] =
        b"tracequet: error: a file became shorter while it was read (or its disk failed); nothing was written\n";
    // SAFETY: the system hands a valid `info`; the calls may be made in a signal handler. The range is a part of the
    // map of an input, which is read-only and lives as long as it is known; private zeros take its place until it is
    // unmapped.
    unsafe {
        let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap_or(4096);
        if let Some(range) = tracequet::trace::source::lost_map((*info).si_addr().addr(), page) {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            let start = range.start as *mut libc::c_void;
            if libc::mmap(start, range.end - range.start, libc::PROT_READ, flags, -1, 0) == start {
                return;
            }
        }
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(1);
    }
}

/// Mapped files cannot shrink on Windows.
#[cfg(not(unix))]
pub fn handle() {}
