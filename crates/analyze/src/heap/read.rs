//! Reads the heap graph of a snapshot from the tables of a dataset.

use crate::prelude::*;
use std::collections::HashMap;

use super::build::{Names, RootRow, build};
use super::graph::HeapGraph;
use super::limit::Limit;
use super::snapshots::Snapshot;
use super::texts::Texts;
use super::walk::Walk;

/// The tables that the graph is read from.
pub const TABLES: [&str; 7] = ["gc", "gc_root", "gc_weak_element", "heap_object", "heap_reference", "method", "type"];

/// Tables with a row for each object or reference.
pub const LARGE_TABLES: [&str; 3] = ["gc_weak_element", "heap_object", "heap_reference"];

/// A row of a collection.
trait OfCollection: Row {
    /// The collection.
    fn gc_id(row: &Self::Of<'_>) -> u32;
}

macro_rules! rows_of_collections {
    ($($name:ident of $table:ident { $($column:ident),+ })+) => {$(
        row! {
            struct $name of $table { gc_id, $($column),+ }
        }

        impl OfCollection for $name<'_> {
            fn gc_id(row: &Self::Of<'_>) -> u32 {
                row.gc_id
            }
        }
    )+};
}

rows_of_collections! {
    ObjectRow of heap_object { object_id, size_bytes, type_id }
    ReferenceRow of heap_reference { object_id, target_object_id }
    WeakRow of gc_weak_element { key_object_id, value_object_id }
    GcRootRow of gc_root { object_id, root_kind, root_flags, root_id, name }
}

row!(struct TypeRow of r#type { process_id, type_id, name });

row!(struct MethodRow of method { method_id, namespace, name });

/// Rows between two looks at how much memory they take.
const STEP: u64 = 1 << 16;

/// Reads the graph of a snapshot. `memory` is what it may take in bytes: [`BYTES_PER_OBJECT`] for each object and root,
/// and [`BYTES_PER_REFERENCE`] for each reference. More is an error, before it is allocated.
///
/// [`BYTES_PER_OBJECT`]: super::BYTES_PER_OBJECT
/// [`BYTES_PER_REFERENCE`]: super::BYTES_PER_REFERENCE
pub fn read(recording: &Recording<'_>, snapshot: &Snapshot, memory: u64) -> Result<HeapGraph> {
    let limit = Limit { gc_id: snapshot.gc_id, memory };
    limit.objects(snapshot.objects)?;
    let rows = Rows { recording, snapshot };
    let mut walk = Walk::default();
    let is_step = |rows: u64| rows.is_multiple_of(STEP);
    rows.each::<ObjectRow<'_>>(|row| {
        walk.object(row.object_id, row.size_bytes, row.type_id);
        if is_step(walk.object_count) { limit.check(&walk, 0) } else { Ok(()) }
    })?;
    rows.each::<ReferenceRow<'_>>(|row| {
        walk.references.push(row.object_id, row.target_object_id);
        if is_step(walk.reference_count()) { limit.check(&walk, 0) } else { Ok(()) }
    })?;
    rows.each::<WeakRow<'_>>(|row| {
        walk.dependents.push(row.key_object_id, row.value_object_id);
        if is_step(walk.reference_count()) { limit.check(&walk, 0) } else { Ok(()) }
    })?;
    build(walk, &rows, snapshot, &limit)
}

/// Makes the graph of a walk that was kept, with the names and roots of the dataset.
pub(super) fn of_kept(walk: Walk, recording: &Recording<'_>, snapshot: &Snapshot, limit: &Limit) -> Result<HeapGraph> {
    build(walk, &Rows { recording, snapshot }, snapshot, limit)
}

/// The rows of a snapshot in the tables of a recording.
struct Rows<'r, 'd> {
    recording: &'r Recording<'d>,
    snapshot: &'r Snapshot,
}

impl Rows<'_, '_> {
    /// Calls `each` with the rows of a table that are of the snapshot.
    fn each<R: OfCollection>(&self, mut each: impl FnMut(R::Of<'_>) -> Result<()>) -> Result<()> {
        let gc_id = self.snapshot.gc_id;
        let scan = self.recording.scan::<R>()?.between("gc_id", u64::from(gc_id)..=u64::from(gc_id));
        scan.each::<R>(|row| if R::gc_id(&row) == gc_id { each(row) } else { Ok(()) })
    }
}

impl Names for Rows<'_, '_> {
    fn roots(&self, each: &mut dyn FnMut(RootRow<'_>) -> Result<()>) -> Result<()> {
        self.each::<GcRootRow<'_>>(|row| {
            each(RootRow {
                object_id: row.object_id,
                kind: row.root_kind,
                flags: row.root_flags,
                root_id: row.root_id,
                name: row.name,
            })
        })
    }

    fn type_names(&self, ids: &[u64]) -> Result<Vec<Option<Arc<str>>>> {
        let mut wanted: HashMap<u64, Option<Arc<str>>> = ids.iter().map(|id| (*id, None)).collect();
        let mut texts = Texts::default();
        self.recording.each::<TypeRow<'_>>(|row| {
            if row.name.is_empty() {
                return Ok(());
            }
            let Some(place) = wanted.get_mut(&row.type_id) else { return Ok(()) };
            if place.is_none() || row.process_id == self.snapshot.process_id {
                *place = Some(texts.keep(row.name)?);
            }
            Ok(())
        })?;
        Ok(ids.iter().map(|id| wanted.get(id).cloned().flatten()).collect())
    }

    fn method_names(&self, wanted: &mut HashMap<u64, Option<Arc<str>>>) -> Result<()> {
        let mut texts = Texts::default();
        self.recording.each::<MethodRow<'_>>(|row| {
            let Some(place) = wanted.get_mut(&row.method_id) else { return Ok(()) };
            let parts: Vec<&str> = [row.namespace, row.name].into_iter().filter(|part| !part.is_empty()).collect();
            if !parts.is_empty() {
                *place = Some(texts.keep(&parts.join("."))?);
            }
            Ok(())
        })
    }
}
