//! A connection to the database that loaded the extension.

use std::ffi::CStr;

use super::guard::c_text;
use super::slots::{Handle, QueryResult, Slots};

/// A connection, which is closed with this. The database stays open as long as there is one.
pub struct Connection {
    slots: &'static Slots,
    handle: Handle,
}

// SAFETY: DuckDB allows a connection to be used by any thread, by one at a time.
unsafe impl Send for Connection {}

impl Connection {
    /// Connects to a database. `None` when DuckDB refuses.
    ///
    /// # Safety
    ///
    /// `database` is an open database of the DuckDB of `slots`.
    pub unsafe fn open(slots: &'static Slots, database: Handle) -> Option<Connection> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the database is open, and the place of the handle can be written.
        let state = unsafe { (slots.connect)(database, &mut handle) };
        (state == 0 && !handle.is_null()).then_some(Connection { slots, handle })
    }

    /// Runs statements. Fails with the message of the first one that fails.
    pub fn run(&self, sql: &str) -> Result<(), String> {
        let sql = c_text(sql);
        let mut result = QueryResult::EMPTY;
        // SAFETY: the connection is open, the text ends with a zero, and the result is as large as DuckDB's.
        let state = unsafe { (self.slots.query)(self.handle, sql.as_ptr(), &mut result) };
        // SAFETY: DuckDB has filled the result; its message is null or a text that lives as long as the result.
        let message = unsafe { (self.slots.result_error)(&mut result) };
        let failed = (state != 0).then(|| {
            // SAFETY: as above.
            let text = (!message.is_null()).then(|| unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned());
            text.unwrap_or_else(|| "DuckDB failed without a message".into())
        });
        // SAFETY: the result was filled once, and is not used again.
        unsafe { (self.slots.destroy_result)(&mut result) };
        failed.map_or(Ok(()), Err)
    }

    /// The handle, as long as this lives.
    pub(super) fn handle(&self) -> Handle {
        self.handle
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the handle is this one's, and is not used again.
        unsafe { (self.slots.disconnect)(&mut self.handle) }
    }
}
