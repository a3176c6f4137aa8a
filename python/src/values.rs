//! Rows as values of Python, for what is shown: no other library is needed for it.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

/// The values of a row, in the order of the columns.
pub fn row<'py>(py: Python<'py>, batch: &RecordBatch, row: usize) -> PyResult<Vec<Bound<'py, PyAny>>> {
    batch.columns().iter().map(|column| value(py, column, row)).collect()
}

/// The value in a row. Times are microseconds since 1970. Of a type that no table has it is the type's name.
fn value<'py>(py: Python<'py>, array: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    macro_rules! number {
        ($kind:ty) => {
            array.as_primitive::<$kind>().value(row).into_pyobject(py)?.into_any()
        };
    }
    Ok(match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into_pyobject(py)?.to_owned().into_any(),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Timestamp(TimeUnit::Microsecond, _) => number!(TimestampMicrosecondType),
        DataType::Utf8 => array.as_string::<i32>().value(row).into_pyobject(py)?.into_any(),
        DataType::Binary => PyBytes::new(py, array.as_binary::<i32>().value(row)).into_any(),
        DataType::FixedSizeBinary(_) => PyBytes::new(py, array.as_fixed_size_binary().value(row)).into_any(),
        DataType::Dictionary(key, _) if **key == DataType::Int32 => {
            let dictionary = array.as_dictionary::<Int32Type>();
            let key = usize::try_from(dictionary.keys().value(row)).ok();
            match key.filter(|key| *key < dictionary.values().len()) {
                Some(key) => value(py, dictionary.values(), key)?,
                None => py.None().into_bound(py),
            }
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>().value(row);
            let values = (0..list.len()).map(|row| value(py, &list, row)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, values)?.into_any()
        }
        DataType::Struct(fields) => {
            let named = PyDict::new(py);
            for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                named.set_item(field.name(), value(py, column, row)?)?;
            }
            named.into_any()
        }
        other => other.to_string().into_pyobject(py)?.into_any(),
    })
}
