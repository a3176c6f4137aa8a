//! Settings of the allocator for freed memory. A conversion asks for the same few megabytes again and
//! again; glibc hands them to the system each time by default, which clears them again.

/// Keeps up to 16 MB, and blocks below 4 MB, for what is asked for next.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "two settings of the allocator")]
pub fn keep() {
    // SAFETY: called before there are other threads, with settings that `mallopt(3)` knows. Refused, they change nothing.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 16 << 20);
    }
}

/// Other allocators decide for themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep() {}
