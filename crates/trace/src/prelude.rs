//! Names that most files of this crate use.

pub(crate) use std::ops::ControlFlow;
pub(crate) use std::path::{Path, PathBuf};

pub(crate) use nom::Parser;

pub(crate) use crate::error::{Error, Problem, Result, Severity};
pub(crate) use crate::guid::Guid;
pub(crate) use crate::map::Map;
