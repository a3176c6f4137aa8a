//! Differences between two sides, each of one recording or several: own methods, types on the heap, findings, metrics.
//!
//! Recordings are measured one by one ([`Measurer`]), and two lists of them are compared ([`difference`]). Of several
//! recordings a side, medians are compared, and differences that chance makes are marked by the test of
//! [`crate::samples::chance`].

mod findings;
mod heap;
mod measure;
mod metrics;
mod names;
mod place;
mod sections;
mod sums;

pub use self::findings::{FindingChange, SideFinding};
pub use self::heap::{TypeAmounts, TypeChange, Walked, heap_difference, held};
pub use self::measure::{Measured, Measurer, tables};
pub use self::metrics::MetricRow;
pub use self::place::{By, Place};
pub use self::sections::{Per, Row, Section, Side, Value};
pub use self::sums::{Absent, Subject, Sum};
pub use crate::check::MetricChange;
pub use crate::heap::Held;

use crate::samples::can_tell;
use tracequet_dataset::error::Result;

/// The options of a comparison of two sides.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The divisor of amounts; `None`: [`Per::Request`] where all recordings have requests, else [`Per::Second`].
    pub per: Option<Per>,
    /// Changes of at most this part of the base count as none.
    pub noise: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options { per: None, noise: 0.05 }
    }
}

/// The differences between two sides.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Difference {
    /// The divisor of the amounts of [`Row::change`].
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
