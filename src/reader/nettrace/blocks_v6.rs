//! The blocks of V6 besides events and stacks: header, metadata rows, threads, labels.
//! Source: `NetTraceFormat.md`, version 6.

use nom::Parser;

use super::header_object::clock;
use super::metadata::{MAX_DEPTH, simple_type};
use super::resolve::Overrides;
use crate::bytes::{
    Parsed, fail, guid, i32le, i64le, take, u8le, u16le, u32le, u64le, utf8_counted, varuint32, varuint64, zigzag,
};
use crate::guid::Guid;
use crate::reader::{EventType, Field, FieldType, Labels, Layout, Thread, TraceInfo};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The TraceBlock.
pub fn trace(input: &[u8], minor: u32) -> Parsed<'_, TraceInfo> {
    let (rest, (clock, start_known)) = clock(input)?;
    let (mut rest, (pointer_size, count)) = (i32le("PointerSize"), i32le("KeyValueCount")).parse(rest)?;
    let count = usize::try_from(count).ok().filter(|c| *c <= rest.len() / 2);
    let Some(count) = count else {
        return Err(fail(rest.len(), "KeyValueCount", "a count that fits into the block"));
    };
    let mut key_values = Vec::with_capacity(count);
    for _ in 0..count {
        let (key, value);
        (rest, (key, value)) = (utf8_counted("Key"), utf8_counted("Value")).parse(rest)?;
        key_values.push((text(key), text(value)));
    }
    let number = |name: &str| {
        let found = key_values.iter().find(|(key, _)| key == name);
        found.and_then(|(_, value)| value.trim().parse::<u64>().ok()).unwrap_or_default()
    };
    let info = TraceInfo {
        container: "nettrace",
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
    Ok((rest, info))
}

/// One row of a metadata block: its id, the type, and whether optional metadata of an unknown kind was left out.
pub fn metadata_row(input: &[u8]) -> Parsed<'_, (u32, EventType, bool)> {
    let (after, size) = u16le("Size")(input)?;
    let (after, row) = take(usize::from(size), "Metadata row")(after)?;
    let (rest, (id, provider, event_id, name)) =
        (varuint32("MetaDataId"), utf8_counted("ProviderName"), varuint32("EventId"), utf8_counted("EventName"))
            .parse(row)?;
    let mut event_type = EventType {
        provider: text(provider),
        provider_guid: None,
        event_id,
        version: 0,
        name: text(name),
        opcode: None,
        level: 0,
        keywords: 0,
        layout: Layout::Unreadable("the recording's description of the fields is damaged"),
        message: None,
    };
    let mut unknown = false;
    if let Ok((rest, fields)) = field_list(rest, 0) {
        event_type.layout = Layout::Fields(fields);
        if let Ok((_, optional)) = optional_bytes(rest) {
            unknown = optional_metadata(optional, &mut event_type).is_err();
        }
    }
    Ok((after, (id, event_type, unknown)))
}

fn optional_bytes(input: &[u8]) -> Parsed<'_, &[u8]> {
    if input.is_empty() {
        return Ok((input, input));
    }
    let (rest, size) = u16le("OptionalMetadata")(input)?;
    take(usize::from(size), "OptionalMetadata")(rest)
}

/// Reads optional metadata up to the first element of a kind that is not known: its length is not known either.
fn optional_metadata<'a>(input: &'a [u8], event_type: &mut EventType) -> Parsed<'a, ()> {
    let mut rest = input;
    while !rest.is_empty() {
        let kind;
        (rest, kind) = u8le("Kind")(rest)?;
        match kind {
            1 => {
                let value;
                (rest, value) = u8le("OpCode")(rest)?;
                event_type.opcode = Some(value);
            }
            3 => (rest, event_type.keywords) = u64le("Keywords")(rest)?,
            4 | 5 => {
                let value;
                (rest, value) = utf8_counted("MessageTemplate")(rest)?;
                event_type.message.get_or_insert_with(|| text(value));
            }
            6 => (rest, _) = (utf8_counted("Key"), utf8_counted("Value")).parse(rest)?,
            7 => {
                let value;
                (rest, value) = guid("ProviderGuid")(rest)?;
                event_type.provider_guid = Some(value);
            }
            8 => {
                let value;
                (rest, value) = u8le("Level")(rest)?;
                event_type.level = u32::from(value);
            }
            9 => {
                let value;
                (rest, value) = u8le("Version")(rest)?;
                event_type.version = u32::from(value);
            }
            _ => return Err(fail(rest.len(), "Kind", "a known kind of optional metadata")),
        }
    }
    Ok((rest, ()))
}

fn field_list(input: &[u8], depth: usize) -> Parsed<'_, Vec<Field>> {
    let (mut rest, count) = u16le("Count")(input)?;
    if usize::from(count) > rest.len() / 4 {
        return Err(fail(rest.len(), "Count", "a count that fits into the row"));
    }
    let mut fields = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let (size, field);
        (rest, size) = u16le("FieldSize")(rest)?;
        (rest, field) = take(usize::from(size), "Field")(rest)?;
        let (inside, name) = utf8_counted("FieldName")(field)?;
        let (_undefined, kind) = field_type(inside, depth)?;
        fields.push(Field { name: text(name), kind });
    }
    Ok((rest, fields))
}

