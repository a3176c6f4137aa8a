//! The rows of V6 blocks besides events and stacks: header, metadata, threads, labels.
//! Source: `NetTraceFormat.md`, version 6.

use nom::combinator::map;

use super::event_types::Overrides;
use super::metadata::{MAX_DEPTH, simple_type};
use super::trace_object::clock;
use crate::bytes::{
    ParseError, Parsed, counted, guid, i32le, i64le, items, refuse, take, u8le, u16le, u32le, u64le, utf8_counted,
    varuint32, varuint64, zigzag,
};
use crate::prelude::*;
use crate::reader::{EventType, Field, FieldType, Labels, Layout, NETTRACE_CONTAINER, Thread, TraceInfo};

/// UTF-8 behind its length.
fn text<'a>(field: &'static str) -> impl Parser<&'a [u8], Output = String, Error = ParseError> {
    utf8_counted(field).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// A row behind its size.
fn row<'a>(size: &'static str, name: &'static str) -> impl Parser<&'a [u8], Output = &'a [u8], Error = ParseError> {
    u16le(size).flat_map(move |size| take(size.into(), name))
}

/// The TraceBlock: `clock PointerSize:i32 KeyValueCount:i32 (Key Value)*`.
pub fn trace(input: &[u8], minor: u32) -> Parsed<'_, TraceInfo> {
    let (input, ((clock, start_known), pointer_size, count)) =
        (clock, i32le("PointerSize"), i32le("KeyValueCount")).parse(input)?;
    let (input, key_values) = counted(count, 2, "KeyValueCount", (text("Key"), text("Value"))).parse(input)?;
    let number = |name: &str| {
        let found = key_values.iter().find(|(key, _)| key == name);
        found.and_then(|(_, value)| value.trim().parse::<u64>().ok()).unwrap_or_default()
    };
    let info = TraceInfo {
        container: NETTRACE_CONTAINER,
        version: 6,
        minor,
        clock,
        start_known,
        pointer_size: u8::try_from(pointer_size).unwrap_or_default(),
        process_id: number("ProcessId"),
        processor_count: number("HardwareThreadCount"),
        sampling_ns: number("ExpectedCPUSamplingRate"),
        key_values,
    };
    Ok((input, info))
}

/// One row of a metadata block.
pub struct MetadataRow {
    /// The id that events refer to.
    pub id: u32,
    /// The kind of event.
    pub event_type: EventType,
    /// Whether optional metadata of an unknown kind was left out.
    pub unknown: bool,
}

/// `Size:u16 MetaDataId:varuint ProviderName EventId:varuint EventName fields OptionalMetadata`
pub fn metadata_row(input: &[u8]) -> Parsed<'_, MetadataRow> {
    let (after, row) = row("Size", "Metadata row").parse(input)?;
    let (fields_at, (id, provider, event_id, name)) =
        (varuint32("MetaDataId"), text("ProviderName"), varuint32("EventId"), text("EventName")).parse(row)?;
    let damaged = Layout::Unreadable("the recording's description of the fields is damaged");
    let mut event_type = EventType { name, level: 0, ..EventType::new(provider, event_id, 0, damaged) };
    let mut unknown = false;
    if let Ok((optional_at, fields)) = field_list(fields_at, 0) {
        event_type.layout = Layout::Fields(fields);
        if !optional_at.is_empty()
            && let Ok((_, optional)) = self::row("OptionalMetadata", "OptionalMetadata").parse(optional_at)
        {
            unknown = optional_metadata(optional, &mut event_type).is_err();
        }
    }
    Ok((after, MetadataRow { id, event_type, unknown }))
}

/// Reads all items of a frame: `read` puts each where it belongs.
fn each<'a>(frame: &'a [u8], read: impl FnMut(&'a [u8]) -> Parsed<'a, ()>) -> Parsed<'a, ()> {
    let mut all = items(frame, read);
    all.by_ref().for_each(|()| {});
    all.finish()
}

