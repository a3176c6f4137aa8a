//! Resolves frames of call stacks: the method, native function or module at an address at a time.

use tracequet_trace::error::beginning;
use tracequet_trace::reader::symbols::{NativeKey, NativeModule};

use super::callsites::Space;
use super::code_map::{Around, CodeMap};
use super::groups::Groups;
use super::il_maps::{CodeKey, IlMaps};
use super::inlined::{self, Belongs, Inlined, Look, Part};
use super::inlinings::Inlinings;
use super::lines::{Line, Lines};
use super::mappings::Mappings;
use super::methods::{Code, FoundBy, Methods, Names};
use super::modules::{Modules, Pdb};
use super::nodes::{Allocated, Node, Nodes};
use super::own::{MadeBy, OwnCode, Place};
use super::paths::{Files, file_name, of_runtime};
use super::{walk, written};
use crate::fact::{Callsite, CallsiteId, FactSink, Frame, FrameId};
use crate::loader::assemblies::Assemblies;
use crate::loader::managed_modules::{AotImage, ManagedModules};
use crate::prelude::*;
use crate::totals::FrameCounts;

/// Code of the diagnostic that says how many frames have no name, and why.
pub const UNNAMED_FRAMES: &str = "unnamed_frames";

/// Frames remembered at once. Past it the memory starts again and a frame may appear twice.
const MAX_FRAMES: usize = 1 << 20;

/// Bytes of a name, and of an assembly's: each may be repeated in a row for each address.
const MAX_NAME: usize = 4 << 10;

/// Rows that are handed on at once.
const ROWS: usize = 4 << 10;

/// The kernel's half of the addresses of x64 and Arm64.
const KERNEL: u64 = 0xFFFF_8000_0000_0000;

/// The code that is known at the end of a recording.
#[derive(Clone, Copy)]
pub struct Known<'k> {
    /// Managed methods.
    pub methods: &'k Methods,
    /// The names by address and by id, where there are logical call stacks.
    pub names: Option<&'k Names<'k>>,
    /// Native modules of an .etl.
    pub modules: &'k Modules,
    /// Files and symbols of a recording of record-trace.
    pub mappings: &'k Mappings,
    /// Methods that the compiler put into others.
    pub inlinings: &'k Inlinings,
    /// Offsets in the IL of native code.
    pub il_maps: &'k IlMaps,
    /// Assemblies.
    pub assemblies: &'k Assemblies,
    /// Their modules.
    pub managed_modules: &'k ManagedModules,
    /// The rules for user code.
    pub own: &'k OwnCode,
}

/// Code, images and symbols by address.
struct Maps<'k> {
    known: Known<'k>,
    methods: CodeMap,
    /// The number of pieces of code of each version of a method.
    versions: Map<CodeKey, u32>,
    modules: CodeMap,
    mappings: CodeMap,
    symbols: CodeMap,
    /// Symbols of native modules, by their index in the map; empty when no symbols are looked for.
    pdbs: Vec<Option<&'k Pdb>>,
    /// Symbols of images of NGEN as the runtime says them, by paths without their drive; empty when no symbols are
    /// looked for.
    precompiled: Files<NativeKey<'k>>,
    /// Programs and libraries of NativeAOT, by process and address.
    aot_images: Vec<AotImage<'k>>,
}

