//! The callbacks: each records what it was called with.

use std::sync::atomic::AtomicU32;

use corprof::{FLAG_CONTINUES, FLAG_FAILED, encode, kind};

use crate::com::{E_FAIL, Hr, S_OK, Table, This};
use crate::guard::{guarded, guarded_or};
use crate::settings::{self, of_recording as settings};
use crate::slots::callback;
use crate::{info, log, names, session};

/// References of one object that go into one record.
const MAX_REFERENCES: usize = 256 << 10;

/// The newest version of ICorProfilerCallback that was asked for and granted.
pub static GRANTED: AtomicU32 = AtomicU32::new(0);

/// Puts the callbacks that are recorded into their slots.
pub fn fill(table: &mut Table<{ callback::COUNT }>) {
    table.set(&callback::INITIALIZE, initialize);
    table.set(&callback::INITIALIZE_FOR_ATTACH, initialize_for_attach);
    table.set(&callback::PROFILER_ATTACH_COMPLETE, attach_complete);
    table.set(&callback::LOAD_AS_NOTIFICATION_ONLY, load_as_notification_only);
    table.set(&callback::SHUTDOWN, shutdown);

    table.set(&callback::MODULE_LOAD_FINISHED, module_load_finished);
    table.set(&callback::MODULE_UNLOAD_STARTED, unloaded::<{ kind::MODULE_UNLOADED }>);
    table.set(&callback::CLASS_UNLOAD_STARTED, unloaded::<{ kind::CLASS_UNLOADED }>);
    table.set(&callback::FUNCTION_UNLOAD_STARTED, unloaded::<{ kind::FUNCTION_UNLOADED }>);
    // The id of a dynamic method comes again, too.
    table.set(&callback::DYNAMIC_METHOD_UNLOADED, unloaded::<{ kind::FUNCTION_UNLOADED }>);

    table.set(&callback::THREAD_CREATED, of_thread::<{ kind::THREAD_CREATED }>);
    table.set(&callback::THREAD_DESTROYED, of_thread::<{ kind::THREAD_DESTROYED }>);
    table.set(&callback::THREAD_ASSIGNED_TO_OS_THREAD, thread_assigned);
    table.set(&callback::THREAD_NAME_CHANGED, thread_name);

    table.set(&callback::RUNTIME_SUSPEND_STARTED, suspend_started);
    table.set(&callback::RUNTIME_SUSPEND_FINISHED, moment::<{ kind::SUSPEND_FINISHED }>);
    table.set(&callback::RUNTIME_SUSPEND_ABORTED, moment::<{ kind::SUSPEND_ABORTED }>);
    table.set(&callback::RUNTIME_RESUME_STARTED, moment::<{ kind::RESUME_STARTED }>);
    table.set(&callback::RUNTIME_RESUME_FINISHED, moment::<{ kind::RESUME_FINISHED }>);
    table.set(&callback::RUNTIME_THREAD_SUSPENDED, of_thread::<{ kind::THREAD_SUSPENDED }>);
    table.set(&callback::RUNTIME_THREAD_RESUMED, of_thread::<{ kind::THREAD_RESUMED }>);

    table.set(&callback::GARBAGE_COLLECTION_STARTED, gc_started);
    table.set(&callback::GARBAGE_COLLECTION_FINISHED, gc_finished);
    table.set(&callback::SURVIVING_REFERENCES, surviving);
    table.set(&callback::SURVIVING_REFERENCES2, surviving2);
    table.set(&callback::MOVED_REFERENCES, moved);
    table.set(&callback::MOVED_REFERENCES2, moved2);
    table.set(&callback::ROOT_REFERENCES, roots);
    table.set(&callback::ROOT_REFERENCES2, roots2);
    table.set(&callback::CONDITIONAL_WEAK_TABLE_ELEMENT_REFERENCES, weak_elements);
    table.set(&callback::OBJECT_REFERENCES, object_references);
    table.set(&callback::OBJECT_ALLOCATED, object_allocated);
    table.set(&callback::OBJECTS_ALLOCATED_BY_CLASS, allocated_by_class);
    table.set(&callback::FINALIZEABLE_OBJECT_QUEUED, finalizeable);
    table.set(&callback::HANDLE_CREATED, handle_created);
    table.set(&callback::HANDLE_DESTROYED, handle_destroyed);
}

