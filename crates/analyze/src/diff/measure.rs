//! A recording as a side of a difference sees it: its sums by place, its figures, its findings.

use std::borrow::Borrow;

use super::names::{Places, placed};
use super::place::{By, Others};
use super::sums::{Absent, Raw, Subject, Sum, summed};
use crate::check::Run;
use crate::findings::{self, Finding};
use crate::heap::Texts;
use crate::metrics::{self, Needs, TypeNames};
use crate::prelude::*;
use crate::profile::Unit;

/// Sums of all recordings that are held at a time, of some 100 bytes each.
const MOST_SUMS: usize = 8 << 20;

/// The tables that recordings are measured by.
pub(super) fn tables() -> Vec<&'static str> {
    let subjects = Subject::ALL.map(Subject::table);
    let others = ["trace", "process", "callsite", "frame", TypeNames::TABLE, "gc", metrics::TABLE, findings::TABLE];
    subjects.into_iter().chain(others).chain(Needs::tables()).collect()
}

/// The sums of a recording's subject.
#[derive(Clone, Debug)]
pub(super) struct Subjects {
    pub(super) unit: Unit,
    pub(super) places: Places,
    pub(super) others: Others,
    pub(super) all: Sum,
}

/// A recording that was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The labels, metrics and fingerprint.
    pub run: Run,
    /// The length; `None` when that is not known.
    pub seconds: Option<f64>,
    /// Requests that came in, as the metric `request.server.count` has them; `None` when none were recorded.
    pub requests: Option<f64>,
    /// The findings of its rules.
    pub findings: Vec<Finding>,
    pub(super) subjects: Vec<(Subject, std::result::Result<Subjects, Absent>)>,
}

impl Borrow<Run> for Measured {
    fn borrow(&self) -> &Run {
        &self.run
    }
}

impl Measured {
    /// Whether the recording has what the subject is measured by.
    pub fn has(&self, subject: Subject) -> bool {
        self.of(subject).is_ok()
    }

    pub(super) fn of(&self, subject: Subject) -> std::result::Result<&Subjects, Absent> {
        let found = self.subjects.iter().find(|(of, _)| *of == subject);
        found.map_or(Err(Absent::Table(subject.table())), |(_, found)| found.as_ref().map_err(|absent| *absent))
    }
}

/// Measures recordings. Names are kept once for all of them.
pub struct Measurer {
    by: By,
    texts: Texts,
    sums: usize,
}

impl Measurer {
    /// Rows are distinguished by this.
    pub fn new(by: By) -> Measurer {
        Measurer { by, texts: Texts::default(), sums: 0 }
    }

    /// Measures a recording; `run` is what [`crate::check::runs`] says of it.
    pub fn measure(&mut self, recording: &Recording<'_>, run: Run) -> Result<Measured> {
        let figure = |name: &str| run.metrics.iter().find(|metric| metric.name == name).and_then(|metric| metric.value);
        let seconds = figure("recording.duration").map(|ns| ns / 1e9).filter(|seconds| *seconds > 0.0);
        let requests = figure("request.server.count").filter(|requests| *requests > 0.0);
        Ok(Measured {
            seconds,
            requests,
            findings: findings::findings(recording)?,
            subjects: self.subjects(recording)?,
            run,
        })
    }

    fn subjects(&mut self, recording: &Recording<'_>) -> Result<Vec<(Subject, std::result::Result<Subjects, Absent>)>> {
        let nameless = ["callsite", "frame"].into_iter().find(|table| recording.table(table).is_err());
        if let Some(table) = nameless {
            return Ok(Subject::ALL.map(|subject| (subject, Err(Absent::Table(table)))).into());
        }
        let needs = seen(recording)?;
        let (mut found, mut raw, mut units): (Vec<_>, Vec<Raw>, Vec<Unit>) = Default::default();
        for subject in Subject::ALL {
            let absent = match summed(recording, subject, self.by, &mut self.texts)? {
                None => Some(Absent::Table(subject.table())),
                Some((sums, unit)) => match needs.missing(Some(subject.need())).filter(|_| sums.is_empty()) {
                    Some(missing) => Some(Absent::Events(missing)),
                    None => {
                        raw.push(sums);
                        units.push(unit);
                        None
                    }
                },
            };
            found.push((subject, absent));
        }
        let mut all = placed(recording, raw, self.by, &mut self.texts)?.into_iter().zip(units);
        let mut subjects = Vec::new();
        for (subject, absent) in found {
            let of = match absent {
                Some(absent) => Err(absent),
                None => {
                    let ((places, others), unit) =
                        all.next().ok_or_else(|| Error::Internal("a subject is missing".into()))?;
                    self.sums += places.len();
                    let mut all = Sum::default();
                    places.values().for_each(|sum| all.join(*sum));
                    Ok(Subjects { unit, places, others, all })
                }
            };
            subjects.push((subject, of));
        }
        if self.sums > MOST_SUMS {
            let what = format!("the recordings have more than {MOST_SUMS} methods together, of all subjects");
            return Err(Error::TooLarge(what));
        }
        Ok(subjects)
    }
}

/// Reads which events the recording has.
fn seen(recording: &Recording<'_>) -> Result<Needs> {
    let mut needs = metrics::needs()?;
    for table in Needs::tables() {
        let Ok(found) = recording.table(table) else { continue };
        for batch in found.scan().columns(Needs::columns(table).iter().copied()).batches()? {
            needs.add(table, &batch?)?;
        }
    }
    Ok(needs)
}
