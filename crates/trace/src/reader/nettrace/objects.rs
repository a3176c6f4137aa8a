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
//! Source: `NetTraceFormat_v5.md`, "Objects".

use super::blocks::content;
use super::live;
use super::object_type::{BEGIN_OBJECT, BEGIN_PRIVATE_OBJECT, END_OBJECT, Head, NULL_REFERENCE, Next, next_object};
use super::resync::{Found, Step, cut, end, find, go_on, is_object};
use super::state::NettraceState;
use super::trace_object::{FIELDS_LEN, begin, fields};
use crate::bytes::i32le;
use crate::prelude::*;
use crate::reader::{End, Order, Visitor};
use crate::source::{MAX_CHUNK, Source};

/// Reads everything behind the type of the Trace object.
pub fn read(
    path: &Path,
    version: u32,
    source: &mut Source<'_>,
    order: Order,
    visitor: &mut dyn Visitor,
) -> Result<End> {
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
    let mut state = begin(&info, path, fields_at, order, visitor)?;
    let complete = objects(&mut state, source, version);
    Ok(end(state, source, complete))
}

/// Reads the objects behind the Trace object. Gives whether the end mark was reached.
fn objects<'a>(state: &mut NettraceState<'a, '_>, source: &mut Source<'a>, version: u32) -> bool {
    let at = source.position();
    match source.peek(1).first() {
        Some(&END_OBJECT) => source.skip(1),
        Some(other) => {
            let what = format!("tag {other} where the end tag of the header was expected");
            if !go_on(state, source, at, &what, is_object) {
                return false;
            }
        }
        None => {
            cut(state, at, 0, OBJECT);
            return false;
        }
    }
    while !state.stopped {
        live::wait(state, source);
        let at = source.position();
        let (from, what) = match next_object(source) {
            Next::End if is_end(source) => {
                source.skip(1);
                return true;
            }
            Next::End => (at, "an end mark that is not at the end".to_owned()),
            Next::Cut(have) => {
                cut(state, at, have, OBJECT);
                source.skip(have);
                return false;
            }
            Next::Damaged(expected) => (at, format!("no object here: expected {expected}")),
            Next::Object(head) => {
                source.skip(head.len);
                match block(state, source, &head, version, at) {
                    Step::Next => continue,
                    Step::Damaged(from, what) => (from, what),
                    Step::Cut => return false,
                }
            }
        };
        if !go_on(state, source, from, &what, is_object) {
            return false;
        }
    }
    false
}

/// Whether there is no object behind this end mark. Other bytes are legal there and have no meaning.
fn is_end(source: &mut Source<'_>) -> bool {
    let behind = source.peek(MAX_CHUNK);
    let behind = behind.get(1..).unwrap_or_default();
    !matches!(find(behind, behind.len(), true, is_object), Some(Found::Block(_)))
}

/// Name, in messages, of the part within which a file may be cut off.
const OBJECT: &str = "an object";

/// The end of a block, judged by its size.
enum BlockEnd {
    /// With its end tag, and behind it an object, the end mark, or the end of the file.
    Good,
    /// Not where its size says: the next object or recording begins this many bytes behind its start.
    Earlier(usize),
    /// The file ends before it does.
    Cut,
    /// With the last byte of the file, without an end tag.
    NoTag,
    /// With an end tag and something else behind it.
    TagOnly,
    /// With something else in place of an end tag.
    Bad,
}

fn block_end(source: &mut Source<'_>, size: usize) -> BlockEnd {
    // The byte behind the last block of a live stream may come much later.
    let last = size.saturating_add(1);
    if source.is_live() && source.peek(last).get(size) == Some(&END_OBJECT) && !source.comes(last.saturating_add(1)) {
        return BlockEnd::Good;
    }
    let view = source.peek(size.saturating_add(2));
    let has_tag = view.get(size) == Some(&END_OBJECT);
    let behind = view.get(size.saturating_add(1));
    if has_tag && matches!(behind, None | Some(&(NULL_REFERENCE | BEGIN_OBJECT | BEGIN_PRIVATE_OBJECT))) {
        return BlockEnd::Good;
    }
    match find(view, view.len(), true, is_object) {
        Some(Found::Block(next) | Found::Recording(next)) => BlockEnd::Earlier(usize::try_from(next).unwrap_or(size)),
        _ if view.len() < size => BlockEnd::Cut,
        _ if view.len() == size => BlockEnd::NoTag,
        _ if has_tag => BlockEnd::TagOnly,
        _ => BlockEnd::Bad,
    }
}

