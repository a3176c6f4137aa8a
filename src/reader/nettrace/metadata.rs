//! Descriptions of event types in V1 to V5.
//! Source: `NetTraceFormat_v5.md`, "Metadata event encoding"; V1 and V2 from files.

use nom::Parser;

use crate::bytes::{Parsed, fail, guid, i32le, i64le, take, u8le, u32le, utf16_string, utf16z};
use crate::error::{Problem, Severity};
use crate::reader::{EventType, Field, FieldType, Layout};

/// Deeper nesting than this is refused.
pub const MAX_DEPTH: usize = 32;

/// One metadata record and what was wrong in it.
pub struct Record {
    /// The id that events refer to.
    pub id: u32,
    /// The kind of event.
    pub event_type: EventType,
    /// A part that could not be read; the rest counts.
    pub problem: Option<(&'static str, &'static str)>,
}

impl Record {
    /// The row for the `diagnostic` table, if something was wrong.
    pub fn problem(&self, offset: u64) -> Option<Problem> {
        let (code, what) = self.problem?;
        let t = &self.event_type;
        let message = format!("metadata of {}/{} (id {}): {what}", t.provider, t.name, t.event_id);
        Some(Problem::new(Severity::Error, code, offset, message))
    }
}

/// A record of V3, V4 or "V5".
pub fn record(input: &[u8]) -> Parsed<'_, Record> {
    let (rest, (id, provider, event_id)) =
        (u32le("MetaDataId"), utf16z("ProviderName"), u32le("EventId")).parse(input)?;
    let (rest, body) = common(rest)?;
    let event_type = body.into_type(utf16_string(provider), None, event_id);
    let (rest, event_type, problem) = fields_and_tags(rest, event_type);
    Ok((rest, Record { id, event_type, problem }))
}

/// A record of V1 (`provider GUID`) or V2 (`provider name`); it is the event whose file offset is its id.
pub fn flat_record(input: &[u8], version: u32) -> Parsed<'_, Record> {
    let (rest, provider, provider_guid) = if version == 1 {
        let (rest, id) = guid("ProviderId")(input)?;
        (rest, String::new(), Some(id))
    } else {
        let (rest, name) = utf16z("ProviderName")(input)?;
        (rest, utf16_string(name), None)
    };
    let (rest, (event_id, event_version, length)) =
        (u32le("EventId"), u32le("EventVersion"), u32le("MetadataLength")).parse(rest)?;
    let (after, blob) = take(length as usize, "Metadata")(rest)?;
    let bare = Common { name: String::new(), keywords: 0, version: event_version, level: 0 };
    if blob.is_empty() {
        let event_type = bare.into_type(provider, provider_guid, event_id);
        return Ok((after, Record { id: 0, event_type, problem: None }));
    }
    // The id is repeated inside.
    let (inside, repeated_id) = u32le("EventId")(blob)?;
    let (inside, body) = common(inside)?;
    let event_type = body.into_type(provider, provider_guid, repeated_id);
    let (_, event_type, problem) = fields_and_tags(inside, event_type);
    Ok((after, Record { id: 0, event_type, problem }))
}

struct Common {
    name: String,
    keywords: u64,
    version: u32,
    level: u32,
}

impl Common {
    fn into_type(self, provider: String, provider_guid: Option<crate::guid::Guid>, event_id: u32) -> EventType {
        EventType {
            provider,
            provider_guid,
            event_id,
            version: self.version,
            name: self.name,
            opcode: None,
            level: self.level,
            keywords: self.keywords,
            layout: Layout::Fields(Vec::new()),
            message: None,
        }
    }
}

fn common(input: &[u8]) -> Parsed<'_, Common> {
    let (rest, (name, keywords, version, level)) =
        (utf16z("EventName"), i64le("Keywords"), u32le("Version"), u32le("Level")).parse(input)?;
    Ok((rest, Common { name: utf16_string(name), keywords: keywords as u64, version, level }))
}

type WithProblem<'a> = (&'a [u8], EventType, Option<(&'static str, &'static str)>);

