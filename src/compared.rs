//! The sides of `diff` and of a page of differences.

use std::path::Path;

use tracequet::analyze::diff::{Compared, tables};

use super::opened::{self, Opened};
use super::output::print_note;
use super::own::OwnArgs;
use super::stats::note_missing_metrics;
use super::stored::note_damaged;
use super::text::clean;

/// Opens a side: a recording, a dataset, a directory of recordings, or a pattern. `others` are tables that are needed
/// beside those that are compared.
pub fn open(input: &Path, others: &[&'static str], own: &OwnArgs) -> anyhow::Result<Opened> {
    let opened = opened::open_all(input, &[&tables(), others].concat(), own)?;
    if !opened.is_converted() {
        note_damaged(&opened.dataset, input)?;
    }
    note_missing_metrics(&opened)?;
    Ok(opened)
}

/// Writes to standard error why sides cannot be compared, and what was left out.
pub fn print_notes(compared: &Compared) -> anyhow::Result<()> {
    compared.said().try_for_each(|note| print_note(&format!("tracequet: {}\n", clean(note))))
}
