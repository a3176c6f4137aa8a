//! Names and lines of native frames by ELF files on this machine, against what binutils say of the same file.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use tracequet::Convert;

use crate::support::dataset::Dataset;
use crate::support::skip;
use crate::support::writer::{Form, Kind, Row, Type, Writer};

const SYSTEM: &str = "Universal.System";
const BASE: u64 = 0x7F00_1234_0000;

const SOURCE: &str = "\
int helper(int a) {
    int sum = 0;
    for (int i = 0; i < a; i++) sum += i * a;
    return sum;
}

int probe_one(int a) {
    return helper(a) + 1;
}
int probe_two(int a)
{
    int b = probe_one(a);
    return b * helper(b);
}
";

/// What a program prints; `None` when it is not there.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("text"))
}

fn utf16z(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// An event of thread 1 at the tick of its number.
fn row(metadata_id: u32, sequence: u32, stack_id: u32, payload: Vec<u8>) -> Row {
    let ticks = i64::from(sequence);
    Row { metadata_id, sequence, capture_thread: 1, thread: 1, ticks, stack_id, payload, ..Row::default() }
}

/// A recording whose file is mapped at `BASE` with this build id, with a sample of each stack.
fn recording(path: &Path, build_id: &str, stacks: &[Vec<u64>]) -> Vec<u8> {
    let kind = |id, name| Kind { id, provider: SYSTEM, event_id: id, version: 0, name };
    let sample = Kind { id: 3, provider: "Microsoft-DotNETCore-SampleProfiler", event_id: 0, version: 0, name: "" };
    let number = |values: &[u64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let mapping = [number(&[BASE, BASE + 0x10_0000, 0, 7]), utf16z(path.to_str().unwrap())].concat();
    let json = format!("{{\"type\": \"ELF\", \"build_id\": \"{build_id}\"}}");
    let metadata = [number(&[7]), utf16z(&json)].concat();
    let mut rows = vec![row(1, 1, 0, mapping), row(2, 2, 0, metadata)];
    let samples = (1..=stacks.len() as u32).map(|id| row(3, id + 2, id, 2u32.to_le_bytes().to_vec()));
    rows.extend(samples);
    let long = |name| (name, Type::Long);
    let fields = [long("StartAddress"), long("EndAddress"), long("FileOffset"), long("MetadataId")];
    let mut writer = Writer::new(Form::V4);
    writer.described(kind(1, "ProcessMapping"), &[&fields[..], &[("FileName", Type::String)]].concat());
    writer.described(kind(2, "ProcessMappingMetadata"), &[long("Id"), ("SymbolMetadata", Type::String)]);
    writer.metadata(&[sample]).stacks(1, stacks).events(&rows).end()
}

#[test]
fn native_frames_have_the_names_and_lines_of_binutils() {
    let folder = tempfile::tempdir().unwrap();
    let (source, library) = (folder.path().join("probe.c"), folder.path().join("libprobe.so"));
    // Enough of them that compression makes the lines of code smaller.
    let many = |number| format!("int many_{number}(int a) {{\n    a *= {number};\n    return a + 1;\n}}\n");
    let text = SOURCE.to_owned() + &(0..40).map(many).collect::<String>();
    std::fs::write(&source, text).unwrap();
    let [source, library_name] = [&source, &library].map(|path| path.to_str().unwrap());
    let flags = ["-g", "-O0", "-shared", "-fPIC", "-Wl,--build-id", "-o", library_name, source];
    let symbols = output("cc", &flags).and_then(|_| output("nm", &["-S", "--defined-only", library_name]));
    let notes = symbols.as_ref().and_then(|_| output("readelf", &["-n", library_name]));
    let (Some(symbols), Some(notes)) = (symbols, notes) else {
        return skip::note(
            "native_frames_have_the_names_and_lines_of_binutils",
            "no cc or no binutils",
            "`apt-get install gcc binutils`",
        );
    };
    let build_id = notes.split("Build ID: ").nth(1).expect("a build id").split_whitespace().next().unwrap();
    let functions: Vec<(u64, u64, &str)> = symbols
        .lines()
        .filter_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [start, size, "T" | "t", name] => {
                Some((u64::from_str_radix(start, 16).unwrap(), u64::from_str_radix(size, 16).unwrap(), name))
            }
            _ => None,
        })
        .collect();
    assert!(functions.len() >= 3, "{symbols}");
    // Return addresses: behind the first byte, in the middle, behind the last byte.
    let places = functions.iter().flat_map(|(start, size, name)| [1, size / 2, *size].map(|at| (*start, at, *name)));
    let addresses: Vec<String> = places.clone().map(|(start, at, _)| format!("{:x}", start + at - 1)).collect();
    let arguments = ["-e", library_name].into_iter().chain(addresses.iter().map(String::as_str)).collect::<Vec<_>>();
    let reported = output("addr2line", &arguments).unwrap();
    let mut expected = BTreeMap::new();
    for ((start, offset, name), line) in places.zip(reported.lines()) {
        let line = line.split(" (").next().unwrap().to_owned();
        expected.insert(BASE + start + offset, (format!("libprobe.so!{name}"), offset, line));
    }
    let stacks: Vec<Vec<u64>> = expected.keys().map(|address| vec![*address]).collect();
    let symbols = tempfile::tempdir().unwrap();
    let convert = |build_id: &str, path: &Path| {
        let file = folder.path().join("made.nettrace");
        std::fs::write(&file, recording(path, build_id, &stacks)).unwrap();
        Dataset::with(Convert::default().inputs([file]).symbols([symbols.path()]))
    };
    let check = |dataset: &Dataset| {
        let frames = dataset.table("frame");
        let (names, offsets) = (frames.texts("name"), frames.numbers("offset_bytes"));
        let (files, lines) = (frames.texts("file"), frames.optional("line"));
        assert!(frames.bools("is_named").iter().all(|named| *named), "{names:?}");
        for (row, address) in frames.numbers("address").into_iter().enumerate() {
            let (name, offset, line) = &expected[&address];
            assert_eq!((&names[row], offsets[row]), (name, *offset));
            assert_eq!(&format!("{}:{}", files[row], lines[row].unwrap()), line, "{name}+{offset:#x}");
        }
        assert_eq!(frames.rows(), expected.len());
        assert_eq!(dataset.summary.inputs[0].frames.named, expected.len() as u64);
    };
    // Where the recording says it is, in the folder, and in the layout of debug files.
    check(&convert(build_id, &library));
    let elsewhere = Path::new("/no/such/folder/libprobe.so");
    std::fs::copy(&library, symbols.path().join("libprobe.so")).unwrap();
    check(&convert(build_id, elsewhere));
    std::fs::remove_file(symbols.path().join("libprobe.so")).unwrap();
    let debug = symbols.path().join(".build-id").join(&build_id[..2]);
    std::fs::create_dir_all(&debug).unwrap();
    std::fs::copy(&library, debug.join(format!("{}.debug", &build_id[2..]))).unwrap();
    check(&convert(build_id, elsewhere));
    // DWARF in compressed sections, in every form that binutils write; zstd is in those of 2.40 and later.
    let packed = symbols.path().join("libprobe.so");
    for form in ["zlib", "zlib-gnu", "zstd"] {
        let flag = format!("--compress-debug-sections={form}");
        let made = Command::new("objcopy").args([&flag, library_name, packed.to_str().unwrap()]).output().unwrap();
        if form != "zlib" && !made.status.success() {
            continue;
        }
        assert!(made.status.success(), "{form}: {}", String::from_utf8_lossy(&made.stderr));
        let sections = output("readelf", &["-SW", packed.to_str().unwrap()]).unwrap();
        let lines = sections.lines().find(|line| line.contains("debug_line ")).unwrap();
        assert!(lines.contains(".zdebug_line") || lines.split_whitespace().any(|flags| flags == "C"), "{lines}");
        std::fs::remove_dir_all(symbols.path().join(".build-id")).ok();
        assert!(std::fs::metadata(&packed).unwrap().len() < std::fs::metadata(&library).unwrap().len(), "{form}");
        check(&convert(build_id, elsewhere));
        // Bytes of the compressed sections, one by one in another place: names stay, and nothing panics.
        let bytes = std::fs::read(&packed).unwrap();
        for at in (0x3000..bytes.len()).step_by(499) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xFF;
            std::fs::write(&packed, damaged).unwrap();
            assert!(!convert(build_id, elsewhere).summary.has_losses());
        }
    }
    std::fs::remove_file(&packed).unwrap();
    // A file of the same name and of another build.
    let other = build_id.replace(|digit: char| digit.is_ascii_digit(), "e");
    let dataset = convert(&other, &library);
    assert_eq!(dataset.summary.inputs[0].frames.named, 0);
    // Half a file is not read, and half of its debug data neither.
    let bytes = std::fs::read(&library).unwrap();
    std::fs::remove_dir_all(symbols.path().join(".build-id")).ok();
    for length in (0..bytes.len()).step_by(1499) {
        std::fs::write(symbols.path().join("libprobe.so"), &bytes[..length]).unwrap();
        assert!(!convert(build_id, elsewhere).summary.has_losses());
    }
}

