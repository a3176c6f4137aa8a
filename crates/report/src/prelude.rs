//! What the file of a section is written with.

pub(crate) use std::fmt::Write;

pub(crate) use tracequet_analyze::present::units::{count, counted, share, size};
pub(crate) use tracequet_analyze::present::{Cell, Table, escaped, numbers, table, words};
pub(crate) use tracequet_dataset::error::Result;
pub(crate) use tracequet_dataset::read::Recording;
pub(crate) use tracequet_trace::map::Map;

pub(crate) use crate::document::{note, rows_note};
pub(crate) use crate::owners::Owners;
pub(crate) use crate::packed::Bytes;
pub(crate) use crate::read::{add, word};
