//! Unsigned 64-bit columns as signed ones with the same bits, for readers that know no unsigned numbers (Spark).

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ListArray, PrimitiveArray, StructArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, FieldRef};

/// The field with signed numbers wherever it has unsigned ones of 64 bits.
pub fn field(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::UInt64 => DataType::Int64,
        DataType::List(element) => DataType::List(self::field(element)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(self::field).collect()),
        _ => return field.clone(),
    };
    let signed = Field::new(field.name(), data_type, field.is_nullable());
    Arc::new(signed.with_metadata(field.metadata().clone()))
}

/// The array of such a field; no number is copied.
pub fn array(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::UInt64 => {
            let numbers = array.as_primitive::<UInt64Type>();
            let same_bits = ScalarBuffer::<i64>::from(numbers.values().inner().clone());
            Arc::new(PrimitiveArray::<Int64Type>::new(same_bits, numbers.nulls().cloned()))
        }
        DataType::List(element) => {
            let list = array.as_list::<i32>();
            let values = self::array(list.values());
            Arc::new(ListArray::new(field(element), list.offsets().clone(), values, list.nulls().cloned()))
        }
        DataType::Struct(fields) if !fields.is_empty() => {
            let columns = array.as_struct().columns().iter().map(self::array).collect();
            let fields = fields.iter().map(field).collect();
            Arc::new(StructArray::new(fields, columns, array.nulls().cloned()))
        }
        _ => array.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_stay() {
        let numbers: ArrayRef = Arc::new(PrimitiveArray::<UInt64Type>::from(vec![Some(u64::MAX), None, Some(7)]));
        let signed = array(&numbers);
        let expected = PrimitiveArray::<Int64Type>::from(vec![Some(-1), None, Some(7)]);
        assert_eq!(signed.as_primitive::<Int64Type>(), &expected);
        let list = Arc::new(Field::new_list("l", Field::new("item", DataType::UInt64, false), false));
        assert_eq!(field(&list).data_type(), &DataType::new_list(DataType::Int64, false));
    }
}
