//! The boundary to the runtime: a panic that left a callback would abort the program that is recorded.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::com::{Hr, S_OK};
use crate::log;

#[cfg(panic = "abort")]
compile_error!("a panic must not end the recorded program: build the recorder with panic = \"unwind\"");

/// Runs the body of a callback, which succeeds. After a panic the recording ends there.
pub fn guarded(body: impl FnOnce()) -> Hr {
    guarded_or((), body);
    S_OK
}

/// Runs the body, with another answer after a panic.
pub fn guarded_or<R>(otherwise: R, body: impl FnOnce() -> R) -> R {
    let body = AssertUnwindSafe(|| {
        #[cfg(test)]
        tests::panic_if_asked();
        body()
    });
    catch_unwind(body).unwrap_or_else(|panic| {
        failed(panic);
        otherwise
    })
}

/// Writes the panic down and ends the recording: what the panic left behind is not to be trusted.
#[cold]
fn failed(panic: Box<dyn Any + Send>) {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    // The value that was thrown may panic again when it is dropped.
    std::mem::forget(panic);
    let logged = catch_unwind(|| log::fail(&format!("the recorder failed and stopped: {text}")));
    std::mem::forget(logged);
}

#[cfg(test)]
pub mod tests {
    use std::cell::Cell;

    thread_local! {
        static ASKED: Cell<bool> = const { Cell::new(false) };
        static PANICS: Cell<u32> = const { Cell::new(0) };
    }

    pub fn panic_if_asked() {
        if ASKED.get() {
            PANICS.set(PANICS.get() + 1);
            panic!("a fault that a test asked for");
        }
    }

    /// Runs `body` while every guarded function of this thread panics; how many did.
    pub fn panics_within(body: impl FnOnce()) -> u32 {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        PANICS.set(0);
        ASKED.set(true);
        body();
        ASKED.set(false);
        std::panic::set_hook(hook);
        PANICS.get()
    }
}
