//! Reads the heap graph of a snapshot from the tables of a dataset.
//!
//! References are read twice, first to count those of each object and then to put them in place, so that the graph takes
//! 4 bytes a reference and not the 16 of a row.
#![allow(clippy::indexing_slicing, reason = "every index is a node of the graph, or a place among the types")]

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::csr::{Counted, Csr, NOWHERE};
use super::graph::{HeapGraph, Unresolved, containing};
use super::names::{self, TypeIds};
use super::roots::Root;
use super::snapshots::Snapshot;
use crate::dataset::{Column, Recording, arrow_array::RecordBatch};
use crate::error::{Error, Result};

/// The tables that the graph is read from.
pub const TABLES: [&str; 7] = ["gc", "gc_root", "gc_weak_element", "heap_object", "heap_reference", "method", "type"];

/// Memory that an object or a root takes at most, from reading it to its retained size.
pub const BYTES_PER_OBJECT: u64 = 64;

/// Memory that a reference takes, forwards and backwards.
pub const BYTES_PER_REFERENCE: u64 = 8;

/// Objects are looked up by the part of the heap that they lie in: 64 KiB.
const PAGE_BITS: u32 = 16;

/// A number of a column; 0 where there is none.
pub(super) fn number(column: &Column<'_>, row: usize) -> u64 {
    column.number(row).unwrap_or_default()
}

/// Reads the graph of a snapshot. `memory` is what it may take in bytes: [`BYTES_PER_OBJECT`] for each object and root, and
/// [`BYTES_PER_REFERENCE`] for each reference. More is a usage error, before it is allocated.
pub fn read(recording: &Recording<'_>, snapshot: &Snapshot, memory: u64) -> Result<HeapGraph> {
    let walk = Walk { recording, snapshot, memory };
    let (addresses, sizes, types, type_names) = walk.objects()?;
    let mut unresolved = Unresolved { repeated_objects: types.1, ..Unresolved::default() };
    let types = types.0;
    let pages = Pages::new(&addresses);
    let (references, dependent_count) = walk.references(&addresses, &pages, &mut unresolved)?;
    drop(pages);
    let reference_count = references.1;
    let (roots, weak_roots) = walk.roots(&addresses, &sizes, reference_count, &mut unresolved)?;
    Ok(HeapGraph {
        snapshot: snapshot.clone(),
        addresses,
        sizes,
        types,
        type_names,
        references: references.0,
        roots,
        weak_roots,
        reference_count,
        dependent_count,
        unresolved,
    })
}

struct Walk<'r, 'd> {
    recording: &'r Recording<'d>,
    snapshot: &'r Snapshot,
    memory: u64,
}

/// Addresses, sizes, types with the number of objects that were left out, names of types.
type Objects = (Vec<u64>, Vec<u64>, (Vec<u32>, u64), Vec<Arc<str>>);

