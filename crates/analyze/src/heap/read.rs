//! Reads the heap graph of a snapshot from the tables of a dataset.

use std::collections::HashMap;
use std::sync::Arc;

use tracequet_dataset::read::{Column, Recording, arrow_array::RecordBatch};
use tracequet_trace::error::Result;

use super::build::{Names, RootRow, build};
use super::graph::HeapGraph;
use super::limit::Limit;
use super::snapshots::{Snapshot, number};
use super::texts::Texts;
use super::walk::Walk;

/// The tables that the graph is read from.
pub const TABLES: [&str; 7] = ["gc", "gc_root", "gc_weak_element", "heap_object", "heap_reference", "method", "type"];

/// Those of them that have a row for each object or reference.
pub const LARGE_TABLES: [&str; 3] = ["gc_weak_element", "heap_object", "heap_reference"];

/// Rows between two looks at how much memory they take.
const STEP: u64 = 1 << 16;

/// Reads the graph of a snapshot. `memory` is what it may take in bytes: [`BYTES_PER_OBJECT`] for each object and root, and
/// [`BYTES_PER_REFERENCE`] for each reference. More is an error, before it is allocated.
///
/// [`BYTES_PER_OBJECT`]: super::BYTES_PER_OBJECT
/// [`BYTES_PER_REFERENCE`]: super::BYTES_PER_REFERENCE
pub fn read(recording: &Recording<'_>, snapshot: &Snapshot, memory: u64) -> Result<HeapGraph> {
    let limit = Limit { gc_id: snapshot.gc_id, memory };
    limit.objects(snapshot.objects)?;
    let rows = Rows { recording, snapshot };
    let mut walk = Walk::default();
    let is_step = |rows: u64| rows.is_multiple_of(STEP);
    rows.each("heap_object", ["object_id", "size_bytes", "type_id"], |[id, size, kind], row| {
        walk.object(number(id, row), number(size, row), number(kind, row));
        if is_step(walk.object_count()) { limit.check(&walk, 0) } else { Ok(()) }
    })?;
    rows.each("heap_reference", ["object_id", "target_object_id"], |[object, target], row| {
        walk.references.push(number(object, row), number(target, row));
        if is_step(walk.reference_count()) { limit.check(&walk, 0) } else { Ok(()) }
    })?;
    rows.each("gc_weak_element", ["key_object_id", "value_object_id"], |[key, value], row| {
        walk.dependents.push(number(key, row), number(value, row));
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
    /// Calls `each` with the rows of a table that are of the snapshot: with their columns, and the row in them.
    fn each<const N: usize>(
        &self,
        table: &str,
        names: [&str; N],
        mut each: impl FnMut(&[Column<'_>; N], usize) -> Result<()>,
    ) -> Result<()> {
        let gc_id = u64::from(self.snapshot.gc_id);
        let columns = ["gc_id"].into_iter().chain(names);
        for batch in self.recording.table(table)?.scan().columns(columns).between("gc_id", gc_id..=gc_id).batches()? {
            let batch: RecordBatch = batch?;
            let id = Column::of(&batch, "gc_id")?;
            let mut columns = [id; N];
            for (column, name) in columns.iter_mut().zip(names) {
                *column = Column::of(&batch, name)?;
            }
            for row in (0..batch.num_rows()).filter(|row| number(&id, *row) == gc_id) {
                each(&columns, row)?;
            }
        }
        Ok(())
    }
}

impl Names for Rows<'_, '_> {
    fn roots(&self, each: &mut dyn FnMut(RootRow<'_>) -> Result<()>) -> Result<()> {
        let columns = ["object_id", "root_kind", "root_flags", "root_id", "name"];
        self.each("gc_root", columns, |[object, kind, flags, id, name], row| {
            each(RootRow {
                object_id: number(object, row),
                kind: kind.text(row).unwrap_or("unknown"),
                flags: number(flags, row) as u32,
                root_id: number(id, row),
                name: name.text(row),
            })
        })
    }

    fn type_names(&self, ids: &[u64]) -> Result<Vec<Option<Arc<str>>>> {
        const NAMES: [&str; 3] = ["process_id", "type_id", "name"];
        let mut wanted: HashMap<u64, Option<Arc<str>>> = ids.iter().map(|id| (*id, None)).collect();
        let mut texts = Texts::default();
        for batch in self.recording.table("type")?.scan().columns(NAMES).batches()? {
            let batch = batch?;
            let [process, id, name] = NAMES.map(|name| Column::of(&batch, name));
            let (process, id, name) = (process?, id?, name?);
            for row in 0..batch.num_rows() {
                let Some(name) = name.text(row).filter(|name| !name.is_empty()) else { continue };
                let Some(place) = wanted.get_mut(&number(&id, row)) else { continue };
                if place.is_none() || number(&process, row) == self.snapshot.process_id {
                    *place = Some(texts.keep(name)?);
                }
            }
        }
        Ok(ids.iter().map(|id| wanted.get(id).cloned().flatten()).collect())
    }

    fn method_names(&self, wanted: &mut HashMap<u64, Option<Arc<str>>>) -> Result<()> {
        const NAMES: [&str; 3] = ["method_id", "namespace", "name"];
        let mut texts = Texts::default();
        for batch in self.recording.table("method")?.scan().columns(NAMES).batches()? {
            let batch = batch?;
            let [id, namespace, name] = NAMES.map(|name| Column::of(&batch, name));
            let (id, namespace, name) = (id?, namespace?, name?);
            for row in 0..batch.num_rows() {
                let Some(place) = wanted.get_mut(&number(&id, row)) else { continue };
                let parts = [namespace.text(row), name.text(row)];
                let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
                if !parts.is_empty() {
                    *place = Some(texts.keep(&parts.join("."))?);
                }
            }
        }
        Ok(())
    }
}