/// Names the frames of all call stacks, and finds their source lines if they are wanted. Gives rows of `frame` and
/// `callsite`; `position` is that of the end of the recording.
pub fn resolve(
    (mut nodes, places, allocated): (Nodes, &[Space], &[Allocated]),
    known: Known<'_>,
    lines: Option<Lines<'_>>,
    position: u64,
    sink: &mut impl FactSink,
) -> FrameCounts {
    let maps = Maps {
        known,
        methods: known.methods.map(),
        versions: known.methods.versions(),
        modules: known.modules.map(),
        mappings: known.mappings.map(),
        symbols: known.mappings.symbol_map(),
        pdbs: if lines.is_some() { known.modules.pdbs() } else { Vec::new() },
        precompiled: if lines.is_some() { precompiled(known.managed_modules) } else { Files::default() },
        aot_images: aot_images(known.managed_modules),
    };
    let mut frames = Frames {
        maps,
        lines,
        ids: Map::default(),
        groups: Groups::default(),
        inlined: Inlined::default(),
        counts: FrameCounts::default(),
        cut: 0,
        written: String::new(),
    };
    let mut lost = nodes.lost;
    let mut base = 0;
    loop {
        match nodes.next_part() {
            Ok(Some(part)) => {
                frames.part(&part, base, (places, allocated), sink);
                base = base.saturating_add(u32::try_from(part.len()).unwrap_or(u32::MAX));
            }
            Ok(None) => break,
            Err(_) => lost += 1,
        }
    }
    let message = "call stacks are lost: the temporary file could not be written or read";
    sink.problems(Problem::loss("lost_callsites", position, message), lost);
    let message = "frames have names of more than 4 KB, of which the beginning is kept";
    sink.problems(Problem::info("long_frame_names", position, message), frames.cut);
    let message = "too many maps from native code to IL; frames of the other methods have no IL offset, and the first line of their method";
    sink.problems(Problem::loss("too_many_il_maps", position, message), known.il_maps.lost);
    let FrameCounts { frames: all, named, .. } = frames.counts;
    if named < all {
        let message =
            format!("{} of {all} frames of call stacks have no name: {}", all - named, reason(&frames, known));
        sink.problem(&Problem::info(UNNAMED_FRAMES, position, message).count(all - named));
    }
    let with_line = frames.lines.map_or(0, |lines| lines.finish(position, sink));
    FrameCounts { with_line, ..frames.counts }
}

fn precompiled(modules: &ManagedModules) -> Files<NativeKey<'_>> {
    let mut images = Files::default();
    for (process, path, key) in modules.precompiled() {
        images.add(process, of_runtime(path), key);
    }
    images
}

fn aot_images(modules: &ManagedModules) -> Vec<AotImage<'_>> {
    let mut images: Vec<AotImage<'_>> = modules.aot_images().collect();
    images.sort_by_key(|image| (image.process, image.base));
    images
}

/// Why frames have no name.
fn reason(frames: &Frames<'_>, known: Known<'_>) -> String {
    let FrameCounts { in_modules, .. } = frames.counts;
    if known.methods.lost > 0 {
        return format!("there are {} methods too many to remember", known.methods.lost);
    }
    if !frames.maps.aot_images.is_empty() && in_modules > 0 {
        return format!("{in_modules} are native code; that of NativeAOT has names by the symbols of the program");
    }
    match (known.methods.has_rundown, in_modules > 0) {
        (false, false) => "the recording has no rundown, which lists the methods".to_owned(),
        (false, true) => format!("{in_modules} are native code without symbols; the recording has no rundown"),
        (true, false) => {
            "they are native code, whose files the recording does not name, or methods without an event".into()
        }
        (true, true) => format!("{in_modules} are native code without symbols"),
    }
}

/// The code of a method, with its namespace, name and signature.
type Method<'t> = (&'t Code, [&'t str; 3]);

/// A frame that has its row.
#[derive(Clone, Copy)]
struct Seen {
    id: FrameId,
    /// That of all frames of the same name.
    group: u32,
    is_own: bool,
}

struct Frames<'k> {
    maps: Maps<'k>,
    lines: Option<Lines<'k>>,
    /// By place and address.
    ids: Map<(u32, u64), Seen>,
    groups: Groups,
    inlined: Inlined,
    counts: FrameCounts,
    /// Frames with a name that is too long.
    cut: u64,
    /// The name of a method as it was written; empty for other code.
    written: String,
}

