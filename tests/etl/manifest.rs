//! Manifests that a user gives beside a recording: `--manifest file.man`.

use std::path::{MAIN_SEPARATOR, PathBuf};

use tracequet::inspect::{DecodedBy, inspect_with};
use tracequet::trace::event::EventInfo;
use tracequet::trace::event::value::Value;
use tracequet::trace::guid::Guid;
use tracequet::trace::reader::etl::{EventManifests, complete};
use tracequet::{Convert, convert};

use super::writer::*;
use crate::support::collect::Recording;
use crate::support::dataset::Dataset;

const PROVIDER: [u8; 16] = [9; 16];

/// A manifest as its author writes it: every type, counts and lengths by number and by field, structures, maps.
pub const MANIFEST: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events"
    xmlns:win="http://manifests.microsoft.com/win/2004/08/windows/events" xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <instrumentation><events>
    <provider name="Shop-Orders" guid="{09090909-0909-0909-0909-090909090909}" symbol="SHOP"
        resourceFileName="shop.dll" messageFileName="shop.dll" message="$(string.name)">
      <tasks><task name="Order" value="1"/></tasks>
      <opcodes><opcode name="Paid" value="11"/></opcodes>
      <maps>
        <valueMap name="States"><map value="0" message="$(string.open)"/><map value="1" message="$(string.paid)"/></valueMap>
        <bitMap name="Marks"><map value="0x1" message="$(string.gift)"/></bitMap>
      </maps>
      <templates>
        <template tid="All">
          <data name="i8" inType="win:Int8"/><data name="u8" inType="win:UInt8"/>
          <data name="i16" inType="win:Int16"/><data name="u16" inType="win:UInt16"/>
          <data name="i32" inType="win:Int32"/><data name="u32" inType="win:UInt32"/>
          <data name="i64" inType="win:Int64"/><data name="u64" inType="win:UInt64"/>
          <data name="hex32" inType="win:HexInt32"/><data name="hex64" inType="win:HexInt64"/>
          <data name="f32" inType="win:Float"/><data name="f64" inType="win:Double"/>
          <data name="yes" inType="win:Boolean"/><data name="byte" inType="win:UInt8" outType="xs:boolean"/>
          <data name="state" inType="win:UInt32" map="States"/><data name="marks" inType="win:UInt8" map="Marks"/>
          <data name="id" inType="win:GUID"/><data name="at" inType="win:FILETIME"/><data name="who" inType="win:SID"/>
          <data name="where" inType="win:Pointer"/><data name="port" inType="win:UInt16" outType="win:Port"/>
          <data name="wide" inType="win:UnicodeString"/><data name="narrow" inType="win:AnsiString"/>
          <data name="three" inType="win:UnicodeString" length="3"/>
          <data name="size" inType="win:UInt16"/><data name="sized" inType="win:AnsiString" length="size"/>
          <data name="blob_size" inType="win:UInt32"/><data name="blob" inType="win:Binary" length="blob_size"/>
          <data name="address" inType="win:Binary" outType="win:IPv6"/>
          <data name="count" inType="win:UInt8"/><data name="numbers" inType="win:UInt16" count="count"/>
          <data name="pair" inType="win:UInt8" count="2"/>
          <struct name="lines" count="count">
            <data name="article" inType="win:UnicodeString"/><data name="price" inType="win:UInt32"/>
          </struct>
        </template>
        <template tid="One"><data name="number" inType="win:UInt32"/><UserData><X xmlns="x"/></UserData></template>
      </templates>
      <events>
        <event value="1" version="0" symbol="ORDER_PLACED" template="All" level="win:Informational"
            message="$(string.placed)"/>
        <event value="0x2" task="Order" opcode="Paid" template="One" message="Paid: %1"/>
        <event value="3" symbol="ORDER_CLOSED"/><event value="0x00072775" symbol="OF_ANOTHER_LOG"/>
      </events>
    </provider>
    <provider name="Shop-Stock" guid="{08080808-0808-0808-0808-080808080808}" symbol="STOCK">
      <templates><template tid="One"><data name="other" inType="win:UInt32"/></template></templates>
      <events><event value="1" symbol="STOCK_LOW" template="One"/></events>
    </provider>
  </events></instrumentation>
  <localization>
    <resources culture="de-DE"><stringTable><string id="placed" value="Bestellt"/></stringTable></resources>
    <resources culture="en-US"><stringTable><string id="placed" value="Placed: %1"/></stringTable></resources>
  </localization>
