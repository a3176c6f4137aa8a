//! Rows of a row group that have no encoders yet.
//!
//! An encoder holds the same memory for one row as for a million, and a recording has hundreds of tables, most of them
//! small. So rows wait unencoded until there are enough of them. Rows that come late are sorted into place meanwhile.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::first_rows::{FirstRows, varied};
use super::order::{Key, Order, Span};

/// Bytes that a column of a waiting batch takes beside its values.
const COLUMN_BYTES: usize = 256;

/// The batches of a row group that wait.
#[derive(Debug)]
pub(super) struct Waiting {
    batches: Vec<Batch>,
    /// Bytes that they take.
    pub(super) bytes: usize,
    last: Key,
    sorted: bool,
}

/// A batch and the bytes of each of its columns.
pub(super) type Batch = (RecordBatch, Vec<usize>);

impl Default for Waiting {
    fn default() -> Self {
        Waiting { batches: Vec::new(), bytes: 0, last: Key::new(), sorted: true }
    }
}

impl Waiting {
    /// Adds rows.
    pub(super) fn push(&mut self, batch: RecordBatch, sizes: Vec<usize>, span: Span) {
        let follows = self.batches.is_empty() || span.first >= self.last;
        self.sorted &= span.sorted && follows;
        if self.batches.is_empty() || span.last > self.last {
            self.last = span.last;
        }
        self.bytes += sizes.iter().map(|size| size + COLUMN_BYTES).sum::<usize>();
        self.batches.push((batch, sizes));
    }

    /// The first rows of the columns of their table, which has others, too.
    pub(super) fn first_rows(&self) -> FirstRows {
        FirstRows { sizes: Vec::new(), varied: varied(self.batches.iter().map(|(batch, _)| batch)) }
    }

    /// All rows of the columns of their table, if it has no others.
    pub(super) fn all_rows(&self) -> FirstRows {
        FirstRows { sizes: self.sizes(), ..self.first_rows() }
    }

    /// Bytes of each column.
    fn sizes(&self) -> Vec<usize> {
        let mut sums = Vec::new();
        for (_, sizes) in &self.batches {
            sums.resize(sizes.len(), 0);
            sums.iter_mut().zip(sizes).for_each(|(sum, size)| *sum += size);
        }
        sums
    }

    /// The rows in order, and where the last one lies; nothing waits afterwards.
    pub(super) fn take(&mut self, order: &Order) -> std::result::Result<(Vec<Batch>, Key), ArrowError> {
        let sizes = self.sizes();
        let Waiting { batches, last, sorted, .. } = std::mem::take(self);
        if sorted {
            return Ok((batches, last));
        }
        let rows = order.sort(batches.into_iter().map(|(batch, _)| batch).collect())?;
        Ok((vec![(rows, sizes)], last))
    }
}
