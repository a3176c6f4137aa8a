//! Makes the heap graph from the rows of a walk, wherever they are.
//!
//! References are gone through twice, first to count those of each object and then to put them in place, so that the graph
//! takes 4 bytes a reference and not the 16 of a row.
#![allow(clippy::indexing_slicing, reason = "every index is a node of the graph, or a place among the types")]

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use tracequet_trace::error::{Error, Result};

use super::csr::{Counted, Csr, NOWHERE};
use super::graph::{HeapGraph, Unresolved, containing};
use super::roots::Root;
use super::snapshots::Snapshot;
use super::texts::Texts;

/// Memory that an object or a root takes at most, from reading it to its retained size.
pub const BYTES_PER_OBJECT: u64 = 64;

/// Memory that a reference takes, forwards and backwards.
pub const BYTES_PER_REFERENCE: u64 = 8;

/// Objects are looked up by the part of the heap that they lie in: 64 KiB.
const PAGE_BITS: u32 = 16;

/// A row of `gc_root`.
#[derive(Clone, Copy, Debug)]
pub(super) struct RootRow<'r> {
    pub object_id: u64,
    pub kind: &'r str,
    pub flags: u32,
    pub root_id: u64,
    pub name: Option<&'r str>,
}

/// The rows of a walk of the heap. Each can be gone through again and gives the same.
pub(super) trait WalkRows {
    /// Address, size and type of each object.
    fn objects(&self, each: &mut dyn FnMut(u64, u64, u64) -> Result<()>) -> Result<()>;
    /// Object and target of each reference.
    fn references(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()>;
    /// Key and value of each dependent handle.
    fn dependents(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()>;
    /// Roots.
    fn roots(&self, each: &mut dyn FnMut(RootRow<'_>) -> Result<()>) -> Result<()>;
    /// The names of types, in the order of these ids; `None` where it is not known.
    fn type_names(&self, ids: &[u64]) -> Result<Vec<Option<Arc<str>>>>;
    /// Fills in the names of methods.
    fn method_names(&self, wanted: &mut HashMap<u64, Option<Arc<str>>>) -> Result<()>;
}

/// Makes the graph of a snapshot.
pub(super) fn build(rows: &dyn WalkRows, snapshot: &Snapshot, memory: u64) -> Result<HeapGraph> {
    let walk = Walk { rows, snapshot, memory };
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

struct Walk<'r> {
    rows: &'r dyn WalkRows,
    snapshot: &'r Snapshot,
    memory: u64,
}

/// Addresses, sizes, types with the number of objects that were left out, names of types.
type Objects = (Vec<u64>, Vec<u64>, (Vec<u32>, u64), Vec<Arc<str>>);

impl Walk<'_> {
    /// Fails when this many take more memory than allowed.
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
            format!("{} MB are allowed", megabytes(self.memory))
        };
        Err(Error::OverMemory(format!(
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
        let mut types = HashMap::<u64, u32, RandomState>::default();
        self.rows.objects(&mut |address, size, kind| {
            let next = types.len() as u32;
            objects.push((address, size, *types.entry(kind).or_insert(next)));
            if objects.len().is_multiple_of(1 << 16) { self.check(objects.len() as u64, 0) } else { Ok(()) }
        })?;
        self.check(objects.len() as u64, 0)?;
        let (names, places) = self.type_names(types)?;
        objects.sort_unstable_by_key(|(address, ..)| *address);
        let listed = objects.len();
        objects.dedup_by_key(|(address, ..)| *address);
        let repeated = (listed - objects.len()) as u64;
        let addresses = objects.iter().map(|(address, ..)| *address).collect();
        let sizes = objects.iter().map(|(_, size, _)| *size).collect();
        let types = objects.iter().map(|(.., kind)| places[*kind as usize]).collect();
        Ok((addresses, sizes, (types, repeated), names))
    }

    /// The names of the types without repetition, and for each place of a type the place of its name.
    fn type_names(&self, types: HashMap<u64, u32, RandomState>) -> Result<(Vec<Arc<str>>, Vec<u32>)> {
        let mut ids = vec![0; types.len()];
        types.into_iter().for_each(|(id, place)| ids[place as usize] = id);
        let (mut names, mut places, mut known) = (Vec::new(), Vec::new(), HashMap::<Arc<str>, u32>::new());
        for (id, name) in ids.iter().zip(self.rows.type_names(&ids)?) {
            let name = name.unwrap_or_else(|| format!("type {id:x}").into());
            places.push(*known.entry(name.clone()).or_insert_with(|| {
                names.push(name);
                names.len() as u32 - 1
            }));
        }
        Ok((names, places))
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
        self.rows.references(&mut |object, _| {
            counted.count(source(object));
            if counted.edges().is_multiple_of(1 << 16) { self.check(objects, counted.edges()) } else { Ok(()) }
        })?;
        let strong = counted.edges();
        self.rows.dependents(&mut |key, _| {
            counted.count(source(key));
            if counted.edges().is_multiple_of(1 << 16) { self.check(objects, counted.edges()) } else { Ok(()) }
        })?;
        let edges = counted.edges();
        self.check(objects, edges)?;
        let mut filling = counted.allocate().ok_or_else(|| Error::Internal("too many references".into()))?;
        let mut add = |object_id: u64, target_id: u64| -> Result<()> {
            let from = source(object_id);
            if from == NOWHERE {
                unresolved.without_object += 1;
                return Ok(());
            }
            let target = pages.find(addresses, target_id);
            unresolved.without_target += u64::from(target.is_none() && target_id != 0);
            filling.add(from, target.unwrap_or(NOWHERE));
            Ok(())
        };
        self.rows.references(&mut add)?;
        self.rows.dependents(&mut add)?;
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
        let mut texts = Texts::default();
        self.rows.roots(&mut |RootRow { object_id: address, kind, flags, root_id, name }| {
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
            let (kind, name) = (texts.keep(kind)?, name.map(|name| texts.keep(name)).transpose()?);
            roots.push(Root { node, kind, flags, id: root_id, name });
            let all = (addresses.len() + roots.len()) as u64;
            if roots.len().is_multiple_of(1 << 12) { self.check(all, references) } else { Ok(()) }
        })?;
        let is_stack = |root: &&mut Root| &*root.kind == "stack" && root.name.is_none() && root.id != 0;
        let mut methods: HashMap<u64, Option<Arc<str>>> =
            roots.iter_mut().filter(is_stack).map(|root| (root.id, None)).collect();
        if !methods.is_empty() {
            self.rows.method_names(&mut methods)?;
        }
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
