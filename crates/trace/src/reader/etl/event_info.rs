//! Schemas that the merge step embeds for events of registered providers: one `TRACE_EVENT_INFO` each.
//!
//! ```text
//!  0x00 provider GUID   0x10 event GUID   0x20 event descriptor   0x30 decoding source
//!  0x34 ... 0x60 offsets of strings, from the start; 0: none
//!  0x64 number of properties   0x68 number of those at the top   0x6C flags   0x70 properties of 24 bytes
//!  property: flags, name, in and out type (or first member and number of members), map, count, length, reserved
//! ```
//! Properties at the top come first; the members of structures follow them.
//! Source: `tdh.h` of the SDK; checked on the schemas of merged files, whose events they cover to the last byte.

use nom::Parser;
use nom::multi::count;

use super::tdh_types::{Description, InType, OutType, field, shown, unit, value};
use crate::bytes::{Parsed, guid, take, u8le, u16le, u32le, u64le};
use crate::guid::Guid;
use crate::reader::{EtwForm, Field, FieldType};
use crate::utf16;

const PROPERTY: usize = 24;
/// Structures inside of structures at most, and fields in all.
const MAX_DEPTH: usize = 8;
const MAX_FIELDS: usize = 4096;
/// The number of times that the bytes of a schema may become names of fields. Writers put each name there once.
const MAX_REPEATED: usize = 4;

/// Flags of a property.
const IS_STRUCT: u32 = 1;
const LENGTH_IS_PROPERTY: u32 = 2;
const COUNT_IS_PROPERTY: u32 = 4;
const FIXED_COUNT: u32 = 0x20;

/// Decoding sources.
const XML_FILE: u32 = 0;
const WBEM: u32 = 1;

const DAMAGED: &str = "the embedded schema of this event is damaged";

/// The fixed part; strings by their offsets.
struct EventInfo {
    provider: Guid,
    class: Guid,
    id: u16,
    version: u8,
    opcode: u8,
    source: u32,
    provider_name: u32,
    task_name: u32,
    opcode_name: u32,
    message: u32,
    properties: u32,
    top_properties: u32,
}

fn event_info(input: &[u8]) -> Parsed<'_, EventInfo> {
    let descriptor =
        (u16le("Id"), u8le("Version"), u8le("Channel"), u8le("Level"), u8le("Opcode"), u16le("Task"), u64le("Keyword"));
    let fixed = (
        guid("ProviderGuid"),
        guid("EventGuid"),
        descriptor,
        u32le("DecodingSource"),
        u32le("ProviderNameOffset"),
        take(12, "LevelNameOffset to KeywordsNameOffset"),
        u32le("TaskNameOffset"),
        u32le("OpcodeNameOffset"),
        u32le("EventMessageOffset"),
        take(20, "ProviderMessageOffset to EventAttributesOffset"),
        u32le("PropertyCount"),
        u32le("TopLevelPropertyCount"),
        u32le("Flags"),
    );
    let all =
        |(provider, class, descriptor, source, provider_name, _, task_name, opcode_name, message, _, all, top, _)| {
            let (id, version, _, _, opcode, _, _) = descriptor;
            let (properties, top_properties) = (all, top);
            EventInfo {
                provider,
                class,
                id,
                version,
                opcode,
                source,
                provider_name,
                task_name,
                opcode_name,
                message,
                properties,
                top_properties,
            }
        };
    fixed.map(all).parse(input)
}

/// A field, or a structure of later properties.
struct Property {
    flags: u32,
    name: u32,
    /// Number of the type; of a structure the index of its first member.
    in_type: u16,
    /// Number of the format; of a structure how many members it has.
    out_type: u16,
    /// Number of values, or the index of the property that has it.
    count: u16,
    /// Number of bytes or characters, or the index of the property that has it.
    length: u16,
}

fn property(input: &[u8]) -> Parsed<'_, Property> {
    let fields = (
        u32le("Flags"),
        u32le("NameOffset"),
        u16le("InType"),
        u16le("OutType"),
        u32le("MapNameOffset"),
        u16le("Count"),
        u16le("Length"),
        u32le("Reserved"),
    );
    let all = |(flags, name, in_type, out_type, _, count, length, _)| Property {
        flags,
        name,
        in_type,
        out_type,
        count,
        length,
    };
    fields.map(all).parse(input)
}

/// Which events a schema describes: provider or class, id or opcode, version; `None` for schemas of other sources.
pub fn subject(blob: &[u8]) -> Option<(Guid, u32, u16, EtwForm)> {
    let (_, info) = event_info(blob).ok()?;
    match info.source {
        XML_FILE => Some((info.provider, info.id.into(), info.version.into(), EtwForm::Manifest)),
        WBEM => Some((info.class, info.opcode.into(), info.version.into(), EtwForm::Classic)),
        _ => None,
    }
}

/// The name of the provider; empty when there is none.
pub fn provider(blob: &[u8]) -> String {
    event_info(blob).map_or_else(|_| String::new(), |(_, info)| text(blob, info.provider_name))
}

/// Reads a schema for events of processes with pointers of `pointer_size` bytes.
pub fn parse(blob: &[u8], pointer_size: u8) -> Description {
    let Ok((rest, info)) = event_info(blob) else {
        return Description { fields: Some(Err(DAMAGED)), ..Description::default() };
    };
    let (task, opcode) = (text(blob, info.task_name), text(blob, info.opcode_name));
    let name = match (task.is_empty(), opcode.is_empty() || opcode == "Info") {
        (false, true) => task,
        (false, false) => format!("{task}/{opcode}"),
        (true, _) => opcode,
    };
    let message = Some(text(blob, info.message)).filter(|m| !m.is_empty()).map(Into::into);
    let fields = Some(fields(blob, rest, &info, pointer_size));
    Description { provider: text(blob, info.provider_name), name, message, fields }
}

