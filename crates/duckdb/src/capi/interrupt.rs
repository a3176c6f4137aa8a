//! Ctrl+C while a recording is converted. DuckDB's C interface does not tell a function that its query was interrupted;
//! its shell and its Python package, however, learn of Ctrl+C by SIGINT, and so does this.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Watches for SIGINT, until it is dropped. The handler that was there is called as before.
pub struct Interrupt {
    seen: Arc<AtomicBool>,
    #[cfg(unix)]
    watch: Option<signal_hook::SigId>,
}

impl Interrupt {
    /// Begins to watch. Nothing is seen where the process has no handler: then SIGINT ends it, or is ignored, and that
    /// shall stay so.
    pub fn watch() -> Interrupt {
        let seen = Arc::new(AtomicBool::new(false));
        #[cfg(unix)]
        let watch = has_handler().then(|| signal_hook::flag::register(libc::SIGINT, seen.clone()).ok()).flatten();
        Interrupt {
            seen,
            #[cfg(unix)]
            watch,
        }
    }

    /// Becomes true when SIGINT comes.
    pub fn seen(&self) -> Arc<AtomicBool> {
        self.seen.clone()
    }
}

#[cfg(unix)]
impl Drop for Interrupt {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.take() {
            signal_hook::low_level::unregister(watch);
        }
    }
}

/// Whether the process handles SIGINT.
#[cfg(unix)]
fn has_handler() -> bool {
    // SAFETY: the struct is plain data, and the call only fills it.
    let (state, action) = unsafe {
        let mut action = std::mem::zeroed::<libc::sigaction>();
        (libc::sigaction(libc::SIGINT, std::ptr::null(), &mut action), action)
    };
    state == 0 && action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN
}
