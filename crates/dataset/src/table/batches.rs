//! Makes batches from rows: the tables, and the batches that are ready to be written.

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatchOptions, StringArray};
use tracequet_trace::time::Clock;

use super::schema;
use super::select::Selection;
use super::shape::TRACE_ID;
use super::signed;
use crate::prelude::*;
use crate::table_spec::TableSpec;

/// Rows after which a batch is handed on.
pub(super) const BATCH_ROWS: usize = 16 << 10;
/// Rows that are added at once, so that a fact of any length makes batches of bounded size.
const ADDED_ROWS: usize = 8 << 10;

/// Bytes of text after which a batch is handed on: 250 in each row of a whole one.
const BATCH_TEXT: usize = 4 << 20;
/// Bytes of text that all tables of facts hold together before the large ones are handed on.
const ALL_TEXT: usize = 16 << 20;

/// A batch that is ready to be written.
pub struct ReadyBatch {
    /// Number of the table: its index in the list of tables.
    pub table: usize,
    /// The rows, in the order in which they came.
    pub rows: RecordBatch,
}

/// The tables so far, and their batches that are ready.
#[derive(Default)]
pub(super) struct Batches {
    pub(super) specs: Vec<TableSpec>,
    pub(super) ready: Vec<ReadyBatch>,
    /// Bytes of text in the builders of facts.
    text_bytes: usize,
    /// The first defect that kept a batch from being made.
    pub(super) failed: Option<Error>,
}

impl Batches {
    /// The bytes from which on a table of facts has more text than most, while all together have too much.
    #[inline]
    pub(super) fn long_text(&self) -> Option<usize> {
        (self.text_bytes > ALL_TEXT).then(|| self.text_bytes / self.specs.len().max(1))
    }

    /// Makes a batch of the columns of a table.
    pub(super) fn push(&mut self, table: usize, mut arrays: Vec<ArrayRef>, rows: usize) {
        let Some(spec) = self.specs.get(table) else { return };
        let fields = spec.schema.fields();
        let trace_id = fields.first().filter(|field| field.name() == TRACE_ID && arrays.len() + 1 == fields.len());
        if let Some(field) = trace_id {
            // The key is the same in every row: it names the recording in a dataset of several.
            let value = field.metadata().get("value").cloned().unwrap_or_default();
            let keys = Int32Array::from(vec![0; rows]);
            match DictionaryArray::try_new(keys, Arc::new(StringArray::from(vec![value]))) {
                Ok(array) => arrays.insert(0, Arc::new(array)),
                Err(e) => self.failed = Some(Error::Internal(e.to_string())),
            }
        }
        for (array, field) in arrays.iter_mut().zip(fields) {
            if array.data_type() != field.data_type() {
                *array = signed::array(array);
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        match RecordBatch::try_new_with_options(spec.schema.clone(), arrays, &options) {
            Ok(rows) => self.ready.push(ReadyBatch { table, rows }),
            Err(e) => self.failed = Some(Error::Internal(format!("table {}: {e}", spec.name))),
        }
    }
}

/// A table while a batch of its rows is collected.
pub trait TableBuilder: Default {
    /// Name of the table and of its schema.
    const NAME: &'static str;
    /// The row of the table.
    type Row<'a>;
    /// Rows so far.
    fn rows(&self) -> usize;
    /// Bytes of their text.
    fn text_bytes(&self) -> usize;
    /// Adds rows, column by column. The clock gives the times of day.
    fn extend(&mut self, rows: &[Self::Row<'_>], clock: &Clock);
    /// The columns of the rows so far; the builder is empty afterwards.
    fn finish(&mut self) -> Vec<ArrayRef>;
}

/// The builder of one table; its number is `None` when the table is not wanted.
pub(super) struct Slot<T> {
    builder: T,
    /// The bytes of its text that count in [`Batches`].
    text_bytes: usize,
    number: Option<usize>,
}

impl<T: TableBuilder> Slot<T> {
    /// Declares the table, if it is wanted.
    pub(super) fn new(batches: &mut Batches, selection: &Selection) -> Result<Slot<T>> {
        let number = selection.wants(T::NAME).then_some(batches.specs.len());
        if number.is_some() {
            batches.specs.push(schema::of(T::NAME)?.spec()?);
        }
        Ok(Slot { builder: T::default(), text_bytes: 0, number })
    }

    /// Adds rows, and hands on a batch when there are enough.
    #[inline]
    pub(super) fn add(&mut self, rows: &[T::Row<'_>], clock: &Clock, batches: &mut Batches) {
        if self.number.is_none() {
            return;
        }
        for rows in rows.chunks(ADDED_ROWS) {
            self.builder.extend(rows, clock);
            let text_bytes = self.builder.text_bytes();
            batches.text_bytes += text_bytes - self.text_bytes;
            self.text_bytes = text_bytes;
            if self.builder.rows() >= BATCH_ROWS || text_bytes >= BATCH_TEXT {
                self.flush(batches);
            }
        }
    }

    /// Hands on what there is.
    pub(super) fn flush(&mut self, batches: &mut Batches) {
        let rows = self.builder.rows();
        if let Some(number) = self.number.filter(|_| rows > 0) {
            let arrays = self.builder.finish();
            batches.text_bytes -= std::mem::take(&mut self.text_bytes);
            batches.push(number, arrays, rows);
        }
    }

    /// Hands on what there is, if it has at least this many bytes of text.
    pub(super) fn flush_long(&mut self, least: usize, batches: &mut Batches) {
        if self.text_bytes >= least {
            self.flush(batches);
        }
    }
}
