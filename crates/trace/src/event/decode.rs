//! Walks a payload by its plan and hands each value to a column.
//!
//! A [`Column`] is a place for the values of one field: an Arrow builder, or a [`super::value::ValueColumn`]. For every
//! event each column of a plan gets exactly one value or a null, so that columns stay of equal length whatever the
//! payload holds.

use super::plan::{Count, MAX_SLOTS, Node, Plan, PlanField};
use super::shown;
use crate::guid::Guid;
use crate::reader::Shown;
use crate::utf16;

/// Receives the values of one field, one per event (or per element of a list).
pub trait Column: Sized {
    /// An unsigned number of any width.
    fn uint(&mut self, value: u64);
    /// A signed number of any width.
    fn int(&mut self, value: i64);
    /// A floating-point number.
    fn float(&mut self, value: f64);
    /// A truth value.
    fn bool(&mut self, value: bool);
    /// A GUID.
    fn guid(&mut self, value: Guid);
    /// 100 ns units since 1601. Returns whether the value could not be shown as a time.
    fn file_time(&mut self, value: u64) -> bool;
    /// UTF-16 bytes. Returns whether something could not be shown as UTF-8 and was replaced.
    fn utf16(&mut self, bytes: &[u8]) -> bool;
    /// UTF-16 bytes up to the first zero unit. Returns where that is, and whether something was replaced; takes nothing
    /// when there is none.
    #[inline]
    fn utf16z(&mut self, bytes: &[u8]) -> Option<(usize, bool)> {
        let end = utf16::end(bytes)?;
        Some((end, self.utf16(bytes.get(..end)?)))
    }
    /// UTF-8 or 8-bit bytes. Returns whether something was replaced.
    fn utf8(&mut self, bytes: &[u8]) -> bool;
    /// Bytes without further meaning.
    fn bytes(&mut self, bytes: &[u8]);
    /// No value.
    fn null(&mut self);
    /// The columns of a struct's fields (without padding); each gets its value, then [`Column::end_struct`] is called.
    fn fields(&mut self) -> &mut [Self];
    /// The struct's fields have their values.
    fn end_struct(&mut self);
    /// The column of a list's elements; each element is one value, then [`Column::end_list`] is called.
    fn element(&mut self) -> &mut Self;
    /// The list has all of its elements.
    fn end_list(&mut self);
}

/// The fit of a payload to its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Fit {
    /// Bytes behind the last field.
    pub surplus: usize,
    /// The first field that could not be read whole; it and all behind it are null (a list keeps its whole elements).
    pub short: Option<ShortField>,
    /// Text held something that is no Unicode and was replaced.
    pub replaced: bool,
}

/// Index of a top-level field that was short.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShortField(pub usize);

impl Fit {
    /// Whether the columns say all that the payload says.
    pub fn is_exact(&self) -> bool {
        self.surplus == 0 && self.short.is_none() && !self.replaced
    }
}

#[derive(Clone, Copy)]
struct Walk<'p> {
    payload: &'p [u8],
    rest: &'p [u8],
    slots: [u64; MAX_SLOTS],
    /// End of the data that RelLoc and DataLoc fields reached.
    furthest: usize,
    /// Bytes that they may still refer to: several may share their data, but not without end.
    budget: usize,
    replaced: bool,
    /// Only looks whether values are whole: what is in them need not be looked at twice.
    dry: bool,
}