/// The field list, which may be missing, and the tags of "V5" behind it.
fn fields_and_tags(input: &[u8], mut event_type: EventType) -> WithProblem<'_> {
    if input.is_empty() {
        return (input, event_type, None);
    }
    let mut rest = match field_list(input, false, 0) {
        Ok((rest, fields)) => {
            event_type.layout = Layout::Fields(fields);
            rest
        }
        Err(_) => {
            // Where the tags would begin is unknown now.
            event_type.layout = Layout::Unreadable("the recording's description of the fields is damaged");
            let problem = ("damaged_field_list", "the field list cannot be read; events are kept raw");
            return (&[], event_type, Some(problem));
        }
    };
    let mut problem = None;
    while rest.len() >= 5 {
        let Ok((next, (kind, payload))) = tag(rest) else {
            problem = Some(("damaged_metadata_tag", "a tag is longer than the record; it is left out"));
            break;
        };
        rest = next;
        match kind {
            1 => event_type.opcode = payload.first().copied(),
            2 => match field_list(payload, true, 0) {
                Ok((_, fields)) => event_type.layout = Layout::Fields(fields),
                Err(_) => {
                    event_type.layout = Layout::Unreadable("the recording's description of the fields is damaged");
                    problem = Some(("damaged_field_list", "the field list cannot be read; events are kept raw"));
                }
            },
            _ => {}
        }
    }
    (rest, event_type, problem)
}

fn tag(input: &[u8]) -> Parsed<'_, (u8, &[u8])> {
    let (rest, (length, kind)) = (u32le("TagPayloadBytes"), u8le("TagKind")).parse(input)?;
    let (rest, payload) = take(length as usize, "TagPayload")(rest)?;
    Ok((rest, (kind, payload)))
}

/// `FieldCount` and the fields, in the form of V1 (type, then name) or V2Params (size, name, type).
fn field_list(input: &[u8], v2: bool, depth: usize) -> Parsed<'_, Vec<Field>> {
    let (mut rest, count) = i32le("FieldCount")(input)?;
    let smallest = if v2 { 10 } else { 6 };
    let count = usize::try_from(count).ok().filter(|c| *c <= rest.len() / smallest);
    let Some(count) = count else {
        return Err(fail(rest.len(), "FieldCount", "a count that fits into the record"));
    };
    let mut fields = Vec::with_capacity(count);
    for _ in 0..count {
        let field;
        (rest, field) = if v2 { v2_field(rest, depth)? } else { v1_field(rest, depth)? };
        fields.push(field);
    }
    Ok((rest, fields))
}

fn v1_field(input: &[u8], depth: usize) -> Parsed<'_, Field> {
    let (rest, kind) = field_type(input, false, depth)?;
    let (rest, name) = utf16z("FieldName")(rest)?;
    Ok((rest, Field { name: utf16_string(name), kind }))
}

fn v2_field(input: &[u8], depth: usize) -> Parsed<'_, Field> {
    let (body, size) = i32le("FieldSize")(input)?;
    let inside = usize::try_from(size).ok().and_then(|s| s.checked_sub(4));
    let Some(inside) = inside else {
        return Err(fail(input.len(), "FieldSize", "a size of at least 4, which counts itself"));
    };
    let (after, field) = take(inside, "Field")(body)?;
    let (rest, name) = utf16z("FieldName")(field)?;
    let (_padding, kind) = field_type(rest, true, depth)?;
    Ok((after, Field { name: utf16_string(name), kind }))
}

fn field_type(input: &[u8], v2: bool, depth: usize) -> Parsed<'_, FieldType> {
    if depth >= MAX_DEPTH {
        return Err(fail(input.len(), "TypeCode", "less nesting"));
    }
    let (rest, code) = i32le("TypeCode")(input)?;
    match code {
        1 => {
            let (rest, fields) = field_list(rest, v2, depth + 1)?;
            Ok((rest, FieldType::Object(fields)))
        }
        19 if v2 => {
            let (rest, element) = field_type(rest, v2, depth + 1)?;
            Ok((rest, FieldType::Array(Box::new(element))))
        }
        _ => match u8::try_from(code).ok().and_then(simple_type) {
            Some(kind) => Ok((rest, kind)),
            None => Err(fail(input.len(), "TypeCode", "a known type")),
        },
    }
}

/// The types without parts; the same codes in all versions.
pub fn simple_type(code: u8) -> Option<FieldType> {
    Some(match code {
        3 => FieldType::Bool32,
        4 => FieldType::Utf16Unit,
        5 => FieldType::I8,
        6 => FieldType::U8,
        7 => FieldType::I16,
        8 => FieldType::U16,
        9 => FieldType::I32,
        10 => FieldType::U32,
        11 => FieldType::I64,
        12 => FieldType::U64,
        13 => FieldType::F32,
        14 => FieldType::F64,
        16 => FieldType::DateTime,
        17 => FieldType::Guid,
        18 => FieldType::Utf16Z,
        _ => return None,
    })
}
