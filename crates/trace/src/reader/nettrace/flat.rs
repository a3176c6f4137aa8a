//! V1 and V2 (.NET Core 2.0): events in one run, without blocks, up to a forward reference at the end of the file.

use super::blocks::damaged_event;
use super::event_header::EventHeader;
use super::metadata::flat_record;
use super::resync::{Behind, next_flat_event, report_second};
use super::trace_object::{FLAT_FIELDS_LEN, begin, flat_fields};
use crate::bytes::{inner, u32le};
use crate::prelude::*;
use crate::reader::{End, Order, Visitor};
use crate::source::{MappedFile, Source};

/// Reads the whole file; `source` is behind the type object.
pub fn read(
    path: &Path,
    version: u32,
    map: &MappedFile,
    source: &mut Source<'_>,
    order: Order,
    visitor: &mut dyn Visitor,
) -> Result<End> {
    // An index into the table of forward references.
    let reference = source.take(4);
    let fields_at = source.position();
    let header = source.take(FLAT_FIELDS_LEN);
    let short = |_| Error::Unreadable {
        path: path.to_owned(),
        offset: fields_at,
        what: "the file ends inside its header".into(),
        expected: format!("{FLAT_FIELDS_LEN} bytes"),
    };
    let (_, info) = flat_fields(&header, version).map_err(short)?;
    let mut state = begin(&info, path, fields_at, order, visitor)?;

    let bytes = map.bytes();
    let index = u32le("index")(&reference).map_or(0, |(_, index)| index);
    let end = events_end(bytes, index);
    let start = usize::try_from(source.position()).unwrap_or(usize::MAX);
    let stop = end.unwrap_or(bytes.len());
    let events = bytes.get(start..stop).unwrap_or_default();
    if end.is_none() {
        let message = "the table of forward references at the end is missing: the file was cut";
        state.problem(Problem::error("truncated", bytes.len() as u64, message));
    }
    let mut rest = events;
    let mut released = 0;
    while !rest.is_empty() && !state.stopped {
        let at = (start + events.len() - rest.len()) as u64;
        let mut header = EventHeader::default();
        let (next, (payload, stack)) = match header.flat(rest, false) {
            Ok(read) => read,
            Err(e) => {
                let error = inner(e);
                let found = next_flat_event(rest, false, &state.types, |passed| map.release(at + passed as u64));
                if let Behind::Recording(second) = found {
                    report_second(&mut state.out, at + second as u64);
                }
                let next = if let Behind::Event(next) = found { Some(next) } else { None };
                let lost = next.unwrap_or(rest.len());
                // Where the file was cut, the cut is in an event: that is no news.
                if end.is_some() || next.is_some() {
                    damaged_event(&mut state, "the file", at, events, (start as u64, &error), lost);
                }
                rest = rest.get(lost..).unwrap_or_default();
                continue;
            }
        };
        let payload_at = at + 56;
        if header.metadata_id == 0 {
            match flat_record(payload, version) {
                Ok((_, record)) => {
                    if let Some(problem) = record.problem(payload_at) {
                        state.problem(problem);
                    }
                    // The id of a description is its own offset in the file, modulo 2^32.
                    state.define_metadata(at as u32, record.event_type, payload_at);
                }
                Err(e) => {
                    state.out.parse_problem("damaged_metadata", "metadata record", payload_at, payload, &inner(e));
                }
            }
        } else {
            state.flat_event(&header, payload, stack, payload_at);
        }
        rest = next;
        if at - released >= 1 << 20 {
            released = at;
            map.release(at);
            state.out.visitor.progress(at);
        }
    }
    state.finish(source);
    Ok(End { complete: end.is_some(), bytes: bytes.len() as u64, trailing_bytes: 0, dropped_events: 0 })
}

/// Where the events end: the label with this index in the table that the last four bytes point to.
fn events_end(bytes: &[u8], index: u32) -> Option<usize> {
    let word = |at: usize| {
        let (_, value) = u32le("offset")(bytes.get(at..)?).ok()?;
        usize::try_from(value).ok()
    };
    let trailer = word(bytes.len().checked_sub(4)?)?;
    let table = word(trailer)?;
    let count = word(table)?;
    if index as usize >= count || count > bytes.len() / 4 {
        return None;
    }
    let end = word(table.checked_add(4)?.checked_add((index as usize).checked_mul(4)?)?)?;
    (end <= table).then_some(end)
}
