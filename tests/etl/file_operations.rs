//! Operations on files. No recording at hand has such events: they are written here from the documented layouts.

use super::writer::*;
use crate::support::dataset::Dataset;

const THREAD: u32 = 101;

/// A FileIo event of a version for 64-bit pointers: version 2 has the thread as a pointer behind the packet, version 3
/// as a number behind the pointers.
fn operation(version: u8, opcode: u8, ticks: i64, irp: u64, pointers: &[u64], rest: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    if matches!(opcode, 67 | 68) {
        payload.extend(4096u64.to_le_bytes());
    }
    payload.extend(irp.to_le_bytes());
    if version == 2 {
        payload.extend(u64::from(THREAD).to_le_bytes());
    }
    pointers.iter().for_each(|pointer| payload.extend(pointer.to_le_bytes()));
    if version == 3 {
        payload.extend(THREAD.to_le_bytes());
    }
    payload.extend(rest);
    perf_info(4, opcode, version, ticks, &payload)
}

fn end(ticks: i64, irp: u64, result: u64, status: u32) -> Vec<u8> {
    let payload = [irp.to_le_bytes().as_slice(), &result.to_le_bytes(), &status.to_le_bytes()].concat();
    perf_info(4, 76, 2, ticks, &payload)
}

fn written(events: &[Vec<u8>]) -> Dataset {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("written.etl");
    std::fs::write(&path, Writer::new().events(1, events).bytes).expect("room");
    Dataset::of(&path)
}

#[test]
fn operations_on_files_end_with_their_packets() {
    const OBJECT: u64 = 0xFFFF_A000_0000_1000;
    const KEY: u64 = 0xFFFF_B000_0000_2000;
    for version in [2, 3] {
        let numbers = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        let opening = [numbers(&[0x0100_0020, 0x80, 3]), utf16(r"\Device\a.txt")].concat();
        let dataset = written(&[
            thread(3, 1000, 50, THREAD),
            operation(version, 64, 1010, 1, &[OBJECT], &opening),
            end(1020, 1, 1, 0),
            operation(version, 67, 1030, 2, &[OBJECT, KEY], &numbers(&[8192, 0])),
            // Another operation goes on meanwhile, on a packet of its own.
            operation(version, 74, 1032, 3, &[OBJECT, KEY, 9], &numbers(&[5])),
            end(1035, 3, 24, 0),
            end(1040, 2, 100, 0),
            // The end of this one is missing: its packet is used again.
            operation(version, 68, 1050, 2, &[OBJECT, KEY], &numbers(&[10, 0])),
            operation(version, 65, 1060, 2, &[OBJECT, KEY], &[]),
            end(1065, 2, 0, 0xC000_0008),
            operation(version, 72, 1070, 4, &[OBJECT, KEY], &[numbers(&[64, 1, 0]), utf16("*.dll")].concat()),
        ]);
        let table = dataset.table("file_io");
        let rows: Vec<_> = table.texts("kind").into_iter().zip(table.signed("duration_ns")).collect();
        let rows: Vec<(&str, _)> = rows.iter().map(|(kind, duration)| (kind.as_str(), *duration)).collect();
        let expected = [
            ("create", Some(1000)),
            ("read", Some(1000)),
            ("query_info", Some(300)),
            ("write", None),
            ("cleanup", Some(500)),
            ("list_directory", None),
        ];
        assert_eq!(rows, expected, "version {version}");
        assert_eq!(table.numbers("result"), [1, 100, 24, 0, 0, 0]);
        assert_eq!(table.optional("status"), [Some(0), Some(0), Some(0), None, Some(0xC000_0008), None]);
        assert_eq!(table.texts("path"), [r"\Device\a.txt", "", "", "", "", "*.dll"]);
        assert_eq!(table.numbers("size_bytes"), [0, 8192, 0, 10, 0, 64]);
        assert_eq!(table.numbers("byte_offset"), [0, 4096, 0, 4096, 0, 0]);
        assert_eq!(table.numbers("file_key"), [0, KEY, KEY, KEY, KEY, KEY]);
        assert_eq!(table.numbers("file_object"), [OBJECT; 6]);
        assert_eq!(
            (table.numbers("process_id"), table.numbers("thread_id")),
            (vec![50; 6], vec![u64::from(THREAD); 6])
        );
        // The header of the file is kept raw, nothing else is.
        assert_eq!(dataset.problems(), [("raw_payload", 1)]);
    }
}

