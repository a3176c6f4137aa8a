//! Lines of native code by the DWARF of an ELF file.
//!
//! All line programs are run once, one behind the other: so the work is bounded by the size of their section, whatever
//! the units of the file say about it, and each row that is kept is counted. Of the units only the folder of
//! compilation is read, which names of files in DWARF 4 are relative to.

use gimli::{
    AttributeValue, DebugAbbrev, DebugInfo, DebugLine, DebugLineOffset, DebugLineStr, DebugStr, EndianSlice, FileEntry,
    Format, IncompleteLineProgram, LineInstruction, LineProgramHeader, RunTimeEndian, UnitHeader,
};

use crate::map::Map;

type Bytes<'d> = EndianSlice<'d, RunTimeEndian>;

/// Rows of a file, at most. The runtime of .NET 10 has 1.5 M.
const MAX_ROWS: usize = 8 << 20;
/// Bytes of all names of source files.
const MAX_NAMES: usize = 64 << 20;
/// Bytes of the name of a source file.
const MAX_NAME: usize = 4 << 10;
/// Bytes of the head of a line program, which names its files. Those of the largest compilations have some 100 KB.
const MAX_HEAD: usize = 512 << 10;
/// Files that a line program names by instructions. Compilers name all of them in the head.
const MAX_DEFINED: usize = 1 << 10;
/// Units whose folders are known.
const MAX_UNITS: usize = 256 << 10;
/// Bytes and entries of a table of abbreviations that are looked through for the first entry of a unit.
const MAX_ABBREVIATIONS: (usize, usize) = (4 << 10, 16);
/// Pieces of code around an address that are looked at: several may overlap.
const MAX_NEAR: usize = 16;

/// The sections that say something about lines.
pub struct Sections<'d> {
    /// `.debug_line`
    pub line: &'d [u8],
    /// `.debug_line_str`
    pub line_str: &'d [u8],
    /// `.debug_str`
    pub str: &'d [u8],
    /// `.debug_info`
    pub info: &'d [u8],
    /// `.debug_abbrev`
    pub abbrev: &'d [u8],
}

/// From this address on the code is of this line; none when that is 0.
#[derive(Clone, Copy, Debug)]
struct Row {
    address: u64,
    line: u32,
    file: u32,
}

/// A piece of code whose rows are in the order of addresses.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    start: u64,
    end: u64,
    first: usize,
    behind: usize,
}

/// Lines by addresses.
#[derive(Debug, Default)]
pub struct ElfLines {
    sequences: Vec<Sequence>,
    rows: Vec<Row>,
    names: Vec<Box<str>>,
    by_name: Map<Box<str>, u32>,
    name_bytes: usize,
}

impl ElfLines {
    /// Reads the lines of a file up to the first damage, in `left` bytes of memory.
    pub fn read(sections: &Sections<'_>, endian: RunTimeEndian, address_size: u8, left: u64) -> ElfLines {
        let room = usize::try_from(left).unwrap_or(usize::MAX) / size_of::<Row>();
        let mut lines = ElfLines::default();
        let folders = folders(sections, endian).unwrap_or_default();
        let programs = DebugLine::new(sections.line, endian);
        let texts =
            Texts { line_str: DebugLineStr::new(sections.line_str, endian), str: DebugStr::new(sections.str, endian) };
        let mut at = 0;
        while let Some((head, next)) = head(sections.line, at, endian) {
            let offset = DebugLineOffset(at);
            at = next;
            if head > MAX_HEAD {
                continue;
            }
            let folder = folders.get(&offset.0).copied();
            // One of a kind that is not known costs only itself.
            let Ok(program) = programs.program(offset, address_size, folder, None) else { continue };
            if lines.add(program, &texts, room.min(MAX_ROWS)).is_none() {
                break;
            }
        }
        lines.sequences.sort_by_key(|sequence| sequence.start);
        lines.by_name = Map::default();
        lines
    }

