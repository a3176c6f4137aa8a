//! Collections with their ranges, as they come from a conversion or from tables: ranges wait packed, in memory and in a temporary file, and
//! come back collection by collection.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use tracequet_facts::fact::{Fact, GcMovedRange, GcSurvivingRange};
use tracequet_trace::source::temporary;

use super::packed_rows::{PackedRows, Unpacked};
use super::rules::{Bound, Collection, Range, RangeKind};
use crate::allowance::Allowance;
use crate::prelude::*;

/// Bytes of packed ranges and bounds in memory. They are in lists that double when they grow.
const MAX_IN_MEMORY: u64 = 4 << 20;

/// Memory of a range or a bound of the collection that comes back: as it is, and as it is followed along.
const ROW_STORED: u64 = 2 * size_of::<Range>() as u64;

/// Memory of a kind of ranges, in a list that doubles when it grows.
const KIND_STORED: u64 = 2 * size_of::<(RangeKind, usize)>() as u64;

/// Memory of a collection.
pub(super) const COLLECTION_STORED: u64 = 512;

/// The collections of a recording.
#[derive(Debug)]
pub struct SpilledCollections {
    allowance: Allowance,
    collections: BTreeMap<u32, Stored>,
    /// Bytes of packed rows in memory, and how many may be.
    held: u64,
    most_held: u64,
    file: Option<File>,
    /// Bytes in the file.
    written: u64,
    failed: Option<io::Error>,
}

#[derive(Debug, Default)]
struct Stored {
    /// Without bounds and ranges.
    collection: Collection,
    /// The number of ranges.
    ranges: u64,
    /// The last bounds and ranges; those before are in the file.
    packed: PackedRows,
    /// Bytes of the file that are its: the first, and how many.
    written: Vec<(u64, u64)>,
}

impl Stored {
    /// Memory of all its rows.
    fn memory(&self) -> u64 {
        let kinds = self.packed.kinds();
        let rows = self.packed.count().saturating_sub(kinds);
        rows.saturating_mul(ROW_STORED).saturating_add(kinds.saturating_mul(KIND_STORED))
    }
}

/// A range in a table, as it is listed there.
pub(crate) struct Listed {
    pub gc_id: u32,
    pub kind: RangeKind,
    pub range: Range,
}

impl Listed {
    /// A range by its starts before and after, and its length.
    pub fn of(gc_id: u32, kind: RangeKind, [start, new_start, length]: [u64; 3], length_kind: &str) -> Listed {
        Listed { gc_id, kind, range: Range { start, new_start, length, clamped: length_kind == "clamped" } }
    }
}

impl SpilledCollections {
    /// For collections, and the ranges of any one, that take at most this many bytes.
    pub fn new(memory: u64) -> SpilledCollections {
        SpilledCollections {
            allowance: Allowance::new(memory),
            collections: BTreeMap::new(),
            held: 0,
            most_held: MAX_IN_MEMORY.min(memory / 2),
            file: None,
            written: 0,
            failed: None,
        }
    }

