//! Calls of DuckDB into the extension: a panic becomes an error there, because it may not cross the border to C++.

use std::any::Any;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs what a callback does. Fails with a message when it does, or when it panics.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    // The query ends with the panic, so that nobody sees what it left half changed.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(format!("tracequet: a bug: {}", said(&*panic))))
}

/// Frees a box that DuckDB was given. A panic ends here.
///
/// # Safety
///
/// `data` came from `Box::<T>::into_raw`, and nobody uses it any more.
pub unsafe extern "C" fn drop_box<T>(data: *mut std::ffi::c_void) {
    // SAFETY: as above. Where dropping panics there is nobody to tell.
    catch_unwind(AssertUnwindSafe(|| drop(unsafe { Box::from_raw(data.cast::<T>()) }))).ok();
}

/// A text for C. A zero byte in it would end it there.
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let failed = guarded::<()>(|| std::panic::panic_any("oh".to_owned()));
        assert_eq!(failed, Err("tracequet: a bug: oh".into()));
        assert_eq!(guarded(|| Ok(1)), Ok(1));
        assert_eq!(c_text("a\0b").to_bytes(), b"a b");
    }
}
