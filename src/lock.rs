//! Access to what threads share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The value in a mutex, whatever became of those who held it before.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
