//! The `.corprof` format as code: its constants and the encoder. `schemas/corprof.md` says what each byte means.
//!
//! The profiler library in `recorder/` includes this file, so it uses nothing but the standard library.

#![allow(clippy::indexing_slicing, reason = "indices are masked, or bounded by the arrays' constant sizes")]

/// First bytes of every recording.
pub const MAGIC: [u8; 8] = *b".corprof";
/// Version of the format; a reader refuses a greater one.
pub const MAJOR: u16 = 1;
/// Additions that older readers can skip.
pub const MINOR: u16 = 0;
/// Bytes of the header before its texts.
pub const HEADER_FIXED: usize = 104;
/// First bytes of every chunk.
pub const CHUNK_MARK: u32 = u32::from_le_bytes(*b"CHNK");
/// Bytes of a chunk before its records.
pub const CHUNK_HEADER: usize = 40;
/// Where in a chunk its commit word lies.
pub const COMMIT_AT: usize = 24;
/// Bytes of a record before its payload.
pub const RECORD_HEADER: usize = 32;
/// The largest payload that a writer makes. More rows go into further records, flagged [`FLAG_CONTINUES`].
pub const MAX_PAYLOAD: usize = 4 << 20;

/// The callback returned a failure to the runtime.
pub const FLAG_FAILED: u8 = 1;
/// More rows of the same callback follow in this thread's next record of the same kind.
pub const FLAG_CONTINUES: u8 = 2;
/// Some rows of the callback were not recorded.
pub const FLAG_CUT: u8 = 4;

/// Policy bit: SurvivingReferences and MovedReferences are recorded.
pub const POLICY_V1: u32 = 1;
/// Policy bit: SurvivingReferences2 and MovedReferences2 are recorded.
pub const POLICY_V2: u32 = 2;
/// Policy bit: the second versions return a failure, so that the first are not called.
pub const POLICY_V2_FAILS: u32 = 4;
/// Policy bit: roots are recorded.
pub const POLICY_ROOTS: u32 = 8;
/// Policy bit: ObjectReferences is recorded.
pub const POLICY_OBJECTS: u32 = 16;
/// Policy bit: ObjectReferences returns a failure, which ends the walk of the heap.
pub const POLICY_STOP_WALK: u32 = 32;
/// Policy bit: suspensions and resumptions are recorded.
pub const POLICY_SUSPENDS: u32 = 64;
/// Policy bit: ObjectAllocated is recorded.
pub const POLICY_ALLOCATIONS: u32 = 128;
/// Policy bit: ObjectsAllocatedByClass is recorded.
pub const POLICY_CLASSES: u32 = 256;
/// Policy bit: handles are recorded.
pub const POLICY_HANDLES: u32 = 512;

/// HRESULT that stands for "was not asked".
pub const NOT_ASKED: u32 = 0x8000_FFFF;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Kinds of records.
        pub mod kind {
            $($(#[$doc])* pub const $name: u8 = $number;)*
        }

        /// The callback, or the word, that a kind of record stands for.
        pub fn kind_name(kind: u8) -> Option<&'static str> {
            match kind {
                $($number => Some($text),)*
                _ => None,
            }
        }
    };
}

