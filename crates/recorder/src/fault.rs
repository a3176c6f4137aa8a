//! Faults in mapped memory. A file that is cut from outside, or a disk that fails, ends a process that touches the map
//! by SIGBUS; the handler here puts memory in the place of the file instead, and the recording ends there.
//!
//! Windows does not need this: it refuses to truncate a mapped file.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Maps at most.
pub const MAX_MAPS: usize = 16 << 10;

/// Where maps begin.
static MAPS: [AtomicUsize; MAX_MAPS] = [const { AtomicUsize::new(0) }; MAX_MAPS];
/// The number of faults.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Bytes of each map.
static MAP_BYTES: AtomicUsize = AtomicUsize::new(0);
static FAULTED: AtomicBool = AtomicBool::new(false);

/// Whether a map was lost.
pub fn faulted() -> bool {
    FAULTED.load(Ordering::Acquire)
}

/// Guards a map; all are of the same length.
pub fn guard(base: *mut u8, bytes: usize) {
    MAP_BYTES.store(bytes, Ordering::Relaxed);
    if let Some(place) = MAPS.get(COUNT.fetch_add(1, Ordering::Relaxed)) {
        place.store(base as usize, Ordering::Release);
    }
    #[cfg(unix)]
    unix::install();
}

#[cfg(unix)]
mod unix {
    use std::ffi::c_int;
    use std::sync::OnceLock;

    use super::*;

    /// The handler that was there before: the runtime's, which makes exceptions of faults in managed code.
    static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

    pub fn install() {
        BEFORE.get_or_init(|| {
            // SAFETY: both structures are whole; all-zero is a valid value of them. The handler is safe in a signal.
            unsafe {
                let mut ours: libc::sigaction = std::mem::zeroed();
                let mut before: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = handler as *const () as usize;
                ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
                libc::sigemptyset(&mut ours.sa_mask);
                libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before);
                libc::sigaction(libc::SIGBUS, &ours, std::ptr::null_mut());
                before
            }
        });
    }

    /// The map that an address lies in.
    fn map_of(address: usize) -> Option<usize> {
        let bytes = MAP_BYTES.load(Ordering::Relaxed);
        let maps = MAPS.iter().take(COUNT.load(Ordering::Relaxed)).map(|map| map.load(Ordering::Acquire));
        maps.filter(|base| *base != 0).find(|base| (*base..base.saturating_add(bytes)).contains(&address))
    }

    /// Calls nothing but mmap, and functions that touch no memory of their own.
    unsafe extern "C" fn handler(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        // SAFETY: the system passes what it says; SIGBUS has an address.
        let address = unsafe { (*info).si_addr() } as usize;
        if let Some(base) = map_of(address) {
            FAULTED.store(true, Ordering::Release);
            let (prot, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED);
            let bytes = MAP_BYTES.load(Ordering::Relaxed);
            // SAFETY: the range is a map of ours that is never unmapped.
            let memory = unsafe { libc::mmap(base as *mut libc::c_void, bytes, prot, flags, -1, 0) };
            if memory != libc::MAP_FAILED {
                return;
            }
        }
        let Some(before) = BEFORE.get() else { return };
        match before.sa_sigaction {
            // The instruction runs again, and the fault is what it was without us.
            // SAFETY: the structure is the one that the system gave.
            libc::SIG_DFL | libc::SIG_IGN => unsafe {
                let mut default: libc::sigaction = std::mem::zeroed();
                default.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(libc::SIGBUS, &default, std::ptr::null_mut());
            },
            // SAFETY: the flag says which of the two forms the handler has.
            handler if before.sa_flags & libc::SA_SIGINFO != 0 => unsafe {
                type Long = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void);
                std::mem::transmute::<usize, Long>(handler)(signal, info, context);
            },
            // SAFETY: as above.
            handler => unsafe {
                type Short = unsafe extern "C" fn(c_int);
                std::mem::transmute::<usize, Short>(handler)(signal);
            },
        }
    }
}
