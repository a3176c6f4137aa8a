//! How much of a dataset is in memory before it is in its files.

/// Bounds in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// All row groups that have not ended, as batches, and their encoders.
    pub open: usize,
    /// A row group, as batches. Encoded it is smaller.
    pub group: usize,
    /// Rows of a row group that wait for encoders.
    pub waiting: usize,
    /// A page of a column, before it is compressed. Each encoder has one, and a compressor has its outcome beside it.
    pub page: usize,
}

/// Of datasets that are kept. Pages are as large as the writer makes them by default.
pub const KEPT: Limits = Limits { open: 48 << 20, group: 32 << 20, waiting: 4 << 20, page: 1 << 20 };

/// Of a dataset that is read once and soon: it need not be as small as it could be, nor be read by others.
pub const TEMPORARY: Limits = Limits { open: 16 << 20, group: 8 << 20, waiting: 1 << 20, page: 64 << 10 };
