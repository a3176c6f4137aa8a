//! Any bytes as the symbols of an assembly: a portable PDB, or an assembly with an embedded one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracequet::reader::symbols::PortablePdb;

fuzz_target!(|bytes: &[u8]| {
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
