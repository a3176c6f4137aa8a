//! Numbers of the profiling interface in the words of the tables.

/// COR_PRF_GC_ROOT_KIND, in the words of the table. (EventPipe numbers its kinds differently.)
pub(super) fn root_kind(value: u64) -> &'static str {
    match value {
        1 => "stack",
        2 => "finalizer",
        3 => "handle",
        _ => "other",
    }
}

/// COR_PRF_SUSPEND_REASON, in the words of the table, which are EventPipe's where it has one.
pub(super) fn suspend_reason(value: u32) -> Option<&'static str> {
    Some(match value {
        0 => "SuspendOther",
        1 => "SuspendForGC",
        2 => "SuspendForAppDomainShutdown",
        3 => "SuspendForCodePitching",
        4 => "SuspendForShutdown",
        6 => "SuspendForDebugger",
        7 => "SuspendForGCPrep",
        8 => "SuspendForReJit",
        9 => "SuspendForProfiler",
        _ => return None,
    })
}
