//! What a merged log says of the symbols of modules, written as Windows 11 does: up to four events for each listing of
//! an image.

use std::path::Path;

use tracequet::Convert;
use tracequet::trace::guid::Guid;
use tracequet::trace::reader::symbols::PortablePdb;

use super::writer::*;
use crate::support::dataset::Dataset;

const PROCESS: u32 = 50;

/// An event of a class and version about an image.
fn about(opcode: u8, version: u8, ticks: i64, base: u64, rest: &[u8]) -> Vec<u8> {
    let payload = [base.to_le_bytes().as_slice(), &PROCESS.to_le_bytes(), rest].concat();
    let mut event = by(full(IMAGE_ID, opcode, ticks, &payload), 0, 0);
    event[6] = version;
    event
}

fn il_pdb(ticks: i64, base: u64, id: u8, path: &str) -> Vec<u8> {
    about(37, 2, ticks, base, &[[id; 16].as_slice(), &1u32.to_le_bytes(), path.as_bytes(), b"\0"].concat())
}

fn debug_entry(ticks: i64, base: u64, stamp: u32, version: [u16; 2]) -> Vec<u8> {
    about(38, 2, ticks, base, &[stamp.to_le_bytes().to_vec(), version.map(u16::to_le_bytes).concat()].concat())
}

