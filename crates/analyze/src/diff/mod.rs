//! Differences between two sides, each of one recording or several: own methods, types on the heap, findings, metrics.
//!
//! Recordings are measured one by one ([`Measurer`]), and two lists of them are compared ([`difference`]). Of several
//! recordings a side, medians are compared, and differences that chance makes are marked by the test of
//! [`crate::samples::chance`].

mod compared;
mod findings;
mod heap;
mod heap_change;
mod measure;
mod metrics;
mod names;
mod place;
mod sections;
mod shown;
mod sums;

pub use self::compared::{Chosen, Compared, Difference, Options, compared, difference, tables};
pub use self::findings::{FindingChange, SideFinding};
pub use self::heap::{TypeAmounts, TypeChange, Walked};
pub use self::heap_change::HeapChange;
pub use self::measure::{Measured, Measurer};
pub use self::metrics::MetricRow;
pub use self::place::{By, Place};
pub use self::sections::{Per, Row, Section, Side, Value};
pub use self::shown::{amount, color_of, findings_table, metrics_table, types_table};
pub use self::sums::{Absent, Subject, Sum};
pub use crate::check::MetricChange;
pub use crate::heap::Held;
