//! The header of a recording.

use crate::frame::crc32;

/// First bytes of every recording.
pub const MAGIC: [u8; 8] = *b".corprof";
/// Version of the format. A reader refuses a greater one.
pub const MAJOR: u16 = 1;
/// Minor version: additions that older readers can skip.
pub const MINOR: u16 = 1;
/// Bytes of the header before its texts.
pub const HEADER_FIXED: usize = 104;
/// The longest header, texts included.
pub const MAX_HEADER: usize = 1 << 20;
/// The longest text that [`Header::encode`] writes, bytes.
const MAX_TEXT: usize = 64 << 10;
/// HRESULT that means "was not asked".
pub const NOT_ASKED: u32 = 0x8000_FFFF;

/// Note: a setting of the profiler was not understood, or could not be followed.
pub const NOTE_SETTING: u64 = 1;
/// Note: the profiler failed and stopped.
pub const NOTE_FAILED: u64 = 2;

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

/// The fields of a header.
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
    /// The start in nanoseconds since 1970.
    pub start_utc_ns: i64,
    /// Event masks asked for: low, high.
    pub asked: [u32; 2],
    /// Event masks that the runtime granted: low, high.
    pub granted: [u32; 2],
    /// The newest ICorProfilerCallback that was asked for and answered.
    pub callback_version: u16,
    /// The newest ICorProfilerInfo that the runtime has.
    pub info_version: u16,
    /// The callbacks that the profiler was set to record: `POLICY_` bits.
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
            let end = (0..=text.len().min(MAX_TEXT)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            let text = text.get(..end).unwrap_or_default();
            out.extend((text.len() as u32).to_le_bytes());
            out.extend(text.as_bytes());
        }
        let len = (out.len() as u32).to_le_bytes();
        set(&mut out, 12, len);
        let crc = crc32(0, &out).to_le_bytes();
        set(&mut out, 16, crc);
        out
    }
}

/// Fills in a field that depends on what follows it.
fn set(out: &mut [u8], at: usize, bytes: [u8; 4]) {
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&bytes);
    }
}
