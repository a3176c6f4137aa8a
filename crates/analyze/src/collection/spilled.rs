//! Collections as they come from a conversion: their ranges wait packed, in memory and in a temporary file, and come
//! back collection by collection.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use tracequet_facts::fact::{Fact, GcMovedRange, GcSurvivingRange};
use tracequet_trace::source::temporary;

use super::packed_rows::{PackedRows, Unpacked};
use super::rules::{Bound, Collection, Range};
use crate::allowance::Allowance;
use crate::prelude::*;

/// Bytes of packed ranges and bounds in memory. They are in lists that double when they grow.
const MAX_IN_MEMORY: u64 = 16 << 20;

/// Memory of a range or a bound of the collection that comes back: as it is, and as it is followed along.
const ROW_STORED: u64 = 2 * size_of::<Range>() as u64;

/// Memory of a collection.
const COLLECTION_STORED: u64 = 512;

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
    /// The number of bounds and ranges, and of ranges alone.
    rows: u64,
    ranges: u64,
    /// The last of them; those before are in the file.
    packed: PackedRows,
    /// Bytes of the file that are its: the first, and how many.
    written: Vec<(u64, u64)>,
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

    /// Gives a collection all its rows, in the order in which they came.
    fn fill(
        file: Option<&mut File>,
        stored: &Stored,
        unpacked: &mut Unpacked,
        whole: &mut Collection,
    ) -> io::Result<()> {
        // The lists are used again.
        let Collection { mut before, mut after, mut ranges, .. } = std::mem::take(whole);
        before.clear();
        after.clear();
        ranges.clear();
        ranges.reserve_exact(usize::try_from(stored.ranges).unwrap_or_default());
        *whole = Collection { before, after, ranges, ..stored.collection };
        unpacked.begin(stored.rows);
        if let Some(file) = file {
            for (first, count) in &stored.written {
                file.seek(SeekFrom::Start(*first))?;
                unpacked.feed((&mut *file).take(*count), whole)?;
            }
        }
        unpacked.feed(stored.packed.bytes(), whole)?;
        unpacked.end(whole)
    }

    fn collection(&mut self, gc_id: u32) -> &mut Stored {
        self.collections.entry(gc_id).or_insert_with(|| {
            self.allowance.take(COLLECTION_STORED);
            Stored { collection: Collection { gc_id, ..Collection::default() }, ..Stored::default() }
        })
    }

    /// Adds rows to a collection.
    fn pack(&mut self, gc_id: u32, rows: u64, pack: impl FnOnce(&mut Stored)) {
        let stored = self.collection(gc_id);
        let before = stored.packed.bytes().len();
        stored.rows += rows;
        pack(stored);
        let added = stored.packed.bytes().len() - before;
        self.held += added as u64;
    }

    /// Takes ranges. Those of a collection come one behind the other.
    fn ranges<R>(&mut self, rows: &[R], gc_id: impl Fn(&R) -> u32, range: impl Fn(&R) -> Range) {
        for rows in rows.chunk_by(|a, b| gc_id(a) == gc_id(b)) {
            let Some(gc_id) = rows.first().map(&gc_id) else { continue };
            let count = rows.len() as u64;
            self.pack(gc_id, count, |stored| {
                stored.ranges += count;
                stored.packed.ranges(rows.iter().map(&range));
            });
        }
    }

    /// Takes facts of collections and their ranges. Beyond the memory, and where the file fails, all are dropped.
    pub fn fact(&mut self, fact: &Fact<'_>) {
        if self.allowance.is_spent {
            return;
        }
        match fact {
            Fact::Gc(rows) => {
                for row in rows.iter() {
                    let collection = &mut self.collection(row.gc_id).collection;
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
                    let bound = Bound { generation, start, length };
                    self.pack(row.gc_id, 1, |stored| stored.packed.bound(&bound, row.phase == "end"));
                }
            }
            Fact::GcSurvivingRange(rows) => {
                let range = |row: &GcSurvivingRange| Range {
                    start: row.range_start,
                    new_start: row.range_start,
                    length: row.range_length,
                    clamped: row.length_kind == "clamped",
                };
                self.ranges(rows, |row| row.gc_id, range);
            }
            Fact::GcMovedRange(rows) => {
                let range = |row: &GcMovedRange| Range {
                    start: row.old_range_start,
                    new_start: row.new_range_start,
                    length: row.range_length,
                    clamped: row.length_kind == "clamped",
                };
                self.ranges(rows, |row| row.gc_id, range);
            }
            _ => {}
        }
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

    /// Calls `each` with the collections in the order of their starts. When `each` returns false, or one has more
    /// ranges than memory is allowed for, that was too much, and [`Self::refused`] says so.
    pub(crate) fn each(&mut self, mut each: impl FnMut(&Collection) -> Result<bool>) -> Result<()> {
        if let Some(failed) = self.failed.take() {
            return Err(Error::io("temporary file")(failed));
        }
        let (mut unpacked, mut whole) = (Unpacked::default(), Collection::default());
        for stored in self.collections.values() {
            let is_allowed = self.allowance.allows(stored.rows.saturating_mul(ROW_STORED));
            if is_allowed {
                SpilledCollections::fill(self.file.as_mut(), stored, &mut unpacked, &mut whole)
                    .map_err(Error::io("temporary file"))?;
            }
            if !is_allowed || !each(&whole)? {
                self.allowance.end();
                return Ok(());
            }
        }
        Ok(())
    }
}
