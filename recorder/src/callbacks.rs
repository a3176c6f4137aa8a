//! The callbacks: each writes down what it was called with.

use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::com::{self, E_FAIL, Hr, S_OK, SLOTS};
use crate::settings::{UNLOADS, of_recording as settings};
use crate::{helper, info, log, names, platform};
use corprof::{self as format, FLAG_CONTINUES, FLAG_FAILED, Header, encode, kind};

type This = *mut c_void;

/// References of one object that go into one record.
const MAX_REFERENCES: usize = 256 << 10;

extern "system" fn nothing() -> Hr {
    S_OK
}

/// The table of ICorProfilerCallback11: what is not recorded does nothing.
pub fn table() -> [usize; SLOTS] {
    let mut table = [nothing as *const () as usize; SLOTS];
    let slots: &[(usize, *const ())] = &[
        (0, com::query as _),
        (1, com::add_ref as _),
        (2, com::release as _),
        (3, initialize as _),
        (4, shutdown as _),
        (14, module_load_finished as _),
        (15, unloaded::<{ kind::MODULE_UNLOADED }> as _),
        (20, unloaded::<{ kind::CLASS_UNLOADED }> as _),
        (22, unloaded::<{ kind::FUNCTION_UNLOADED }> as _),
        (29, of_thread::<{ kind::THREAD_CREATED }> as _),
        (30, of_thread::<{ kind::THREAD_DESTROYED }> as _),
        (31, thread_assigned as _),
        (42, suspend_started as _),
        (43, moment::<{ kind::SUSPEND_FINISHED }> as _),
        (44, moment::<{ kind::SUSPEND_ABORTED }> as _),
        (45, moment::<{ kind::RESUME_STARTED }> as _),
        (46, moment::<{ kind::RESUME_FINISHED }> as _),
        (47, of_thread::<{ kind::THREAD_SUSPENDED }> as _),
        (48, of_thread::<{ kind::THREAD_RESUMED }> as _),
        (49, moved as _),
        (50, object_allocated as _),
        (51, allocated_by_class as _),
        (52, object_references as _),
        (53, roots as _),
        (72, thread_name as _),
        (73, gc_started as _),
        (74, surviving as _),
        (75, gc_finished as _),
        (76, finalizeable as _),
        (77, roots2 as _),
        (78, handle_created as _),
        (79, handle_destroyed as _),
        (80, initialize_for_attach as _),
        (81, attach_complete as _),
        (87, moved2 as _),
        (88, surviving2 as _),
        (89, weak_elements as _),
        // The id of a dynamic method comes again, too.
        (94, unloaded::<{ kind::FUNCTION_UNLOADED }> as _),
        (97, load_as_notification_only as _),
    ];
    for (slot, function) in slots {
        if let Some(place) = table.get_mut(*slot) {
            *place = *function as usize;
        }
    }
    table
}

/// What the runtime passed as `count` values at `first`.
///
/// # Safety
/// As the runtime promises: `first` is null or leads to that many values, valid for the call.
unsafe fn list<'a, T>(first: *const T, count: usize) -> &'a [T] {
    // SAFETY: the caller vouches for it.
    if first.is_null() || count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(first, count) } }
}

fn has(policy: u32) -> bool {
    settings().policy & policy != 0
}

fn record(kind: u8, flags: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    if let Some(entry) = log::enter() {
        log::write(entry, kind, flags, fill);
    }
}

/// A callback with a number or two.
fn numbers(kind: u8, numbers: &[u64]) {
    record(kind, 0, |out| encode::numbers(out, numbers));
}

