//! Collections with their ranges, kept while a recording is converted, for survival over time and lifetimes. More than a few go
//! to an unnamed temporary file, and come back collection by collection.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use tracequet_facts::fact::{Fact, GcMovedRange, GcSurvivingRange};
use tracequet_trace::error::{Error, Result};
use tracequet_trace::source::temporary;

use super::rules::{Bound, Collection, Range};
use crate::allowance::Allowance;

/// Ranges and bounds in memory: 64 bytes each, in lists that double when they grow.
const MAX_IN_MEMORY: u64 = 1 << 19;

/// Memory of a range or a bound, in a list that doubles when it grows.
const ROW_STORED: u64 = 2 * size_of::<Range>() as u64;

/// Bytes of a range or a bound in the file.
const ROW: usize = 32;

/// Memory of a collection.
const COLLECTION_STORED: u64 = 512;

/// What a row of the file is.
const BEFORE: u64 = 0;
const AFTER: u64 = 1;
const WHOLE: u64 = 2;
const CLAMPED: u64 = 3;

fn row(numbers: [u64; 4]) -> [u8; ROW] {
    let mut bytes = [0; ROW];
    for (place, number) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
        *place = number.to_le_bytes();
    }
    bytes
}

fn numbers(bytes: &[u8; ROW]) -> [u64; 4] {
    let mut numbers = [0; 4];
    for (number, place) in numbers.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *number = u64::from_le_bytes(*place);
    }
    numbers
}

/// The collections of a recording.
#[derive(Debug)]
pub struct SpilledCollections {
    allowance: Allowance,
    collections: BTreeMap<u32, Stored>,
    /// Ranges and bounds in memory, and how many may be.
    held: u64,
    most_held: u64,
    file: Option<File>,
    /// Rows in the file.
    written: u64,
    failed: Option<io::Error>,
}

#[derive(Debug, Default)]
struct Stored {
    collection: Collection,
    /// Rows of the file that are its: the first, and how many.
    written: Vec<(u64, u64)>,
}

impl SpilledCollections {
    /// For collections, and the ranges of any one, that take at most this many bytes.
    pub fn new(memory: u64) -> SpilledCollections {
        SpilledCollections {
            allowance: Allowance::new(memory),
            collections: BTreeMap::new(),
            held: 0,
            most_held: MAX_IN_MEMORY.min(memory / ROW_STORED),
            file: None,
            written: 0,
            failed: None,
        }
    }