/// The fields of a schema; `rest` is what follows its fixed part.
fn fields(blob: &[u8], rest: &[u8], info: &EventInfo, pointer_size: u8) -> Result<Vec<Field>, &'static str> {
    let (all, top) = (info.properties as usize, info.top_properties as usize);
    if all > rest.len() / PROPERTY || top > all {
        return Err(DAMAGED);
    }
    let (_, properties) = count(property, all).parse(rest).map_err(|_| DAMAGED)?;
    let mut left = Left { fields: MAX_FIELDS, names: MAX_REPEATED * blob.len() };
    Schema { blob, properties, pointer_size }.fields(0, top, 0, &mut left)
}

/// A string of the blob; empty when there is none. Names of some providers end in spaces.
fn text(blob: &[u8], offset: u32) -> String {
    let from = blob.get(offset as usize..).filter(|_| offset != 0).unwrap_or_default();
    let end = utf16::end(from).unwrap_or(from.len() / 2 * 2);
    utf16::string(from.get(..end).unwrap_or_default()).trim().to_owned()
}

/// The limits of what is still made of a schema.
struct Left {
    fields: usize,
    /// Bytes of their names, which may be at one place.
    names: usize,
}

struct Schema<'a> {
    blob: &'a [u8],
    properties: Vec<Property>,
    pointer_size: u8,
}

impl Schema<'_> {
    /// The fields of a structure, or those at the top.
    fn fields(&self, first: usize, count: usize, depth: usize, left: &mut Left) -> Result<Vec<Field>, &'static str> {
        let range = first..first.saturating_add(count);
        let properties = self.properties.get(range).filter(|_| depth <= MAX_DEPTH).ok_or(DAMAGED)?;
        let mut fields = Vec::new();
        for property in properties {
            left.fields = left.fields.checked_sub(1).ok_or("the embedded schema of this event has too many fields")?;
            // The place of a property that gives a count or a length, among the fields of this structure.
            let place = |index: u16| {
                let before = (first..first + fields.len()).contains(&usize::from(index));
                before.then(|| usize::from(index) - first).ok_or("a count that is no earlier field of its structure")
            };
            let has = |flag| property.flags & flag != 0;
            let kind = if has(IS_STRUCT) {
                let (first, count) = (property.in_type.into(), property.out_type.into());
                FieldType::Object(self.fields(first, count, depth + 1, left)?)
            } else if has(LENGTH_IS_PROPERTY) {
                let unit = InType::of_number(property.in_type).and_then(unit);
                let unit = unit.ok_or("a length of a value without a length")?;
                let kind = FieldType::Counted(Box::new(unit), place(property.length)?);
                with_text(property, kind)
            } else {
                self.single(property)?
            };
            let kind = match property.count {
                index if has(COUNT_IS_PROPERTY) => FieldType::Counted(Box::new(kind), place(index)?),
                count if count > 1 || has(FIXED_COUNT) => FieldType::FixedArray(Box::new(kind), count),
                _ => kind,
            };
            let name = text(self.blob, property.name);
            left.names = left.names.checked_sub(name.len()).ok_or(DAMAGED)?;
            fields.push(field(name, kind));
        }
        Ok(fields)
    }

    fn single(&self, property: &Property) -> Result<FieldType, &'static str> {
        const UNKNOWN: &str = "a type that is not known in the embedded schema";
        let in_type = InType::of_number(property.in_type).ok_or(UNKNOWN)?;
        if let (Some(unit), 1..) = (unit(in_type), property.length) {
            return Ok(with_text(property, FieldType::FixedArray(Box::new(unit), property.length)));
        }
        value(in_type, OutType::of_tdh(property.out_type), self.pointer_size).ok_or(UNKNOWN)
    }
}

/// The type of a property whose length is said, with the text that it is meant to be shown as.
fn with_text(property: &Property, kind: FieldType) -> FieldType {
    let out_type = OutType::of_tdh(property.out_type);
    InType::of_number(property.in_type).map_or_else(|| kind.clone(), |in_type| shown(in_type, out_type, kind.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Shown as Text;

    /// Where properties begin.
    const PROPERTIES: usize = 0x70;

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
        Ok(parse(blob, 4).fields.unwrap()?.into_iter().map(|f| f.kind).collect())
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
    fn formats_are_those_of_tdh() {
        use FieldType::*;
        let port = [0, 0, 6 | 22 << 16, 0, 1, 0];
        let flag = [0, 0, 4 | 13 << 16, 0, 1, 0];
        let address = [0, 0, 14 | 24 << 16, 0, 1, 0];
        let bytes = |count| Box::new(FixedArray(Box::new(U8), count));
        let expected = [U16Be, Bool8, Shown(bytes(16), Text::Ipv6), Shown(bytes(28), Text::SocketAddress)];
        let socket = [0, 0, 14 | 25 << 16, 0, 1 | 28 << 16, 0];
        assert_eq!(kinds(&blob(&[port, flag, address, socket], 4)).unwrap(), expected);
    }

    #[test]
    fn hostile_schemas_are_refused() {
        assert!(kinds(&[]).is_err() && kinds(&blob(&[], 0)[..PROPERTIES - 1]).is_err(), "less than the fixed part");
        assert!(kinds(&blob(&[], 0)).is_ok_and(|fields| fields.is_empty()), "an event without fields");
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
        assert!(kinds(&blob(&[[0, 0, 99, 0, 1, 0]], 1)).is_err(), "a type that is none");
    }
}
