//! Recorded ICorProfilerCallback streams: `.corprof`, specified in `schemas/corprof.md`.
//!
//! ```text
//! header   chunk of thread 0   chunk of thread 1   chunk of thread 0   (unused)   ...
//!          | header | record | record | ... committed | unused |
//! ```
//! Each thread of the profiled process fills chunks of its own; a number taken at the entry of each callback gives the
//! order over all threads. The reader merges the threads by it, with one record of each in memory.

mod chunks;
pub mod decode;
mod header;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use super::{End, Thread, ThreadIndex, TraceInfo};
use crate::error::{Error, Problem, Result, Severity};
use crate::source::{Input, Spooled};
use crate::time::Clock;
use chunks::{Chunks, Cursor};
/// The format itself: constants, headers, kinds of records. The recorder writes with the same crate.
pub use corprof as format;
pub use corprof::{Writer, encode};
pub use decode::{Body, Bounds, Record};
use format::Header;

/// Records between two calls of [`Visitor::progress`].
const PROGRESS_STEP: u64 = 4096;
/// Problems of one kind that are told one by one.
const MAX_TOLD: u64 = 100;

/// Whether these first bytes are those of a recording of callbacks.
pub fn is_corprof(head: &[u8]) -> bool {
    head.starts_with(&format::MAGIC)
}

/// Receives what the reader finds: records in the order in which their callbacks were entered.
pub trait Visitor {
    /// The header was read. Called once, before everything else.
    fn trace(&mut self, _header: &Header, _info: &TraceInfo) {}

    /// A new thread.
    fn thread(&mut self, _index: ThreadIndex, _thread: &Thread) {}

    /// One record. `Break` stops the reader.
    fn record(&mut self, record: &Record<'_>) -> ControlFlow<()>;

    /// Something lost, damaged or not understood; reading goes on where it can.
    fn problem(&mut self, problem: Problem);

    /// So many bytes of the recording are done.
    fn progress(&mut self, _position: u64) {}
}

/// Counts problems of one kind, of which the first are told one by one.
#[derive(Default)]
struct Tally {
    count: u64,
    last: u64,
}

impl Tally {
    fn add(&mut self, visitor: &mut impl Visitor, problem: impl FnOnce() -> Problem, offset: u64) {
        self.count += 1;
        self.last = offset;
        if self.count <= MAX_TOLD {
            visitor.problem(problem());
        }
    }

