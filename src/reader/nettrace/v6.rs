//! V6: blocks with a 24-bit size and a kind, one after the other.
//! Source: `NetTraceFormat.md`, version 6.

use std::path::Path;

use nom::Parser;

use super::blocks_v6::{label_list, metadata_row, sequence_point, thread_row, trace};
use super::header_object::check;
use super::netperf::report_start;
use super::objects::{block_header, stack_block};
use super::state::State;
use crate::bytes::{Parsed, inner, take, u16le, u32le, varuint32, varuint64};
use crate::error::{Error, Problem, Result, Severity};
use crate::reader::{End, Order, ThreadIndex, Visitor};
use crate::source::{Chunk, Source};

const END_OF_STREAM: u8 = 0;
const TRACE: u8 = 1;
const EVENT: u8 = 2;
const METADATA: u8 = 3;
const SEQUENCE_POINT: u8 = 4;
const STACK: u8 = 5;
const THREAD: u8 = 6;
const REMOVE_THREAD: u8 = 7;
const LABEL_LIST: u8 = 8;

/// A block as it comes: kind, offset of its bytes, bytes, and how many of them are missing at the end of the file.
struct Block<'a> {
    kind: u8,
    start: u64,
    chunk: Chunk<'a>,
    missing: usize,
}

/// The next block, or how many bytes of a block header there were at the end of the file.
fn next_block<'a>(source: &mut Source<'a>) -> std::result::Result<Block<'a>, usize> {
    let head = source.take(4);
    let Ok((_, word)) = u32le("BlockHeader")(&head) else { return Err(head.len()) };
    let size = (word & 0x00FF_FFFF) as usize;
    let start = source.position();
    let kind = (word >> 24) as u8;
    let chunk = source.take(size);
    let missing = size - chunk.len();
    Ok(Block { kind, start, chunk, missing })
}

/// Reads everything behind the magic and the zero word.
pub fn read<V: Visitor>(path: &Path, source: &mut Source<'_>, order: Order, visitor: &mut V) -> Result<End> {
    let unreadable = |offset, what: String, expected: &str| {
        Err(Error::Unreadable { path: path.to_owned(), offset, what, expected: expected.into() })
    };
    let versions = source.take(8);
    let read: Parsed<'_, (u32, u32)> = (u32le("MajorVersion"), u32le("MinorVersion")).parse(&versions);
    let Ok((_, (major, minor))) = read else {
        return unreadable(source.position(), "the file ends inside its header".into(), "a version");
    };
    if major != 6 {
        return unreadable(12, format!("nettrace version {major}"), "version 6 or below");
    }
    let block = match next_block(source) {
        Ok(block) if block.kind == TRACE => block,
        Ok(block) => return unreadable(block.start, format!("block of kind {}", block.kind), "the trace block"),
        Err(_) => return unreadable(source.position(), "the file ends inside its header".into(), "the trace block"),
    };
    let info = match trace(&block.chunk, minor) {
        Ok((_, info)) => info,
        Err(e) => {
            let error = inner(e);
            let offset = error.offset(block.start, block.chunk.len());
            return unreadable(offset, format!("trace block: {} cannot be read", error.field()), error.expected());
        }
    };
    check(&info, path, block.start)?;
    visitor.trace(&info);
    let mut state = State::new(visitor, order, info.process_id, true);
    report_start(&mut state, info.start_known, block.start);
    let mut complete = false;
    while !state.stopped {
        let at = source.position();
        match next_block(source) {
            Ok(block) if block.kind == END_OF_STREAM => {
                complete = true;
                break;
            }
            Ok(block) => {
                let missing = block.missing;
                if missing > 0 {
                    let end = block.start + block.chunk.len() as u64;
                    let message =
                        format!("the file ends inside a block of kind {}: {missing} bytes are missing", block.kind);
                    state.problem(Problem::new(Severity::Error, "truncated", end, message));
                    state.cut = true;
                }
                one_block(&mut state, source, block);
                if missing > 0 {
                    break;
                }
            }
            Err(0) => {
                let message = "the file ends here without its end mark; every block before it is whole";
                state.problem(Problem::new(Severity::Error, "no_end_mark", at, message));
                break;
            }
            Err(have) => {
                let message = format!("the file ends here, {have} bytes into a block header");
                state.problem(Problem::new(Severity::Error, "truncated", at + have as u64, message));
                break;
            }
        }
    }
    state.finish(source);
    let end = source.position();
    let trailing_bytes = if complete { source.len().map_or(0, |len| len - end.min(len)) } else { 0 };
    Ok(End { complete, bytes: end, trailing_bytes, dropped_events: state.drops.total })
}

fn one_block<'a, V: Visitor>(state: &mut State<'a, '_, V>, source: &mut Source<'a>, block: Block<'a>) {
    let Block { kind, start, chunk, .. } = block;
    let len = chunk.len();
    let (code, what, read) = match kind {
        EVENT => match block_header(&chunk) {
            Ok((rest, compressed)) => {
                let events_at = len - rest.len();
                return state.event_block::<true>(source, start, chunk, events_at, compressed);
            }
            Err(e) => ("damaged_block", "event block header", Err(e)),
        },
        STACK => return stack_block(state, start, chunk),
        METADATA => ("damaged_metadata", "metadata block", metadata_block(state, start, &chunk)),
        SEQUENCE_POINT => ("damaged_sequence_point", "sequence point", region_end(state, source, start, &chunk)),
        THREAD => ("damaged_thread_block", "thread block", thread_block(state, start, &chunk)),
        REMOVE_THREAD => ("damaged_thread_block", "block of removed threads", remove_threads(state, start, &chunk)),
        LABEL_LIST => ("damaged_label_block", "label list block", label_block(state, start, &chunk)),
        _ => {
            let message = format!("block of unknown kind {kind} ({len} bytes) was skipped");
            state.problem(Problem::new(Severity::DataLoss, "unknown_block", start, message));
            return;
        }
    };
    if let Err(e) = read {
        state.parse_problem(code, what, start, len, &inner(e));
    }
    source.recycle(chunk);
}

