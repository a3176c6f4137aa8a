//! V6: blocks with a 24-bit size and a kind, one after the other.
//!
//! ```text
//! "Nettrace" 0:u32 major:u32 minor:u32
//! size:u24 kind:u8 content     the trace block, then the others
//! 0:u32                        the end
//! ```
//! Source: `NetTraceFormat.md`, version 6.

use super::blocks_v6::content;
use super::live;
use super::resync::{Found, Step, cut, end, find, go_on, has_form_v6, is_block_v6, is_recording};
use super::rows_v6::trace;
use super::state::NettraceState;
use super::trace_object::begin;
use crate::bytes::{Parsed, inner, u32le};
use crate::prelude::*;
use crate::reader::{End, Order, Visitor};
use crate::source::Source;

/// Bytes of a block's size and kind.
const HEAD: usize = 4;
/// Bytes of the next block that are checked before a block's size is trusted.
const LOOK: usize = 64;
/// Bytes behind a block that are searched when its size is not trusted.
const SEARCH: usize = 34 << 20;
const TRACE: u8 = 1;
/// The last kind that is known.
const LAST_KIND: u8 = 8;

/// `size:u24 kind:u8`
fn block_head(input: &[u8]) -> Parsed<'_, (usize, u8)> {
    u32le("BlockHeader").map(|word| ((word & 0x00FF_FFFF) as usize, (word >> 24) as u8)).parse(input)
}

/// Reads everything behind the magic and the zero word.
pub fn read(path: &Path, source: &mut Source<'_>, order: Order, visitor: &mut dyn Visitor) -> Result<End> {
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
    let head = source.take(HEAD);
    let start = source.position();
    let block = match block_head(&head) {
        Ok((_, (size, TRACE))) => source.take(size),
        Ok((_, (_, kind))) => return unreadable(start, format!("block of kind {kind}"), "the trace block"),
        Err(_) => return unreadable(start, "the file ends inside its header".into(), "the trace block"),
    };
    let info = match trace(&block, minor) {
        Ok((_, info)) => info,
        Err(e) => {
            let error = inner(e);
            let what = format!("trace block: {} cannot be read", error.field());
            return unreadable(error.offset_in(start, &block), what, error.expected());
        }
    };
    let mut state = begin(&info, path, start, order, visitor)?;
    let complete = blocks(&mut state, source);
    Ok(end(state, source, complete))
}

/// Reads the blocks behind the trace block. Gives whether the end mark was reached.
fn blocks<'a>(state: &mut NettraceState<'a, '_>, source: &mut Source<'a>) -> bool {
    while !state.stopped {
        live::wait(state, source);
        let at = source.position();
        let have = source.peek(HEAD).len();
        let head = block_head(source.peek(HEAD)).map(|(_, head)| head);
        let (from, what) = match head {
            Ok((size, 0)) if is_end(source, size) => {
                source.skip(HEAD + size);
                return true;
            }
            Ok((_, 0)) => (at, "an end mark that is not at the end".to_owned()),
            Ok((size, kind)) => match block(state, source, size, kind) {
                Step::Next => continue,
                Step::Damaged(from, what) => (from, what),
                Step::Cut => return false,
            },
            Err(_) => {
                cut(state, at, have, "a block header");
                source.skip(have);
                return false;
            }
        };
        if !go_on(state, source, from, &what, is_block_v6) {
            return false;
        }
    }
    false
}

/// Whether the end mark at hand is the end: only where the file ends, or another recording begins. Zeros elsewhere are
/// a hole.
fn is_end(source: &mut Source<'_>, size: usize) -> bool {
    let view = source.peek(HEAD + size + LOOK);
    // An end mark that claims to be longer than the file is not an end mark.
    view.get(HEAD + size..).is_some_and(|behind| behind.is_empty() || is_recording(behind))
}

/// The end of a block, judged by its size.
enum BlockEnd {
    /// Before another block, the end mark, or the end of the file.
    Good,
    /// Not where its size says: the next block or recording begins this many bytes behind its head.
    Earlier(usize),
    /// The file ends before it does.
    Cut,
    /// Before something that is no block.
    Bad,
}