fn begin(unknown: *mut c_void, attached: bool) -> Hr {
    // SAFETY: the runtime passes a COM object.
    if !unsafe { info::adopt(unknown) } {
        return E_FAIL;
    }
    let settings = settings();
    let asked = if attached { settings.attach_masks } else { settings.masks };
    let mut hr = info::set_masks(asked);
    if hr < 0 {
        hr = info::set_masks([asked[0] & !UNLOADS[0], asked[1] & !UNLOADS[1]]);
    }
    if hr < 0 {
        eprintln!("tracequet-recorder: the runtime refuses the event mask {asked:x?}: {hr:#x}");
        return hr;
    }
    if settings.idle {
        return S_OK;
    }
    let runtime_path = platform::runtime_path();
    let (clr_instance_id, runtime_kind, mut runtime_version) = info::runtime();
    // .NET Core 3.1 calls itself 4.0; the folder of its library has the true version.
    let folder = Path::new(&runtime_path).parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    if folder.starts_with(|c: char| c.is_ascii_digit()) {
        runtime_version = folder.into_owned();
    }
    let header = Header {
        chunk_align: log::ALIGN as u32,
        pointer_size: size_of::<usize>() as u8,
        os: platform::OS,
        arch: platform::ARCH,
        attached,
        processors: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        process_id: u64::from(std::process::id()),
        process_start_utc_ns: platform::process_start_utc_ns(),
        frequency: platform::frequency(),
        start_ticks: platform::ticks(),
        start_utc_ns: platform::utc_ns(),
        asked,
        granted: info::masks(),
        callback_version: com::GRANTED.load(Ordering::Relaxed) as u16,
        info_version: info::version() as u16,
        policy: settings.policy,
        clr_instance_id,
        runtime_kind,
        clock_name: platform::CLOCK.to_owned(),
        command_line: platform::command_line(),
        runtime_path,
        runtime_version,
        profiler: concat!("tracequet-recorder ", env!("CARGO_PKG_VERSION")).to_owned(),
    };
    let path = settings.path();
    if let Err(error) = log::begin(Path::new(&path), &header) {
        eprintln!("tracequet-recorder: {path}: {error}");
        return E_FAIL;
    }
    helper::start();
    S_OK
}

extern "system" fn initialize(_: This, unknown: *mut c_void) -> Hr {
    begin(unknown, false)
}

unsafe extern "system" fn initialize_for_attach(_: This, unknown: *mut c_void, data: *const u8, len: u32) -> Hr {
    // SAFETY: the runtime passes the client's data.
    let data = unsafe { list(data, len as usize) };
    crate::settings::set_client_data(&String::from_utf8_lossy(data));
    begin(unknown, true)
}

/// What was there before the attachment is told now: threads and modules. Classes and functions are looked up as ever.
extern "system" fn attach_complete(this: This) -> Hr {
    moment::<{ kind::ATTACHED }>(this);
    info::threads(|thread, os_id| {
        thread_assigned(this, thread, os_id);
    });
    info::modules(|module| {
        module_load_finished(this, module, S_OK);
    });
    S_OK
}

extern "system" fn shutdown(_: This) -> Hr {
    helper::stop();
    names::resolve();
    helper::clock();
    log::end();
    S_OK
}

unsafe extern "system" fn load_as_notification_only(_: This, out: *mut i32) -> Hr {
    if !out.is_null() {
        // SAFETY: not null, and the runtime's.
        unsafe { out.write(0) };
    }
    S_OK
}

extern "system" fn module_load_finished(_: This, module: usize, _: Hr) -> Hr {
    if settings().names {
        names::module(module);
    }
    S_OK
}

/// What a class, a function or a module was is over: its id may come again and mean another.
extern "system" fn unloaded<const KIND: u8>(_: This, id: usize) -> Hr {
    // First, so that no name of the old meaning is written behind this record.
    names::forget();
    numbers(KIND, &[id as u64]);
    S_OK
}

/// A callback without arguments.
extern "system" fn moment<const KIND: u8>(_: This) -> Hr {
    record(KIND, 0, |_| {});
    S_OK
}

/// A callback about a thread.
extern "system" fn of_thread<const KIND: u8>(_: This, thread: usize) -> Hr {
    numbers(KIND, &[thread as u64]);
    S_OK
}

extern "system" fn thread_assigned(_: This, thread: usize, os_id: u32) -> Hr {
    numbers(kind::THREAD_ASSIGNED, &[thread as u64, u64::from(os_id)]);
    S_OK
}

unsafe extern "system" fn thread_name(_: This, thread: usize, len: u32, name: *const u16) -> Hr {
    // SAFETY: the runtime passes that many units.
    let name = String::from_utf16_lossy(unsafe { list(name, len as usize) });
    record(kind::THREAD_NAME, 0, |out| encode::named(out, &[thread as u64], name.trim_end_matches('\0')));
    S_OK
}

