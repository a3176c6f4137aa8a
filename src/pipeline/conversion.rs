//! One input of a request on its way into the dataset.

use super::request::Convert;
use crate::error::Result;
use crate::reader::TraceInfo;
use crate::sink::Dataset;
use crate::table::select::Selection;
use crate::table::{Shape, Tables};

/// One input of a request on its way into the dataset.
pub(super) struct Conversion<'r> {
    pub(super) request: &'r Convert,
    pub(super) selection: &'r Selection,
    pub(super) shape: Shape,
    pub(super) dataset: &'r mut Dataset,
    pub(super) progress: &'r mut dyn FnMut(u64, Option<u64>, u64),
    /// Size of the input, if it is known.
    pub(super) total: Option<u64>,
}

impl Conversion<'_> {
    /// The tables of a recording whose header was read.
    pub(super) fn tables(&self, info: &TraceInfo) -> Result<Tables> {
        Tables::new(self.selection.clone(), info.clock, info.pointer_size, self.shape.clone())
    }
}
