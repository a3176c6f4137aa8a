//! COM by hand: what the runtime loads, asks for, and calls.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::callbacks;

/// An HRESULT.
pub type Hr = i32;
pub const S_OK: Hr = 0;
pub const S_FALSE: Hr = 1;
pub const E_FAIL: Hr = 0x8000_4005_u32 as i32;
const E_NOINTERFACE: Hr = 0x8000_4002_u32 as i32;
const E_POINTER: Hr = 0x8000_4003_u32 as i32;

/// An interface id, as it lies in memory.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Guid(pub u32, pub u16, pub u16, pub [u8; 8]);

impl Guid {
    /// From the digits of its usual form.
    pub const fn new(digits: u128) -> Guid {
        Guid((digits >> 96) as u32, (digits >> 80) as u16, (digits >> 64) as u16, (digits as u64).to_be_bytes())
    }
}

const IUNKNOWN: Guid = Guid::new(0x00000000_0000_0000_C000_000000000046);
const ICLASSFACTORY: Guid = Guid::new(0x00000001_0000_0000_C000_000000000046);

/// ICorProfilerCallback 1 to 11, in order.
const CALLBACKS: [Guid; 11] = [
    Guid::new(0x176FBED1_A55C_4796_98CA_A9DA0EF883E7),
    Guid::new(0x8A8CC829_CCF2_49FE_BBAE_0F022228071A),
    Guid::new(0x4FD2ED52_7731_4B8D_9469_03D2CC3086C5),
    Guid::new(0x7B63B2E3_107D_4D48_B2F6_F61E229470D2),
    Guid::new(0x8DFBA405_8C9F_45F8_BFFA_83B14CEF78B5),
    Guid::new(0xFC13DF4B_4448_4F4F_950C_BA8D19D00C36),
    Guid::new(0xF76A2DBA_1D52_4539_866C_2AA518F9EFC3),
    Guid::new(0x5BED9B15_C079_4D47_BFE2_215A140C07E0),
    Guid::new(0x27583EC3_C8F5_482F_8052_194B8CE4705A),
    Guid::new(0xCEC5B60E_C69C_495F_87F6_84D28EE16FFB),
    Guid::new(0x42350846_AAED_47F7_B128_FD0C98881CDE),
];

/// Slots of ICorProfilerCallback11, IUnknown's among them.
pub const SLOTS: usize = 98;

/// The newest callback interface that was asked for and answered.
pub static GRANTED: AtomicU32 = AtomicU32::new(0);

/// A COM object without state: all of it is in statics.
#[repr(C)]
struct Object {
    vtable: *const usize,
}

// SAFETY: the pointer leads to a table that is never changed nor freed.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

fn profiler() -> *mut c_void {
    static PROFILER: OnceLock<Object> = OnceLock::new();
    let object = PROFILER.get_or_init(|| Object { vtable: Box::leak(Box::new(callbacks::table())).as_ptr() });
    std::ptr::from_ref(object).cast_mut().cast()
}

fn factory() -> *mut c_void {
    static FACTORY: OnceLock<Object> = OnceLock::new();
    let table = [
        factory_query as *const () as usize,
        add_ref as *const () as usize,
        release as *const () as usize,
        create_instance as *const () as usize,
        lock_server as *const () as usize,
    ];
    let object = FACTORY.get_or_init(|| Object { vtable: Box::leak(Box::new(table)).as_ptr() });
    std::ptr::from_ref(object).cast_mut().cast()
}

/// Objects live as long as the process.
pub extern "system" fn add_ref(_: *mut c_void) -> u32 {
    2
}

/// See [`add_ref`].
pub extern "system" fn release(_: *mut c_void) -> u32 {
    1
}

/// Hands out an object.
///
/// # Safety
/// `out` is null or may be written to.
unsafe fn give(out: *mut *mut c_void, object: Option<*mut c_void>) -> Hr {
    if out.is_null() {
        return E_POINTER;
    }
    // SAFETY: not null; the caller vouches for the rest.
    unsafe { out.write(object.unwrap_or(std::ptr::null_mut())) };
    if object.is_some() { S_OK } else { E_NOINTERFACE }
}

/// IUnknown::QueryInterface of the profiler.
pub unsafe extern "system" fn query(_: *mut c_void, iid: *const Guid, out: *mut *mut c_void) -> Hr {
    if iid.is_null() {
        return E_POINTER;
    }
    // SAFETY: the runtime passes an interface id.
    let iid = unsafe { *iid };
    let version = CALLBACKS.iter().position(|known| *known == iid).map(|at| at as u32 + 1);
    let granted = version.filter(|v| *v <= crate::settings::get().interface);
    if let Some(version) = granted {
        GRANTED.fetch_max(version, Ordering::Relaxed);
    }
    // SAFETY: `out` is the runtime's.
    unsafe { give(out, (granted.is_some() || iid == IUNKNOWN).then(profiler)) }
}

unsafe extern "system" fn factory_query(_: *mut c_void, iid: *const Guid, out: *mut *mut c_void) -> Hr {
    // SAFETY: the runtime passes an interface id, or null.
    let known = !iid.is_null() && matches!(unsafe { *iid }, IUNKNOWN | ICLASSFACTORY);
    // SAFETY: `out` is the runtime's.
    unsafe { give(out, known.then(factory)) }
}

unsafe extern "system" fn create_instance(
    this: *mut c_void,
    _outer: *mut c_void,
    iid: *const Guid,
    out: *mut *mut c_void,
) -> Hr {
    // SAFETY: the arguments are the runtime's, passed on.
    unsafe { query(this, iid, out) }
}

extern "system" fn lock_server(_: *mut c_void, _: i32) -> Hr {
    S_OK
}

/// What the runtime calls first: any class id is ours.
///
/// # Safety
/// As COM demands: `iid` is an interface id, `out` a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn DllGetClassObject(_: *const Guid, iid: *const Guid, out: *mut *mut c_void) -> Hr {
    // SAFETY: the arguments are the runtime's, passed on.
    unsafe { factory_query(std::ptr::null_mut(), iid, out) }
}

/// Never: the recording goes on until the process ends.
#[unsafe(no_mangle)]
pub extern "system" fn DllCanUnloadNow() -> Hr {
    S_FALSE
}