/// One element of the description of a kind of event without its fields.
fn optional_element<'a>(input: &'a [u8], event_type: &mut EventType) -> Parsed<'a, ()> {
    let (after, kind) = u8le("Kind")(input)?;
    match kind {
        1 => u8le("OpCode").map(|opcode| event_type.opcode = Some(opcode)).parse(after),
        3 => u64le("Keywords").map(|keywords| event_type.keywords = keywords).parse(after),
        4 | 5 => {
            let (after, message) = text("MessageTemplate").parse(after)?;
            event_type.message.get_or_insert_with(|| message.into());
            Ok((after, ()))
        }
        6 => (utf8_counted("Key"), utf8_counted("Value")).map(drop).parse(after),
        7 => guid("ProviderGuid").map(|guid| event_type.provider_guid = Some(guid)).parse(after),
        8 => u8le("Level").map(|level| event_type.level = level.into()).parse(after),
        9 => u8le("Version").map(|version| event_type.version = version.into()).parse(after),
        _ => Err(refuse(input, "Kind", "a known kind of optional metadata")),
    }
}

/// Reads optional metadata up to the first element of a kind that is not known: its length is not known either.
fn optional_metadata<'a>(input: &'a [u8], event_type: &mut EventType) -> Parsed<'a, ()> {
    each(input, |element| optional_element(element, event_type))
}

/// `Count:u16 (FieldSize:u16 FieldName type)*`; the size leaves room for what later versions add.
fn field_list(input: &[u8], depth: usize) -> Parsed<'_, Vec<Field>> {
    let (input, count) = u16le("Count")(input)?;
    let field = row("FieldSize", "Field")
        .and_then((text("FieldName"), |i| field_type(i, depth)))
        .map(|(name, kind)| Field { name, kind });
    counted(count, 4, "Count", field).parse(input)
}

fn field_type(input: &[u8], depth: usize) -> Parsed<'_, FieldType> {
    if depth >= MAX_DEPTH {
        return Err(refuse(input, "TypeCode", "less nesting"));
    }
    let (after, code) = u8le("TypeCode")(input)?;
    let element = map(|i| field_type(i, depth + 1), Box::new);
    let mut fixed_size = map(|i| fixed_size_type(i, depth + 1), Box::new);
    match code {
        1 => map(|i| field_list(i, depth + 1), FieldType::Object).parse(after),
        19 => map(element, FieldType::Array).parse(after),
        20 => Ok((after, FieldType::VarInt)),
        21 => Ok((after, FieldType::VarUInt)),
        22 => map((element, u16le("ElementCount")), |(e, count)| FieldType::FixedArray(e, count)).parse(after),
        23 => Ok((after, FieldType::Utf8Unit)),
        24 => fixed_size.parse(after).map(|(rest, element)| (rest, FieldType::RelLoc(element))),
        25 => fixed_size.parse(after).map(|(rest, element)| (rest, FieldType::DataLoc(element))),
        26 => Ok((after, FieldType::Bool8)),
        _ => match simple_type(code) {
            Some(kind) => Ok((after, kind)),
            None => Err(refuse(input, "TypeCode", "a known type")),
        },
    }
}

/// A type whose values are all of one size, as RelLoc and DataLoc need it.
fn fixed_size_type(input: &[u8], depth: usize) -> Parsed<'_, FieldType> {
    let (after, element) = field_type(input, depth)?;
    if is_fixed_size(&element) {
        Ok((after, element))
    } else {
        Err(refuse(input, "ElementType", "an element of fixed size behind RelLoc and DataLoc"))
    }
}

fn is_fixed_size(kind: &FieldType) -> bool {
    match kind {
        FieldType::Object(fields) => fields.iter().all(|f| is_fixed_size(&f.kind)),
        FieldType::FixedArray(element, _) => is_fixed_size(element),
        FieldType::Array(_) | FieldType::Utf16Z | FieldType::VarInt | FieldType::VarUInt => false,
        _ => true,
    }
}

