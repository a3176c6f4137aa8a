//! The blocks of V3 to "V5": events, descriptions of them, stacks, sequence points.
//! Source: `NetTraceFormat_v5.md`, the sections on each object.

use super::block_header::block_header;
use super::event_header::EventHeader;
use super::metadata::record;
use super::object_type::Content;
use super::resync::{Behind, next_flat_event};
use super::state::{NettraceState, is_hole};
use crate::bytes::{Parsed, i64le, inner, items, refuse, take, u32le, u64le};
use crate::prelude::*;
use crate::source::{Chunk, Source};

/// Reads the content of a block, which begins at `start`. Gives how many bytes of events at its end could not be read.
pub fn content<'a>(
    state: &mut NettraceState<'a, '_>,
    source: &mut Source<'a>,
    kind: Content,
    version: u32,
    start: u64,
    chunk: Chunk<'a>,
) -> usize {
    match kind {
        Content::Events if version == 3 => return event_block_v3(state, source, start, chunk),
        Content::Events => match block_header(&chunk) {
            Ok((rest, header)) => {
                let events_at = chunk.len() - rest.len();
                return state.event_block::<false>(source, start, chunk, events_at, header);
            }
            Err(e) => {
                state.out.parse_problem("damaged_block", "event block header", start, &chunk, &inner(e));
                return chunk.len();
            }
        },
        Content::Metadata => metadata_block(state, start, &chunk),
        Content::Stacks => {
            stack_block(state, start, chunk);
            return 0;
        }
        Content::SequencePoint => sequence_point(state, source, start, &chunk),
    }
    source.recycle(chunk);
    0
}

fn metadata_block(state: &mut NettraceState<'_, '_>, start: u64, block: &[u8]) {
    let (mut rest, compressed) = match block_header(block) {
        Ok((rest, header)) => (rest, header.compressed),
        Err(e) => return state.out.parse_problem("damaged_block", "metadata block header", start, block, &inner(e)),
    };
    let mut header = EventHeader::default();
    while !rest.is_empty() {
        let read = if compressed {
            header.compressed::<false>(rest).and_then(|(r, ())| take(header.payload_size as usize, "Payload")(r))
        } else {
            header.uncompressed::<false>(rest)
        };
        let read = read.and_then(|(next, payload)| {
            if is_hole(rest, payload) {
                Err(refuse(rest, "Flags", "a record and not a run of zeros"))
            } else {
                Ok((next, payload))
            }
        });
        let (next, payload) = match read {
            Ok(read) => read,
            Err(e) => return state.out.parse_problem("damaged_metadata", "metadata block", start, block, &inner(e)),
        };
        let at = start + (block.len() - next.len() - payload.len()) as u64;
        rest = next;
        metadata_record(state, payload, at);
    }
}

fn metadata_record(state: &mut NettraceState<'_, '_>, payload: &[u8], at: u64) {
    match record(payload) {
        Ok((_, record)) => {
            if let Some(problem) = record.problem(at) {
                state.problem(problem);
            }
            state.define_metadata(record.id, record.event_type, at);
        }
        Err(e) => state.out.parse_problem("damaged_metadata", "metadata record", at, payload, &inner(e)),
    }
}

/// V3: events one after the other, each with its stack; a description is an event with the metadata id 0.
fn event_block_v3<'a>(
    state: &mut NettraceState<'a, '_>,
    source: &mut Source<'a>,
    start: u64,
    chunk: Chunk<'a>,
) -> usize {
    let mut rest: &[u8] = &chunk;
    let mut unread = 0;
    while !rest.is_empty() && !state.stopped {
        let at = start + (chunk.len() - rest.len()) as u64;
        let mut header = EventHeader::default();
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
                let found = next_flat_event(rest, true, &state.types, |_| ());
                let next = if let Behind::Event(next) = found { Some(next) } else { None };
                unread = next.map_or(rest.len(), |_| 0);
                let lost = next.unwrap_or(rest.len());
                damaged_event(state, "event block", at, &chunk, (start, &inner(e)), lost);
                rest = rest.get(lost..).unwrap_or_default();
            }
        }
    }
    source.recycle(chunk);
    source.release(source.position());
    state.out.visitor.progress(source.position());
    unread
}

/// Reports that `lost` bytes from `at` on are no events. `error` is in `frame`, which begins at `start`.
pub fn damaged_event(
    state: &mut NettraceState<'_, '_>,
    what: &str,
    at: u64,
    frame: &[u8],
    (start, error): (u64, &crate::bytes::ParseError),
    lost: usize,
) {
    if state.out.damage_known {
        return;
    }
    let offset = error.offset_in(start, frame);
    let message = format!("{what} is damaged in the event at byte {at}; reading continues after {lost} bytes: {error}");
    state.problem(Problem::error("damaged_event", offset, message).count(lost as u64));
}

/// Reads a stack block and reports what was wrong in it; the same in all versions from 4 on.
pub fn stack_block<'a>(state: &mut NettraceState<'a, '_>, start: u64, chunk: Chunk<'a>) {
    let quiet = state.out.damage_known;
    let read = state.stacks.block(chunk, start);
    if let Some((offset, error)) = read.error.filter(|_| !quiet) {
        state.problem(Problem::error("damaged_stack_block", offset, format!("stack block: {error}")));
    } else if read.miscounted && !quiet {
        state.problem(Problem::error("damaged_stack_block", start, "stack block holds fewer stacks than it announces"));
    }
    if read.refused > 0 {
        let message = "more stacks than fit into memory between two sequence points; events lose theirs";
        state.problem(Problem::loss("too_many_stacks", start, message).count(read.refused));
    }
}

/// `TimeStamp:i64 ThreadCount:u32 (ThreadId:u64 SequenceNumber:u32)*`
fn sequence_point<'a>(state: &mut NettraceState<'a, '_>, source: &mut Source<'a>, start: u64, block: &[u8]) {
    let head: Parsed<'_, (i64, u32)> = (i64le("TimeStamp"), u32le("ThreadCount")).parse(block);
    let rest = match head {
        Ok((rest, (_, count))) if count as usize <= rest.len() / 12 => rest,
        Ok((rest, (_, count))) => {
            if !state.out.damage_known {
                let message = format!("sequence point announces {count} threads, {} bytes are left", rest.len());
                state.problem(Problem::error("damaged_sequence_point", start, message));
            }
            rest
        }
        Err(e) => {
            state.out.parse_problem("damaged_sequence_point", "sequence point", start, block, &inner(e));
            &[]
        }
    };
    let whole = rest.get(..rest.len() / 12 * 12).unwrap_or_default();
    for (thread, sequence) in &mut items(whole, (u64le("ThreadId"), u32le("SequenceNumber"))) {
        state.last_number(thread, |state| state.os_thread(thread), sequence, start);
    }
    state.end_region(source);
}
