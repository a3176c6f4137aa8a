//! Many small things that refer to one large thing: it is kept once, or counted each time.

use std::path::Path;
use std::process::Command;

use corprof::{encode, kind};
use tracequet::trace::event::Decoding;
use tracequet::trace::reader::{Field, FieldType, Layout};

use crate::etl::writer as etl;
use crate::support::callbacks::Making;
use crate::support::collect::Recording;
use crate::support::dataset::Dataset;
use crate::support::writer::{Form, Kind, Row, Type, Writer, varuint};

/// Address space of a command, in KB. What each of the recordings below refers to has several times as much.
const ADDRESS_SPACE: u32 = 1_600_000;

/// Runs a command that may hold no more than its share of memory; gives its exit code and both of its outputs.
fn in_bounds(arguments: &[&str], recording: &Path) -> (Option<i32>, String) {
    let script = format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_tracequet")]).args(arguments).arg(recording);
    let output = shell.output().expect("a shell");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.code(), said.concat())
}

const PROVIDER: [u8; 16] = [0x11; 16];
const EVENTS: u16 = 20_000;

/// The text of a manifest whose events all have one message of 200 KB: 4 GB if each had its own.
fn one_message() -> String {
    let events: String = (0..EVENTS).map(|id| format!("<event value='{id}' message='$(string.x)'/>")).collect();
    let message = "Y".repeat(200_000);
    format!(
        "<m><provider name='P' guid='{{11111111-1111-1111-1111-111111111111}}'><events>{events}</events></provider>\
         <localization><resources culture='en-US'><stringTable><string id='x' value='{message}'/></stringTable>\
         </resources></localization></m>"
    )
}

/// The pieces of a manifest as an EventSource sends them.
fn pieces(text: &str) -> Vec<Vec<u8>> {
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(60_000).collect();
    let piece = |(number, piece): (usize, &&[u8])| {
        let head = [1, 1, 0, 0x5B, pieces.len() as u8, 0, number as u8, 0];
        etl::event(19, PROVIDER, 0xFFFE, etl::TICKS + 1, &[], &[&head[..], piece].concat())
    };
    pieces.iter().enumerate().map(piece).collect()
}

fn one_of_each() -> impl Iterator<Item = Vec<u8>> {
    (0..EVENTS).map(|id| etl::event(19, PROVIDER, id, etl::TICKS + 2, &[], b"abcd"))
}

#[test]
fn a_message_that_many_events_of_a_manifest_have_is_kept_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = folder.path().join("a.etl");
    let events: Vec<_> = pieces(&one_message()).into_iter().chain(one_of_each()).collect();
    std::fs::write(&recording, etl::Writer::sized_file(&events, 1 << 17, 10_000_000)).expect("room");
    let out = folder.path().join("out");
    for arguments in [&["inspect", "--json"][..], &["convert", "-q", "-o", out.to_str().expect("a name")]] {
        let (code, said) = in_bounds(arguments, &recording);
        assert!(matches!(code, Some(0 | 2)) && !said.contains("panic"), "{arguments:?}: {code:?} {said}");
    }
    // Each kind of event counts its message: those that do not fit have none, which is said.
    let messages = crate::support::dataset::Table::open(&out.join("event_type.parquet")).texts("message_template");
    let kept: usize = messages.iter().map(String::len).sum();
    assert!((20 << 20..=24 << 20).contains(&kept), "{kept}");
}

#[test]
fn a_message_that_many_events_of_a_given_manifest_have_is_kept_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let [recording, manifest, out] = ["a.etl", "a.man", "out"].map(|name| folder.path().join(name));
    let events: Vec<_> = one_of_each().collect();
    std::fs::write(&recording, etl::Writer::sized_file(&events, 1 << 17, 10_000_000)).expect("room");
    std::fs::write(&manifest, one_message()).expect("room");
    let [manifest, named] = [&manifest, &out].map(|path| path.to_str().expect("a name"));
    let (code, said) = in_bounds(&["convert", "--manifest", manifest, "-o", named], &recording);
    assert!(code == Some(2) && said.contains("too_much_text"), "{code:?} {said}");
    let messages = crate::support::dataset::Table::open(&out.join("event_type.parquet")).texts("message_template");
    let kept: usize = messages.iter().map(String::len).sum();
    assert!((20 << 20..=24 << 20).contains(&kept), "{kept}");
}

