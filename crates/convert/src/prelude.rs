//! What a file of this crate is written with.

pub(crate) use std::ops::ControlFlow;
pub(crate) use std::path::{Path, PathBuf};

pub(crate) use tracequet_dataset::error::{Error, Result};
pub(crate) use tracequet_trace::error::{Problem, Severity};
