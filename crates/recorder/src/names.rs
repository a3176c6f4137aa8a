//! Names of ids: classes, functions and modules, looked up outside of collections, each once.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::com::{Guid, This};
use crate::info::get;
use crate::slots::{info as slot, metadata, unknown};
use crate::{log, settings};
use corprof::encode::named;
use corprof::kind;

const METADATA_IMPORT: Guid = Guid::new(0x7DAC8207_D3AE_4C75_9B67_92801A497D44);
/// Ids that wait at most.
const MAX_WAITING: usize = 1 << 16;

/// Ids of one kind.
#[derive(Default)]
struct Ids {
    seen: HashSet<usize>,
    waiting: Vec<usize>,
}

impl Ids {
    fn want(&mut self, ids: impl Iterator<Item = usize>) {
        for id in ids {
            if id != 0 && self.waiting.len() < MAX_WAITING && self.seen.insert(id) {
                self.waiting.push(id);
            }
        }
    }
}

#[derive(Default)]
struct Names {
    classes: Ids,
    functions: Ids,
}

static NAMES: Mutex<Option<Names>> = Mutex::new(None);
/// Whether anything waits.
static ANY: AtomicBool = AtomicBool::new(false);
/// Held for each look-up and by what is unloaded, so that no id is looked up that means nothing any more: the runtime
/// does not check ids, it crashes.
static LOOK_UP: Mutex<()> = Mutex::new(());

/// Ids of which the recording has to say what they are. Skipped, until they come again, when the lock is taken.
pub fn want(classes: impl Iterator<Item = usize>, functions: impl Iterator<Item = usize>) {
    if !settings::of_recording().names {
        return;
    }
    let Ok(mut names) = NAMES.try_lock() else { return };
    let names = names.get_or_insert_default();
    names.classes.want(classes);
    names.functions.want(functions);
    ANY.store(!names.classes.waiting.is_empty() || !names.functions.waiting.is_empty(), Ordering::Release);
}

/// Something is unloaded: its ids, and we do not know which these are, mean nothing from the return of the callback on.
/// What is still in use comes again with the next collection.
pub fn forget() {
    let _no_look_up = LOOK_UP.lock();
    if let Ok(mut names) = NAMES.lock() {
        *names = None;
    }
}

/// Takes what waits: a class, a function.
fn next() -> Option<(Option<usize>, Option<usize>)> {
    let mut names = NAMES.lock().ok()?;
    let next = names.as_mut().map(|n| (n.classes.waiting.pop(), n.functions.waiting.pop()));
    let next = next.filter(|next| *next != (None, None));
    if next.is_none() {
        ANY.store(false, Ordering::Release);
    }
    next
}

/// Looks up what waits. Not to be called within a collection.
pub fn resolve() {
    while ANY.load(Ordering::Acquire) {
        let _look_up = LOOK_UP.lock();
        let Some((of_class, of_function)) = next() else { return };
        of_class.into_iter().for_each(class);
        of_function.into_iter().for_each(function);
    }
}

fn utf16(text: &[u16], len: u32) -> String {
    let len = (len as usize).saturating_sub(1).min(text.len());
    String::from_utf16_lossy(text.get(..len).unwrap_or_default())
}

/// Writes the record of a module.
pub fn module(id: usize) {
    let Some(info) = get(1) else { return };
    let (mut base, mut len, mut path, mut assembly) = (0, 0, vec![0u16; 4096], 0);
    // SAFETY: at most 4096 units are written.
    let hr = unsafe {
        slot::GET_MODULE_INFO.entry_of(info)(info, id, &mut base, 4096, &mut len, path.as_mut_ptr(), &mut assembly)
    };
    if hr >= 0
        && let Some(entry) = log::enter()
    {
        let path = utf16(&path, len);
        log::write(entry, kind::MODULE, 0, |out| named(out, &[id as u64, base as u64], &path));
    }
}

/// IMetaDataImport of a module.
struct Metadata(This);

impl Metadata {
    fn of(module: usize) -> Option<Metadata> {
        let info = get(1)?;
        let mut out = std::ptr::null_mut();
        // SAFETY: writes one pointer; 0 is ofRead.
        let hr = unsafe { slot::GET_MODULE_META_DATA.entry_of(info)(info, module, 0, &METADATA_IMPORT, &mut out) };
        (hr == 0 && !out.is_null()).then_some(Metadata(out))
    }

