//! The limit of the memory of a heap graph.

use tracequet_dataset::error::{Error, Result};

use super::addresses::Addresses;
use super::walk::Walk;

/// Memory that an object or a root takes at most, from its references to its retained size.
pub const BYTES_PER_OBJECT: u64 = 48;

/// Memory that a reference takes at most: its target, and for one that is not the first to its object where it comes
/// from and which is the next one.
pub const BYTES_PER_REFERENCE: u64 = 12;

/// The bytes of an object while the graph is made, beside the packed walk.
const MAKING_OBJECT: u64 = 24;
const MAKING_REFERENCE: u64 = 4;

/// The bytes of a part of the heap that lies 4 GiB from the others.
const BYTES_PER_PART: u64 = 32;

/// The most memory that a walk with this number of roots takes: the walk and its graph while the graph is made, then
/// the graph alone.
pub(super) fn needed(walk: &Walk, roots: u64) -> u64 {
    let (objects, references) = (walk.object_count.saturating_add(roots), walk.reference_count());
    let sum = |object: u64, reference: u64| {
        objects.saturating_mul(object).saturating_add(references.saturating_mul(reference))
    };
    let making = walk.bytes().saturating_add(sum(MAKING_OBJECT, MAKING_REFERENCE));
    making.max(sum(BYTES_PER_OBJECT, BYTES_PER_REFERENCE))
}

/// The limit for the graph of a collection.
pub(super) struct Limit {
    pub gc_id: u32,
    pub memory: u64,
}

impl Limit {
    /// Fails when the graph of this number of objects will take more memory than is allowed.
    pub fn objects(&self, objects: u64) -> Result<()> {
        self.allows(objects, 0, objects.saturating_mul(BYTES_PER_OBJECT))
    }

    /// Fails when the graph of a walk with this number of roots takes more memory than is allowed.
    pub fn check(&self, walk: &Walk, roots: u64) -> Result<()> {
        self.allows(walk.object_count.saturating_add(roots), walk.reference_count(), needed(walk, roots))
    }

    /// Checks a heap whose parts lie far from each other.
    pub fn check_parts(&self, walk: &Walk, addresses: &Addresses) -> Result<()> {
        self.check(walk, addresses.parts() * BYTES_PER_PART / BYTES_PER_OBJECT)
    }

    fn allows(&self, objects: u64, references: u64, needed: u64) -> Result<()> {
        let is_too_many = objects >= u64::from(u32::MAX) || references >= u64::from(u32::MAX);
        if needed <= self.memory && !is_too_many {
            return Ok(());
        }
        let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
        let limit = if is_too_many {
            "there can be at most 4,294,967,294 of each".to_owned()
        } else {
            format!("{} MB are allowed", megabytes(self.memory))
        };
        Err(Error::OverMemory(format!(
            "the heap of collection {} has {objects} objects and roots and {references} references or more, which take {} MB \
             ({BYTES_PER_OBJECT} bytes each and {BYTES_PER_REFERENCE} bytes a reference); {limit}",
            self.gc_id,
            megabytes(needed),
        )))
    }
}
