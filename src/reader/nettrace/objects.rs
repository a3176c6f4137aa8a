//! V3 to "V5": the objects of the FastSerialization container, one after the other.
//!
//! ```text
//! 5 BeginPrivateObject (4 BeginObject in netperf)
//!   5 1 version:i32 min_reader:i32 len:i32 name 6     the type
//!   size:i32, padding to 4 bytes of the file, block   the payload
//! 6 EndObject
//! ...
//! 1 NullReference: the end
//! ```
//! Source: `NetTraceFormat_v5.md`, "Objects" and the sections on each object.

use std::path::Path;

use nom::Parser;

use super::header::Header;
use super::header_object::{FIELDS_LEN, check, fields};
use super::metadata::record;
use super::netperf::report_start;
use super::state::State;
use crate::bytes::{Parsed, i32le, i64le, inner, take, u16le, u32le, u64le};
use crate::error::{Error, Problem, Result, Severity};
use crate::reader::{End, Order, Visitor};
use crate::source::{Chunk, MAX_CHUNK, Source};

const NULL_REFERENCE: u8 = 1;
const BEGIN_OBJECT: u8 = 4;
const BEGIN_PRIVATE_OBJECT: u8 = 5;
const END_OBJECT: u8 = 6;

/// Name and versions of an object's type.
pub struct ObjectType {
    pub name: String,
    pub version: i32,
    pub min_reader: i32,
}

/// What stands where an object may begin.
pub enum Next {
    Object(ObjectType),
    End,
    /// The file is over: how many bytes there were of what should have been an object.
    Cut(usize),
    Damaged(&'static str),
}

/// Reads the tags and the type of the next object.
pub fn next_object(source: &mut Source<'_>) -> Next {
    let tags = source.take(3);
    match &*tags {
        [NULL_REFERENCE, ..] => return Next::End,
        [BEGIN_OBJECT | BEGIN_PRIVATE_OBJECT, BEGIN_OBJECT | BEGIN_PRIVATE_OBJECT, NULL_REFERENCE] => {}
        [_, _, _] => return Next::Damaged("the tags of an object or of the end"),
        short => return Next::Cut(short.len()),
    }
    let head = source.take(12);
    let Ok((_, (version, min_reader, length))) = versions(&head) else { return Next::Cut(head.len() + 3) };
    if !(0..=64).contains(&length) {
        return Next::Damaged("a type name of 0 to 64 bytes");
    }
    let name = source.take(length as usize + 1);
    match name.split_last() {
        Some((&END_OBJECT, text)) if text.len() == length as usize => {
            let name = String::from_utf8_lossy(text).into_owned();
            Next::Object(ObjectType { name, version, min_reader })
        }
        _ if name.len() <= length as usize => Next::Cut(name.len() + 15),
        _ => Next::Damaged("the end tag of a type"),
    }
}

fn versions(input: &[u8]) -> Parsed<'_, (i32, i32, i32)> {
    (i32le("Version"), i32le("MinimumReaderVersion"), i32le("NameLength")).parse(input)
}

/// Reads everything behind the type of the Trace object.
pub fn read<V: Visitor>(
    path: &Path,
    trace: &ObjectType,
    source: &mut Source<'_>,
    order: Order,
    visitor: &mut V,
) -> Result<End> {
    let version = u32::try_from(trace.version).unwrap_or_default();
    let fields_at = source.position();
    let header = source.take(FIELDS_LEN);
    let Ok((_, info)) = fields(&header, version) else {
        return Err(Error::Unreadable {
            path: path.to_owned(),
            offset: source.position(),
            what: "the file ends inside its header".into(),
            expected: format!("{FIELDS_LEN} bytes of header"),
        });
    };
    check(&info, path, fields_at)?;
    visitor.trace(&info);
    let mut state = State::new(visitor, order, info.process_id, false);
    report_start(&mut state, info.start_known, fields_at);
    let mut complete = None;
    if end_object(&mut state, source) {
        loop {
            let at = source.position();
            match next_object(source) {
                Next::End => {
                    complete = Some(at + 1);
                    break;
                }
                Next::Cut(have) => {
                    cut(&mut state, at, have);
                    break;
                }
                Next::Damaged(expected) => {
                    let message = format!("no object here: expected {expected}; nothing behind it can be found");
                    state.problem(Problem::new(Severity::Error, "damaged_container", at, message));
                    break;
                }
                Next::Object(object) => {
                    if !block(&mut state, source, &object, version, at) || state.stopped {
                        break;
                    }
                }
            }
        }
    }
    state.finish(source);
    let end = complete.unwrap_or(source.position());
    // Bytes behind the end mark are legal and mean nothing.
    let trailing_bytes = if complete.is_some() { source.len().map_or(0, |len| len - end.min(len)) } else { 0 };
    Ok(End { complete: complete.is_some(), bytes: end, trailing_bytes, dropped_events: state.drops.total })
}

