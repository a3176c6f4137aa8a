//! Table functions: what DuckDB calls to bind, to begin and to go on with a scan.

use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

use arrow_array::RecordBatch;

use super::guard::{c_text, drop_box, guarded};
use super::slots::{Handle, Slots, slots};
use super::types::{Logical, Type, type_of};
use super::vector;

/// Rows that DuckDB takes at a time.
pub const VECTOR_ROWS: usize = 2048;

/// The columns of a result: their names and types.
pub type Columns = Vec<(String, Type)>;

/// A table function. Its parameters are texts.
pub trait TableFunction: Send + Sync + 'static {
    /// A call in a statement: its input, found and opened.
    type Bound: Send + Sync + 'static;

    /// The name in SQL.
    const NAME: &'static str;
    /// The number of parameters that must be given.
    const PARAMETERS: u64;
    /// The names of parameters that may be left out.
    const OPTIONS: &'static [&'static str];

    /// Looks at the arguments. Gives the columns of the result, and how many rows it has if that is known.
    fn bind(&self, asked: &Asked) -> Result<(Self::Bound, Columns, Option<u64>), String>;

    /// Begins to read these columns, by their places.
    fn scan(&self, bound: &Self::Bound, columns: &[usize]) -> Result<Box<dyn Rows>, String>;
}

/// The rows of a scan.
pub trait Rows: Send {
    /// More rows, with the columns that were asked for in that order. `None` at the end.
    fn next(&mut self) -> Result<Option<RecordBatch>, String>;
}

/// The arguments of a call.
#[derive(Debug)]
pub struct Asked {
    parameters: Vec<String>,
    options: Vec<Option<String>>,
}

impl Asked {
    /// The parameter at a place. Empty when there is none.
    pub fn parameter(&self, place: usize) -> &str {
        self.parameters.get(place).map_or("", String::as_str)
    }

    /// The option at a place of [`TableFunction::OPTIONS`].
    pub fn option(&self, place: usize) -> Option<&str> {
        self.options.get(place)?.as_deref()
    }
}

/// A call, which DuckDB keeps until its statement ends.
struct Call<B> {
    bound: B,
    columns: Columns,
}

/// A scan, which DuckDB keeps until it has all rows.
struct Scan {
    rows: Box<dyn Rows>,
    /// The type of each column that DuckDB wants. `None` for one that the table does not have, such as `rowid`.
    wanted: Vec<Option<Type>>,
    /// Rows that DuckDB did not take yet.
    rest: Option<RecordBatch>,
}

/// Adds a table function to a database.
pub fn register<F: TableFunction>(slots: &Slots, connection: Handle, function: F) -> Result<(), String> {
    let name = c_text(F::NAME);
    let text = Logical::new(slots, &Type::TEXT);
    // SAFETY: the handle of the function is made here and destroyed here; DuckDB copies names and types, takes the box,
    // and calls the callbacks as they are declared. `drop_box` is of the type of the box.
    let state = unsafe {
        let mut made = (slots.create_table_function)();
        (slots.table_function_set_name)(made, name.as_ptr());
        for _ in 0..F::PARAMETERS {
            (slots.table_function_add_parameter)(made, text.handle());
        }
        for option in F::OPTIONS {
            (slots.table_function_add_named_parameter)(made, c_text(option).as_ptr(), text.handle());
        }
        (slots.table_function_set_extra_info)(made, Box::into_raw(Box::new(function)).cast(), drop_box::<F>);
        (slots.table_function_set_bind)(made, bind::<F>);
        (slots.table_function_set_init)(made, init::<F>);
        (slots.table_function_set_function)(made, go_on);
        (slots.table_function_supports_projection_pushdown)(made, true);
        let state = (slots.register_table_function)(connection, made);
        (slots.destroy_table_function)(&mut made);
        state
    };
    if state == 0 { Ok(()) } else { Err(format!("the function {} cannot be added", F::NAME)) }
}

/// `duckdb_table_function_bind_t`.
unsafe extern "C" fn bind<F: TableFunction>(info: Handle) {
    let Some(slots) = slots() else { return };
    let done = guarded(|| {
        // SAFETY: DuckDB gives back the box that `register` gave it, which lives as long as the function.
        let function = unsafe { (slots.bind_get_extra_info)(info).cast::<F>().as_ref() }.ok_or("no function")?;
        // SAFETY: `info` is that of this call, which has as many parameters; a name ends with a zero. The value is
        // ours.
        let parameter = |place| Value(slots, unsafe { (slots.bind_get_parameter)(info, place) }).text();
        // SAFETY: as above.
        let option =
            |name: &&str| Value(slots, unsafe { (slots.bind_get_named_parameter)(info, c_text(name).as_ptr()) }).text();
        let parameters = (0..F::PARAMETERS).map(parameter).collect::<Option<_>>();
        let parameters = parameters.ok_or_else(|| format!("{}: a parameter is NULL", F::NAME))?;
        let asked = Asked { parameters, options: F::OPTIONS.iter().map(option).collect() };
        let (bound, columns, rows) = function.bind(&asked)?;
        for (name, of) in &columns {
            let of = Logical::new(slots, of);
            // SAFETY: name and type live until after the call; DuckDB copies them.
            unsafe { (slots.bind_add_result_column)(info, c_text(name).as_ptr(), of.handle()) };
        }
        if let Some(rows) = rows {
            // SAFETY: `info` is that of this call.
            unsafe { (slots.bind_set_cardinality)(info, rows, true) };
        }
        let call = Box::new(Call { bound, columns });
        // SAFETY: DuckDB takes the box; `drop_box` is of its type.
        unsafe { (slots.bind_set_bind_data)(info, Box::into_raw(call).cast(), drop_box::<Call<F::Bound>>) };
        Ok(())
    });
    if let Err(message) = done {
        // SAFETY: the text ends with a zero; DuckDB copies it.
        unsafe { (slots.bind_set_error)(info, c_text(&message).as_ptr()) };
    }
}

