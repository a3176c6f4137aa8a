//! The C header writes what the reader reads: the example, and a program that uses the rest of the header.

use std::path::Path;
use std::process::Command;

use crate::support::callbacks::facts;

/// Builds a C program and returns what it prints; `None` without a C compiler (`$CC` or `cc`).
fn printed_by(source: &Path) -> Option<Vec<u8>> {
    let cc = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    if !Command::new(&cc).arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("{}: skipped, there is no C compiler", source.display());
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let mut build = Command::new(cc);
    build.args(["-std=c99", "-Wall", "-Wextra", "-Wno-unused-function", "-Werror", "-I"]);
    build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("recorder")).arg("-o").arg(&program).arg(source);
    let build = build.output().unwrap();
    assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
    let run = Command::new(&program).output().unwrap();
    assert!(run.status.success());
    Some(run.stdout)
}

#[test]
fn the_example_in_c_writes_a_recording_without_a_fault() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorder/example.c");
    assert!(std::fs::read_to_string(&source).unwrap().lines().count() <= 32, "an example of 30 lines");
    let Some(recording) = printed_by(&source) else { return };
    let facts = facts(&recording).unwrap();
    assert_eq!(facts.survived(), [(0x7f00_0000_1000, 0x100, "exact"), (0x7f00_0000_2000, 0x38, "exact")]);
    let [gc] = &facts.collections[..] else { panic!("{:?}", facts.collections) };
    assert_eq!((gc.process_id, gc.generation, gc.kind), (4711, Some(1), Some("blocking")));
    assert_eq!((gc.start_ts_ns, gc.end_ts_ns, gc.complete), (1000, Some(3000), true));
    assert!(facts.surviving.iter().all(|r| (r.generation_before, r.generation_after) == (Some(0), Some(0))));
    assert!(facts.end.complete && facts.problems.is_empty(), "{:?}", facts.problems);

    #[cfg(feature = "cli")]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.corprof");
        std::fs::write(&path, &recording).unwrap();
        for (address, fate) in [("0x7f0000002037", "alive"), ("0x7f0000002038", "dead")] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tracequet"));
            let answer = command.arg("survived").arg(&path).args(["1", address]).output().unwrap();
            assert_eq!(answer.status.code(), Some(0), "{}", String::from_utf8_lossy(&answer.stderr));
            assert!(String::from_utf8_lossy(&answer.stdout).contains(fate), "{address}");
        }
    }
}

const MOVES: &str = r#"
#include "corprof.h"
#include <stdio.h>
int main(void) {
    static uint8_t room[4096];
    uint64_t old[] = { 0x1100, 0x1000, 0x1200 }, now[] = { 0x5000, 0x1000, 0x4000 }, lengths[] = { 24, 0xFFFFFFFF, 32 };
    uint64_t bounds[] = { 0, 0x1000, 0x800, 0x900, 2, 0x4000, 0x2000, 0x3000 }, non_gc[] = { 0x9000, 16, 32 };
    corprof_out out = { room };
    corprof_header(&out, 8, 1, 1000000000, 0, 0, 0x80, 0);
    uint8_t *chunk = corprof_chunk(&out, 2, 0, 0), *record = corprof_record(&out, CORPROF_GC_STARTED, 1, 1);
    corprof_varint(&out, 5), corprof_varint(&out, 0x1F), corprof_varint(&out, 1);
    corprof_bounds(&out, bounds, 2, non_gc, 1);
    corprof_record_end(&out, record);
    record = corprof_record(&out, CORPROF_MOVED, 2, 2);
    corprof_moved(&out, old, now, lengths, 3);
    corprof_record_end(&out, record);
    record = corprof_record(&out, CORPROF_GC_FINISHED, 3, 3);
    corprof_bounds(&out, bounds, 2, non_gc, 1);
    corprof_record_end(&out, record);
    record = corprof_record(&out, CORPROF_END, 4, 4);
    corprof_record_end(&out, record);
    corprof_chunk_end(&out, chunk);
    return fwrite(room, 1, (size_t)(out.p - room), stdout) == (size_t)(out.p - room) ? 0 : 1;
}
"#;

#[test]
fn moved_ranges_and_bounds_written_in_c_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("moves.c");
    std::fs::write(&source, MOVES).unwrap();
    let Some(recording) = printed_by(&source) else { return };
    let facts = facts(&recording).unwrap();
    let seen: Vec<_> =
        facts.moved.iter().map(|r| (r.old_range_start, r.new_range_start, r.range_length, r.length_kind)).collect();
    let expected = [(0x1000, 0x1000, 1 << 32, "clamped"), (0x1100, 0x5000, 24, "exact"), (0x1200, 0x4000, 32, "exact")];
    assert_eq!(seen, expected);
    let bounds: Vec<_> =
        facts.bounds.iter().map(|b| (b.generation, b.range_start, b.range_length, b.range_length_reserved)).collect();
    let each = [(0, 0x1000, 0x800, 0x900), (2, 0x4000, 0x2000, 0x3000), (5, 0x9000, 16, 32)];
    assert_eq!(bounds, [each, each].concat());
    assert_eq!(facts.collections[0].reason, Some("Induced"));
}
