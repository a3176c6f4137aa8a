//! Native PDBs: from a relative virtual address to a function and a line.
//!
//! Sources: the pages on the PDB info stream, the DBI stream, module streams and CodeView records of LLVM's
//! documentation, and `cvinfo.h` of microsoft/microsoft-pdb.

use std::fmt;

use super::decorated::{plain_name, without_token};
use super::functions::{FoundFunction, Functions, NativePlace};
use super::msf::Msf;
use super::native_lines::Lines;
use crate::bytes::{Parsed, counted, guid, refuse, take, u8le, u16le, u32le};
use crate::prelude::*;

/// Streams with fixed numbers.
const INFO: usize = 1;
const DBI: usize = 3;

/// The number of a stream that is not there.
const NO_STREAM: u16 = u16::MAX;

/// Kinds of records: functions seen from outside of their file and only within it, each in two forms, and public names.
const FUNCTIONS: [u16; 4] = [0x110F, 0x1110, 0x1146, 0x1147];
const PUBLIC: u16 = 0x110E;

/// Flags of a public name that is code, or a function.
const IS_CODE: u32 = 0x3;

/// Versions of the list of section contributions, and sizes of its rows.
const CONTRIBUTIONS: [(u32, usize); 2] = [(0xEFFE_0000 + 19_970_605, 28), (0xEFFE_0000 + 20_140_516, 32)];

/// Sections of an image, at most, as Windows has it.
const MAX_SECTIONS: usize = 96;

/// The largest number of modules, for which `u16` has numbers.
const MAX_MODULES: usize = 1 << 16;

/// A module: the part of an object file in the program.
#[derive(Clone, Copy, Debug)]
struct Module {
    stream: u16,
    /// Bytes of its symbols and of its lines in an old and in the present form, one behind the other.
    symbols: u32,
    old_lines: u32,
    lines: u32,
}

/// A part of a section that came out of one module.
#[derive(Clone, Copy, Debug)]
struct Contribution {
    section: u16,
    offset: u32,
    size: u32,
    module: u16,
}

/// A module's part of a section, as it lies in memory.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: u64,
    end: u64,
    module: u32,
}

/// Where a section lies in memory.
#[derive(Clone, Copy, Debug)]
struct Section {
    start: u32,
    size: u32,
}

/// The DBI stream.
#[derive(Debug, Default)]
struct Dbi {
    age: u32,
    /// Number of the stream of public names.
    records: u16,
    modules: Vec<Module>,
    contributions: Vec<Contribution>,
    /// Streams that other tools put in, by their meaning.
    others: Vec<u16>,
}

/// The symbols of a native file.
pub struct NativePdb {
    msf: Msf,
    sections: Vec<Section>,
    modules: Vec<Module>,
    functions: Functions,
    /// Texts that lines refer to.
    names: Vec<u8>,
    /// Lines that were read before, by module.
    lines: Map<u32, Lines>,
}

impl fmt::Debug for NativePdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativePdb").field("functions", &self.functions.len()).finish_non_exhaustive()
    }
}

