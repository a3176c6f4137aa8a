//! Differences between operating systems: clocks, thread ids, room on disk.

use std::fs::File;
use std::io::Write;

/// Nanoseconds since 1970.
pub fn utc_ns() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// A line for people on standard error. `eprintln!` would panic where that is closed.
pub fn say(line: std::fmt::Arguments<'_>) {
    writeln!(std::io::stderr(), "tracequet-recorder: {line}").ok();
}

/// The command line, for people.
pub fn command_line() -> String {
    let words: Vec<_> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    words.join(" ")
}

/// 1 Linux, 2 Windows, 3 macOS.
pub const OS: u8 = if cfg!(target_os = "linux") {
    1
} else if cfg!(windows) {
    2
} else if cfg!(target_os = "macos") {
    3
} else {
    0
};

/// 1 x86, 2 x64, 3 ARM, 4 ARM64.
pub const ARCH: u8 = if cfg!(target_arch = "x86") {
    1
} else if cfg!(target_arch = "x86_64") {
    2
} else if cfg!(target_arch = "arm") {
    3
} else if cfg!(target_arch = "aarch64") {
    4
} else {
    0
};

#[cfg(unix)]
mod unix {
    /// The clock's name.
    pub const CLOCK: &str = "CLOCK_MONOTONIC";

    /// Ticks in a second.
    pub fn frequency() -> u64 {
        1_000_000_000
    }

    /// The monotonic clock: on Linux the one that EventPipe uses.
    #[inline]
    pub fn ticks() -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes one timespec.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
    }

    /// Id of the calling thread.
    pub fn thread_id() -> u64 {
        #[cfg(target_os = "linux")]
        // SAFETY: has no arguments and cannot fail.
        return unsafe { libc::syscall(libc::SYS_gettid) as u64 };
        #[cfg(target_os = "macos")]
        {
            let mut id = 0;
            // SAFETY: thread 0 is the caller; writes one number.
            unsafe { libc::pthread_threadid_np(0, &mut id) };
            return id;
        }
        #[cfg(not(any(target_os = "linux", target_os = "macos")))]
        return 0;
    }

    /// When this process began, ns since 1970 UTC; 0 unknown.
    pub fn process_start_utc_ns() -> i64 {
        #[cfg(target_os = "linux")]
        return age_ns().map_or(0, |age| super::utc_ns().saturating_sub(age));
        #[cfg(not(target_os = "linux"))]
        return 0;
    }

    /// The age of this process: the 22nd field of /proc/self/stat (proc_pid_stat(5)) is its start, in
    /// ticks since the system began.
    #[cfg(target_os = "linux")]
    fn age_ns() -> Option<i64> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The second field, the name, may hold anything, blanks and brackets among it.
        let start: i64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes one timespec; sysconf has no memory to touch.
        let hertz = unsafe {
            libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut now);
            libc::sysconf(libc::_SC_CLK_TCK)
        };
        let now = now.tv_sec.checked_mul(1_000_000_000)?.checked_add(now.tv_nsec)?;
        now.checked_sub(start.checked_mul(1_000_000_000_i64.checked_div(hertz)?)?)
    }

    /// Path of the runtime's library in this process.
    pub fn runtime_path() -> String {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let line = maps.lines().find(|line| line.ends_with("/libcoreclr.so")).unwrap_or_default();
        line.find('/').and_then(|at| line.get(at..)).unwrap_or_default().to_owned()
    }
}

#[cfg(windows)]
mod windows {
    use std::ffi::c_void;

    pub const CLOCK: &str = "QueryPerformanceCounter";

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn QueryPerformanceCounter(out: *mut i64) -> i32;
        fn QueryPerformanceFrequency(out: *mut i64) -> i32;
        fn GetCurrentThreadId() -> u32;
        fn GetCurrentProcess() -> *mut c_void;
        fn GetProcessTimes(
            process: *mut c_void,
            start: *mut u64,
            end: *mut u64,
            kernel: *mut u64,
            user: *mut u64,
        ) -> i32;
        fn GetModuleHandleA(name: *const u8) -> *mut c_void;
        fn GetModuleFileNameW(module: *mut c_void, out: *mut u16, len: u32) -> u32;
    }

    pub fn frequency() -> u64 {
        let mut out = 0;
        // SAFETY: writes one number.
        unsafe { QueryPerformanceFrequency(&mut out) };
        u64::try_from(out).unwrap_or(1).max(1)
    }

    #[inline]
    pub fn ticks() -> u64 {
        let mut out = 0;
        // SAFETY: writes one number.
        unsafe { QueryPerformanceCounter(&mut out) };
        out as u64
    }

    pub fn thread_id() -> u64 {
        // SAFETY: has no arguments and cannot fail.
        u64::from(unsafe { GetCurrentThreadId() })
    }

    pub fn process_start_utc_ns() -> i64 {
        let [mut start, mut end, mut kernel, mut user] = [0; 4];
        // SAFETY: writes four FILETIMEs, 8 bytes each: units of 100 ns since 1601.
        let done = unsafe { GetProcessTimes(GetCurrentProcess(), &mut start, &mut end, &mut kernel, &mut user) };
        const UNTIL_1970: i64 = 116_444_736_000_000_000;
        if done == 0 { 0 } else { (start as i64).saturating_sub(UNTIL_1970).saturating_mul(100) }
    }

    pub fn runtime_path() -> String {
        let mut out = [0u16; 1024];
        // SAFETY: the name ends with a zero; at most as many units are written as there is room for.
        let len = unsafe {
            let module = GetModuleHandleA(c"coreclr.dll".as_ptr().cast());
            if module.is_null() { 0 } else { GetModuleFileNameW(module, out.as_mut_ptr(), 1024) }
        };
        String::from_utf16_lossy(out.get(..len as usize).unwrap_or_default())
    }
}

#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

/// Gives a file room from `from`, its end, to `end`: blocks are taken now, because a write through a map into a hole of
/// the file would end the process when the disk is full.
#[cfg_attr(windows, allow(unused_variables, reason = "there the length of the file is asked for instead of `from`"))]
pub fn grow(file: &File, from: u64, end: u64) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        let len = (end - from) as libc::off_t;
        // SAFETY: the descriptor is open.
        let done = unsafe { libc::fallocate(file.as_raw_fd(), 0, from as libc::off_t, len) } == 0;
        if done {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        if !matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS)) {
            return Err(error);
        }
    }
    // NTFS takes the blocks of a file when it is made longer.
    #[cfg(windows)]
    return if file.metadata()?.len() < end { file.set_len(end) } else { Ok(()) };
    #[cfg(not(windows))]
    write_zeros(file, from, end)
}

/// Takes blocks by writing: ext2, NFS, FAT and others know no other way.
#[cfg(unix)]
pub fn write_zeros(file: &File, from: u64, end: u64) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut at = from;
    while at < end {
        let step = usize::try_from(end - at).unwrap_or(usize::MAX).min(ZEROS.len());
        file.write_all_at(ZEROS.get(..step).unwrap_or_default(), at)?;
        at += step as u64;
    }
    // A file system that allocates blocks late would fail only now.
    file.sync_data()
}