    /// Moves the packed rows in memory to the file.
    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(temporary::file()?),
        };
        file.seek(SeekFrom::End(0))?;
        let mut out = BufWriter::with_capacity(256 << 10, file);
        for stored in self.collections.values_mut() {
            let bytes = stored.packed.take();
            if bytes.is_empty() {
                continue;
            }
            out.write_all(&bytes)?;
            stored.written.push((self.written, bytes.len() as u64));
            self.written += bytes.len() as u64;
            self.allowance.take(size_of::<(u64, u64)>() as u64);
        }
        self.held = 0;
        out.flush()
    }

    /// Gives a collection its rows, in the order in which they came. Calls `some` whenever it has got some.
    fn fill(
        file: Option<&mut File>,
        stored: &Stored,
        unpacked: &mut Unpacked,
        whole: &mut Collection,
        some: &mut dyn FnMut(&mut Collection),
    ) -> io::Result<()> {
        // The lists are used again.
        let Collection { mut before, mut after, mut ranges, mut kinds, .. } = std::mem::take(whole);
        before.clear();
        after.clear();
        ranges.clear();
        kinds.clear();
        *whole = Collection { before, after, ranges, kinds, ..stored.collection };
        unpacked.begin(stored.packed.count());
        if let Some(file) = file {
            for (first, count) in &stored.written {
                file.seek(SeekFrom::Start(*first))?;
                unpacked.feed((&mut *file).take(*count), whole, some)?;
            }
        }
        unpacked.feed(stored.packed.bytes(), whole, some)?;
        unpacked.end(whole)?;
        some(whole);
        Ok(())
    }

    /// The collection of this number, which begins when nothing of it was there.
    pub(super) fn collection(&mut self, gc_id: u32) -> &mut Collection {
        &mut self.stored(gc_id).collection
    }

    fn stored(&mut self, gc_id: u32) -> &mut Stored {
        self.collections.entry(gc_id).or_insert_with(|| {
            self.allowance.take(COLLECTION_STORED);
            Stored { collection: Collection { gc_id, ..Collection::default() }, ..Stored::default() }
        })
    }

    /// Adds rows to a collection.
    fn pack(&mut self, gc_id: u32, pack: impl FnOnce(&mut Stored)) {
        let stored = self.stored(gc_id);
        let before = stored.packed.bytes().len();
        pack(stored);
        let added = stored.packed.bytes().len() - before;
        self.held += added as u64;
    }

    /// Takes memory of a generation, at the end of a collection or at its start.
    pub(super) fn bound(&mut self, gc_id: u32, bound: &Bound, is_end: bool) {
        self.pack(gc_id, |stored| stored.packed.bound(bound, is_end));
    }

    /// Takes ranges. Those of a collection come one behind the other.
    pub(super) fn ranges(&mut self, rows: impl Iterator<Item = Listed>) {
        let mut rows = rows.peekable();
        while let Some(gc_id) = rows.peek().map(|row| row.gc_id) {
            self.pack(gc_id, |stored| {
                while let Some(Listed { kind, range, .. }) = rows.next_if(|row| row.gc_id == gc_id) {
                    stored.ranges += 1;
                    stored.packed.range(kind, &range);
                }
            });
        }
    }

    /// Drops the collections that are not among these.
    pub(super) fn only(&mut self, known: &Set<u32>) {
        self.collections.retain(|gc_id, _| known.contains(gc_id));
    }

    /// Takes facts of collections and their ranges. Beyond the memory, and where the file fails, all are dropped.
    pub fn fact(&mut self, fact: &Fact<'_>) {
        if self.allowance.is_spent {
            return;
        }
        match fact {
            Fact::Gc(rows) => {
                for row in rows.iter() {
                    let collection = self.collection(row.gc_id);
                    collection.runtime = (row.process_id, row.clr_instance_id.into());
                    collection.gc_number = row.gc_number;
                    (collection.start_ns, collection.end_ns) = (row.start_ts_ns, row.end_ts_ns);
                    collection.generation = row.generation;
                    collection.background = Collection::is_background(row.kind);
                    collection.complete = row.complete;
                }
            }
            Fact::GcGenerationRange(rows) => {
                for row in rows.iter() {
                    let (generation, start, length) = (row.generation, row.range_start, row.range_length);
                    self.bound(row.gc_id, &Bound { generation, start, length }, row.phase == "end");
                }
            }
            Fact::GcSurvivingRange(rows) => self.ranges(rows.iter().map(surviving)),
            Fact::GcMovedRange(rows) => self.ranges(rows.iter().map(moved)),
            _ => return,
        }
        self.settle();
    }

    /// Keeps what came within the memory: moves it to the file, or drops all.
    pub(super) fn settle(&mut self) {
        if self.held > self.most_held
            && let Err(error) = self.spill()
        {
            self.failed = Some(error);
            self.allowance.end();
        }
        if self.allowance.is_exceeded() {
            self.collections.clear();
            self.file = None;
        }
    }

    /// The problem when the ranges, or what is made of them, were too many: of a table that an option fills.
    pub fn refused(&self, table: &str, option: &str) -> Option<String> {
        self.allowance.refused(table, option)
    }

    /// Whether they were too many.
    pub(crate) fn is_refused(&self) -> bool {
        self.allowance.is_spent
    }

    /// All of them in the order of their starts, without bounds and ranges.
    pub(crate) fn headers(&self) -> impl Iterator<Item = &Collection> {
        self.collections.values().map(|stored| &stored.collection)
    }

    /// Whether any collection lists what survived.
    pub(crate) fn lists_survivors(&self) -> bool {
        self.collections.values().any(|stored| stored.ranges > 0)
    }

    /// Fails when the temporary file did.
    fn check(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), |failed| Err(Error::io("temporary file")(failed)))
    }

    /// Calls `each` with the collections in the order of their starts. When `each` returns false, or one has more
    /// ranges than memory is allowed for, that was too much, and [`Self::refused`] says so.
    pub(crate) fn each(&mut self, mut each: impl FnMut(&Collection) -> Result<bool>) -> Result<()> {
        self.check()?;
        let (mut unpacked, mut whole) = (Unpacked::default(), Collection::default());
        for stored in self.collections.values() {
            let is_allowed = self.allowance.allows(stored.memory());
            if is_allowed {
                whole.ranges.clear();
                whole.ranges.reserve_exact(usize::try_from(stored.ranges).unwrap_or_default());
                SpilledCollections::fill(self.file.as_mut(), stored, &mut unpacked, &mut whole, &mut |_| {})
                    .map_err(Error::io("temporary file"))?;
            }
            if !is_allowed || !each(&whole)? {
                self.allowance.end();
                return Ok(());
            }
        }
        Ok(())
    }

    /// Calls `each` with the collections in the order of their starts, each of them once or more often: with its next bounds and ranges. No
    /// memory grows with them.
    pub fn each_part(&mut self, mut each: impl FnMut(&Collection)) -> Result<()> {
        self.check()?;
        let (mut unpacked, mut part) = (Unpacked::default(), Collection::default());
        for stored in self.collections.values() {
            let mut some = |part: &mut Collection| {
                each(part);
                part.clear_rows();
            };
            SpilledCollections::fill(self.file.as_mut(), stored, &mut unpacked, &mut part, &mut some)
                .map_err(Error::io("temporary file"))?;
        }
        Ok(())
    }
}

fn surviving(row: &GcSurvivingRange) -> Listed {
    let kind = RangeKind { is_moved: false, before: row.generation_before, after: row.generation_after };
    Listed::of(row.gc_id, kind, [row.range_start, row.range_start, row.range_length], row.length_kind)
}

fn moved(row: &GcMovedRange) -> Listed {
    let kind = RangeKind { is_moved: true, before: row.generation_before, after: row.generation_after };
    Listed::of(row.gc_id, kind, [row.old_range_start, row.new_range_start, row.range_length], row.length_kind)
}