    /// Runs one program; `None` when there is no room for its rows.
    fn add<'d>(&mut self, program: IncompleteLineProgram<Bytes<'d>>, texts: &Texts<'d>, most: usize) -> Option<()> {
        if program.header().version() <= 4 && has_too_many_files(program.header()) {
            return Some(());
        }
        // Numbers of the program's files among ours.
        let mut files: Map<u64, u32> = Map::default();
        let mut first = self.rows.len();
        let mut rows = program.rows();
        // Lines that were read before damage are kept.
        while let Ok(Some((header, row))) = rows.next_row() {
            let address = row.address();
            if row.end_sequence() {
                let start = self.rows.get(first).map(|row| row.address);
                match start.filter(|start| *start != 0 && *start < address) {
                    Some(start) => {
                        let behind = self.rows.len();
                        self.sequences.push(Sequence { start, end: address, first, behind });
                    }
                    // Code that the linker took out lies at 0.
                    None => self.rows.truncate(first),
                }
                first = self.rows.len();
                continue;
            }
            let file = match files.get(&row.file_index()) {
                Some(file) => *file,
                None => {
                    let name = header.file(row.file_index()).and_then(|file| texts.path(file, header));
                    let file = self.name(name.unwrap_or_default());
                    files.insert(row.file_index(), file);
                    file
                }
            };
            let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or_default());
            let new = Row { address, line, file };
            let is_full = self.rows.len() >= most;
            match self.rows.get_mut(first..).and_then(<[Row]>::last_mut).filter(|last| last.address == address) {
                Some(last) => *last = new,
                None if is_full => {
                    self.rows.truncate(first);
                    return None;
                }
                None => self.rows.push(new),
            }
        }
        // Without its end a piece of code has no size.
        self.rows.truncate(first);
        Some(())
    }

    /// The number of a name.
    fn name(&mut self, name: String) -> u32 {
        if let Some(known) = self.by_name.get(name.as_str()) {
            return *known;
        }
        let has_room = self.name_bytes + name.len() <= MAX_NAMES;
        let name = if has_room { name.into_boxed_str() } else { Box::default() };
        self.name_bytes += name.len();
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.clone());
        self.by_name.insert(name, number);
        number
    }

    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        let rows = self.rows.capacity() * size_of::<Row>() + self.sequences.capacity() * size_of::<Sequence>();
        rows + self.name_bytes + self.names.capacity() * size_of::<Box<str>>()
    }

    /// File and line of the code at an address.
    pub fn find(&self, address: u64) -> Option<(&str, u32)> {
        let upto = self.sequences.partition_point(|sequence| sequence.start <= address);
        let near = self.sequences.get(..upto)?.iter().rev().take(MAX_NEAR);
        let sequence = near.into_iter().find(|sequence| address < sequence.end)?;
        let rows = self.rows.get(sequence.first..sequence.behind)?;
        let row = rows.get(rows.partition_point(|row| row.address <= address).checked_sub(1)?)?;
        let name = self.names.get(row.file as usize).filter(|name| !name.is_empty() && row.line != 0)?;
        Some((name, row.line))
    }
}

/// The length of the head of the line program at an offset, and the offset of the next program.
fn head(section: &[u8], at: usize, endian: RunTimeEndian) -> Option<(usize, usize)> {
    use gimli::Reader;

    let mut input = EndianSlice::new(section.get(at..).filter(|rest| !rest.is_empty())?, endian);
    let (length, format) = input.read_initial_length().ok()?;
    let begins = section.len() - input.len();
    let next = begins.checked_add(length).filter(|next| *next <= section.len())?;
    let version = input.read_u16().ok()?;
    if version >= 5 {
        // Sizes of an address and of a segment.
        input.skip(2).ok()?;
    }
    let head = match format {
        Format::Dwarf64 => input.read_u64().ok().and_then(|length| usize::try_from(length).ok()),
        Format::Dwarf32 => input.read_u32().ok().map(|length| length as usize),
    };
    Some((head.unwrap_or(usize::MAX), next))
}

/// Whether a program names so many files by instructions that they would take much memory.
fn has_too_many_files(header: &LineProgramHeader<Bytes<'_>>) -> bool {
    let (mut instructions, mut defined) = (header.instructions(), 0);
    while let Ok(Some(instruction)) = instructions.next_instruction(header) {
        defined += usize::from(matches!(instruction, LineInstruction::DefineFile(_)));
        if defined > MAX_DEFINED {
            return true;
        }
    }
    false
}

/// Where texts are.
struct Texts<'d> {
    line_str: DebugLineStr<Bytes<'d>>,
    str: DebugStr<Bytes<'d>>,
}

impl<'d> Texts<'d> {
    fn text(&self, value: AttributeValue<Bytes<'d>>) -> Option<String> {
        let bytes = match value {
            AttributeValue::String(bytes) => bytes,
            AttributeValue::DebugLineStrRef(offset) => self.line_str.get_str(offset).ok()?,
            AttributeValue::DebugStrRef(offset) => self.str.get_str(offset).ok()?,
            _ => return None,
        };
        (bytes.len() <= MAX_NAME).then(|| bytes.to_string_lossy().into_owned())
    }

