//! The COM object that the runtime calls, and what it finds in the library to get it.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use crate::com::{E_NOINTERFACE, E_POINTER, Guid, Hr, Object, S_FALSE, S_OK, Table, This};
use crate::guard::guarded_or;
use crate::slots::{callback, class_factory, unknown};
use crate::{callbacks, settings};

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

/// One function for all slots, also where a crate is optimised: a copy in each codegen unit would have another address.
#[inline(never)]
extern "system" fn nothing() -> Hr {
    S_OK
}

/// The profiler's table: what is not recorded does nothing.
fn profiler_table() -> Table<{ callback::COUNT }> {
    let mut table = Table::filled(nothing);
    table.set(&unknown::QUERY_INTERFACE, query_interface);
    table.set(&unknown::ADD_REF, add_ref);
    table.set(&unknown::RELEASE, release);
    callbacks::fill(&mut table);
    table
}

fn factory_table() -> Table<{ class_factory::COUNT }> {
    let mut table = Table::filled(nothing);
    table.set(&unknown::QUERY_INTERFACE, factory_query_interface);
    table.set(&unknown::ADD_REF, add_ref);
    table.set(&unknown::RELEASE, release);
    table.set(&class_factory::CREATE_INSTANCE, create_instance);
    table.set(&class_factory::LOCK_SERVER, lock_server);
    table
}

fn profiler() -> This {
    static PROFILER: OnceLock<Object> = OnceLock::new();
    PROFILER.get_or_init(|| profiler_table().into_object()).this()
}

fn factory() -> This {
    static FACTORY: OnceLock<Object> = OnceLock::new();
    FACTORY.get_or_init(|| factory_table().into_object()).this()
}

/// Objects live as long as the process.
#[inline(never)]
extern "system" fn add_ref(_: This) -> u32 {
    2
}

/// See [`add_ref`].
#[inline(never)]
extern "system" fn release(_: This) -> u32 {
    1
}

/// Hands out an object.
///
/// # Safety
/// `out` is null or may be written to.
unsafe fn give(out: *mut *mut c_void, object: Option<This>) -> Hr {
    if out.is_null() {
        return E_POINTER;
    }
    // SAFETY: not null; the caller vouches for the rest.
    unsafe { out.write(object.unwrap_or(std::ptr::null_mut())) };
    if object.is_some() { S_OK } else { E_NOINTERFACE }
}

/// IUnknown::QueryInterface of the profiler.
unsafe extern "system" fn query_interface(_: This, iid: *const Guid, out: *mut *mut c_void) -> Hr {
    guarded_or(E_NOINTERFACE, || {
        if iid.is_null() {
            return E_POINTER;
        }
        // SAFETY: the runtime passes an interface id.
        let iid = unsafe { *iid };
        let version = CALLBACKS.iter().position(|known| *known == iid).map(|at| at as u32 + 1);
        let granted = version.filter(|v| *v <= settings::of_environment().interface);
        if let Some(version) = granted {
            callbacks::GRANTED.fetch_max(version, Ordering::Relaxed);
        }
        // SAFETY: `out` is the runtime's.
        unsafe { give(out, (granted.is_some() || iid == IUNKNOWN).then(profiler)) }
    })
}

unsafe extern "system" fn factory_query_interface(_: This, iid: *const Guid, out: *mut *mut c_void) -> Hr {
    guarded_or(E_NOINTERFACE, || {
        // SAFETY: the runtime passes an interface id, or null.
        let known = !iid.is_null() && matches!(unsafe { *iid }, IUNKNOWN | ICLASSFACTORY);
        // SAFETY: `out` is the runtime's.
        unsafe { give(out, known.then(factory)) }
    })
}

unsafe extern "system" fn create_instance(this: This, _outer: This, iid: *const Guid, out: *mut *mut c_void) -> Hr {
    // SAFETY: the arguments are the runtime's, passed on.
    unsafe { query_interface(this, iid, out) }
}

extern "system" fn lock_server(_: This, _: i32) -> Hr {
    S_OK
}

/// The first function that the runtime calls: any class id is ours.
///
/// # Safety
/// As COM demands: `iid` is an interface id, `out` a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn DllGetClassObject(_: *const Guid, iid: *const Guid, out: *mut *mut c_void) -> Hr {
    // SAFETY: the arguments are the runtime's, passed on.
    unsafe { factory_query_interface(std::ptr::null_mut(), iid, out) }
}

/// Never: the recording continues until the process ends.
#[unsafe(no_mangle)]
pub extern "system" fn DllCanUnloadNow() -> Hr {
    S_FALSE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alone::alone;
    use crate::com::E_FAIL;
    use crate::guard::tests::panics_within;

    type Any = unsafe extern "system" fn(usize, usize, usize, usize, usize, usize) -> Hr;

    /// Every slot that does something more than to answer is called while its body panics: the test process lives on.
    #[test]
    fn a_panic_leaves_no_slot() {
        alone("profiler::tests::every_slot_while_it_panics");
    }

    #[test]
    #[ignore = "run by the test above"]
    fn every_slot_while_it_panics() {
        let table = profiler_table();
        let unguarded = [nothing as *const () as usize, add_ref as *const () as usize, release as *const () as usize];
        let slots: Vec<usize> = table.slots().iter().copied().filter(|slot| !unguarded.contains(slot)).collect();
        assert!(slots.len() >= 35, "{} slots", slots.len());
        for (at, slot) in slots.iter().enumerate() {
            // SAFETY: the caller cleans the stack on these systems, so that surplus arguments do no harm; the body,
            // which would use them, is not reached.
            let function: Any = unsafe { std::mem::transmute(*slot) };
            let panics = panics_within(|| {
                let hr = unsafe { function(0, 0, 0, 0, 0, 0) };
                assert!(matches!(hr, S_OK | E_FAIL | E_NOINTERFACE), "slot {at}: {hr:#x}");
            });
            assert_eq!(panics, 1, "slot {at} is not guarded");
        }
        let mut out = std::ptr::null_mut();
        let panics = panics_within(|| {
            // SAFETY: a place for a pointer; the id is null.
            assert_eq!(unsafe { DllGetClassObject(std::ptr::null(), std::ptr::null(), &mut out) }, E_NOINTERFACE);
        });
        assert_eq!((panics, out.is_null()), (1, true));
    }
}