</instrumentationManifest>"#;

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A payload of the template `All`, from a process of 64 bits.
fn all_types() -> Vec<u8> {
    let mut out = vec![0xFF, 200];
    out.extend((-2i16).to_le_bytes());
    out.extend(60_000u16.to_le_bytes());
    out.extend((-3i32).to_le_bytes());
    out.extend(4_000_000_000u32.to_le_bytes());
    out.extend((-4i64).to_le_bytes());
    out.extend(u64::MAX.to_le_bytes());
    out.extend(0x10u32.to_le_bytes());
    out.extend(0x20u64.to_le_bytes());
    out.extend(1.5f32.to_le_bytes());
    out.extend((-2.5f64).to_le_bytes());
    out.extend(1u32.to_le_bytes());
    out.push(1);
    out.extend(1u32.to_le_bytes());
    out.push(1);
    out.extend([7; 16]);
    out.extend(START.to_le_bytes());
    out.extend([1, 2, 0, 0, 0, 0, 0, 5, 32, 0, 0, 0, 0x20, 2, 0, 0]);
    out.extend(0x7FF0_0000_1000u64.to_le_bytes());
    out.extend(443u16.to_be_bytes());
    out.extend(utf16("Größe\0"));
    out.extend(b"plain\0");
    out.extend(utf16("abc"));
    out.extend(4u16.to_le_bytes());
    out.extend(b"four");
    out.extend(2u32.to_le_bytes());
    out.extend([0xAA, 0xBB]);
    out.extend([1; 16]);
    out.push(2);
    out.extend([5u16, 6].map(u16::to_le_bytes).concat());
    out.extend([8, 9]);
    out.extend([utf16("pen\0"), 3u32.to_le_bytes().to_vec(), utf16("ink\0"), 4u32.to_le_bytes().to_vec()].concat());
    out
}

/// A recording of the providers of the manifest, and its folder.
fn recording(folder: &tempfile::TempDir) -> PathBuf {
    let number = 77u32.to_le_bytes();
    let events = [
        event(19, PROVIDER, 1, TICKS + 1, &[], &all_types()),
        event(19, PROVIDER, 2, TICKS + 2, &[], &number),
        event(19, PROVIDER, 3, TICKS + 3, &[], b""),
        event(19, PROVIDER, 4, TICKS + 4, &[], &number),
        event(19, [8; 16], 1, TICKS + 5, &[], &number),
        event(18, PROVIDER, 2, TICKS + 6, &[], &number),
    ];
    let path = folder.path().join("shop.etl");
    std::fs::write(&path, Writer::new().events(1, &events).bytes).expect("room");
    path
}

fn written(folder: &tempfile::TempDir, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join("shop.man");
    std::fs::write(&path, text).expect("room");
    path
}

fn open(text: impl AsRef<[u8]>) -> Result<EventManifests, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = written(&folder, text);
    EventManifests::open(&[path]).map_err(|e| e.to_string().replace(&*folder.path().to_string_lossy(), ""))
}

/// The recording with its kinds of events completed by the manifest.
fn completed(bytes: &[u8], manifests: &EventManifests) -> Recording {
    let mut recording = Recording::mapped(bytes);
    for info in &mut recording.types {
        *info = EventInfo::resolve(&complete(Some(manifests), &info.event_type).0, 8);
    }
    recording
}

