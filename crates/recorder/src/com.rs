//! COM by hand: results, interface ids, and function tables whose slots are typed.

use std::ffi::c_void;
use std::marker::PhantomData;

/// An HRESULT.
pub type Hr = i32;
pub const S_OK: Hr = 0;
pub const S_FALSE: Hr = 1;
pub const E_FAIL: Hr = 0x8000_4005_u32 as i32;
pub const E_NOINTERFACE: Hr = 0x8000_4002_u32 as i32;
pub const E_POINTER: Hr = 0x8000_4003_u32 as i32;

/// A COM object: the first word at this address leads to its function table.
pub type This = *mut c_void;

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

/// A slot of a function table: its index, and the type `F` of the function there.
pub struct Slot<F>(usize, PhantomData<F>);

impl<F: Copy> Slot<F> {
    /// The slot with this index, counted from 0 (IUnknown::QueryInterface).
    pub const fn at(index: usize) -> Slot<F> {
        assert!(size_of::<F>() == size_of::<usize>());
        Slot(index, PhantomData)
    }

    /// The function of an object in this slot.
    ///
    /// # Safety
    /// `object` is a COM object whose interface has this slot with a function of this type.
    pub unsafe fn entry_of(&self, object: This) -> F {
        // SAFETY: the first word of a COM object leads to its table, which has this slot.
        unsafe { (*object.cast::<*const usize>()).add(self.0).cast::<F>().read() }
    }
}

/// The function table of an object of ours, with `N` slots.
pub struct Table<const N: usize>([usize; N]);

impl<const N: usize> Table<N> {
    /// A table whose slots all hold the same function.
    pub fn filled(function: extern "system" fn() -> Hr) -> Table<N> {
        Table([function as *const () as usize; N])
    }

    /// Puts a function into a slot.
    pub fn set<F: Copy>(&mut self, slot: &Slot<F>, function: F) {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        if let Some(place) = self.0.get_mut(slot.0) {
            // SAFETY: a function pointer is as wide as a usize.
            *place = unsafe { std::mem::transmute_copy(&function) };
        }
    }

    /// The contents of the slots.
    #[cfg(test)]
    pub fn slots(&self) -> &[usize; N] {
        &self.0
    }

    /// An object with this table and no state. It lives as long as the process.
    pub fn into_object(self) -> Object {
        Object { table: Box::leak(Box::new(self)).0.as_ptr() }
    }
}

/// A COM object without state.
#[repr(C)]
pub struct Object {
    table: *const usize,
}

// SAFETY: the pointer leads to a table that is never changed nor freed.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

impl Object {
    /// As the runtime sees it.
    pub fn this(&'static self) -> This {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}