impl Frames<'_> {
    /// The nodes of a part, whose numbers begin behind `base`.
    fn part(
        &mut self,
        part: &[Node],
        base: CallsiteId,
        (places, allocated): (&[Space], &[Allocated]),
        sink: &mut impl FactSink,
    ) {
        if self.ids.len() >= MAX_FRAMES {
            self.ids.clear();
            self.groups.clear();
            self.inlined.clear();
        }
        let mut text = String::new();
        let within = self.within(part, base, (places, allocated), &mut text);
        let mut ids = Vec::with_capacity(part.len());
        let mut groups = Vec::with_capacity(part.len());
        let mut own: Vec<CallsiteId> = Vec::with_capacity(part.len());
        for (node, callsite_id) in part.iter().zip(base + 1..) {
            let key = (node.place, node.address);
            let Seen { id, group, is_own } = match self.ids.get(&key) {
                Some(known) => *known,
                None => {
                    let space = places.get(node.place as usize).copied().unwrap_or_default();
                    let new = self.frame((node, space), within.get(&key), &mut text, sink);
                    self.ids.insert(key, new);
                    new
                }
            };
            ids.push(id);
            groups.push(group);
            // A caller comes before what it calls.
            let of_caller = node.parent.checked_sub(base + 1).and_then(|at| own.get(at as usize)).copied();
            own.push(if is_own { callsite_id } else { of_caller.unwrap_or_default() });
        }
        let walk = walk::places(part, base, &groups);
        let mut rows = Vec::with_capacity(ROWS.min(part.len()));
        for ((((node, frame_id), place), own), callsite_id) in
            part.iter().zip(&ids).zip(&walk).zip(&own).zip(base + 1..)
        {
            rows.push(Callsite {
                callsite_id,
                parent_callsite_id: node.parent,
                process_id: places.get(node.place as usize).map_or(0, |space| space.process.id),
                address: node.address,
                depth: node.depth,
                frame_id: *frame_id,
                walk_first: place.first,
                walk_last: place.last,
                is_recursive: place.is_recursive,
                own_callsite_id: *own,
            });
            if rows.len() >= ROWS {
                sink.add(rows.as_slice());
                rows.clear();
            }
        }
        sink.add(rows.as_slice());
    }

    /// The methods that addresses belong to, where these are not surely those whose code it is.
    fn within(
        &mut self,
        part: &[Node],
        base: CallsiteId,
        (places, allocated): (&[Space], &[Allocated]),
        text: &mut String,
    ) -> Map<(u32, u64), Belongs> {
        let mut known: Map<(u32, u64), Look> = Map::default();
        let mut looks = Vec::with_capacity(part.len());
        for node in part {
            let look = known.entry((node.place, node.address)).or_insert_with(|| {
                let space = places.get(node.place as usize).copied().unwrap_or_default();
                let (row, code, is_framework) = self.maps.frame(node, space, text, &mut self.written);
                let (Some((code, [type_name, method, _])), false) = (code, space.is_logical || !row.is_named) else {
                    return Look::default();
                };
                let look = Look {
                    group: self.groups.group_of(row.name),
                    method: self.maps.known.inlinings.key(type_name, method),
                    is_own: is_framework == Some(false),
                    code: inlined::Code::of_tier(row.tier),
                    is_new: code.is_new(),
                    il_offset: row.il_offset,
                };
                if look.is_own {
                    self.inlined.own_method(look, shortened(&self.written));
                }
                look
            });
            looks.push(*look);
        }
        let (first, last) = (base + 1, base.saturating_add(u32::try_from(part.len()).unwrap_or(u32::MAX)));
        let from = allocated.partition_point(|(site, ..)| *site < first);
        let to = allocated.partition_point(|(site, ..)| *site <= last);
        let part = Part { nodes: part, base, looks: &looks };
        self.inlined.find(part, allocated.get(from..to).unwrap_or_default(), self.maps.known.inlinings)
    }

    /// A frame that is new: its row, number and group. `within` says which method the address belongs to, where that is not surely the
    /// one whose code it is.
    fn frame(
        &mut self,
        (node, space): (&Node, Space),
        within: Option<&Belongs>,
        text: &mut String,
        sink: &mut impl FactSink,
    ) -> Seen {
        let process = space.process;
        self.counts.frames += 1;
        let (row, code, is_framework) = self.maps.frame(node, space, text, &mut self.written);
        let by_id = row.found_by == Some(FoundBy::MethodId.word());
        let row = Frame { frame_id: u32::try_from(self.counts.frames).unwrap_or(u32::MAX), ..row };
        let mut name = String::new();
        let row = match (self.lines.as_mut(), code) {
            // No place in the method is known.
            (Some(_), Some(_)) if by_id => row,
            (Some(lines), Some((code, _))) => with_line(row, lines.line_at(process, code, row.il_offset)),
            (Some(lines), None) => with_native_symbols(&self.maps, lines, (node, process), row, &mut name),
            _ => row,
        };
        let is_framework = match self.maps.aot_image(node, process) {
            Some(image) if row.kind == "native" => self.maps.is_framework_of_aot(image, &row),
            _ => is_framework,
        };
        self.cut += u64::from(row.name.len() > MAX_NAME);
        // A frame without the parts of a method's name has the name of the frame.
        let written = shortened(if self.written.is_empty() { row.name } else { &self.written });
        let (within, possible) = match within {
            Some(Belongs::To(group)) => (self.inlined.written(*group).filter(|method| *method != written), None),
            Some(Belongs::ToOneOf(groups)) => (None, self.inlined.list(groups, written)),
            None => (None, None),
        };
        let is_framework = if within.is_some() { Some(false) } else { is_framework };
        let row = Frame {
            name: shortened(row.name),
            written_name: within.unwrap_or(written),
            inlined_into: within.is_some().then_some(written),
            may_belong_to: possible.as_deref(),
            is_framework,
            assembly: row.assembly.map(shortened),
            file: row.file.map(shortened),
            ..row
        };
        self.counts.named += u64::from(row.is_named);
        self.counts.in_modules += u64::from(!row.is_named && row.module_id != 0);
        let group = self.groups.group_of(row.name);
        sink.add(&row);
        Seen { id: row.frame_id, group, is_own: is_framework == Some(false) }
    }
}

