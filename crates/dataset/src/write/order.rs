//! The order of the rows of a row group: whether batches have it, and how they get it.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_empty_array};
use arrow_schema::{ArrowError, DataType};
use arrow_select::concat::concat;
use arrow_select::take::take;

use super::TableSpec;

/// The columns by which a table is sorted, ascending. None: rows stay as they come.
#[derive(Debug)]
pub struct Order {
    columns: Vec<usize>,
}

/// Where the rows of a batch lie in the order.
#[derive(Debug)]
pub struct Span {
    /// The lowest.
    pub first: Key,
    /// The highest.
    pub last: Key,
    /// Whether the rows ascend.
    pub sorted: bool,
}

/// Values of the columns of one row, as numbers that ascend like them.
pub type Key = Vec<u64>;

/// The values of a column.
enum Values<'b> {
    Narrow(&'b [u32]),
    Wide(&'b [u64]),
    Signed(&'b [i64]),
}

impl<'b> Values<'b> {
    fn of(array: &'b ArrayRef) -> Option<Values<'b>> {
        match array.data_type() {
            DataType::UInt32 => Some(Values::Narrow(array.as_primitive::<UInt32Type>().values())),
            DataType::UInt64 => Some(Values::Wide(array.as_primitive::<UInt64Type>().values())),
            DataType::Int64 => Some(Values::Signed(array.as_primitive::<Int64Type>().values())),
            _ => None,
        }
    }

    fn at(&self, row: usize) -> u64 {
        match self {
            Values::Narrow(values) => values.get(row).copied().unwrap_or_default().into(),
            Values::Wide(values) => values.get(row).copied().unwrap_or_default(),
            // Without their sign bit, negative numbers are below the others.
            Values::Signed(values) => values.get(row).map_or(0, |value| (*value as u64) ^ (1 << 63)),
        }
    }
}

/// The sort columns of one batch.
struct Rows<'b>(Vec<Values<'b>>);

impl Rows<'_> {
    fn compare(&self, row: usize, other: &Rows<'_>, other_row: usize) -> Ordering {
        let pairs = self.0.iter().zip(&other.0);
        pairs.map(|(a, b)| a.at(row).cmp(&b.at(other_row))).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    }

    /// The value of the first column.
    fn first(&self, row: usize) -> u64 {
        self.0.first().map_or(0, |values| values.at(row))
    }

    fn key(&self, row: usize) -> Key {
        self.0.iter().map(|values| values.at(row)).collect()
    }
}

impl Order {
    /// The order that a table asks for; an error if it is by columns that are not there, or have no plain order.
    pub fn of(spec: &TableSpec) -> Result<Order> {
        let column = |name: &String| {
            let (index, field) = spec.schema.column_with_name(name)?;
            let has_order = Values::of(&new_empty_array(field.data_type())).is_some();
            (has_order && !field.is_nullable()).then_some(index)
        };
        let columns = spec.sorted_by.iter().map(|name| {
            let refused = || Error::Internal(format!("table {} cannot be sorted by {name}", spec.name));
            column(name).ok_or_else(refused)
        });
        Ok(Order { columns: columns.collect::<Result<_>>()? })
    }

    fn rows<'b>(&self, batch: &'b RecordBatch) -> Rows<'b> {
        Rows(self.columns.iter().filter_map(|&index| batch.columns().get(index).and_then(Values::of)).collect())
    }

    /// Where the rows of a batch lie.
    pub fn span(&self, batch: &RecordBatch) -> Span {
        let rows = self.rows(batch);
        let sorted = (1..batch.num_rows()).all(|row| rows.compare(row - 1, &rows, row).is_le());
        let compare = |a: &usize, b: &usize| rows.compare(*a, &rows, *b);
        let end = batch.num_rows().saturating_sub(1);
        let (first, last) = match sorted {
            true => (0, end),
            false => ((0..=end).min_by(compare).unwrap_or_default(), (0..=end).max_by(compare).unwrap_or_default()),
        };
        Span { first: rows.key(first), last: rows.key(last), sorted }
    }

    /// All rows of some batches in order; equal ones stay in the order in which they came.
    pub fn sort(&self, batches: Vec<RecordBatch>) -> std::result::Result<RecordBatch, ArrowError> {
        let Some(schema) = batches.first().map(RecordBatch::schema) else {
            return Err(ArrowError::InvalidArgumentError("no batch to sort".into()));
        };
        let rows = self.sorted(&batches);
        // Column by column, so that a column is in memory twice and not all of them.
        let mut batches: Vec<_> = batches.into_iter().map(|batch| batch.into_parts().1.into_iter()).collect();
        let mut columns = Vec::with_capacity(schema.fields().len());
        for _ in schema.fields() {
            let parts: Vec<ArrayRef> = batches.iter_mut().filter_map(Iterator::next).collect();
            let whole = concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())?;
            drop(parts);
            columns.push(take(&whole, &rows, None)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(schema, columns, &options)
    }

    /// The rows of all batches, counted through, in order.
    fn sorted(&self, batches: &[RecordBatch]) -> UInt32Array {
        let sorts: Vec<Rows<'_>> = batches.iter().map(|batch| self.rows(batch)).collect();
        // The first column is mostly the only one, and mostly decides. Batch and row do at last.
        let mut rows: Vec<(u64, u32, u32)> = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
        let mut firsts = Vec::with_capacity(batches.len());
        for (index, (batch, sort)) in batches.iter().zip(&sorts).enumerate() {
            firsts.push(rows.len() as u32);
            rows.extend((0..batch.num_rows()).map(|row| (sort.first(row), index as u32, row as u32)));
        }
        rows.sort_unstable_by(|a, b| {
            let others = || match (sorts.get(a.1 as usize), sorts.get(b.1 as usize)) {
                (Some(x), Some(y)) if x.0.len() > 1 => x.compare(a.2 as usize, y, b.2 as usize),
                _ => Ordering::Equal,
            };
            a.0.cmp(&b.0).then_with(others).then_with(|| (a.1, a.2).cmp(&(b.1, b.2)))
        });
        let place = |(_, batch, row): (u64, u32, u32)| firsts.get(batch as usize).copied().unwrap_or_default() + row;
        rows.into_iter().map(place).collect::<Vec<u32>>().into()
    }
}