    /// Moves the rows in memory to the file.
    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(temporary::file()?),
        };
        file.seek(SeekFrom::End(0))?;
        let mut out = BufWriter::with_capacity(256 << 10, file);
        for stored in self.collections.values_mut() {
            let Collection { before, after, ranges, .. } = &mut stored.collection;
            let first = self.written;
            for bound in before.drain(..) {
                out.write_all(&row([bound.start, bound.length, u64::from(bound.generation), BEFORE]))?;
                self.written += 1;
            }
            for bound in after.drain(..) {
                out.write_all(&row([bound.start, bound.length, u64::from(bound.generation), AFTER]))?;
                self.written += 1;
            }
            for range in ranges.drain(..) {
                let kind = if range.clamped { CLAMPED } else { WHOLE };
                out.write_all(&row([range.start, range.length, range.new_start, kind]))?;
                self.written += 1;
            }
            (*before, *after, *ranges) = Default::default();
            if self.written > first {
                stored.written.push((first, self.written - first));
                self.allowance.take(size_of::<(u64, u64)>() as u64);
            }
        }
        self.held = 0;
        out.flush()
    }

    /// A collection with all its rows, in the order in which they came.
    fn whole<'s>(file: Option<&mut File>, stored: &'s Stored) -> io::Result<Cow<'s, Collection>> {
        let Some(file) = file.filter(|_| !stored.written.is_empty()) else {
            return Ok(Cow::Borrowed(&stored.collection));
        };
        let later = &stored.collection;
        // Nearly all rows are ranges.
        let rows = stored.written.iter().map(|(_, count)| *count).sum::<u64>();
        let ranges = Vec::with_capacity(usize::try_from(rows).unwrap_or_default() + later.ranges.len());
        let mut whole = Collection { before: Vec::new(), after: Vec::new(), ranges, ..*later };
        for (first, count) in &stored.written {
            file.seek(SeekFrom::Start(first * ROW as u64))?;
            let mut input = io::BufReader::with_capacity(256 << 10, &mut *file).take(count * ROW as u64);
            let mut bytes = [0; ROW];
            for _ in 0..*count {
                input.read_exact(&mut bytes)?;
                let [start, length, third, kind] = numbers(&bytes);
                let bound = || Bound { generation: third as u8, start, length };
                match kind {
                    BEFORE => whole.before.push(bound()),
                    AFTER => whole.after.push(bound()),
                    kind => whole.ranges.push(Range { start, new_start: third, length, clamped: kind == CLAMPED }),
                }
            }
        }
        whole.before.extend_from_slice(&later.before);
        whole.after.extend_from_slice(&later.after);
        whole.ranges.extend_from_slice(&later.ranges);
        Ok(Cow::Owned(whole))
    }

    fn collection(&mut self, gc_id: u32, rows: u64) -> &mut Stored {
        self.held += rows;
        self.collections.entry(gc_id).or_insert_with(|| {
            self.allowance.take(COLLECTION_STORED);
            Stored { collection: Collection { gc_id, ..Collection::default() }, ..Stored::default() }
        })
    }

    /// Takes ranges. Those of a collection come one behind the other.
    fn ranges<R>(&mut self, rows: &[R], gc_id: impl Fn(&R) -> u32, range: impl Fn(&R) -> Range) {
        for rows in rows.chunk_by(|a, b| gc_id(a) == gc_id(b)) {
            let Some(gc_id) = rows.first().map(&gc_id) else { continue };
            self.collection(gc_id, rows.len() as u64).collection.ranges.extend(rows.iter().map(&range));
        }
    }

    /// Takes facts of collections and their ranges. Beyond the memory, and where the file fails, all are dropped.
    pub fn fact(&mut self, fact: &Fact<'_>) {
        if self.allowance.is_spent() {
            return;
        }
        match fact {
            Fact::Gc(rows) => {
                for row in rows.iter() {
                    let collection = &mut self.collection(row.gc_id, 0).collection;
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
                    let Collection { before, after, .. } = &mut self.collection(row.gc_id, 1).collection;
                    let bounds = if row.phase == "end" { after } else { before };
                    let (generation, start, length) = (row.generation, row.range_start, row.range_length);
                    bounds.push(Bound { generation, start, length });
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
        self.allowance.is_spent()
    }

    /// All of them in the order of their starts; the bounds and ranges of some are in the file.
    pub(crate) fn headers(&self) -> impl Iterator<Item = &Collection> {
        self.collections.values().map(|stored| &stored.collection)
    }

    /// Whether any collection lists what survived.
    pub(crate) fn lists_survivors(&self) -> bool {
        self.collections.values().any(|stored| !stored.collection.ranges.is_empty() || !stored.written.is_empty())
    }

    /// Calls `each` with the collections in the order of their starts. When `each` returns false, or one has more ranges than memory is allowed for, that
    /// was too much, and [`Self::refused`] says so.
    pub(crate) fn each(&mut self, mut each: impl FnMut(&Collection) -> Result<bool>) -> Result<()> {
        if let Some(failed) = self.failed.take() {
            return Err(Error::io("temporary file")(failed));
        }
        let ids: Vec<u32> = self.collections.keys().copied().collect();
        for id in ids {
            let Some(stored) = self.collections.get(&id) else { continue };
            let Collection { before, after, ranges, .. } = &stored.collection;
            let rows = stored.written.iter().map(|(_, count)| *count).sum::<u64>();
            let rows = rows + (before.len() + after.len() + ranges.len()) as u64;
            if !self.allowance.allows(rows.saturating_mul(ROW_STORED)) {
                self.allowance.end();
                return Ok(());
            }
            let whole = SpilledCollections::whole(self.file.as_mut(), stored).map_err(Error::io("temporary file"))?;
            if !each(&whole)? {
                self.allowance.end();
                return Ok(());
            }
        }
        Ok(())
    }
}
