//! The functions of DuckDB that the extension calls.

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

/// A handle of DuckDB, of whatever kind.
pub type Handle = *mut c_void;

/// Frees what DuckDB was given.
pub type Destroy = unsafe extern "C" fn(*mut c_void);

/// A callback of a table function.
pub type Callback = unsafe extern "C" fn(Handle);

/// The callback that gives rows, into a data chunk.
pub type GiveRows = unsafe extern "C" fn(Handle, Handle);

/// `duckdb_result`: three counts, three pointers.
#[repr(C)]
pub struct QueryResult([usize; 6]);

impl QueryResult {
    pub const EMPTY: QueryResult = QueryResult([0; 6]);
}

/// `duckdb_list_entry`: where the items of a list are in the vector of items.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ListEntry {
    pub offset: u64,
    pub length: u64,
}

/// Declares the table of functions: a name, its place in `duckdb_ext_api_v1`, its type.
macro_rules! slots {
    ($($name:ident = $place:literal: ($($parameter:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions, by their names without `duckdb_`.
        pub struct Slots {
            $(pub $name: unsafe extern "C" fn($($parameter),*) $(-> $result)?,)*
        }

        impl Slots {
            /// Reads the pointers of the struct that DuckDB hands out. `None` when one of them is null.
            ///
            /// # Safety
            ///
            /// `table` is a `duckdb_ext_api_v1` of DuckDB 1.2.0 or later.
            pub unsafe fn read(table: *const *const c_void) -> Option<Slots> {
                Some(Slots {
                    $($name: {
                        // SAFETY: the struct has more than 400 pointers, and the place is one of the stable ones.
                        let pointer = unsafe { *table.add($place) };
                        if pointer.is_null() {
                            return None;
                        }
                        // SAFETY: pointers to functions and to data are of one width on all systems of DuckDB, and the
                        // type is that of the header.
                        unsafe {
                            std::mem::transmute::<*const c_void, unsafe extern "C" fn($($parameter),*) $(-> $result)?>(
                                pointer,
                            )
                        }
                    },)*
                })
            }
        }
    };
}

slots! {
    connect = 3: (Handle, *mut Handle) -> u32;
    disconnect = 6: (*mut Handle);
    query = 13: (Handle, *const c_char, *mut QueryResult) -> u32;
    destroy_result = 14: (*mut QueryResult);
    result_error = 21: (*mut QueryResult) -> *const c_char;
    free = 25: (*mut c_void);
    vector_size = 26: () -> u64;
    destroy_value = 92: (*mut Handle);
    get_varchar = 142: (Handle) -> *mut c_char;
    is_null_value = 149: (Handle) -> bool;
    create_logical_type = 156: (u32) -> Handle;
    create_list_type = 159: (Handle) -> Handle;
    create_struct_type = 163: (*mut Handle, *mut *const c_char, u64) -> Handle;
    destroy_logical_type = 184: (*mut Handle);
    data_chunk_get_vector = 190: (Handle, u64) -> Handle;
    data_chunk_set_size = 192: (Handle, u64);
    vector_get_data = 194: (Handle) -> *mut c_void;
    vector_get_validity = 195: (Handle) -> *mut u64;
    vector_ensure_validity_writable = 196: (Handle);
    vector_assign_string_element_len = 198: (Handle, u64, *const c_char, u64);
    list_vector_get_child = 199: (Handle) -> Handle;
    list_vector_set_size = 201: (Handle, u64) -> u32;
    list_vector_reserve = 202: (Handle, u64) -> u32;
    struct_vector_get_child = 203: (Handle, u64) -> Handle;
    validity_set_row_invalid = 207: (*mut u64, u64);
    create_table_function = 242: () -> Handle;
    destroy_table_function = 243: (*mut Handle);
    table_function_set_name = 244: (Handle, *const c_char);
    table_function_add_parameter = 245: (Handle, Handle);
    table_function_add_named_parameter = 246: (Handle, *const c_char, Handle);
    table_function_set_extra_info = 247: (Handle, *mut c_void, Destroy);
    table_function_set_bind = 248: (Handle, Callback);
    table_function_set_init = 249: (Handle, Callback);
    table_function_set_function = 251: (Handle, GiveRows);
    table_function_supports_projection_pushdown = 252: (Handle, bool);
    register_table_function = 253: (Handle, Handle) -> u32;
    bind_get_extra_info = 254: (Handle) -> *mut c_void;
    bind_add_result_column = 255: (Handle, *const c_char, Handle);
    bind_get_parameter = 257: (Handle, u64) -> Handle;
    bind_get_named_parameter = 258: (Handle, *const c_char) -> Handle;
    bind_set_bind_data = 259: (Handle, *mut c_void, Destroy);
    bind_set_cardinality = 260: (Handle, u64, bool);
    bind_set_error = 261: (Handle, *const c_char);
    init_get_extra_info = 262: (Handle) -> *mut c_void;
    init_get_bind_data = 263: (Handle) -> *mut c_void;
    init_set_init_data = 264: (Handle, *mut c_void, Destroy);
    init_get_column_count = 265: (Handle) -> u64;
    init_get_column_index = 266: (Handle, u64) -> u64;
    init_set_max_threads = 267: (Handle, u64);
    init_set_error = 268: (Handle, *const c_char);
    function_get_init_data = 271: (Handle) -> *mut c_void;
    function_set_error = 273: (Handle, *const c_char);
}

static SLOTS: OnceLock<Slots> = OnceLock::new();

/// The functions of the DuckDB that loaded the extension. `None` before it did.
pub fn slots() -> Option<&'static Slots> {
    SLOTS.get()
}

/// Keeps the functions for all calls from now on. `false` when another DuckDB of the same process has loaded the
/// extension before.
pub fn keep(slots: Slots) -> bool {
    let same = |known: &Slots| known.connect as usize == slots.connect as usize;
    if let Some(known) = SLOTS.get() { same(known) } else { SLOTS.set(slots).is_ok() }
}
