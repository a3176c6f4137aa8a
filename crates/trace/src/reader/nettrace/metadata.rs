//! Descriptions of event types in V1 to V5.
//! Source: `NetTraceFormat_v5.md`, "Metadata event encoding"; V1 and V2 from files.

use nom::combinator::{map, rest};

use crate::bytes::{Parsed, counted, guid, i32le, items, refuse, take, u8le, u32le, u64le, utf16z};
use crate::prelude::*;
use crate::reader::{EventType, Field, FieldType, Layout};
use crate::utf16;

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
        Some(Problem::error(code, offset, format!("metadata of {}/{} (id {}): {what}", t.provider, t.name, t.event_id)))
    }
}

/// ```text
/// MetaDataId:u32 ProviderName EventId:u32 EventName Keywords:u64 Version:u32 Level:u32 fields tags    V3, V4, "V5"
/// ```
pub fn record(input: &[u8]) -> Parsed<'_, Record> {
    let (input, (id, provider, event_id)) =
        (u32le("MetaDataId"), text("ProviderName"), u32le("EventId")).parse(input)?;
    let (input, description) = description(input)?;
    let (input, (description, problem)) = fields_and_tags(description).parse(input)?;
    let event_type = EventType { provider, event_id, ..description };
    Ok((input, Record { id, event_type, problem }))
}

/// A record of V1 or V2; it is the event whose file offset is its id.
///
/// ```text
/// ProviderId:guid   EventId:u32 EventVersion:u32 MetadataLength:u32 description    V1
/// ProviderName      EventId:u32 EventVersion:u32 MetadataLength:u32 description    V2
///     description:  EventId:u32 EventName Keywords:u64 Version:u32 Level:u32 fields; or nothing
/// ```
pub fn flat_record(input: &[u8], version: u32) -> Parsed<'_, Record> {
    let (input, (provider, provider_guid)) = if version == 1 {
        guid("ProviderId").map(|id| (String::new(), Some(id))).parse(input)?
    } else {
        text("ProviderName").map(|name| (name, None)).parse(input)?
    };
    let (input, (event_id, version)) = (u32le("EventId"), u32le("EventVersion")).parse(input)?;
    let (after, blob) = u32le("MetadataLength").flat_map(|length| take(length as usize, "Metadata")).parse(input)?;
    let bare = EventType { provider, provider_guid, event_id, version, ..undescribed() };
    if blob.is_empty() {
        return Ok((after, Record { id: 0, event_type: bare, problem: None }));
    }
    let (inside, (event_id, described)) = (u32le("EventId"), description).parse(blob)?;
    let (_, (described, problem)) = fields_and_tags(described).parse(inside)?;
    let EventType { provider, provider_guid, .. } = bare;
    let event_type = EventType { provider, provider_guid, event_id, ..described };
    Ok((after, Record { id: 0, event_type, problem }))
}

/// A kind of event without a description so far.
fn undescribed() -> EventType {
    EventType { level: 0, ..EventType::new(String::new(), 0, 0, Layout::Fields(Vec::new())) }
}

fn description(input: &[u8]) -> Parsed<'_, EventType> {
    let (input, (name, keywords, version, level)) =
        (text("EventName"), u64le("Keywords"), u32le("Version"), u32le("Level")).parse(input)?;
    Ok((input, EventType { name, keywords, version, level, ..undescribed() }))
}

fn text<'a>(field: &'static str) -> impl Parser<&'a [u8], Output = String, Error = crate::bytes::ParseError> {
    utf16z(field).map(utf16::string)
}

type WithProblem = (EventType, Option<(&'static str, &'static str)>);

const DAMAGED_FIELDS: (&str, &str) = ("damaged_field_list", "the field list cannot be read; events are kept raw");

