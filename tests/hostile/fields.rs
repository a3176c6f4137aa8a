//! Kinds of events with odd fields and names: each costs no more than itself.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::dataset::Table;
use crate::support::patience::ends;
use crate::support::writer::{Form, Kind, Row, Type, Writer};

const KIND: Kind<'static> = Kind { id: 1, provider: "Shop", event_id: 1, version: 0, name: "Order" };

fn row(metadata_id: u32, sequence: u32, payload: Vec<u8>) -> Row {
    Row { metadata_id, sequence, capture_thread: 1, thread: 1, ticks: 10, payload, ..Row::default() }
}

/// Converts a recording, with this much address space (KB) where the system can bound it.
fn convert(folder: &Path, bytes: &[u8], address_space: u32) -> Output {
    let input = folder.join("odd.nettrace");
    std::fs::write(&input, bytes).unwrap();
    let (program, out) = (env!("CARGO_BIN_EXE_tracequet"), folder.join("out"));
    if cfg!(target_os = "linux") {
        let (input, out) = (input.display(), out.display());
        let script = format!("ulimit -v {address_space}; exec {program} convert {input} -o {out} --json");
        return Command::new("sh").args(["-c", &script]).output().unwrap();
    }
    Command::new(program).arg("convert").arg(input).arg("-o").arg(out).arg("--json").output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// One event of `count` fields.
fn event_of(fields: &[(&str, Type)]) -> Vec<u8> {
    let payload = (0..fields.len()).map(|i| i as u8).collect();
    Writer::new(Form::V4).described(KIND, fields).events(&[row(1, 1, payload)]).end()
}

#[test]
fn fields_of_one_name_have_columns_with_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let recording = event_of(&vec![("same", Type::Byte); 6000]);
    let output = ends("fields of one name", || convert(folder.path(), &recording, 2_000_000));
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let table = Table::open(&folder.path().join("out/event/Shop/Order.parquet"));
    assert_eq!(
        (table.numbers("same"), table.numbers("same_2"), table.numbers("same_1000")),
        (vec![0], vec![1], vec![231])
    );
}

/// There are columns for the first thousand; the whole payload is kept, and the diagnostic says so.
#[test]
fn more_fields_than_columns_are_kept_raw_and_told() {
    for count in [10_000, 40_000] {
        let names: Vec<String> = (0..count).map(|i| format!("field{i}")).collect();
        let fields: Vec<_> = names.iter().map(|name| (name.as_str(), Type::Byte)).collect();
        let folder = tempfile::tempdir().unwrap();
        let output = convert(folder.path(), &event_of(&fields), 1_000_000);
        assert_eq!(output.status.code(), Some(2), "{count}: {}", said(&output));
        let table = Table::open(&folder.path().join("out/event/Shop/Order.parquet"));
        assert_eq!(table.numbers("field1000"), [232]);
        assert!(table.names().len() < 1100, "{count}: {}", table.names().len());
        let problem = format!("the table has no columns for the last {} fields", count - 1024);
        assert_eq!(table.texts("decode_problem"), [problem]);
        let diagnostic = Table::open(&folder.path().join("out/diagnostic.parquet"));
        assert_eq!(diagnostic.texts("code"), ["too_many_fields"]);
    }
}

#[test]
fn an_object_without_fields_refuses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(Form::V4);
    writer.described(KIND, &[("a", Type::Byte), ("nothing", Type::EmptyObject), ("b", Type::Byte)]);
    let bytes = writer.events(&[row(1, 1, vec![7, 8]), row(1, 2, vec![9, 10])]).end();
    for format in ["parquet", "arrow"] {
        let input = folder.path().join("odd.nettrace");
        std::fs::write(&input, &bytes).unwrap();
        let out = folder.path().join(format);
        let mut program = Command::new(env!("CARGO_BIN_EXE_tracequet"));
        let output =
            program.arg("convert").arg(&input).arg("-o").arg(&out).args(["--format", format]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{format}: {}", said(&output));
    }
    let table = Table::open(&folder.path().join("parquet/event/Shop/Order.parquet"));
    assert_eq!((table.numbers("a"), table.numbers("b")), (vec![7, 9], vec![8, 10]));
}

/// Most file systems allow 255 bytes for a name, whatever its characters.
#[test]
fn long_names_of_wide_characters_make_files() {
    let folder = tempfile::tempdir().unwrap();
    let name = "\u{20000}".repeat(80);
    let kinds = [KIND, Kind { id: 2, event_id: 2, name: &name, ..KIND }, Kind { id: 3, provider: &name, ..KIND }];
    let rows = [row(1, 1, vec![]), row(2, 2, vec![]), row(3, 3, vec![])];
    let output = convert(folder.path(), &Writer::new(Form::V4).metadata(&kinds).events(&rows).end(), 2_000_000);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let types = Table::open(&folder.path().join("out/event_type.parquet"));
    for table in types.texts("table_name") {
        assert!(folder.path().join("out").join(format!("{table}.parquet")).is_file(), "{table}");
    }
}

/// Whoever makes a recording knows this source: with seeds that are always the same, ids can be chosen that collide.
#[test]
fn no_hash_map_has_a_fixed_seed() {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                for fixed in ["FixedState", "SeedableRandomState", "BuildHasherDefault"] {
                    assert!(!text.contains(fixed), "{}: {fixed}", path.display());
                }
            }
        }
    }
}

#[test]
fn ids_that_collide_under_a_fixed_seed_are_read() {
    use crate::support::expected::shared_traces;
    let Some(folder) = shared_traces("ids_that_collide_under_a_fixed_seed_are_read") else { return };
    let out = tempfile::tempdir().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_tracequet"));
    let input = folder.join("hostile/coll400000.nettrace.zst");
    program.arg("convert").arg(input).arg("-o").arg(out.path().join("out"));
    // A second in a release build, a minute with a fixed seed; this build takes ten times as long.
    let output = ends("a conversion of ids that collide", || program.output().unwrap());
    assert!(matches!(output.status.code(), Some(0 | 2)), "{}", said(&output));
}
