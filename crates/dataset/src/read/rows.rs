//! Rows of a table as structs, whose fields are columns of the schema.

use crate::prelude::*;

use super::cells;
pub use super::cells::{Cells, TypedColumn};
use super::{Recording, Scan};

/// The value of a column in a row.
pub type ValueOf<'b, C> = <<C as TypedColumn>::Cells<'b> as Cells<'b>>::Value;

/// A struct of some columns of a table. [`row!`](crate::row) makes one.
pub trait Row {
    /// Name of the table.
    const TABLE: &'static str;
    /// Names of the columns.
    const COLUMNS: &'static [&'static str];
    /// The row, whose texts are those of a batch.
    type Of<'b>;
    /// The columns of a batch.
    type Columns<'b>;

    /// Finds the columns in a batch. Fails when one is missing or has another type.
    fn columns(batch: &RecordBatch) -> Result<Self::Columns<'_>>;

    /// A row, which the batch has.
    fn at<'b>(columns: &Self::Columns<'b>, row: usize) -> Self::Of<'b>;
}

/// The cells of a column of a batch: what [`row!`](crate::row) calls.
#[doc(hidden)]
pub fn cells_of<'b, C: TypedColumn>(batch: &'b RecordBatch, table: &str) -> Result<C::Cells<'b>> {
    cells::cells(batch, table, C::NAME)
}

/// The value of a row: what [`row!`](crate::row) calls.
#[doc(hidden)]
#[inline]
pub fn cell_at<'b, C: TypedColumn>(cells: &C::Cells<'b>, row: usize) -> ValueOf<'b, C> {
    cells.at(row)
}

/// The rows of a batch.
pub fn rows_of<R: Row>(batch: &RecordBatch) -> Result<impl Iterator<Item = R::Of<'_>>> {
    let columns = R::columns(batch)?;
    Ok((0..batch.num_rows()).map(move |row| R::at(&columns, row)))
}

