//! Names and lines of native frames by a PDB on this machine, against what llvm-symbolizer says of the same file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tracequet::Convert;
use tracequet::trace::guid::Guid;

use super::writer::*;
use crate::support::dataset::Dataset;

/// The id of samples/native/probe.pdb.
const ID: Guid = Guid::constant("b3162036-30c3-cf32-4c4c-44205044422e");
const USER: u64 = 0x7FF6_0000_0000;
const KERNEL: u64 = 0xFFFF_F800_0000_0000;

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/native")
}

/// Function, file and line of each address of the code.
fn truth() -> BTreeMap<u64, (String, String, u64)> {
    let text = std::fs::read_to_string(samples().join("probe.truth.txt")).unwrap();
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let mut places = BTreeMap::new();
    for row in text.lines().filter(|row| !row.starts_with('#')) {
        let parts: Vec<&str> = row.split('|').collect();
        // The tool names a type as Microsoft's compiler decorates it, the file as it is written.
        let name = parts[2].replace("__int64", "long long");
        let place = (name, parts[3].to_owned(), parts[4].parse().unwrap());
        places.extend((number(parts[0])..number(parts[1])).map(|address| (address, place.clone())));
    }
    places
}

/// A recording with one file in a process and in the kernel, and samples whose stacks have all these addresses of it.
fn recording(addresses: &[u64], id: Guid, age: u32) -> Vec<u8> {
    let symbols = (id.0, age, r"d:\build\probe.pdb");
    let mut events = vec![
        image(3, 1005, 0, KERNEL, r"\SystemRoot\System32\drivers\probe.sys"),
        process(3, 1010, 5, "app.exe", 259),
        thread(3, 1011, 5, 7),
        image(3, 1012, 5, USER, r"\Device\HarddiskVolume3\app\probe.dll"),
    ];
    for (addresses, ticks) in addresses.chunks(100).zip((2000..).step_by(10)) {
        events.push(sample(ticks, 7, KERNEL + addresses[0], 0));
        for base in [KERNEL, USER] {
            let stack: Vec<u64> = addresses.iter().map(|address| base + address).collect();
            events.push(stack_walk(ticks + 1, ticks, 7, &stack));
        }
    }
    events.extend([pdb_id_of(90_000, 0, KERNEL, symbols), pdb_id_of(90_000, 5, USER, symbols)]);
    Writer::file(&events)
}

fn with_symbols(recording: &[u8], symbols: &Path) -> Dataset {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.etl");
    std::fs::write(&file, recording).unwrap();
    Dataset::with(Convert::default().inputs([file]).symbols([symbols]))
}

#[test]
fn native_frames_of_an_etl_have_the_names_and_lines_of_their_pdb() {
    let truth = truth();
    let addresses: Vec<u64> = truth.keys().copied().collect();
    assert!(addresses.len() > 490, "{}", addresses.len());
    let dataset = with_symbols(&recording(&addresses, ID, 1), &samples());
    let frames = dataset.table("frame");
    assert_eq!(frames.rows(), 2 * addresses.len());
    let (names, kinds, offsets) = (frames.texts("name"), frames.texts("kind"), frames.numbers("offset_bytes"));
    let (files, lines) = (frames.texts("file"), frames.optional("line"));
    let (mut functions, mut with_line) = (0, 0);
    for (row, address) in frames.numbers("address").into_iter().enumerate() {
        let (file, kind, rva) = match address.checked_sub(KERNEL) {
            Some(rva) => ("probe.sys", "kernel", rva),
            None => ("probe.dll", "native", address - USER),
        };
        assert_eq!(kinds[row], kind);
        let (function, source, line) = &truth[&rva];
        if names[row] == format!("{file}!?") {
            // Between functions. The tool gives such bytes the name of the public symbol before, and no line.
            assert_eq!((*line, offsets[row]), (0, rva), "{function} {rva:#x}");
            continue;
        }
        // Behind the last byte of a function it is still that one, because a call may be its last instruction.
        let is_end = *line == 0 && truth[&(rva - 1)].2 != 0;
        let expected = if is_end { &truth[&(rva - 1)].0 } else { function };
        assert_eq!(names[row], format!("{file}!{expected}"), "{rva:#x}");
        functions += 1;
        // The line is that of the code before the address. Where a function begins there are two, of which the first
        // has no code; the tool says the first one for the very first byte.
        let before = if offsets[row] < 2 { &truth[&(rva + 1 - offsets[row])] } else { &truth[&(rva - 1)] };
        assert_eq!((&files[row], lines[row].unwrap_or_default()), (&before.1, before.2), "{rva:#x} {source}:{line}");
        with_line += u64::from(before.2 > 0);
    }
    assert!(functions > 2 * 440 && with_line > 2 * 320, "{functions} {with_line}");
    let counts = dataset.summary.inputs[0].frames;
    assert_eq!((counts.named, counts.with_line), (functions, with_line));
}