    /// The path of a file: its name in its folder, in that of the compilation.
    fn path(&self, file: &FileEntry<Bytes<'d>>, header: &LineProgramHeader<Bytes<'d>>) -> Option<String> {
        let mut path = header.directory(0).and_then(|folder| self.text(folder)).unwrap_or_default();
        if file.directory_index() != 0
            && let Some(folder) = header.directory(file.directory_index())
        {
            push(&mut path, &self.text(folder)?);
        }
        push(&mut path, &self.text(file.path_name())?);
        (path.len() <= MAX_NAME).then_some(path)
    }
}

/// Goes on from a folder, of whatever system.
fn push(path: &mut String, more: &str) {
    let of_windows = |path: &str| path.starts_with('\\') || path.get(1..3) == Some(":\\");
    if more.starts_with('/') || more.get(1..3) == Some(":/") || of_windows(more) {
        path.clear();
    } else if !path.is_empty() {
        let separator = if of_windows(path) { '\\' } else { '/' };
        if !path.ends_with(separator) {
            path.push(separator);
        }
    }
    path.push_str(more);
}

/// The folder in which each unit was compiled, by the offset of its line program.
fn folders<'d>(sections: &Sections<'d>, endian: RunTimeEndian) -> gimli::Result<Map<usize, Bytes<'d>>> {
    let (info, str) = (DebugInfo::new(sections.info, endian), DebugStr::new(sections.str, endian));
    let mut folders = Map::default();
    let mut units = info.units();
    // Most units of a file that was made to be a burden name the same table.
    let mut last: Option<(usize, gimli::Abbreviations)> = None;
    for _ in 0..MAX_UNITS {
        let Some(unit) = units.next()? else { break };
        let table = unit.debug_abbrev_offset().0;
        if last.as_ref().is_none_or(|(known, _)| *known != table) {
            let beginning = first_abbreviations(sections.abbrev.get(table..).unwrap_or_default());
            let abbreviations = DebugAbbrev::new(&beginning, endian).abbreviations(gimli::DebugAbbrevOffset(0));
            last = abbreviations.ok().map(|abbreviations| (table, abbreviations));
        }
        let Some((_, abbreviations)) = &last else { continue };
        if let Some((program, folder)) = folder_of(&unit, abbreviations, &str) {
            folders.insert(program, folder);
        }
    }
    Ok(folders)
}

fn folder_of<'d>(
    unit: &UnitHeader<Bytes<'d>>,
    abbreviations: &gimli::Abbreviations,
    str: &DebugStr<Bytes<'d>>,
) -> Option<(usize, Bytes<'d>)> {
    let mut entries = unit.entries_raw(abbreviations, None).ok()?;
    let abbreviation = entries.read_abbreviation().ok()??;
    let (mut program, mut folder) = (None, None);
    for spec in abbreviation.attributes() {
        let attribute = entries.read_attribute(*spec).ok()?;
        match (attribute.name(), attribute.value()) {
            (gimli::DW_AT_stmt_list, AttributeValue::DebugLineRef(offset)) => program = Some(offset.0),
            (gimli::DW_AT_comp_dir, AttributeValue::String(text)) => folder = Some(text),
            (gimli::DW_AT_comp_dir, AttributeValue::DebugStrRef(offset)) => folder = str.get_str(offset).ok(),
            _ => {}
        }
    }
    program.zip(folder)
}

/// The first entries of a table of abbreviations as a table of its own: a whole one may be large, and be named by each
/// unit.
fn first_abbreviations(table: &[u8]) -> Vec<u8> {
    const IMPLICIT_CONST: u64 = 0x21;
    let (most_bytes, most) = MAX_ABBREVIATIONS;
    let table = table.get(..most_bytes).unwrap_or(table);
    let (mut rest, mut whole) = (table, 0);
    let mut entry = || {
        let [_code, _tag] = [leb(&mut rest).filter(|code| *code != 0)?, leb(&mut rest)?];
        rest = rest.get(1..)?;
        loop {
            let (name, form) = (leb(&mut rest)?, leb(&mut rest)?);
            if form == IMPLICIT_CONST {
                leb(&mut rest)?;
            }
            if (name, form) == (0, 0) {
                return Some(table.len() - rest.len());
            }
        }
    };
    for _ in 0..most {
        let Some(end) = entry() else { break };
        whole = end;
    }
    let mut beginning = table.get(..whole).unwrap_or_default().to_vec();
    beginning.push(0);
    beginning
}