impl<'p> Walk<'p> {
    fn new(payload: &'p [u8]) -> Walk<'p> {
        let budget = payload.len().saturating_mul(4).max(64 << 10);
        Walk { payload, rest: payload, slots: [0; MAX_SLOTS], furthest: 0, budget, replaced: false, dry: false }
    }
}

struct Short;

/// Decodes `payload` into `columns`, one per field of the plan that is no padding.
pub fn decode<C: Column>(plan: &Plan, payload: &[u8], columns: &mut [C]) -> Fit {
    let fields = match plan.otherwise.as_slice() {
        [] => &plan.fields,
        _ if fits(&plan.fields, payload) => &plan.fields,
        others => others.iter().find(|fields| fits(fields, payload)).unwrap_or(&plan.fields),
    };
    let mut walk = Walk::new(payload);
    let mut short = None;
    let mut columns = columns.iter_mut();
    let mut last = payload;
    for (index, field) in fields.iter().enumerate() {
        if let Node::Padding(bytes) = field.node {
            walk.rest = walk.rest.get(usize::from(bytes)..).unwrap_or_default();
            continue;
        }
        let Some(column) = columns.next() else { break };
        if short.is_some() {
            column.null();
        } else if let Node::Text(shown, skip) = &field.node {
            walk.text(last, *shown, *skip, column);
        } else {
            last = walk.rest;
            if walk.field(field, column).is_err() {
                short = Some(ShortField(index));
            }
        }
    }
    let end = (payload.len() - walk.rest.len()).max(walk.furthest);
    let surplus = if short.is_some() { 0 } else { payload.len() - end.min(payload.len()) };
    Fit { surplus, short, replaced: walk.replaced }
}

/// Whether the fields take exactly the whole payload.
fn fits(fields: &[PlanField], payload: &[u8]) -> bool {
    let mut walk = Walk { dry: true, ..Walk::new(payload) };
    fields.iter().all(|f| walk.field(f, &mut Nowhere).is_ok())
        && (walk.rest.is_empty() || walk.furthest == payload.len())
}

impl<'p> Walk<'p> {
    /// Reads one field. On a short read the column got its null (or its partial list) already.
    #[inline]
    fn field<C: Column>(&mut self, field: &PlanField, column: &mut C) -> Result<(), Short> {
        if let Some(slot) = field.slot {
            let count = self.peek_count(&field.node);
            if let Some(place) = self.slots.get_mut(usize::from(slot)) {
                *place = count;
            }
        }
        self.node(&field.node, column)
    }

