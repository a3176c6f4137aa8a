//! Answers from the tables of a dataset, independent of the format of the recording.

use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::read::Recording;

mod allowance;
pub mod check;
pub mod cohort;
#[doc(hidden)]
pub mod collection;
pub mod diff;
pub mod evidence;
pub mod findings;
pub mod heap;
pub mod kept;
pub mod lifetime;
pub mod metrics;
mod packed;
mod pieces;
mod prelude;
pub mod present;
pub mod profile;
mod rows;
pub mod rules;
#[doc(hidden)]
pub mod samples;
#[doc(hidden)]
pub mod subjects;
pub mod survived;

/// Fails when `rows` of `bytes` each are more than may be held in memory at a time.
fn held(recording: &Recording<'_>, table: &str, rows: u64, bytes: u64) -> Result<()> {
    let most = recording.max_held() / bytes.max(1);
    if rows <= most {
        return Ok(());
    }
    let key = &recording.info().trace_id;
    Err(Error::TooLarge(format!("the recording {key} has more than {most} rows of {table} that are needed at a time")))
}

/// Counts the texts of a table that are copied: a file of some kilobytes can repeat a long one as often as it likes.
struct HeldTexts<'r> {
    recording: Recording<'r>,
    table: &'static str,
    bytes: u64,
    most: u64,
}

/// Bytes of the texts of a table that are copied, at most. The names of a hundred thousand types have some 10 MB.
const MAX_TEXT: u64 = 256 << 20;

impl<'r> HeldTexts<'r> {
    fn of(recording: &Recording<'r>, table: &'static str) -> HeldTexts<'r> {
        HeldTexts { recording: *recording, table, bytes: 0, most: recording.max_held().min(MAX_TEXT) }
    }

    /// With a bound of their own.
    fn up_to(self, most: u64) -> HeldTexts<'r> {
        HeldTexts { most: self.most.min(most), ..self }
    }

    /// The copy of a text. Fails when all together are more than is held in memory.
    fn copy(&mut self, text: &str) -> Result<String> {
        self.count(text.len())?;
        Ok(text.to_owned())
    }

    /// This many bytes of text are going to be copied.
    fn count(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let most = self.most;
        if self.bytes <= most {
            return Ok(());
        }
        let (key, table) = (&self.recording.info().trace_id, self.table);
        Err(Error::TooLarge(format!(
            "the recording {key} has more than {most} bytes of text in {table} that are needed"
        )))
    }
}

#[cfg(test)]
mod tests {
    pub(crate) mod dice;
}
