//! Names and lines of native code from ELF files on this machine: symbol tables, and DWARF where it is there.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::{Context, demangle_auto};
use foldhash::fast::RandomState;
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use super::files::{Budget, file_name, read_file};

/// Symbols of a file, and bytes of their names.
const MAX_SYMBOLS: usize = 1 << 20;
const MAX_TEXT: usize = 64 << 20;

/// Symbols whose names cannot be read; with more of them a file is damaged.
const MAX_UNNAMED: usize = 1 << 10;

/// A file as the recording names it.
#[derive(Clone, Copy, Debug)]
pub struct NativeModule<'m> {
    /// Path.
    pub path: &'m str,
    /// Build id, in hexadecimal.
    pub build_id: &'m str,
}

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativePlace<'n> {
    /// The function.
    pub name: &'n str,
    /// Distance from its beginning.
    pub offset: u64,
    /// File and line, where the file has DWARF.
    pub line: Option<(&'n str, u32)>,
}

/// A function.
struct Symbol {
    start: u64,
    end: u64,
    /// Its place in the text of all.
    name: Range<usize>,
}

/// A file.
pub struct NativeFile {
    /// Place in the file and address of what is loaded.
    segments: Vec<(u64, u64, u64)>,
    symbols: Vec<Symbol>,
    text: String,
    lines: Option<Context<EndianArcSlice<RunTimeEndian>>>,
    /// Where the symbols are all of them, not only those for other files.
    is_whole: bool,
}

impl fmt::Debug for NativeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeFile").field("symbols", &self.symbols.len()).finish_non_exhaustive()
    }
}

/// The build id of a file, in hexadecimal.
fn build_id(file: &object::File<'_>) -> Option<String> {
    let id = file.build_id().ok()??;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl NativeFile {
    /// Reads a file, if its build id is the wanted one.
    fn parse(data: &[u8], wanted: &str) -> Option<NativeFile> {
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
        let (mut symbols, mut text, mut unnamed) = (Vec::new(), String::new(), 0);
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let (start, size) = (symbol.address(), symbol.size());
            let is_function = symbol.kind() == SymbolKind::Text && symbol.is_definition();
            if !is_function || size == 0 {
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
            if name.is_empty() {
                continue;
            }
            let name = demangle_auto(Cow::Borrowed(name), None);
            if symbols.len() >= MAX_SYMBOLS || text.len().saturating_add(name.len()) > MAX_TEXT {
                break;
            }
            let from = text.len();
            text.push_str(&name);
            symbols.push(Symbol { start, end: start.saturating_add(size), name: from..text.len() });
        }
        // Of several names for one function the first one stays.
        symbols.sort_by_key(|symbol| symbol.start);
        symbols.dedup_by_key(|symbol| symbol.start);
        let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let section = |name: &str| file.section_by_name(name).and_then(|section| section.data().ok()).unwrap_or(&[]);
        let has_lines = !section(".debug_line").is_empty();
        let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
            Ok(EndianArcSlice::new(Arc::from(section(id.name())), endian))
        };
        let lines =
            if has_lines { Dwarf::load(load).ok().and_then(|dwarf| Context::from_dwarf(dwarf).ok()) } else { None };
        Some(NativeFile { segments, symbols, text, lines, is_whole })
    }

    /// What lies at an offset of the file, which is behind a call.
    fn at(&self, file_offset: u64) -> Option<NativePlace<'_>> {
        let before = file_offset.checked_sub(1)?;
        let mut segments = self.segments.iter().copied();
        let address = segments.find_map(|(at, size, address)| {
            before.checked_sub(at).filter(|within| *within < size).and_then(|within| address.checked_add(within))
        })?;
        let upto = self.symbols.partition_point(|symbol| symbol.start <= address);
        let symbol = self.symbols.get(upto.checked_sub(1)?).filter(|symbol| address < symbol.end)?;
        let name = self.text.get(symbol.name.clone())?;
        let place = self.lines.as_ref().and_then(|lines| lines.find_location(address).ok()?);
        let line = place.and_then(|place| Some((place.file?, place.line?)));
        Some(NativePlace { name, offset: address - symbol.start + 1, line })
    }
}

/// Native files by build id.
#[derive(Debug, Default)]
pub struct NativeFiles {
    files: HashMap<String, Option<NativeFile>, RandomState>,
}

impl NativeFiles {
    /// What lies at an offset of a file, by what is found in the folders, in the system's folder of debug files, or where the recording
    /// says that the file is. A file without a build id in the recording is not looked for.
    pub fn at(
        &mut self,
        folders: &[PathBuf],
        module: NativeModule<'_>,
        file_offset: u64,
        budget: &mut Budget,
    ) -> Option<NativePlace<'_>> {
        let id = module.build_id;
        if id.len() < 4 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        if !self.files.contains_key(id) {
            let found = find(folders, module, budget);
            self.files.insert(id.to_owned(), found);
        }
        self.files.get(id)?.as_ref()?.at(file_offset)
    }
}

fn find(folders: &[PathBuf], module: NativeModule<'_>, budget: &mut Budget) -> Option<NativeFile> {
    let id = module.build_id.to_lowercase();
    let (first, rest) = id.split_at_checked(2)?;
    // As gdb and others lay out debug files.
    let debug = Path::new(".build-id").join(first).join(format!("{rest}.debug"));
    let name = file_name(module.path);
    let mut places = Vec::new();
    for folder in folders {
        places.push(folder.join(&debug));
        if !["", ".", ".."].contains(&name) {
            places.push(folder.join(name));
        }
    }
    places.push(Path::new("/usr/lib/debug").join(&debug));
    if module.path.starts_with('/') && !module.path.starts_with("//") {
        places.push(PathBuf::from(module.path));
    }
    let mut found: Option<NativeFile> = None;
    for place in places {
        let Some(data) = read_file(&place, budget, &[b"\x7FELF"]) else { continue };
        let Some(file) = NativeFile::parse(&data, &id) else { continue };
        budget.kept = budget.kept.saturating_sub(data.len() as u64);
        // One with all symbols is better than one with those for other files only.
        if file.is_whole || found.is_none() {
            let is_whole = file.is_whole;
            found = Some(file);
            if is_whole {
                break;
            }
        }
    }
    found
}
