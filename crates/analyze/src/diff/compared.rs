//! Two recordings, or two sets of them, that are compared: what `diff` prints and a page of differences draws.

use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::read::{Dataset, Recording};

use super::findings::{self, FindingChange};
use super::heap_change::HeapChange;
use super::measure::{self, Measured, Measurer};
use super::metrics::{self, MetricRow};
use super::place::By;
use super::sections::{self, Per, Section};
use super::sums::Subject;
use crate::check::{FINGERPRINT_TABLES, LabelTest, incomparable, runs};
use crate::findings::Input;
use crate::heap::{self, Snapshot, snapshots};
use crate::samples::can_tell;

/// The options of a comparison of two sides.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The divisor of amounts; `None`: [`Per::Request`] where all recordings have requests, else [`Per::Second`].
    pub per: Option<Per>,
    /// A change of at most this part of the base counts as noise.
    pub noise: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options { per: None, noise: 0.05 }
    }
}

/// The differences between two sides.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The divisor of amounts where they change.
    pub per: Per,
    /// CPU, allocations, exceptions, locks, waits.
    pub sections: Vec<Section>,
    /// Findings that came, went, or weigh more or less, those beyond noise first.
    pub findings: Vec<FindingChange>,
    /// All metrics: those that changed by more than noise first, and of these what users wait for.
    pub metrics: Vec<MetricRow>,
    /// Whether there are enough recordings on both sides for a test of what chance makes.
    pub is_tested: bool,
}

/// Compares two sides.
pub fn difference(base: &[Measured], new: &[Measured], options: Options) -> Result<Difference> {
    let per = options.per.unwrap_or_else(|| sections::usual(base, new));
    Ok(Difference {
        per,
        sections: Subject::ALL.into_iter().map(|of| sections::section(of, base, new, per, options.noise)).collect(),
        findings: findings::changes(base, new, options.noise),
        metrics: metrics::rows(base, new, options.noise)?,
        is_tested: can_tell(base.len(), new.len()),
    })
}

/// A side: where its recordings are, and what was measured of them.
#[derive(Default)]
struct Side<'s> {
    measured: Vec<Measured>,
    /// The last walk of the heap of each recording that has one.
    walks: Vec<(Recording<'s>, Snapshot)>,
    notes: Vec<String>,
    /// Whether a recording could not be read.
    has_failed: bool,
}

/// Two recordings, or two sets of them, that were compared.
#[derive(Debug)]
pub struct Compared {
    /// The recordings of the base.
    pub base: Vec<Measured>,
    /// The recordings that are compared with it.
    pub new: Vec<Measured>,
    /// The differences in sections, findings and metrics.
    pub difference: Difference,
    /// The differences of the heaps; `None` where the heaps are not compared.
    pub heap: Option<HeapChange>,
    /// Why the sides cannot be compared.
    pub incomparable: Option<String>,
    /// Sentences on what was left out, with the reasons.
    pub notes: Vec<String>,
    /// Whether something is missing on a side, or the sides cannot be compared.
    pub has_losses: bool,
}

impl Compared {
    /// Makes the next steps of findings commands that run, on the recording of each: for the inputs of the base and of
    /// the new side.
    pub fn name_steps(&mut self, [base, new]: [Input<'_>; 2]) {
        for change in &mut self.difference.findings {
            let input = if change.is_of_base { base } else { new };
            change.finding.next_step = change.finding.command(&input(&change.trace_id));
        }
    }

    /// Why the sides cannot be compared, and what was left out.
    pub fn said(&self) -> impl Iterator<Item = &String> {
        self.incomparable.iter().chain(&self.notes)
    }
}

/// The recordings of a dataset that pass all tests of their labels.
pub type Chosen<'c> = (&'c Dataset, &'c [LabelTest]);

/// The tables that sides are compared by, each once. Of those that a dataset does not have nothing is said.
pub fn tables() -> Vec<&'static str> {
    let mut all: Vec<&str> = measure::tables();
    all.extend(heap::TABLES.iter().chain(&FINGERPRINT_TABLES));
    all.sort_unstable();
    all.dedup();
    all
}

/// Compares two sides. `memory` bounds the graph of a heap: a larger one is left out. Fails when a side has no
/// recording that could be read, or a table cannot be read.
pub fn compared(base: Chosen<'_>, new: Chosen<'_>, by: By, options: Options, memory: u64) -> Result<Compared> {
    let mut measurer = Measurer::new(by);
    let base = side(base, &mut measurer)?;
    let new = side(new, &mut measurer)?;
    if base.measured.is_empty() || new.measured.is_empty() {
        return Err(Error::Usage("the baseline or the new set has no recording that could be read".into()));
    }
    let difference = difference(&base.measured, &new.measured, options)?;
    let incomparable = incomparable(&new.measured, &base.measured);
    let is_whole = |side: &Side<'_>| !side.has_failed && !side.measured.iter().any(|one| one.run.has_losses);
    let has_losses = incomparable.is_some() || !is_whole(&base) || !is_whole(&new);
    let mut notes = [base.notes, new.notes].concat();
    let heap = heap_change(&base.walks, &new.walks, memory, &mut notes)?;
    Ok(Compared { base: base.measured, new: new.measured, difference, heap, incomparable, notes, has_losses })
}

fn side<'s>((dataset, wanted): Chosen<'s>, measurer: &mut Measurer) -> Result<Side<'s>> {
    let mut all = runs(dataset, wanted, None)?;
    all.sort_by(|a, b| (&a.start, &a.trace_id).cmp(&(&b.start, &b.trace_id)));
    let mut side = Side::default();
    for run in all {
        if run.is_failed {
            side.notes.push(format!("{} could not be read and is left out", run.trace_id));
            side.has_failed = true;
            continue;
        }
        let recording = dataset.recording(Some(&run.trace_id))?;
        if heap::TABLES.iter().all(|table| recording.table(table).is_ok()) {
            side.walks.extend(snapshots(&recording)?.pop().map(|walk| (recording, walk)));
        }
        side.measured.push(measurer.measure(&recording, run)?);
    }
    Ok(side)
}

/// The heaps of both sides; `None` where a side has no heap dump, which the notes say.
fn heap_change(
    base: &[(Recording<'_>, Snapshot)],
    new: &[(Recording<'_>, Snapshot)],
    memory: u64,
    notes: &mut Vec<String>,
) -> Result<Option<HeapChange>> {
    match (base.is_empty(), new.is_empty()) {
        (true, true) => return Ok(None),
        (true, false) => notes.push("the base has no walk of the heap, so that heaps are not compared".into()),
        (false, true) => notes.push("the new side has no walk of the heap, so that heaps are not compared".into()),
        (false, false) => match HeapChange::between(base, new, memory, None) {
            Ok(change) => return Ok(Some(change)),
            Err(error @ (Error::OverMemory(_) | Error::TooLarge(_))) => {
                notes.push(format!("heaps are not compared: {error}"));
            }
            Err(error) => return Err(error),
        },
    }
    Ok(None)
}
