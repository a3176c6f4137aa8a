//! What became of an object: whether it survived a collection, and where it is now. Read from the tables of a dataset.
//!
//! An object at `o` survived when `start <= o < start + length` for any surviving range, or any moved range by its old
//! start. One that is in none is dead only if its generation was collected, and if the recording tells all of that.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::error::{Error, Result};

/// The tables that the answer is found in.
pub const TABLES: [&str; 4] = ["gc", "gc_generation_range", "gc_surviving_range", "gc_moved_range"];

/// What a collection did to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It survived where it was.
    Alive,
    /// It survived and is elsewhere.
    Moved,
    /// Its generation was collected, and it is in no range.
    Dead,
    /// Its generation was not collected: it stays where it is, alive or not.
    NotCollected,
    /// The recording does not say; why.
    Unknown(&'static str),
}

impl Fate {
    /// The word that `survived(gc, address)` has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Fate::Alive => "alive",
            Fate::Moved => "moved",
            Fate::Dead => "dead",
            Fate::NotCollected => "not_collected",
            Fate::Unknown(_) => "unknown",
        }
    }
}

/// What one collection did to the object.
#[derive(Clone, Debug)]
pub struct Step {
    /// The collection.
    pub gc_id: u32,
    /// Highest generation that it collected.
    pub generation: Option<u8>,
    /// `blocking`, `background` or `foreground`.
    pub kind: Option<String>,
    /// When it began, nanoseconds since the recording began.
    pub start_ns: i64,
    /// Where the object was.
    pub address: u64,
    /// What became of it.
    pub fate: Fate,
    /// Where it is now; `None` when it is dead or that is not known.
    pub address_after: Option<u64>,
    /// Generation by the bounds at the start of the collection.
    pub generation_before: Option<u8>,
    /// Generation by the bounds at its end.
    pub generation_after: Option<u8>,
}

struct Gc {
    generation: Option<u8>,
    kind: Option<String>,
    start_ns: i64,
    complete: bool,
    ranges: u64,
}

/// A range with where it went.
struct Range {
    start: u64,
    new_start: u64,
    length: u64,
    clamped: bool,
}

#[derive(Default)]
struct Heap {
    /// Generation, start, length.
    before: Vec<(u8, u64, u64)>,
    after: Vec<(u8, u64, u64)>,
    ranges: Vec<Range>,
}

/// What became of the object at `address` in collection `gc`; with `follow` also in all that came after, as long as it
/// is known where the object is. The ranges of the collections that are asked for are held in memory.
pub fn survived(dataset: &Path, gc: u32, address: u64, follow: bool) -> Result<Vec<Step>> {
    let wanted = |id: u32| if follow { id >= gc } else { id == gc };
    let collections = collections(dataset)?;
    if !collections.contains_key(&gc) {
        let ids = collections.keys().next().zip(collections.keys().next_back());
        let there = ids.map_or("it has none".into(), |(first, last)| format!("it has {first} to {last}"));
        return Err(Error::Usage(format!("{}: no collection {gc}, {there}", dataset.display())));
    }
    let mut heaps: HashMap<u32, Heap> = HashMap::new();
    bounds(dataset, &wanted, &mut heaps)?;
    ranges(dataset, &wanted, &mut heaps)?;
    let mut steps = Vec::new();
    let mut address = address;
    for (gc_id, row) in collections.range(gc..).filter(|(id, _)| wanted(**id)) {
        let heap = heaps.remove(gc_id).unwrap_or_default();
        let step = step(*gc_id, row, &heap, address);
        let next = step.address_after;
        steps.push(step);
        match next {
            Some(next) => address = next,
            None => break,
        }
    }
    Ok(steps)
}