kinds! {
    /// The recording ends here as it should.
    END = 1, "End";
    /// The wall clock at a moment.
    CLOCK = 2, "Clock";
    /// A collection starts.
    GC_STARTED = 3, "GarbageCollectionStarted";
    /// A collection ends.
    GC_FINISHED = 4, "GarbageCollectionFinished";
    /// Ranges with 32-bit lengths.
    SURVIVING = 5, "SurvivingReferences";
    /// Ranges.
    SURVIVING2 = 6, "SurvivingReferences2";
    /// Moved ranges with 32-bit lengths.
    MOVED = 7, "MovedReferences";
    /// Moved ranges.
    MOVED2 = 8, "MovedReferences2";
    /// Roots: objects only.
    ROOTS = 9, "RootReferences";
    /// Roots.
    ROOTS2 = 10, "RootReferences2";
    /// An object and what it refers to.
    OBJECT = 11, "ObjectReferences";
    /// Keys, values and dependent handles.
    WEAK = 12, "ConditionalWeakTableElementReferences";
    /// A handle was made.
    HANDLE_CREATED = 13, "HandleCreated";
    /// A handle was destroyed.
    HANDLE_DESTROYED = 14, "HandleDestroyed";
    /// An object waits for its finalizer.
    FINALIZEABLE = 15, "FinalizeableObjectQueued";
    /// Objects in generation 0 by class.
    BY_CLASS = 16, "ObjectsAllocatedByClass";
    /// An object was allocated.
    ALLOCATED = 17, "ObjectAllocated";
    /// Threads are about to be stopped.
    SUSPEND_STARTED = 18, "RuntimeSuspendStarted";
    /// They stand.
    SUSPEND_FINISHED = 19, "RuntimeSuspendFinished";
    /// They were not stopped.
    SUSPEND_ABORTED = 20, "RuntimeSuspendAborted";
    /// They are about to run again.
    RESUME_STARTED = 21, "RuntimeResumeStarted";
    /// They run.
    RESUME_FINISHED = 22, "RuntimeResumeFinished";
    /// One thread stopped.
    THREAD_SUSPENDED = 23, "RuntimeThreadSuspended";
    /// One thread runs again.
    THREAD_RESUMED = 24, "RuntimeThreadResumed";
    /// A managed thread was made.
    THREAD_CREATED = 25, "ThreadCreated";
    /// A managed thread ended.
    THREAD_DESTROYED = 26, "ThreadDestroyed";
    /// A managed thread runs on a thread of the OS.
    THREAD_ASSIGNED = 27, "ThreadAssignedToOSThread";
    /// A managed thread has a name.
    THREAD_NAME = 28, "ThreadNameChanged";
    /// What a ClassID is.
    CLASS = 29, "Class";
    /// What a FunctionID is.
    FUNCTION = 30, "Function";
    /// What a ModuleID is.
    MODULE = 31, "Module";
    /// A ClassID is free to mean another class.
    CLASS_UNLOADED = 32, "ClassUnloadStarted";
    /// A FunctionID is free to mean another function.
    FUNCTION_UNLOADED = 33, "FunctionUnloadStarted";
    /// A ModuleID is free to mean another module.
    MODULE_UNLOADED = 34, "ModuleUnloadStarted";
    /// Records that could not be written.
    LOST = 35, "Lost";
    /// The profiler is attached.
    ATTACHED = 36, "ProfilerAttachComplete";
}

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn crc_tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut n = 0;
    while n < 256 {
        let mut c = n as u32;
        let mut bit = 0;
        while bit < 8 {
            c = if c & 1 == 1 { 0xEDB8_8320 ^ (c >> 1) } else { c >> 1 };
            bit += 1;
        }
        tables[0][n] = c;
        n += 1;
    }
    let mut t = 1;
    while t < 8 {
        let mut n = 0;
        while n < 256 {
            let c = tables[t - 1][n];
            tables[t][n] = (c >> 8) ^ tables[0][(c & 0xFF) as usize];
            n += 1;
        }
        t += 1;
    }
    tables
}

static CRC: [[u32; 256]; 8] = crc_tables();

#[allow(clippy::indexing_slicing, reason = "both indices are masked")]
/// CRC-32 (IEEE 802.3, as in zip and PNG) of bytes that follow others with the CRC `crc`; 0 to begin.
pub fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    let mut crc = !crc;
    let at = |table: usize, byte: u64| CRC[table & 7][(byte & 0xFF) as usize];
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0u8; 8];
        word.copy_from_slice(chunk);
        let w = u64::from_le_bytes(word) ^ u64::from(crc);
        crc = at(7, w) ^ at(6, w >> 8) ^ at(5, w >> 16) ^ at(4, w >> 24);
        crc ^= at(3, w >> 32) ^ at(2, w >> 40) ^ at(1, w >> 48) ^ at(0, w >> 56);
    }
    for byte in chunks.remainder() {
        crc = at(0, u64::from(crc) ^ u64::from(*byte)) ^ (crc >> 8);
    }
    !crc
}

/// What stands in the header of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Chunks begin at multiples of this many bytes: a power of two, at least 8.
    pub chunk_align: u32,
    /// Bytes in a pointer of the process: 4 or 8.
    pub pointer_size: u8,
    /// 1 Linux, 2 Windows, 3 macOS, 0 another.
    pub os: u8,
    /// 1 x86, 2 x64, 3 ARM, 4 ARM64, 0 another.
    pub arch: u8,
    /// Whether the profiler was attached to a running process.
    pub attached: bool,
    /// Processors of the machine; 0 unknown.
    pub processors: u32,
    /// OS process id.
    pub process_id: u64,
    /// When the process began, nanoseconds since 1970; 0 unknown.
    pub process_start_utc_ns: i64,
    /// Ticks in a second.
    pub frequency: u64,
    /// The monotonic clock at the start of the recording.
    pub start_ticks: u64,
    /// The same moment in nanoseconds since 1970.
    pub start_utc_ns: i64,
    /// Event masks asked for: low, high.
    pub asked: [u32; 2],
    /// Event masks that the runtime granted: low, high.
    pub granted: [u32; 2],
    /// The newest ICorProfilerCallback that was asked for and answered.
    pub callback_version: u16,
    /// The newest ICorProfilerInfo that the runtime has.
    pub info_version: u16,
    /// What the profiler was set to record: `POLICY_` bits.
    pub policy: u32,
    /// Which runtime of the process.
    pub clr_instance_id: u16,
    /// COR_PRF_RUNTIME_TYPE: 1 desktop, 2 core; 0 unknown.
    pub runtime_kind: u16,
    /// Such as `CLOCK_MONOTONIC`.
    pub clock_name: String,
    /// Command line.
    pub command_line: String,
    /// Path of the runtime's library.
    pub runtime_path: String,
    /// Version of the runtime.
    pub runtime_version: String,
    /// Name and version of the profiler.
    pub profiler: String,
}