impl NativePdb {
    /// Reads a file, if it has this id and, where the recording has one, this age. `None` also for a file that is
    /// damaged, and for one of code that was moved behind the linker (with OMAP streams), as the old kernels were.
    pub fn parse(data: Vec<u8>, wanted: Guid, wanted_age: Option<u32>) -> Option<NativePdb> {
        let mut msf = Msf::parse(data).ok()?;
        let info = msf.stream(INFO)?;
        let (_, (guid, names)) = info_stream(&info).ok()?;
        if guid != wanted {
            return None;
        }
        let dbi = msf.stream(DBI)?;
        let (_, dbi) = dbi_stream(&dbi).ok()?;
        let is_moved = [3, 4].iter().any(|kind| dbi.others.get(*kind).is_some_and(|stream| *stream != NO_STREAM));
        if is_moved || wanted_age.is_some_and(|age| age != dbi.age) {
            return None;
        }
        let headers = dbi.others.get(5).copied().filter(|stream| *stream != NO_STREAM)?;
        let headers = msf.stream(usize::from(headers))?;
        let sections: Vec<Section> =
            headers.chunks_exact(40).take(MAX_SECTIONS).filter_map(|header| Some(section(header).ok()?.1)).collect();
        let parts = dbi.contributions.iter().filter_map(|part| {
            let start = address(&sections, part.section, part.offset)?;
            Some(Part { start, end: start.saturating_add(u64::from(part.size)), module: u32::from(part.module) })
        });
        let mut parts: Vec<Part> = parts.collect();
        parts.sort_by_key(|part| part.start);
        let names = names.and_then(|names| msf.stream(names as usize)).unwrap_or_default();
        let mut functions = Functions::default();
        for (module, index) in dbi.modules.iter().zip(0..) {
            if module.stream == NO_STREAM || module.symbols == 0 {
                continue;
            }
            let Some(stream) = msf.stream(usize::from(module.stream)) else { continue };
            let symbols = stream.get(4..module.symbols as usize).unwrap_or_default();
            add_functions(&mut functions, symbols, &sections, index);
        }
        functions.sort();
        if let Some(records) = msf.stream(usize::from(dbi.records)) {
            add_public(&mut functions, &records, &sections, &parts);
        }
        Some(NativePdb { msf, sections, modules: dbi.modules, functions, names, lines: Map::default() })
    }

    /// Bytes of the file.
    pub fn size(&self) -> usize {
        self.msf.size()
    }

    /// The function at a distance from the beginning of the image. Where no function begins it is the one before it,
    /// because the address behind a call may be the end of its function.
    pub fn at(&mut self, rva: u64) -> Option<NativePlace<'_>> {
        let found = self.functions.find(rva);
        let FoundFunction { start, name, owner } = found.or_else(|| self.functions.find(rva.checked_sub(1)?))?;
        let offset = rva - start;
        if !self.lines.contains_key(&owner) {
            let lines = Self::read_lines(&mut self.msf, self.modules.get(owner as usize), &self.sections);
            self.lines.insert(owner, lines.unwrap_or_default());
        }
        // The code before the address, as it is behind a call; at the very beginning there is none.
        let before = rva.saturating_sub(u64::from(offset > 0));
        let line = self.lines.get(&owner).and_then(|lines| lines.find(before, start, &self.names));
        Some(NativePlace { name, offset, line })
    }

    fn read_lines(msf: &mut Msf, module: Option<&Module>, sections: &[Section]) -> Option<Lines> {
        let module = module.filter(|module| module.stream != NO_STREAM && module.lines != 0)?;
        let stream = msf.stream(usize::from(module.stream))?;
        let from = (module.symbols as usize).checked_add(module.old_lines as usize)?;
        let content = stream.get(from..from.checked_add(module.lines as usize)?)?;
        Some(Lines::read(content, |section, offset| address(sections, section, offset)))
    }
}

/// The address of an offset in a section, whose number counts from 1.
fn address(sections: &[Section], section: u16, offset: u32) -> Option<u64> {
    let Section { start, size } = sections.get(usize::from(section).checked_sub(1)?)?;
    (offset <= *size).then(|| u64::from(*start) + u64::from(offset))
}

fn section(header: &[u8]) -> Parsed<'_, Section> {
    let (rest, _name) = take(8, "name of a section")(header)?;
    let (rest, (size, start)) = (u32le("size of a section"), u32le("address of a section")).parse(rest)?;
    Ok((rest, Section { start, size }))
}

