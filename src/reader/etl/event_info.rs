//! Schemas that the merge step embeds for events of registered providers: one `TRACE_EVENT_INFO` each.
//!
//! ```text
//!  0x00 provider   0x20 id, version, ...   0x30 source   0x34 .. 0x60 offsets of strings   0x64 properties, 0x68 of
//!  them at the top   0x70 properties of 24 bytes: flags, name, type or members, count, length
//! ```
//! Source: `tdh.h` of the SDK; checked on the schemas of merged files, whose events they cover to the last byte.

use super::tdh_types::{Description, field, value};
use crate::bytes::{utf16_end, utf16_string};
use crate::guid::Guid;
use crate::reader::{EtwForm, Field, FieldType};

const PROPERTIES: usize = 0x70;
const PROPERTY: usize = 24;
/// Structures inside of structures at most, and fields in all.
const MAX_DEPTH: usize = 8;
const MAX_FIELDS: usize = 4096;

const IS_STRUCT: u32 = 1;
const LENGTH_IS_PROPERTY: u32 = 2;
const COUNT_IS_PROPERTY: u32 = 4;
const FIXED_COUNT: u32 = 0x20;

/// Which events a schema describes: provider or class, id or opcode, version.
pub fn subject(blob: &[u8]) -> Option<(Guid, u32, u16, EtwForm)> {
    let guid = |at: usize| blob.get(at..).and_then(|b| b.first_chunk()).map(|b| Guid(*b));
    let source = u32_at(blob, 0x30)?;
    let version = u16::from(*blob.get(0x22)?);
    match source {
        // XML manifest.
        0 => Some((guid(0)?, u32::from(u16_at(blob, 0x20)?), version, EtwForm::Manifest)),
        // WBEM class.
        1 => Some((guid(0x10)?, u32::from(*blob.get(0x25)?), version, EtwForm::Classic)),
        _ => None,
    }
}

/// Reads a schema for events of processes with pointers of `pointer_size` bytes.
pub fn parse(blob: &[u8], pointer_size: u8) -> Description {
    let text = |at| text(blob, u32_at(blob, at).unwrap_or(0));
    let (task, opcode) = (text(0x44), text(0x48));
    let name = match (task.is_empty(), opcode.is_empty() || opcode == "Info") {
        (false, true) => task,
        (false, false) => format!("{task}/{opcode}"),
        (true, _) => opcode,
    };
    let message = Some(text(0x4C)).filter(|m| !m.is_empty());
    let mut budget = MAX_FIELDS;
    let count = u32_at(blob, 0x64).unwrap_or(0) as usize;
    let top = u32_at(blob, 0x68).unwrap_or(0) as usize;
    let whole = count.checked_mul(PROPERTY).is_some_and(|bytes| bytes <= blob.len().saturating_sub(PROPERTIES));
    let schema = Schema { blob, count, pointer_size };
    let fields = match whole && top <= count {
        true => schema.fields(0, top, 0, &mut budget),
        false => Err("the embedded schema of this event is damaged"),
    };
    let (fields, unreadable) = match fields {
        Ok(fields) => (Some(fields), None),
        Err(why) => (None, Some(why)),
    };
    Description { provider: text(0x34), name, message, fields, unreadable }
}

/// The name of the provider.
pub fn provider(blob: &[u8]) -> String {
    text(blob, u32_at(blob, 0x34).unwrap_or(0))
}

fn u32_at(blob: &[u8], at: usize) -> Option<u32> {
    blob.get(at..).and_then(|b| b.first_chunk()).map(|b| u32::from_le_bytes(*b))
}

fn u16_at(blob: &[u8], at: usize) -> Option<u16> {
    blob.get(at..).and_then(|b| b.first_chunk()).map(|b| u16::from_le_bytes(*b))
}

/// A string of the blob; empty when there is none. Names of some providers end in spaces.
fn text(blob: &[u8], offset: u32) -> String {
    let from = blob.get(offset as usize..).filter(|_| offset != 0).unwrap_or_default();
    let end = utf16_end(from).unwrap_or(from.len() / 2 * 2);
    utf16_string(from.get(..end).unwrap_or_default()).trim().to_owned()
}

struct Schema<'a> {
    blob: &'a [u8],
    count: usize,
    pointer_size: u8,
}

