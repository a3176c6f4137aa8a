//! Encoders of payloads. Each appends bytes to a buffer; rows come as iterators, so that a profiler need not copy what
//! the runtime passed.

/// Appends an unsigned LEB128 number.
#[inline]
pub fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number: 0, -1, 1, -2 as 0, 1, 2, 3.
#[inline]
pub fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, (value.wrapping_shl(1) ^ (value >> 63)) as u64);
}

/// Appends text: its bytes, counted, in UTF-8.
pub fn text(out: &mut Vec<u8>, text: &str) {
    varint(out, text.len() as u64);
    out.extend(text.as_bytes());
}

/// A run of numbers of which each is near the one before.
#[inline]
fn deltas(out: &mut Vec<u8>, shift: u32, values: impl Iterator<Item = u64>) {
    let mut last = 0u64;
    for value in values {
        zigzag(out, value.wrapping_sub(last) as i64 >> shift);
        last = value;
    }
}

fn shift_of(values: impl Iterator<Item = u64>) -> u32 {
    values.fold(0, |bits, v| bits | v).trailing_zeros().min(3)
}

/// Rows of (start, length): count, shift, starts as gaps to the end before, lengths.
pub fn surviving(out: &mut Vec<u8>, rows: impl Iterator<Item = [u64; 2]> + Clone) {
    varint(out, rows.clone().count() as u64);
    let shift = shift_of(rows.clone().flatten());
    out.push(shift as u8);
    let mut end = 0u64;
    for [start, length] in rows.clone() {
        zigzag(out, start.wrapping_sub(end) as i64 >> shift);
        end = start.wrapping_add(length);
    }
    rows.for_each(|[_, length]| varint(out, length >> shift));
}

/// Rows of (old start, new start, length): as [`surviving`] with the old start, then the new starts as gaps to the end
/// before. A compaction leaves few gaps.
pub fn moved(out: &mut Vec<u8>, rows: impl Iterator<Item = [u64; 3]> + Clone) {
    varint(out, rows.clone().count() as u64);
    let shift = shift_of(rows.clone().flatten());
    out.push(shift as u8);
    let mut end = 0u64;
    for [start, _, length] in rows.clone() {
        zigzag(out, start.wrapping_sub(end) as i64 >> shift);
        end = start.wrapping_add(length);
    }
    rows.clone().for_each(|[_, _, length]| varint(out, length >> shift));
    let mut end = rows.clone().next().map_or(0, |[old, _, _]| old);
    for [_, new, length] in rows {
        zigzag(out, new.wrapping_sub(end) as i64 >> shift);
        end = new.wrapping_add(length);
    }
}

/// Objects one after the other, as differences. RootReferences has only these.
pub fn objects(out: &mut Vec<u8>, rows: impl Iterator<Item = u64> + Clone) {
    varint(out, rows.clone().count() as u64);
    let shift = shift_of(rows.clone());
    out.push(shift as u8);
    deltas(out, shift, rows);
}

/// Rows of numbers in columns, each column as differences. RootReferences2: object, kind, flags, id;
/// ConditionalWeakTableElementReferences: key, value, handle; ObjectsAllocatedByClass: class, count.
#[allow(clippy::indexing_slicing, reason = "a column is below N")]
pub fn columns<const N: usize>(out: &mut Vec<u8>, rows: impl Iterator<Item = [u64; N]> + Clone) {
    varint(out, rows.clone().count() as u64);
    for column in 0..N {
        #[allow(clippy::indexing_slicing, reason = "column counts up to N")]
        let values = rows.clone().map(|row| row[column]);
        let shift = shift_of(values.clone());
        out.push(shift as u8);
        deltas(out, shift, values);
    }
}

/// Generation bounds: what the call returned, and rows of (generation, start, length, reserved).
pub fn bounds(out: &mut Vec<u8>, hresult: u32, rows: impl Iterator<Item = [u64; 4]> + Clone) {
    out.extend(hresult.to_le_bytes());
    columns(out, rows);
}

/// Bounds of the heap that is not collected: what the call returned, and rows of (start, length, reserved).
pub fn non_gc_bounds(out: &mut Vec<u8>, hresult: u32, rows: impl Iterator<Item = [u64; 3]> + Clone) {
    out.extend(hresult.to_le_bytes());
    columns(out, rows);
}

/// Results of GetGenerationBounds and GetNonGCHeapBounds, for the two records that carry them.
#[derive(Clone, Copy, Debug, Default)]
pub struct BoundsSaid<'a> {
    /// The HRESULT of GetGenerationBounds.
    pub hresult: u32,
    /// Rows of (generation, start, length, reserved).
    pub rows: &'a [[u64; 4]],
    /// The HRESULT of GetNonGCHeapBounds; `NOT_ASKED` when it was not asked.
    pub non_gc_hresult: u32,
    /// Rows of (start, length, reserved).
    pub non_gc: &'a [[u64; 3]],
}

impl BoundsSaid<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        bounds(out, self.hresult, self.rows.iter().copied());
        non_gc_bounds(out, self.non_gc_hresult, self.non_gc.iter().copied());
    }
}

/// GarbageCollectionStarted: how many generations it knows, a bit for each that is collected, the reason, the bounds.
pub fn gc_started(out: &mut Vec<u8>, generations: u32, collected: u32, reason: u32, said: &BoundsSaid<'_>) {
    [generations, collected, reason].iter().for_each(|n| varint(out, u64::from(*n)));
    said.put(out);
}

/// GarbageCollectionFinished: the bounds.
pub fn gc_finished(out: &mut Vec<u8>, said: &BoundsSaid<'_>) {
    said.put(out);
}

/// ObjectReferences: the object, its class, and what it refers to.
pub fn object(out: &mut Vec<u8>, object: u64, class: u64, references: impl Iterator<Item = u64> + Clone) {
    varint(out, object);
    varint(out, class);
    objects(out, references);
}

/// Records that are some numbers, one after the other.
pub fn numbers(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|n| varint(out, *n));
}

/// Records that are some numbers and then a text.
pub fn named(out: &mut Vec<u8>, numbers: &[u64], name: &str) {
    self::numbers(out, numbers);
    text(out, name);
}