    fn type_name(&self, token: u32, depth: u32) -> Option<String> {
        let (mut name, mut len, mut flags, mut base, mut outer) = ([0u16; 1024], 0, 0, 0, 0);
        // SAFETY: at most 1024 units are written.
        let hr = unsafe {
            metadata::GET_TYPE_DEF_PROPS.entry_of(self.0)(
                self.0,
                token,
                name.as_mut_ptr(),
                1024,
                &mut len,
                &mut flags,
                &mut base,
            )
        };
        if hr < 0 {
            return None;
        }
        let name = utf16(&name, len);
        // SAFETY: writes one token.
        let is_nested = flags & 7 >= 2
            && unsafe { metadata::GET_NESTED_CLASS_PROPS.entry_of(self.0)(self.0, token, &mut outer) } == 0;
        match is_nested && depth < 8 {
            true => Some(format!("{}+{name}", self.type_name(outer, depth + 1)?)),
            false => Some(name),
        }
    }

    fn method(&self, token: u32) -> Option<(String, u32)> {
        let (mut class, mut name, mut len, mut numbers) = (0, [0u16; 1024], 0, [0u32; 4]);
        let mut signature = std::ptr::null();
        let [attributes, size, rva, flags] = &mut numbers;
        // SAFETY: at most 1024 units are written.
        let hr = unsafe {
            let get = metadata::GET_METHOD_PROPS.entry_of(self.0);
            let name = name.as_mut_ptr();
            get(self.0, token, &mut class, name, 1024, &mut len, attributes, &mut signature, size, rva, flags)
        };
        (hr >= 0).then(|| (utf16(&name, len), class))
    }
}

impl Drop for Metadata {
    fn drop(&mut self) {
        // SAFETY: this reference is ours.
        unsafe { unknown::RELEASE.entry_of(self.0)(self.0) };
    }
}

struct ClassInfo {
    module: usize,
    token: u32,
    element_type: u8,
    rank: u32,
    element: usize,
    name: String,
}

fn class_info(id: usize, depth: u32) -> Option<ClassInfo> {
    let info = get(2)?;
    if depth > 8 || id == 0 {
        return None;
    }
    let (mut element_type, mut element, mut rank) = (0, 0, 0);
    // SAFETY: writes three numbers.
    if unsafe { slot::IS_ARRAY_CLASS.entry_of(info)(info, id, &mut element_type, &mut element, &mut rank) } == 0 {
        let of = class_info(element, depth + 1);
        let of = of.map_or_else(|| primitive(element_type).to_owned(), |c| c.name);
        let name = format!("{of}[{}]", ",".repeat(rank.saturating_sub(1) as usize));
        return Some(ClassInfo { module: 0, token: 0, element_type: element_type as u8, rank, element, name });
    }
    let (mut module, mut token, mut parent, mut count, mut arguments) = (0, 0, 0, 0, [0usize; 16]);
    // SAFETY: at most 16 ids are written.
    let hr = unsafe {
        let get = slot::GET_CLASS_ID_INFO2.entry_of(info);
        get(info, id, &mut module, &mut token, &mut parent, 16, &mut count, arguments.as_mut_ptr())
    };
    if hr != 0 {
        return None;
    }
    let mut name = Metadata::of(module)?.type_name(token, 0)?;
    let arguments = arguments.iter().take(count as usize);
    let arguments: Vec<_> =
        arguments.map(|id| class_info(*id, depth + 1).map_or_else(|| "?".into(), |c| c.name)).collect();
    if !arguments.is_empty() {
        name = format!("{name}[{}]", arguments.join(","));
    }
    Some(ClassInfo { module, token, element_type: 0, rank: 0, element: 0, name })
}

/// Element types of arrays whose elements have no class id.
fn primitive(element_type: u32) -> &'static str {
    const NAMES: [&str; 13] = [
        "Boolean", "Char", "SByte", "Byte", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", "Single",
        "Double", "String",
    ];
    let index = (element_type as usize).checked_sub(2);
    index.and_then(|at| NAMES.get(at)).copied().unwrap_or("?")
}

fn class(id: usize) {
    if let Some(c) = class_info(id, 0)
        && let Some(entry) = log::enter()
    {
        log::write(entry, kind::CLASS, 0, |out| {
            corprof::encode::numbers(out, &[id as u64, c.module as u64, u64::from(c.token)]);
            out.push(c.element_type);
            named(out, &[u64::from(c.rank), c.element as u64], &c.name);
        });
    }
}

fn function(id: usize) {
    let Some(info) = get(1) else { return };
    let (mut class, mut module, mut token) = (0, 0, 0);
    // SAFETY: writes three numbers.
    let hr = unsafe { slot::GET_FUNCTION_INFO.entry_of(info)(info, id, &mut class, &mut module, &mut token) };
    if hr < 0 {
        return;
    }
    let Some(metadata) = Metadata::of(module) else { return };
    let Some((name, type_token)) = metadata.method(token) else { return };
    let name = match metadata.type_name(type_token, 0) {
        Some(of) => format!("{of}.{name}"),
        None => name,
    };
    if let Some(entry) = log::enter() {
        let ids = [id as u64, class as u64, module as u64, u64::from(token)];
        log::write(entry, kind::FUNCTION, 0, |out| named(out, &ids, &name));
    }
}
