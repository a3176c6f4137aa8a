//! What changed between two sides, each of one recording or several: own methods, types on the heap, findings, metrics.
//!
//! Recordings are measured one by one ([`Measurer`]), and two lists of them are compared ([`difference`]). Of several recordings
//! a side, medians are compared, and differences that chance makes are marked by the test of [`crate::check::compare`].

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
pub use self::metrics::MetricChange;
pub use self::place::{By, Place};
pub use self::sections::{Per, Row, Section, Side, Value};
pub use self::sums::{Absent, Subject, Sum};
pub use crate::heap::Held;

use tracequet_dataset::error::Result;

/// How two sides are compared.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What amounts are divided by; `None`: [`Per::Request`] where all recordings have requests, else [`Per::Second`].
    pub per: Option<Per>,
    /// Changes of at most this part of the base count as none.
    pub noise: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options { per: None, noise: 0.05 }
    }
}

/// What changed between two sides.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Difference {
    /// What the amounts of [`Row::change`] are divided by.
    pub per: Per,
    /// CPU, allocations, exceptions, locks, waits.
    pub sections: Vec<Section>,
    /// Findings that came, went, or weigh more or less.
    pub findings: Vec<FindingChange>,
    /// Metrics that changed by more than noise.
    pub metrics: Vec<MetricChange>,
}

/// Compares two sides.
pub fn difference(base: &[Measured], new: &[Measured], options: Options) -> Result<Difference> {
    let per = options.per.unwrap_or_else(|| sections::usual(base, new));
    Ok(Difference {
        per,
        sections: Subject::ALL.into_iter().map(|of| sections::section(of, base, new, per, options.noise)).collect(),
        findings: findings::changes(base, new, options.noise),
        metrics: metrics::changes(base, new, options.noise)?,
    })
}