/// One row of a thread block.
pub struct ThreadRow {
    /// The index that events refer to.
    pub index: u64,
    /// The thread.
    pub thread: Thread,
    /// Whether information of an unknown kind was left out.
    pub unknown: bool,
}

/// One part of the description of a thread.
fn thread_info<'a>(input: &'a [u8], row: &mut ThreadRow) -> Parsed<'a, ()> {
    let (input, kind) = u8le("Kind")(input)?;
    match kind {
        1 => text("Name").map(|name| row.thread.name = Some(name)).parse(input),
        2 => varuint64("OSProcessId").map(|id| row.thread.process_id = id).parse(input),
        3 => varuint64("OSThreadId").map(|id| row.thread.thread_id = id).parse(input),
        4 => (utf8_counted("Key"), utf8_counted("Value")).map(drop).parse(input),
        // Of unknown length: nothing behind it can be read.
        _ => {
            row.unknown = true;
            Ok((&[], ()))
        }
    }
}

/// `RowSize:u16 Index:varuint (Kind:u8 value)*`
pub fn thread_row(input: &[u8], default_process: u64) -> Parsed<'_, ThreadRow> {
    let (after, row) = row("RowSize", "Thread row").parse(input)?;
    let (infos_at, index) = varuint64("Index")(row)?;
    let thread = Thread { process_id: default_process, ..Thread::default() };
    let mut read = ThreadRow { index, thread, unknown: false };
    each(infos_at, |info| thread_info(info, &mut read))?;
    Ok((after, read))
}

/// One label of a list: `Kind:u8 value`. Gives whether it is the last one, which the top bit of the kind says.
fn label<'a>(
    input: &'a [u8],
    (labels, overrides): &mut (Labels, Overrides),
    pairs: &mut serde_json::Map<String, serde_json::Value>,
) -> Parsed<'a, bool> {
    let (after, kind) = u8le("Kind")(input)?;
    let mut pair = |key: &str, value: serde_json::Value| drop(pairs.insert(key.to_owned(), value));
    let (after, ()) = match kind & 0x7F {
        1 => guid("ActivityId").map(|id| labels.activity_id = id).parse(after),
        2 => guid("RelatedActivityId").map(|id| labels.related_activity_id = id).parse(after),
        3 => guid("TraceId").map(|id| pair("TraceId", hex(&id).into())).parse(after),
        4 => u64le("SpanId").map(|id| pair("SpanId", format!("{id:016x}").into())).parse(after),
        5 => (text("Key"), text("Value")).map(|(key, value)| pair(&key, value.into())).parse(after),
        6 => (text("Key"), varuint64("Value")).map(|(key, value)| pair(&key, zigzag(value).into())).parse(after),
        7 => u8le("OpCode").map(|opcode| overrides.opcode = Some(opcode)).parse(after),
        8 => u64le("Keywords").map(|keywords| overrides.keywords = Some(keywords)).parse(after),
        9 => u8le("Level").map(|level| overrides.level = Some(level)).parse(after),
        10 => u8le("Version").map(|version| overrides.version = Some(version)).parse(after),
        _ => Err(refuse(input, "Kind", "a known kind of label")),
    }?;
    Ok((after, kind & 0x80 != 0))
}

/// One label list: the labels and what they override in the event's type.
pub fn label_list(input: &[u8]) -> Parsed<'_, (Labels, Overrides)> {
    let mut list = <(Labels, Overrides)>::default();
    let mut pairs = serde_json::Map::new();
    let (mut rest, mut is_last) = (input, false);
    while !is_last {
        (rest, is_last) = label(rest, &mut list, &mut pairs)?;
    }
    if !pairs.is_empty() {
        list.0.json = serde_json::Value::Object(pairs).to_string();
    }
    Ok((rest, list))
}

fn hex(id: &Guid) -> String {
    id.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Head of a sequence point: time, flags, and how many threads follow.
pub fn sequence_point(input: &[u8]) -> Parsed<'_, (i64, u32, u32)> {
    (i64le("TimeStamp"), u32le("Flags"), u32le("ThreadCount")).parse(input)
}