/// 46 KB of ELF with two million empty units: what is built of a file is bounded, not only what is read of it.
#[test]
fn debug_data_that_says_much_in_few_bytes_takes_little_memory() {
    const TEST: &str = "debug_data_that_says_much_in_few_bytes_takes_little_memory";
    let Some(shared) = crate::support::expected::shared_folder(TEST, "third") else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    // Address space, in KB: more is an allocation that fails, which ends the program.
    let script = "ulimit -v 1500000; exec \"$0\" convert -q \"$1\" --symbols \"$2\" -o \"$3\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_tracequet")]).arg(shared.join("evil-so.nettrace"));
    let output = command.arg(&shared).arg(&out).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 2)), "{:?}: {errors}", output.status);
    assert!(out.join("frame.parquet").is_file());
}

/// A program that says where it lies in memory and what it was called from, with functions as NativeAOT names methods.
const AOT: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>

void RhpNewFast(void) {
    void *frames[16];
    int count = backtrace(frames, 16);
    Dl_info here;
    dladdr((void *)RhpNewFast, &here);
    printf("%lx\n", (unsigned long)here.dli_fbase);
    for (int at = 0; at < count && frames[at] > here.dli_fbase; at++) printf("%lx\n", (unsigned long)frames[at]);
}
void S_P_CoreLib_System_String__Concat_5(void) { RhpNewFast(); putchar('\n'); }
void App_Shop_Basket__Add(void) { S_P_CoreLib_System_String__Concat_5(); putchar('\n'); }
void App_Program__Main(void) { App_Shop_Basket__Add(); putchar('\n'); }
int main(void) { App_Program__Main(); return 0; }
"#;

