//! The objects of a snapshot, their references and roots, in arrays.

use std::sync::Arc;

use super::addresses::Addresses;
use super::csr::Csr;
use super::distance::distances;
use super::roots::Root;
use super::snapshots::Snapshot;
use super::walk::Shape;

/// Contradictions in a walk of the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
pub struct HeapGraph {
    /// Of which collection.
    pub snapshot: Snapshot,
    /// Address of each object.
    pub addresses: Addresses,
    /// Bytes and type of each object.
    pub(crate) objects: Objects,
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
    /// The number of edges of dependent handles.
    pub dependent_count: u64,
    /// References that did not fit.
    pub unresolved: Unresolved,
}

/// Bytes and type of each object: most objects share both with many others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    shapes: Vec<Shape>,
    /// A place in `shapes` for each node.
    places: Vec<u32>,
}

impl Objects {
    pub(super) fn new(shapes: Vec<Shape>, places: Vec<u32>) -> Objects {
        Objects { shapes, places }
    }

    /// Of objects with these bytes and types.
    #[cfg(test)]
    pub(crate) fn of(objects: impl Iterator<Item = (u64, u32)>) -> Objects {
        let shapes: Vec<Shape> = objects.map(|(size, kind)| Shape { size, kind }).collect();
        Objects { places: (0..shapes.len() as u32).collect(), shapes }
    }

    #[inline]
    fn shape(&self, node: u32) -> Shape {
        let place = self.places.get(node as usize);
        place.and_then(|place| self.shapes.get(*place as usize)).copied().unwrap_or(Shape { size: 0, kind: u32::MAX })
    }
}

impl HeapGraph {
    /// The number of objects.
    pub fn len(&self) -> u32 {
        self.addresses.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// The address of an object; 0 of what is no object.
    pub fn address(&self, node: u32) -> u64 {
        self.addresses.get(node).unwrap_or_default()
    }

    /// The bytes of an object.
    #[inline]
    pub fn size(&self, node: u32) -> u64 {
        self.objects.shape(node).size
    }

    /// The type of an object: a place in `type_names`.
    #[inline]
    pub fn kind(&self, node: u32) -> u32 {
        self.objects.shape(node).kind
    }

    /// Type and bytes of an object.
    #[inline]
    pub(super) fn object(&self, node: u32) -> (u32, u64) {
        let Shape { size, kind } = self.objects.shape(node);
        (kind, size)
    }

    /// Type and bytes of each object.
    pub fn objects(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        (0..self.len()).map(|node| self.object(node))
    }

    /// The object at this address, or the one that the address lies in.
    pub fn find(&self, address: u64) -> Option<u32> {
        let node = self.addresses.at_or_below(address)?;
        let offset = address.checked_sub(self.addresses.get(node)?)?;
        (offset == 0 || offset < self.size(node)).then_some(node)
    }

    /// The objects that have roots, in the order of [`HeapGraph::roots`].
    pub fn root_nodes(&self) -> Vec<u32> {
        self.roots.iter().map(|root| root.node).collect()
    }

    /// References from a root to each object: 1 for a root's own object, 0 when no root leads to it.
    pub fn distances(&self) -> Vec<u32> {
        distances(&self.references, &self.root_nodes())
    }

    /// The name of an object's type.
    pub fn type_name(&self, node: u32) -> &str {
        self.type_names.get(self.kind(node) as usize).map_or("", |name| name)
    }

    /// The bytes of all objects.
    pub fn size_bytes(&self) -> u64 {
        self.objects().fold(0, |sum, (_, size)| sum.saturating_add(size))
    }
}