/// The id, and the number of the stream of names.
fn info_stream(info: &[u8]) -> Parsed<'_, (Guid, Option<u32>)> {
    let (rest, _version_time_and_age) = take(12, "PDB info")(info)?;
    let (rest, guid) = guid("PDB id")(rest)?;
    // Streams with names: their texts, and a hash table from the place of a text to the number of a stream.
    let (rest, size) = u32le("size of names")(rest)?;
    let (rest, texts) = take(size as usize, "names of streams")(rest)?;
    let (rest, count) = u32le("number of names")(rest)?;
    let (mut rest, _capacity) = u32le("capacity of names")(rest)?;
    for _used_and_deleted in 0..2 {
        let (more, words) = u32le("size of a bit set")(rest)?;
        (rest, _) = counted(words, 4, "bit set", u32le("bits")).parse(more)?;
    }
    let pair = (u32le("place of a name"), u32le("number of a stream"));
    let (rest, pairs) = counted(count, 8, "names of streams", pair).parse(rest)?;
    let is_names = |at: u32| texts.get(at as usize..).is_some_and(|text| text.starts_with(b"/names\0"));
    let names = pairs.into_iter().find(|(at, _)| is_names(*at)).map(|(_, stream)| stream);
    Ok((rest, (guid, names)))
}

fn dbi_stream(dbi: &[u8]) -> Parsed<'_, Dbi> {
    let size = |name| u32le(name);
    let (rest, (mark, _version, age)) = (u32le("DBI mark"), u32le("DBI version"), u32le("age")).parse(dbi)?;
    if mark != u32::MAX {
        return Err(refuse(dbi, "DBI mark", "-1, the mark of the DBI stream"));
    }
    let (rest, _globals_and_publics) = take(8, "streams of hashes")(rest)?;
    let (rest, records) = u16le("stream of records")(rest)?;
    let (rest, _build) = take(2, "build")(rest)?;
    let (rest, (modules, contributions, map, files)) =
        (size("size of modules"), size("size of contributions"), size("size of the map"), size("size of files"))
            .parse(rest)?;
    let (rest, (types, _server, others, edits)) =
        (size("size of types"), size("type server"), size("size of streams"), size("size of edits")).parse(rest)?;
    let (rest, _flags_and_machine) = take(8, "flags")(rest)?;
    let (rest, modules) = take(modules as usize, "modules")(rest)?;
    let (rest, contributions) = take(contributions as usize, "contributions")(rest)?;
    let (rest, _map) = take(map as usize, "map of sections")(rest)?;
    let (rest, _files) = take(files as usize, "files")(rest)?;
    let (rest, _types) = take(types as usize, "types")(rest)?;
    let (rest, _edits) = take(edits as usize, "edits")(rest)?;
    let (rest, others) = take(others as usize, "other streams")(rest)?;
    let others = others.as_chunks().0.iter().map(|stream| u16::from_le_bytes(*stream)).collect();
    let modules = self::modules(modules);
    let contributions = self::contributions(contributions).map(|(_, list)| list).unwrap_or_default();
    Ok((rest, Dbi { age, records, modules, contributions, others }))
}

/// The modules, up to the first that is damaged.
fn modules(mut rest: &[u8]) -> Vec<Module> {
    let mut list = Vec::new();
    while let Ok((more, module)) = module(rest)
        && list.len() < MAX_MODULES
    {
        list.push(module);
        rest = more;
    }
    list
}

fn module(input: &[u8]) -> Parsed<'_, Module> {
    let (rest, _contribution) = take(34, "module")(input)?;
    let (rest, stream) = u16le("stream of a module")(rest)?;
    let (rest, (symbols, old_lines, lines)) =
        (u32le("size of symbols"), u32le("size of old lines"), u32le("size of lines")).parse(rest)?;
    let (rest, _files) = take(16, "files of a module")(rest)?;
    let (rest, _name) = textz("name of a module")(rest)?;
    let (rest, _object) = textz("object file of a module")(rest)?;
    let padding = (input.len() - rest.len()).wrapping_neg() % 4;
    let rest = rest.get(padding..).unwrap_or_default();
    Ok((rest, Module { stream, symbols, old_lines, lines }))
}

