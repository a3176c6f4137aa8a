//! The commands that docs/PROFILER.md gives to profiler authors work, line by line.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::agree::complete;
use crate::support::callbacks::facts;
use crate::support::dual::{Runtime, each_runtime, recorder, without_settings};

/// The fenced blocks of a language in docs/PROFILER.md.
fn blocks(language: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/PROFILER.md");
    let text = std::fs::read_to_string(path).expect("docs/PROFILER.md");
    let fenced = text.split("```").skip(1).step_by(2);
    fenced.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).map(str::to_owned).collect()
}

/// Runs lines of a shell in a folder where `target/release` is what cargo built for this test, `dotnet` runs the sample
/// program, and `tracequet` is the program under test.
fn shell(runtime: &Runtime, folder: &Path, arguments: &str, lines: &str) -> (bool, String) {
    let built = recorder().and_then(Path::parent).expect("the recorder");
    std::fs::create_dir_all(folder.join("target")).expect("a folder");
    std::os::unix::fs::symlink(built, folder.join("target/release")).ok();
    let script = format!(
        "set -eu\ncargo() {{ :; }}\ntracequet() {{ '{}' \"$@\"; }}\n\
         dotnet() {{ TRACEQUET_OUTPUT=$TRACEQUET_OUTPUT '{}' '{}' {arguments}; }}\n{lines}",
        env!("CARGO_BIN_EXE_tracequet"),
        runtime.dotnet.display(),
        runtime.program.display()
    );
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(folder).stdin(Stdio::null());
    without_settings(&mut command).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    let output = command.output().expect("bash");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

/// The recordings in a folder.
fn recordings(folder: &Path) -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let recordings = files.filter(|path| path.extension().is_some_and(|e| e == "corprof"));
    recordings.map(|path| std::fs::read(path).expect("a recording")).collect()
}

#[test]
fn the_lines_of_the_document_record_convert_and_ask() {
    let blocks = blocks("sh");
    let [record, attach] = blocks.as_slice() else { panic!("two blocks of commands: {blocks:?}") };
    for runtime in each_runtime("README") {
        let folder = tempfile::tempdir().expect("a folder");
        let (done, said) = shell(runtime, folder.path(), "churn", record);
        // No object lies at the address of the example.
        assert!(done && said.contains("0x7f3b2c001020"), "{}: {said}", runtime.name);
        let [recording] = recordings(folder.path()).try_into().expect("one recording");
        assert!(complete(&facts(&recording).expect("a recording")).len() >= 10, "{}", runtime.name);
        assert!(folder.path().join("app/gc_surviving_range.parquet").is_file(), "{}: {said}", runtime.name);

        // The program has to last until the recorder has come and seen some collections.
        let said = ["30", "120", "400"].map(|steps| {
            move || {
                let folder = tempfile::tempdir().expect("a folder");
                let program =
                    format!("'{}' '{}' steps {steps} 100", runtime.dotnet.display(), runtime.program.display());
                // Its port opens a moment after the start.
                let open = "until ls ${TMPDIR:-/tmp}/dotnet-diagnostic-$process-*; do sleep 0.1; done; sleep 0.3";
                let lines = format!("{program} & process=$!\n{open}\n{}wait", attach.replace("PID", "$process"));
                let (done, said) = shell(runtime, folder.path(), "", &lines);
                let recordings = recordings(folder.path());
                let found = recordings.iter().map(|recording| complete(&facts(recording).expect("a recording")).len());
                let found: Vec<usize> = found.collect();
                let is_told = done && found.len() == 1 && found[0] >= 5;
                if is_told { Ok(()) } else { Err(format!("{steps} steps: {done} {found:?} {said}")) }
            }
        });
        let failed: Vec<String> = said.iter().map(|attempt| attempt()).map_while(Result::err).collect();
        assert!(failed.len() < said.len(), "{}: {failed:?}", runtime.name);
    }
}

#[test]
fn settings_in_the_documents_are_those_of_the_recorder() {
    let read = |path: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a file");
    let settings = read("crates/recorder/src/settings.rs");
    let names = |text: &str| -> std::collections::BTreeSet<String> {
        let word = |c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        let words = text.split(word).filter(|w| w.starts_with("TRACEQUET_"));
        words.map(str::to_owned).collect()
    };
    let list = settings.split_once("const NAMES").and_then(|(_, rest)| rest.split_once("];")).expect("a list").0;
    let of_recorder = names(list);
    let documented = names(&read("docs/PROFILER.md"));
    assert_eq!(documented, of_recorder, "docs/PROFILER.md");
    let used = names(&(blocks("sh").concat()));
    assert!(!used.is_empty() && used.is_subset(&of_recorder), "docs/PROFILER.md: {used:?}");
}

#[test]
fn the_c_of_the_document_compiles_and_makes_the_payload_of_the_crate() {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped, there is no C compiler");
        return;
    }
    let [lines] = blocks("c").try_into().expect("one block of C");
    let lines = lines.replace("#include \"corprof.h\"\n", "");
    let source = format!(
        "#include \"corprof.h\"\n#include <stdio.h>\nint main(void) {{\n\
         static uint64_t room[512]; corprof_out out = {{ (uint8_t *)room }};\n\
         uint8_t *chunk = corprof_chunk(&out, 1024, 1, 0, 0), *first = out.p;\n\
         uint64_t starts[] = {{ 0x1000, 0x2000 }}, lengths[] = {{ 0x100, 0x38 }}, sequence = 41, ticks = 7; uint32_t count = 2;\n\
         {lines}\nfwrite(first, 1, (size_t)(out.p - first), stdout); return 0; }}\n"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let (file, program) = (folder.path().join("readme.c"), folder.path().join("readme"));
    std::fs::write(&file, source).expect("a file");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/recorder");
    let mut compile = Command::new("cc");
    compile.args(["-Wall", "-Werror", "-Wno-unused-function", "-o"]).arg(&program).arg("-I").arg(include).arg(&file);
    let output = compile.output().expect("cc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let written = Command::new(&program).output().expect("it runs").stdout;

    use tracequet::trace::reader::callback::format::{kind, record_header};
    let mut payload = Vec::new();
    // Not the crate's `surviving`, which takes off the zero bits that all values end in; C leaves the values as they
    // are.
    tracequet::trace::reader::callback::encode::varint(&mut payload, 2);
    payload.push(0);
    for gap in [0x1000, 0x2000 - 0x1100] {
        tracequet::trace::reader::callback::encode::zigzag(&mut payload, gap);
    }
    for length in [0x100, 0x38] {
        tracequet::trace::reader::callback::encode::varint(&mut payload, length);
    }
    let mut expected = record_header(kind::SURVIVING2, 0, 42, 7, 0, &payload).to_vec();
    expected.extend(&payload);
    assert_eq!(written, expected);
}