    fn peek_count(&self, node: &Node) -> u64 {
        let width = node.fixed_size().unwrap_or(0).min(8);
        let mut bytes = [0u8; 8];
        if let (Some(from), Some(to)) = (self.rest.get(..width), bytes.get_mut(..width)) {
            to.copy_from_slice(from);
        }
        u64::from_le_bytes(bytes)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    #[inline]
    fn node<C: Column>(&mut self, node: &Node, column: &mut C) -> Result<(), Short> {
        macro_rules! number {
            ($type:ty, $push:ident as $wide:ty) => {
                match self.array() {
                    Some(bytes) => column.$push(<$type>::from_le_bytes(bytes) as $wide),
                    None => return short(column),
                }
            };
        }
        match node {
            Node::U8 => number!(u8, uint as u64),
            Node::U16 => number!(u16, uint as u64),
            Node::U32 | Node::Pointer32 => number!(u32, uint as u64),
            Node::U64 => number!(u64, uint as u64),
            Node::I8 => number!(i8, int as i64),
            Node::I16 => number!(i16, int as i64),
            Node::I32 => number!(i32, int as i64),
            Node::I64 => number!(i64, int as i64),
            Node::F32 => number!(f32, float as f64),
            Node::F64 => number!(f64, float as f64),
            Node::Bool8 => match self.array::<1>() {
                Some([byte]) => column.bool(byte != 0),
                None => return short(column),
            },
            Node::Bool32 => match self.array() {
                Some(bytes) => column.bool(u32::from_le_bytes(bytes) != 0),
                None => return short(column),
            },
            Node::Guid => match self.array() {
                Some(bytes) => column.guid(Guid(bytes)),
                None => return short(column),
            },
            Node::FileTime => match self.array() {
                Some(bytes) => self.replaced |= column.file_time(u64::from_le_bytes(bytes)),
                None => return short(column),
            },
            Node::U16Be => match self.array() {
                Some(bytes) => column.uint(u64::from(u16::from_be_bytes(bytes))),
                None => return short(column),
            },
            Node::SystemTime => match self.array::<16>() {
                Some(bytes) => self.replaced |= column.file_time(system_time(bytes)),
                None => return short(column),
            },
            Node::Sid => return self.sid(0, column),
            Node::TokenSid(pointer_size) => return self.sid(usize::from(*pointer_size), column),
            Node::Utf16Unit => match self.array::<2>() {
                Some(unit) => self.replaced |= column.utf16(&unit),
                None => return short(column),
            },
            Node::Utf8Unit => match self.array::<1>() {
                Some(unit) => self.replaced |= column.utf8(&unit),
                None => return short(column),
            },
            Node::VarInt | Node::VarUInt => match crate::bytes::varuint64("value")(self.rest) {
                Ok((rest, value)) => {
                    self.rest = rest;
                    match node {
                        Node::VarInt => column.int(crate::bytes::zigzag(value)),
                        _ => column.uint(value),
                    }
                }
                Err(_) => return short(column),
            },
            Node::Utf16Tail if self.rest.is_empty() => column.null(),
            Node::Utf16Tail if self.rest.len().is_multiple_of(2) && utf16::end(self.rest).is_none() => {
                self.replaced |= column.utf16(std::mem::take(&mut self.rest));
            }
            Node::Utf16Z | Node::Utf16Tail => return self.utf16z(column),
            Node::AnsiZ => return self.ansiz(column),
            Node::Utf16Counted(count) => match self.counted(*count, 2) {
                Some(bytes) => self.replaced |= column.utf16(bytes),
                None => return short(column),
            },
            Node::Utf16Bytes => {
                let size = self.array().map(|bytes| usize::from(u16::from_le_bytes(bytes)));
                match size.and_then(|size| self.rest.split_at_checked(size)) {
                    Some((bytes, rest)) => {
                        self.rest = rest;
                        self.replaced |= column.utf16(bytes);
                    }
                    None => return short(column),
                }
            }
            Node::Utf8Counted(count) => match self.counted(*count, 1) {
                Some(bytes) => self.replaced |= column.utf8(bytes),
                None => return short(column),
            },
            Node::Bytes(count) => match self.counted(*count, 1) {
                Some(bytes) => column.bytes(bytes),
                None => return short(column),
            },
            Node::Struct(fields) => return self.structure(fields, column),
            Node::List(count, element) => return self.list(*count, element, column),
            Node::Padding(bytes) => self.rest = self.rest.get(usize::from(*bytes)..).unwrap_or_default(),
            // Of what stands before it, which only those who walk over fields know.
            Node::Text(..) => column.null(),
        }
        Ok(())
    }

    /// The text of the value that began where `last` does.
    fn text<C: Column>(&self, last: &[u8], shown: Shown, skip: u8, column: &mut C) {
        let value = last.get(usize::from(skip)..last.len() - self.rest.len().min(last.len()));
        match value.and_then(|value| shown::text(shown, value)) {
            Some(text) => {
                column.utf8(text.as_bytes());
            }
            None => column.null(),
        }
    }

    /// A string without its terminator keeps the rest of the payload and counts as short.
    fn utf16z<C: Column>(&mut self, column: &mut C) -> Result<(), Short> {
        match column.utf16z(self.rest) {
            Some((end, replaced)) => {
                self.replaced |= replaced;
                self.rest = self.rest.get(end + 2..).unwrap_or_default();
                Ok(())
            }
            None if self.rest.is_empty() => short(column),
            None => {
                column.utf16(self.rest.get(..self.rest.len() / 2 * 2).unwrap_or_default());
                self.rest = &[];
                Err(Short)
            }
        }
    }

    fn ansiz<C: Column>(&mut self, column: &mut C) -> Result<(), Short> {
        match self.rest.iter().position(|b| *b == 0) {
            Some(end) => {
                self.replaced |= column.utf8(self.rest.get(..end).unwrap_or_default());
                self.rest = self.rest.get(end + 1..).unwrap_or_default();
                Ok(())
            }
            None if self.rest.is_empty() => short(column),
            None => {
                column.utf8(self.rest);
                self.rest = &[];
                Err(Short)
            }
        }
    }

    /// A security identifier; behind a TOKEN_USER of two pointers when `pointer_size` is not 0.
    fn sid<C: Column>(&mut self, pointer_size: usize, column: &mut C) -> Result<(), Short> {
        if pointer_size > 0 {
            if let Some((&[0, 0, 0, 0], rest)) = self.rest.split_first_chunk::<4>() {
                self.rest = rest;
                column.utf8(b"");
                return Ok(());
            }
            let Some(rest) = self.rest.get(2 * pointer_size..) else { return short(column) };
            self.rest = rest;
        }
        let count = self.rest.get(1).copied().unwrap_or_default();
        let Some((sid, rest)) = self.rest.split_at_checked(8 + 4 * usize::from(count)) else { return short(column) };
        self.rest = rest;
        if !self.dry {
            column.utf8(sid_text(sid).as_bytes());
        }
        Ok(())
    }

    /// The bytes of `count` elements of `width` bytes; `None` when they are not all there.
    fn counted(&mut self, count: Count, width: usize) -> Option<&'p [u8]> {
        let elements = match count {
            Count::RelLoc | Count::DataLoc => return self.located(count, width),
            Count::U16 => usize::from(u16::from_le_bytes(self.array()?)),
            Count::Fixed(count) => count as usize,
            Count::Rest => self.rest.len() / width.max(1),
            Count::Slot(slot) => usize::try_from(self.slots.get(usize::from(slot)).copied()?).ok()?,
        };
        let (bytes, rest) = self.rest.split_at_checked(elements.checked_mul(width)?)?;
        self.rest = rest;
        Some(bytes)
    }

