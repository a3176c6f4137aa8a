//! Names that most files of this crate use.

pub(crate) use std::collections::BTreeMap;
pub(crate) use std::sync::Arc;

pub(crate) use tracequet_dataset::error::{Error, Result};
pub(crate) use tracequet_dataset::read::Recording;
pub(crate) use tracequet_dataset::read::rows::{Row, rows_of};
pub(crate) use tracequet_dataset::row;
pub(crate) use tracequet_trace::map::{Map, Set};

pub(crate) use crate::rows::each_row;
pub(crate) use crate::{HeldTexts, held};