/// The parts of sections that each module contributed.
fn contributions(input: &[u8]) -> Parsed<'_, Vec<Contribution>> {
    let (rest, version) = u32le("version of contributions")(input)?;
    let Some((_, size)) = CONTRIBUTIONS.iter().find(|(known, _)| *known == version) else {
        return Err(refuse(input, "version of contributions", "a version that is known"));
    };
    let row = |row| -> Parsed<'_, Contribution> {
        let (rest, (section, _)) = (u16le("section"), u16le("padding")).parse(row)?;
        let (rest, (offset, size, _)) = (u32le("offset"), u32le("size"), u32le("flags")).parse(rest)?;
        let (rest, module) = u16le("module")(rest)?;
        Ok((rest, Contribution { section, offset, size, module }))
    };
    Ok((&[], rest.chunks_exact(*size).filter_map(|bytes| Some(row(bytes).ok()?.1)).collect()))
}

/// A text up to a zero.
fn textz<'a>(field: &'static str) -> impl Fn(&'a [u8]) -> Parsed<'a, &'a [u8]> {
    move |input: &'a [u8]| {
        let end = input.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| refuse(input, field, "a text with a zero behind it"))?;
        let (rest, text) = take(end, field)(input)?;
        Ok((rest.get(1..).unwrap_or_default(), text))
    }
}

/// Records: their kinds and contents, up to the first that is damaged.
fn records(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (more, length) = u16le("length of a record")(rest).ok()?;
        let (more, record) = take(usize::from(length), "record")(more).ok()?;
        rest = more;
        u16le("kind of a record")(record).ok().map(|(content, kind)| (kind, content))
    })
}

/// Adds the functions of a module.
fn add_functions(functions: &mut Functions, symbols: &[u8], sections: &[Section], module: u32) {
    for (_, content) in records(symbols).filter(|(kind, _)| FUNCTIONS.contains(kind)) {
        let Ok((_, (size, section, offset, name))) = function(content) else { continue };
        let Some(start) = address(sections, section, offset) else { continue };
        let name = String::from_utf8_lossy(name);
        if !functions.add(start..start.saturating_add(u64::from(size)), without_token(&name), module) {
            return;
        }
    }
}

/// Size, section, offset and name.
fn function(content: &[u8]) -> Parsed<'_, (u32, u16, u32, &[u8])> {
    let (rest, _scopes) = take(12, "scopes of a function")(content)?;
    let (rest, size) = u32le("size of a function")(rest)?;
    let (rest, _body_and_type) = take(12, "type of a function")(rest)?;
    let (rest, (offset, section)) = (u32le("offset of a function"), u16le("section of a function")).parse(rest)?;
    let (rest, _flags) = u8le("flags of a function")(rest)?;
    let (rest, name) = textz("name of a function")(rest)?;
    Ok((rest, (size, section, offset, name)))
}

/// Adds public names where no function of a module is. They have no size: each goes as far as the next one, as what
/// came from the same place, or as its section.
fn add_public(functions: &mut Functions, stream: &[u8], sections: &[Section], parts: &[Part]) {
    let mut found = Vec::new();
    for (_, content) in records(stream).filter(|(kind, _)| *kind == PUBLIC) {
        let Ok((_, (flags, section, offset, name))) = public(content) else { continue };
        let Some(start) = address(sections, section, offset).filter(|_| flags & IS_CODE != 0) else { continue };
        if functions.find(start).is_none() {
            let end = sections.get(usize::from(section) - 1).map(|s| u64::from(s.start) + u64::from(s.size));
            found.push((start, end.unwrap_or(start), name));
        }
    }
    found.sort_by_key(|(start, ..)| *start);
    found.dedup_by_key(|(start, ..)| *start);
    let next = found.iter().skip(1).map(|(start, ..)| *start).chain([u64::MAX]).collect::<Vec<_>>();
    for ((start, end, name), next) in found.iter().zip(next) {
        let upto = parts.partition_point(|part| part.start <= *start);
        let part = upto.checked_sub(1).and_then(|at| parts.get(at)).filter(|part| *start < part.end);
        let end = next.min(*end).min(part.map_or(u64::MAX, |part| part.end));
        let end = functions.next_start(*start).map_or(end, |next| end.min(next));
        let name = String::from_utf8_lossy(name);
        let plain = plain_name(&name);
        let name = plain.as_deref().unwrap_or_else(|| without_token(&name));
        functions.add(*start..end, name, part.map_or(u32::MAX, |part| part.module));
    }
    functions.sort();
}

