//! ICorProfilerInfo: what the runtime answers, by slot.

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::com::{Guid, Hr};
use corprof::NOT_ASKED;
use corprof::encode::BoundsSaid;

/// ICorProfilerInfo 1 to 15, in order.
const INFOS: [Guid; 15] = [
    Guid::new(0x28B5557D_3F3F_48B4_90B2_5F9EEA2F6C48),
    Guid::new(0xCC0935CD_A518_487D_B0BB_A93214E65478),
    Guid::new(0xB555ED4F_452A_4E54_8B39_B5360BAD32A0),
    Guid::new(0x0D8FDCAA_6257_47BF_B1BF_94DAC88466EE),
    Guid::new(0x07602928_CE38_4B83_81E7_74ADAF781214),
    Guid::new(0xF30A070D_BFFB_46A7_B1D8_8781EF7B698A),
    Guid::new(0x9AEECC0D_63E0_4187_8C00_E312F503F663),
    Guid::new(0xC5AC80A6_782E_4716_8044_39598C60CFBF),
    Guid::new(0x008170DB_F8CC_4796_9A51_DC8AA0B47012),
    Guid::new(0x2F1B5152_C869_40C9_AA5F_3ABE026BD720),
    Guid::new(0x06398876_8987_4154_B621_40A00D6E4D04),
    Guid::new(0x27B24CCD_1CB1_47C5_96EE_98190DC30959),
    Guid::new(0x6E6C7EE2_0701_4EC2_9D29_2E8733B66934),
    Guid::new(0xF460E352_D76D_4FE9_835F_F6AF9D6E862D),
    Guid::new(0xB446462D_BD22_41DD_872D_DC714C49EB56),
];

static INFO: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static VERSION: AtomicU32 = AtomicU32::new(0);

/// A function of a COM object.
///
/// # Safety
/// `object` is a COM object whose table has this slot, and `F` is the type of the function there.
pub unsafe fn slot<F: Copy>(object: *mut c_void, slot: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    // SAFETY: the first word of a COM object leads to its table.
    unsafe { (*object.cast::<*const usize>()).add(slot).cast::<F>().read() }
}

/// Keeps the newest interface of what the runtime passed to Initialize.
///
/// # Safety
/// `unknown` is a COM object.
pub unsafe fn adopt(unknown: *mut c_void) -> bool {
    type Query = unsafe extern "system" fn(*mut c_void, *const Guid, *mut *mut c_void) -> Hr;
    for (at, iid) in INFOS.iter().enumerate().rev() {
        let version = at as u32 + 1;
        let mut out = std::ptr::null_mut();
        // SAFETY: slot 0 of every COM object is QueryInterface.
        let hr = unsafe { slot::<Query>(unknown, 0)(unknown, iid, &mut out) };
        if hr >= 0 && !out.is_null() {
            VERSION.store(version, Ordering::Relaxed);
            INFO.store(out, Ordering::Release);
            return version >= 2;
        }
    }
    false
}

/// The newest interface that the runtime has.
pub fn version() -> u32 {
    VERSION.load(Ordering::Relaxed)
}

/// The runtime's object, once it is known and has interface `least`.
pub fn get(least: u32) -> Option<*mut c_void> {
    let info = INFO.load(Ordering::Acquire);
    (!info.is_null() && version() >= least).then_some(info)
}

/// Asks for events: SetEventMask2, or SetEventMask of runtimes that have no other.
pub fn set_masks([low, high]: [u32; 2]) -> Hr {
    type Set2 = unsafe extern "system" fn(*mut c_void, u32, u32) -> Hr;
    type Set = unsafe extern "system" fn(*mut c_void, u32) -> Hr;
    // SAFETY: slots 82 and 16 as in ICorProfilerInfo5 and ICorProfilerInfo.
    match (get(5), get(1)) {
        (Some(info), _) => unsafe { slot::<Set2>(info, 82)(info, low, high) },
        (None, Some(info)) => unsafe { slot::<Set>(info, 16)(info, low) },
        _ => crate::com::E_FAIL,
    }
}

/// The events that the runtime granted.
pub fn masks() -> [u32; 2] {
    type Get2 = unsafe extern "system" fn(*mut c_void, *mut u32, *mut u32) -> Hr;
    type Get = unsafe extern "system" fn(*mut c_void, *mut u32) -> Hr;
    let [mut low, mut high] = [0, 0];
    // SAFETY: slots 81 and 6 as in ICorProfilerInfo5 and ICorProfilerInfo.
    match (get(5), get(1)) {
        (Some(info), _) => unsafe { slot::<Get2>(info, 81)(info, &mut low, &mut high) },
        (None, Some(info)) => unsafe { slot::<Get>(info, 6)(info, &mut low) },
        _ => 0,
    };
    [low, high]
}

/// What GetRuntimeInformation says: CLR instance id, kind, version.
pub fn runtime() -> (u16, u16, String) {
    type Get = unsafe extern "system" fn(
        *mut c_void,
        *mut u16,
        *mut u32,
        *mut u16,
        *mut u16,
        *mut u16,
        *mut u16,
        u32,
        *mut u32,
        *mut u16,
    ) -> Hr;
    let Some(info) = get(3) else { return (0, 0, String::new()) };
    let (mut id, mut kind, mut parts, mut len, mut text) = (0u16, 0u32, [0u16; 4], 0u32, [0u16; 64]);
    let [major, minor, build, fix] = &mut parts;
    // SAFETY: slot 67 as in ICorProfilerInfo3; at most 64 units are written.
    unsafe {
        slot::<Get>(info, 67)(info, &mut id, &mut kind, major, minor, build, fix, 64, &mut len, text.as_mut_ptr());
    }
    let version = text.split(|unit| *unit == 0).next().unwrap_or_default();
    (id, kind as u16, String::from_utf16_lossy(version))
}