#[test]
fn every_type_is_decoded() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = std::fs::read(recording(&folder)).expect("a file");
    let recording = completed(&bytes, &open(MANIFEST).expect("a manifest"));
    let fields = recording.fields(&recording.events[1]);
    let text = |text: &str| Value::Text(text.to_owned());
    let line = |name: &str, price| Value::Struct(vec![text(name), Value::Uint(price)]);
    let expected = [
        ("i8", Value::Int(-1)),
        ("u8", Value::Uint(200)),
        ("i16", Value::Int(-2)),
        ("u16", Value::Uint(60_000)),
        ("i32", Value::Int(-3)),
        ("u32", Value::Uint(4_000_000_000)),
        ("i64", Value::Int(-4)),
        ("u64", Value::Uint(u64::MAX)),
        ("hex32", Value::Uint(0x10)),
        ("hex32_text", text("0x10")),
        ("hex64", Value::Uint(0x20)),
        ("hex64_text", text("0x20")),
        ("f32", Value::Float(1.5)),
        ("f64", Value::Float(-2.5)),
        ("yes", Value::Bool(true)),
        ("byte", Value::Bool(true)),
        ("state", Value::Uint(1)),
        ("marks", Value::Uint(1)),
        ("id", Value::Guid(Guid([7; 16]))),
        ("at", Value::FileTime(START as u64)),
        ("who", text("S-1-5-32-544")),
        ("where", Value::Uint(0x7FF0_0000_1000)),
        ("port", Value::Uint(443)),
        ("wide", text("Größe")),
        ("narrow", text("plain")),
        ("three", text("abc")),
        ("size", Value::Uint(4)),
        ("sized", text("four")),
        ("blob_size", Value::Uint(2)),
        ("blob", Value::Bytes(vec![0xAA, 0xBB])),
        ("address", Value::Bytes(vec![1; 16])),
        ("address_text", text("101:101:101:101:101:101:101:101")),
        ("count", Value::Uint(2)),
        ("numbers", Value::List(vec![Value::Uint(5), Value::Uint(6)])),
        ("pair", Value::Bytes(vec![8, 9])),
        ("lines", Value::List(vec![line("pen", 3), line("ink", 4)])),
    ];
    let found: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    assert_eq!(found, expected);
}

#[test]
fn events_get_their_names_tables_and_messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let request = |manifests: Vec<PathBuf>| Convert::default().inputs([recording(&folder)]).manifests(manifests);
    let without = Dataset::with(request(Vec::new()));
    assert_eq!(without.summary.inputs[0].raw, 7, "nothing is known of them, nor of the header event");
    let manifest = written(&folder, MANIFEST);
    let dataset = Dataset::with(request(vec![manifest.clone()]));
    assert_eq!(dataset.summary.inputs[0].raw, 2, "of ours only event 4 is not in the manifest");
    let paid = dataset.table("event/Shop-Orders/Order_Paid");
    assert_eq!(paid.numbers("number"), [77, 77], "of processes of both widths");
    assert_eq!(dataset.table("event/Shop-Orders/ORDER_CLOSED").rows(), 1);
    assert_eq!(dataset.table("event/Shop-Orders/event_4").rows(), 1);
    assert_eq!(dataset.table("event/Shop-Stock/STOCK_LOW").numbers("other"), [77]);
    let kinds = dataset.table("event_type");
    let messages: Vec<_> = kinds.texts("event_name").into_iter().zip(kinds.texts("message_template")).collect();
    let says = |name: &str| messages.iter().find(|(n, _)| n == name).map(|(_, m)| m.as_str());
    assert_eq!(says("ORDER_PLACED"), Some("Placed: %1"), "by the English table of strings");
    assert_eq!(says("Order/Paid"), Some("Paid: %1"));

    // Inspect says where the fields come from.
    let inspect = |manifests| inspect_with(&recording(&folder), &manifests, &mut |_, _| {}).expect("an inspection");
    let inspection = inspect(EventManifests::open(&[manifest]).expect("a manifest"));
    let by_manifest = inspection.event_types.iter().filter(|t| t.decoded_by == DecodedBy::Manifest).count();
    assert_eq!(by_manifest, 5);
    assert!(inspect(EventManifests::default()).event_types.iter().all(|t| t.decoded_by != DecodedBy::Manifest));
}

