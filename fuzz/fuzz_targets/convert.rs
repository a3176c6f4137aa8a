//! Any bytes as a recording, through all rooms into files. Seeds: samples/*.nettrace.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tracequet::pipeline::{Convert, convert};

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("fuzz.nettrace");
    std::fs::write(&input, bytes).unwrap();
    let output = folder.path().join("out");
    let _ = convert(&Convert { inputs: vec![input], output, ..Convert::default() }, &mut |_| {});
});
