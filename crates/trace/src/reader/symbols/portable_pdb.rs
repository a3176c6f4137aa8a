//! Portable PDBs: from a method and an IL offset to a file and a line.
//!
//! Sources: ECMA-335 II.24 (metadata root, `#~` stream, heaps), II.23.2 (compressed integers), and the specification
//! "Portable PDB" of dotnet/runtime (`#Pdb` stream, tables Document and MethodDebugInformation, blobs of names and
//! sequence points).

use std::ops::Range;

use super::pe;
use crate::bytes::{ParseError, Parsed, fail, guid, inner, refuse, take, u8le, u16le, u32le, u64le};
use crate::guid::Guid;
use crate::map::Map;

/// First bytes of a metadata root.
const SIGNATURE: u32 = 0x424A_5342;

/// Numbers of the two tables that are read. Both come before the other tables of a PDB.
const DOCUMENT: u32 = 0x30;
const METHOD_DEBUG_INFORMATION: u32 = 0x31;

/// Table number in the high byte of a method's token.
const METHOD_DEF: u32 = 0x06;

/// Sequence points, and changes of the document between them, that are read from one file, at most: a hostile file can
/// give all its methods the same long blob. The largest assembly of .NET 10 has 0.5 million.
const MAX_POINTS: usize = 1 << 22;

/// Bytes of a document's name, at most.
const MAX_NAME: usize = 4 << 10;

/// Bytes of all names, at most. Each counts for some, so that there is an end of reading what is no name.
const MAX_NAMES: usize = 16 << 20;
const LEAST_NAME: usize = 64;

/// From this IL offset on the code is of this line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    il_offset: u32,
    line: u32,
    document: u32,
}

/// A table whose rows have all the same size.
#[derive(Clone, Debug, Default)]
struct Table {
    rows: u32,
    row_size: usize,
    place: Range<usize>,
}

/// The symbols of an assembly.
#[derive(Debug)]
pub struct PortablePdb {
    data: Vec<u8>,
    /// The first part of the PDB id, which the assembly and the recording have, too.
    pub guid: Guid,
    blobs: Range<usize>,
    /// Whether an index into the blobs has four bytes.
    wide_blobs: bool,
    documents: Table,
    methods: Table,
    /// Points that were read before, by the method's row; names below by the document's row.
    points: Map<u32, Box<[Point]>>,
    names: Map<u32, Box<str>>,
    points_left: usize,
    names_left: usize,
}

impl PortablePdb {
    /// Of a file: a PDB, or an assembly with an embedded one; with a `wanted` id only the one that has it.
    pub fn of_file(data: Vec<u8>, wanted: Option<Guid>) -> Option<PortablePdb> {
        let is_wanted = |guid: &Guid| wanted.is_none_or(|wanted| *guid == wanted);
        let data = if data.starts_with(b"MZ") {
            let directory = pe::debug_directory(&data).ok()?;
            pe::expand(directory.embedded.filter(|_| directory.guids.iter().any(is_wanted))?)?
        } else {
            data
        };
        PortablePdb::parse(data).ok().filter(|pdb| is_wanted(&pdb.guid))
    }

    /// Looks through the head of a file.
    fn parse(data: Vec<u8>) -> Result<PortablePdb, ParseError> {
        let (_, streams) = streams(&data).map_err(inner)?;
        let of = |name: &[u8]| streams.iter().find(|(known, _)| *known == name).map(|(_, place)| place.clone());
        let missing = |what| inner(fail(0, what, "a portable PDB with this stream"));
        let pdb = of(b"#Pdb").ok_or_else(|| missing("#Pdb"))?;
        let (_, guid) = guid("PDB id")(data.get(pdb).unwrap_or_default()).map_err(inner)?;
        let place = of(b"#~").ok_or_else(|| missing("#~"))?;
        let (_, (wide_blobs, documents, methods)) = tables(&data, place).map_err(inner)?;
        let blobs = of(b"#Blob").unwrap_or_default();
        Ok(PortablePdb {
            data,
            guid,
            blobs,
            wide_blobs,
            documents,
            methods,
            points: Map::default(),
            names: Map::default(),
            points_left: MAX_POINTS,
            names_left: MAX_NAMES,
        })
    }

    /// Bytes in memory, but for what was read out of them.
    pub(super) fn size(&self) -> usize {
        self.data.len()
    }

