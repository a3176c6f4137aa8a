//! The first rows of a table, and what they say of its columns. Known when its writer is made, and decides on their
//! encodings.

use std::collections::HashSet;
use std::hash::Hash;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int16Type, Int32Type, Int64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::DataType;
use foldhash::fast::RandomState;

/// Values by which a column is judged.
const SAMPLE: usize = 8 << 10;

/// The columns of a table.
#[derive(Debug, Default)]
pub struct FirstRows {
    /// Bytes of each column; empty unless these are all rows of the table.
    pub sizes: Vec<usize>,
    /// For each column, whether its values are too varied for a dictionary: more than half of the first ones are
    /// distinct. A column with few values is not judged, nor are lists.
    pub varied: Vec<bool>,
}

/// Judges the columns of these batches.
pub fn varied<'b>(batches: impl Iterator<Item = &'b RecordBatch> + Clone) -> Vec<bool> {
    let columns = batches.clone().next().map_or(0, RecordBatch::num_columns);
    (0..columns).map(|column| is_varied(batches.clone().filter_map(move |batch| batch.columns().get(column)))).collect()
}

fn is_varied<'b>(arrays: impl Iterator<Item = &'b ArrayRef> + Clone) -> bool {
    let Some(first) = arrays.clone().next() else { return false };
    match first.data_type() {
        DataType::Int16 => numbers_are::<Int16Type>(arrays),
        DataType::UInt16 => numbers_are::<UInt16Type>(arrays),
        DataType::Int32 => numbers_are::<Int32Type>(arrays),
        DataType::UInt32 => numbers_are::<UInt32Type>(arrays),
        DataType::Int64 => numbers_are::<Int64Type>(arrays),
        DataType::UInt64 => numbers_are::<UInt64Type>(arrays),
        DataType::Utf8 => {
            are_varied(arrays.filter_map(|array| array.as_string_opt::<i32>()).flat_map(|texts| texts.iter().flatten()))
        }
        DataType::Dictionary(..) => are_varied(
            arrays
                .filter_map(|array| array.as_dictionary_opt::<Int32Type>()?.downcast_dict::<StringArray>())
                .flat_map(|texts| texts.into_iter().flatten()),
        ),
        _ => false,
    }
}

fn numbers_are<'b, T: ArrowPrimitiveType<Native: Hash + Eq>>(arrays: impl Iterator<Item = &'b ArrayRef>) -> bool {
    are_varied(arrays.filter_map(|array| array.as_primitive_opt::<T>()).flat_map(|numbers| numbers.iter().flatten()))
}

fn are_varied<V: Hash + Eq>(values: impl Iterator<Item = V>) -> bool {
    let mut distinct = HashSet::with_hasher(RandomState::default());
    let seen = values.take(SAMPLE).map(|value| distinct.insert(value)).count();
    seen == SAMPLE && distinct.len() > SAMPLE / 2
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{DictionaryArray, UInt64Array};

    use super::*;

    fn judged(values: impl Iterator<Item = Option<u64>> + Clone) -> Vec<bool> {
        let texts: StringArray = values.clone().map(|value| value.map(|value| value.to_string())).collect();
        let numbers: UInt64Array = values.collect();
        let words: DictionaryArray<Int32Type> = texts.iter().collect();
        let columns: [(&str, ArrayRef); 3] =
            [("number", Arc::new(numbers)), ("text", Arc::new(texts)), ("word", Arc::new(words))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        // In batches of a thousand, the sample ends inside of one.
        let parts: Vec<_> =
            (0..batch.num_rows()).step_by(1000).map(|at| batch.slice(at, 1000.min(batch.num_rows() - at))).collect();
        varied(parts.iter())
    }

    #[test]
    fn more_than_half_of_the_first_values_decide() {
        let half = SAMPLE as u64 / 2;
        assert_eq!(judged((0..2 * half).map(|n| Some(n % half))), [false; 3]);
        assert_eq!(judged((0..2 * half).map(|n| Some(n % (half + 1)))), [true; 3]);
        // Nulls are no values, and what comes after the sample is not looked at.
        assert_eq!(judged((0..4 * half).map(|n| (n % 2 == 0).then_some(n))), [true; 3]);
        assert_eq!(judged((0..9 * half).map(|n| Some(n.saturating_sub(2 * half)))), [false; 3]);
        // Too few.
        assert_eq!(judged((0..2 * half - 1).map(Some)), [false; 3]);
        assert!(judged(std::iter::empty()).is_empty());
    }
}
