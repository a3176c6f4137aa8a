//! Lines of the code of one module of a native PDB.
//!
//! Source: the page "CodeView Line Information" (C13) of LLVM's documentation, and `cvinfo.h` of
//! microsoft/microsoft-pdb.

use nom::Parser;

use crate::bytes::{Parsed, refuse, take, u16le, u32le};

/// Kinds of parts: lines, and the files that they name.
const LINES: u32 = 0xF2;
const FILES: u32 = 0xF4;

/// First number of the stream of names.
const NAMES_MARK: u32 = 0xEFFE_EFFE;

/// Lines of code that the compiler generated.
const HIDDEN: [u32; 2] = [0x00F0_0F00, 0x00FE_EFEE];

/// From this address on the code is of this line.
#[derive(Clone, Copy, Debug)]
struct Row {
    address: u64,
    line: u32,
    /// Place in the part about files.
    file: u32,
}

/// The lines of a module in the order of addresses.
#[derive(Debug, Default)]
pub struct Lines {
    rows: Vec<Row>,
    files: Vec<u8>,
}

impl Lines {
    /// Reads the parts of a module, up to the first that is damaged. `address` finds the address of an offset in a
    /// section.
    pub fn read(content: &[u8], address: impl Fn(u16, u32) -> Option<u64>) -> Lines {
        let mut lines = Lines::default();
        let mut rest = content;
        while let Ok((more, (kind, part))) = self::part(rest) {
            rest = more;
            match kind {
                LINES => {
                    // Lines before damage are kept.
                    lines.add(part, &address).ok();
                }
                FILES => lines.files = part.to_vec(),
                _ => {}
            }
        }
        lines.rows.sort_by_key(|row| row.address);
        lines
    }

    /// Adds the lines of a part: of one function, or a piece of it.
    fn add<'p>(&mut self, part: &'p [u8], address: impl Fn(u16, u32) -> Option<u64>) -> Parsed<'p, ()> {
        let (rest, (offset, section)) = (u32le("offset of lines"), u16le("section of lines")).parse(part)?;
        let (mut rest, (flags, _size)) = (u16le("flags of lines"), u32le("size of their code")).parse(rest)?;
        let start =
            address(section, offset).ok_or_else(|| refuse(part, "section of lines", "a section that is there"))?;
        while !rest.is_empty() {
            let (more, (file, count, _size)) =
                (u32le("file of lines"), u32le("number of lines"), u32le("size of lines")).parse(rest)?;
            let columns = if flags & 1 != 0 { 4 } else { 0 };
            let size = (count as usize).saturating_mul(8 + columns);
            let (more, rows) = take(size, "lines")(more)?;
            rest = more;
            for row in rows.chunks_exact(8).take(count as usize) {
                let (_, (offset, bits)) = (u32le("offset of a line"), u32le("line")).parse(row)?;
                let line = bits & 0x00FF_FFFF;
                if !HIDDEN.contains(&line) {
                    self.rows.push(Row { address: start.saturating_add(u64::from(offset)), line, file });
                }
            }
        }
        Ok((rest, ()))
    }

    /// File and line of the code at an address, in a function that begins at `start`.
    pub fn find<'n>(&self, address: u64, start: u64, names: &'n [u8]) -> Option<(&'n str, u32)> {
        let upto = self.rows.partition_point(|row| row.address <= address);
        let row = self.rows.get(upto.checked_sub(1)?).filter(|row| row.address >= start)?;
        Some((self.file(row.file, names)?, row.line))
    }

    /// The name of a file: its place in the part about files has the place in the stream of names.
    fn file<'n>(&self, at: u32, names: &'n [u8]) -> Option<&'n str> {
        let (_, place) = u32le("place of a name")(self.files.get(at as usize..)?).ok()?;
        let (texts, (mark, _version, _size)) =
            (u32le("mark of names"), u32le("version of names"), u32le("size of names")).parse(names).ok()?;
        let text = texts.get(place as usize..).filter(|_| mark == NAMES_MARK)?;
        let end = text.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(text.get(..end)?).ok().filter(|name| !name.is_empty())
    }
}

/// Kind and content of a part.
fn part(input: &[u8]) -> Parsed<'_, (u32, &[u8])> {
    let (rest, (kind, size)) = (u32le("kind of a part"), u32le("size of a part")).parse(input)?;
    let (rest, content) = take(size as usize, "part")(rest)?;
    let padding = (size as usize).wrapping_neg() % 4;
    Ok((rest.get(padding..).unwrap_or_default(), (kind, content)))
}