/// A recording of NativeAOT of .NET 10: one event says where the program lies, no event lists methods.
fn aot_recording(module: &[u8], stack: &[u64]) -> Vec<u8> {
    let kind = |id, provider, event_id, version| Kind { id, provider, event_id, version, name: "" };
    let kinds =
        [kind(1, "Microsoft-Windows-DotNETRuntimeRundown", 154, 3), kind(2, "Microsoft-Windows-DotNETRuntime", 80, 1)];
    let thrown = [utf16z("System.Exception"), utf16z("no"), vec![0; 8 + 4 + 2 + 2]].concat();
    let rows = [row(2, 1, 1, thrown), row(1, 2, 0, module.to_vec())];
    Writer::new(Form::V4).metadata(&kinds).stacks(1, &[stack.to_vec()]).events(&rows).end()
}

/// The event that says where a program of NativeAOT lies.
fn aot_module(base: u64, path: &str, pdb: ([u8; 16], u32), build_id: &str) -> Vec<u8> {
    const NATIVE: u32 = 2;
    [
        [base, 0].map(u64::to_le_bytes).concat(),
        [NATIVE, 0].map(u32::to_le_bytes).concat(),
        utf16z(""),
        utf16z(path),
        vec![0; 2 + 16 + 4],
        utf16z(""),
        pdb.0.to_vec(),
        pdb.1.to_le_bytes().to_vec(),
        utf16z(""),
        utf16z(build_id),
    ]
    .concat()
}

