//! Names that most files of this crate use.

pub(crate) use std::ops::ControlFlow;
pub(crate) use std::path::{Path, PathBuf};

pub(crate) use tracequet_dataset::error::{Error, Result};
pub(crate) use tracequet_trace::error::{Problem, Severity};
