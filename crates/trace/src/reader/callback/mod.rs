//! Recorded ICorProfilerCallback streams: `.corprof`, specified in `schemas/corprof.md`.
//!
//! ```text
//! header   chunk of thread 0   chunk of thread 1   chunk of thread 0   (unused)   ...
//!          | header | record | record | ... committed | unused |
//! ```
//! Each thread of the profiled process fills chunks of its own; a number taken at the entry of each callback gives the
//! order over all threads. The reader merges the threads by it, and reads a few records of each ahead.

mod chunks;
#[doc(hidden)]
pub mod decode;
mod header;
mod parse;
mod records;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use super::{End, Thread, ThreadIndex, TraceInfo};
use crate::error::{Error, Problem, ProblemLog, Result};
use crate::source::{Input, Spooled};
use crate::time::Clock;
use chunks::{Chunks, RELEASE_STEP};
/// The format itself: constants, headers, kinds of records. The recorder writes with the same crate.
pub use corprof as format;
pub use corprof::{Writer, encode};
pub use decode::{Body, Bounds, Record};
use format::Header;
use records::Cursor;

/// The name of the provider under which callbacks are counted where events have one.
pub const PROVIDER: &str = "ICorProfilerCallback";

/// Records between two calls of [`Visitor::progress`].
const PROGRESS_STEP: u64 = 4096;

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

    /// Records are missing, or one cannot be read. Reported before the record behind the gap.
    fn records_lost(&mut self) {}

    /// Something lost, damaged or not understood; reading continues where possible.
    fn problem(&mut self, problem: Problem);

    /// Number of bytes of the recording that are done.
    fn progress(&mut self, _position: u64) {}
}