    /// The bytes that a RelLoc or DataLoc field refers to.
    fn located(&mut self, count: Count, width: usize) -> Option<&'p [u8]> {
        let word = u32::from_le_bytes(self.array()?);
        let (size, position) = ((word >> 16) as usize, (word & 0xFFFF) as usize);
        let base = if count == Count::RelLoc { self.payload.len() - self.rest.len() } else { 0 };
        let start = base.checked_add(position)?;
        let end = start.checked_add(size)?;
        let bytes = self.payload.get(start..end).filter(|bytes| width > 0 && bytes.len().is_multiple_of(width))?;
        self.budget = self.budget.checked_sub(size)?;
        self.furthest = self.furthest.max(end);
        Some(bytes)
    }

    fn structure<C: Column>(&mut self, fields: &[PlanField], column: &mut C) -> Result<(), Short> {
        let mut result = Ok(());
        let columns = column.fields();
        let mut at = 0;
        let mut last = self.rest;
        for field in fields {
            if let Node::Padding(bytes) = field.node {
                self.rest = self.rest.get(usize::from(bytes)..).unwrap_or_default();
                continue;
            }
            let inner = columns.get_mut(at);
            at += 1;
            result = match (result, inner) {
                (Err(e), Some(inner)) => {
                    inner.null();
                    Err(e)
                }
                (Ok(()), Some(inner)) => match &field.node {
                    Node::Text(shown, skip) => {
                        self.text(last, *shown, *skip, inner);
                        Ok(())
                    }
                    _ => {
                        last = self.rest;
                        self.field(field, inner)
                    }
                },
                // Only the column that keeps nothing has no columns for its fields.
                (result, None) => result.and_then(|()| self.field(field, &mut Nowhere)),
            };
        }
        column.end_struct();
        result
    }

