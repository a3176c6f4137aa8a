//! What the file of a command is written with.

pub use std::path::{Path, PathBuf};

pub use clap::{Args, ValueEnum};
pub use tracequet::Error;
pub use tracequet::analyze::present::{
    Answer, Cell, Column, Document, Sentence, Table, Unit, clean, numbers, table, words,
};

pub use super::answer::{FormatArgs, first_rows};
pub use super::asked::AskedArgs;
pub(super) use super::choices::choices;
pub use super::output::{Outcome, print_note, print_result};
pub use super::own::OwnArgs;
pub(super) use super::{opened, values};