fn cut<V: Visitor>(state: &mut State<'_, '_, V>, at: u64, have: usize) {
    let message = if have == 0 {
        "the file ends here without its end mark; every block before it is whole".to_owned()
    } else {
        format!("the file ends here, {have} bytes into an object")
    };
    let code = if have == 0 { "no_end_mark" } else { "truncated" };
    state.problem(Problem::new(Severity::Error, code, at + have as u64, message));
}

fn end_object<V: Visitor>(state: &mut State<'_, '_, V>, source: &mut Source<'_>) -> bool {
    let at = source.position();
    match source.take(1).first() {
        Some(&END_OBJECT) => true,
        Some(other) => {
            let message = format!("tag {other} where the end tag of an object was expected");
            state.problem(Problem::new(Severity::Error, "damaged_container", at, message));
            false
        }
        None => {
            cut(state, at, 0);
            false
        }
    }
}

/// Reads one block with its end tag. `false` when nothing behind it can be read.
fn block<'a, V: Visitor>(
    state: &mut State<'a, '_, V>,
    source: &mut Source<'a>,
    object: &ObjectType,
    version: u32,
    at: u64,
) -> bool {
    let known = matches!(object.name.as_str(), "EventBlock" | "MetadataBlock" | "StackBlock" | "SPBlock");
    if object.min_reader > version.max(2) as i32 {
        let message = format!("{} needs a reader of version {}", object.name, object.min_reader);
        state.problem(Problem::new(Severity::Error, "unknown_block_version", at, message));
        return false;
    }
    let size_at = source.position();
    let head = source.take(4);
    let Ok((_, size)) = i32le("BlockSize")(&head) else {
        cut(state, size_at, head.len());
        return false;
    };
    let Ok(size) = usize::try_from(size) else {
        let message = format!("{} of {size} bytes: expected a size of at least 0", object.name);
        state.problem(Problem::new(Severity::Error, "bad_block_size", size_at, message));
        return false;
    };
    let over = (source.position() % 4) as usize;
    if over != 0 {
        source.take(4 - over);
    }
    let start = source.position();
    let chunk = source.take(size);
    let missing = size - chunk.len();
    if missing > 0 {
        let end = start + chunk.len() as u64;
        let message = if chunk.len() >= MAX_CHUNK && source.len().is_none() {
            format!("{} of {size} bytes, more than the {MAX_CHUNK} that are read from a stream", object.name)
        } else {
            format!("the file ends inside a {}: {missing} of {size} bytes are missing", object.name)
        };
        state.problem(Problem::new(Severity::Error, "truncated", end, message));
        state.cut = true;
    }
    if !known {
        return skip_unknown(state, source, object, at, size, missing);
    }
    match object.name.as_str() {
        "EventBlock" if version == 3 => event_block_v3(state, source, start, chunk),
        "EventBlock" => match block_header(&chunk) {
            Ok((rest, compressed)) => {
                let events_at = chunk.len() - rest.len();
                state.event_block::<false>(source, start, chunk, events_at, compressed);
            }
            Err(e) => state.parse_problem("damaged_block", "event block header", start, chunk.len(), &inner(e)),
        },
        "MetadataBlock" => {
            metadata_block(state, start, &chunk);
            source.recycle(chunk);
        }
        "StackBlock" => stack_block(state, start, chunk),
        _ => {
            sequence_point(state, source, start, &chunk);
            source.recycle(chunk);
        }
    }
    missing == 0 && end_object(state, source)
}

/// An object of an unknown type can be skipped only if it has the form of a block: its size must lead to an end tag.
fn skip_unknown<'a, V: Visitor>(
    state: &mut State<'a, '_, V>,
    source: &mut Source<'a>,
    object: &ObjectType,
    at: u64,
    size: usize,
    missing: usize,
) -> bool {
    let is_block = missing == 0 && source.take(1).first() == Some(&END_OBJECT);
    let name: String = object.name.chars().filter(|c| !c.is_control()).collect();
    let message = if is_block {
        format!("block of unknown type '{name}' ({size} bytes) was skipped")
    } else {
        format!("object of unknown type '{name}' is no block; nothing behind it can be found")
    };
    let severity = if is_block { Severity::DataLoss } else { Severity::Error };
    state.problem(Problem::new(severity, "unknown_block", at, message));
    is_block
}