/// Flags, section, offset and name.
fn public(content: &[u8]) -> Parsed<'_, (u32, u16, u32, &[u8])> {
    let (rest, flags) = u32le("flags of a name")(content)?;
    let (rest, (offset, section)) = (u32le("offset of a name"), u16le("section of a name")).parse(rest)?;
    let (rest, name) = textz("public name")(rest)?;
    Ok((rest, (flags, section, offset, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PDB of our own (samples/native), and its id.
    fn probe() -> (Vec<u8>, Guid) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/native/probe.pdb");
        (std::fs::read(path).unwrap(), Guid::constant("b3162036-30c3-cf32-4c4c-44205044422e"))
    }

    /// Looks every address up.
    fn names(pdb: &mut NativePdb) -> Vec<String> {
        let place = |rva| pdb.at(rva).map(|place| format!("{}+{} {:?}", place.name, place.offset, place.line));
        (0xFF0..0x1210).filter_map(place).collect()
    }

    #[test]
    fn id_and_age_decide() {
        let (data, id) = probe();
        assert!(NativePdb::parse(data.clone(), id, None).is_some());
        assert!(NativePdb::parse(data.clone(), id, Some(1)).is_some());
        assert!(NativePdb::parse(data.clone(), id, Some(2)).is_none());
        assert!(NativePdb::parse(data, Guid([7; 16]), Some(1)).is_none());
    }

    #[test]
    fn damaged_files_do_no_harm() {
        let (data, id) = probe();
        let whole = names(&mut NativePdb::parse(data.clone(), id, None).unwrap());
        assert!(whole.len() > 400, "{}", whole.len());
        let mut named = 0;
        for length in (0..data.len()).step_by(97) {
            named += NativePdb::parse(data[..length].to_vec(), id, None).map_or(0, |mut pdb| names(&mut pdb).len());
        }
        // A file is read as long as what is needed of it is there.
        assert!(named > 0);
        let mut others = 0;
        for at in (0..data.len()).filter(|at| data[*at] != 0 || at % 61 == 0).step_by(9) {
            let mut damaged = data.clone();
            damaged[at] ^= if at % 2 == 0 { 0xFF } else { 1 };
            others += u64::from(NativePdb::parse(damaged, id, None).is_none_or(|mut pdb| names(&mut pdb) != whole));
        }
        assert!(others > 50, "{others}");
    }

    /// A file whose streams share pages has more bytes of streams than of file.
    #[test]
    fn streams_that_share_pages_are_read_as_often_as_an_honest_file_needs() {
        let mut data = vec![0; 5 * 4096];
        let words = |data: &mut [u8], at: usize, words: &[u32]| {
            for (word, bytes) in words.iter().zip(data[at..].chunks_exact_mut(4)) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        };
        data[..32].copy_from_slice(b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0");
        // 100 streams of four pages, all the same; the directory is in pages 2 and 3, whose numbers are in page 1.
        words(&mut data, 32, &[4096, 1, 5, 4 * (1 + 100 + 400), 0, 1]);
        words(&mut data, 4096, &[2, 3]);
        words(&mut data, 2 * 4096, &[100]);
        words(&mut data, 2 * 4096 + 4, &[4 * 4096; 100]);
        words(&mut data, 2 * 4096 + 404, &[4; 400]);
        let mut msf = Msf::parse(data.clone()).unwrap();
        let read: usize = (0..100).filter_map(|stream| msf.stream(stream)).map(|bytes| bytes.len()).sum();
        assert!((4 * 4096..=3 * data.len()).contains(&read), "{read}");
        // A stream that is larger than the file.
        words(&mut data, 2 * 4096 + 4, &[6 * 4096]);
        assert!(Msf::parse(data).unwrap().stream(0).is_none());
    }
}