impl Header {
    /// The operating system; empty when not known.
    pub fn os_name(&self) -> &'static str {
        ["", "Linux", "Windows", "macOS"].get(usize::from(self.os)).copied().unwrap_or_default()
    }

    /// The processor architecture; empty when not known.
    pub fn arch_name(&self) -> &'static str {
        ["", "x86", "x64", "arm32", "arm64"].get(usize::from(self.arch)).copied().unwrap_or_default()
    }

    #[allow(clippy::indexing_slicing, reason = "ranges of the fixed part that was just made")]
    /// The bytes of the header; the first chunk follows at the next multiple of `chunk_align`.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        out.extend(MAGIC);
        out.extend(MAJOR.to_le_bytes());
        out.extend(MINOR.to_le_bytes());
        out.extend([0; 8]); // length and CRC, below
        out.extend(self.chunk_align.to_le_bytes());
        out.extend([self.pointer_size, self.os, self.arch, u8::from(self.attached)]);
        out.extend(self.processors.to_le_bytes());
        out.extend(self.process_id.to_le_bytes());
        out.extend(self.process_start_utc_ns.to_le_bytes());
        out.extend(self.frequency.to_le_bytes());
        out.extend(self.start_ticks.to_le_bytes());
        out.extend(self.start_utc_ns.to_le_bytes());
        for mask in self.asked.iter().chain(&self.granted) {
            out.extend(mask.to_le_bytes());
        }
        out.extend(self.callback_version.to_le_bytes());
        out.extend(self.info_version.to_le_bytes());
        out.extend(self.policy.to_le_bytes());
        out.extend(self.clr_instance_id.to_le_bytes());
        out.extend(self.runtime_kind.to_le_bytes());
        out.extend([0; 4]);
        debug_assert_eq!(out.len(), HEADER_FIXED);
        let texts = [&self.clock_name, &self.command_line, &self.runtime_path, &self.runtime_version, &self.profiler];
        for text in texts {
            let end = (0..=text.len().min(1 << 16)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            let text = text.get(..end).unwrap_or_default();
            out.extend((text.len() as u32).to_le_bytes());
            out.extend(text.as_bytes());
        }
        let len = (out.len() as u32).to_le_bytes();
        out[12..16].copy_from_slice(&len);
        let crc = crc32(0, &out).to_le_bytes();
        out[16..20].copy_from_slice(&crc);
        out
    }
}

/// The first [`CHUNK_HEADER`] bytes of a chunk of `capacity` bytes in all: the `number`th of a thread. No record is
/// committed yet.
pub fn chunk_header(capacity: u32, thread_id: u64, thread: u32, number: u32) -> [u8; CHUNK_HEADER] {
    let mut out = [0; CHUNK_HEADER];
    out[0..4].copy_from_slice(&CHUNK_MARK.to_le_bytes());
    out[4..8].copy_from_slice(&capacity.to_le_bytes());
    out[8..16].copy_from_slice(&thread_id.to_le_bytes());
    out[16..20].copy_from_slice(&thread.to_le_bytes());
    out[20..24].copy_from_slice(&number.to_le_bytes());
    out[24..32].copy_from_slice(&commit_word(0).to_le_bytes());
    let crc = crc32(0, &out[0..24]);
    out[32..36].copy_from_slice(&crc.to_le_bytes());
    out
}

/// What the commit word says when so many bytes of records are whole: the count, and its complement.
pub fn commit_word(bytes: u32) -> u64 {
    u64::from(bytes) | u64::from(!bytes) << 32
}

/// The bytes that a commit word vouches for; `None` when it is no commit word.
pub fn committed(word: u64) -> Option<u32> {
    let bytes = word as u32;
    (commit_word(bytes) == word).then_some(bytes)
}

/// The first [`RECORD_HEADER`] bytes of a record with this payload.
pub fn record_header(
    kind: u8,
    flags: u8,
    sequence: u64,
    ticks: u64,
    duration: u32,
    payload: &[u8],
) -> [u8; RECORD_HEADER] {
    let mut out = [0; RECORD_HEADER];
    out[0] = kind;
    out[1] = flags;
    out[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    out[8..16].copy_from_slice(&sequence.to_le_bytes());
    out[16..24].copy_from_slice(&ticks.to_le_bytes());
    out[24..28].copy_from_slice(&duration.to_le_bytes());
    let crc = crc32(crc32(0, &out[0..28]), payload);
    out[28..32].copy_from_slice(&crc.to_le_bytes());
    out
}