impl Walk<'_, '_> {
    /// Calls `each` with the rows of a table that are of the snapshot: with their columns, and the row in them.
    fn rows<const N: usize>(
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

    /// Fails when so many take more memory than allowed.
    fn check(&self, objects: u64, references: u64) -> Result<()> {
        let needed =
            objects.saturating_mul(BYTES_PER_OBJECT).saturating_add(references.saturating_mul(BYTES_PER_REFERENCE));
        let is_too_many = objects >= u64::from(u32::MAX) || references >= u64::from(u32::MAX);
        if needed <= self.memory && !is_too_many {
            return Ok(());
        }
        let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
        let limit = if is_too_many {
            "there can be at most 4,294,967,294 of each".to_owned()
        } else {
            format!("{} MB are allowed: raise --memory", megabytes(self.memory))
        };
        Err(Error::Usage(format!(
            "the heap of collection {} has {objects} objects and roots and {references} references or more, which take {} MB \
             ({BYTES_PER_OBJECT} bytes each and {BYTES_PER_REFERENCE} bytes a reference); {limit}",
            self.snapshot.gc_id,
            megabytes(needed),
        )))
    }

    fn objects(&self) -> Result<Objects> {
        let expected = self.snapshot.objects.min(self.memory / BYTES_PER_OBJECT);
        self.check(self.snapshot.objects, 0)?;
        let mut objects: Vec<(u64, u64, u32)> = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
        let mut types = TypeIds::default();
        self.rows("heap_object", ["object_id", "size_bytes", "type_id"], |[id, size, kind], row| {
            objects.push((number(id, row), number(size, row), types.place(number(kind, row))));
            if objects.len().is_multiple_of(1 << 16) { self.check(objects.len() as u64, 0) } else { Ok(()) }
        })?;
        self.check(objects.len() as u64, 0)?;
        let (names, places) = types.names(self.recording, self.snapshot.process_id)?;
        objects.sort_unstable_by_key(|(address, ..)| *address);
        let listed = objects.len();
        objects.dedup_by_key(|(address, ..)| *address);
        let repeated = (listed - objects.len()) as u64;
        let addresses = objects.iter().map(|(address, ..)| *address).collect();
        let sizes = objects.iter().map(|(_, size, _)| *size).collect();
        let types = objects.iter().map(|(.., kind)| places[*kind as usize]).collect();
        Ok((addresses, sizes, (types, repeated), names))
    }

    /// The references with their number, and how many of them are those of dependent handles.
    fn references(&self, addresses: &[u64], pages: &Pages, unresolved: &mut Unresolved) -> Result<((Csr, u64), u64)> {
        let objects = addresses.len() as u64;
        let mut counted = Counted::new(addresses.len() as u32);
        let mut last = (0, NOWHERE);
        let mut source = |object_id: u64| {
            // The references of an object follow each other.
            if last.0 != object_id || last.1 == NOWHERE {
                last = (object_id, pages.find(addresses, object_id).unwrap_or(NOWHERE));
            }
            last.1
        };
        self.rows("heap_reference", ["object_id"], |[object], row| {
            counted.count(source(number(object, row)));
            if counted.edges().is_multiple_of(1 << 16) { self.check(objects, counted.edges()) } else { Ok(()) }
        })?;
        let strong = counted.edges();
        self.rows("gc_weak_element", ["key_object_id"], |[key], row| {
            counted.count(source(number(key, row)));
            if counted.edges().is_multiple_of(1 << 16) { self.check(objects, counted.edges()) } else { Ok(()) }
        })?;
        let edges = counted.edges();
        self.check(objects, edges)?;
        let mut filling = counted.allocate().ok_or_else(|| Error::Internal("too many references".into()))?;
        let mut add = |object_id: u64, target_id: u64| {
            let from = source(object_id);
            if from == NOWHERE {
                unresolved.without_object += 1;
                return;
            }
            let target = pages.find(addresses, target_id);
            unresolved.without_target += u64::from(target.is_none() && target_id != 0);
            filling.add(from, target.unwrap_or(NOWHERE));
        };
        self.rows("heap_reference", ["object_id", "target_object_id"], |[object, target], row| {
            add(number(object, row), number(target, row));
            Ok(())
        })?;
        self.rows("gc_weak_element", ["key_object_id", "value_object_id"], |[key, value], row| {
            add(number(key, row), number(value, row));
            Ok(())
        })?;
        Ok(((filling.finish(), edges), edges - strong))
    }

    /// The strong roots, one of each object, and the number of weak ones.
    fn roots(
        &self,
        addresses: &[u64],
        sizes: &[u64],
        references: u64,
        unresolved: &mut Unresolved,
    ) -> Result<(Vec<Root>, u64)> {
        let mut roots: Vec<Root> = Vec::new();
        let mut weak = 0;
        let mut kinds: Vec<Arc<str>> = Vec::new();
        let columns = ["object_id", "root_kind", "root_flags", "root_id", "name"];
        self.rows("gc_root", columns, |[object, kind, flags, id, name], row| {
            let (address, kind, flags) =
                (number(object, row), kind.text(row).unwrap_or("unknown"), number(flags, row) as u32);
            if address == 0 {
                return Ok(());
            }
            if !Root::is_strong(kind, flags) {
                weak += 1;
                return Ok(());
            }
            let Some(node) = containing(addresses, sizes, address) else {
                unresolved.roots += 1;
                return Ok(());
            };
            let kind = match kinds.iter().find(|known| ***known == *kind) {
                Some(known) => known.clone(),
                None => {
                    kinds.push(kind.into());
                    kind.into()
                }
            };
            let name = name.text(row).map(Arc::from);
            roots.push(Root { node, kind, flags, id: number(id, row), name });
            let all = (addresses.len() + roots.len()) as u64;
            if roots.len().is_multiple_of(1 << 12) { self.check(all, references) } else { Ok(()) }
        })?;
        let is_stack = |root: &&mut Root| &*root.kind == "stack" && root.name.is_none() && root.id != 0;
        let mut methods: HashMap<u64, Option<Arc<str>>> =
            roots.iter_mut().filter(is_stack).map(|root| (root.id, None)).collect();
        names::methods(self.recording, &mut methods)?;
        for root in roots.iter_mut().filter(is_stack) {
            root.name = methods.get(&root.id).cloned().flatten();
        }
        // One of each object, and those that say most first: paths begin at them where several are as short.
        roots.sort_by_cached_key(|root| (root.node, root.rank(), root.id));
        roots.dedup_by_key(|root| root.node);
        roots.sort_by_key(Root::rank);
        Ok((roots, weak))
    }
}

/// Where the objects of each part of the heap are in the list of addresses.
struct Pages(HashMap<u64, (u32, u32), RandomState>);

impl Pages {
    fn new(addresses: &[u64]) -> Pages {
        let mut pages = HashMap::with_hasher(RandomState::default());
        let mut first = 0;
        for page in addresses.chunk_by(|a, b| a >> PAGE_BITS == b >> PAGE_BITS) {
            let end = first + page.len() as u32;
            pages.insert(page[0] >> PAGE_BITS, (first, end));
            first = end;
        }
        Pages(pages)
    }

    /// The object at an address.
    #[inline]
    fn find(&self, addresses: &[u64], address: u64) -> Option<u32> {
        let (first, end) = *self.0.get(&(address >> PAGE_BITS))?;
        let place = addresses[first as usize..end as usize].binary_search(&address).ok()?;
        Some(first + place as u32)
    }
}