#[test]
fn frames_of_native_aot_have_the_names_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("aot.c");
    std::fs::write(&source, AOT).unwrap();
    let convert = |recording: &[u8], symbols: &Path| {
        let file = folder.path().join("made.nettrace");
        std::fs::write(&file, recording).unwrap();
        Dataset::with(Convert::default().inputs([file]).symbols([symbols]))
    };
    // Loaded anywhere, and where the linker put it.
    for linked in ["-pie", "-no-pie"] {
        let symbols = folder.path().join(linked);
        std::fs::create_dir(&symbols).unwrap();
        let program = symbols.join("app");
        let [source, program] = [&source, &program].map(|path| path.to_str().unwrap());
        let form = if linked == "-pie" { "-fPIE" } else { "-fno-pie" };
        let flags = ["-g", "-O0", form, linked, "-Wl,--build-id", "-o", program, source];
        let Some(notes) = output("cc", &flags).and_then(|_| output("readelf", &["-n", program])) else {
            return skip::note(
                "frames_of_native_aot_have_the_names_of_the_program",
                "no cc or no binutils",
                "`apt-get install gcc binutils`",
            );
        };
        let build_id = notes.split("Build ID: ").nth(1).expect("a build id").split_whitespace().next().unwrap();
        let said = output(program, &[]).unwrap();
        let said = said.split_whitespace().map(|line| u64::from_str_radix(line, 16).unwrap());
        let [base, stack @ ..] = &said.collect::<Vec<u64>>()[..] else { panic!("{linked}: nothing was said") };
        assert!(stack.len() >= 5, "{linked}: {stack:x?}");
        let module = aot_module(*base, "/srv/app", ([0; 16], 0), build_id);
        let dataset = convert(&aot_recording(&module, &stack[..5]), &symbols);
        let frames = dataset.table("frame");
        let of = |frames: &crate::support::dataset::Table, address: u64| {
            let row = frames.numbers("address").iter().position(|at| *at == address).unwrap();
            (frames.texts("name")[row].clone(), frames.bools("is_framework").get(row).copied())
        };
        let names = [
            ("RhpNewFast", true),
            ("S_P_CoreLib_System_String__Concat_5", true),
            ("App_Shop_Basket__Add", false),
            ("App_Program__Main", false),
            ("main", true),
        ];
        for (address, (name, is_framework)) in stack.iter().zip(names) {
            assert_eq!(of(&frames, *address), (format!("app!{name}"), Some(is_framework)), "{linked}");
        }
        assert!(frames.numbers("module_id").iter().all(|id| id == base));
        assert!(frames.optional("line").iter().all(Option::is_some) && frames.texts("file")[0].ends_with("aot.c"));
        // Own code begins below the framework's.
        let (thrown, sites) = (dataset.table("exception").numbers("callsite_id")[0], dataset.table("callsite"));
        let place = |id: u64| sites.numbers("callsite_id").iter().position(|at| *at == id).unwrap();
        let own = sites.numbers("own_callsite_id")[place(thrown)];
        assert_eq!(sites.numbers("address")[place(own)], stack[2]);

        // Of another build: where they lie is known, and how they would get names.
        let other = aot_module(*base, "/srv/app", ([0; 16], 0), &build_id.replace(['1', '2', '3'], "e"));
        let dataset = convert(&aot_recording(&other, &stack[..5]), &symbols);
        assert!(dataset.table("frame").texts("name").iter().all(|name| name == "app!?"));
        let messages = dataset.table("diagnostic").texts("message");
        assert!(messages.iter().any(|message| message.contains("NativeAOT")), "{messages:?}");
        // No address before the program is in it.
        let module = aot_module(stack[0] + 1, "/srv/app", ([0; 16], 0), build_id);
        let dataset = convert(&aot_recording(&module, &stack[..1]), &symbols);
        assert_eq!(dataset.table("frame").texts("name"), ["[unknown]"]);
        // The event cut.
        let module = aot_module(*base, "/srv/app", ([0; 16], 0), build_id);
        for length in (0..module.len()).step_by(11) {
            convert(&aot_recording(&module[..length], &stack[..1]), &symbols);
        }
    }
}

#[test]
fn frames_of_native_aot_of_windows_have_the_names_of_the_pdb() {
    let symbols = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/native");
    let truth = std::fs::read_to_string(symbols.join("probe.truth.txt")).unwrap();
    let rows = truth.lines().filter(|row| !row.starts_with('#')).map(|row| row.split('|').collect::<Vec<_>>());
    let row = rows.into_iter().find(|row| row[2].contains("probe::run")).expect("a function");
    let rva = u64::from_str_radix(row[0].trim_start_matches("0x"), 16).unwrap();
    let id = tracequet::trace::guid::Guid::constant("b3162036-30c3-cf32-4c4c-44205044422e");
    let module = aot_module(0x7FF6_0000_0000, r"C:\app\probe.exe", (id.0, 1), "");
    let file = tempfile::NamedTempFile::with_suffix(".nettrace").unwrap();
    std::fs::write(&file, aot_recording(&module, &[0x7FF6_0000_0000 + rva + 1])).unwrap();
    let dataset = Dataset::with(Convert::default().inputs([file.path().to_owned()]).symbols([symbols]));
    let names = dataset.table("frame").texts("name");
    assert!(names[0].starts_with("probe.exe!probe::run"), "{names:?}");
}