/// The `count` values at `first`, which the runtime passed.
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

extern "system" fn initialize(_: This, unknown: This) -> Hr {
    // SAFETY: the runtime passes a COM object.
    guarded_or(E_FAIL, || unsafe { session::begin(unknown, false, &GRANTED) })
}

unsafe extern "system" fn initialize_for_attach(_: This, unknown: This, data: *const u8, len: u32) -> Hr {
    guarded_or(E_FAIL, || {
        // SAFETY: the runtime passes the client's data.
        let data = unsafe { list(data, len as usize) };
        settings::set_client_data(&String::from_utf8_lossy(data));
        // SAFETY: the runtime passes a COM object.
        unsafe { session::begin(unknown, true, &GRANTED) }
    })
}

/// Records what was there before the attachment: threads and modules. Classes and functions are looked up as
/// ever.
extern "system" fn attach_complete(_: This) -> Hr {
    guarded(|| {
        record(kind::ATTACHED, 0, |_| {});
        info::threads(|thread, os_id| numbers(kind::THREAD_ASSIGNED, &[thread as u64, u64::from(os_id)]));
        if settings().names {
            info::modules(names::module);
        }
    })
}

extern "system" fn shutdown(_: This) -> Hr {
    guarded(session::end)
}

unsafe extern "system" fn load_as_notification_only(_: This, out: *mut i32) -> Hr {
    guarded(|| {
        if !out.is_null() {
            // SAFETY: not null, and the runtime's.
            unsafe { out.write(0) };
        }
    })
}

extern "system" fn module_load_finished(_: This, module: usize, _: Hr) -> Hr {
    guarded(|| {
        if settings().names {
            names::module(module);
        }
    })
}

/// Forgets a class, a function or a module: its id may come again and mean another.
extern "system" fn unloaded<const KIND: u8>(_: This, id: usize) -> Hr {
    guarded(|| {
        // First, so that no name of the old meaning is written behind this record.
        names::forget();
        numbers(KIND, &[id as u64]);
    })
}

/// A callback without arguments.
extern "system" fn moment<const KIND: u8>(_: This) -> Hr {
    guarded(|| record(KIND, 0, |_| {}))
}

/// A callback about a thread.
extern "system" fn of_thread<const KIND: u8>(_: This, thread: usize) -> Hr {
    guarded(|| numbers(KIND, &[thread as u64]))
}

extern "system" fn thread_assigned(_: This, thread: usize, os_id: u32) -> Hr {
    guarded(|| numbers(kind::THREAD_ASSIGNED, &[thread as u64, u64::from(os_id)]))
}

unsafe extern "system" fn thread_name(_: This, thread: usize, len: u32, name: *const u16) -> Hr {
    guarded(|| {
        // SAFETY: the runtime passes that many units.
        let name = String::from_utf16_lossy(unsafe { list(name, len as usize) });
        record(kind::THREAD_NAME, 0, |out| encode::named(out, &[thread as u64], name.trim_end_matches('\0')));
    })
}

extern "system" fn suspend_started(_: This, reason: u32) -> Hr {
    guarded(|| numbers(kind::SUSPEND_STARTED, &[u64::from(reason)]))
}

unsafe extern "system" fn gc_started(_: This, count: i32, generations: *const i32, reason: u32) -> Hr {
    guarded(|| {
        let Some(entry) = log::enter() else { return };
        // SAFETY: the runtime passes that many flags.
        let flags = unsafe { list(generations, usize::try_from(count).unwrap_or(0)) };
        let bits = flags.iter().take(32).enumerate().fold(0, |bits, (n, on)| bits | u32::from(*on != 0) << n);
        info::bounds(|said| {
            log::write(entry, kind::GC_STARTED, 0, |out| {
                encode::gc_started(out, u32::try_from(count).unwrap_or(0), bits, reason, said);
            });
        });
    })
}