#[test]
fn a_manifest_goes_before_what_the_recording_says_and_behind_the_catalogue() {
    let inside = "<m><provider name='Inside' guid='{09090909-0909-0909-0909-090909090909}'><events>\
                  <event value='2' symbol='Two' template='t'/><event value='4' symbol='Four' template='t'/></events>\
                  <templates><template tid='t'><data name='inside' inType='win:UInt32'/></template></templates>\
                  </provider></m>";
    let envelope = [&[1, 1, 0, 0x5B, 1, 0, 0, 0][..], inside.as_bytes()].concat();
    let number = 77u32.to_le_bytes();
    let events = [
        event(19, PROVIDER, 0xFFFE, TICKS + 1, &[], &envelope),
        event(19, PROVIDER, 2, TICKS + 2, &[], &number),
        event(19, PROVIDER, 4, TICKS + 3, &[], &number),
    ];
    let bytes = Writer::new().events(1, &events).bytes;
    let names = |manifests: &EventManifests| {
        let recording = completed(&bytes, manifests);
        let names = recording.events[2..].iter().map(|seen| recording.fields(seen)[0].0.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&EventManifests::default()), ["inside", "inside"]);
    assert_eq!(names(&open(MANIFEST).expect("a manifest")), ["number", "inside"]);

    // The runtime's own events stay as the catalogue has them.
    let runtime = "<m><provider name='Mine' guid='{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4}'><events>\
                   <event value='14' version='1' symbol='Mine'/></events></provider></m>";
    let mut finalizers = event(19, super::hostile::RUNTIME, 14, TICKS + 1, &[], &[8, 0]);
    finalizers[0x2A] = 1;
    let recording = completed(&Writer::new().events(1, &[finalizers]).bytes, &open(runtime).expect("a manifest"));
    let info = recording.info_of(&recording.events[1]);
    assert_eq!(info.provider, "Microsoft-Windows-DotNETRuntime");
    assert_eq!(recording.fields(&recording.events[1]).len(), 1, "{}", info.name);
}

#[test]
fn text_that_comes_last_may_end_with_the_payload() {
    let text = "<m><provider name='P' guid='{09090909-0909-0909-0909-090909090909}'><templates><template tid='t'>\
                <data name='n' inType='win:UInt8'/><data name='url' inType='win:UnicodeString'/></template></templates>\
                <events><event value='1' symbol='One' template='t'/></events></provider></m>";
    let payloads = [
        [&[1][..], &utf16("/a\0")].concat(),
        [&[2][..], &utf16("/b")].concat(),
        vec![3],
        [&[4][..], &utf16("/c"), b"x"].concat(),
    ];
    let event = |(n, payload): (usize, &Vec<u8>)| event(19, PROVIDER, 1, TICKS + n as i64, &[], payload);
    let events: Vec<_> = payloads.iter().enumerate().map(event).collect();
    let recording = completed(&Writer::new().events(1, &events).bytes, &open(text).expect("a manifest"));
    let url = |index: usize| {
        let fields = |event: &tracequet::trace::event::Event<'_>| {
            let (fields, fit) = event.fields().expect("fields");
            (fields[1].1.clone(), fit.is_exact())
        };
        recording.with_event(&recording.events[index], fields)
    };
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!([url(1), url(2), url(3)], [(text("/a"), true), (text("/b"), true), (Value::Null, true)]);
    assert_eq!(url(4), (text("/c"), false), "half a character");
}