/// The field list, which may be missing, and the tags of "V5" behind it. What cannot be read costs only itself.
fn fields_and_tags<'a>(event_type: EventType) -> impl FnMut(&'a [u8]) -> Parsed<'a, WithProblem> {
    move |input| {
        let mut event_type = event_type.clone();
        if input.is_empty() {
            return Ok((input, (event_type, None)));
        }
        let Ok((tags_at, fields)) = field_list(input, FieldForm::V1, 0) else {
            // Where the tags would begin is unknown now.
            event_type.layout = unreadable_layout();
            return Ok((&[], (event_type, Some(DAMAGED_FIELDS))));
        };
        event_type.layout = Layout::Fields(fields);
        let mut problem = None;
        let mut tags = items(tags_at, tag_or_padding);
        for tag in &mut tags {
            match tag {
                Tag::OpCode(opcode) => event_type.opcode = opcode,
                Tag::V2Params(Some(fields)) => event_type.layout = Layout::Fields(fields),
                Tag::V2Params(None) => {
                    event_type.layout = unreadable_layout();
                    problem = Some(DAMAGED_FIELDS);
                }
                Tag::Other => {}
            }
        }
        if tags.finish().is_err() {
            problem = Some(("damaged_metadata_tag", "a tag is longer than the record; it is left out"));
        }
        Ok((&[], (event_type, problem)))
    }
}

fn unreadable_layout() -> Layout {
    Layout::Unreadable("the recording's description of the fields is damaged")
}

/// The additions of a tag of "V5" to a description.
enum Tag {
    OpCode(Option<u8>),
    /// Fields in the second form; `None` when they cannot be read.
    V2Params(Option<Vec<Field>>),
    Other,
}

/// `TagPayloadBytes:u32 TagKind:u8 payload`; fewer bytes than that at the end are padding.
fn tag_or_padding(input: &[u8]) -> Parsed<'_, Tag> {
    if input.len() < 5 {
        return map(rest, |_| Tag::Other).parse(input);
    }
    let (input, (length, kind)) = (u32le("TagPayloadBytes"), u8le("TagKind")).parse(input)?;
    let tag = |payload: &[u8]| match kind {
        1 => Tag::OpCode(payload.first().copied()),
        2 => Tag::V2Params(field_list(payload, FieldForm::V2, 0).ok().map(|(_, fields)| fields)),
        _ => Tag::Other,
    };
    take(length as usize, "TagPayload").map(tag).parse(input)
}

/// The two forms of a field list.
#[derive(Clone, Copy, PartialEq)]
enum FieldForm {
    /// Type, then name.
    V1,
    /// Size with itself, name, type; knows arrays.
    V2,
}

/// `FieldCount:i32` and the fields.
fn field_list(input: &[u8], form: FieldForm, depth: usize) -> Parsed<'_, Vec<Field>> {
    let (input, count) = i32le("FieldCount")(input)?;
    let field = |input| match form {
        FieldForm::V1 => {
            (|i| field_type(i, form, depth), text("FieldName")).map(|(kind, name)| Field { name, kind }).parse(input)
        }
        FieldForm::V2 => i32le("FieldSize")
            .flat_map(|size| take(usize::try_from(size.saturating_sub(4)).unwrap_or(usize::MAX), "Field"))
            .and_then((text("FieldName"), |i| field_type(i, form, depth)))
            .map(|(name, kind)| Field { name, kind })
            .parse(input),
    };
    let smallest = if form == FieldForm::V2 { 10 } else { 6 };
    counted(count, smallest, "FieldCount", field).parse(input)
}

fn field_type(input: &[u8], form: FieldForm, depth: usize) -> Parsed<'_, FieldType> {
    if depth >= MAX_DEPTH {
        return Err(refuse(input, "TypeCode", "less nesting"));
    }
    let (after, code) = i32le("TypeCode")(input)?;
    match code {
        1 => map(|i| field_list(i, form, depth + 1), FieldType::Object).parse(after),
        19 if form == FieldForm::V2 => {
            map(|i| field_type(i, form, depth + 1), |element| FieldType::Array(Box::new(element))).parse(after)
        }
        _ => match u8::try_from(code).ok().and_then(simple_type) {
            Some(kind) => Ok((after, kind)),
            None => Err(refuse(input, "TypeCode", "a known type")),
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