/// The generation at an address; `None` when no bounds, or several that disagree, hold it.
fn generation(bounds: &[(u8, u64, u64)], address: u64) -> Option<u8> {
    let mut found = bounds.iter().filter(|(_, start, length)| holds(*start, *length, address)).map(|(g, ..)| *g);
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

fn holds(start: u64, length: u64, address: u64) -> bool {
    address.checked_sub(start).is_some_and(|offset| offset < length)
}

fn step(gc_id: u32, gc: &Gc, heap: &Heap, address: u64) -> Step {
    let before = generation(&heap.before, address);
    let found = heap.ranges.iter().find(|r| holds(r.start, r.length, address));
    let (fate, address_after) = match found {
        Some(range) => {
            let after = range.new_start.wrapping_add(address - range.start);
            (if after == address { Fate::Alive } else { Fate::Moved }, Some(after))
        }
        None => match absent(gc, heap, before, address) {
            Fate::NotCollected => (Fate::NotCollected, Some(address)),
            fate => (fate, None),
        },
    };
    Step {
        gc_id,
        generation: gc.generation,
        kind: gc.kind.clone(),
        start_ns: gc.start_ns,
        address,
        fate,
        address_after,
        generation_before: before,
        generation_after: address_after.and_then(|after| generation(&heap.after, after)),
    }
}

/// What it means that no range holds an address. `views.sql` has the same rules.
fn absent(gc: &Gc, heap: &Heap, before: Option<u8>, address: u64) -> Fate {
    let (Some(before), Some(collected)) = (before, gc.generation) else {
        return Fate::Unknown("the generation of the address or of the collection is not known");
    };
    let is_full = collected >= 2;
    // A background collection leaves the two youngest generations alone.
    let maybe_background = is_full && gc.kind.as_deref() != Some("blocking");
    if !is_full && before > collected || maybe_background && gc.kind.is_some() && before < 2 {
        return Fate::NotCollected;
    }
    if maybe_background && before < 2 {
        return Fate::Unknown("the collection may have run in the background, which leaves this generation alone");
    }
    if !gc.complete {
        return Fate::Unknown("start or end of the collection is not in the recording, nor maybe some of its ranges");
    }
    if gc.ranges == 0 {
        return Fate::Unknown("no ranges of the collection were recorded");
    }
    let nearest = heap.ranges.iter().filter(|r| r.start <= address).max_by_key(|r| r.start);
    if nearest.is_some_and(|r| r.clamped) {
        return Fate::Unknown("behind a range of 4 GiB or more whose length is not recorded");
    }
    Fate::Dead
}

fn batches(
    dataset: &Path,
    table: &str,
    columns: &[&str],
    mut each: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<()> {
    let path = dataset.join(format!("{table}.parquet"));
    if !path.is_file() {
        let why = "expected a dataset of one recording with this table, as Parquet";
        return Err(Error::Usage(format!("{}: is not there, {why}", path.display())));
    }
    let damaged = |e: &dyn std::fmt::Display| Error::Unreadable {
        path: path.clone(),
        offset: 0,
        what: e.to_string(),
        expected: "a Parquet file".into(),
    };
    let file = File::open(&path).map_err(Error::io(&path))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| damaged(&e))?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
    let reader = builder.with_projection(mask).with_batch_size(16 << 10).build().map_err(|e| damaged(&e))?;
    for batch in reader {
        each(&batch.map_err(|e| damaged(&e))?)?;
    }
    Ok(())
}

/// A column of numbers, or of text, row by row.
struct Column<'a>(&'a dyn Array);

