//! The symbol that DuckDB calls when it loads the extension.

use std::ffi::{c_char, c_void};

use super::connection::Connection;
use super::database::Database;
use super::function::VECTOR_ROWS;
use super::guard::{c_text, guarded};
use super::slots::{self, Handle, Slots};

/// The version of the C interface whose functions are used, and the first that has a stable one.
const API_VERSION: &str = "v1.2.0";

/// `duckdb_extension_access`.
#[repr(C)]
pub struct Access {
    set_error: unsafe extern "C" fn(Handle, *const c_char),
    get_database: unsafe extern "C" fn(Handle) -> *mut Handle,
    get_api: unsafe extern "C" fn(Handle, *const c_char) -> *const c_void,
}

/// Loads the extension. DuckDB finds it by the name of the file, `tracequet.duckdb_extension`.
///
/// # Safety
///
/// DuckDB calls it with its own arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tracequet_init_c_api(info: Handle, access: *const Access) -> bool {
    // SAFETY: DuckDB hands over a struct that lives as long as this call.
    let Some(access) = (unsafe { access.as_ref() }) else { return false };
    let loaded = guarded(|| {
        let version = c_text(API_VERSION);
        // SAFETY: the text ends with a zero.
        let api = unsafe { (access.get_api)(info, version.as_ptr()) };
        if api.is_null() {
            // DuckDB has said that it has no such version.
            return Ok(false);
        }
        // SAFETY: DuckDB has at least the version that was asked for.
        let read = unsafe { Slots::read(api.cast()) }.ok_or("this DuckDB lacks functions, expected 1.2.0 or later")?;
        if !slots::keep(read) {
            return Err("another DuckDB of this process has loaded the same file, expected a copy of it".into());
        }
        let slots = slots::slots().ok_or("the functions of DuckDB are not known")?;
        // SAFETY: it takes nothing.
        if unsafe { (slots.vector_size)() } < VECTOR_ROWS as u64 {
            return Err(format!("the vectors of this DuckDB have less than {VECTOR_ROWS} rows"));
        }
        // SAFETY: DuckDB lends the database for this call.
        let database = unsafe { (access.get_database)(info).as_ref() }.ok_or("there is no database")?;
        // SAFETY: as above.
        let connection = unsafe { Connection::open(slots, *database) }.ok_or("the database cannot be connected to")?;
        crate::load(Database::new(slots, connection))?;
        Ok(true)
    });
    loaded.unwrap_or_else(|message| {
        let message = c_text(&message);
        // SAFETY: the text ends with a zero; DuckDB copies it.
        unsafe { (access.set_error)(info, message.as_ptr()) };
        false
    })
}
