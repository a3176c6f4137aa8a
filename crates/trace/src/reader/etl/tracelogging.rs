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

use nom::Parser;
use nom::bytes::complete::{take_till, take_while};
use nom::combinator::cond;
use nom::multi::count;
use nom::sequence::{preceded, terminated};

use super::tdh_types::{Description, InType, OutType, field, shown, value};
use crate::bytes::{Parsed, fail, inner, take, u8le, u16le};
use crate::reader::{Field, FieldType};

/// Structures inside of structures at most.
const MAX_DEPTH: usize = 8;

/// Bits of the in type.
const IN_TYPE: u8 = 0x1F;
const REPETITION: u8 = 0x60;
const FIXED_COUNT: u8 = 0x20;
const COUNT_IN_PAYLOAD: u8 = 0x40;
const CUSTOM: u8 = 0x60;
/// Another byte follows: the out type behind the in type, tags behind the out type, a tag behind a tag.
const MORE: u8 = 0x80;

/// Reads a schema.
pub fn parse(blob: &[u8], pointer_size: u8) -> Result<Description, &'static str> {
    match (Reader { pointer_size }).schema(blob) {
        Ok((_, description)) => Ok(description),
        Err(e) => Err(inner(e).expected()),
    }
}

fn tags(input: &[u8]) -> Parsed<'_, u8> {
    preceded(take_while(|byte: u8| byte & MORE != 0), u8le("tags")).parse(input)
}

fn name(input: &[u8]) -> Parsed<'_, String> {
    let text = terminated(take_till(|byte: u8| byte == 0), end_of_name);
    text.map(|text: &[u8]| String::from_utf8_lossy(text).into_owned()).parse(input)
}

fn end_of_name(input: &[u8]) -> Parsed<'_, ()> {
    match input.split_first() {
        Some((_, rest)) => Ok((rest, ())),
        None => Err(fail(0, "name", "the zero behind a name in a TraceLogging schema")),
    }
}

/// The out type without its top bit, with the tags that may follow it.
fn out_type(input: &[u8]) -> Parsed<'_, u8> {
    let (input, out) = u8le("format")(input)?;
    cond(out & MORE != 0, tags).map(|_| out & !MORE).parse(input)
}

/// For events of processes with pointers of one size.
struct Reader {
    pointer_size: u8,
}

impl Reader {
    fn schema<'b>(&self, blob: &'b [u8]) -> Parsed<'b, Description> {
        // The size counts itself.
        let mut whole = u16le("size").flat_map(|size| take(usize::from(size).saturating_sub(2), "schema"));
        let (rest, whole) = whole.parse(blob)?;
        let (_, (_, name, fields)) = (tags, name, |input| self.fields(input)).parse(whole)?;
        Ok((rest, Description { name, fields: Some(Ok(fields)), ..Description::default() }))
    }

    /// Fields up to the end.
    fn fields<'b>(&self, mut input: &'b [u8]) -> Parsed<'b, Vec<Field>> {
        let mut fields = Vec::new();
        while !input.is_empty() {
            let (rest, field) = self.field(0, input)?;
            fields.push(field);
            input = rest;
        }
        Ok((input, fields))
    }

    /// A field that is inside of `depth` structures.
    fn field<'b>(&self, depth: usize, input: &'b [u8]) -> Parsed<'b, Field> {
        let (input, (name, in_type)) = (name, u8le("type")).parse(input)?;
        let (input, out) = cond(in_type & MORE != 0, out_type).parse(input)?;
        let repetition = in_type & REPETITION;
        let (input, count) = cond(repetition == FIXED_COUNT, u16le("count")).parse(input)?;
        if repetition == CUSTOM {
            let (input, _) = u16le("custom size").flat_map(|size| take(size.into(), "custom schema")).parse(input)?;
            return Ok((input, field(name, FieldType::Array(Box::new(FieldType::U8)))));
        }
        let (input, kind) = self.kind(depth, in_type & IN_TYPE, out.unwrap_or(0), input)?;
        let kind = match (repetition, count) {
            (_, Some(count)) => FieldType::FixedArray(Box::new(kind), count),
            (COUNT_IN_PAYLOAD, None) => FieldType::Array(Box::new(kind)),
            (_, None) => kind,
        };
        Ok((input, field(name, kind)))
    }

    fn kind<'b>(&self, depth: usize, in_type: u8, out: u8, input: &'b [u8]) -> Parsed<'b, FieldType> {
        let known = InType::of_number(in_type.into());
        match known {
            Some(InType::Struct) if depth >= MAX_DEPTH => {
                return Err(fail(input.len(), "type", "fewer structures inside of structures"));
            }
            Some(InType::Struct) => {
                let member = |input| self.field(depth + 1, input);
                return count(member, out.into()).map(FieldType::Object).parse(input);
            }
            // Unlike in a manifest the payload has the length.
            Some(InType::Binary) => {
                let bytes = FieldType::Array(Box::new(FieldType::U8));
                return Ok((input, shown(InType::Binary, OutType::of_trace_logging(out), bytes)));
            }
            _ => {}
        }
        match known.and_then(|known| value(known, OutType::of_trace_logging(out), self.pointer_size)) {
            Some(kind) => Ok((input, kind)),
            None => Err(fail(input.len(), "type", "a known type in a TraceLogging schema")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Shown as Text;

    fn blob(fields: &[u8]) -> Vec<u8> {
        let mut out = ((fields.len() + 5) as u16).to_le_bytes().to_vec();
        out.extend(b"\0E\0");
        out.extend(fields);
        out
    }

    fn kinds(fields: &[u8]) -> Result<Vec<FieldType>, &'static str> {
        let description = parse(&blob(fields), 8)?;
        assert_eq!(description.name, "E");
        Ok(description.fields.unwrap().unwrap().into_iter().map(|f| f.kind).collect())
    }

    #[test]
    fn every_form_of_a_field_is_read() {
        use FieldType::*;
        assert_eq!(kinds(b"a\0\x01b\0\x84\x03").unwrap(), [Utf16Z, Bool8]);
        assert_eq!(kinds(b"a\0\x47b\0\x28\x03\0").unwrap(), [Array(Box::new(I32)), FixedArray(Box::new(U32), 3)]);
        assert_eq!(kinds(b"c\0\x61\x02\0xyd\0\x10").unwrap(), [Array(Box::new(U8)), U64]);
        let inner = vec![field("x", I8), field("y", Guid)];
        assert_eq!(kinds(b"s\0\x98\x02x\0\x03y\0\x0F").unwrap(), [Object(inner)]);
        // Formats that have a text: addresses, hexadecimal numbers and codes. Of JSON the text is the value.
        let text = |kind, shown| Shown(Box::new(kind), shown);
        let bytes = || Array(Box::new(U8));
        assert_eq!(kinds(b"a\0\x88\x08b\0\x8E\x09").unwrap(), [text(U32, Text::Ipv4), text(bytes(), Text::Ipv6)]);
        assert_eq!(
            kinds(b"a\0\x8E\x0Ab\0\x87\x0F").unwrap(),
            [text(bytes(), Text::SocketAddress), text(I32, Text::Hex)]
        );
        assert_eq!(
            kinds(b"a\0\x14b\0\x8A\x04j\0\x82\x0C").unwrap(),
            [text(U32, Text::Hex), text(U64, Text::Hex), AnsiZ]
        );
        // Tags behind a format.
        assert_eq!(kinds(b"t\0\x88\x84\x81\x00u\0\x08").unwrap(), [text(U32, Text::Hex), U32]);
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