    /// File and line of an IL offset of a method; without an offset of the beginning of the method. Points that are
    /// marked as hidden stand for no line: the code behind them counts to the line before, as in the runtime's own
    /// stack traces.
    pub fn line(&mut self, token: u32, il_offset: Option<u32>) -> Option<(&str, u32)> {
        if token >> 24 != METHOD_DEF {
            return None;
        }
        let row = token & 0x00FF_FFFF;
        if !self.points.contains_key(&row) {
            self.points_left = self.points_left.saturating_sub(1);
            let mut left = self.points_left;
            let points = self.read_points(row, &mut left).unwrap_or_default();
            self.points_left = left;
            self.points.insert(row, points.into_iter().filter(|point| point.line != HIDDEN).collect());
        }
        let points = self.points.get(&row)?;
        let index = match il_offset {
            Some(offset) => points.partition_point(|point| point.il_offset <= offset).checked_sub(1)?,
            None => 0,
        };
        let Point { line, document, .. } = *points.get(index)?;
        if !self.names.contains_key(&document) {
            let name = self.read_name(document).unwrap_or_default();
            self.names_left = self.names_left.saturating_sub(name.len().max(LEAST_NAME));
            self.names.insert(document, name.into());
        }
        let name = self.names.get(&document).filter(|name| !name.is_empty())?;
        Some((name, line))
    }

    /// The points of a method in their order; none when it has none.
    fn read_points(&self, row: u32, left: &mut usize) -> Option<Vec<Point>> {
        let row = self.row(&self.methods, row)?;
        let (row, document) = index(self.wide_documents(), "Document")(row).ok()?;
        let (_, blob) = index(self.wide_blobs, "SequencePoints")(row).ok()?;
        if blob == 0 {
            return None;
        }
        // A blob that is damaged has the points before the damage.
        let mut points = Vec::new();
        let _end = sequence_points(self.blob(blob)?, document, left, &mut points);
        Some(points)
    }

    fn read_name(&self, row: u32) -> Option<String> {
        let (_, name) = index(self.wide_blobs, "Name")(self.row(&self.documents, row)?).ok()?;
        let (separator, mut parts) = self.blob(name)?.split_first()?;
        let (mut text, most) = (Vec::new(), MAX_NAME.min(self.names_left));
        let mut is_first = true;
        // Parts may be empty, and the bytes of many.
        if parts.len() > 4 * MAX_NAME {
            return None;
        }
        while !parts.is_empty() {
            let (rest, part) = compressed(parts).ok()?;
            parts = rest;
            if !is_first && *separator != 0 {
                text.push(*separator);
            }
            is_first = false;
            let part = if part == 0 { &[] } else { self.blob(part)? };
            if text.len() + part.len() > most {
                return None;
            }
            text.extend_from_slice(part);
        }
        String::from_utf8(text).ok()
    }

    /// Whether an index of a document has four bytes.
    fn wide_documents(&self) -> bool {
        self.documents.rows > 0xFFFF
    }

    /// The bytes of a row, which are numbered from 1.
    fn row(&self, table: &Table, row: u32) -> Option<&[u8]> {
        let at = usize::try_from(row.checked_sub(1).filter(|_| row <= table.rows)?).ok()?;
        let from = table.place.start.checked_add(at.checked_mul(table.row_size)?)?;
        self.data.get(from..from.checked_add(table.row_size)?)
    }

    fn blob(&self, at: u32) -> Option<&[u8]> {
        let heap = self.data.get(self.blobs.clone())?;
        let (rest, length) = compressed(heap.get(usize::try_from(at).ok()?..)?).ok()?;
        rest.get(..usize::try_from(length).ok()?)
    }
}

type Stream<'a> = (&'a [u8], Range<usize>);