impl Schema<'_> {
    fn fields(&self, first: usize, count: usize, depth: usize, budget: &mut usize) -> Result<Vec<Field>, &'static str> {
        let end = first.checked_add(count).filter(|end| *end <= self.count && depth <= MAX_DEPTH);
        let end = end.ok_or("the embedded schema of this event is damaged")?;
        let mut fields = Vec::new();
        for index in first..end {
            *budget = budget.checked_sub(1).ok_or("the embedded schema of this event has too many fields")?;
            let at = PROPERTIES + index * PROPERTY;
            let damaged = "the embedded schema of this event is damaged";
            let property = self.blob.get(at..at + PROPERTY).ok_or(damaged)?;
            let flags = u32_at(property, 0).unwrap_or(0);
            let word = |at| u16_at(property, at).unwrap_or(0);
            // The place of a property that says a count or a length, among the fields of this structure.
            let place = |index: u16| {
                let before = (first..first + fields.len()).contains(&usize::from(index));
                before.then(|| usize::from(index) - first).ok_or("a count that is no earlier field of its structure")
            };
            let length = word(18);
            let kind = if flags & IS_STRUCT != 0 {
                FieldType::Object(self.fields(word(8).into(), word(10).into(), depth + 1, budget)?)
            } else if flags & LENGTH_IS_PROPERTY != 0 {
                let unit = unit(word(8));
                FieldType::Counted(Box::new(unit.ok_or("a length of a value that has none")?), place(length)?)
            } else {
                self.single(word(8), word(10), length)?
            };
            let kind = match (flags & COUNT_IS_PROPERTY != 0, word(16)) {
                (true, index) => FieldType::Counted(Box::new(kind), place(index)?),
                (false, count) if count > 1 || flags & FIXED_COUNT != 0 => FieldType::FixedArray(Box::new(kind), count),
                _ => kind,
            };
            fields.push(field(text(self.blob, u32_at(property, 4).unwrap_or(0)), kind));
        }
        Ok(fields)
    }

    fn single(&self, in_type: u16, out_type: u16, length: u16) -> Result<FieldType, &'static str> {
        match (in_type, length) {
            (1 | 2 | 14, 1..) => {
                let unit = unit(in_type).ok_or("a type that is not known")?;
                Ok(FieldType::FixedArray(Box::new(unit), length))
            }
            // An IPv6 address.
            (14, 0) if out_type == 24 || out_type == 9 => Ok(FieldType::FixedArray(Box::new(FieldType::U8), 16)),
            (22 | 300, _) => Ok(FieldType::Utf16Bytes),
            (23 | 301, _) => Ok(FieldType::Array(Box::new(FieldType::Utf8Unit))),
            (25, _) => Ok(FieldType::Array(Box::new(FieldType::U8))),
            _ => value(in_type, out_type, self.pointer_size).ok_or("a type that is not known in the embedded schema"),
        }
    }
}

/// What the length of a value counts.
fn unit(in_type: u16) -> Option<FieldType> {
    match in_type {
        1 => Some(FieldType::Utf16Unit),
        2 => Some(FieldType::Utf8Unit),
        14 => Some(FieldType::U8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A schema with these properties, all at the top, and names `abc...`.
    fn blob(properties: &[[u32; 6]], top: u32) -> Vec<u8> {
        let mut out = vec![0u8; PROPERTIES];
        out[0x64..0x68].copy_from_slice(&(properties.len() as u32).to_le_bytes());
        out[0x68..0x6C].copy_from_slice(&top.to_le_bytes());
        for property in properties {
            out.extend(property.iter().flat_map(|v| v.to_le_bytes()));
        }
        out
    }

    fn kinds(blob: &[u8]) -> Result<Vec<FieldType>, &'static str> {
        let parsed = parse(blob, 4);
        let fields = parsed.fields.ok_or_else(|| parsed.unreadable.unwrap())?;
        Ok(fields.into_iter().map(|f| f.kind).collect())
    }

    #[test]
    fn counts_lengths_and_structures_are_read() {
        use FieldType::*;
        let count = [0, 0, 6, 0, 1, 0];
        let strings = [LENGTH_IS_PROPERTY, 0, 1, 0, 1, 0];
        assert_eq!(kinds(&blob(&[count, strings], 2)).unwrap(), [U16, Counted(Box::new(Utf16Unit), 0)]);
        let structure = [IS_STRUCT | COUNT_IS_PROPERTY, 0, 2 | 1 << 16, 0, 0, 0];
        let member = [0, 0, 16, 0, 1, 0];
        let expected = Counted(Box::new(Object(vec![field("", Pointer32)])), 0);
        assert_eq!(kinds(&blob(&[count, structure, member], 2)).unwrap(), [U16, expected]);
        let bytes = [0, 0, 14, 0, 1 | 12 << 16, 0];
        assert_eq!(kinds(&blob(&[bytes], 1)).unwrap(), [FixedArray(Box::new(U8), 12)]);
    }

    #[test]
    fn hostile_schemas_are_refused() {
        assert!(kinds(&[]).is_ok_and(|fields| fields.is_empty()), "nothing is said of the fields");
        assert_eq!(subject(&[0; 0x20]), None);
        let mut many = blob(&[], 0);
        many[0x64..0x68].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(kinds(&many).is_err(), "more properties than bytes");
        assert!(kinds(&blob(&[[0, 0, 8, 0, 1, 0]], 2)).is_err(), "more at the top than in all");
        let itself = [IS_STRUCT, 0, 1 << 16, 0, 0, 0];
        assert!(kinds(&blob(&[itself], 1)).is_err(), "a structure in itself");
        let beyond = [IS_STRUCT, 0, 9 | 200 << 16, 0, 0, 0];
        assert!(kinds(&blob(&[beyond], 1)).is_err(), "members beyond the last");
        let later = [COUNT_IS_PROPERTY, 0, 8, 0, 7, 0];
        assert!(kinds(&blob(&[later], 1)).is_err(), "a count behind its array");
        // 100 structures that hold each other: the number of fields is bounded.
        let wide: Vec<_> = (0..100).map(|_| [IS_STRUCT, 0, 100 << 16, 0, 0, 0]).collect();
        assert!(kinds(&blob(&wide, 100)).is_err());
        assert_eq!(text(&blob(&[], 0), 0x7FFF_FFFF), "");
    }
}