extern "system" fn gc_finished(_: This) -> Hr {
    guarded(|| {
        let Some(entry) = log::enter() else { return };
        info::bounds(|said| log::write(entry, kind::GC_FINISHED, 0, |out| encode::gc_finished(out, said)));
    })
}

/// The answer to a second version of a callback, and the flag that says so.
fn second() -> (Hr, u8) {
    if has(corprof::POLICY_V2_FAILS) { (E_FAIL, FLAG_FAILED) } else { (S_OK, 0) }
}

unsafe extern "system" fn surviving(_: This, count: u32, starts: *const usize, lengths: *const u32) -> Hr {
    guarded(|| {
        if has(corprof::POLICY_V1) {
            // SAFETY: the runtime passes arrays of that many entries.
            let (starts, lengths) = unsafe { (list(starts, count as usize), list(lengths, count as usize)) };
            let rows = starts.iter().zip(lengths).map(|(start, length)| [*start as u64, u64::from(*length)]);
            record(kind::SURVIVING, 0, |out| encode::surviving(out, rows));
        }
    })
}

unsafe extern "system" fn surviving2(_: This, count: u32, starts: *const usize, lengths: *const usize) -> Hr {
    guarded_or(S_OK, || {
        let (hr, flags) = second();
        if has(corprof::POLICY_V2) {
            // SAFETY: the runtime passes arrays of that many entries.
            let (starts, lengths) = unsafe { (list(starts, count as usize), list(lengths, count as usize)) };
            let rows = starts.iter().zip(lengths).map(|(start, length)| [*start as u64, *length as u64]);
            record(kind::SURVIVING2, flags, |out| encode::surviving(out, rows));
        }
        hr
    })
}

unsafe extern "system" fn moved(_: This, count: u32, old: *const usize, new: *const usize, lengths: *const u32) -> Hr {
    guarded(|| {
        if has(corprof::POLICY_V1) {
            let n = count as usize;
            // SAFETY: the runtime passes arrays of that many entries.
            let (old, new, lengths) = unsafe { (list(old, n), list(new, n), list(lengths, n)) };
            let rows = old.iter().zip(new).zip(lengths).map(|((o, n), l)| [*o as u64, *n as u64, u64::from(*l)]);
            record(kind::MOVED, 0, |out| encode::moved(out, rows));
        }
    })
}

unsafe extern "system" fn moved2(
    _: This,
    count: u32,
    old: *const usize,
    new: *const usize,
    lengths: *const usize,
) -> Hr {
    guarded_or(S_OK, || {
        let (hr, flags) = second();
        if has(corprof::POLICY_V2) {
            let n = count as usize;
            // SAFETY: the runtime passes arrays of that many entries.
            let (old, new, lengths) = unsafe { (list(old, n), list(new, n), list(lengths, n)) };
            let rows = old.iter().zip(new).zip(lengths).map(|((o, n), l)| [*o as u64, *n as u64, *l as u64]);
            record(kind::MOVED2, flags, |out| encode::moved(out, rows));
        }
        hr
    })
}

unsafe extern "system" fn roots(_: This, count: u32, objects: *const usize) -> Hr {
    guarded(|| {
        if has(corprof::POLICY_ROOTS) && has(corprof::POLICY_V1) {
            // SAFETY: the runtime passes an array of that many entries.
            let objects = unsafe { list(objects, count as usize) };
            record(kind::ROOTS, 0, |out| encode::objects(out, objects.iter().map(|o| *o as u64)));
        }
    })
}