/// The streams of a metadata root: name and place.
fn streams(data: &[u8]) -> Parsed<'_, Vec<Stream<'_>>> {
    let (rest, signature) = u32le("metadata signature")(data)?;
    if signature != SIGNATURE {
        return Err(refuse(data, "metadata signature", "BSJB, the mark of a portable PDB"));
    }
    let (rest, _versions) = take(8, "metadata versions")(rest)?;
    let (rest, length) = u32le("length of the version text")(rest)?;
    let (rest, _text) = take(length as usize, "version text")(rest)?;
    let (rest, _flags) = u16le("metadata flags")(rest)?;
    let (mut rest, count) = u16le("number of streams")(rest)?;
    let mut streams = Vec::new();
    for _ in 0..count {
        let (more, offset) = u32le("offset of a stream")(rest)?;
        let (more, size) = u32le("size of a stream")(more)?;
        let end = more.iter().take(32).position(|byte| *byte == 0);
        let end = end.ok_or_else(|| refuse(more, "name of a stream", "a name of less than 32 bytes"))?;
        // The zero behind it fills the name up to a multiple of four.
        let (more, padded) = take((end + 4) & !3, "name of a stream")(more)?;
        rest = more;
        let from = offset as usize;
        let to = from.checked_add(size as usize).filter(|to| *to <= data.len());
        let to = to.ok_or_else(|| refuse(rest, "place of a stream", "a stream within the file"))?;
        streams.push((padded.get(..end).unwrap_or_default(), from..to));
    }
    Ok((rest, streams))
}

/// Whether indices into the blobs are wide, and the two tables.
fn tables(data: &[u8], place: Range<usize>) -> Parsed<'_, (bool, Table, Table)> {
    let end = place.end;
    let stream = data.get(place).unwrap_or_default();
    let (rest, _versions) = take(6, "versions of the tables")(stream)?;
    let (rest, heap_sizes) = u8le("sizes of the heaps")(rest)?;
    let (rest, _reserved) = take(1, "reserved")(rest)?;
    let (rest, valid) = u64le("which tables there are")(rest)?;
    let (mut rest, _sorted) = u64le("which tables are sorted")(rest)?;
    if valid & ((1 << DOCUMENT) - 1) != 0 {
        return Err(refuse(rest, "which tables there are", "the tables of a portable PDB only"));
    }
    let (mut documents, mut methods) = (Table::default(), Table::default());
    for number in (0..64).filter(|number| valid >> number & 1 != 0) {
        let (more, rows) = u32le("rows of a table")(rest)?;
        rest = more;
        match number {
            DOCUMENT => documents.rows = rows,
            METHOD_DEBUG_INFORMATION => methods.rows = rows,
            _ => {}
        }
    }
    let width = |is_wide: bool| if is_wide { 4 } else { 2 };
    let (guids, blobs) = (width(heap_sizes & 2 != 0), width(heap_sizes & 4 != 0));
    documents.row_size = 2 * blobs + 2 * guids;
    methods.row_size = width(documents.rows > 0xFFFF) + blobs;
    let mut at = end - rest.len();
    for table in [&mut documents, &mut methods] {
        let size = (table.rows as usize).checked_mul(table.row_size);
        let to = size.and_then(|size| at.checked_add(size)).filter(|to| *to <= end);
        let to = to.ok_or_else(|| refuse(rest, "rows of a table", "tables within their stream"))?;
        table.place = at..to;
        at = to;
    }
    Ok((rest, (heap_sizes & 4 != 0, documents, methods)))
}

/// An index of two or four bytes.
fn index<'a>(is_wide: bool, field: &'static str) -> impl Fn(&'a [u8]) -> Parsed<'a, u32> {
    move |input: &'a [u8]| match is_wide {
        true => u32le(field)(input),
        false => u16le(field)(input).map(|(rest, value)| (rest, u32::from(value))),
    }
}

/// A compressed number with the bits that it had room for.
fn compressed_bits(input: &[u8]) -> Parsed<'_, (u32, u32)> {
    const FIELD: &str = "compressed number";
    let (rest, first) = u8le(FIELD)(input)?;
    let first = u32::from(first);
    match first {
        0..=0x7F => Ok((rest, (first, 7))),
        0x80..=0xBF => u8le(FIELD)(rest).map(|(rest, low)| (rest, ((first & 0x3F) << 8 | u32::from(low), 14))),
        0xC0..=0xDF => {
            let (rest, low) = take(3, FIELD)(rest)?;
            let value = low.iter().fold(first & 0x1F, |value, byte| value << 8 | u32::from(*byte));
            Ok((rest, (value, 29)))
        }
        _ => Err(refuse(input, FIELD, "a first byte below 0xE0")),
    }
}

fn compressed(input: &[u8]) -> Parsed<'_, u32> {
    compressed_bits(input).map(|(rest, (value, _))| (rest, value))
}

