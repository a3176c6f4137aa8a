//! Collections of a recording, and what they mean for memory: which generations it collects, what its ranges say,
//! and when nothing can be said. The fate of an object, survival over time and lifetimes all go by these rules.

mod numbers;
mod packed_rows;
mod read;
mod rules;
pub(crate) mod spans;
mod spilled;

pub(crate) use numbers::Numbers;
pub use read::{RANGE_TABLES, TABLES};
pub use rules::{Bound, Collection, Doubt, Range, RangeKind, collects, leaves};
pub(crate) use rules::{Effect, LARGE, NO_GENERATION, Place, agreed, as_span, bounds, shadows};
pub use spilled::SpilledCollections;
