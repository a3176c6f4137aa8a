//! The builders of all tables but the payload tables, made by `build.rs` from `schemas/tables/*.toml`.

use arrow_array::ArrayRef;

use super::batches::{Batches, Slot};
use super::columns::*;
use super::select::Selection;
use crate::error::Result;
use crate::normalize::fact::*;
use crate::time::Clock;

/// A table while a batch of its rows is collected.
pub trait TableBuilder: Default {
    /// Name of the table and of its schema.
    const NAME: &'static str;
    /// Its row.
    type Row<'a>;
    /// Rows so far.
    fn rows(&self) -> usize;
    /// Adds rows, column by column. The clock gives the times of day.
    fn extend(&mut self, rows: &[Self::Row<'_>], clock: &Clock);
    /// The columns of the rows so far; the builder is empty afterwards.
    fn finish(&mut self) -> Vec<ArrayRef>;
}

/// Nanoseconds since 1970 of a moment of the recording; clamped when the calendar ends before it.
#[inline]
fn utc_ns(clock: &Clock, ts_ns: i64) -> i64 {
    clock.sync_utc_ns.saturating_add(ts_ns)
}

include!(concat!(env!("OUT_DIR"), "/builders.rs"));
