//! Two recordings, or two sets of them, that are compared: what `diff` prints and `report` draws.

use std::path::Path;

use tracequet::Error;
use tracequet::analyze::check::{FINGERPRINT_TABLES, incomparable, runs};
use tracequet::analyze::diff::{By, Difference, Measured, Measurer, Options, difference, tables};
use tracequet::analyze::heap::{self, Snapshot, snapshots};
use tracequet::dataset::read::Recording;

use super::check::Labels;
use super::heap_diff::{self, HeapChange};
use super::opened::{self, Opened};
use super::output::print_note;
use super::own::OwnArgs;
use super::stats::note_missing_metrics;
use super::stored::note_damaged;
use super::text::clean;

/// A side: where its recordings are, and what was measured of them.
struct Side<'s> {
    measured: Vec<Measured>,
    /// The last walk of the heap of each recording that has one.
    walks: Vec<(Recording<'s>, Snapshot)>,
    notes: Vec<String>,
    /// Whether a recording could not be read.
    has_failed: bool,
}

/// Two recordings, or two sets of them, that were compared.
pub struct Compared {
    pub base: Vec<Measured>,
    pub new: Vec<Measured>,
    pub difference: Difference,
    pub heap: Option<HeapChange>,
    /// Why they cannot be compared.
    pub incomparable: Option<String>,
    /// Whether a recording could not be read.
    has_failed: bool,
    /// Notes on what was left out, and why.
    pub notes: Vec<String>,
}

impl Compared {
    /// Whether something is missing on a side, or the sides cannot be compared.
    pub fn has_losses(&self) -> bool {
        let has_losses = |side: &[Measured]| side.iter().any(|measured| measured.run.has_losses);
        self.incomparable.is_some() || self.has_failed || has_losses(&self.base) || has_losses(&self.new)
    }

    /// Writes to standard error why they cannot be compared, and what was left out.
    pub fn print_notes(&self) -> anyhow::Result<()> {
        for note in self.incomparable.iter().chain(&self.notes) {
            print_note(&format!("tracequet: {}\n", clean(note)))?;
        }
        Ok(())
    }
}

/// The recordings of a dataset, those with some labels where these are given.
pub type Chosen<'o> = (&'o Opened, Option<&'o Labels>);

/// Compares two sides.
pub fn compared(base: Chosen<'_>, new: Chosen<'_>, by: By, options: Options, memory: u64) -> anyhow::Result<Compared> {
    let mut measurer = Measurer::new(by);
    let base = side(base.0, base.1, &mut measurer)?;
    let new = side(new.0, new.1, &mut measurer)?;
    if base.measured.is_empty() || new.measured.is_empty() {
        return Err(Error::Usage("the baseline or the new set has no recording that could be read".into()).into());
    }
    let difference = difference(&base.measured, &new.measured, options)?;
    let mut notes = [base.notes, new.notes].concat();
    let heap = heap_change(&base.walks, &new.walks, memory, &mut notes)?;
    let incomparable = incomparable(&new.measured, &base.measured);
    let has_failed = base.has_failed || new.has_failed;
    Ok(Compared { base: base.measured, new: new.measured, difference, heap, incomparable, has_failed, notes })
}

/// Opens a side: a recording, a dataset, a directory of recordings, or a pattern. `others` are tables that are needed
/// beside those that are compared.
pub fn open(input: &Path, others: &[&'static str], own: &OwnArgs) -> anyhow::Result<Opened> {
    let mut wanted = tables();
    wanted.extend(heap::TABLES.iter().chain(&FINGERPRINT_TABLES).chain(others));
    wanted.sort_unstable();
    wanted.dedup();
    let opened = opened::open_all(input, &wanted, own.patterns())?;
    if !opened.is_converted() {
        note_damaged(&opened.dataset, input)?;
    }
    note_missing_metrics(&opened)?;
    Ok(opened)
}

fn side<'s>(opened: &'s Opened, wanted: Option<&Labels>, measurer: &mut Measurer) -> anyhow::Result<Side<'s>> {
    let none = Labels::default();
    let mut all = runs(&opened.dataset, wanted.unwrap_or(&none).tests(), None)?;
    all.sort_by(|a, b| (&a.start, &a.trace_id).cmp(&(&b.start, &b.trace_id)));
    let mut side = Side { measured: Vec::new(), walks: Vec::new(), notes: Vec::new(), has_failed: false };
    for run in all {
        if run.is_failed {
            side.notes.push(format!("{} could not be read and is left out", run.trace_id));
            side.has_failed = true;
            continue;
        }
        let recording = opened.dataset.recording(Some(&run.trace_id))?;
        if heap::TABLES.iter().all(|table| recording.table(table).is_ok()) {
            side.walks.extend(snapshots(&recording)?.pop().map(|walk| (recording, walk)));
        }
        side.measured.push(measurer.measure(&recording, run)?);
    }
    Ok(side)
}

/// The heaps of both sides; `None`, with the reason among the notes, where a side has none.
fn heap_change(
    base: &[(Recording<'_>, Snapshot)],
    new: &[(Recording<'_>, Snapshot)],
    memory: u64,
    notes: &mut Vec<String>,
) -> anyhow::Result<Option<HeapChange>> {
    match (base.is_empty(), new.is_empty()) {
        (true, true) => return Ok(None),
        (true, false) => notes.push("the base has no walk of the heap, so that heaps are not compared".into()),
        (false, true) => notes.push("the new side has no walk of the heap, so that heaps are not compared".into()),
        (false, false) => match heap_diff::change(base, new, memory, None) {
            Ok(change) => return Ok(Some(change)),
            Err(error @ (Error::OverMemory(_) | Error::TooLarge(_))) => {
                notes.push(format!("heaps are not compared: {error}"));
            }
            Err(error) => return Err(error.into()),
        },
    }
    Ok(None)
}
