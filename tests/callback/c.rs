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
    build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/recorder")).arg("-o").arg(&program).arg(source);
    let build = build.output().unwrap();
    assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
    let run = Command::new(&program).output().unwrap();
    assert!(run.status.success());
    Some(run.stdout)
}

#[test]
fn the_example_in_c_writes_a_recording_without_a_fault() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/recorder/example.c");
    assert!(std::fs::read_to_string(&source).unwrap().lines().count() <= 32, "an example of 30 lines");
    let Some(recording) = printed_by(&source) else { return };
    let facts = facts(&recording).unwrap();
    assert_eq!(facts.survived(), [(0x7f00_0000_1000, 0x100, "exact"), (0x7f00_0000_2000, 0x38, "exact")]);
    let [gc] = &facts.collections[..] else { panic!("{:?}", facts.collections) };
    assert_eq!((gc.process_id, gc.generation, gc.kind), (4711, Some(1), Some("blocking")));
    assert_eq!((gc.start_ts_ns, gc.end_ts_ns, gc.complete), (1000, Some(3000), true));
    assert!(facts.surviving.iter().all(|r| (r.generation_before, r.generation_after) == (Some(0), Some(0))));
    assert!(facts.end.complete && facts.problems.is_empty(), "{:?}", facts.problems);

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
    static uint64_t room[512];
    uint64_t old[] = { 0x1100, 0x1000, 0x1200 }, now[] = { 0x5000, 0x1000, 0x4000 }, lengths[] = { 24, 0xFFFFFFFF, 32 };
    uint64_t bounds[] = { 0, 0x1000, 0x800, 0x900, 2, 0x4000, 0x2000, 0x3000 }, non_gc[] = { 0x9000, 16, 32 };
    corprof_out out = { (uint8_t *)room };
    corprof_header(&out, 8, 1, 1000000000, 0, 0, 0x80, 0);
    uint8_t *chunk = corprof_chunk(&out, 1024, 2, 0, 0), *record = corprof_record(&out, CORPROF_GC_STARTED, 1, 1);
    corprof_varint(&out, 5), corprof_varint(&out, 0x1F), corprof_varint(&out, 1);
    corprof_bounds(&out, bounds, 2, non_gc, 1);
    corprof_record_end(&out, chunk, record);
    record = corprof_record(&out, CORPROF_MOVED, 2, 2);
    corprof_moved(&out, old, now, lengths, 3);
    corprof_record_end(&out, chunk, record);
    record = corprof_record(&out, CORPROF_GC_FINISHED, 3, 3);
    corprof_bounds(&out, bounds, 2, non_gc, 1);
    corprof_record_end(&out, chunk, record);
    record = corprof_record(&out, CORPROF_END, 4, 4);
    corprof_record_end(&out, chunk, record);
    corprof_chunk_end(&out, chunk);
    size_t bytes = (size_t)(out.p - (uint8_t *)room);
    return fwrite(room, 1, bytes, stdout) == bytes ? 0 : 1;
}
"#;

/// A process that is killed in the midst of its third record: what it prints is what a mapped file would hold.
const KILLED: &str = r#"
#include "corprof.h"
#include <stdio.h>
int main(void) {
    static uint64_t room[512];
    uint64_t roots[] = { 0x1000, 1, 0, 7 }, references[] = { 0x2000, 0x3000 };
    corprof_out out = { (uint8_t *)room };
    corprof_header(&out, 8, 1, 1000000000, 0, 0, 0x80, 0);
    uint8_t *chunk = corprof_chunk(&out, 2048, 2, 0, 0), *record = corprof_record(&out, CORPROF_ROOTS2, 1, 1);
    corprof_columns(&out, roots, 1, 4);
    corprof_record_end(&out, chunk, record);
    record = corprof_record(&out, CORPROF_OBJECT, 2, 2);
    corprof_varint(&out, 0x1000), corprof_varint(&out, 5), corprof_columns(&out, references, 2, 1);
    corprof_flags(record, CORPROF_FLAG_CUT);
    corprof_record_end(&out, chunk, record);
    record = corprof_record(&out, CORPROF_THREAD_NAME, 3, 3);
    corprof_varint(&out, 4711), corprof_text(&out, "never committed");
    return fwrite(room, 1, sizeof room, stdout) == sizeof room ? 0 : 1;
}
"#;

fn run(name: &str, program: &str) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join(name);
    std::fs::write(&source, program).unwrap();
    printed_by(&source)
}

#[test]
fn a_profiler_in_c_that_is_killed_loses_the_record_at_hand_only() {
    let Some(recording) = run("killed.c", KILLED) else { return };
    let facts = facts(&recording).unwrap();
    assert_eq!(facts.records, 2);
    assert!(["cut_record", "no_end_mark", "torn_record"].iter().all(|code| facts.codes().contains(code)));
}

/// Every kind and flag of the crate stands in the header, with the same number.
#[test]
fn the_header_for_c_has_all_kinds() {
    use tracequet::trace::reader::callback::format;

    let header =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/recorder/corprof.h")).unwrap();
    let crate_ =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/corprof/src/kind.rs")).unwrap();
    let header = header.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = 0;
    for line in crate_.lines().map(str::trim).filter(|line| line.ends_with(';') && line.contains(" = ")) {
        let Some((name, rest)) = line.split_once(" = ") else { continue };
        let Some((number, _)) = rest.split_once(", \"") else { continue };
        assert!([",", " }"].iter().any(|end| header.contains(&format!("CORPROF_{name} = {number}{end}"))), "{name}");
        found += 1;
    }
    assert_eq!(found, format::kind::ALL.len());
    let flags = [("FAILED", format::FLAG_FAILED), ("CONTINUES", format::FLAG_CONTINUES), ("CUT", format::FLAG_CUT)];
    assert!(flags.iter().all(|(name, flag)| header.contains(&format!("CORPROF_FLAG_{name} = {flag}"))));
}

#[test]
fn moved_ranges_and_bounds_written_in_c_come_back() {
    let Some(recording) = run("moves.c", MOVES) else { return };
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