extern "system" fn suspend_started(_: This, reason: u32) -> Hr {
    numbers(kind::SUSPEND_STARTED, &[u64::from(reason)]);
    S_OK
}

unsafe extern "system" fn gc_started(_: This, count: i32, generations: *const i32, reason: u32) -> Hr {
    let Some(entry) = log::enter() else { return S_OK };
    // SAFETY: the runtime passes that many flags.
    let flags = unsafe { list(generations, usize::try_from(count).unwrap_or(0)) };
    let bits = flags.iter().take(32).enumerate().fold(0, |bits, (n, on)| bits | u32::from(*on != 0) << n);
    info::bounds(|said| {
        log::write(entry, kind::GC_STARTED, 0, |out| {
            encode::gc_started(out, u32::try_from(count).unwrap_or(0), bits, reason, said);
        });
    });
    S_OK
}

extern "system" fn gc_finished(_: This) -> Hr {
    let Some(entry) = log::enter() else { return S_OK };
    info::bounds(|said| log::write(entry, kind::GC_FINISHED, 0, |out| encode::gc_finished(out, said)));
    S_OK
}

/// What a second version answers, and the flag that says so.
fn second() -> (Hr, u8) {
    if has(format::POLICY_V2_FAILS) { (E_FAIL, FLAG_FAILED) } else { (S_OK, 0) }
}

unsafe extern "system" fn surviving(_: This, count: u32, starts: *const usize, lengths: *const u32) -> Hr {
    if has(format::POLICY_V1) {
        // SAFETY: the runtime passes arrays of that many entries.
        let (starts, lengths) = unsafe { (list(starts, count as usize), list(lengths, count as usize)) };
        let rows = starts.iter().zip(lengths).map(|(start, length)| [*start as u64, u64::from(*length)]);
        record(kind::SURVIVING, 0, |out| encode::surviving(out, rows));
    }
    S_OK
}

unsafe extern "system" fn surviving2(_: This, count: u32, starts: *const usize, lengths: *const usize) -> Hr {
    let (hr, flags) = second();
    if has(format::POLICY_V2) {
        // SAFETY: the runtime passes arrays of that many entries.
        let (starts, lengths) = unsafe { (list(starts, count as usize), list(lengths, count as usize)) };
        let rows = starts.iter().zip(lengths).map(|(start, length)| [*start as u64, *length as u64]);
        record(kind::SURVIVING2, flags, |out| encode::surviving(out, rows));
    }
    hr
}

unsafe extern "system" fn moved(_: This, count: u32, old: *const usize, new: *const usize, lengths: *const u32) -> Hr {
    if has(format::POLICY_V1) {
        let n = count as usize;
        // SAFETY: the runtime passes arrays of that many entries.
        let (old, new, lengths) = unsafe { (list(old, n), list(new, n), list(lengths, n)) };
        let rows = old.iter().zip(new).zip(lengths).map(|((o, n), l)| [*o as u64, *n as u64, u64::from(*l)]);
        record(kind::MOVED, 0, |out| encode::moved(out, rows));
    }
    S_OK
}

unsafe extern "system" fn moved2(
    _: This,
    count: u32,
    old: *const usize,
    new: *const usize,
    lengths: *const usize,
) -> Hr {
    let (hr, flags) = second();
    if has(format::POLICY_V2) {
        let n = count as usize;
        // SAFETY: the runtime passes arrays of that many entries.
        let (old, new, lengths) = unsafe { (list(old, n), list(new, n), list(lengths, n)) };
        let rows = old.iter().zip(new).zip(lengths).map(|((o, n), l)| [*o as u64, *n as u64, *l as u64]);
        record(kind::MOVED2, flags, |out| encode::moved(out, rows));
    }
    hr
}

unsafe extern "system" fn roots(_: This, count: u32, objects: *const usize) -> Hr {
    if has(format::POLICY_ROOTS) && has(format::POLICY_V1) {
        // SAFETY: the runtime passes an array of that many entries.
        let objects = unsafe { list(objects, count as usize) };
        record(kind::ROOTS, 0, |out| encode::objects(out, objects.iter().map(|o| *o as u64)));
    }
    S_OK
}

