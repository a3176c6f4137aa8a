//! Parsers that the parts of a recording share: checked fields, and what `schemas/corprof.md` calls columns, ranges,
//! moved ranges and text.
//!
//! Rows go into buffers of the caller. Their loops are by hand: a record may hold a million rows, and a buffer that is
//! sized once and filled in place is what keeps up with a disk.

use nom::Parser;

use crate::bytes::{ParseError, Parsed, fail, take, u8le, varuint64, zigzag};

/// Reads with `parser`, and fails at the field's own place unless the value is as expected.
pub fn expect<'a, T>(
    mut parser: impl Parser<&'a [u8], Output = T, Error = ParseError>,
    field: &'static str,
    expected: &'static str,
    is_right: impl Fn(&T) -> bool,
) -> impl FnMut(&'a [u8]) -> Parsed<'a, T> {
    move |input| match parser.parse(input) {
        Ok((_, value)) if !is_right(&value) => Err(fail(input.len(), field, expected)),
        read => read,
    }
}

/// A signed number as a varint.
#[inline]
fn varint<'a>(field: &'static str) -> impl Fn(&'a [u8]) -> Parsed<'a, i64> {
    move |input| varuint64(field)(input).map(|(rest, n)| (rest, zigzag(n)))
}

/// A count of rows that take at least `min` bytes each.
fn count<'a>(min: usize) -> impl Fn(&'a [u8]) -> Parsed<'a, usize> {
    move |input| {
        let (rest, n) = varuint64("row count")(input)?;
        match usize::try_from(n) {
            Ok(n) if n <= rest.len() / min => Ok((rest, n)),
            _ => Err(fail(input.len(), "row count", "as many rows as there are bytes left for")),
        }
    }
}

/// The number of bits by which the following value is to be shifted to the left.
fn shift(input: &[u8]) -> Parsed<'_, u32> {
    let (rest, shift) = expect(u8le("shift"), "shift", "0 to 63", |shift| *shift <= 63).parse(input)?;
    Ok((rest, u32::from(shift)))
}

/// Ranges, into columns `START` and `LENGTH` of the rows. The value is the shift.
#[allow(clippy::indexing_slicing, reason = "both columns are constants below N")]
fn ranges_in<'a, const N: usize, const START: usize, const LENGTH: usize>(
    input: &'a [u8],
    rows: &mut Vec<[u64; N]>,
) -> Parsed<'a, u32> {
    let (mut rest, (n, shift)) = (count(N), shift).parse(input)?;
    rows.clear();
    rows.reserve(n);
    // Gaps first: a start needs the length before it, and the lengths come after all gaps.
    for _ in 0..n {
        let (next, gap) = varint("range start")(rest)?;
        let mut row = [0; N];
        row[START] = gap.wrapping_shl(shift) as u64;
        rows.push(row);
        rest = next;
    }
    let mut end = 0u64;
    for row in rows.iter_mut() {
        let (next, length) = varuint64("range length")(rest)?;
        row[LENGTH] = length.wrapping_shl(shift);
        row[START] = row[START].wrapping_add(end);
        end = row[START].wrapping_add(row[LENGTH]);
        rest = next;
    }
    Ok((rest, shift))
}

/// Rows of (start, length).
pub fn ranges<'a>(rows: &mut Vec<[u64; 2]>) -> impl FnMut(&'a [u8]) -> Parsed<'a, ()> {
    move |input| ranges_in::<2, 0, 1>(input, rows).map(|(rest, _)| (rest, ()))
}

/// Rows of (old start, new start, length).
pub fn moved_ranges<'a>(rows: &mut Vec<[u64; 3]>) -> impl FnMut(&'a [u8]) -> Parsed<'a, ()> {
    move |input| {
        let (mut rest, shift) = ranges_in::<3, 0, 2>(input, rows)?;
        let mut end = rows.first().map_or(0, |[old, _, _]| *old);
        for [_, new, length] in rows.iter_mut() {
            let (next, gap) = varint("new start")(rest)?;
            *new = end.wrapping_add(gap.wrapping_shl(shift) as u64);
            end = new.wrapping_add(*length);
            rest = next;
        }
        Ok((rest, ()))
    }
}

/// Rows of N numbers, column by column.
pub fn columns<'a, const N: usize>(rows: &mut Vec<[u64; N]>) -> impl FnMut(&'a [u8]) -> Parsed<'a, ()> {
    move |input| {
        let (mut rest, n) = count(N)(input)?;
        rows.clear();
        rows.resize(n, [0; N]);
        for column in 0..N {
            let (next, shift) = shift(rest)?;
            rest = next;
            let mut value = 0u64;
            for row in rows.iter_mut() {
                let (next, change) = varint("column")(rest)?;
                value = value.wrapping_add(change.wrapping_shl(shift) as u64);
                if let Some(cell) = row.get_mut(column) {
                    *cell = value;
                }
                rest = next;
            }
        }
        Ok((rest, ()))
    }
}

/// UTF-8 behind its length; invalid UTF-8 is replaced.
pub fn text<'a>(out: &mut String) -> impl FnMut(&'a [u8]) -> Parsed<'a, ()> {
    move |input| {
        let (rest, len) = varuint64("text length")(input)?;
        let (rest, bytes) = take(usize::try_from(len).unwrap_or(usize::MAX), "text")(rest)?;
        out.clear();
        out.push_str(&String::from_utf8_lossy(bytes));
        Ok((rest, ()))
    }
}
