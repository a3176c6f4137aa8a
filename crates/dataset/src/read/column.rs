//! One column of a batch, row by row, whatever width its numbers have and however its text is encoded.

use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, BooleanArray, PrimitiveArray, RecordBatch, StringArray};
use arrow_schema::{DataType, TimeUnit};

/// A column of numbers, truth values or text. For all types of Arrow, use the batch itself.
#[derive(Clone, Copy, Debug)]
pub struct Column<'b>(Kind<'b>);

#[derive(Clone, Copy, Debug)]
enum Kind<'b> {
    U8(&'b PrimitiveArray<UInt8Type>),
    U16(&'b PrimitiveArray<UInt16Type>),
    U32(&'b PrimitiveArray<UInt32Type>),
    U64(&'b PrimitiveArray<UInt64Type>),
    I64(&'b PrimitiveArray<Int64Type>),
    F64(&'b PrimitiveArray<Float64Type>),
    Time(&'b PrimitiveArray<TimestampMicrosecondType>),
    Bool(&'b BooleanArray),
    Text(&'b StringArray),
    /// Keys and values of a dictionary.
    Label(&'b PrimitiveArray<Int32Type>, &'b StringArray),
}

impl<'b> Column<'b> {
    /// The column with this name. Fails when the batch has none, or one of another type.
    pub fn of(batch: &'b RecordBatch, name: &str) -> Result<Column<'b>> {
        let missing = |found: String, expected: &str| Error::MissingColumn {
            column: name.to_owned(),
            found,
            expected: expected.to_owned(),
        };
        let array = batch.column_by_name(name).ok_or_else(|| missing("not there".into(), "it in the batch"))?;
        let kind = match array.data_type() {
            DataType::UInt8 => Kind::U8(array.as_primitive()),
            DataType::UInt16 => Kind::U16(array.as_primitive()),
            DataType::UInt32 => Kind::U32(array.as_primitive()),
            DataType::UInt64 => Kind::U64(array.as_primitive()),
            DataType::Int64 => Kind::I64(array.as_primitive()),
            DataType::Float64 => Kind::F64(array.as_primitive()),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Kind::Time(array.as_primitive()),
            DataType::Boolean => Kind::Bool(array.as_boolean()),
            DataType::Utf8 => Kind::Text(array.as_string()),
            other => {
                let dictionary = array.as_dictionary_opt::<Int32Type>();
                let parts = dictionary.and_then(|labels| Some((labels.keys(), labels.values().as_string_opt()?)));
                let no_type = || missing(format!("of type {other}"), "numbers or text");
                parts.map(|(keys, values)| Kind::Label(keys, values)).ok_or_else(no_type)?
            }
        };
        Ok(Column(kind))
    }

    /// A whole number; of a truth value 0 or 1, of a signed one its bits (`--address-type int64`). `None` when it is
    /// null, or the column is text or has fractions.
    #[inline]
    pub fn number(&self, row: usize) -> Option<u64> {
        match self.0 {
            Kind::U8(array) => at(array, row).map(u64::from),
            Kind::U16(array) => at(array, row).map(u64::from),
            Kind::U32(array) => at(array, row).map(u64::from),
            Kind::U64(array) => at(array, row),
            Kind::I64(array) => at(array, row).map(|n| n as u64),
            Kind::Time(array) => at(array, row).map(|n| n as u64),
            Kind::Bool(array) => (row < array.len() && array.is_valid(row)).then(|| u64::from(array.value(row))),
            Kind::F64(_) | Kind::Text(_) | Kind::Label(..) => None,
        }
    }

    /// A number of any kind, signed ones with their sign. `None` when it is null, or the column is text.
    #[inline]
    pub fn real(&self, row: usize) -> Option<f64> {
        match self.0 {
            Kind::F64(array) => at(array, row),
            Kind::U64(array) => at(array, row).map(|n| n as f64),
            // Signed columns come as their bits.
            _ => self.number(row).map(|bits| bits as i64 as f64),
        }
    }

    /// All values at once, of a column of 64-bit numbers without nulls; of signed ones their bits
    /// (`--address-type int64`).
    pub fn u64s(&self) -> Option<&'b [u64]> {
        match self.0 {
            Kind::U64(array) if array.null_count() == 0 => Some(array.values()),
            Kind::I64(array) if array.null_count() == 0 => Some(array.values().inner().typed_data()),
            _ => None,
        }
    }

    /// The keys of the rows and the words that they stand for, of a column with a dictionary.
    pub fn words(&self) -> Option<(&'b PrimitiveArray<Int32Type>, &'b StringArray)> {
        if let Kind::Label(keys, words) = self.0 { Some((keys, words)) } else { None }
    }

    /// Whether a row may have this text: `false` when the dictionary of the batch lacks it.
    pub fn may_have(&self, text: &str) -> bool {
        match self.0 {
            Kind::Label(_, values) => values.iter().any(|value| value == Some(text)),
            Kind::Text(_) => true,
            _ => false,
        }
    }

    /// A text, plain or from a dictionary. `None` when it is null, or the column is no text.
    #[inline]
    pub fn text(&self, row: usize) -> Option<&'b str> {
        let at =
            |array: &'b StringArray, row: usize| (row < array.len() && array.is_valid(row)).then(|| array.value(row));
        match self.0 {
            Kind::Text(array) => at(array, row),
            Kind::Label(keys, values) if row < keys.len() && keys.is_valid(row) => {
                usize::try_from(keys.value(row)).ok().and_then(|key| at(values, key))
            }
            _ => None,
        }
    }
}

fn at<T: arrow_array::ArrowPrimitiveType>(array: &PrimitiveArray<T>, row: usize) -> Option<T::Native> {
    (row < array.len() && array.is_valid(row)).then(|| array.value(row))
}