/// A number in LEB128; bits above the 64th are lost.
fn leb(rest: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0u64, 0u32);
    loop {
        let (byte, more) = rest.split_first()?;
        *rest = more;
        value |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or_default();
        shift = shift.saturating_add(7);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line program of version 4 with one file, and these instructions.
    fn program(instructions: &[u8]) -> Vec<u8> {
        let mut head = vec![1, 1, 1, 0xFB, 14, 13];
        head.extend([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
        // No folders, and a file in that of the compilation.
        head.extend(b"\0a.c\0\0\0\0\0");
        let mut unit = vec![4, 0];
        unit.extend((head.len() as u32).to_le_bytes());
        unit.extend(head);
        unit.extend(instructions);
        let mut all = (unit.len() as u32).to_le_bytes().to_vec();
        all.extend(unit);
        all
    }

    fn set_address(address: u64) -> Vec<u8> {
        [&[0, 9, 2][..], &address.to_le_bytes()].concat()
    }

    fn read(line: &[u8], left: u64) -> ElfLines {
        let sections = Sections { line, line_str: &[], str: &[], info: &[], abbrev: &[] };
        ElfLines::read(&sections, RunTimeEndian::Little, 8, left)
    }

    /// Rows at each address: DW_LNS_advance_pc 1, DW_LNS_copy.
    fn rows(start: u64, count: usize) -> Vec<u8> {
        let mut code = set_address(start);
        code.push(1);
        code.extend([2, 1, 1].repeat(count));
        code.extend([2, 1, 0, 1, 1]);
        code
    }

    #[test]
    fn rows_are_counted_before_they_are_kept() {
        let line = [program(&rows(0x1000, 1000)), program(&rows(0x9000, 10))].concat();
        let whole = read(&line, 1 << 20);
        assert_eq!((whole.rows.len(), whole.sequences.len()), (1001 + 11, 2));
        assert_eq!(whole.find(0x1500 - 0x300), Some(("a.c", 1)));
        assert!(whole.find(0xFFF).is_none() && whole.find(0x8FFF).is_none() && whole.find(0x9004).is_some());
        // Room for the first program, and not for both.
        let row = size_of::<Row>() as u64;
        let first = read(&line, 1005 * row);
        assert_eq!((first.rows.len(), first.sequences.len()), (1001, 1));
        let none = read(&line, 1000 * row);
        assert_eq!((none.rows.len(), none.sequences.len()), (0, 0));
        assert!(none.rows.capacity() <= 2048, "{}", none.rows.capacity());
    }

    #[test]
    fn files_that_are_named_by_instructions_are_counted() {
        let define: &[u8] = &[0, 6, 3, b'b', 0, 0, 0, 0];
        for (count, is_read) in [(MAX_DEFINED, true), (MAX_DEFINED + 1, false)] {
            let line = program(&[define.repeat(count), rows(0x1000, 2)].concat());
            assert_eq!(read(&line, 1 << 20).find(0x1001).is_some(), is_read, "{count}");
        }
    }

    #[test]
    fn code_that_the_linker_took_out_and_damage_leave_no_rows() {
        let line = [program(&rows(0, 50)), program(&set_address(0x4000)), program(&rows(0x5000, 3))].concat();
        let lines = read(&line, 1 << 20);
        assert_eq!((lines.rows.len(), lines.sequences.len()), (4, 1));
        for length in 0..line.len() {
            assert!(read(&line[..length], 1 << 20).sequences.is_empty(), "{length}");
        }
    }

    #[test]
    fn only_the_beginning_of_a_table_of_abbreviations_is_read() {
        // Code, DW_TAG_compile_unit, no children, DW_AT_stmt_list as DW_FORM_sec_offset, the end.
        let entry = |code: u8| [code, 0x11, 0, 0x10, 0x17, 0, 0];
        let table: Vec<u8> = (1..100).flat_map(entry).chain([0]).collect();
        let first = first_abbreviations(&table);
        assert_eq!(first.len(), MAX_ABBREVIATIONS.1 * 7 + 1);
        assert_eq!(first_abbreviations(&entry(1)), [&entry(1)[..], &[0]].concat());
        // An entry that is not whole is left out, and one that is too long, too.
        assert_eq!(first_abbreviations(&entry(1)[..5]), [0]);
        let long = [&[1, 0x11, 0][..], &[0x10, 0x17].repeat(4000), &[0, 0]].concat();
        assert_eq!(first_abbreviations(&long), [0]);
    }
}