/// Header of event and metadata blocks: size with itself (a surplus is skipped), flags. Gives whether headers are
/// compressed. Minimum and maximum times are not looked at: writers leave them 0 or at their limits.
pub fn block_header(block: &[u8]) -> Parsed<'_, bool> {
    let (_, (size, flags)) = (u16le("HeaderSize"), u16le("Flags")).parse(block)?;
    if size < 20 {
        return Err(crate::bytes::fail(block.len(), "HeaderSize", "at least 20"));
    }
    let (rest, _) = take(usize::from(size), "Header")(block)?;
    Ok((rest, flags & 1 != 0))
}

fn metadata_block<V: Visitor>(state: &mut State<'_, '_, V>, start: u64, block: &[u8]) {
    let (mut rest, compressed) = match block_header(block) {
        Ok(read) => read,
        Err(e) => return state.parse_problem("damaged_block", "metadata block header", start, block.len(), &inner(e)),
    };
    let mut header = Header::default();
    while !rest.is_empty() {
        let read = if compressed {
            header.compressed::<false>(rest).and_then(|(r, ())| take(header.payload_size as usize, "Payload")(r))
        } else {
            header.uncompressed::<false>(rest)
        };
        let (next, payload) = match read {
            Ok(read) => read,
            Err(e) => {
                let error = inner(e);
                return state.parse_problem("damaged_metadata", "metadata block", start, block.len(), &error);
            }
        };
        let at = start + (block.len() - next.len() - payload.len()) as u64;
        rest = next;
        metadata_record(state, payload, at);
    }
}

fn metadata_record<V: Visitor>(state: &mut State<'_, '_, V>, payload: &[u8], at: u64) {
    match record(payload) {
        Ok((_, record)) => {
            if let Some(problem) = record.problem(at) {
                state.problem(problem);
            }
            state.define_metadata(record.id, record.event_type, at);
        }
        Err(e) => state.parse_problem("damaged_metadata", "metadata record", at, payload.len(), &inner(e)),
    }
}

fn event_block_v3<'a, V: Visitor>(state: &mut State<'a, '_, V>, source: &mut Source<'a>, start: u64, chunk: Chunk<'a>) {
    let mut rest: &[u8] = &chunk;
    while !rest.is_empty() && !state.stopped {
        let at = start + (chunk.len() - rest.len()) as u64;
        let mut header = Header::default();
        match header.flat(rest, true) {
            Ok((next, (payload, stack))) => {
                if header.metadata_id == 0 {
                    metadata_record(state, payload, at + 56);
                } else {
                    state.flat_event(&header, payload, stack, at + 56);
                }
                rest = next;
            }
            Err(e) => {
                let what = "event block ends in the middle of an event; what stood before it is kept";
                state.parse_problem("damaged_event", what, start, chunk.len(), &inner(e));
                break;
            }
        }
    }
    source.recycle(chunk);
    source.release(source.position());
    state.visitor.progress(source.position());
}

/// Reads a stack block and reports what was wrong in it; the same in all versions from 4 on.
pub fn stack_block<'a, V: Visitor>(state: &mut State<'a, '_, V>, start: u64, chunk: Chunk<'a>) {
    let len = chunk.len();
    let read = state.stacks.block(chunk);
    if let Some(error) = &read.error {
        state.parse_problem("damaged_stack_block", "stack block", start, len, error);
    } else if read.miscounted && !state.cut {
        let message = "stack block holds fewer stacks than it announces";
        state.problem(Problem::new(Severity::Error, "damaged_stack_block", start, message));
    }
    if read.refused > 0 {
        let message = "more stacks than fit into memory between two sequence points; events lose theirs";
        state.problem(Problem::new(Severity::DataLoss, "too_many_stacks", start, message).count(read.refused));
    }
}

fn sequence_point<'a, V: Visitor>(state: &mut State<'a, '_, V>, source: &mut Source<'a>, start: u64, block: &[u8]) {
    let head: Parsed<'_, (i64, u32)> = (i64le("TimeStamp"), u32le("ThreadCount")).parse(block);
    let mut rest = match head {
        Ok((rest, (_, count))) if count as usize <= rest.len() / 12 => rest,
        Ok((rest, _)) if state.cut => rest,
        Ok((rest, (_, count))) => {
            let message = format!("sequence point announces {count} threads, {} bytes are left", rest.len());
            state.problem(Problem::new(Severity::Error, "damaged_sequence_point", start, message));
            rest
        }
        Err(e) => {
            state.parse_problem("damaged_sequence_point", "sequence point", start, block.len(), &inner(e));
            &[]
        }
    };
    while rest.len() >= 12 {
        let entry: Parsed<'_, (u64, u32)> = (u64le("ThreadId"), u32le("SequenceNumber")).parse(rest);
        let Ok((next, (thread, sequence))) = entry else { break };
        rest = next;
        let gap = state.drops.point(thread, sequence);
        if gap > 0 {
            let thread = state.os_thread(thread);
            state.gap(thread, gap, start);
        }
    }
    state.end_region(source);
}
