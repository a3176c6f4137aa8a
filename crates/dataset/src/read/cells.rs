//! The values of one column of a batch, with the type that the schema gives the column.

use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrowPrimitiveType, BooleanArray, ListArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

/// The values of one column of a batch.
pub trait Cells<'b>: Sized {
    /// A value.
    type Value;

    /// `None` when the array has another type.
    fn of(array: &'b dyn Array) -> Option<Self>;

    /// The value of a row, which the batch has.
    fn at(&self, row: usize) -> Self::Value;

    /// Whether nulls are values of the column.
    const IS_NULLABLE: bool = false;
}

/// A column of a table, as `schemas/tables` has it.
pub trait TypedColumn {
    /// Name of the column.
    const NAME: &'static str;
    /// The values of the column in a batch.
    type Cells<'b>: Cells<'b>;
}

/// Numbers of one width.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'b, P: ArrowPrimitiveType>(&'b PrimitiveArray<P>);

impl<'b, P: ArrowPrimitiveType> Cells<'b> for Numbers<'b, P> {
    type Value = P::Native;

    fn of(array: &'b dyn Array) -> Option<Self> {
        array.as_primitive_opt().map(Numbers)
    }

    #[inline]
    fn at(&self, row: usize) -> P::Native {
        self.0.value(row)
    }
}

/// Unsigned numbers of 64 bits, which a dataset may have as signed ones of the same bits (`--address-type int64`).
#[derive(Clone, Copy, Debug)]
pub enum U64s<'b> {
    /// As the schema has them.
    Unsigned(&'b PrimitiveArray<UInt64Type>),
    /// As bits.
    Signed(&'b PrimitiveArray<Int64Type>),
}

impl<'b> Cells<'b> for U64s<'b> {
    type Value = u64;

    fn of(array: &'b dyn Array) -> Option<Self> {
        array.as_primitive_opt().map(U64s::Unsigned).or_else(|| array.as_primitive_opt().map(U64s::Signed))
    }

    #[inline]
    fn at(&self, row: usize) -> u64 {
        match self {
            U64s::Unsigned(array) => array.value(row),
            U64s::Signed(array) => array.value(row).cast_unsigned(),
        }
    }
}

/// Truth values.
#[derive(Clone, Copy, Debug)]
pub struct Bools<'b>(&'b BooleanArray);

impl<'b> Cells<'b> for Bools<'b> {
    type Value = bool;

    fn of(array: &'b dyn Array) -> Option<Self> {
        array.as_boolean_opt().map(Bools)
    }

    #[inline]
    fn at(&self, row: usize) -> bool {
        self.0.value(row)
    }
}

/// Text, plain or from a dictionary.
#[derive(Clone, Copy, Debug)]
pub enum Texts<'b> {
    /// A text for each row.
    Plain(&'b StringArray),
    /// Keys and words.
    Dictionary(&'b PrimitiveArray<Int32Type>, &'b StringArray),
}

impl<'b> Cells<'b> for Texts<'b> {
    type Value = &'b str;

    fn of(array: &'b dyn Array) -> Option<Self> {
        if let Some(array) = array.as_string_opt() {
            return Some(Texts::Plain(array));
        }
        let dictionary = array.as_dictionary_opt::<Int32Type>()?;
        Some(Texts::Dictionary(dictionary.keys(), dictionary.values().as_string_opt()?))
    }

    #[inline]
    fn at(&self, row: usize) -> &'b str {
        match self {
            Texts::Plain(array) => array.value(row),
            Texts::Dictionary(keys, words) => {
                let key = usize::try_from(keys.value(row)).ok().filter(|key| *key < words.len());
                key.map_or("", |key| words.value(key))
            }
        }
    }
}

/// Lists of unsigned numbers.
#[derive(Clone, Copy, Debug)]
pub struct U64Lists<'b>(&'b ListArray, U64s<'b>);

impl<'b> Cells<'b> for U64Lists<'b> {
    type Value = Vec<u64>;

    fn of(array: &'b dyn Array) -> Option<Self> {
        let lists = array.as_list_opt()?;
        Some(U64Lists(lists, U64s::of(lists.values().as_ref())?))
    }

    fn at(&self, row: usize) -> Vec<u64> {
        let offsets = self.0.value_offsets();
        let bound = |at: usize| offsets.get(at).and_then(|offset| usize::try_from(*offset).ok()).unwrap_or_default();
        (bound(row)..bound(row.saturating_add(1))).map(|at| self.1.at(at)).collect()
    }
}

/// Values that may be missing.
#[derive(Clone, Copy, Debug)]
pub struct Nullable<'b, C> {
    nulls: Option<&'b NullBuffer>,
    cells: C,
}

impl<'b, C: Cells<'b>> Cells<'b> for Nullable<'b, C> {
    type Value = Option<C::Value>;
    const IS_NULLABLE: bool = true;

    fn of(array: &'b dyn Array) -> Option<Self> {
        Some(Nullable { nulls: array.nulls(), cells: C::of(array)? })
    }

    #[inline]
    fn at(&self, row: usize) -> Option<C::Value> {
        self.nulls.is_none_or(|nulls| nulls.is_valid(row)).then(|| self.cells.at(row))
    }
}

/// A column of a batch of a table. Fails when the batch has none of the name, one of another type, or nulls where the
/// schema has none.
pub fn cells<'b, C: Cells<'b>>(batch: &'b RecordBatch, table: &str, name: &str) -> Result<C> {
    let missing = |found: String, expected: &str| Error::MissingColumn {
        column: format!("{name} of {table}"),
        found,
        expected: expected.to_owned(),
    };
    let array = batch.column_by_name(name).ok_or_else(|| missing("not there".into(), "it in the batch"))?;
    if !C::IS_NULLABLE && array.null_count() > 0 {
        return Err(missing(format!("{} nulls", array.null_count()), "a value in each row"));
    }
    C::of(array).ok_or_else(|| missing(format!("of type {}", type_name(array.data_type())), "the type of the schema"))
}

/// A type as a person reads it; of nested ones the outermost.
fn type_name(data_type: &DataType) -> String {
    data_type.to_string().chars().take(60).collect()
}