/// Reads one block with its end tag. `at` is where its tags begin.
fn block<'a>(state: &mut NettraceState<'a, '_>, source: &mut Source<'a>, head: &Head, version: u32, at: u64) -> Step {
    let name = &head.name;
    let size_at = source.position();
    let have = source.peek(4).len();
    let size = i32le("BlockSize")(source.peek(4)).map(|(_, size)| usize::try_from(size));
    let size = match size {
        Ok(Ok(size)) => size,
        Ok(Err(_)) => {
            return Step::Damaged(at, format!("{name} with a size below 0"));
        }
        Err(_) => {
            cut(state, size_at, have, OBJECT);
            source.skip(have);
            return Step::Cut;
        }
    };
    let padding = (size_at.wrapping_neg() % 4) as usize;
    source.skip(4 + padding);
    let start = source.position();
    let end = block_end(source, size);
    let kind = match head.content {
        Some(kind) if head.min_reader <= version.max(2) as i32 => kind,
        known => {
            if !matches!(end, BlockEnd::Good | BlockEnd::TagOnly) {
                return Step::Damaged(at, format!("object of unknown type '{name}' is not a block"));
            }
            source.skip(size + 1);
            let (code, message) = match known {
                Some(_) => ("unknown_block_version", format!("{name} needs a reader of version {}", head.min_reader)),
                None => ("unknown_block", format!("block of unknown type '{name}'")),
            };
            state.problem(Problem::loss(code, at, format!("{message}; its {size} bytes were skipped")));
            return Step::Next;
        }
    };
    match end {
        BlockEnd::Good | BlockEnd::TagOnly => {
            let chunk = source.take(size);
            source.skip(1);
            content(state, source, kind, version, start, chunk);
            Step::Next
        }
        BlockEnd::Earlier(next) => {
            // The bytes before the next object are still read; an end tag may be the last one.
            let mut chunk = source.take(next);
            if chunk.last() == Some(&END_OBJECT) {
                chunk.truncate(next - 1);
            }
            let len = chunk.len();
            let read = (len - state.damaged(|state| content(state, source, kind, version, start, chunk))) as u64;
            let from = if read + 1 < next as u64 { start + read } else { size_at };
            let message =
                format!("{name} does not end where its size of {size} bytes says, the next block begins before");
            state.gap(from, source.position() - from, message);
            Step::Next
        }
        BlockEnd::Cut => {
            let chunk = source.take(size);
            let (end, missing) = (start + chunk.len() as u64, size - chunk.len());
            let message = if chunk.len() >= MAX_CHUNK && source.len().is_none() {
                format!("{name} of {size} bytes, more than the {MAX_CHUNK} that are read from a stream")
            } else {
                format!("the file ends inside a {name}: {missing} of {size} bytes are missing")
            };
            state.problem(Problem::error("truncated", end, message));
            state.set_cut();
            content(state, source, kind, version, start, chunk);
            Step::Cut
        }
        BlockEnd::NoTag => {
            let chunk = source.take(size);
            content(state, source, kind, version, start, chunk);
            cut(state, source.position(), 0, OBJECT);
            Step::Cut
        }
        BlockEnd::Bad => {
            let chunk = source.take(size);
            let unread = state.damaged(|state| content(state, source, kind, version, start, chunk)) as u64;
            let what = format!("no end tag behind {name} of {size} bytes");
            Step::Damaged(start + size as u64 - unread, what)
        }
    }
}