#[test]
fn wide_text_and_marks_in_front_are_read() {
    let with_mark = [b"\xEF\xBB\xBF", MANIFEST.as_bytes()].concat();
    let little = [b"\xFF\xFE".to_vec(), utf16(MANIFEST)].concat();
    let big: Vec<u8> = [0xFE, 0xFF].into_iter().chain(MANIFEST.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    for text in [with_mark, little, big] {
        assert_eq!(open(text).err(), None);
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    // What is replaced by what, which element is reported then (by its beginning), and the message.
    for (from, to, element, expected) in [
        (
            "{09090909-0909-0909-0909-090909090909}",
            "{nonsense}",
            "<provider",
            "provider 'Shop-Orders' with the guid '{non",
        ),
        ("</templates>", "", "</provider>", "expected 'templates' tag, not 'provider'"),
        ("<instrumentation>", "<!DOCTYPE x>", "<!DOCTYPE", ""),
    ] {
        assert!(MANIFEST.contains(from), "{from}");
        let text = MANIFEST.replacen(from, to, 1);
        let before = &text[..text.find(element).expect("an element")];
        let (line, column) = (before.matches('\n').count() + 1, before.len() - before.rfind('\n').unwrap_or(0));
        let error = open(&text).err().unwrap_or_default();
        assert!(error.starts_with(&format!("{MAIN_SEPARATOR}shop.man:{line}:{column}: {expected}")), "{to}: {error}");
    }
    assert!(open("<a/>").err().unwrap_or_default().contains(":1:1: no provider, expected <provider"));
    assert!(open("").is_err());
    assert!(open(b"<a>\n\xC3\x28</a>").err().unwrap_or_default().contains(":2:1: no UTF-8"));
    let bomb = "<!DOCTYPE a [<!ENTITY x 'yy'>]>\n<provider name='&x;&x;'/>";
    assert!(open(bomb).err().unwrap_or_default().contains("DTD"));
    let deep = format!("<provider>{}</provider>", "<struct>".repeat(50_000));
    assert!(open(deep).err().unwrap_or_default().contains("more than 64 elements inside of each other"));
}

/// What is odd about one event or template costs only the events that need it, and is said with its place.
#[test]
fn an_odd_template_leaves_its_events_raw() {
    let folder = tempfile::tempdir().expect("a folder");
    let number = 77u32.to_le_bytes();
    let events = [
        event(19, PROVIDER, 1, TICKS + 1, &[], &all_types()),
        event(19, PROVIDER, 2, TICKS + 2, &[], &number),
        event(19, PROVIDER, 3, TICKS + 3, &[], b""),
    ];
    let path = folder.path().join("shop.etl");
    std::fs::write(&path, Writer::new().events(1, &events).bytes).expect("room");
    let all = "<struct name='s'>".repeat(12) + &"</struct>".repeat(12);
    // The text that is replaced, its replacement, the beginning of the element in the message, the rest of the message,
    // and the event that stays raw.
    for (from, to, element, expected, raw) in [
        (
            "value=\"3\"",
            "value=\"x\"",
            "<event value=\"x\"",
            "an event with the value 'x', expected a number",
            "event_3",
        ),
        ("version=\"0\"", "version=\"256\"", "<event value=\"1\"", "event 1 with the version '256'", "event_1"),
        (
            "template=\"One\"",
            "template=\"Two\"",
            "<event value=\"0x2\"",
            "event 2 with the template 'Two'",
            "Order/Paid",
        ),
        ("win:Float", "win:Flout", "<data name=\"f32\"", "a type that is not known", "ORDER_PLACED"),
        ("length=\"blob_size\"", "", "<data name=\"blob\"", "bytes without a length", "ORDER_PLACED"),
        ("count=\"count\"", "count=\"later\"", "<data name=\"numbers\"", "a count that is no earlier", "ORDER_PLACED"),
        ("count=\"2\"", "count=\"70000\"", "<data name=\"pair\"", "a count that is too large", "ORDER_PLACED"),
        ("<UserData>", &format!("{all}<UserData>"), "", "a structure in more than 8 others", "Order/Paid"),
    ] {
        assert!(MANIFEST.contains(from), "{from}");
        let text = MANIFEST.replacen(from, to, 1);
        let manifest = written(&folder, &text);
        let dataset = Dataset::with(Convert::default().inputs([path.clone()]).manifests([manifest]));
        let diagnostics = dataset.table("diagnostic");
        let odd = diagnostics.texts("code").iter().position(|code| code == "odd_manifest").expect("a diagnostic");
        let message = &diagnostics.texts("message")[odd];
        let place = match text.find(element).filter(|_| !element.is_empty()) {
            Some(at) => {
                let before = &text[..at];
                let (line, column) = (before.matches('\n').count() + 1, before.len() - before.rfind('\n').unwrap_or(0));
                format!("shop.man:{line}:{column}: {expected}")
            }
            None => format!(": {expected}"),
        };
        assert!(message.contains(&place) && message.ends_with("events that need it stay raw"), "{place}: {message}");
        let kinds = dataset.table("event_type");
        let decoded: Vec<_> = kinds.texts("event_name").into_iter().zip(kinds.texts("decoded")).collect();
        for (name, decoded) in &decoded[decoded.len() - 3..] {
            assert_eq!(decoded == "raw", name == raw, "{to}: {name}");
        }
        assert!(decoded.iter().any(|(name, _)| name == raw), "{decoded:?}");
        // Nothing else has changed: the exit code of an odd manifest is that of a sound one.
        assert!(!dataset.summary.inputs[0].has_losses());
    }
}

#[test]
fn a_manifest_that_cannot_be_read_leaves_no_dataset() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("out");
    let (inputs, missing) = (vec![recording(&folder)], folder.path().join("missing.man"));
    let request = Convert::new(inputs, output.clone()).manifests([missing]);
    let error = convert(&request, &mut |_| {}).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("missing.man") && !output.exists(), "{error}");
}