/// An embedded schema of 64 KB whose fields have all the same name, which takes half of it.
#[test]
fn a_name_that_all_fields_of_an_embedded_schema_have_is_no_schema() {
    const EVENT_INFO: [u8; 16] =
        [0xC1, 0xF6, 0xCC, 0xBB, 0xD1, 0x6C, 0xC4, 0x48, 0x80, 0xFF, 0x83, 0x94, 0x82, 0xE3, 0x76, 0x71];
    let layout = |fields: u32, name: usize| {
        let mut blob = vec![0u8; 0x70];
        blob[..16].copy_from_slice(&PROVIDER);
        etl::patch(&mut blob, 0x20, 1u16.to_le_bytes());
        for place in [0x64, 0x68] {
            etl::patch(&mut blob, place, fields.to_le_bytes());
        }
        let at = 0x70 + fields * 24;
        (0..fields).for_each(|_| blob.extend([0, at, 8, 0, 1, 0].map(u32::to_le_bytes).concat()));
        blob.extend(etl::utf16(&"n".repeat(name)));
        blob.extend([0, 0]);
        let events =
            [etl::full(EVENT_INFO, 32, etl::TICKS, &blob), etl::event(19, PROVIDER, 1, etl::TICKS + 1, &[], &[])];
        let recording = Recording::mapped(&etl::Writer::sized_file(&events, 1 << 17, 10_000_000));
        recording.info_of(recording.events.last().expect("an event")).event_type.layout.clone()
    };
    let fields = |layout: &Layout| match layout {
        Layout::Etw(etw) => etw.fields.as_ref().map(Vec::len),
        _ => None,
    };
    assert_eq!(
        [layout(1, 15_000), layout(3, 15_000), layout(1000, 15_000)].each_ref().map(fields),
        [Some(1), Some(3), None]
    );
}

/// Kinds of events of the runtime that differ in a keyword alone.
fn alike(provider: &str, event_id: u8, version: u8, kinds: u32) -> Vec<u8> {
    let mut writer = Writer::new(Form::V6);
    let mut rows = vec![0, 0];
    for id in 1..=kinds {
        let mut row = Vec::new();
        varuint(&mut row, u64::from(id));
        row.push(provider.len() as u8);
        row.extend(provider.bytes());
        varuint(&mut row, u64::from(event_id));
        // Neither a name nor fields; keywords and a version.
        row.extend([0, 0, 0, 11, 0, 3]);
        row.extend(u64::from(id).to_le_bytes());
        row.extend([9, version]);
        rows.extend((row.len() as u16).to_le_bytes());
        rows.extend(row);
        if rows.len() > 1 << 20 {
            writer.block("", 3, &std::mem::replace(&mut rows, vec![0, 0]));
        }
    }
    writer.block("", 3, &rows);
    writer.end()
}

/// 7 MB of descriptions, of which each would have had 16 KB of layout.
#[test]
fn kinds_of_events_of_one_layout_have_it_in_common() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = folder.path().join("a.nettrace");
    let events = [("Microsoft-Windows-DotNETRuntime", 204, 3), ("Microsoft-Windows-DotNETRuntimePrivate", 4, 0)];
    for (provider, event_id, version) in events {
        std::fs::write(&recording, alike(provider, event_id, version, 131_000)).expect("room");
        let out = folder.path().join("out");
        let _ = std::fs::remove_dir_all(&out);
        let (code, said) = in_bounds(&["convert", "-q", "-o", out.to_str().expect("a name")], &recording);
        assert_eq!(code, Some(0), "{said}");
    }
    let few = Recording::mapped(&alike("Microsoft-Windows-DotNETRuntime", 204, 3, 2));
    let plans = few.types.iter().map(|info| match &info.decoding {
        Decoding::Catalogue { plan, .. } => std::sync::Arc::as_ptr(plan),
        other => panic!("{other:?}"),
    });
    let plans: Vec<_> = plans.collect();
    assert!(plans.len() == 2 && plans[0] == plans[1]);
}

