//! The blocks of V6.
//! Source: `NetTraceFormat.md`, version 6.

use nom::combinator::rest_len;

use super::block_header::block_header;
use super::blocks::stack_block;
use super::rows_v6::{label_list, metadata_row, sequence_point, thread_row};
use super::state::NettraceState;
use crate::bytes::{Parsed, inner, items, refuse, take, u16le, u32le, varuint32, varuint64};
use crate::prelude::*;
use crate::reader::Layout;
use crate::source::{Chunk, Source};

const EVENT: u8 = 2;
const METADATA: u8 = 3;
const SEQUENCE_POINT: u8 = 4;
const STACK: u8 = 5;
const THREAD: u8 = 6;
const REMOVE_THREAD: u8 = 7;
const LABEL_LIST: u8 = 8;

/// Reads the content of a block, which begins at `start`. Gives how many bytes of events at its end could not be read.
pub fn content<'a>(
    state: &mut NettraceState<'a, '_>,
    source: &mut Source<'a>,
    kind: u8,
    start: u64,
    chunk: Chunk<'a>,
) -> usize {
    let len = chunk.len();
    let mut unread = 0;
    let (code, what, read) = match kind {
        EVENT => match block_header(&chunk) {
            Ok((rest, header)) => {
                let events_at = len - rest.len();
                return state.event_block::<true>(source, start, chunk, events_at, header);
            }
            Err(e) => {
                unread = len;
                ("damaged_block", "event block header", Err(e))
            }
        },
        STACK => {
            stack_block(state, start, chunk);
            return 0;
        }
        METADATA => ("damaged_metadata", "metadata block", metadata_block(state, source, start, &chunk)),
        SEQUENCE_POINT => ("damaged_sequence_point", "sequence point", region_end(state, source, start, &chunk)),
        THREAD => ("damaged_thread_block", "thread block", thread_block(state, source, start, &chunk)),
        REMOVE_THREAD => ("damaged_thread_block", "block of removed threads", remove_threads(state, start, &chunk)),
        LABEL_LIST => ("damaged_label_block", "label list block", label_block(state, start, &chunk)),
        _ => {
            let message = format!("block of unknown kind {kind} ({len} bytes) was skipped");
            state.problem(Problem::loss("unknown_block", start, message));
            return 0;
        }
    };
    if let Err(e) = read {
        state.out.parse_problem(code, what, start, &chunk, &inner(e));
    }
    source.recycle(chunk);
    unread
}

type Done<'b> = Parsed<'b, ()>;

/// `HeaderSize:u16 header row*`; the size does not count itself.
fn metadata_block<'b>(
    state: &mut NettraceState<'_, '_>,
    source: &mut Source<'_>,
    start: u64,
    block: &'b [u8],
) -> Done<'b> {
    let (rows_at, _) = u16le("HeaderSize").flat_map(|size| take(size.into(), "Header")).parse(block)?;
    let mut rows = items(rows_at, (rest_len, metadata_row));
    for (left, row) in &mut rows {
        let at = start + (block.len() - left) as u64;
        let event_type = row.event_type;
        if matches!(event_type.layout, Layout::Unreadable(_)) {
            let message = format!(
                "metadata of {}/{} (id {}): the field list cannot be read; events are kept raw",
                event_type.provider, event_type.name, event_type.event_id
            );
            state.problem(Problem::error("damaged_field_list", at, message));
        }
        if row.unknown {
            let message = "optional metadata of an unknown kind was left out";
            state.problem(Problem::info("unknown_optional_metadata", at, message));
        }
        state.define_metadata(row.id, event_type, at);
        // A block may be as long as the file.
        source.release(at);
    }
    rows.finish()
}

fn thread_block<'b>(
    state: &mut NettraceState<'_, '_>,
    source: &mut Source<'_>,
    start: u64,
    block: &'b [u8],
) -> Done<'b> {
    let default_process = state.threads.default_process;
    let mut rows = items(block, (rest_len, move |row| thread_row(row, default_process)));
    for (left, row) in &mut rows {
        let at = start + (block.len() - left) as u64;
        let index = row.index;
        if row.unknown {
            let message = "thread information of an unknown kind was left out";
            state.problem(Problem::info("unknown_thread_info", at, message));
        }
        let thread = state.intern_thread(row.thread, at);
        if let Some(before) = state.threads.define(index, thread)
            && before != thread
        {
            let message = format!("thread index {index} is defined twice, differently; the later definition counts");
            state.problem(Problem::info("duplicate_thread_index", at, message));
        }
        source.release(at);
    }
    rows.finish()
}

/// `(Index:varuint SequenceNumber:varuint)*`
fn remove_threads<'b>(state: &mut NettraceState<'_, '_>, start: u64, block: &'b [u8]) -> Done<'b> {
    let mut rows = items(block, (varuint64("Index"), varuint32("SequenceNumber")));
    for (index, sequence) in &mut rows {
        match state.threads.remove(index) {
            Some(thread) => {
                state.last_number(index, |_| thread, sequence, start);
                state.drops.forget(index);
            }
            None => {
                let message = format!("thread index {index} is removed but not defined");
                state.problem(Problem::info("unknown_thread", start, message));
            }
        }
    }
    rows.finish()
}

/// A sequence point. What its header says is done even when the list of threads is damaged.
fn region_end<'a, 'b>(
    state: &mut NettraceState<'a, '_>,
    source: &mut Source<'a>,
    start: u64,
    block: &'b [u8],
) -> Done<'b> {
    let mut flags = 0;
    let read = sequence_point(block).and_then(|(threads_at, (_, found, count))| {
        flags = found;
        let mut threads = items(threads_at, (varuint64("ThreadIndex"), varuint32("SequenceNumber")));
        for (_, (index, sequence)) in (0..count).zip(&mut threads) {
            if let Some(thread) = state.threads.defined(index) {
                state.last_number(index, |_| thread, sequence, start);
            }
        }
        threads.finish()
    });
    state.end_region(source);
    state.forget_by_flags(flags);
    read
}

/// `firstIndex:u32 count:u32 list*`
fn label_block<'b>(state: &mut NettraceState<'_, '_>, start: u64, block: &'b [u8]) -> Done<'b> {
    let (lists_at, (first, count)) = (u32le("firstIndex"), u32le("count")).parse(block)?;
    if count as usize > lists_at.len() / 2 {
        return Err(refuse(lists_at, "count", "a count that fits into the bytes left"));
    }
    let mut lists = items(lists_at, label_list);
    for (nth, (labels, overrides)) in (0..count).zip(&mut lists) {
        state.labels.define(first.wrapping_add(nth), labels, overrides, &mut state.out, start);
    }
    lists.finish()
}