/// Fields without bound of a few events that differ in little: what is remembered is bounded.
#[test]
fn many_kinds_of_one_wide_template_are_bounded() {
    let fields = "<data name='f' inType='win:UInt8'/>".repeat(4000);
    let text = format!(
        "<m><provider name='P' guid='{{09090909-0909-0909-0909-090909090909}}'><templates><template tid='t'>{fields}\
         </template></templates><events><event value='1' symbol='One' template='t'/></events></provider></m>"
    );
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(3000).collect();
    let mut writer = Writer::new();
    for (number, piece) in pieces.iter().enumerate() {
        let head = [1, 1, 0, 0x5B, pieces.len() as u8, 0, number as u8, 0];
        let piece = event(19, PROVIDER, 0xFFFE, TICKS + 1, &[], &[&head[..], piece].concat());
        writer = writer.events(number as i64 + 1, &[piece]);
    }
    // The opcode makes kinds of events different.
    for opcode in 0..=255u8 {
        let mut one = event(19, PROVIDER, 1, TICKS + 2 + i64::from(opcode), &[], &[0; 8]);
        one[0x2D] = opcode;
        writer = writer.events(1000 + i64::from(opcode), &[one]);
    }
    let recording = Recording::mapped(&writer.bytes);
    let of_one = recording.types.iter().filter(|t| t.name == "One");
    let (mut described, mut refused) = (0, 0);
    for info in of_one {
        match &info.decoding {
            tracequet::trace::event::Decoding::Raw(why) => {
                assert_eq!(*why, "too many described fields");
                refused += 1;
            }
            _ => described += 1,
        }
    }
    assert_eq!((described, refused), (131, 125));
}