fn field_type(input: &[u8], depth: usize) -> Parsed<'_, FieldType> {
    if depth >= MAX_DEPTH {
        return Err(fail(input.len(), "TypeCode", "less nesting"));
    }
    let (rest, code) = u8le("TypeCode")(input)?;
    let part = |rest| field_type(rest, depth + 1).map(|(rest, kind)| (rest, Box::new(kind)));
    Ok(match code {
        1 => {
            let (rest, fields) = field_list(rest, depth + 1)?;
            (rest, FieldType::Object(fields))
        }
        19 => {
            let (rest, element) = part(rest)?;
            (rest, FieldType::Array(element))
        }
        20 => (rest, FieldType::VarInt),
        21 => (rest, FieldType::VarUInt),
        22 => {
            let (rest, element) = part(rest)?;
            let (rest, count) = u16le("ElementCount")(rest)?;
            (rest, FieldType::FixedArray(element, count))
        }
        23 => (rest, FieldType::Utf8Unit),
        24 | 25 => {
            let (rest, element) = part(rest)?;
            if !is_fixed_size(&element) {
                return Err(fail(rest.len(), "ElementType", "an element of fixed size behind RelLoc and DataLoc"));
            }
            (rest, if code == 24 { FieldType::RelLoc(element) } else { FieldType::DataLoc(element) })
        }
        26 => (rest, FieldType::Bool8),
        _ => match simple_type(code) {
            Some(kind) => (rest, kind),
            None => return Err(fail(input.len(), "TypeCode", "a known type")),
        },
    })
}

fn is_fixed_size(kind: &FieldType) -> bool {
    match kind {
        FieldType::Object(fields) => fields.iter().all(|f| is_fixed_size(&f.kind)),
        FieldType::FixedArray(element, _) => is_fixed_size(element),
        FieldType::Array(_) | FieldType::Utf16Z | FieldType::VarInt | FieldType::VarUInt => false,
        _ => true,
    }
}

/// One row of a thread block: its index, the thread, and whether information of an unknown kind was left out.
pub fn thread_row(input: &[u8], default_process: u64) -> Parsed<'_, (u64, Thread, bool)> {
    let (after, size) = u16le("RowSize")(input)?;
    let (after, row) = take(usize::from(size), "Thread row")(after)?;
    let (mut rest, index) = varuint64("Index")(row)?;
    let mut thread = Thread { process_id: default_process, ..Thread::default() };
    while !rest.is_empty() {
        let kind;
        (rest, kind) = u8le("Kind")(rest)?;
        match kind {
            1 => {
                let name;
                (rest, name) = utf8_counted("Name")(rest)?;
                thread.name = Some(text(name));
            }
            2 => (rest, thread.process_id) = varuint64("OSProcessId")(rest)?,
            3 => (rest, thread.thread_id) = varuint64("OSThreadId")(rest)?,
            4 => (rest, _) = (utf8_counted("Key"), utf8_counted("Value")).parse(rest)?,
            _ => return Ok((after, (index, thread, true))),
        }
    }
    Ok((after, (index, thread, false)))
}

/// One label list: the labels and what they override in the event's type.
pub fn label_list(input: &[u8]) -> Parsed<'_, (Labels, Overrides)> {
    let mut labels = Labels::default();
    let mut overrides = Overrides::default();
    let mut pairs = serde_json::Map::new();
    let mut rest = input;
    loop {
        let kind;
        let before = rest.len();
        (rest, kind) = u8le("Kind")(rest)?;
        match kind & 0x7F {
            1 => (rest, labels.activity_id) = guid("ActivityId")(rest)?,
            2 => (rest, labels.related_activity_id) = guid("RelatedActivityId")(rest)?,
            3 => {
                let id;
                (rest, id) = guid("TraceId")(rest)?;
                pairs.insert("TraceId".into(), hex(&id).into());
            }
            4 => {
                let id;
                (rest, id) = u64le("SpanId")(rest)?;
                pairs.insert("SpanId".into(), format!("{id:016x}").into());
            }
            5 => {
                let (key, value);
                (rest, (key, value)) = (utf8_counted("Key"), utf8_counted("Value")).parse(rest)?;
                pairs.insert(text(key), text(value).into());
            }
            6 => {
                let (key, value);
                (rest, (key, value)) = (utf8_counted("Key"), varuint64("Value")).parse(rest)?;
                pairs.insert(text(key), zigzag(value).into());
            }
            7 => {
                let value;
                (rest, value) = u8le("OpCode")(rest)?;
                overrides.opcode = Some(value);
            }
            8 => {
                let value;
                (rest, value) = u64le("Keywords")(rest)?;
                overrides.keywords = Some(value);
            }
            9 => {
                let value;
                (rest, value) = u8le("Level")(rest)?;
                overrides.level = Some(value);
            }
            10 => {
                let value;
                (rest, value) = u8le("Version")(rest)?;
                overrides.version = Some(value);
            }
            _ => return Err(fail(before, "Kind", "a known kind of label")),
        }
        if kind & 0x80 != 0 {
            break;
        }
    }
    if !pairs.is_empty() {
        labels.json = serde_json::Value::Object(pairs).to_string();
    }
    Ok((rest, (labels, overrides)))
}

fn hex(id: &Guid) -> String {
    id.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Head of a sequence point: time, flags, and how many threads follow.
pub fn sequence_point(input: &[u8]) -> Parsed<'_, (i64, u32, u32)> {
    (i64le("TimeStamp"), u32le("Flags"), u32le("ThreadCount")).parse(input)
}
