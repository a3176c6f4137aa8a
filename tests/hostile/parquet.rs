//! Parquet files that ask for more memory than there is: each is refused by what it says, before anything is decoded.

use std::path::Path;

use tracequet::dataset::error::Result;
use tracequet::dataset::read::{Dataset, Table};
use tracequet::{Convert, convert};

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn number(value: i64) -> Vec<u8> {
    varint((value << 1 ^ value >> 63) as u64)
}

fn binary(bytes: &[u8]) -> Vec<u8> {
    [varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// A struct of the compact protocol: id, type and value of each field.
fn fields(fields: &[(u8, u8, Vec<u8>)]) -> Vec<u8> {
    let mut last = 0;
    let mut out = Vec::new();
    for (id, kind, value) in fields {
        out.push((id - last) << 4 | kind);
        out.extend_from_slice(value);
        last = *id;
    }
    out.push(0);
    out
}

fn list(kind: u8, elements: &[Vec<u8>]) -> Vec<u8> {
    [vec![0xF0 | kind], varint(elements.len() as u64), elements.concat()].concat()
}

/// The header of a page, and what is behind it.
struct Page {
    kind: i64,
    expanded: i64,
    values: i64,
    encoding: i64,
    /// More fields.
    more: Vec<(u8, u8, Vec<u8>)>,
    body: Vec<u8>,
}

impl Page {
    fn data(encoding: i64, body: &[u8]) -> Page {
        Page { kind: 0, expanded: body.len() as i64, values: 1, encoding, more: vec![], body: body.to_vec() }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut of_kind = vec![(1, I32, number(self.values)), (2, I32, number(self.encoding))];
        if self.kind == 0 {
            of_kind.extend([(3, I32, number(3)), (4, I32, number(3))]);
        }
        let place = if self.kind == 0 { 5 } else { 7 };
        let mut header = vec![
            (1, I32, number(self.kind)),
            (2, I32, number(self.expanded)),
            (3, I32, number(self.body.len() as i64)),
            (place, STRUCT, fields(&of_kind)),
        ];
        header.extend(self.more.iter().cloned());
        [fields(&header), self.body.clone()].concat()
    }
}

/// A file with one column of one row, `c`: text (6) or 64-bit numbers (2).
fn file(physical: i64, codec: i64, pages: &[Page]) -> Vec<u8> {
    let (name, root) = (binary(b"c"), binary(b"schema"));
    let schema = [
        fields(&[(4, BINARY, root), (5, I32, number(1))]),
        fields(&[(1, I32, number(physical)), (3, I32, number(0)), (4, BINARY, name.clone())]),
    ];
    let bytes: Vec<Vec<u8>> = pages.iter().map(Page::bytes).collect();
    let size = bytes.concat().len() as i64;
    let expanded = size.saturating_add(pages.iter().map(|page| page.expanded).fold(0, i64::saturating_add));
    let has_dictionary = pages.len() > 1;
    let mut column = vec![
        (1, I32, number(physical)),
        (2, LIST, list(I32, &[number(0)])),
        (3, LIST, list(BINARY, &[name])),
        (4, I32, number(codec)),
        (5, I64, number(1)),
        (6, I64, number(expanded)),
        (7, I64, number(size)),
        (9, I64, number(4 + if has_dictionary { bytes[0].len() as i64 } else { 0 })),
    ];
    if has_dictionary {
        column.push((11, I64, number(4)));
    }
    let chunk = fields(&[(2, I64, number(4)), (3, STRUCT, fields(&column))]);
    let group = fields(&[(1, LIST, list(STRUCT, &[chunk])), (2, I64, number(size)), (3, I64, number(1))]);
    let footer = fields(&[
        (1, I32, number(1)),
        (2, LIST, list(STRUCT, &schema)),
        (3, I64, number(1)),
        (4, LIST, list(STRUCT, &[group])),
    ]);
    whole(&bytes.concat(), &footer)
}

fn whole(pages: &[u8], footer: &[u8]) -> Vec<u8> {
    [b"PAR1", pages, footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
}

/// A table of a dataset whose file can be exchanged.
fn table(folder: &Path) -> Table {
    let output = folder.join("out");
    let request = Convert::new(["samples/events.nettrace"], &output).tables(["gc"]);
    convert(&request, &mut |_| {}).unwrap();
    Dataset::open(&output).unwrap().recording(None).unwrap().table("gc").unwrap()
}

fn rows(table: &Table, bytes: &[u8]) -> Result<usize> {
    std::fs::write(table.path(), bytes).unwrap();
    table.scan().batches()?.map(|batch| Ok(batch?.num_rows())).sum()
}

const PLAIN: i64 = 0;
const DELTA_LENGTH: i64 = 6;
const DELTA_BYTES: i64 = 7;
const BY_DICTIONARY: i64 = 8;
const TEXT: i64 = 6;
const NUMBER: i64 = 2;
const ZSTD: i64 = 6;

/// Block, parts, number of lengths and the first of them, all unpacked; then the text.
fn lengths(count: u64) -> Vec<u8> {
    [&[0x80, 1, 4][..], &varint(count), &number(2), b"ab"].concat()
}

#[test]
fn what_is_as_it_should_be_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let table = table(folder.path());
    let dictionary = || Page { kind: 2, ..Page::data(PLAIN, &[2, 0, 0, 0, b'a', b'b']) };
    for pages in [
        vec![Page::data(PLAIN, &[2, 0, 0, 0, b'a', b'b'])],
        vec![Page::data(DELTA_LENGTH, &lengths(1))],
        vec![dictionary(), Page::data(BY_DICTIONARY, &[1, 2, 0])],
    ] {
        assert_eq!(rows(&table, &file(TEXT, 0, &pages)).map_err(|e| e.to_string()), Ok(1));
    }
    assert_eq!(rows(&table, &file(NUMBER, 0, &[Page::data(PLAIN, &[7; 8])])).map_err(|e| e.to_string()), Ok(1));
}

#[test]
fn pages_that_ask_for_too_much_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let table = table(folder.path());
    let text = [2, 0, 0, 0, b'a', b'b'];
    let dictionary = |values| Page { kind: 2, values, ..Page::data(PLAIN, &text) };
    let by_dictionary = || Page::data(BY_DICTIONARY, &[1, 2, 0]);
    let with_long_statistics = (5, STRUCT, {
        let least = [varint(1 << 40), b"a".to_vec()].concat();
        let statistics = fields(&[(1, BINARY, least)]);
        fields(&[
            (1, I32, number(1)),
            (2, I32, number(0)),
            (3, I32, number(3)),
            (4, I32, number(3)),
            (5, STRUCT, statistics),
        ])
    });
    let cases = [
        ("pages that expand to", file(TEXT, ZSTD, &[Page { expanded: i32::MAX.into(), ..Page::data(PLAIN, &text) }])),
        ("invalid differences", file(TEXT, 0, &[Page::data(DELTA_LENGTH, &lengths(1 << 40))])),
        ("invalid differences", file(NUMBER, 0, &[Page::data(5, &[0x80, 1, 4, 0xFF, 0xFF, 0xFF, 0x7F, 2])])),
        ("encoding 7", file(TEXT, 0, &[Page::data(DELTA_BYTES, &[lengths(1 << 40), lengths(1 << 40)].concat())])),
        ("a page of 2147483647 values", file(TEXT, 0, &[dictionary(i32::MAX.into()), by_dictionary()])),
        ("a page of 2147483647 values", file(TEXT, 0, &[Page { values: i32::MAX.into(), ..Page::data(PLAIN, &text) }])),
        ("a page of 6 bytes, of which", {
            let mut bytes = file(TEXT, 0, &[Page { more: vec![], ..Page::data(PLAIN, &text) }]);
            // The compressed size of the page, in its header: 6 is 12 with the sign.
            let at = 4 + 5;
            assert_eq!(bytes[at], 12);
            bytes[at] = 126;
            bytes
        }),
        ("an invalid header of a page", {
            let header = fields(&[(1, I32, number(0)), (2, I32, number(6)), (3, I32, number(6)), with_long_statistics]);
            let whole = file(TEXT, 0, &[Page::data(PLAIN, &text)]);
            let behind = whole[whole.len() - 8..whole.len() - 4].try_into().unwrap();
            let footer = whole.len() - 8 - u32::from_le_bytes(behind) as usize;
            // The column has the bytes of the page as it was; what is longer reaches into the footer.
            let mut bytes = whole.clone();
            let length = header.len().min(footer - 4);
            bytes[4..4 + length].copy_from_slice(&header[..length]);
            bytes
        }),
    ];
    for (expected, bytes) in cases {
        let error = rows(&table, &bytes).expect_err(expected).to_string();
        let expected = if expected.starts_with("a page of 6") { "bytes, of which" } else { expected };
        assert!(error.contains(expected) && error.contains("gc.parquet"), "{expected}: {error}");
    }
}

#[test]
fn columns_that_are_nested_without_end_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let table = table(folder.path());
    // Depth that would take the stack of a thread.
    for (depth, expected) in [(20, "Parquet"), (200_000, "columns that are nested 200000 deep")] {
        let group = fields(&[(3, I32, number(0)), (4, BINARY, binary(b"g")), (5, I32, number(1))]);
        let leaf = fields(&[(1, I32, number(2)), (3, I32, number(0)), (4, BINARY, binary(b"c"))]);
        let schema = [vec![group; depth], vec![leaf]].concat();
        let footer = fields(&[
            (1, I32, number(1)),
            (2, LIST, list(STRUCT, &schema)),
            (3, I64, number(0)),
            (4, LIST, list(STRUCT, &[])),
        ]);
        match rows(&table, &whole(&[], &footer)) {
            Ok(rows) => assert_eq!((rows, depth), (0, 20)),
            Err(error) => assert!(depth > 20 && error.to_string().contains(expected), "{depth}: {error}"),
        }
    }
}
