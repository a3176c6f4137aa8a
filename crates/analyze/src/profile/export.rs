//! Profiles as files for other tools: what is read for a format, and how it is written.

use std::io::{self, Write};

use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::read::Recording;

use super::choice::Choice;
use super::model::{Profile, ProfileFormat, What};
use super::perfetto::{self, Timeline};
use super::read::read_chosen;

/// The events of a recording that are exported, and their format.
#[derive(Debug)]
#[non_exhaustive]
pub struct Export {
    /// The samples.
    pub profile: Profile,
    timeline: Option<Timeline>,
    format: ProfileFormat,
}

impl Export {
    /// The tables that it is made of. Fails for a choice that the format cannot hold.
    pub fn tables(choice: &Choice, format: ProfileFormat) -> Result<Vec<&str>> {
        let mut tables = choice.tables();
        if format == ProfileFormat::Perfetto {
            if *choice != (Choice { samples: choice.samples, ..Choice::of(What::Cpu) }) {
                let what = "a trace for Perfetto has the CPU samples of a whole recording, expected no other choice, or another format";
                return Err(Error::Usage(what.into()));
            }
            tables.extend(perfetto::TABLES);
        }
        Ok(tables)
    }

    /// Reads what is chosen, as [`read_chosen`] does.
    pub fn read(recording: &Recording<'_>, choice: &Choice, format: ProfileFormat) -> Result<Export> {
        let profile = read_chosen(recording, choice)?;
        let has_timeline = format == ProfileFormat::Perfetto;
        let timeline = has_timeline.then(|| Timeline::read(recording)).transpose()?;
        Ok(Export { profile, timeline, format })
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.profile.threads.is_empty() && self.timeline.as_ref().is_none_or(Timeline::is_empty)
    }

    /// Writes it, as [`Profile::write`] does.
    pub fn write(&self, by_thread: bool, out: &mut dyn Write) -> io::Result<()> {
        match &self.timeline {
            Some(timeline) => timeline.write(&self.profile, out),
            None => self.profile.write(self.format, by_thread, out),
        }
    }

    /// Writes how it differs from a base. Only folded stacks and pprof can say that.
    pub fn write_difference(&self, base: &Profile, by_thread: bool, out: &mut dyn Write) -> io::Result<()> {
        self.profile.write_difference(base, self.format, by_thread, out)
    }
}
