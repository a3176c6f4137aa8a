//! The objects of a snapshot, their references and roots, in arrays.
#![allow(clippy::indexing_slicing, reason = "every index is a node of the graph")]

use std::sync::Arc;

use super::csr::Csr;
use super::roots::Root;
use super::snapshots::Snapshot;

/// Contradictions in a walk of the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unresolved {
    /// Objects that the walk lists more than once.
    pub repeated_objects: u64,
    /// References whose object is not known, because a part of the walk is missing.
    pub without_object: u64,
    /// References to what is no listed object.
    pub without_target: u64,
    /// Roots of what is no listed object, those of nothing left aside.
    pub roots: u64,
}

/// The heap graph of a snapshot. Objects are nodes `0..n` in the order of their addresses.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HeapGraph {
    /// Of which collection.
    pub snapshot: Snapshot,
    /// Address of each object.
    pub addresses: Vec<u64>,
    /// Bytes of each object.
    pub sizes: Vec<u64>,
    /// Type of each object: a place in `type_names`.
    pub types: Vec<u32>,
    /// Names of the types.
    pub type_names: Vec<Arc<str>>,
    /// References, and those from the key to the value of a dependent handle.
    pub references: Csr,
    /// Strong roots, one of each object that has any, those that say most first.
    pub roots: Vec<Root>,
    /// Weak roots, which keep nothing alive.
    pub weak_roots: u64,
    /// References in the graph, with those of dependent handles.
    pub reference_count: u64,
    /// Those of dependent handles.
    pub dependent_count: u64,
    /// What did not fit.
    pub unresolved: Unresolved,
}

impl HeapGraph {
    /// The object at this address, or the one that the address lies in.
    pub fn find(&self, address: u64) -> Option<u32> {
        containing(&self.addresses, &self.sizes, address)
    }

    /// The objects that have roots, in the order of [`HeapGraph::roots`].
    pub fn root_nodes(&self) -> Vec<u32> {
        self.roots.iter().map(|root| root.node).collect()
    }

    /// The name of an object's type.
    pub fn type_name(&self, node: u32) -> &Arc<str> {
        &self.type_names[self.types[node as usize] as usize]
    }

    /// The bytes of all objects.
    pub fn size_bytes(&self) -> u64 {
        self.sizes.iter().fold(0, |sum, size| sum.saturating_add(*size))
    }
}

/// The object that holds an address: the last one that begins at or below it, if it reaches as far.
pub(super) fn containing(addresses: &[u64], sizes: &[u64], address: u64) -> Option<u32> {
    let place = addresses.partition_point(|start| *start <= address).checked_sub(1)?;
    let offset = address - addresses[place];
    (offset == 0 || offset < sizes[place]).then_some(place as u32)
}
