//! Work at the end of the process.

use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::PoisonError;

static WORK: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

/// Does this when the process ends as it should. `false` when that cannot be had.
pub fn at_exit(work: fn()) -> bool {
    let mut all = WORK.lock().unwrap_or_else(PoisonError::into_inner);
    all.push(work);
    // SAFETY: the function takes no argument and does not unwind, and DuckDB never unloads an extension.
    all.len() > 1 || unsafe { libc::atexit(run) } == 0
}

extern "C" fn run() {
    let work = std::mem::take(&mut *WORK.lock().unwrap_or_else(PoisonError::into_inner));
    for work in work {
        catch_unwind(work).ok();
    }
}
