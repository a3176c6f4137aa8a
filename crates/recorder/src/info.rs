//! ICorProfilerInfo: what the runtime answers.

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::com::{E_FAIL, Guid, Hr, Slot, This};
use crate::slots::{GenerationRange, NonGcRange, enumeration, info as slot, unknown};
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

/// Keeps the newest interface of what the runtime passed to Initialize. False when that is older than
/// ICorProfilerInfo2.
///
/// # Safety
/// `runtime` is a COM object.
pub unsafe fn adopt(runtime: This) -> bool {
    for (at, iid) in INFOS.iter().enumerate().rev() {
        let version = at as u32 + 1;
        let mut out = std::ptr::null_mut();
        // SAFETY: the caller vouches for it.
        let hr = unsafe { unknown::QUERY_INTERFACE.entry_of(runtime)(runtime, iid, &mut out) };
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

/// The runtime's object, once it is known and has ICorProfilerInfo `least`: a slot of that interface may be called.
pub fn get(least: u32) -> Option<This> {
    let info = INFO.load(Ordering::Acquire);
    (!info.is_null() && version() >= least).then_some(info)
}

/// Asks for events: SetEventMask2, or SetEventMask of runtimes that have no other.
pub fn set_masks([low, high]: [u32; 2]) -> Hr {
    match (get(5), get(1)) {
        // SAFETY: the interface has the slot.
        (Some(info), _) => unsafe { slot::SET_EVENT_MASK2.entry_of(info)(info, low, high) },
        // SAFETY: as above.
        (None, Some(info)) => unsafe { slot::SET_EVENT_MASK.entry_of(info)(info, low) },
        _ => E_FAIL,
    }
}

/// The events that the runtime granted.
pub fn masks() -> [u32; 2] {
    let [mut low, mut high] = [0, 0];
    match (get(5), get(1)) {
        // SAFETY: the interface has the slot.
        (Some(info), _) => unsafe { slot::GET_EVENT_MASK2.entry_of(info)(info, &mut low, &mut high) },
        // SAFETY: as above.
        (None, Some(info)) => unsafe { slot::GET_EVENT_MASK.entry_of(info)(info, &mut low) },
        _ => 0,
    };
    [low, high]
}

/// The answer of GetRuntimeInformation: CLR instance id, kind, version.
pub fn runtime() -> (u16, u16, String) {
    let Some(info) = get(3) else { return (0, 0, String::new()) };
    let (mut id, mut kind, mut parts, mut len, mut text) = (0u16, 0u32, [0u16; 4], 0u32, [0u16; 64]);
    let [major, minor, build, fix] = &mut parts;
    // SAFETY: at most 64 units are written.
    unsafe {
        let get = slot::GET_RUNTIME_INFORMATION.entry_of(info);
        get(info, &mut id, &mut kind, major, minor, build, fix, 64, &mut len, text.as_mut_ptr());
    }
    let version = text.split(|unit| *unit == 0).next().unwrap_or_default();
    (id, kind as u16, String::from_utf16_lossy(version))
}

/// A slot that makes an enumeration.
type Enumerate = Slot<unsafe extern "system" fn(This, *mut This) -> Hr>;

/// Calls `each` with every id of an enumeration, which `make`, a slot of ICorProfilerInfo `least`, gives.
fn each_id(least: u32, make: &Enumerate, mut each: impl FnMut(usize)) {
    let Some(info) = get(least) else { return };
    let mut all = std::ptr::null_mut();
    // SAFETY: the interface has the slot.
    if unsafe { make.entry_of(info)(info, &mut all) } < 0 || all.is_null() {
        return;
    }
    loop {
        let (mut id, mut count) = (0, 0);
        // SAFETY: room for one id.
        unsafe { enumeration::NEXT.entry_of(all)(all, 1, &mut id, &mut count) };
        if count == 0 {
            break;
        }
        each(id);
    }
    // SAFETY: this reference is ours.
    unsafe { unknown::RELEASE.entry_of(all)(all) };
}

/// Calls `each` with every module that is loaded.
pub fn modules(each: impl FnMut(usize)) {
    each_id(3, &slot::ENUM_MODULES, each);
}

/// Calls `each` with the ThreadID and the OS id of every managed thread.
pub fn threads(mut each: impl FnMut(usize, u32)) {
    each_id(4, &slot::ENUM_THREADS, |thread| {
        let mut os_id = 0;
        // SAFETY: writes one number.
        if get(1).is_some_and(|info| unsafe { slot::GET_THREAD_INFO.entry_of(info)(info, thread, &mut os_id) } >= 0) {
            each(thread, os_id);
        }
    });
}

/// Exact size of an object; 0 unknown.
pub fn object_size(object: usize) -> u64 {
    let Some(info) = get(4) else { return 0 };
    let mut size = 0;
    // SAFETY: writes one number.
    let hr = unsafe { slot::GET_OBJECT_SIZE2.entry_of(info)(info, object, &mut size) };
    if hr >= 0 { size as u64 } else { 0 }
}

/// A slot that fills an array: room, count, array.
type Fill<T> = Slot<unsafe extern "system" fn(This, u32, *mut u32, *mut T) -> Hr>;

/// Calls a function that fills an array, with more room if it asks for that. The HRESULT, and how many there are.
fn fill<T: Copy + Default>(room: &mut Vec<T>, info: This, from: &Fill<T>) -> (u32, usize) {
    for _ in 0..4 {
        let mut count = 0;
        // SAFETY: the array has the stated length.
        let hr = unsafe { from.entry_of(info)(info, room.len() as u32, &mut count, room.as_mut_ptr()) };
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
            let (hresult, count) = fill(ranges, info, &slot::GET_GENERATION_BOUNDS);
            said.hresult = hresult;
            let known = ranges.iter().take(count);
            rows.extend(known.map(|r| [u64::from(r.generation), r.start as u64, r.length as u64, r.reserved as u64]));
        }
        if let Some(info) = get(14) {
            let (hresult, count) = fill(non_gc, info, &slot::GET_NON_GC_HEAP_BOUNDS);
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
