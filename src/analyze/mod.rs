//! Answers that are found in the tables of a dataset, whatever it was converted from.

pub mod check;
pub mod cohort;
pub mod heap;
pub mod metrics;
pub mod profile;
pub mod rules;
pub mod samples;
pub mod survived;

use crate::dataset::Recording;
use crate::error::{Error, Result};

/// What the rows of a table may take that are held in memory at a time. A file of some kilobytes can say that it has as many
/// rows as it likes.
const MAX_HELD: u64 = 2 << 30;

/// Fails when so many rows, each of which takes so many bytes, are more than are held.
fn held(recording: &Recording<'_>, table: &str, rows: u64, bytes: u64) -> Result<()> {
    let most = MAX_HELD / bytes.max(1);
    if rows <= most {
        return Ok(());
    }
    let key = &recording.info().trace_id;
    Err(Error::Usage(format!("the recording {key} has more than {most} rows of {table} that are needed at a time")))
}