fn block_end(source: &mut Source<'_>, size: usize, kind: u8) -> BlockEnd {
    let end = HEAD + size;
    // The bytes behind the last block of a live stream may come much later.
    let is_known = kind <= LAST_KIND;
    if source.is_live() && is_known && source.peek(end).len() == end && !source.comes(end + LOOK) {
        let behind = source.looked_at().get(end..).unwrap_or_default();
        if behind.len() < HEAD || has_form_v6(behind, true).is_some() {
            return BlockEnd::Good;
        }
    }
    let view = source.peek(end + LOOK);
    if kind <= LAST_KIND && view.len() >= end {
        let at_end = view.len() < end + LOOK;
        if is_good(view.get(end..).unwrap_or_default(), at_end) {
            return BlockEnd::Good;
        }
    }
    // Behind a block of an unknown kind, now or next, more has to agree.
    let view = source.peek(end + SEARCH);
    let at_end = view.len() < end + SEARCH;
    let behind = view.get(end..);
    if behind.is_some_and(|behind| is_good(behind, at_end) || is_unknown_block(behind, at_end)) {
        return BlockEnd::Good;
    }
    let content = view.get(HEAD..).unwrap_or_default();
    match find(content, size.min(content.len()), at_end, is_block_v6) {
        Some(Found::Block(next) | Found::Recording(next)) => BlockEnd::Earlier(usize::try_from(next).unwrap_or(size)),
        _ if behind.is_none() => BlockEnd::Cut,
        _ => BlockEnd::Bad,
    }
}

/// Whether these bytes are possible behind a block.
fn is_good(behind: &[u8], at_end: bool) -> bool {
    let is_end = behind.len() < HEAD || behind == [0; HEAD];
    (at_end && is_end) || has_form_v6(behind, at_end).is_some()
}

/// Whether a block of an unknown kind begins here, with bytes behind it that are possible behind a block.
fn is_unknown_block(bytes: &[u8], at_end: bool) -> bool {
    match block_head(bytes) {
        Ok((rest, (size, kind))) if kind > LAST_KIND => rest.get(size..).is_some_and(|behind| is_good(behind, at_end)),
        _ => false,
    }
}

/// Reads one block.
fn block<'a>(state: &mut NettraceState<'a, '_>, source: &mut Source<'a>, size: usize, kind: u8) -> Step {
    let end = block_end(source, size, kind);
    if kind > LAST_KIND && !matches!(end, BlockEnd::Good) {
        return match end {
            BlockEnd::Cut => {
                Step::Damaged(source.position(), format!("block of unknown kind {kind}, longer than the file"))
            }
            _ => Step::Damaged(source.position(), format!("no block here: kind {kind}")),
        };
    }
    let head_at = source.position();
    source.skip(HEAD);
    let start = source.position();
    match end {
        BlockEnd::Good => {
            let chunk = source.take(size);
            content(state, source, kind, start, chunk);
            Step::Next
        }
        BlockEnd::Earlier(next) => {
            let chunk = source.take(next);
            let read = (next - state.damaged(|state| content(state, source, kind, start, chunk))) as u64;
            let from = if read < next as u64 { start + read } else { head_at };
            let message = format!(
                "block of kind {kind} does not end where its size of {size} bytes says, the next begins before"
            );
            state.gap(from, source.position() - from, message);
            Step::Next
        }
        BlockEnd::Cut => {
            let chunk = source.take(size);
            let (end, missing) = (start + chunk.len() as u64, size - chunk.len());
            let message = format!("the file ends inside a block of kind {kind}: {missing} bytes are missing");
            state.problem(Problem::error("truncated", end, message));
            state.set_cut();
            content(state, source, kind, start, chunk);
            Step::Cut
        }
        BlockEnd::Bad => {
            let chunk = source.take(size);
            let unread = state.damaged(|state| content(state, source, kind, start, chunk)) as u64;
            if unread == 0 {
                return Step::Next;
            }
            Step::Damaged(start + size as u64 - unread, format!("damage in a block of kind {kind}"))
        }
    }
}