type Done<'b> = Parsed<'b, ()>;

fn metadata_block<'b, V: Visitor>(state: &mut State<'_, '_, V>, start: u64, block: &'b [u8]) -> Done<'b> {
    let (rest, size) = u16le("HeaderSize")(block)?;
    let (mut rest, _) = take(usize::from(size), "Header")(rest)?;
    while !rest.is_empty() {
        let at = start + (block.len() - rest.len()) as u64;
        let (id, event_type, unknown);
        (rest, (id, event_type, unknown)) = metadata_row(rest)?;
        if matches!(event_type.layout, crate::reader::Layout::Unreadable(_)) {
            let message = format!(
                "metadata of {}/{} (id {}): the field list cannot be read; events are kept raw",
                event_type.provider, event_type.name, event_type.event_id
            );
            state.problem(Problem::new(Severity::Error, "damaged_field_list", at, message));
        }
        if unknown {
            let message = "optional metadata of an unknown kind was left out";
            state.problem(Problem::new(Severity::Info, "unknown_optional_metadata", at, message));
        }
        state.define_metadata(id, event_type, at);
    }
    Ok((rest, ()))
}

fn thread_block<'b, V: Visitor>(state: &mut State<'_, '_, V>, start: u64, block: &'b [u8]) -> Done<'b> {
    let mut rest = block;
    while !rest.is_empty() {
        let at = start + (block.len() - rest.len()) as u64;
        let (index, thread, unknown);
        (rest, (index, thread, unknown)) = thread_row(rest, state.default_process())?;
        if unknown {
            let message = "thread information of an unknown kind was left out";
            state.problem(Problem::new(Severity::Info, "unknown_thread_info", at, message));
        }
        let thread = state.intern_thread(thread);
        if let Some(before) = state.define_thread(index, thread)
            && before != thread
        {
            let message = format!("thread index {index} is defined twice, differently; the later definition counts");
            state.problem(Problem::new(Severity::Info, "duplicate_thread_index", at, message));
        }
    }
    Ok((rest, ()))
}

fn remove_threads<'b, V: Visitor>(state: &mut State<'_, '_, V>, start: u64, block: &'b [u8]) -> Done<'b> {
    let mut rest = block;
    while !rest.is_empty() {
        let (index, sequence);
        (rest, (index, sequence)) = (varuint64("Index"), varuint32("SequenceNumber")).parse(rest)?;
        match state.thread_table.remove(&index) {
            Some(thread) => {
                last_number(state, index, thread, sequence, start);
                state.drops.forget(index);
            }
            None => {
                let message = format!("thread index {index} is removed but not defined");
                state.problem(Problem::new(Severity::Info, "unknown_thread", start, message));
            }
        }
    }
    Ok((rest, ()))
}

fn last_number<V: Visitor>(state: &mut State<'_, '_, V>, index: u64, thread: ThreadIndex, sequence: u32, at: u64) {
    let gap = state.drops.point(index, sequence);
    if gap > 0 {
        state.gap(thread, gap, at);
    }
}

fn region_end<'a, 'b, V: Visitor>(
    state: &mut State<'a, '_, V>,
    source: &mut Source<'a>,
    start: u64,
    block: &'b [u8],
) -> Done<'b> {
    let head = sequence_point(block);
    let mut result = Ok((&[] as &[u8], ()));
    let mut flags = 0;
    match head {
        Ok((mut rest, (_, found, count))) => {
            flags = found;
            for _ in 0..count {
                let entry: Parsed<'_, (u64, u32)> = (varuint64("ThreadIndex"), varuint32("SequenceNumber")).parse(rest);
                match entry {
                    Ok((next, (index, sequence))) => {
                        rest = next;
                        if let Some(thread) = state.thread_table.get(&index).copied() {
                            last_number(state, index, thread, sequence, start);
                        }
                    }
                    Err(e) => {
                        result = Err(e);
                        break;
                    }
                }
            }
        }
        Err(e) => result = Err(e),
    }
    state.end_region(source);
    if flags & 1 != 0 {
        state.thread_table.clear();
        state.drops.forget_all();
    }
    if flags & 2 != 0 {
        state.forget_metadata();
    }
    result
}

fn label_block<'b, V: Visitor>(state: &mut State<'_, '_, V>, start: u64, block: &'b [u8]) -> Done<'b> {
    let (mut rest, (mut id, count)) = (u32le("firstIndex"), u32le("count")).parse(block)?;
    if count as usize > rest.len() / 2 {
        return Err(crate::bytes::fail(rest.len(), "count", "a count that fits into the block"));
    }
    for _ in 0..count {
        let (labels, overrides);
        (rest, (labels, overrides)) = label_list(rest)?;
        state.define_labels(id, labels, overrides, start);
        id = id.wrapping_add(1);
    }
    Ok((rest, ()))
}