/// A field of 1 MB, which 4,000 events do not have: each says so in its row.
#[test]
fn the_name_of_a_field_that_is_missing_is_cut_in_each_row() {
    let name = "n".repeat(1 << 20);
    let mut writer = Writer::new(Form::V4);
    let kind = Kind { id: 1, provider: "Shop", event_id: 1, version: 0, name: "Order" };
    writer.described(kind, &[(&name, Type::Int)]);
    let row = |n: u32| Row { metadata_id: 1, sequence: n + 1, ticks: i64::from(n), ..Row::default() };
    writer.events(&(0..4000).map(row).collect::<Vec<_>>());
    let folder = tempfile::tempdir().expect("a folder");
    let recording = folder.path().join("a.nettrace");
    std::fs::write(&recording, writer.end()).expect("room");
    let dataset = Dataset::of(&recording);
    let said = dataset.table("event/Shop/Order").texts("decode_problem");
    assert!(
        said.len() == 4000 && said.iter().all(|text| text.contains("nnnn") && text.len() < 400),
        "{}",
        said[0].len()
    );
    assert!(dataset.table("diagnostic").texts("message").iter().all(|text| text.len() < 5000));
}

/// 1,000 threads that had one OS id, one after the other, and one name of 1 MB.
#[test]
fn the_name_of_threads_that_had_one_id_counts_for_each() {
    let mut making = Making::new();
    for _ in 0..1000 {
        making.thread(100);
    }
    making.record(0, kind::THREAD_ASSIGNED, 0, |out| encode::numbers(out, &[7, 100]));
    making.record(0, kind::THREAD_NAME, 0, |out| encode::named(out, &[7], &"n".repeat(1 << 20)));
    for thread in 2..1002 {
        making.record(thread, kind::THREAD_ASSIGNED, 0, |out| encode::numbers(out, &[u64::from(thread), 9]));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let recording = folder.path().join("a.corprof");
    std::fs::write(&recording, making.bytes()).expect("room");
    let names = Dataset::of(&recording).table("thread").texts("name");
    let named = names.iter().filter(|name| name.len() == 1 << 20).count();
    assert!(names.len() > 1000 && (20..24).contains(&named), "{named} of {}", names.len());
}

/// A structure behind a location counts with all of its fields.
#[test]
fn fields_behind_a_location_count() {
    let mut writer = Writer::new(Form::V6);
    // RelLoc of a structure of 9,000 bytes without names.
    let mut structure = vec![24, 1];
    structure.extend(9000u16.to_le_bytes());
    structure.extend([2, 0, 0, 6].repeat(9000));
    for id in 1..200u32 {
        let mut row = Vec::new();
        varuint(&mut row, u64::from(id));
        // The provider, the event's number and name, one field without a name.
        row.extend([1, b'P']);
        varuint(&mut row, u64::from(id));
        row.extend([0, 1, 0]);
        row.extend((structure.len() as u16 + 1).to_le_bytes());
        row.push(0);
        row.extend(&structure);
        row.extend([0, 0]);
        let mut content = vec![0, 0];
        content.extend((row.len() as u16).to_le_bytes());
        content.extend(row);
        writer.block("", 3, &content);
    }
    let recording = Recording::mapped(&writer.end());
    let has_fields = |layout: &Layout| matches!(layout, Layout::Fields(fields) if matches!(fields.as_slice(), [Field { kind: FieldType::RelLoc(_), .. }]));
    let described = recording.types.iter().filter(|info| has_fields(&info.event_type.layout)).count();
    assert!((10..100).contains(&described), "{described} of {}", recording.types.len());
    assert_eq!(recording.codes(), ["too_much_text"]);
}
