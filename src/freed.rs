//! Settings of the allocator for freed memory. A conversion asks for the same few megabytes again and
//! again; glibc hands them to the system each time by default, which clears them again.

use std::collections::HashMap;

/// Keeps up to 4 MB of each thread's memory, and blocks below 4 MB, for what is asked for next.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "two settings of the allocator")]
pub fn keep() {
    // SAFETY: called before there are other threads, with settings that `mallopt(3)` knows. Refused, they change
    // nothing.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 4 << 20);
    }
}

/// Other allocators decide for themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep() {}

/// Has the threads that come share what is kept: of a program whose threads come and go for weeks, each of glibc's
/// arenas would keep its own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "a setting of the allocator")]
pub fn share() {
    // SAFETY: a setting that `mallopt(3)` knows, which it guards by its own locks. Refused, it changes nothing.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Other allocators decide for themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn share() {}

/// Bytes of a recording after which freed memory is handed to the system.
const STEP: u64 = 128 << 20;

/// The steps that were read of each recording, by its place among the inputs.
#[derive(Default)]
pub struct Steps(HashMap<usize, u64>);

impl Steps {
    /// Notes that a recording was read up to a position, and hands freed memory to the system after each step. Between the pieces in use it grows
    /// with the length of a recording.
    pub fn read(&mut self, input: usize, position: u64) {
        let steps = position / STEP;
        if steps > 0 && self.0.insert(input, steps) != Some(steps) {
            give_back();
        }
    }
}

/// Hands freed memory to the system, which the allocator keeps: for a program that does nothing for minutes now, or that reads a long recording.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "a function of the allocator")]
pub fn give_back() {
    // SAFETY: may be called at any time, `malloc_trim(3)` takes the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Other allocators decide for themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}