unsafe extern "system" fn roots2(
    _: This,
    count: u32,
    objects: *const usize,
    kinds: *const u32,
    flags: *const u32,
    ids: *const usize,
) -> Hr {
    guarded_or(S_OK, || {
        let (hr, failed) = second();
        if has(corprof::POLICY_ROOTS) && (has(corprof::POLICY_V2) || !has(corprof::POLICY_V1)) {
            let n = count as usize;
            // SAFETY: the runtime passes arrays of that many entries.
            let (objects, kinds, flags, ids) =
                unsafe { (list(objects, n), list(kinds, n), list(flags, n), list(ids, n)) };
            let rows = objects.iter().zip(kinds).zip(flags).zip(ids);
            let rows = rows.map(|(((o, k), f), i)| [*o as u64, u64::from(*k), u64::from(*f), *i as u64]);
            record(kind::ROOTS2, failed, |out| encode::columns(out, rows));
            const STACK: u32 = 1;
            let functions = kinds.iter().zip(ids).filter(|(kind, _)| **kind == STACK).map(|(_, id)| *id);
            names::want(std::iter::empty(), functions);
        }
        hr
    })
}

unsafe extern "system" fn object_references(
    _: This,
    object: usize,
    class: usize,
    count: u32,
    references: *const usize,
) -> Hr {
    guarded_or(S_OK, || {
        let stop = has(corprof::POLICY_STOP_WALK);
        if has(corprof::POLICY_OBJECTS) {
            // SAFETY: the runtime passes an array of that many entries, or null.
            let references = unsafe { list(references, count as usize) };
            let mut parts = references.chunks(MAX_REFERENCES).peekable();
            let mut part = parts.next().unwrap_or_default();
            loop {
                let flags = if parts.peek().is_some() { FLAG_CONTINUES } else { 0 };
                let rows = part.iter().map(|reference| *reference as u64);
                record(kind::OBJECT, flags, |out| encode::object(out, object as u64, class as u64, rows));
                if let Some(next) = parts.next() { part = next } else { break }
            }
            names::want(std::iter::once(class), std::iter::empty());
        }
        if stop { E_FAIL } else { S_OK }
    })
}

unsafe extern "system" fn weak_elements(
    _: This,
    count: u32,
    keys: *const usize,
    values: *const usize,
    handles: *const usize,
) -> Hr {
    guarded(|| {
        if has(corprof::POLICY_ROOTS) {
            let n = count as usize;
            // SAFETY: the runtime passes arrays of that many entries.
            let (keys, values, handles) = unsafe { (list(keys, n), list(values, n), list(handles, n)) };
            let rows = keys.iter().zip(values).zip(handles).map(|((k, v), h)| [*k as u64, *v as u64, *h as u64]);
            record(kind::WEAK, 0, |out| encode::columns(out, rows));
        }
    })
}

unsafe extern "system" fn allocated_by_class(_: This, count: u32, classes: *const usize, counts: *const u32) -> Hr {
    guarded(|| {
        if has(corprof::POLICY_CLASSES) {
            // SAFETY: the runtime passes arrays of that many entries.
            let (classes, counts) = unsafe { (list(classes, count as usize), list(counts, count as usize)) };
            let rows = classes.iter().zip(counts).map(|(class, count)| [*class as u64, u64::from(*count)]);
            record(kind::BY_CLASS, 0, |out| encode::columns(out, rows));
            names::want(classes.iter().copied(), std::iter::empty());
        }
    })
}

extern "system" fn object_allocated(_: This, object: usize, class: usize) -> Hr {
    guarded(|| {
        if has(corprof::POLICY_ALLOCATIONS) {
            let size = info::object_size(object);
            numbers(kind::ALLOCATED, &[object as u64, class as u64, size]);
            names::want(std::iter::once(class), std::iter::empty());
        }
    })
}

extern "system" fn finalizeable(_: This, flags: u32, object: usize) -> Hr {
    guarded(|| {
        if has(corprof::POLICY_HANDLES) {
            numbers(kind::FINALIZEABLE, &[u64::from(flags), object as u64]);
        }
    })
}

extern "system" fn handle_created(_: This, handle: usize, object: usize) -> Hr {
    guarded(|| {
        if has(corprof::POLICY_HANDLES) {
            numbers(kind::HANDLE_CREATED, &[handle as u64, object as u64]);
        }
    })
}

extern "system" fn handle_destroyed(_: This, handle: usize) -> Hr {
    guarded(|| {
        if has(corprof::POLICY_HANDLES) {
            numbers(kind::HANDLE_DESTROYED, &[handle as u64]);
        }
    })
}
