//! Types of columns: those of DuckDB for those of Arrow, as `read_parquet` gives them for the files of a dataset.

use std::ffi::{CString, c_char};

use arrow_schema::{DataType, TimeUnit};

use super::guard::c_text;
use super::slots::{Handle, Slots};

/// A type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// One that is a number in `duckdb.h`.
    Plain(u32),
    /// A list of items of one type.
    List(Box<Type>),
    /// Named fields.
    Struct(Vec<(String, Type)>),
}

impl Type {
    /// `VARCHAR`.
    pub const TEXT: Type = Type::Plain(17);
    /// `UBIGINT`.
    pub const NUMBER: Type = Type::Plain(9);
}

/// The type that columns of an Arrow type have in DuckDB. `None` when the extension hands over no such columns.
pub fn type_of(arrow: &DataType) -> Option<Type> {
    Some(Type::Plain(match arrow {
        DataType::Boolean => 1,
        DataType::Int8 => 2,
        DataType::Int16 => 3,
        DataType::Int32 => 4,
        DataType::Int64 => 5,
        DataType::UInt8 => 6,
        DataType::UInt16 => 7,
        DataType::UInt32 => 8,
        DataType::UInt64 => 9,
        DataType::Float32 => 10,
        DataType::Float64 => 11,
        DataType::Timestamp(TimeUnit::Microsecond, None) => 12,
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => 31,
        DataType::Utf8 => 17,
        DataType::Binary => 18,
        DataType::Dictionary(keys, values) if **keys == DataType::Int32 && **values == DataType::Utf8 => 17,
        DataType::List(item) => return Some(Type::List(Box::new(type_of(item.data_type())?))),
        DataType::Struct(fields) if !fields.is_empty() => {
            let field = |field: &arrow_schema::FieldRef| Some((field.name().clone(), type_of(field.data_type())?));
            return Some(Type::Struct(fields.iter().map(field).collect::<Option<_>>()?));
        }
        _ => return None,
    }))
}

/// A logical type of DuckDB, destroyed with this.
pub struct Logical<'s> {
    slots: &'s Slots,
    handle: Handle,
}

impl<'s> Logical<'s> {
    /// Makes the type.
    pub fn new(slots: &'s Slots, of: &Type) -> Logical<'s> {
        let handle = match of {
            // SAFETY: any number is allowed.
            Type::Plain(number) => unsafe { (slots.create_logical_type)(*number) },
            Type::List(item) => {
                let item = Logical::new(slots, item);
                // SAFETY: the handle of the item lives; DuckDB copies the type.
                unsafe { (slots.create_list_type)(item.handle) }
            }
            Type::Struct(fields) => {
                let types: Vec<Logical<'_>> = fields.iter().map(|(_, of)| Logical::new(slots, of)).collect();
                let names: Vec<CString> = fields.iter().map(|(name, _)| c_text(name)).collect();
                let mut handles: Vec<Handle> = types.iter().map(|one| one.handle).collect();
                let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
                let count = fields.len() as u64;
                // SAFETY: both arrays have `count` entries, which live until after the call; DuckDB copies them.
                unsafe { (slots.create_struct_type)(handles.as_mut_ptr(), pointers.as_mut_ptr(), count) }
            }
        };
        Logical { slots, handle }
    }

    /// The handle, as long as this lives.
    pub fn handle(&self) -> Handle {
        self.handle
    }
}

impl Drop for Logical<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is this one's, and is not used again.
        unsafe { (self.slots.destroy_logical_type)(&mut self.handle) }
    }
}