    fn rest(&self, visitor: &mut impl Visitor, severity: Severity, code: &'static str) {
        if self.count > MAX_TOLD {
            let message = "more of the same";
            visitor.problem(Problem::new(severity, code, self.last, message).count(self.count - MAX_TOLD));
        }
    }
}

/// Reads a recording from its first byte to its end and hands everything to `visitor`.
///
/// Damage behind the header is reported to the visitor and costs as little as possible; an error is returned only when
/// the input is no recording of callbacks or its header cannot be used. A stream is spooled to a temporary file.
pub fn read<V: Visitor>(input: Input, visitor: &mut V) -> Result<End> {
    let path = input.path().to_owned();
    let Spooled { map, failed, .. } = input.spool()?;
    if let Some(error) = failed {
        return Err(Error::Io { path, source: error });
    }
    let bytes = map.bytes();
    let read = match header::header(bytes) {
        Ok((_, read)) => read,
        Err(e) => {
            let e = crate::bytes::inner(e);
            let (offset, what) = (e.offset(0, bytes.len()), format!("no usable {} in the header", e.field()));
            return Err(Error::Unreadable { path, offset, what, expected: e.expected().into() });
        }
    };
    let header = &read.header;
    visitor.trace(header, &info(&read));
    if !read.intact {
        let message = "the CRC of the header is wrong: what it says may be wrong";
        visitor.problem(Problem::new(Severity::Error, "damaged_header", 16, message));
    }
    let mut chunks = Chunks::scan(bytes, read.len, header.chunk_align, visitor);
    for (index, thread) in (0..).zip(&chunks.threads) {
        let thread = Thread { process_id: header.process_id, thread_id: thread.thread_id, ..Thread::default() };
        visitor.thread(index, &thread);
    }
    let mut merge = Merge { bytes, heap: BinaryHeap::new(), damaged: 0 };
    for (index, cursor) in chunks.threads.iter_mut().enumerate() {
        merge.advance(index, cursor, visitor);
    }
    let mut scratch = decode::Scratch::default();
    let (mut next, mut missing, mut missing_at) = (1u64, 0u64, 0u64);
    let (mut unknown, mut bad, mut disorder) = (0u64, Tally::default(), Tally::default());
    let (mut unknown_at, mut done, mut records, mut ended) = (0, read.len as u64, 0u64, false);
    while let Some(Reverse((sequence, index))) = merge.heap.pop() {
        let Some(cursor) = chunks.threads.get_mut(index) else { continue };
        let Some(raw) = cursor.current.take() else { continue };
        if sequence < next {
            let message = format!("record {sequence} comes behind record {}", next.saturating_sub(1));
            let problem = || Problem::new(Severity::Error, "disordered_record", raw.offset, message);
            disorder.add(visitor, || problem().thread(cursor.thread_id), raw.offset);
        } else {
            if sequence > next {
                missing = missing.saturating_add(sequence - next);
                missing_at = raw.offset;
            }
            next = sequence.saturating_add(1);
        }
        match decode::body(raw.kind, raw.payload, &mut scratch) {
            Ok(Some(body)) => {
                ended |= matches!(body, Body::End);
                let record = Record {
                    kind: raw.kind,
                    flags: raw.flags,
                    thread: u32::try_from(index).unwrap_or(u32::MAX),
                    thread_id: cursor.thread_id,
                    sequence,
                    ticks: raw.ticks,
                    duration: raw.duration,
                    payload_bytes: raw.payload.len() as u64,
                    offset: raw.offset,
                    body,
                };
                if visitor.record(&record).is_break() {
                    return Ok(End { complete: false, bytes: done, ..End::default() });
                }
            }
            Ok(None) => {
                unknown += 1;
                unknown_at = raw.offset;
            }
            Err(e) => {
                let start = raw.offset + format::RECORD_HEADER as u64;
                let offset = e.offset(start, raw.payload.len());
                let name = format::kind_name(raw.kind).unwrap_or("record");
                let problem = || Problem::new(Severity::Error, "bad_record", offset, format!("{name}: {e}"));
                bad.add(visitor, || problem().thread(cursor.thread_id), offset);
            }
        }
        records += 1;
        done += (format::RECORD_HEADER + raw.payload.len()) as u64;
        merge.advance(index, cursor, visitor);
        if records.is_multiple_of(PROGRESS_STEP) {
            visitor.progress(done);
            let oldest = chunks.threads.iter().filter_map(|c| c.current.as_ref()).map(|r| r.offset).min();
            map.release(oldest.unwrap_or_default());
        }
    }
    bad.rest(visitor, Severity::Error, "bad_record");
    disorder.rest(visitor, Severity::Error, "disordered_record");
    if unknown > 0 {
        let message = "records of a kind that this version does not know were skipped";
        visitor.problem(Problem::new(Severity::Info, "unknown_record", unknown_at, message).count(unknown));
    }
    if missing > 0 {
        let message = "records are missing: their numbers do not occur";
        visitor.problem(Problem::new(Severity::DataLoss, "missing_records", missing_at, message).count(missing));
    }
    if !ended {
        let message =
            "no end mark: the process was stopped, or the recording is cut; what was being written is missing";
        visitor.problem(Problem::new(Severity::DataLoss, "no_end_mark", chunks.end, message));
    }
    visitor.progress(bytes.len() as u64);
    let bytes = bytes.len() as u64;
    Ok(End { complete: ended, bytes, trailing_bytes: 0, dropped_events: missing })
}

/// The threads in the order of their next records.
struct Merge<'a> {
    bytes: &'a [u8],
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    damaged: u64,
}

impl<'a> Merge<'a> {
    fn advance(&mut self, index: usize, cursor: &mut Cursor<'a>, visitor: &mut impl Visitor) {
        let thread_id = cursor.thread_id;
        let damaged = &mut self.damaged;
        cursor.advance(self.bytes, &mut |problem| {
            *damaged += 1;
            if *damaged <= MAX_TOLD {
                visitor.problem(problem.thread(thread_id));
            }
        });
        self.heap.extend(cursor.current.as_ref().map(|record| Reverse((record.sequence, index))));
    }
}

fn info(read: &header::ReadHeader) -> TraceInfo {
    let header = &read.header;
    let mut key_values = Vec::new();
    let mut say = |key: &str, value: String| {
        if !value.is_empty() {
            key_values.push((key.to_owned(), value));
        }
    };
    say("command_line", header.command_line.clone());
    say("runtime_path", header.runtime_path.clone());
    say("runtime_version", header.runtime_version.clone());
    say("profiler", header.profiler.clone());
    say("clock", header.clock_name.clone());
    say("events_asked", format!("{:#x},{:#x}", header.asked[0], header.asked[1]));
    say("events_granted", format!("{:#x},{:#x}", header.granted[0], header.granted[1]));
    say("callback_interface", header.callback_version.to_string());
    say("info_interface", header.info_version.to_string());
    say("policy", format!("{:#x}", header.policy));
    say("attached", header.attached.to_string());
    TraceInfo {
        container: "corprof",
        version: u32::from(format::MAJOR),
        minor: u32::from(read.minor),
        clock: Clock {
            sync_ticks: header.start_ticks as i64,
            sync_utc_ns: header.start_utc_ns,
            frequency: i64::try_from(header.frequency).unwrap_or(i64::MAX),
        },
        start_known: header.start_utc_ns != 0,
        pointer_size: header.pointer_size,
        process_id: header.process_id,
        processor_count: u64::from(header.processors),
        sampling_ns: 0,
        key_values,
    }
}
