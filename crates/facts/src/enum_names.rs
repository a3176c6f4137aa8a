//! Names of enumerated values as the tables have them: of the events, and of the profiling interface.

use std::sync::LazyLock;

/// GCTypeMap, in the words of the table.
pub fn collection_kind(value: u64) -> Option<&'static str> {
    match value {
        0 => Some("blocking"),
        1 => Some("background"),
        2 => Some("foreground"),
        _ => None,
    }
}

/// GCGlobalMechanisms: its bits as words, joined by `|`. Bits that have no name are left out.
pub fn mechanisms(bits: u32) -> &'static str {
    static WORDS: LazyLock<Vec<String>> = LazyLock::new(|| all_words(MECHANISMS));
    of_words(&WORDS, bits)
}

/// GCRootFlagsMap, of static roots GCRootStaticVarFlagsMap: the bits as words, joined by `|`.
pub fn root_flags(root_kind: &str, bits: u32) -> &'static str {
    const THREAD_LOCAL: u32 = 1;
    if root_kind == "static" {
        return if bits & THREAD_LOCAL != 0 { "ThreadLocal" } else { "" };
    }
    static WORDS: LazyLock<Vec<String>> =
        LazyLock::new(|| all_words(&["Pinning", "WeakRef", "Interior", "RefCounted"]));
    of_words(&WORDS, bits)
}

/// TypeFlagsMap: its bits as words, joined by `|`. The rank of an array is left out.
pub fn type_flags(bits: u32) -> &'static str {
    static WORDS: LazyLock<Vec<String>> =
        LazyLock::new(|| all_words(&["Delegate", "Finalizable", "ComObject", "Array", "ModuleBaseAddress"]));
    of_words(&WORDS, bits)
}

/// The words of every combination of bits with these names.
fn all_words(names: &[&'static str]) -> Vec<String> {
    let join = |bits: u32| {
        let of_bit = |(bit, name): (u32, &&'static str)| (bits >> bit & 1 == 1).then_some(*name);
        (0..).zip(names).filter_map(of_bit).collect::<Vec<_>>().join("|")
    };
    (0..1 << names.len()).map(join).collect()
}

/// The words of the bits that have names.
fn of_words(words: &'static [String], bits: u32) -> &'static str {
    let known = bits as usize & (words.len() - 1);
    words.get(known).map_or("", String::as_str)
}

/// The names of the lowest bits (gcrecord.h).
const MECHANISMS: &[&str] = &["Concurrent", "Compaction", "Promotion", "Demotion", "CardBundles", "Elevation"];

/// Bits of MethodFlagsMap that say how well a method was optimised: a value of OptimizationTier.
pub fn optimization_tier(method_flags: u64) -> u8 {
    (method_flags >> 7 & 7) as u8
}

/// GCRootKindMap, in the words of the table. (ICorProfilerCallback numbers its kinds differently.)
pub fn event_root_kind(value: u64) -> &'static str {
    match value {
        0 => "stack",
        1 => "finalizer",
        2 => "handle",
        3 => "older_generation",
        4 => "sized_ref",
        5 => "overflow",
        6 => "dependent_handle",
        7 => "new_finalizer",
        8 => "steal",
        9 => "background",
        _ => "other",
    }
}

/// GCAllocationKindMap, in the words of the table.
pub fn heap_kind(value: u64) -> Option<&'static str> {
    match value {
        0 => Some("small"),
        1 => Some("large"),
        2 => Some("pinned"),
        _ => None,
    }
}

/// COR_PRF_GC_ROOT_KIND, in the words of the table. (EventPipe numbers its kinds differently.)
pub fn callback_root_kind(value: u64) -> &'static str {
    match value {
        1 => "stack",
        2 => "finalizer",
        3 => "handle",
        _ => "other",
    }
}

/// COR_PRF_SUSPEND_REASON, in the words of the table, which are EventPipe's where it has one.
pub fn callback_suspend_reason(value: u32) -> Option<&'static str> {
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
