//! Names and lines of native code from ELF files on this machine: symbol tables, and DWARF where it is there.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use addr2line::{Context, demangle_auto};
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian};
use object::{CompressionFormat, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use super::functions::{Functions, NativePlace};

/// Bytes of the compressed sections of a file, expanded, at most. DWARF takes a third of its size when it is compressed.
const MAX_EXPANDED: u64 = 512 << 20;

/// A file.
pub struct ElfFile {
    /// Place in the file, size and address of what is loaded.
    segments: Vec<(u64, u64, u64)>,
    functions: Functions,
    lines: Option<Context<EndianArcSlice<RunTimeEndian>>>,
    /// Whether the symbols are all of them, not only those for other files.
    pub is_whole: bool,
    /// Bytes that compressed sections took.
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
    /// Reads a file, if its build id is the wanted one. Compressed sections may take `left` bytes.
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
            let name = demangle_auto(Cow::Borrowed(name), None);
            if !functions.add(start..start.saturating_add(size), &name, 0) {
                break;
            }
        }
        functions.sort();
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let most = MAX_EXPANDED.min(left);
        let mut left = most;
        let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
            let data = section_bytes(&file, id.name(), &mut left).unwrap_or_default();
            Ok(EndianArcSlice::new(Arc::from(data), endian))
        };
        let has_lines = section(&file, ".debug_line").is_some_and(|section| section.size() > 0);
        let lines =
            if has_lines { Dwarf::load(load).ok().and_then(|dwarf| Context::from_dwarf(dwarf).ok()) } else { None };
        Some(ElfFile { segments, functions, lines, is_whole, expanded: most - left })
    }

    /// What lies at an offset of the file, which is behind a call.
    pub fn at(&self, file_offset: u64) -> Option<NativePlace<'_>> {
        let before = file_offset.checked_sub(1)?;
        let mut segments = self.segments.iter().copied();
        let address = segments.find_map(|(at, size, address)| {
            before.checked_sub(at).filter(|within| *within < size).and_then(|within| address.checked_add(within))
        })?;
        let found = self.functions.find(address)?;
        let place = self.lines.as_ref().and_then(|lines| lines.find_location(address).ok()?);
        let line = place.and_then(|place| Some((place.file?, place.line?)));
        Some(NativePlace { name: found.name, offset: address - found.start + 1, line })
    }
}
