//! Rows that a conversion keeps for an answer, in place of the tables with most rows.

use crate::collection::SpilledCollections;
use crate::heap::KeptWalk;

/// The rows of some tables that the dataset of a recording lacks.
#[derive(Debug, Default)]
pub struct Kept {
    /// Objects and references of a heap dump.
    pub walk: Option<KeptWalk>,
    /// Collections with their ranges.
    pub collections: Option<SpilledCollections>,
}