#[test]
fn modules_have_the_ids_of_their_portable_symbols() {
    const READY_TO_RUN: u64 = 0x7FFD_0001_0000;
    const PORTABLE: u64 = 0x7FFD_0002_0000;
    const NATIVE: u64 = 0x7FFD_0003_0000;
    const OLD: u64 = 0x7FFD_0004_0000;
    let file = Writer::file(&[
        process(3, 1000, PROCESS, "app.exe", 259),
        image(10, 1010, PROCESS, READY_TO_RUN, r"\Device\System.Threading.dll"),
        // Native code made beforehand has symbols of its own.
        il_pdb(1010, READY_TO_RUN, 3, "System.Threading.pdb"),
        pdb_id_of(1010, PROCESS, READY_TO_RUN, ([4; 16], 1, "System.Threading.ni.pdb")),
        debug_entry(1010, READY_TO_RUN, 2_573_684_319, [0x100, 0x504D]),
        debug_entry(1010, READY_TO_RUN, 7, [0x100, 0]),
        about(40, 1, 1010, READY_TO_RUN, &[]),
        image(10, 1020, PROCESS, PORTABLE, r"\Device\Shop.dll"),
        pdb_id_of(1020, PROCESS, PORTABLE, ([5; 16], 1, "Shop.pdb")),
        debug_entry(1020, PORTABLE, 4_057_300_915, [0x100, 0x504D]),
        // The next one in the same place is native code.
        image(2, 1030, PROCESS, PORTABLE, r"\Device\Shop.dll"),
        image(10, 1040, PROCESS, PORTABLE, r"\Device\native.dll"),
        pdb_id_of(1040, PROCESS, PORTABLE, ([6; 16], 2, "native.pdb")),
        debug_entry(1040, PORTABLE, 99, [0, 0]),
        image(10, 1050, PROCESS, NATIVE, r"\Device\none.dll"),
        about(32, 2, 1050, NATIVE, &[]),
        image(10, 1060, PROCESS, OLD, r"\Device\old.dll"),
        about(35, 2, 1060, OLD, &[[0x3B, 2, 0x6D, 0x4C, 1, 0, 0, 0].as_slice(), b"F:\\old.pdb\0"].concat()),
    ]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("written.etl");
    std::fs::write(&path, file).expect("room");
    let dataset = Dataset::of(&path);
    let table = dataset.table("module");
    let ids = |column: &str| {
        table.texts(column).into_iter().map(|id| id.get(..2).unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids("pdb_guid"), ["04", "05", "06", "", ""]);
    assert_eq!(ids("il_pdb_guid"), ["03", "", "", "", ""]);
    assert_eq!(table.texts("pdb_path"), ["System.Threading.ni.pdb", "Shop.pdb", "native.pdb", "", ""]);
    assert_eq!(table.texts("il_pdb_path"), ["System.Threading.pdb", "", "", "", ""]);
    assert_eq!(table.optional("portable_pdb_stamp"), [Some(2_573_684_319), Some(4_057_300_915), None, None, None]);
    let old = dataset.table("event/KernelTraceControl-ImageId/Nb10PdbId");
    assert_eq!(
        (old.numbers("pdb_time_date_stamp"), old.texts("pdb_name")),
        (vec![0x4C6D_023B], vec!["F:\\old.pdb".to_owned()])
    );
    for (name, rows) in [("NoPdbId", 1), ("DebugEntry", 4), ("Deterministic", 1), ("ILPdbId", 1), ("PdbId", 3)] {
        let event = dataset.table(&format!("event/KernelTraceControl-ImageId/{name}"));
        assert_eq!(event.rows(), rows, "{name}");
        assert!(event.numbers("process_id").iter().all(|process| *process == u64::from(PROCESS)), "{name}");
    }
    // The header of the file is kept raw, nothing else is.
    assert_eq!(dataset.problems(), [("raw_payload", 1)]);
}

/// Events of images without a PDB 7 in a real log: each payload is decoded to its last byte.
#[test]
fn image_ids_of_a_real_log_are_decoded() {
    let Some(folder) = crate::support::expected::shared_folder("image_ids_of_a_real_log_are_decoded", "third") else {
        return;
    };
    let request =
        tracequet::Convert::default().inputs([folder.join("slowppt.etl.zst")]).tables(["event_type", "module"]);
    let dataset = Dataset::with(request);
    let kinds = dataset.table("event_type");
    let (names, providers, decoded) = (kinds.texts("event_name"), kinds.texts("provider_name"), kinds.texts("decoded"));
    let counts = kinds.numbers("event_count");
    let mut found: Vec<(&str, u64, &str)> = (0..kinds.rows())
        .filter(|row| providers[*row] == "KernelTraceControl-ImageId")
        .map(|row| (names[row].as_str(), counts[row], decoded[row].as_str()))
        .collect();
    found.sort_unstable();
    let expected = [
        ("FileVersion", 1_103, "full"),
        ("ImageId", 9_371, "full"),
        ("Nb10PdbId", 2, "full"),
        ("NoPdbId", 162, "full"),
        ("PdbId", 9_207, "full"),
    ];
    assert_eq!(found, expected);
}

/// A runtime that does not say which symbols its modules have: the log does.
#[test]
fn lines_are_found_by_the_symbols_that_the_log_names() {
    const RUNDOWN: Guid = Guid::constant("a669021c-c450-4609-a035-5af59af4df18");
    const BASE: u64 = 0x7FFD_0001_0000;
    const CODE: u64 = 0x7FFE_0000_1000;
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let mut symbols = PortablePdb::of_file(std::fs::read(samples.join("Churn.pdb")).unwrap(), None).unwrap();
    let id = symbols.guid;
    let (token, file, line) = (1..99)
        .map(|row| 0x0600_0000 + row)
        .find_map(|token| symbols.line(token, None).map(|(file, line)| (token, file.to_owned(), line)))
        .expect("a method with a line");
    let utf16z = |text: &str| text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let by = |ticks| By { form: 19, process_id: PROCESS, thread_id: 7, ticks };
    let module = |path: &str| {
        let numbers = [[0xA000u64, 0xB000].map(u64::to_le_bytes).concat(), vec![0; 8]].concat();
        [numbers, utf16z(path), utf16z(""), vec![0; 2]].concat()
    };
    let code = [0x100u32, token, 0].map(u32::to_le_bytes).concat();
    let names = ["Some", "Method", "void ()"].map(utf16z).concat();
    let method = [[0xC000u64, 0xA000, CODE].map(u64::to_le_bytes).concat(), code, names, vec![0; 2]].concat();
    let said = |path: &str, named: Vec<Vec<u8>>| {
        let mut events = vec![
            process(3, 1000, PROCESS, "app.exe", 259),
            thread(3, 1001, PROCESS, 7),
            image(10, 1010, PROCESS, BASE, r"\Device\HarddiskVolume3\app\Churn.dll"),
            sample(2000, 7, CODE + 8, 0),
            stack_walk(2001, 2000, 7, &[CODE + 8]),
            event_by(by(3000), RUNDOWN.0, 154, 1, &[], &module(path)),
            event_by(by(3001), RUNDOWN.0, 144, 1, &[], &method),
        ];
        events.extend(named);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("written.etl");
        std::fs::write(&path, Writer::file(&events)).expect("room");
        let dataset = Dataset::with(Convert::default().inputs([path]).symbols([&samples]));
        let frames = dataset.table("frame");
        assert!(frames.texts("name")[0].starts_with("Some.Method"), "{:?}", frames.texts("name"));
        (frames.texts("file")[0].clone(), frames.optional("line")[0])
    };
    let (found, none) = ((file, Some(u64::from(line))), (String::new(), None));
    let il = [id.0.as_slice(), &1u32.to_le_bytes(), b"Churn.pdb\0"].concat();
    let own = pdb_id_of(1010, PROCESS, BASE, (id.0, 1, "Churn.pdb"));
    assert_eq!(said(r"C:\App\Churn.dll", vec![about(37, 2, 1010, BASE, &il)]), found);
    assert_eq!(said(r"C:\App\Churn.dll", vec![own.clone(), debug_entry(1010, BASE, 7, [0x100, 0x504D])]), found);
    // Symbols of native code, of another file, of another build, and none.
    assert_eq!(said(r"C:\App\Churn.dll", vec![own]), none);
    assert_eq!(said(r"C:\Other\Churn.dll", vec![about(37, 2, 1010, BASE, &il)]), none);
    assert_eq!(said(r"C:\App\Churn.dll", vec![il_pdb(1010, BASE, 9, "Churn.pdb")]), none);
    assert_eq!(said(r"C:\App\Churn.dll", Vec::new()), none);
}