/// Reads a recording from its first byte to its end and hands everything to `visitor`.
///
/// Damage behind the header is reported to the visitor and costs as little as possible. A stream is spooled to a
/// temporary file.
///
/// # Errors
/// [`Error::Unreadable`] when the input is no recording of callbacks or its header cannot be used; [`Error::Io`] when
/// it cannot be read.
pub fn read(input: Input, visitor: &mut dyn Visitor) -> Result<End> {
    let path = input.path().to_owned();
    let Spooled { map, failed, .. } = input.spool()?;
    let bytes = map.bytes();
    let (read, failed) = match (header::header(bytes), failed) {
        (Ok(read), failed) => (read, failed),
        (Err(_), Some(source)) => return Err(Error::Io { path, source }),
        (Err(e), None) => {
            let what = format!("no usable {} in the header", e.field);
            return Err(Error::Unreadable { path, offset: e.offset, what, expected: e.expected.into() });
        }
    };
    let header = &read.header;
    let info = info(&read);
    let times = info.clock.range();
    visitor.trace(header, &info);
    let mut merge = Merge { bytes, heap: BinaryHeap::new(), visitor, log: ProblemLog::default() };
    if !read.intact {
        merge.report(Problem::error("damaged_header", 16, "the CRC of the header is wrong: its values may be wrong"));
    }
    let Chunks { mut threads, end, .. } =
        Chunks::scan(&map, read.len, header.chunk_align, &mut |problem| merge.report(problem));
    for (index, thread) in (0..).zip(&threads) {
        let thread = Thread { process_id: header.process_id, thread_id: thread.thread_id, ..Thread::default() };
        merge.visitor.thread(index, &thread);
    }
    for (index, cursor) in threads.iter_mut().enumerate() {
        merge.fill(index, cursor);
    }
    let mut scratch = decode::Scratch::default();
    let mut gaps = Gaps { next: 1, ..Gaps::default() };
    let (mut unknown, mut unknown_at, mut records, mut ended) = (0, 0, 0u64, false);
    let (mut clamped, mut clamped_at) = (0, 0);
    let (mut done, mut released) = (read.len as u64, 0);
    while let Some(Reverse((sequence, index))) = merge.heap.pop() {
        let Some(cursor) = threads.get_mut(index) else { continue };
        let Some(raw) = cursor.take() else { continue };
        if sequence > gaps.next {
            merge.visitor.records_lost();
        }
        if let Some(problem) = gaps.next(sequence, raw.offset) {
            merge.report(problem.thread(cursor.thread_id));
        }
        match decode::body(raw.kind, raw.payload, &mut scratch) {
            Ok(Some(body)) => {
                ended |= matches!(body, Body::End);
                if let Body::Note { code, message } = body {
                    merge.report(note(code, message, raw.offset));
                }
                let within = i64::try_from(raw.ticks).unwrap_or(i64::MAX).clamp(*times.start(), *times.end());
                let ticks = within.cast_unsigned();
                if ticks != raw.ticks {
                    clamped += 1;
                    clamped_at = raw.offset;
                }
                let record = Record {
                    kind: raw.kind,
                    flags: raw.flags,
                    thread: u32::try_from(index).unwrap_or(u32::MAX),
                    thread_id: cursor.thread_id,
                    sequence,
                    ticks,
                    duration: raw.duration,
                    payload_bytes: raw.payload.len() as u64,
                    offset: raw.offset,
                    body,
                };
                if merge.visitor.record(&record).is_break() {
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
                merge.report(Problem::error("bad_record", offset, format!("{name}: {e}")).thread(cursor.thread_id));
                merge.visitor.records_lost();
            }
        }
        records += 1;
        done += (format::RECORD_HEADER + raw.payload.len()) as u64;
        merge.fill(index, cursor);
        if records.is_multiple_of(PROGRESS_STEP) {
            merge.visitor.progress(done);
        }
        // Threads read in many places: pages that are still needed come back by themselves.
        if done - released >= RELEASE_STEP as u64 {
            map.release_all();
            released = done;
        }
    }
    let message = "records of a kind that this version does not know were skipped";
    merge.problems(Problem::info("unknown_record", unknown_at, message), unknown);
    let message = "times of records beyond 64 bits of nanoseconds were clamped to 64 bits";
    merge.problems(Problem::error("time_out_of_range", clamped_at, message), clamped);
    let missing = gaps.missing;
    let message = "records are missing: gap in their numbers";
    merge.problems(Problem::loss("missing_records", gaps.offset, message), missing);
    if !ended {
        let message =
            "no end mark: the process was stopped, or the recording is cut off; unfinished records are missing";
        merge.report(Problem::loss("no_end_mark", end, message));
    }
    let failed = failed.or_else(|| map.take_error());
    if let Some(error) = &failed {
        merge.report(Problem::error("stream_error", bytes.len() as u64, format!("{}: {error}", map.path().display())));
    }
    let Merge { visitor, mut log, .. } = merge;
    log.finish(|problem| visitor.problem(problem));
    let bytes = bytes.len() as u64;
    visitor.progress(bytes);
    Ok(End { complete: ended && failed.is_none(), bytes, trailing_bytes: 0, dropped_events: missing })
}

/// A remark of the profiler, as a problem.
fn note(code: u64, message: &str, offset: u64) -> Problem {
    match code {
        format::NOTE_SETTING => Problem::info("recorder_setting", offset, message),
        format::NOTE_FAILED => Problem::loss("recorder_failed", offset, message),
        _ => Problem::info("recorder_note", offset, message),
    }
}

/// Sequence numbers that do not occur, and those that come too late.
#[derive(Default)]
struct Gaps {
    /// The number that is expected next.
    next: u64,
    missing: u64,
    /// Where the last gap ends.
    offset: u64,
}

impl Gaps {
    fn next(&mut self, sequence: u64, offset: u64) -> Option<Problem> {
        let last = self.next.saturating_sub(1);
        if sequence < self.next {
            let message = format!("record {sequence} comes behind record {last}");
            return Some(Problem::error("disordered_record", offset, message));
        }
        if sequence > self.next {
            self.missing = self.missing.saturating_add(sequence - self.next);
            self.offset = offset;
        }
        self.next = sequence.saturating_add(1);
        None
    }
}

/// The threads in the order of their next records; and the visitor, who receives problems.
struct Merge<'a, 'v> {
    bytes: &'a [u8],
    heap: BinaryHeap<Reverse<(u64, usize)>>,
    visitor: &'v mut dyn Visitor,
    log: ProblemLog,
}

impl<'a> Merge<'a, '_> {
    fn report(&mut self, problem: Problem) {
        self.log.report(problem, |problem| self.visitor.problem(problem));
    }

    fn problems(&mut self, problem: Problem, count: u64) {
        problem.counted(count).into_iter().for_each(|problem| self.report(problem));
    }

    /// Reads ahead in a thread, and puts it where its next record is due.
    fn fill(&mut self, index: usize, cursor: &mut Cursor<'a>) {
        let Merge { bytes, heap, visitor, log } = self;
        let next = cursor.fill(bytes, &mut |problem| log.report(problem, |problem| visitor.problem(problem)));
        heap.extend(next.map(|sequence| Reverse((sequence, index))));
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
            sync_ticks: i64::try_from(header.start_ticks).unwrap_or(i64::MAX),
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
