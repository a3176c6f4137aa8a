//! The schema that comes with each TraceLogging event.
//!
//! ```text
//!  u16 size   tags: bytes, the top bit says that another one follows   name, zero-terminated UTF-8   fields
//!  field: name   u8 in   [u8 out, if in has 0x80   [tags, if out has 0x80]]
//!         in & 0x60: 0x20 fixed count (u16 here)   0x40 counted in the payload   0x60 custom (u16 size and bytes here)
//!         in & 0x1F = 24: a structure of the next (out & 0x7F) fields
//! ```
//! Source: `TraceLoggingDynamic.h` of microsoft/tracelogging (MIT); scalars, variable arrays and structures checked on
//! real events, fixed arrays and custom types by the description only.

use super::tdh_types::{Description, field, value};
use crate::bytes::{Parsed, fail, inner, take, u8le, u16le};
use crate::reader::{Field, FieldType};

/// Structures inside of structures at most.
const MAX_DEPTH: usize = 8;

/// Reads a schema.
pub fn parse(blob: &[u8], pointer_size: u8) -> Result<Description, &'static str> {
    let read = || {
        let (rest, size) = u16le("size")(blob)?;
        let (_, rest) = take(usize::from(size).saturating_sub(2), "schema")(rest)?;
        let (rest, ()) = tags(rest)?;
        let (mut rest, name) = name(rest)?;
        let mut fields = Vec::new();
        while !rest.is_empty() {
            let (after, next) = one_field(rest, pointer_size, 0)?;
            fields.push(next);
            rest = after;
        }
        Ok((rest, Description { name, fields: Some(fields), ..Description::default() }))
    };
    let result: Parsed<'_, Description> = read();
    match result {
        Ok((_, description)) => Ok(description),
        Err(e) => Err(inner(e).expected()),
    }
}

fn tags(mut input: &[u8]) -> Parsed<'_, ()> {
    loop {
        let (rest, byte) = u8le("tags")(input)?;
        input = rest;
        if byte < 0x80 {
            return Ok((input, ()));
        }
    }
}

fn name(input: &[u8]) -> Parsed<'_, String> {
    let Some(end) = input.iter().position(|b| *b == 0) else {
        return Err(fail(input.len(), "name", "the zero behind a name in a TraceLogging schema"));
    };
    let text = String::from_utf8_lossy(input.get(..end).unwrap_or_default()).into_owned();
    Ok((input.get(end + 1..).unwrap_or_default(), text))
}

fn one_field(input: &[u8], pointer_size: u8, depth: usize) -> Parsed<'_, Field> {
    let (input, name) = name(input)?;
    let (mut input, in_type) = u8le("type")(input)?;
    let mut out = 0;
    if in_type & 0x80 != 0 {
        (input, out) = u8le("format")(input)?;
        if out & 0x80 != 0 {
            (input, ()) = tags(input)?;
        }
    }
    let mut count = 0;
    match in_type & 0x60 {
        0x20 => (input, count) = u16le("count")(input)?,
        0x60 => {
            let (rest, size) = u16le("custom size")(input)?;
            (input, _) = take(usize::from(size), "custom schema")(rest)?;
            return Ok((input, field(name, FieldType::Array(Box::new(FieldType::U8)))));
        }
        _ => {}
    }
    let (rest, kind) = kind(input, in_type & 0x1F, out & 0x7F, pointer_size, depth)?;
    let kind = match in_type & 0x60 {
        0x20 => FieldType::FixedArray(Box::new(kind), count),
        0x40 => FieldType::Array(Box::new(kind)),
        _ => kind,
    };
    Ok((rest, field(name, kind)))
}

fn kind(input: &[u8], in_type: u8, out: u8, pointer_size: u8, depth: usize) -> Parsed<'_, FieldType> {
    let kind = match in_type {
        24 if depth >= MAX_DEPTH => {
            return Err(fail(input.len(), "type", "fewer structures inside of structures"));
        }
        24 => {
            let mut fields = Vec::new();
            let mut rest = input;
            for _ in 0..out {
                let (after, next) = one_field(rest, pointer_size, depth + 1)?;
                fields.push(next);
                rest = after;
            }
            return Ok((rest, FieldType::Object(fields)));
        }
        22 => FieldType::Utf16Bytes,
        23 => FieldType::Array(Box::new(FieldType::Utf8Unit)),
        14 | 25 => FieldType::Array(Box::new(FieldType::U8)),
        _ => match value(in_type.into(), out.into(), pointer_size) {
            Some(kind) => kind,
            None => return Err(fail(input.len(), "type", "a known type in a TraceLogging schema")),
        },
    };
    Ok((input, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(fields: &[u8]) -> Vec<u8> {
        let mut out = ((fields.len() + 5) as u16).to_le_bytes().to_vec();
        out.extend(b"\0E\0");
        out.extend(fields);
        out
    }

    fn kinds(fields: &[u8]) -> Result<Vec<FieldType>, &'static str> {
        let description = parse(&blob(fields), 8)?;
        assert_eq!(description.name, "E");
        Ok(description.fields.unwrap().into_iter().map(|f| f.kind).collect())
    }

    #[test]
    fn every_form_of_a_field_is_read() {
        use FieldType::*;
        assert_eq!(kinds(b"a\0\x01b\0\x84\x03").unwrap(), [Utf16Z, Bool8]);
        assert_eq!(kinds(b"a\0\x47b\0\x28\x03\0").unwrap(), [Array(Box::new(I32)), FixedArray(Box::new(U32), 3)]);
        assert_eq!(kinds(b"c\0\x61\x02\0xyd\0\x10").unwrap(), [Array(Box::new(U8)), U64]);
        let inner = vec![field("x", I8), field("y", Guid)];
        assert_eq!(kinds(b"s\0\x98\x02x\0\x03y\0\x0F").unwrap(), [Object(inner)]);
        // Tags behind a format.
        assert_eq!(kinds(b"t\0\x88\x84\x81\x00u\0\x08").unwrap(), [U32, U32]);
    }

    #[test]
    fn hostile_schemas_are_refused() {
        assert!(parse(&[], 8).is_err());
        assert!(parse(&[200, 0, 0, b'E', 0], 8).is_err(), "a size beyond the data");
        assert!(parse(&[5, 0, 0, b'E', b'E'], 8).is_err(), "a name without end");
        assert!(parse(&[4, 0, 0x80, 0x80], 8).is_err(), "tags without end");
        assert!(kinds(b"a\0").is_err(), "a field without type");
        assert!(kinds(b"a\0\x1F").is_err(), "a type that is none");
        assert!(kinds(b"a\0\x98\x05b\0\x01").is_err(), "more members than fields");
        let nested = b"s\0\x98\x01".repeat(40);
        assert!(kinds(&nested).is_err(), "nesting without end");
        assert!(kinds(b"c\0\x61\xFF\xFFx").is_err(), "a custom schema beyond the data");
    }
}