/// `duckdb_table_function_init_t`.
unsafe extern "C" fn init<F: TableFunction>(info: Handle) {
    let Some(slots) = slots() else { return };
    let done = guarded(|| {
        // SAFETY: DuckDB gives back the box that `register` gave it, which lives as long as the function.
        let function = unsafe { (slots.init_get_extra_info)(info).cast::<F>().as_ref() }.ok_or("no function")?;
        // SAFETY: DuckDB gives back the box that `bind` gave it, which lives as long as the statement. Threads may
        // share it.
        let call = unsafe { (slots.init_get_bind_data)(info).cast::<Call<F::Bound>>().as_ref() }.ok_or("no call")?;
        // SAFETY: `info` is that of this call.
        let count = unsafe { (slots.init_get_column_count)(info) };
        let mut places = Vec::new();
        let mut wanted = Vec::new();
        for column in 0..count {
            // SAFETY: as above, and the column is one of those that DuckDB counts.
            let place = usize::try_from(unsafe { (slots.init_get_column_index)(info, column) }).unwrap_or(usize::MAX);
            let of = call.columns.get(place).map(|(_, of)| of.clone());
            places.extend(of.is_some().then_some(place));
            wanted.push(of);
        }
        let rows = function.scan(&call.bound, &places)?;
        let scan = Box::new(Mutex::new(Scan { rows, wanted, rest: None }));
        // SAFETY: DuckDB takes the box; `drop_box` is of its type. One thread at a time keeps the rows in order.
        unsafe {
            (slots.init_set_max_threads)(info, 1);
            (slots.init_set_init_data)(info, Box::into_raw(scan).cast(), drop_box::<Mutex<Scan>>);
        }
        Ok(())
    });
    if let Err(message) = done {
        // SAFETY: the text ends with a zero; DuckDB copies it.
        unsafe { (slots.init_set_error)(info, c_text(&message).as_ptr()) };
    }
}

/// `duckdb_table_function_t`.
unsafe extern "C" fn go_on(info: Handle, chunk: Handle) {
    let Some(slots) = slots() else { return };
    let done = guarded(|| {
        // SAFETY: DuckDB gives back the box that `init` gave it, which lives as long as the scan. Threads may share it.
        let scan = unsafe { (slots.function_get_init_data)(info).cast::<Mutex<Scan>>().as_ref() }.ok_or("no scan")?;
        let mut scan = scan.lock().unwrap_or_else(PoisonError::into_inner);
        let batch = scan.take()?;
        let rows = batch.as_ref().map_or(0, RecordBatch::num_rows);
        if let Some(batch) = batch {
            let mut columns = batch.columns().iter();
            for (place, wanted) in (0u64..).zip(&scan.wanted) {
                // SAFETY: the chunk has a vector for each column that DuckDB wants, with room for `VECTOR_ROWS` rows.
                let vector = unsafe { (slots.data_chunk_get_vector)(chunk, place) };
                let Some(of) = wanted else {
                    // SAFETY: the vector has room for these rows.
                    unsafe { vector::write_nulls(slots, vector, rows) };
                    continue;
                };
                let column = columns.next().ok_or("a column is missing")?;
                if type_of(column.data_type()).as_ref() != Some(of) {
                    return Err(format!("a column is {} among others of another type", column.data_type()));
                }
                // SAFETY: the vector has the type of the column, which was compared, and room for its rows.
                unsafe { vector::write(slots, vector, column.as_ref(), None)? };
            }
        }
        // SAFETY: all vectors of the chunk have this many rows.
        unsafe { (slots.data_chunk_set_size)(chunk, rows as u64) };
        Ok(())
    });
    if let Err(message) = done {
        // SAFETY: the text ends with a zero; DuckDB copies it.
        unsafe { (slots.function_set_error)(info, c_text(&message).as_ptr()) };
    }
}

impl Scan {
    /// At least one row and at most [`VECTOR_ROWS`]. `None` at the end.
    fn take(&mut self) -> Result<Option<RecordBatch>, String> {
        loop {
            let Some(batch) = self.rest.take() else {
                self.rest = self.rows.next()?;
                if self.rest.is_none() {
                    return Ok(None);
                }
                continue;
            };
            let rows = batch.num_rows();
            if rows > VECTOR_ROWS {
                self.rest = Some(batch.slice(VECTOR_ROWS, rows - VECTOR_ROWS));
                return Ok(Some(batch.slice(0, VECTOR_ROWS)));
            }
            if rows > 0 {
                return Ok(Some(batch));
            }
        }
    }
}

/// A value of DuckDB, destroyed with this.
struct Value<'s>(&'s Slots, Handle);

impl Drop for Value<'_> {
    fn drop(&mut self) {
        if !self.1.is_null() {
            // SAFETY: the handle is this one's, and is not used again.
            unsafe { (self.0.destroy_value)(&mut self.1) }
        }
    }
}

impl Value<'_> {
    /// The text of it. `None` when it is null or was not given.
    fn text(&self) -> Option<String> {
        let Value(slots, value) = self;
        // SAFETY: the value lives; DuckDB makes a text of any value that is not null, which ends with a zero and is
        // freed once.
        unsafe {
            if value.is_null() || (slots.is_null_value)(*value) {
                return None;
            }
            let text = (slots.get_varchar)(*value);
            if text.is_null() {
                return None;
            }
            let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
            (slots.free)(text.cast());
            Some(copy)
        }
    }
}