unsafe extern "system" fn roots2(
    _: This,
    count: u32,
    objects: *const usize,
    kinds: *const u32,
    flags: *const u32,
    ids: *const usize,
) -> Hr {
    let (hr, failed) = second();
    if has(format::POLICY_ROOTS) && (has(format::POLICY_V2) || !has(format::POLICY_V1)) {
        let n = count as usize;
        // SAFETY: the runtime passes arrays of that many entries.
        let (objects, kinds, flags, ids) = unsafe { (list(objects, n), list(kinds, n), list(flags, n), list(ids, n)) };
        let rows = objects.iter().zip(kinds).zip(flags).zip(ids);
        let rows = rows.map(|(((o, k), f), i)| [*o as u64, u64::from(*k), u64::from(*f), *i as u64]);
        record(kind::ROOTS2, failed, |out| encode::columns(out, rows));
        const STACK: u32 = 1;
        let functions = kinds.iter().zip(ids).filter(|(kind, _)| **kind == STACK).map(|(_, id)| *id);
        names::want(std::iter::empty(), functions);
    }
    hr
}

unsafe extern "system" fn object_references(
    _: This,
    object: usize,
    class: usize,
    count: u32,
    references: *const usize,
) -> Hr {
    let stop = has(format::POLICY_STOP_WALK);
    if has(format::POLICY_OBJECTS) {
        // SAFETY: the runtime passes an array of that many entries, or null.
        let references = unsafe { list(references, count as usize) };
        let mut parts = references.chunks(MAX_REFERENCES).peekable();
        let mut part = parts.next().unwrap_or_default();
        loop {
            let flags = if parts.peek().is_some() { FLAG_CONTINUES } else { 0 };
            let rows = part.iter().map(|reference| *reference as u64);
            record(kind::OBJECT, flags, |out| encode::object(out, object as u64, class as u64, rows));
            match parts.next() {
                Some(next) => part = next,
                None => break,
            }
        }
        names::want(std::iter::once(class), std::iter::empty());
    }
    if stop { E_FAIL } else { S_OK }
}

unsafe extern "system" fn weak_elements(
    _: This,
    count: u32,
    keys: *const usize,
    values: *const usize,
    handles: *const usize,
) -> Hr {
    if has(format::POLICY_ROOTS) {
        let n = count as usize;
        // SAFETY: the runtime passes arrays of that many entries.
        let (keys, values, handles) = unsafe { (list(keys, n), list(values, n), list(handles, n)) };
        let rows = keys.iter().zip(values).zip(handles).map(|((k, v), h)| [*k as u64, *v as u64, *h as u64]);
        record(kind::WEAK, 0, |out| encode::columns(out, rows));
    }
    S_OK
}

unsafe extern "system" fn allocated_by_class(_: This, count: u32, classes: *const usize, counts: *const u32) -> Hr {
    if has(format::POLICY_CLASSES) {
        // SAFETY: the runtime passes arrays of that many entries.
        let (classes, counts) = unsafe { (list(classes, count as usize), list(counts, count as usize)) };
        let rows = classes.iter().zip(counts).map(|(class, count)| [*class as u64, u64::from(*count)]);
        record(kind::BY_CLASS, 0, |out| encode::columns(out, rows));
        names::want(classes.iter().copied(), std::iter::empty());
    }
    S_OK
}

extern "system" fn object_allocated(_: This, object: usize, class: usize) -> Hr {
    if has(format::POLICY_ALLOCATIONS) {
        let size = info::object_size(object);
        numbers(kind::ALLOCATED, &[object as u64, class as u64, size]);
        names::want(std::iter::once(class), std::iter::empty());
    }
    S_OK
}

extern "system" fn finalizeable(_: This, flags: u32, object: usize) -> Hr {
    if has(format::POLICY_HANDLES) {
        numbers(kind::FINALIZEABLE, &[u64::from(flags), object as u64]);
    }
    S_OK
}

extern "system" fn handle_created(_: This, handle: usize, object: usize) -> Hr {
    if has(format::POLICY_HANDLES) {
        numbers(kind::HANDLE_CREATED, &[handle as u64, object as u64]);
    }
    S_OK
}

extern "system" fn handle_destroyed(_: This, handle: usize) -> Hr {
    if has(format::POLICY_HANDLES) {
        numbers(kind::HANDLE_DESTROYED, &[handle as u64]);
    }
    S_OK
}
