//! Names that most files of this crate use.

pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::sync::Arc;

pub(crate) use arrow_array::RecordBatch;

pub(crate) use crate::error::{Error, Result};
