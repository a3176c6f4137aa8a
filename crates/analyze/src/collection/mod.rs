//! What a recording has of a collection, and what that means for memory: which generations it collects, what its ranges say,
//! and when nothing can be said. The fate of an object, survival over time and lifetimes all go by these rules.

mod read;
mod rules;
pub(crate) mod spans;
mod stored;

pub use read::TABLES;
pub(crate) use read::{Order, ReadCollections};
pub use rules::{Bound, Collection, Doubt, Range};
pub(crate) use rules::{Effect, LARGE, NO_GENERATION, Place, Said, agreed, as_span, bounds, shadows};
pub use stored::StoredCollections;
