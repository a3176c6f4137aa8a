//! The builders of all tables but the payload tables, made from `schemas/tables/*.toml`.

use crate::error::Result;
use arrow_array::ArrayRef;
use tracequet_facts::fact::*;
use tracequet_trace::time::Clock;

use super::batches::{Batches, Slot, TableBuilder};
use super::columns::*;
use super::select::Selection;
use super::time_columns::*;

/// Nanoseconds since 1970 of a moment of the recording; clamped when the calendar ends before it.
#[inline]
fn utc_ns(clock: &Clock, ts_ns: i64) -> i64 {
    clock.sync_utc_ns.saturating_add(ts_ns)
}

include!(concat!(env!("OUT_DIR"), "/builders.rs"));