/// Adds the arguments of a method. Of a type that it cannot name, as of methods that are made while the program runs,
/// the runtime writes the address instead (`pMT: 0x7efec8a1b2c0`), which is another one in each process.
fn push_without_addresses(text: &mut String, arguments: &str) {
    const ADDRESS: &str = "pMT: ";
    let mut rest = arguments;
    while let Some((before, behind)) = rest.split_once(ADDRESS) {
        text.extend([before, "?"]);
        let digits = behind.strip_prefix("0x").unwrap_or(behind);
        rest = digits.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
    }
    text.push_str(rest);
}

/// The frame with its line.
fn with_line<'t>(row: Frame<'t>, line: Option<Line<'t>>) -> Frame<'t> {
    let Some(Line { file, line, kind }) = line else { return row };
    Frame { file: Some(file), line: Some(line), line_kind: Some(kind), ..row }
}

/// The frame with the name and line that a file on this machine has for it; unchanged without one. The name is
/// put into `text`.
fn with_native_symbols<'t>(
    maps: &'t Maps<'_>,
    lines: &'t mut Lines<'_>,
    (node, process): (&Node, ProcessKey),
    row: Frame<'t>,
    text: &'t mut String,
) -> Frame<'t> {
    if row.is_named {
        return row;
    }
    let Some((module, offset)) = maps.native_module(node, process) else { return row };
    let Some(found) = lines.native(module, offset) else { return row };
    text.extend([part(file_name(module.path)), "!", part(found.name)]);
    with_line(Frame { name: text, is_named: true, offset_bytes: found.offset, ..row }, found.line)
}