impl Recording<'_> {
    /// Whether the recording has the table of these rows.
    pub fn has<R: Row>(&self) -> bool {
        self.tables().any(|table| table.name == R::TABLE)
    }

    /// Begins to read the columns of `R`. Fails when the recording has no such table.
    pub fn scan<R: Row>(&self) -> Result<Scan> {
        Ok(self.table(R::TABLE)?.scan().columns(R::COLUMNS.iter().copied()))
    }

    /// Calls `take` with each row of the table. Fails when the recording has no such table, or the table lacks a
    /// column.
    pub fn each<R: Row>(&self, take: impl FnMut(R::Of<'_>) -> Result<()>) -> Result<()> {
        self.scan::<R>()?.each::<R>(take)
    }

    /// Calls `take` with each row of the table, if the recording has it. Returns whether it has.
    pub fn each_recorded<R: Row>(&self, mut take: impl FnMut(R::Of<'_>)) -> Result<bool> {
        let has = self.has::<R>();
        if has {
            self.each::<R>(|row| {
                take(row);
                Ok(())
            })?;
        }
        Ok(has)
    }
}

impl Scan {
    /// Calls `take` with each row that is read. Fails when a column of `R` is not among those that are read.
    pub fn each<R: Row>(&self, mut take: impl FnMut(R::Of<'_>) -> Result<()>) -> Result<()> {
        for batch in self.batches()? {
            let batch = batch?;
            for row in rows_of::<R>(&batch)? {
                take(row)?;
            }
        }
        Ok(())
    }
}

/// Makes a struct of some columns of a table. Its fields have the names and types of the columns in `schemas/tables`;
/// text is borrowed from the batch, and what may be null is an `Option`.
///
/// ```
/// tracequet_dataset::row! {
///     /// A pause, as this example needs it.
///     struct Pause of gc_pause { gc_id, duration_ns, kind }
/// }
///
/// fn longest_ns(recording: &tracequet_dataset::read::Recording<'_>) -> tracequet_dataset::error::Result<i64> {
///     let mut longest = 0;
///     recording.each::<Pause<'_>>(|pause| {
///         longest = longest.max(pause.duration_ns);
///         Ok(())
///     })?;
///     Ok(longest)
/// }
/// ```
#[macro_export]
macro_rules! row {
    ($(#[$about:meta])* $visible:vis struct $name:ident of $table:ident { $($column:ident),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Debug)]
        #[allow(missing_docs, reason = "the schema of the table has them")]
        $visible struct $name<'b> {
            $($visible $column: $crate::read::rows::ValueOf<'b, $crate::read::tables::$table::$column>,)+
        }

        const _: () = {
            pub struct Columns<'b> {
                $($column: <$crate::read::tables::$table::$column as $crate::read::rows::TypedColumn>::Cells<'b>,)+
            }

            impl $crate::read::rows::Row for $name<'_> {
                const TABLE: &'static str = $crate::read::tables::$table::TABLE;
                const COLUMNS: &'static [&'static str] = &[
                    $(<$crate::read::tables::$table::$column as $crate::read::rows::TypedColumn>::NAME,)+
                ];
                type Of<'b> = $name<'b>;
                type Columns<'b> = Columns<'b>;

                fn columns(
                    batch: &$crate::read::arrow_array::RecordBatch,
                ) -> $crate::error::Result<Columns<'_>> {
                    Ok(Columns {
                        $($column: $crate::read::rows::cells_of::<$crate::read::tables::$table::$column>(
                            batch,
                            $crate::read::tables::$table::TABLE,
                        )?,)+
                    })
                }

                #[inline]
                fn at<'b>(columns: &Self::Columns<'b>, row: usize) -> Self::Of<'b> {
                    $name {
                        $($column: $crate::read::rows::cell_at::<$crate::read::tables::$table::$column>(
                            &columns.$column,
                            row,
                        ),)+
                    }
                }
            }
        };
    };
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, StringArray, UInt8Array, UInt64Array};

    use super::*;

    row! {
        struct Handle of gc_handle { handle_id, generation, handle_kind }
    }

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    }

    fn words() -> ArrayRef {
        let words = Arc::new(StringArray::from(vec!["strong", "pinned"]));
        Arc::new(DictionaryArray::new(Int32Array::from(vec![Some(1), Some(0), None]), words))
    }

    #[test]
    fn a_row_has_what_the_schema_says_whatever_the_file_has() {
        let addresses = [1, u64::MAX, 3];
        let signed = Int64Array::from_iter_values(addresses.map(u64::cast_signed));
        let unsigned = UInt64Array::from_iter_values(addresses);
        let arrays: [ArrayRef; 2] = [Arc::new(signed), Arc::new(unsigned)];
        for handles in arrays {
            let generations = Arc::new(UInt8Array::from(vec![Some(0), None, Some(2)]));
            // The order in the batch is not that of the struct.
            let batch = batch(vec![("handle_kind", words()), ("generation", generations), ("handle_id", handles)]);
            let rows: Vec<_> = rows_of::<Handle<'_>>(&batch).unwrap().collect();
            assert_eq!(rows.iter().map(|row| row.handle_id).collect::<Vec<_>>(), addresses);
            assert_eq!(rows.iter().map(|row| row.generation).collect::<Vec<_>>(), [Some(0), None, Some(2)]);
            assert_eq!(
                rows.iter().map(|row| row.handle_kind).collect::<Vec<_>>(),
                [Some("pinned"), Some("strong"), None]
            );
        }
    }

    #[test]
    fn a_column_that_is_missing_or_of_another_type_is_named_with_its_table() {
        let addresses = || -> ArrayRef { Arc::new(UInt64Array::from(vec![1, 2, 3])) };
        let generations = || -> ArrayRef { Arc::new(UInt8Array::from(vec![0, 1, 2])) };
        let error = |columns| match rows_of::<Handle<'_>>(&batch(columns)) {
            Ok(_) => panic!("the batch was read"),
            Err(error) => error.to_string(),
        };
        assert_eq!(
            error(vec![("handle_id", addresses()), ("handle_kind", words())]),
            "column generation of gc_handle: not there, expected it in the batch"
        );
        assert_eq!(
            error(vec![("handle_id", words()), ("generation", generations()), ("handle_kind", words())]),
            "column handle_id of gc_handle: 1 nulls, expected a value in each row"
        );
        assert_eq!(
            error(vec![("handle_id", addresses()), ("generation", generations()), ("handle_kind", addresses())]),
            "column handle_kind of gc_handle: of type UInt64, expected the type of the schema"
        );
    }
}
