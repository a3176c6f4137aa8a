//! Answers that are found in the tables of a dataset, whatever it was converted from.

mod allowance;
pub mod check;
pub mod cohort;
#[cfg(test)]
mod dice;
pub mod heap;
pub mod metrics;
pub mod profile;
pub mod rules;
pub mod samples;
pub mod survived;

use crate::dataset::Recording;
use crate::error::{Error, Result};

/// Fails when so many rows, each of which takes so many bytes, are more than are held in memory at a time.
fn held(recording: &Recording<'_>, table: &str, rows: u64, bytes: u64) -> Result<()> {
    let most = recording.max_held() / bytes.max(1);
    if rows <= most {
        return Ok(());
    }
    let key = &recording.info().trace_id;
    Err(Error::Usage(format!("the recording {key} has more than {most} rows of {table} that are needed at a time")))
}

/// Counts the texts of a table that are copied: a file of some kilobytes can repeat a long one as often as it likes.
struct HeldTexts<'r> {
    recording: &'r Recording<'r>,
    table: &'static str,
    bytes: u64,
}

impl<'r> HeldTexts<'r> {
    fn of(recording: &'r Recording<'r>, table: &'static str) -> HeldTexts<'r> {
        HeldTexts { recording, table, bytes: 0 }
    }

    /// The copy of a text. Fails when all together are more than is held in memory.
    fn copy(&mut self, text: &str) -> Result<String> {
        self.count(text.len())?;
        Ok(text.to_owned())
    }

    /// So many bytes of text are going to be copied.
    fn count(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let most = self.recording.max_held();
        if self.bytes <= most {
            return Ok(());
        }
        let (key, table) = (&self.recording.info().trace_id, self.table);
        Err(Error::Usage(format!("the recording {key} has more than {most} bytes of text in {table} that are needed")))
    }
}