impl Maps<'_> {
    /// The frame of a node, but for its number and line, of a managed one its code, and whether it is the framework's.
    /// Its name is put into `text`, and that of a method as it was written into `written`.
    fn frame<'t>(
        &'t self,
        node: &Node,
        Space { process, is_logical }: Space,
        text: &'t mut String,
        written: &mut String,
    ) -> (Frame<'t>, Option<Method<'t>>, Option<bool>) {
        let Node { address, first_ns, .. } = *node;
        text.clear();
        written.clear();
        let row = Frame { process_id: process.id, address, ..Frame::default() };
        let (method, found_by) = match self.known.names.filter(|_| is_logical) {
            Some(names) => names.find(process, address, first_ns).unzip(),
            None => (self.methods.find_return(process, address, first_ns), None),
        };
        if let Some((code, [namespace, name, signature])) = method.and_then(|index| self.known.methods.code(index)) {
            let offset_bytes = match found_by {
                Some(FoundBy::MethodId) => 0,
                _ => address.wrapping_sub(code.start_address),
            };
            let assembly = self.assembly(process, code.module_id);
            // Of a method that is known by its id no place in it is known.
            let native = address.wrapping_sub(code.start_address).saturating_sub(1);
            let key = (process, code.method_id, code.version_id);
            let is_only = || self.versions.get(&key).is_none_or(|count| *count == 1);
            let il_offset = match found_by {
                Some(FoundBy::MethodId) => None,
                _ => self.known.il_maps.il_offset(key, native, is_only),
            };
            let row = Frame {
                kind: "managed",
                il_offset,
                method_id: code.method_id,
                module_id: code.module_id,
                assembly,
                tier: code.tier,
                method_token: code.token,
                version_id: code.version_id,
                offset_bytes,
                found_by: found_by.map(FoundBy::word),
                ..row
            };
            let is_named = !name.is_empty();
            if is_named {
                let signature = part(signature);
                let arguments = signature.find('(').and_then(|at| signature.get(at..)).unwrap_or_default();
                let dot = if namespace.is_empty() { "" } else { "." };
                text.extend([part(namespace), dot, part(name)]);
                push_without_addresses(text, arguments);
                written::push(written, part(namespace), part(name));
            } else {
                // Events below the verbose level have the token only.
                text.extend([assembly.unwrap_or("?"), "!", &format!("0x{:08x}", code.token)]);
            }
            let path = self.known.managed_modules.assembly_of((process, code.module_id)).map(|(_, path)| path);
            let place = Place { assembly, path, type_name: part(namespace), name: written, made_by: MadeBy::Managed };
            let is_framework = self.known.own.is_framework(&place);
            return (Frame { name: text, is_named, ..row }, Some((code, [namespace, name, signature])), is_framework);
        }
        let row = self.native(node, process, text);
        let is_framework = match row.kind {
            "kernel" => Some(true),
            "native" => self.known.own.is_framework(&Place {
                path: self.path(node, process),
                name: row.name,
                ..Place::default()
            }),
            _ => None,
        };
        (row, None, is_framework)
    }

    /// The native file at an address.
    fn path(&self, node: &Node, process: ProcessKey) -> Option<&str> {
        let mapping = self.mappings.find(process, node.address, node.first_ns);
        if let Some(mapping) = mapping.and_then(|at| self.known.mappings.mapping(at)) {
            return Some(&mapping.path);
        }
        let (at, _) = self.module(node, process)?;
        self.known.modules.module(at).map(|(_, path)| path)
    }

    /// The program or library of NativeAOT at an address. No event has its size: it is less than 4 GB, and a stack that
    /// the runtime walks has no address out of such files.
    fn aot_image(&self, node: &Node, process: ProcessKey) -> Option<&AotImage<'_>> {
        let behind = self.aot_images.partition_point(|image| (image.process, image.base) <= (process, node.address));
        let image = self.aot_images.get(behind.checked_sub(1)?)?;
        (image.process == process && node.address - image.base <= u64::from(u32::MAX)).then_some(image)
    }

    /// Whether the code of a frame in such a file is the framework's.
    fn is_framework_of_aot(&self, image: &AotImage<'_>, row: &Frame<'_>) -> Option<bool> {
        let name = row.name.split_once('!').map_or(row.name, |(_, name)| name);
        let name = if row.is_named { name } else { "" };
        let place = Place { path: Some(image.path), name, made_by: MadeBy::NativeAot, ..Place::default() };
        self.known.own.is_framework(&place)
    }

    /// Describes an address that is in no method.
    fn native<'t>(&'t self, node: &Node, process: ProcessKey, text: &'t mut String) -> Frame<'t> {
        let Node { address, first_ns, .. } = *node;
        let row = Frame { process_id: process.id, address, ..Frame::default() };
        let is_kernel = address >= KERNEL;
        let kind = if is_kernel { "kernel" } else { "native" };
        if let Some(mapping) =
            self.mappings.find(process, address, first_ns).and_then(|at| self.known.mappings.mapping(at))
        {
            let symbol = self.symbols.find_return(process, address, first_ns);
            let symbol = symbol.and_then(|at| self.known.mappings.symbol(at));
            text.extend([part(file_name(&mapping.path)), "!", symbol.map_or("?", |(_, name)| part(name))]);
            let from = match symbol {
                Some((start, _)) => start,
                None => mapping.start.wrapping_sub(mapping.file_offset),
            };
            let offset_bytes = address.wrapping_sub(from);
            let is_named = symbol.is_some();
            return Frame { kind, module_id: mapping.start, offset_bytes, name: text, is_named, ..row };
        }
        if let Some((at, is_of_kernel)) = self.module(node, process)
            && let Some((base, path)) = self.known.modules.module(at)
        {
            text.extend([part(file_name(path)), "!?"]);
            let kind = if is_of_kernel { "kernel" } else { kind };
            return Frame { kind, module_id: base, offset_bytes: address.wrapping_sub(base), name: text, ..row };
        }
        if let Some(AotImage { base, path, .. }) = self.aot_image(node, process).copied() {
            text.extend([part(file_name(path)), "!?"]);
            return Frame { kind, module_id: base, offset_bytes: address.wrapping_sub(base), name: text, ..row };
        }
        let (kind, name) = match self.methods.around(process, address, first_ns) {
            _ if is_kernel => ("kernel", "[kernel]"),
            Around::Ended => ("unloaded", "[unloaded method]"),
            Around::Among => ("unlisted", "[stub or unlisted method]"),
            Around::Away => ("unknown", "[unknown]"),
        };
        Frame { kind, name, ..row }
    }

    /// The native module of an .etl at an address, and whether it is one of the kernel, which is in every process.
    fn module(&self, node: &Node, process: ProcessKey) -> Option<(usize, bool)> {
        let find = |process| self.modules.find(process, node.address, node.first_ns);
        find(process).map(|at| (at, false)).or_else(|| Some((find(ProcessKey::default())?, true)))
    }

    /// The native file at an address with the key of its symbols, and the place in it as `Symbols::native` wants it.
    fn native_module(&self, node: &Node, process: ProcessKey) -> Option<(NativeModule<'_>, u64)> {
        let known = &self.known;
        let mapping = self.mappings.find(process, node.address, node.first_ns);
        if let Some(mapping) = mapping.and_then(|at| known.mappings.mapping(at)) {
            let key = NativeKey::BuildId(known.mappings.build_id(mapping)?);
            let offset = node.address.checked_sub(mapping.start)?.checked_add(mapping.file_offset)?;
            return Some((NativeModule { path: &mapping.path, key }, offset));
        }
        let Some((at, _)) = self.module(node, process) else {
            let AotImage { base, path, key, .. } = *self.aot_image(node, process)?;
            return Some((NativeModule { path, key: key? }, node.address.checked_sub(base)?));
        };
        let (base, path) = known.modules.module(at)?;
        let key = match self.pdbs.get(at).copied().flatten() {
            Some(pdb) => NativeKey::Pdb { guid: pdb.guid, age: pdb.age, path: pdb.path.as_deref() },
            None => self.precompiled_key(process, path)?,
        };
        Some((NativeModule { path, key }, node.address.checked_sub(base)?))
    }

    /// The key of the symbols of a file that the kernel loaded, as the runtime says it.
    fn precompiled_key(&self, process: ProcessKey, path: &str) -> Option<NativeKey<'_>> {
        if self.precompiled.is_empty() {
            return None;
        }
        let path = path.to_ascii_lowercase();
        self.precompiled.find(process, &path, |of_runtime| path.ends_with(of_runtime)).copied()
    }

    /// The simple name of the assembly of a module.
    fn assembly(&self, process: ProcessKey, module_id: u64) -> Option<&str> {
        let (assembly_id, path) = self.known.managed_modules.assembly_of((process, module_id))?;
        let full = part(self.known.assemblies.name_of((process, assembly_id)).unwrap_or_default());
        let name = match full.split(',').next() {
            Some(name) if !name.is_empty() => name,
            _ => file_name(path).trim_end_matches(".dll").trim_end_matches(".exe"),
        };
        (!name.is_empty()).then_some(name)
    }
}

/// As much of a text as a row may have.
fn shortened(text: &str) -> &str {
    beginning(text, MAX_NAME)
}

/// As much of a text as is looked at for a name. More than a name may have, so that it shows that it is cut.
fn part(text: &str) -> &str {
    beginning(text, 2 * MAX_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_addresses() {
        for (arguments, expected) in [
            ("(pMT: 0x7efec8a1b2c0,class System.Object)", "(?,class System.Object)"),
            ("(pMT: 00007FF8A1B2C0D0, pMT: 0x1)", "(?, ?)"),
            ("(int32,pMT: ", "(int32,?"),
            ("(class A.B)", "(class A.B)"),
        ] {
            let mut text = "dynamicClass.lambda_method5".to_owned();
            push_without_addresses(&mut text, arguments);
            assert_eq!(text, format!("dynamicClass.lambda_method5{expected}"));
        }
    }
}
