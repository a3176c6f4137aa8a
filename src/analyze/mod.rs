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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;
    use crate::pipeline::{Convert, convert};

    /// The answers of which a table (or its text) has more than is held, with that table.
    fn refused(recording: &Recording<'_>) -> Vec<(&'static str, String)> {
        let answers = [
            ("metrics", metrics::metrics(recording).map(drop)),
            ("snapshots", heap::snapshots(recording).map(drop)),
            ("cohorts", cohort::cohorts(recording, |_| ())),
            ("survived", survived::survived(recording, 1, 0, true).map(drop)),
            ("profile", profile::read(recording, profile::What::Cpu).map(drop)),
        ];
        let table = |error: Error| {
            let message = error.to_string();
            let (_, rest) = message.split_once(" more than ")?;
            let (_, what) = rest.split_once(" rows of ").or_else(|| rest.split_once(" bytes of "))?;
            Some(what.split(" that are").next()?.to_owned())
        };
        answers.into_iter().filter_map(|(name, answer)| Some((name, table(answer.err()?)?))).collect()
    }

    #[test]
    fn rows_that_are_needed_at_a_time_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        // Walks of the heap; samples; ranges.
        for (sample, expected) in [
            ("heap", &[("snapshots", "gc")][..]),
            ("stacks", &[("profile", "frame"), ("profile", "text in frame"), ("metrics", "metric")]),
            ("gc-churn", &[("cohorts", "gc"), ("cohorts", "ranges"), ("survived", "gc")]),
            (
                "gc-churn",
                &[("survived", "gc_generation_range"), ("survived", "gc_surviving_range"), ("profile", "callsite")],
            ),
        ] {
            let path = folder.path().join(sample);
            if !path.exists() {
                convert(&Convert::new([format!("samples/{sample}.nettrace")], &path), &mut |_| {}).unwrap();
            }
            let dataset = Dataset::open(&path).unwrap();
            let refused = |max_held| refused(&dataset.clone().holding(max_held).recording(None).unwrap());
            assert_eq!(refused(2 << 30), [], "{sample}");
            let found: Vec<_> = (0..24).flat_map(|n| [2, 3].map(|half| refused((half << n) / 2))).flatten().collect();
            for (answer, table) in expected {
                let is_it = |(name, what): &(&str, String)| name == answer && what == table;
                assert!(found.iter().any(is_it), "{answer} {table}: {found:?}");
            }
        }
    }
}
