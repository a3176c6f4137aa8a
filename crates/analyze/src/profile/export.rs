//! Profiles as files for other tools: what is read for a format, and how it is written.

use std::io::{self, Write};

use crate::prelude::*;

use super::choice::Choice;
use super::labels::Labels;
use super::model::{Profile, ProfileFormat, What};
use super::otlp;
use super::perfetto::{self, Timeline};
use super::read::read_chosen;
use super::spans::{ACTIVITIES, SpanWork};

/// The events of a recording that are exported, and their format.
#[derive(Debug)]
pub struct Export {
    /// The samples.
    pub profile: Profile,
    timeline: Option<Timeline>,
    spans: Option<(Labels, SpanWork)>,
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
        if format == ProfileFormat::Otlp {
            tables.extend(["activity", ACTIVITIES]);
        }
        Ok(tables)
    }

    /// Reads what is chosen, as [`read_chosen`] does.
    pub fn read(recording: &Recording<'_>, choice: &Choice, format: ProfileFormat) -> Result<Export> {
        let profile = read_chosen(recording, choice)?;
        let has_timeline = format == ProfileFormat::Perfetto;
        let timeline = has_timeline.then(|| Timeline::read(recording)).transpose()?;
        let spans = match format {
            ProfileFormat::Otlp => Some((Labels::read(recording)?, SpanWork::read(recording, |_, _| true)?)),
            _ => None,
        };
        Ok(Export { profile, timeline, spans, format })
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.profile.threads.is_empty() && self.timeline.as_ref().is_none_or(Timeline::is_empty)
    }

    /// Writes it, as [`Profile::write`] does.
    pub fn write(&self, by_thread: bool, out: &mut dyn Write) -> io::Result<()> {
        match (&self.timeline, &self.spans) {
            (Some(timeline), _) => timeline.write(&self.profile, out),
            (None, Some((labels, spans))) => out.write_all(&otlp::encode(&self.profile, labels, spans)?),
            (None, None) => self.profile.write(self.format, by_thread, out),
        }
    }

    /// Writes how it differs from a base. Only folded stacks and pprof can say that.
    pub fn write_difference(&self, base: &Profile, by_thread: bool, out: &mut dyn Write) -> io::Result<()> {
        self.profile.write_difference(base, self.format, by_thread, out)
    }
}