/// Calls `each` with every id that an enumeration of the runtime gives: `at` is the slot that makes it.
fn each_id(least: u32, at: usize, mut each: impl FnMut(usize)) {
    type Make = unsafe extern "system" fn(*mut c_void, *mut *mut c_void) -> Hr;
    type Next = unsafe extern "system" fn(*mut c_void, u32, *mut usize, *mut u32) -> Hr;
    type Release = unsafe extern "system" fn(*mut c_void) -> u32;
    let Some(info) = get(least) else { return };
    let mut all = std::ptr::null_mut();
    // SAFETY: the caller names a slot of this form.
    if unsafe { slot::<Make>(info, at)(info, &mut all) } < 0 || all.is_null() {
        return;
    }
    loop {
        let (mut id, mut count) = (0, 0);
        // SAFETY: slot 7 of ICorProfilerThreadEnum and ICorProfilerModuleEnum is Next; room for one id.
        unsafe { slot::<Next>(all, 7)(all, 1, &mut id, &mut count) };
        if count == 0 {
            break;
        }
        each(id);
    }
    // SAFETY: slot 2 of every COM object is Release; this reference is ours.
    unsafe { slot::<Release>(all, 2)(all) };
}

/// Calls `each` with every module that is loaded.
pub fn modules(each: impl FnMut(usize)) {
    each_id(3, 66, each);
}

/// Calls `each` with the ThreadID and the OS id of every managed thread.
pub fn threads(mut each: impl FnMut(usize, u32)) {
    type Get = unsafe extern "system" fn(*mut c_void, usize, *mut u32) -> Hr;
    each_id(4, 71, |thread| {
        let mut os_id = 0;
        // SAFETY: slot 12 of ICorProfilerInfo is GetThreadInfo.
        if get(1).is_some_and(|info| unsafe { slot::<Get>(info, 12)(info, thread, &mut os_id) } >= 0) {
            each(thread, os_id);
        }
    });
}

/// Exact size of an object; 0 unknown.
pub fn object_size(object: usize) -> u64 {
    type Get = unsafe extern "system" fn(*mut c_void, usize, *mut usize) -> Hr;
    let Some(info) = get(4) else { return 0 };
    let mut size = 0;
    // SAFETY: slot 80 as in ICorProfilerInfo4.
    let hr = unsafe { slot::<Get>(info, 80)(info, object, &mut size) };
    if hr >= 0 { size as u64 } else { 0 }
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct GenerationRange {
    generation: u32,
    start: usize,
    length: usize,
    reserved: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct NonGcRange {
    start: usize,
    length: usize,
    reserved: usize,
}

/// Calls a function that fills an array, with more room if it asks for that.
fn fill<T: Copy + Default>(room: &mut Vec<T>, info: *mut c_void, at: usize) -> (u32, usize) {
    type Get<T> = unsafe extern "system" fn(*mut c_void, u32, *mut u32, *mut T) -> Hr;
    for _ in 0..4 {
        let mut count = 0;
        // SAFETY: the slot takes the room, a place for the count and the array.
        let hr = unsafe { slot::<Get<T>>(info, at)(info, room.len() as u32, &mut count, room.as_mut_ptr()) };
        if hr < 0 {
            return (hr as u32, 0);
        }
        if count as usize <= room.len() {
            return (hr as u32, count as usize);
        }
        room.resize(count as usize + 64, T::default());
    }
    (NOT_ASKED, 0)
}

type Room = (Vec<GenerationRange>, Vec<NonGcRange>, Vec<[u64; 4]>, Vec<[u64; 3]>);

thread_local! {
    static ROOM: RefCell<Room> = RefCell::new((vec![Default::default(); 1024], vec![Default::default(); 16], vec![], vec![]));
}

/// Hands the bounds of all generations, and of the heap that is not collected, to `each`.
pub fn bounds(each: impl FnOnce(&BoundsSaid<'_>)) {
    let mut each = Some(each);
    let done = ROOM.try_with(|room| {
        let Ok(mut room) = room.try_borrow_mut() else { return };
        let (ranges, non_gc, rows, non_gc_rows) = &mut *room;
        rows.clear();
        non_gc_rows.clear();
        let mut said = BoundsSaid { hresult: NOT_ASKED, non_gc_hresult: NOT_ASKED, ..BoundsSaid::default() };
        if let Some(info) = get(2) {
            let (hresult, count) = fill(ranges, info, 54);
            said.hresult = hresult;
            let known = ranges.iter().take(count);
            rows.extend(known.map(|r| [u64::from(r.generation), r.start as u64, r.length as u64, r.reserved as u64]));
        }
        if let Some(info) = get(14) {
            let (hresult, count) = fill(non_gc, info, 112);
            said.non_gc_hresult = hresult;
            let known = non_gc.iter().take(count);
            non_gc_rows.extend(known.map(|r| [r.start as u64, r.length as u64, r.reserved as u64]));
        }
        if let Some(each) = each.take() {
            each(&BoundsSaid { rows, non_gc: non_gc_rows, ..said });
        }
    });
    if let (Ok(()) | Err(_), Some(each)) = (done, each) {
        each(&BoundsSaid { hresult: NOT_ASKED, non_gc_hresult: NOT_ASKED, ..BoundsSaid::default() });
    }
}
