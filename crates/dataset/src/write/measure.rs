//! Estimates the bytes of a batch, which decide the end of row groups.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};

/// Measures the batches of one table, column by column.
#[derive(Debug, Default)]
pub struct Meter {
    /// For each column, the dictionary of the batch before.
    dictionaries: Vec<Option<ArrayRef>>,
}

impl Meter {
    /// Bytes of each column. Only the part that a slice shows is counted, and a dictionary that comes with batch after
    /// batch only once: else a few wide dictionaries would end the row group of a narrow table.
    pub fn measure(&mut self, batch: &RecordBatch) -> Vec<usize> {
        self.dictionaries.resize(batch.num_columns(), None);
        let columns = batch.columns().iter().zip(&mut self.dictionaries);
        columns
            .map(|(column, before)| match column.as_any_dictionary_opt() {
                None => shown(column),
                Some(dictionary) => {
                    let known = before.as_ref().is_some_and(|before| Arc::ptr_eq(before, dictionary.values()));
                    let values = if known { 0 } else { shown(dictionary.values()) };
                    // Kept alive, so that another dictionary cannot come to lie at the same address.
                    *before = Some(dictionary.values().clone());
                    shown(dictionary.keys()) + values
                }
            })
            .collect()
    }
}

fn shown(array: &dyn Array) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size())
}
