//! Events of TraceLogging, each of which brings its schema along: what is meant to be shown as text has it beside the
//! number.

use super::writer::*;
use crate::support::dataset::Dataset;

/// Bytes with their number before them.
fn counted(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_le_bytes(), bytes].concat()
}

/// A field: its name, its types in and out (of `TraceLoggingProvider.h`) and its value.
type Field<'f> = (&'f str, &'f [u8], Vec<u8>);

/// An event of the provider Shop-Traces with these fields.
fn traced(ticks: i64, name: &str, fields: &[Field<'_>]) -> Vec<u8> {
    let mut schema = [&[0], name.as_bytes(), &[0]].concat();
    for (name, types, _) in fields {
        schema.extend([name.as_bytes(), &[0], types].concat());
    }
    let schema = [&(schema.len() as u16 + 2).to_le_bytes(), schema.as_slice()].concat();
    let traits = [&[14, 0][..], b"Shop-Traces\0"].concat();
    let items = [item(11, true, &schema), item(12, false, &traits)].concat();
    let payload: Vec<u8> = fields.iter().flat_map(|(.., value)| value.clone()).collect();
    event(19, [9; 16], 0, ticks, &items, &payload)
}

#[test]
fn values_of_trace_logging_have_their_texts() {
    let mut local = [0; 16];
    (local[0], local[1], local[15]) = (0xFE, 0x80, 1);
    let peer = |address: [u8; 4]| counted(&[&[2, 0, 1, 0xBB], &address[..], &[0; 8]].concat());
    let fields = |last: u8| -> Vec<Field<'static>> {
        vec![
            ("source", &[0x88, 8], vec![10, 0, 0, last]),
            ("six", &[0x8E, 9], counted(&local)),
            ("peer", &[0x8E, 10], peer([10, 0, 0, last])),
            ("result", &[0x87, 15], 0x8007_0005u32.to_le_bytes().to_vec()),
            ("status", &[0x88, 14], 0xC000_0034u32.to_le_bytes().to_vec()),
            ("flags", &[0x14], [last, 1, 0, 0].to_vec()),
            ("mask", &[0x8A, 4], u64::MAX.to_le_bytes().to_vec()),
            ("port", &[0x86, 7], 443u16.to_be_bytes().to_vec()),
            ("sum", &[0x0A], 5u64.to_le_bytes().to_vec()),
            ("json", &[0x82, 12], b"{\"a\": 1}\0".to_vec()),
            ("xml", &[0x81, 11], utf16("<a/>")),
        ]
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("written.etl");
    let events = [traced(TICKS + 1, "Answer", &fields(7)), traced(TICKS + 2, "Answer", &fields(8))];
    std::fs::write(&path, Writer::file(&events)).expect("room");
    let dataset = Dataset::of(&path);
    // The header of the file is kept raw, nothing else is.
    assert_eq!(dataset.problems(), [("raw_payload", 1)]);
    let table = dataset.table("event/Shop-Traces/Answer");
    let own = table.names();
    let own = &own[own.iter().position(|name| name == "source").expect("the first field")..];
    let expected = [
        "source", "source_text", "six", "six_text", "peer", "peer_text", "result", "result_text", "status",
        "status_text", "flags", "flags_text", "mask", "mask_text", "port", "sum", "json", "xml",
        // Of what cannot be decoded.
        "raw_payload", "decode_problem",
    ];
    assert_eq!(own, expected);
    for (column, texts) in [
        ("source_text", ["10.0.0.7", "10.0.0.8"]),
        ("six_text", ["fe80::1"; 2]),
        ("peer_text", ["10.0.0.7:443", "10.0.0.8:443"]),
        ("result_text", ["0x80070005"; 2]),
        ("status_text", ["0xc0000034"; 2]),
        ("flags_text", ["0x107", "0x108"]),
        ("mask_text", ["0xffffffffffffffff"; 2]),
        ("json", ["{\"a\": 1}"; 2]),
        ("xml", ["<a/>"; 2]),
    ] {
        assert_eq!(table.texts(column), texts, "{column}");
    }
    let source = [7, 8].map(|last| u64::from(u32::from_le_bytes([10, 0, 0, last])));
    for (column, numbers) in [
        ("source", source),
        ("status", [0xC000_0034; 2]),
        ("flags", [0x107, 0x108]),
        ("mask", [u64::MAX; 2]),
        ("port", [443; 2]),
        ("sum", [5; 2]),
    ] {
        assert_eq!(table.numbers(column), numbers, "{column}");
    }
}