impl<'a> Column<'a> {
    fn of(batch: &'a RecordBatch, name: &str) -> Result<Column<'a>> {
        let column = batch.column_by_name(name).ok_or_else(|| Error::Usage(format!("no column {name}")))?;
        Ok(Column(column.as_ref()))
    }

    fn number(&self, row: usize) -> Option<u64> {
        if self.0.is_null(row) {
            return None;
        }
        match self.0.data_type() {
            DataType::UInt64 => Some(self.0.as_primitive::<UInt64Type>().value(row)),
            DataType::UInt32 => Some(u64::from(self.0.as_primitive::<UInt32Type>().value(row))),
            DataType::UInt8 => Some(u64::from(self.0.as_primitive::<UInt8Type>().value(row))),
            DataType::Int64 => Some(self.0.as_primitive::<Int64Type>().value(row) as u64),
            DataType::Boolean => Some(u64::from(self.0.as_boolean().value(row))),
            _ => None,
        }
    }

    fn small(&self, row: usize) -> Option<u8> {
        self.number(row).and_then(|n| u8::try_from(n).ok())
    }

    fn id(&self, row: usize) -> u32 {
        self.number(row).and_then(|n| u32::try_from(n).ok()).unwrap_or_default()
    }

    fn text(&self, row: usize) -> Option<&str> {
        if self.0.is_null(row) {
            return None;
        }
        match self.0.data_type() {
            DataType::Utf8 => Some(self.0.as_string::<i32>().value(row)),
            DataType::Dictionary(..) => {
                let column = self.0.as_dictionary_opt::<Int32Type>()?;
                let key = usize::try_from(column.keys().value(row)).ok()?;
                let values = column.values().as_string_opt::<i32>()?;
                (key < values.len()).then(|| values.value(key))
            }
            _ => None,
        }
    }
}

fn collections(dataset: &Path) -> Result<BTreeMap<u32, Gc>> {
    let mut found = BTreeMap::new();
    let names =
        ["gc_id", "generation", "kind", "start_ts_ns", "complete", "surviving_range_count", "moved_range_count"];
    batches(dataset, "gc", &names, |batch| {
        let [id, generation, kind, start, complete, surviving, moved] = names.map(|name| Column::of(batch, name));
        let (id, generation, kind, start) = (id?, generation?, kind?, start?);
        let (complete, surviving, moved) = (complete?, surviving?, moved?);
        for row in 0..batch.num_rows() {
            let gc = Gc {
                generation: generation.small(row),
                kind: kind.text(row).map(str::to_owned),
                start_ns: start.number(row).unwrap_or_default() as i64,
                complete: complete.number(row) == Some(1),
                ranges: surviving.number(row).unwrap_or_default().saturating_add(moved.number(row).unwrap_or_default()),
            };
            found.insert(id.id(row), gc);
        }
        Ok(())
    })?;
    Ok(found)
}

fn bounds(dataset: &Path, wanted: &dyn Fn(u32) -> bool, heaps: &mut HashMap<u32, Heap>) -> Result<()> {
    let names = ["gc_id", "at", "generation", "range_start", "range_length"];
    batches(dataset, "gc_generation_range", &names, |batch| {
        let [id, at, generation, start, length] = names.map(|name| Column::of(batch, name));
        let (id, at, generation, start, length) = (id?, at?, generation?, start?, length?);
        for row in (0..batch.num_rows()).filter(|row| wanted(id.id(*row))) {
            let heap = heaps.entry(id.id(row)).or_default();
            let list = if at.text(row) == Some("end") { &mut heap.after } else { &mut heap.before };
            if let (Some(g), Some(start), Some(length)) = (generation.small(row), start.number(row), length.number(row))
            {
                list.push((g, start, length));
            }
        }
        Ok(())
    })
}

fn ranges(dataset: &Path, wanted: &dyn Fn(u32) -> bool, heaps: &mut HashMap<u32, Heap>) -> Result<()> {
    for (table, old, new) in
        [("gc_surviving_range", "range_start", "range_start"), ("gc_moved_range", "old_range_start", "new_range_start")]
    {
        batches(dataset, table, &["gc_id", old, new, "range_length", "length_kind"], |batch| {
            let [id, start, new_start, length, kind] =
                ["gc_id", old, new, "range_length", "length_kind"].map(|name| Column::of(batch, name));
            let (id, start, new_start, length, kind) = (id?, start?, new_start?, length?, kind?);
            for row in (0..batch.num_rows()).filter(|row| wanted(id.id(*row))) {
                let (Some(start), Some(new_start), Some(length)) =
                    (start.number(row), new_start.number(row), length.number(row))
                else {
                    continue;
                };
                let clamped = kind.text(row) == Some("clamped");
                heaps.entry(id.id(row)).or_default().ranges.push(Range { start, new_start, length, clamped });
            }
            Ok(())
        })?;
    }
    Ok(())
}
