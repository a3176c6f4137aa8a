//! What a recording says of its own events, said as no writer should: the rows of the table of hostile values that are
//! about schemas, manifests and stacks.

use tracequet::trace::reader::{EventType, Layout};

use super::hostile::*;
use super::writer::*;
use crate::support::collect::Recording;

fn trace_logging(schema: &[u8], payload: &[u8]) -> Recording {
    read(&file(&[event(19, PROVIDER, 1, TICKS + 1, &item(11, false, schema), payload), plain(2)]))
}

#[test]
fn hostile_trace_logging_is_kept_raw_or_short() {
    // A size beyond the data, names without end, more members than fields, nesting, an invalid type.
    let nested = [b"\0\0\0E\0".as_slice(), &b"s\0\x98\x01".repeat(40)].concat();
    let sized = |mut schema: Vec<u8>| {
        let size = schema.len() as u16;
        patch(&mut schema, 0, size.to_le_bytes());
        schema
    };
    for schema in [
        vec![],
        vec![200, 0, 0, b'E', 0],
        sized(b"\0\0\0E".to_vec()),
        sized(b"\0\0\0E\0s\0\x98\x7F".to_vec()),
        sized(nested),
        sized(b"\0\0\0E\0a\0\x1F".to_vec()),
    ] {
        let recording = trace_logging(&schema, b"12345678");
        let info = recording.info_of(&recording.events[1]);
        assert!(matches!(info.event_type.layout, Layout::Unreadable(_)), "{schema:?}");
    }
    // 65,535 empty structures, and arrays that are longer than the payload.
    let empty = trace_logging(&sized(b"\0\0\0E\0s\0\x98\x00a\0\xD8\x00".to_vec()), &[0xFF, 0xFF]);
    empty.with_event(&empty.events[1], |event| assert!(event.fields().unwrap().1.is_exact()));
    let array = trace_logging(&sized(b"\0\0\0E\0a\0\x48".to_vec()), &[0xFF, 0xFF, 1, 2, 3, 4]);
    array.with_event(&array.events[1], |event| assert!(event.fields().unwrap().1.short.is_some()));
}

/// 524,288 of all kinds together.
#[test]
fn described_fields_have_a_bound() {
    let kind = |n: u16| {
        let name = format!("\0\0\0E{n}\0");
        let mut schema = [name.as_bytes(), &b"f\0\x08".repeat(4000)].concat();
        let size = schema.len() as u16;
        patch(&mut schema, 0, size.to_le_bytes());
        event(19, PROVIDER, n, TICKS + 1, &item(11, false, &schema), b"payload!")
    };
    let recording = read(&Writer::sized_file(&(0..140).map(kind).collect::<Vec<_>>(), 1 << 20, 10_000_000));
    let is_known = |info: &EventType| matches!(&info.layout, Layout::Etw(etw) if etw.fields.as_ref().is_some_and(|fields| fields.len() == 4000));
    let kinds: Vec<&EventType> =
        recording.events[1..].iter().map(|event| &recording.info_of(event).event_type).collect();
    assert_eq!(
        kinds.iter().map(|kind| is_known(kind)).collect::<Vec<_>>(),
        (0..140).map(|n| n < 131).collect::<Vec<_>>()
    );
    assert!(kinds[131..].iter().all(|kind| matches!(kind.layout, Layout::Unreadable(_))));
}

#[test]
fn hostile_embedded_schemas_are_kept_raw() {
    const EVENT_INFO: [u8; 16] =
        [0xC1, 0xF6, 0xCC, 0xBB, 0xD1, 0x6C, 0xC4, 0x48, 0x80, 0xFF, 0x83, 0x94, 0x82, 0xE3, 0x76, 0x71];
    let with = |count: u32, top: u32, properties: &[[u32; 6]]| {
        let mut blob = vec![0u8; 0x70];
        blob[..16].copy_from_slice(&PROVIDER);
        patch(&mut blob, 0x20, 1u16.to_le_bytes());
        patch(&mut blob, 0x44, u32::MAX.to_le_bytes());
        patch(&mut blob, 0x64, count.to_le_bytes());
        patch(&mut blob, 0x68, top.to_le_bytes());
        properties.iter().flatten().for_each(|word| blob.extend(word.to_le_bytes()));
        // The schema comes behind the event that it describes.
        let recording = read(&file(&[plain(1), full(EVENT_INFO, 32, TICKS + 2, &blob)]));
        recording.info_of(&recording.events[1]).event_type.layout.clone()
    };
    let number = [0, 0, 10, 0, 1, 0];
    assert!(matches!(with(1, 1, &[number]), Layout::Etw(etw) if etw.fields.as_ref().is_some_and(|f| f.len() == 1)));
    for layout in [
        with(u32::MAX, u32::MAX, &[]),
        with(1, 2, &[number]),
        with(1, 1, &[[1, 0, 1 << 16, 0, 0, 0]]),
        with(1, 1, &[[1, 0, 9 | 9 << 16, 0, 0, 0]]),
        with(1, 1, &[[4, 0, 8, 0, 9, 0]]),
    ] {
        assert!(matches!(layout, Layout::Unreadable(_)), "{layout:?}");
    }
}

#[test]
fn hostile_manifests_are_kept_raw() {
    let chunk = |total: u16, number: u16, text: &[u8]| {
        let head = [&[1, 1, 0, 0x5B][..], &total.to_le_bytes(), &number.to_le_bytes()].concat();
        event(19, PROVIDER, 0xFFFE, TICKS + 1, &[], &[&head, text].concat())
    };
    let xml = b"<m><provider name='P' guid='x'><events><event value='1' symbol='One'/></events></provider></m>";
    let (first, second) = xml.split_at(30);
    let name = |events: &[Vec<u8>]| {
        let recording = read(&file(&[events, &[plain(9)]].concat()));
        let last = recording.events.last().unwrap();
        (recording.info_of(last).provider.clone(), recording.codes())
    };
    let unknown = "09090909-0909-0909-0909-090909090909".to_owned();
    assert_eq!(name(&[chunk(2, 1, second), chunk(2, 0, first)]), ("P".to_owned(), vec![]));
    assert_eq!(name(&[chunk(2, 0, first)]), (unknown.clone(), vec!["incomplete_manifest"]));
    for events in [chunk(0, 0, xml), chunk(300, 0, xml), chunk(2, 7, xml)] {
        assert_eq!(name(&[events]), (unknown.clone(), vec![]));
    }
    let bomb = b"<!DOCTYPE a [<!ENTITY x 'yy'>]><provider name='&x;&x;'/>";
    for text in [&b"<m>"[..], b"\xFF\xFE", bomb, &b"<a>".repeat(1000)] {
        assert_eq!(name(&[chunk(1, 0, text)]), (unknown.clone(), vec!["damaged_manifest"]));
    }
}

#[test]
fn stack_keys_that_nobody_defines_are_events_like_others() {
    let reference = [&[0u8; 16][..], &77u64.to_le_bytes()].concat();
    let events: Vec<_> = (0..40).map(|i| system(0x18, 0x25, 2, TICKS + i, &reference)).collect();
    assert_eq!(outcome(&file(&events)), (41, vec!["unattached_stacks"]));
}