/// The sign is in the lowest bit.
fn compressed_signed(input: &[u8]) -> Parsed<'_, i64> {
    let (rest, (value, bits)) = compressed_bits(input)?;
    let below_zero = if value & 1 != 0 { 1i64 << (bits - 1) } else { 0 };
    Ok((rest, i64::from(value >> 1) - below_zero))
}

/// The line of a hidden point.
const HIDDEN: u32 = 0x00FE_EFEE;

/// Puts the points of a method into `points`; `left` is how many records may still be read.
fn sequence_points<'a>(blob: &'a [u8], document: u32, left: &mut usize, points: &mut Vec<Point>) -> Parsed<'a, ()> {
    let (mut rest, _local_signature) = compressed(blob)?;
    let mut document = document;
    if document == 0 {
        (rest, document) = compressed(rest)?;
    }
    let (mut il_offset, mut is_first) = (0u32, true);
    // Line and column of the last point that is not hidden.
    let mut before: Option<(i64, i64)> = None;
    while !rest.is_empty() && *left > 0 {
        *left -= 1;
        let (more, delta) = compressed(rest)?;
        if delta == 0 && !is_first {
            (rest, document) = compressed(more)?;
            continue;
        }
        is_first = false;
        il_offset = il_offset.saturating_add(delta);
        let (more, lines) = compressed(more)?;
        let (more, columns) = match lines {
            0 => compressed(more).map(|(rest, columns)| (rest, i64::from(columns)))?,
            _ => compressed_signed(more)?,
        };
        if lines == 0 && columns == 0 {
            rest = more;
            points.push(Point { il_offset, line: HIDDEN, document });
            continue;
        }
        let (more, (line, column)) = match before {
            None => {
                let (more, line) = compressed(more)?;
                compressed(more).map(|(more, column)| (more, (i64::from(line), i64::from(column))))?
            }
            Some((line, column)) => {
                let (more, by) = compressed_signed(more)?;
                compressed_signed(more).map(|(more, across)| (more, (line + by, column + across)))?
            }
        };
        rest = more;
        before = Some((line, column));
        let Ok(line) = u32::try_from(line) else { return Err(refuse(rest, "line", "a line of 0 and more")) };
        points.push(Point { il_offset, line, document });
    }
    Ok((rest, ()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of ECMA-335 II.23.2.
    #[test]
    fn compressed_numbers_are_those_of_the_standard() {
        let unsigned: [(u32, &[u8]); 8] = [
            (0x03, &[0x03]),
            (0x7F, &[0x7F]),
            (0x80, &[0x80, 0x80]),
            (0x2E57, &[0xAE, 0x57]),
            (0x3FFF, &[0xBF, 0xFF]),
            (0x4000, &[0xC0, 0x00, 0x40, 0x00]),
            (0x1FFF_FFFF, &[0xDF, 0xFF, 0xFF, 0xFF]),
            (0, &[0]),
        ];
        for (value, bytes) in unsigned {
            assert_eq!(compressed(bytes).unwrap(), (&[][..], value));
        }
        let signed: [(i64, &[u8]); 8] = [
            (3, &[0x06]),
            (-3, &[0x7B]),
            (64, &[0x80, 0x80]),
            (-64, &[0x01]),
            (8192, &[0xC0, 0x00, 0x40, 0x00]),
            (-8192, &[0x80, 0x01]),
            (268_435_455, &[0xDF, 0xFF, 0xFF, 0xFE]),
            (-268_435_456, &[0xC0, 0x00, 0x00, 0x01]),
        ];
        for (value, bytes) in signed {
            assert_eq!(compressed_signed(bytes).unwrap(), (&[][..], value));
        }
        assert!(compressed(&[0xE0, 0, 0, 0, 0]).is_err() && compressed(&[0xC0, 0, 0]).is_err());
    }

    #[test]
    fn points_are_hidden_change_the_document_and_go_back() {
        // No local signature; at 0 line 10, at 2 hidden, another document, at 5 line 7.
        let blob = [0, 0, 1, 4, 10, 9, 2, 0, 0, 0, 2, 3, 0, 4, 0x7B, 0];
        let mut points = Vec::new();
        let mut left = 100;
        sequence_points(&blob, 1, &mut left, &mut points).unwrap();
        let point = |il_offset, line, document| Point { il_offset, line, document };
        assert_eq!(points, [point(0, 10, 1), point(2, HIDDEN, 1), point(5, 7, 2)]);
        assert_eq!(left, 96, "the change of the document counts");
        points.clear();
        sequence_points(&blob, 1, &mut 2, &mut points).unwrap();
        assert_eq!(points.len(), 2, "no more than are wanted");
        // A blob of nothing but changes of the document has an end, too.
        let (changes, mut left) = ([&[0, 0, 1, 4, 10, 9][..], &[0, 1].repeat(100_000)].concat(), 1000);
        let (rest, ()) = sequence_points(&changes, 1, &mut left, &mut points).unwrap();
        assert_eq!((left, rest.len()), (0, 200_000 - 2 * 999));
    }

    /// A PDB with a document whose name has these parts, each an offset in the blobs, and the blobs behind the name.
    fn named(separator: u8, parts: &[u8], more: &[u8]) -> PortablePdb {
        let length = |len: usize| (0xC000_0000 | len as u32).to_be_bytes().to_vec();
        let name = [&length(parts.len() + 1)[..], &[separator], parts].concat();
        let data = [&[0][..], &name, more].concat();
        let row: Vec<u8> = [1u16, 0, 0, 0].iter().flat_map(|index| index.to_le_bytes()).collect();
        let (blobs, rows) = (0..data.len(), data.len()..data.len() + row.len());
        PortablePdb {
            data: [data, row].concat(),
            guid: Guid::NONE,
            blobs,
            wide_blobs: false,
            documents: Table { rows: 1, row_size: 8, place: rows },
            methods: Table::default(),
            points: Map::default(),
            names: Map::default(),
            points_left: MAX_POINTS,
            names_left: MAX_NAMES,
        }
    }

    #[test]
    fn names_have_few_parts_and_short_ones() {
        // The blob behind the name begins at 1 + 4 + 1 + 3.
        let pdb = named(b'/', &[0, 9, 9], b"\x03abc");
        assert_eq!(pdb.read_name(1).as_deref(), Some("/abc/abc"));
        let many = |parts: usize| named(0, &vec![0; parts], b"").read_name(1);
        assert_eq!((many(4 * MAX_NAME), many(4 * MAX_NAME + 1)), (Some(String::new()), None));
        // A part that is too long is not copied.
        let long = [&[0xC0, 0, 0x20, 0][..], &[b'x'; 0x2000]].concat();
        assert_eq!(named(b'/', &[0, 9, 9], &long).read_name(1), None);
    }

    /// Every cut and every changed byte of a real file is read or refused.
    #[test]
    fn damaged_files_are_harmless() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/Churn.pdb");
        let data = std::fs::read(path).unwrap();
        // The number of lines that are found; `None` when the file is refused.
        let look = |data: Vec<u8>| {
            let mut pdb = PortablePdb::parse(data).ok()?;
            let tokens = (0..600).map(|row| 0x0600_0000 + row).chain([0x06FF_FFFF]);
            let lines = tokens.flat_map(|token| [(token, None), (token, Some(7))]);
            Some(lines.filter(|(token, offset)| pdb.line(*token, *offset).is_some()).count())
        };
        let whole = look(data.clone()).expect("the file as it is");
        assert!(whole > 20, "{whole} lines");
        // A file without its streams is refused.
        let cut: Vec<_> = (0..2000.min(data.len())).map(|length| look(data[..length].to_vec())).collect();
        assert_eq!(cut.first(), Some(&None));
        look(data[..data.len() - 1].to_vec());
        // Anywhere, several bytes at once, and every method looked at.
        let mut state = 88_172_645_463_325_252u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let (mut read, mut refused, mut fewer) = (0, 0, 0);
        for _ in 0..100 {
            let mut changed = data.clone();
            for _ in 0..1 + random(20) {
                let at = random(changed.len());
                changed[at] = random(256) as u8;
            }
            let lines = look(changed);
            (read, refused) = (read + u32::from(lines.is_some()), refused + u32::from(lines.is_none()));
            fewer += u32::from(lines.is_some_and(|lines| lines < whole));
        }
        assert!(
            read > 50 && refused + fewer > 5,
            "{read} are read, {fewer} of them with fewer lines; {refused} are refused"
        );
        for at in 0..1000 {
            for value in [0, 0x7F, 0xFF] {
                let mut changed = data.clone();
                changed[at] = value;
                (read, refused) = if look(changed).is_some() { (read + 1, refused) } else { (read, refused + 1) };
            }
        }
        assert!(read > 1000 && refused > 100, "{read} are read, {refused} are refused");
    }
}