/// Windows 8 and later write the path of a deletion, of a new name and of a link as an event beside that of the
/// operation.
#[test]
fn deletions_renames_and_links_have_their_paths() {
    const OBJECT: u64 = 0xFFFF_A000_0000_1000;
    let of = |opcode, ticks, irp, path: &str| {
        let rest = [10u32.to_le_bytes().to_vec(), if path.is_empty() { vec![] } else { utf16(path) }].concat();
        operation(3, opcode, ticks, irp, &[OBJECT, 7, 9], &rest)
    };
    let dataset = written(&[
        thread(3, 1000, 50, THREAD),
        of(70, 1010, 1, ""),
        of(79, 1011, 1, r"\Device\gone.txt"),
        end(1020, 1, 0, 0),
        // The path comes first; and a rename that begins as the setting of information.
        of(80, 1030, 2, r"\Device\new.txt"),
        of(71, 1030, 2, ""),
        end(1040, 2, 0, 0),
        of(69, 1050, 3, ""),
        of(80, 1051, 3, r"\Device\newer.txt"),
        end(1060, 3, 0, 0),
        // A link has no other event. Its packet is used again, by a deletion of something else.
        of(81, 1070, 4, r"\Device\link.txt"),
        end(1080, 4, 0, 0),
        of(70, 1090, 4, ""),
        end(1095, 4, 0, 0),
        // A deletion whose end is lost, and another one with the same packet.
        of(79, 1100, 5, r"\Device\first.txt"),
        of(79, 1110, 5, r"\Device\second.txt"),
        end(1120, 5, 0, 0xC000_0022),
    ]);
    let table = dataset.table("file_io");
    let (kinds, paths) = (table.texts("kind"), table.texts("path"));
    let rows: Vec<(&str, &str, Option<i64>)> = (0..table.rows())
        .map(|row| (kinds[row].as_str(), paths[row].as_str(), table.signed("duration_ns")[row]))
        .collect();
    let expected = [
        ("delete", r"\Device\gone.txt", Some(1000)),
        ("rename", r"\Device\new.txt", Some(1000)),
        ("rename", r"\Device\newer.txt", Some(1000)),
        ("set_link", r"\Device\link.txt", Some(1000)),
        ("delete", "", Some(500)),
        ("delete", r"\Device\first.txt", None),
        ("delete", r"\Device\second.txt", Some(1000)),
    ];
    assert_eq!(rows, expected);
    assert_eq!(table.optional("status"), [Some(0), Some(0), Some(0), Some(0), Some(0), None, Some(0xC000_0022)]);
    assert_eq!(dataset.problems(), [("raw_payload", 1)]);
}

/// The bytes of documented payloads of 64-bit and 32-bit systems.
#[test]
fn kernel_layouts_have_their_documented_sizes() {
    let sizes = [
        ("Windows-Kernel-Thread", 36, 1, 20, 20),
        ("Windows-Kernel-Thread", 36, 2, 24, 24),
        ("Windows-Kernel-Thread", 36, 4, 24, 24),
        ("Windows-Kernel-Thread", 50, 2, 8, 8),
        ("Windows-Kernel-FileIo", 67, 2, 48, 32),
        ("Windows-Kernel-FileIo", 67, 3, 44, 32),
        ("Windows-Kernel-FileIo", 73, 3, 28, 16),
        ("Windows-Kernel-FileIo", 76, 2, 20, 12),
        ("Windows-Kernel-FileIo", 37, 2, 36, 24),
        ("Windows-Kernel-FileIo", 37, 3, 44, 32),
        ("Windows-Kernel-PageFault", 10, 2, 16, 8),
        ("Windows-Kernel-PageFault", 98, 2, 24, 16),
        ("Windows-Kernel-PerfInfo", 67, 2, 20, 16),
        ("Windows-Kernel-PerfInfo", 68, 2, 16, 12),
        ("Windows-Kernel-TcpIp", 12, 2, 48, 44),
        ("Windows-Kernel-TcpIp", 13, 2, 32, 28),
    ];
    for (provider, id, version, wide, narrow) in sizes {
        let layout =
            tracequet::trace::catalog::provider(provider).unwrap().as_ref().unwrap().layout(id, version).unwrap();
        let size = |pointer: usize| -> usize {
            let of = |field: &String| {
                let kind = field.split(": ").nth(1).unwrap().split(" (").next().unwrap();
                match kind {
                    "u8" | "i8" => 1,
                    "u16" | "u16be" => 2,
                    "u32" | "i32" => 4,
                    "u64" | "i64" => 8,
                    "pointer" => pointer,
                    "bytes[4]" => 4,
                    other => panic!("{other}"),
                }
            };
            layout.fields.iter().map(of).sum()
        };
        assert_eq!((size(8), size(4)), (wide, narrow), "{provider} {id} version {version}");
    }
}
