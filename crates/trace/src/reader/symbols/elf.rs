//! Names and lines of native code from ELF files on this machine: symbol tables, and DWARF where it is there.

use std::borrow::Cow;
use std::fmt;

use gimli::RunTimeEndian;
use object::{CompressionFormat, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use super::elf_lines::{ElfLines, Sections};
use super::functions::{Functions, NativePlace};
use super::spelled::spelled;

/// Bytes of the compressed sections of a file, expanded, at most. DWARF takes a third of its size when it is
/// compressed.
const MAX_EXPANDED: u64 = 512 << 20;

/// The smallest page of the systems that load ELF files.
const PAGE: u64 = 4 << 10;

/// A file.
pub struct ElfFile {
    /// Place in the file, size and address of what is loaded.
    segments: Vec<(u64, u64, u64)>,
    functions: Functions,
    lines: ElfLines,
    /// Whether the symbols are all of them, not only those for other files.
    pub is_whole: bool,
    /// Bytes that compressed sections took while they were read.
    pub expanded: u64,
}

impl fmt::Debug for ElfFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElfFile").field("functions", &self.functions.len()).finish_non_exhaustive()
    }
}

/// The build id of a file, in hexadecimal.
fn build_id(file: &object::File<'_>) -> Option<String> {
    let id = file.build_id().ok()??;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A section of debug data. Compressed ones had names of their own at first.
fn section<'d, 'f>(file: &'f object::File<'d>, name: &str) -> Option<object::Section<'d, 'f>> {
    let old = || file.section_by_name(&format!(".z{}", name.strip_prefix('.')?));
    file.section_by_name(name).or_else(old)
}

/// The bytes of a section, expanded when it is compressed. `None` when it is not there, is damaged, or would take more
/// than `left` bytes, which it takes.
fn section_bytes<'d>(file: &object::File<'d>, name: &str, left: &mut u64) -> Option<Cow<'d, [u8]>> {
    let packed = section(file, name)?.compressed_data().ok()?;
    if packed.format == CompressionFormat::None {
        return Some(Cow::Borrowed(packed.data));
    }
    *left = left.checked_sub(packed.uncompressed_size)?;
    let data = expand(packed.format, packed.data, packed.uncompressed_size)?;
    (data.len() as u64 == packed.uncompressed_size).then_some(Cow::Owned(data))
}

/// Compressed bytes, expanded to at most `size`.
#[cfg(feature = "packed")]
fn expand(format: CompressionFormat, packed: &[u8], size: u64) -> Option<Vec<u8>> {
    use std::io::Read;

    let mut data = Vec::new();
    match format {
        CompressionFormat::Zlib => flate2::read::ZlibDecoder::new(packed).take(size).read_to_end(&mut data).ok()?,
        CompressionFormat::Zstandard => {
            zstd::stream::read::Decoder::with_buffer(packed).ok()?.take(size).read_to_end(&mut data).ok()?
        }
        _ => return None,
    };
    Some(data)
}

/// Without the feature `packed` nothing is expanded.
#[cfg(not(feature = "packed"))]
fn expand(_format: CompressionFormat, _packed: &[u8], _size: u64) -> Option<Vec<u8>> {
    None
}

/// Symbols whose names cannot be read; with more of them a file is damaged.
const MAX_UNNAMED: usize = 1 << 10;

impl ElfFile {
    /// Reads a file, if its build id is the wanted one. Compressed sections may take `left` bytes, and so may what is
    /// made of them.
    pub fn parse(data: &[u8], wanted: &str, left: u64) -> Option<ElfFile> {
        let file = object::File::parse(data).ok()?;
        if !build_id(&file)?.eq_ignore_ascii_case(wanted) {
            return None;
        }
        let segments = file.segments().map(|segment| {
            let (at, size) = segment.file_range();
            (at, size, segment.address())
        });
        let segments = segments.collect();
        let is_whole = file.symbols().next().is_some();
        let (mut functions, mut unnamed) = (Functions::default(), 0);
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let (start, size) = (symbol.address(), symbol.size());
            if symbol.kind() != SymbolKind::Text || !symbol.is_definition() || size == 0 {
                continue;
            }
            let Ok(name) = symbol.name() else {
                // To look for the end of a name takes time, however long it is.
                unnamed += 1;
                if unnamed > MAX_UNNAMED {
                    break;
                }
                continue;
            };
            if !functions.add(start..start.saturating_add(size), &spelled(name), 0) {
                break;
            }
        }
        functions.sort();
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let most = MAX_EXPANDED.min(left);
        let mut left = most;
        let names = [".debug_line", ".debug_line_str", ".debug_str", ".debug_info", ".debug_abbrev"];
        let [line, line_str, str, info, abbrev] =
            names.map(|name| section_bytes(&file, name, &mut left).unwrap_or_default());
        let sections = Sections { line: &line, line_str: &line_str, str: &str, info: &info, abbrev: &abbrev };
        let lines = ElfLines::read(&sections, endian, if file.is_64() { 8 } else { 4 }, most);
        Some(ElfFile { segments, functions, lines, is_whole, expanded: most - left })
    }

    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        self.functions.size() + self.lines.size() + self.segments.capacity() * size_of::<(u64, u64, u64)>()
    }

    /// The function at an offset of the file, which is behind a call.
    pub fn at_offset(&self, file_offset: u64) -> Option<NativePlace<'_>> {
        let before = file_offset.checked_sub(1)?;
        let mut segments = self.segments.iter().copied();
        let address = segments.find_map(|(at, size, address)| {
            before.checked_sub(at).filter(|within| *within < size).and_then(|within| address.checked_add(within))
        })?;
        self.at_address(address)
    }

    /// The function at a distance from the first page of the file in memory, which is behind a call.
    pub fn at_distance(&self, distance: u64) -> Option<NativePlace<'_>> {
        // The segment that is loaded first begins within a page.
        let first = self.segments.iter().map(|(_, _, address)| *address).min()? & !(PAGE - 1);
        self.at_address(first.checked_add(distance.checked_sub(1)?)?)
    }

    /// The function at the address before the one that is behind a call.
    fn at_address(&self, address: u64) -> Option<NativePlace<'_>> {
        let found = self.functions.find(address)?;
        let line = self.lines.find(address);
        Some(NativePlace { name: found.name, offset: address - found.start + 1, line })
    }
}