#[test]
fn a_pdb_is_found_in_every_layout_and_by_its_id_and_age_only() {
    let pdb = std::fs::read(samples().join("probe.pdb")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let named = |place: &str, id, age| {
        let path = folder.path().join(place);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &pdb).unwrap();
        let dataset = with_symbols(&recording(&[0x1020, 0x1191], id, age), folder.path());
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_dir_all(folder.path().join("probe.pdb")).ok();
        assert!(!dataset.summary.has_losses());
        dataset.summary.inputs[0].frames.named
    };
    assert_eq!(named("probe.pdb", ID, 1), 4);
    // As the tools of symbol servers lay them out: id and age without leading zeros.
    assert_eq!(named("probe.pdb/B316203630C3CF324C4C44205044422E1/probe.pdb", ID, 1), 4);
    assert_eq!(named("probe.pdb/b316203630c3cf324c4c44205044422e1/probe.pdb", ID, 1), 4);
    assert_eq!(named("probe.pdb", ID, 2), 0, "of another link of the same file");
    assert_eq!(named("probe.pdb", Guid([7; 16]), 1), 0, "of another build");
    assert_eq!(named("other.pdb", ID, 1), 0);
    // A portable PDB in its place.
    std::fs::copy(samples().parent().unwrap().join("Churn.pdb"), folder.path().join("probe.pdb")).unwrap();
    let dataset = with_symbols(&recording(&[0x1020], ID, 1), folder.path());
    assert_eq!((dataset.summary.inputs[0].frames.named, dataset.summary.has_losses()), (0, false));
}

#[test]
fn symbols_that_are_too_large_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("probe.pdb")).unwrap();
    std::io::Write::write_all(&mut &file, b"Microsoft C/C++ MSF 7.00").unwrap();
    file.set_len((128 << 20) + 1).unwrap();
    let addresses: Vec<u64> = truth().into_keys().take(10).collect();
    let diagnostics = with_symbols(&recording(&addresses, ID, 1), folder.path()).table("diagnostic");
    let at = diagnostics.texts("code").iter().position(|code| code == "large_symbols").expect("it is reported");
    assert!(diagnostics.texts("message")[at].ends_with("128 MB are not read: probe.pdb"));
}

/// An image of NGEN in a log that is not merged: only the runtime says which symbols it has. In them names have the
/// token of the method behind them.
#[test]
fn frames_of_an_ngen_image_have_the_names_of_its_native_pdb() {
    const RUNTIME: Guid = Guid::constant("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4");
    const ENTRY: u64 = 0x10E0;
    let utf16z = |text: &str| text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let folder = tempfile::tempdir().unwrap();
    let mut pdb = std::fs::read(samples().join("probe.pdb")).unwrap();
    let (plain, with_token) = (b"probe_entry\0", b"Add$#a#6000\0");
    let places: Vec<usize> = (0..pdb.len()).filter(|at| pdb[*at..].starts_with(plain)).collect();
    assert!(!places.is_empty());
    for at in places {
        // As long as it was, so that nothing behind it moves.
        pdb[at..at + plain.len()].copy_from_slice(with_token);
    }
    std::fs::write(folder.path().join("shop.ni.pdb"), pdb).unwrap();
    let module = |native: &str, pdb: &str| {
        let ids = [0xA000u64, 0xB000].map(u64::to_le_bytes).concat();
        let none = [vec![0; 16 + 4], utf16z("")].concat();
        let native_pdb = [ID.0.to_vec(), 1u32.to_le_bytes().to_vec(), utf16z(pdb)].concat();
        let flags = [2u32, 0].map(u32::to_le_bytes).concat();
        [ids, flags, utf16z(r"C:\shop\shop.dll"), utf16z(native), vec![0; 2], none, native_pdb].concat()
    };
    let names = |native: &str, pdb: &str| {
        let by = By { form: 19, process_id: 5, thread_id: 7, ticks: 1020 };
        let recording = Writer::file(&[
            process(3, 1010, 5, "app.exe", 259),
            thread(3, 1011, 5, 7),
            image(3, 1012, 5, USER, r"\Device\HarddiskVolume3\Windows\assembly\NativeImages\shop.ni.dll"),
            event_by(by, RUNTIME.0, 152, 2, &[], &module(native, pdb)),
            sample(2000, 7, USER + ENTRY, 0),
            stack_walk(2001, 2000, 7, &[USER + ENTRY + 4]),
        ]);
        with_symbols(&recording, folder.path()).table("frame").texts("name")
    };
    let image = r"C:\WINDOWS\assembly\NativeImages\shop.ni.dll";
    assert_eq!(names(image, r"C:\WINDOWS\assembly\NativeImages\shop.ni.pdb"), ["shop.ni.dll!Add"]);
    assert_eq!(names(image, "shop.ni.pdb"), ["shop.ni.dll!Add"]);
    // The symbols are those of another image.
    assert_eq!(names(r"C:\other\shop.ni.dll", "shop.ni.pdb"), ["shop.ni.dll!?"]);
    assert_eq!(names(r"C:\WINDOWS\assembly\NativeImages\other.ni.dll", "shop.ni.pdb"), ["shop.ni.dll!?"]);
}