    fn list<C: Column>(&mut self, count: Count, element: &Node, column: &mut C) -> Result<(), Short> {
        if matches!(count, Count::RelLoc | Count::DataLoc) {
            return self.located_list(count, element, column);
        }
        let announced = match count {
            Count::U16 => match self.array() {
                Some(bytes) => u64::from(u16::from_le_bytes(bytes)),
                None => return short(column),
            },
            Count::Fixed(count) => u64::from(count),
            Count::Rest => element.fixed_size().and_then(|size| self.rest.len().checked_div(size)).unwrap_or(0) as u64,
            Count::Slot(slot) => self.slots.get(usize::from(slot)).copied().unwrap_or_default(),
            Count::RelLoc | Count::DataLoc => 0,
        };
        // Elements without bytes could be repeated without end: they are refused.
        let smallest = element.min_size();
        if smallest == 0 && element.fixed_size() == Some(0) {
            column.end_list();
            return Ok(());
        }
        let fixed = element.fixed_size();
        let whole_until = if self.dry { 0 } else { self.left_before_last(element.strings()) };
        for _ in 0..announced {
            // Whole elements only: a torn one is not shown. Those of fixed size are whole when their bytes are there.
            let torn = match fixed {
                Some(size) if !element.has_locations() => self.rest.len() < size,
                _ if self.rest.len() < smallest => true,
                _ if self.rest.len() >= whole_until => false,
                _ => Walk { dry: true, ..*self }.node(element, &mut Nowhere).is_err(),
            };
            let before = self.rest.len();
            if torn || self.node(element, column.element()).is_err() || self.rest.len() == before {
                column.end_list();
                return Err(Short);
            }
        }
        column.end_list();
        Ok(())
    }

    /// Bytes that are left where the last `strings` strings of the rest have their first zero unit: what begins before
    /// it has as many, so that it is whole. None is that long when they are not found near the end.
    fn left_before_last(&self, strings: Option<usize>) -> usize {
        const NEAR: usize = 32;
        let behind = strings.and_then(|strings| strings.checked_sub(1));
        let found = behind.and_then(|behind| utf16::zero_from_end(self.rest, behind, NEAR));
        found.map_or(usize::MAX, |at| self.rest.len() - at)
    }

    fn located_list<C: Column>(&mut self, count: Count, element: &Node, column: &mut C) -> Result<(), Short> {
        let width = element.fixed_size().unwrap_or(0);
        if width == 0 {
            return short(column);
        }
        let Some(bytes) = self.located(count, width) else { return short(column) };
        let mut inside = Walk { rest: bytes, budget: 0, ..*self };
        while !inside.rest.is_empty() {
            if inside.node(element, column.element()).is_err() {
                column.end_list();
                return Err(Short);
            }
        }
        self.replaced |= inside.replaced;
        column.end_list();
        Ok(())
    }
}

/// `S-1-5-18`: revision, authority (big-endian), sub-authorities.
fn sid_text(sid: &[u8]) -> String {
    let authority = sid.get(2..8).unwrap_or_default().iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let mut text = format!("S-{}-{authority}", sid.first().copied().unwrap_or_default());
    for part in sid.get(8..).unwrap_or_default().as_chunks::<4>().0 {
        text.push_str(&format!("-{}", u32::from_le_bytes(*part)));
    }
    text
}

/// SYSTEMTIME as 100 ns units since 1601; a value beyond every calendar when it is invalid.
fn system_time(bytes: [u8; 16]) -> u64 {
    let mut fields = [0u16; 8];
    for (field, word) in fields.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *field = u16::from_le_bytes(*word);
    }
    let ns = crate::time::system_time_to_utc_ns(fields);
    ns.map_or(u64::MAX, |ns| (ns.div_euclid(100)).saturating_add(116_444_736_000_000_000).unsigned_abs())
}

#[cold]
fn short<C: Column>(column: &mut C) -> Result<(), Short> {
    column.null();
    Err(Short)
}

/// A column that keeps nothing, to see whether a payload fits.
struct Nowhere;

impl Column for Nowhere {
    fn uint(&mut self, _: u64) {}
    fn int(&mut self, _: i64) {}
    fn float(&mut self, _: f64) {}
    fn bool(&mut self, _: bool) {}
    fn guid(&mut self, _: Guid) {}
    fn file_time(&mut self, _: u64) -> bool {
        false
    }
    fn utf16(&mut self, _: &[u8]) -> bool {
        false
    }
    fn utf8(&mut self, _: &[u8]) -> bool {
        false
    }
    fn bytes(&mut self, _: &[u8]) {}
    fn null(&mut self) {}
    fn fields(&mut self) -> &mut [Self] {
        &mut []
    }
    fn end_struct(&mut self) {}
    fn element(&mut self) -> &mut Self {
        self
    }
    fn end_list(&mut self) {}
}

#[cfg(test)]
mod tests;
