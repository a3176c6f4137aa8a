//! Any bytes as symbols: a portable PDB, an assembly with an embedded one, or a native PDB.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracequet_trace::guid::Guid;
use tracequet_trace::reader::symbols::{NativePdb, PortablePdb};

/// The id of the native PDB that this begins with (samples/native): another one is not asked for.
const NATIVE: Guid = Guid::constant("b3162036-30c3-cf32-4c4c-44205044422e");

fuzz_target!(|bytes: &[u8]| {
    if let Some(mut pdb) = NativePdb::parse(bytes.to_vec(), NATIVE, None) {
        for rva in (0xFF0..0x1210).step_by(16).chain([0, u64::from(u32::MAX), u64::MAX]) {
            if let Some(place) = pdb.at(rva) {
                assert!(!place.name.is_empty(), "{place:?}");
            }
        }
    }
    let Some(mut pdb) = PortablePdb::of_file(bytes.to_vec(), None) else { return };
    // Methods by their tokens, and what is no method.
    for token in (0..300).map(|row| 0x0600_0000 | row).chain([0, 0x0600_FFFF, 0x06FF_FFFF, u32::MAX]) {
        for il_offset in [None, Some(0), Some(token & 0xFF), Some(u32::MAX)] {
            if let Some((file, line)) = pdb.line(token, il_offset) {
                assert!(!file.is_empty() && file.len() <= 4096, "a name of {} bytes, line {line}", file.len());
            }
        }
    }
});
