//! The debug directory of a PE file (an assembly): the id of its symbols, and the symbols themselves when embedded.
//!
//! Sources: "PE Format" of Microsoft, and "PE-COFF" of dotnet/runtime (entry 17, `MPDB`).

use crate::bytes::{ParseError, Parsed, guid, inner, refuse, take, u16le, u32le};
use crate::guid::Guid;

/// Kinds of entries of the debug directory.
const CODE_VIEW: u32 = 2;
const EMBEDDED: u32 = 17;

/// Entries and sections that are looked at; the linker writes less than ten.
const MAX_ENTRIES: usize = 64;
const MAX_SECTIONS: u16 = 256;

/// Bytes of embedded symbols, expanded, at most.
#[cfg(feature = "packed")]
const MAX_EXPANDED: u32 = 256 << 20;

/// The symbols of a file, as its debug directory names them.
#[derive(Debug, Default)]
pub struct DebugDirectory<'d> {
    /// The ids of its symbols.
    pub guids: Vec<Guid>,
    /// Embedded symbols in the file: their size, and then the compressed bytes.
    pub embedded: Option<&'d [u8]>,
}

/// Finds the debug directory of a file.
pub fn debug_directory(data: &[u8]) -> Result<DebugDirectory<'_>, ParseError> {
    parse(data).map(|(_, directory)| directory).map_err(inner)
}

fn parse(data: &[u8]) -> Parsed<'_, DebugDirectory<'_>> {
    let from = |at: u32, field| take(at as usize, field)(data).map(|(rest, _)| rest);
    if data.get(..2) != Some(b"MZ") {
        return Err(refuse(data, "first bytes", "MZ, the mark of a PE file"));
    }
    let (_, at) = u32le("offset of the PE header")(from(0x3C, "offset of the PE header")?)?;
    let header = from(at, "PE header")?;
    let (rest, mark) = u32le("PE header")(header)?;
    if mark != 0x0000_4550 {
        return Err(refuse(header, "PE header", "its mark, PE"));
    }
    let (rest, _machine) = u16le("machine")(rest)?;
    let (rest, section_count) = u16le("number of sections")(rest)?;
    let (rest, _of_symbols) = take(12, "symbols of the object")(rest)?;
    let (rest, optional_size) = u16le("size of the optional header")(rest)?;
    let (rest, _characteristics) = u16le("characteristics")(rest)?;
    let (sections, optional) = take(usize::from(optional_size), "optional header")(rest)?;
    let (_, magic) = u16le("form of the optional header")(optional)?;
    // The directories follow fields of 32 or 64 bits; the debug directory is the seventh.
    let directories = if magic == 0x20B { 112 } else { 96 };
    let (entry, _before) = take(directories + 6 * 8, "debug directory")(optional)?;
    let (entry, address) = u32le("address of the debug directory")(entry)?;
    let (_, size) = u32le("size of the debug directory")(entry)?;
    let mut found = DebugDirectory::default();
    let mut rest = sections;
    let mut place = None;
    for _ in 0..section_count.min(MAX_SECTIONS) {
        let (more, _name_and_size) = take(12, "section")(rest)?;
        let (more, start) = u32le("address of a section")(more)?;
        let (more, raw_size) = u32le("size of a section")(more)?;
        let (more, raw) = u32le("place of a section")(more)?;
        let (more, _others) = take(16, "section")(more)?;
        rest = more;
        if let Some(within) = address.checked_sub(start).filter(|within| *within < raw_size) {
            place = raw.checked_add(within);
        }
    }
    let Some(place) = place.filter(|_| address != 0) else { return Ok((rest, found)) };
    let (rest, entries) = take(size as usize, "debug directory")(from(place, "debug directory")?)?;
    for entry in entries.chunks_exact(28).take(MAX_ENTRIES) {
        let (entry, _stamp) = take(12, "entry of the debug directory")(entry)?;
        let (entry, kind) = u32le("kind of an entry")(entry)?;
        let (entry, size) = u32le("size of an entry")(entry)?;
        let (entry, _address) = u32le("address of an entry")(entry)?;
        let (_, at) = u32le("place of an entry")(entry)?;
        let (_, content) = take(size as usize, "entry")(from(at, "entry")?)?;
        match kind {
            CODE_VIEW if content.starts_with(b"RSDS") => {
                let (_, id) = guid("id of the symbols")(content.get(4..).unwrap_or_default())?;
                found.guids.push(id);
            }
            EMBEDDED => found.embedded = content.strip_prefix(b"MPDB"),
            _ => {}
        }
    }
    Ok((rest, found))
}

/// Embedded symbols, expanded; `None` when they are damaged or too large.
#[cfg(feature = "packed")]
pub fn expand(embedded: &[u8]) -> Option<Vec<u8>> {
    use std::io::Read;

    let (packed, size) = u32le("size of the symbols")(embedded).ok()?;
    if size > MAX_EXPANDED {
        return None;
    }
    let mut data = Vec::new();
    flate2::read::DeflateDecoder::new(packed).take(u64::from(size)).read_to_end(&mut data).ok()?;
    Some(data)
}

/// Without the feature `packed` nothing is expanded.
#[cfg(not(feature = "packed"))]
pub fn expand(_embedded: &[u8]) -> Option<Vec<u8>> {
    None
}