/// A directory gives each of its manifests; one that cannot be read costs itself and is said.
#[test]
fn a_directory_of_manifests_is_read_file_by_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = recording(&folder);
    let manifests = folder.path().join("manifests");
    std::fs::create_dir(&manifests).expect("room");
    let request = || Convert::default().inputs([recording.clone()]).manifests([manifests.clone()]);
    let error = EventManifests::open(std::slice::from_ref(&manifests)).err().map(|e| e.to_string());
    assert!(error.is_some_and(|why| why.contains("has no .man, .xml or .tmf")));
    std::fs::write(manifests.join("shop.MAN"), MANIFEST).expect("room");
    std::fs::write(manifests.join("a.xml"), "<a").expect("room");
    std::fs::write(manifests.join("notes.txt"), "no manifest").expect("room");
    let dataset = Dataset::with(request());
    assert_eq!(dataset.table("event/Shop-Orders/Order_Paid").numbers("number"), [77, 77]);
    let said: Vec<_> = dataset.summary.inputs[0].problems.iter().filter(|p| p.code == "odd_manifest").collect();
    assert!(said.iter().any(|p| p.message.contains("a.xml") && p.message.contains("is left out")), "{said:?}");
}

/// A message of WPP as it lies in a log: class, time, process and thread, then its values, which are not aligned.
fn message(number: u16, ticks: i64, values: &[u8]) -> Vec<u8> {
    let mut out = [&[0, 0, 0, 0x90][..], &number.to_le_bytes(), &0xAAu16.to_le_bytes()].concat();
    out.extend(PROVIDER);
    out.extend(ticks.to_le_bytes());
    out.extend([7u32, 5].map(u32::to_le_bytes).concat());
    out.extend(values);
    let size = out.len() as u16;
    out[..2].copy_from_slice(&size.to_le_bytes());
    out
}

#[test]
fn messages_are_decoded_by_their_formats() {
    let format = "// PDB:  driver.pdb\r\n09090909-0909-0909-0909-090909090909 driver // SRC=queue.c MJ= MN=\r\n\
                  #typev  queue_c258 10 \"%0Request %10!d! of %11!s!: %12!s!\" //   LEVEL=TRACE_LEVEL_INFORMATION\r\n{\r\n\
                  number, ItemULong -- 10\r\nname, ItemPWString -- 11\r\nstatus, ItemNTSTATUS -- 12\r\n}\r\n";
    let mut values = 77u32.to_le_bytes().to_vec();
    values.extend([8, 0]);
    values.extend("Größ".encode_utf16().flat_map(u16::to_le_bytes));
    values.extend(0xC000_0005u32.to_le_bytes());
    let folder = tempfile::tempdir().expect("a folder");
    let recording = folder.path().join("driver.etl");
    let bytes = Writer::new().events(1, &[message(10, TICKS + 1, &values), message(11, TICKS + 2, &[1])]).bytes;
    std::fs::write(&recording, bytes).expect("room");
    let formats = folder.path().join("formats");
    std::fs::create_dir(&formats).expect("room");
    std::fs::write(formats.join("09090909-0909-0909-0909-090909090909.tmf"), format).expect("room");
    let dataset = Dataset::with(Convert::default().inputs([recording.clone()]).manifests([formats]));
    let table = dataset.table("event/driver/queue_c258");
    assert_eq!((table.numbers("number"), table.texts("name")), (vec![77], vec!["Größ".to_owned()]));
    assert_eq!(
        (table.numbers("status"), table.texts("status_text")),
        (vec![0xC000_0005], vec!["0xc0000005".to_owned()])
    );
    let kinds = dataset.table("event_type");
    let templates: Vec<_> = kinds.texts("event_name").into_iter().zip(kinds.texts("message_template")).collect();
    assert!(templates.contains(&("queue_c258".into(), "%0Request %10!d! of %11!s!: %12!s!".into())), "{templates:?}");
    // What no format describes keeps its class and its number, as without formats.
    let class = Guid(PROVIDER).to_string();
    assert_eq!(dataset.table(&format!("event/{class}/message_11")).rows(), 1);
    let without = Dataset::with(Convert::default().inputs([recording]));
    assert_eq!(without.table(&format!("event/{class}/message_10")).rows(), 1);
}
