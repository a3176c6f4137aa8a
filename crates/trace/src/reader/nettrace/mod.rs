//! EventPipe: NetPerf V1 to V3 and NetTrace V4 to V6.
//!
//! ```text
//! netperf    14 00 00 00 "!FastSerialization.1"   objects, tag 4; V1 and V2 flat, V3 in blocks
//! nettrace   "Nettrace" 14 00 00 00 "!Fast…"      objects, tag 5; V4, and "V5", which also says 4
//! nettrace   "Nettrace" 00 00 00 00               V6: major, minor, blocks
//! ```

mod block_header;
mod blocks;
mod blocks_v6;
mod drops;
mod event_header;
mod event_types;
mod flat;
mod labels;
mod live;
mod losses;
mod metadata;
mod object_type;
mod objects;
mod region;
mod report;
mod resync;
mod rows_v6;
mod stacks;
mod state;
mod threads;
mod trace_object;
mod v6;

use super::{End, Order, Visitor};
use crate::error::{Error, Problem, Result};
use crate::source::{Input, Spooled};
use object_type::{Next, next_object};
use resync::FAST_SERIALIZATION;

/// Whether these first bytes are those of an EventPipe recording.
pub fn is_eventpipe(head: &[u8]) -> bool {
    head.starts_with(b"Nettrace") || head.starts_with(FAST_SERIALIZATION)
}

/// Reads a recording from its first byte to its end and hands everything to `visitor`.
///
/// Damage behind the header is reported to the visitor and costs as little as possible; an error is returned only when
/// the input is no EventPipe recording or its header cannot be used.
pub fn read(input: Input, order: Order, visitor: &mut dyn Visitor) -> Result<End> {
    let mut input = input;
    let path = input.path().to_owned();
    let refuse = |offset: u64, what: &str, expected: &str| {
        Err(Error::Unreadable { path: path.clone(), offset, what: what.into(), expected: expected.into() })
    };
    let mut source = input.source();
    let magic = source.take(8);
    if magic.len() < 8 {
        if let Some(error) = source.take_error() {
            return Err(Error::Io { path, source: error });
        }
        return refuse(0, &format!("{} bytes in all", magic.len()), "an EventPipe recording");
    }
    let is_nettrace = &*magic == b"Nettrace";
    let rest_of_magic = if is_nettrace { FAST_SERIALIZATION } else { FAST_SERIALIZATION.get(8..).unwrap_or_default() };
    if is_nettrace {
        let reserved = source.take(4);
        match &*reserved {
            [0, 0, 0, 0] => {
                let end = v6::read(&path, &mut source, order, visitor)?;
                return finished(&path, &mut source, end, visitor);
            }
            [a, b, c, d] if FAST_SERIALIZATION.starts_with(&[*a, *b, *c, *d]) => {}
            _ => return refuse(8, "no stream header behind the magic", "\"!FastSerialization.1\" or version 6"),
        }
    } else if !FAST_SERIALIZATION.starts_with(&magic) {
        return refuse(0, "no EventPipe magic", "\"Nettrace\" or \"!FastSerialization.1\"");
    }
    let tail = source.take(rest_of_magic.len() - if is_nettrace { 4 } else { 0 });
    if !FAST_SERIALIZATION.ends_with(&tail) || tail.is_empty() {
        return refuse(source.position(), "a damaged stream header", "\"!FastSerialization.1\"");
    }
    let at = source.position();
    let (name, version, min_reader, len) = match next_object(&mut source) {
        Next::Object(head) => (head.name, head.version, head.min_reader, head.len),
        Next::End | Next::Cut(_) => return refuse(at, "no header", "the Trace object"),
        Next::Damaged(expected) => return refuse(at, "damage in the header", expected),
    };
    source.skip(len);
    let end = match (name.as_str(), version) {
        ("Trace", 3 | 4) if min_reader <= 4 => objects::read(&path, version as u32, &mut source, order, visitor)?,
        ("Microsoft.DotNet.Runtime.EventPipeFile", version @ (1 | 2)) => {
            // Events end at a forward reference at the end of the file: the whole file is needed.
            let position = source.position();
            let consumed = [flat_head(version).as_slice(), source.looked_at()].concat();
            let Spooled { map, failed, .. } = input.spool_behind(&consumed)?;
            let mut source = map.source();
            source.take(usize::try_from(position).unwrap_or(usize::MAX));
            let end = flat::read(&path, version as u32, &map, &mut source, order, visitor)?;
            return Ok(stream_error(&path, failed.or_else(|| map.take_error()), end, visitor));
        }
        (name, version) => {
            let what = format!("object '{name}' version {version} for readers from {min_reader} on");
            return refuse(source.position(), &what, "a Trace object of version 4 or below");
        }
    };
    finished(&path, &mut source, end, visitor)
}

/// The stream header of V1 and V2 up to the end of the type object; the same bytes in every file.
fn flat_head(version: i32) -> Vec<u8> {
    let mut head = FAST_SERIALIZATION.to_vec();
    head.extend([4, 4, 1]);
    head.extend(version.to_le_bytes());
    head.extend([0, 0, 0, 0, 38, 0, 0, 0]);
    head.extend(b"Microsoft.DotNet.Runtime.EventPipeFile\x06");
    head
}

/// Reports an error of the stream beneath that looked like the end of the file.
fn finished(
    path: &std::path::Path,
    source: &mut crate::source::Source<'_>,
    end: End,
    visitor: &mut dyn Visitor,
) -> Result<End> {
    Ok(stream_error(path, source.take_error(), end, visitor))
}

fn stream_error(path: &std::path::Path, error: Option<std::io::Error>, end: End, visitor: &mut dyn Visitor) -> End {
    let Some(error) = error else { return end };
    visitor.problem(Problem::error("stream_error", end.bytes, format!("{}: {error}", path.display())));
    End { complete: false, ..end }
}
