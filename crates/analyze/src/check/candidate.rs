//! Recordings that a question is about, before anything but their entries is read.

use tracequet_dataset::read::{Dataset, RecordingInfo};

use super::fingerprint::fingerprints;
use super::run::Run;
use crate::metrics::metrics_of_all;
use crate::prelude::*;
use crate::rules::matches;

/// A label that recordings have to have, or not to have: name, whether they have to, and the value, where `*` stands
/// for anything.
pub type LabelTest = (String, bool, String);

/// Whether labels pass all tests.
pub fn labelled(labels: &BTreeMap<String, String>, wanted: &[LabelTest]) -> bool {
    wanted.iter().all(|(name, equal, value)| {
        let own = labels.get(name).map_or("", String::as_str);
        matches(value, own) == *equal
    })
}

/// A candidate: a recording as its entry describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'d> {
    pub(super) trace_id: &'d str,
    /// When it began, as text that sorts; empty where that is not known.
    pub(super) start: &'d str,
    /// The labels; nothing if the entry is damaged.
    labels: Option<&'d BTreeMap<String, String>>,
    /// Whether something of it was lost, damaged or not decoded.
    pub(super) has_losses: bool,
    pub(super) is_failed: bool,
}

/// The recordings of a dataset that have all of these labels. Those that could not be read are among them, and all of
/// which the entry is damaged.
pub(super) fn candidates<'d>(dataset: &'d Dataset, wanted: &[LabelTest]) -> Vec<Candidate<'d>> {
    let read = dataset.recordings().iter().map(|info| Candidate {
        trace_id: &info.trace_id,
        start: &info.start,
        labels: Some(&info.labels),
        has_losses: has_losses(info),
        is_failed: false,
    });
    let failed = |trace_id, labels| Candidate { trace_id, start: "", labels, has_losses: true, is_failed: true };
    let unread = dataset.failed().iter().map(|info| failed(&info.trace_id, Some(&*info.labels)));
    let damaged = dataset.damaged().iter().map(|damaged| failed(&damaged.key, None));
    let has_labels = |one: &Candidate<'_>| one.labels.is_none_or(|labels| labelled(labels, wanted));
    read.chain(unread).chain(damaged).filter(has_labels).collect()
}

fn has_losses(info: &RecordingInfo) -> bool {
    info.dropped_events > 0 || !info.complete || info.status == "losses"
}

impl<'d> Candidate<'d> {
    /// That of a run.
    #[cfg(test)]
    pub(super) fn of(run: &'d Run) -> Candidate<'d> {
        let Run { trace_id, start, labels, has_losses, is_failed, is_damaged, .. } = run;
        let labels = (!is_damaged).then_some(labels);
        Candidate { trace_id, start, labels, has_losses: *has_losses, is_failed: *is_failed }
    }

    /// Whether its entry is damaged.
    pub(super) fn is_damaged(&self) -> bool {
        self.labels.is_none()
    }

    /// The value of a label.
    pub(super) fn label(&self, name: &str) -> Option<&'d str> {
        self.labels?.get(name).map(String::as_str)
    }
}

/// Reads what makes recordings comparable, and their figures.
pub(super) fn read(candidates: &[Candidate<'_>], dataset: &Dataset) -> Result<Vec<Run>> {
    let keys: Vec<&str> = candidates.iter().filter(|one| !one.is_failed).map(|one| one.trace_id).collect();
    let mut known = fingerprints(dataset, &keys)?.into_iter().zip(metrics_of_all(dataset, &keys)?);
    let run = |one: &Candidate<'_>| {
        let (fingerprint, metrics) = if one.is_failed { Default::default() } else { known.next().unwrap_or_default() };
        Run {
            trace_id: one.trace_id.to_owned(),
            start: one.start.to_owned(),
            labels: one.labels.cloned().unwrap_or_default(),
            has_losses: one.has_losses,
            is_failed: one.is_failed,
            is_damaged: one.is_damaged(),
            fingerprint,
            metrics,
        }
    };
    Ok(candidates.iter().map(run).collect())
}
