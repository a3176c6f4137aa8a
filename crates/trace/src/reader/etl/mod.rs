//! Windows event logs (.etl), on any system.
//!
//! ```text
//!  [header buffer: session, clock] [buffer of processor 0] [buffer of processor 2] [buffer of processor 0] ...
//!   buffer: header of 0x48 bytes, then events, each padded to 8 bytes      (the body may be compressed)
//! ```
//! A file has no magic, no index and no end mark: its first buffer and its first event identify it. It is read in three
//! walks:
//!
//! 1. `chain` reads the headers of buffers.
//! 2. `prescan` reads all events for what other events need and what often comes later: schemas, processes, stacks.
//! 3. `state` delivers the events.
//!
//! The last two walks go in the order of time (`merge`).

mod body;
mod buffer;
mod chain;
mod event_info;
mod header;
mod huffman;
mod items;
mod kernel_layouts;
mod live;
mod logfile;
mod lznt1;
mod manifest;
mod manifests;
mod merge;
mod prescan;
mod process_table;
mod processes;
mod refs;
mod resync;
mod schemas;
mod shipped;
mod stacks;
mod state;
mod subject;
mod tdh_types;
mod tmf;
mod tracelogging;
mod xml;
mod xpress;

use std::ops::ControlFlow;

use super::{End, Order, TraceInfo, Visitor};
use crate::error::{Problem, ProblemLog, Result, Severity};
use crate::source::{Input, Spooled};
use chain::{Log, Session};
pub use live::read_live;
pub use manifests::{Describes, EventManifests, complete};
use merge::Receiver;
use prescan::prescan;
pub use shipped::provider_guid;
use state::EtlState;

/// Whether these first bytes are those of a header buffer: its type, its sizes, and a header of the header event.
pub fn is_etl(head: &[u8]) -> bool {
    let Ok((body, buffer)) = buffer::Buffer::parse(head) else { return false };
    // An ordinary header of the form SYSTEM, in front of the event of group 0 and type 0.
    let event = matches!(body, [_, _, 1 | 2, 0xC0, _, _, 0, 0, ..]);
    event && buffer.is_header()
}

/// Reads a recording from its first byte to its end and hands everything to `visitor`.
///
/// Damage behind the header event is reported to the visitor and costs as little as possible; an error is returned only
/// when the input is no .etl or its header cannot be used. A stream is put into a temporary file first: the order of
/// time needs the whole. Several logs of one archive are read as one recording, in the clock of the one that began
/// first.
pub fn read(input: Input, order: Order, visitor: &mut dyn Visitor) -> Result<End> {
    let Spooled { map, starts, failed } = input.spool()?;
    map.expect_scattered_reads();
    let session = Session::open(&map, &starts)?;
    let header = &session.base.header;
    let headers = || session.logs.iter().map(|log| &log.header);
    // The visitor hears of the recording before it hears of problems.
    let (mut problems, mut log) = (Vec::new(), ProblemLog::default());
    let mut report = |problem: Problem| log.report(problem, |problem| problems.push(problem));
    session.problems.iter().for_each(|problem| report(problem.clone()));
    for Log { header, bytes, .. } in &session.logs {
        let offset = bytes.start as u64;
        if header.clock(0).1 {
            let message = format!("clock frequency {}; 10 MHz is assumed", header.frequency);
            report(Problem::error("bad_clock_frequency", offset, message));
        }
        if header.start_utc_ns().is_none() {
            report(Problem::error("bad_start_time", offset, "the start time cannot be read; times count from 1970"));
        }
    }
    let chain = session.chain(&map, &mut report);
    map.rewind();
    let (sorted, gaps) = chain.sorted();
    let known = prescan(&map, &session, &sorted, order, &mut report);
    log.finish(|problem| problems.push(problem));
    let clock = session.base.clock();
    visitor.trace(&TraceInfo {
        container: super::ETL_CONTAINER,
        version: u32::from(header.version.0),
        minor: u32::from(header.version.1),
        clock,
        start_known: header.start_utc_ns().is_some(),
        pointer_size: if headers().all(|h| h.pointer_size == 4) { 4 } else { 8 },
        process_id: 0,
        processor_count: headers().map(|h| u64::from(h.processors)).max().unwrap_or_default(),
        sampling_ns: known.sampling_ns,
        key_values: session.key_values(),
    });
    let mut state = EtlState::new(visitor, known, &clock, Some(&map));
    problems.into_iter().for_each(|problem| state.problem(problem));
    state.announce_processes();
    map.rewind();
    let mut out = Delivery { state: &mut state };
    let late = match order {
        Order::Time => merge::by_time(&map, &session, &sorted, &mut out),
        Order::File => {
            merge::by_file(&map, &session, &chain.links, &mut out);
            0
        }
    };
    let end = chain.bytes;
    let lost = headers().map(|h| u64::from(h.events_lost)).sum();
    let message = "the header reports events lost during the recording";
    state.total(Severity::DataLoss, "dropped_events", lost, end, message);
    let buffers_lost = headers().map(|h| u64::from(h.buffers_lost)).sum();
    let message = "the header reports buffers lost during the recording";
    state.total(Severity::DataLoss, "dropped_buffers", buffers_lost, end, message);
    let message = "numbers of buffers are missing: a hint at lost buffers";
    state.total(Severity::Info, "sequence_gap", gaps, end, message);
    state.total(Severity::Info, "late_events", late, end, "events came after later ones of another buffer");
    let (attached, unattached) = state.known.stacks.as_ref().map_or((0, 0), |s| (s.attached, s.unattached));
    let message = "stacks were attached to the events that they belong to";
    state.total(Severity::Info, "attached_stacks", attached, end, message);
    let message = "stacks stay events: the events that they belong to are not in the recording";
    state.total(Severity::Info, "unattached_stacks", unattached, end, message);
    let unclosed = headers().filter(|h| h.end_time == 0).count() as u64;
    let message = "the session was not closed: its header has no end time, and its last events may be missing";
    state.total(Severity::DataLoss, "no_end_mark", unclosed, end, message);
    let failed = failed.or_else(|| map.take_error());
    if let Some(error) = &failed {
        state.problem(Problem::error("stream_error", end, format!("{}: {error}", map.path().display())));
    }
    state.finish(end);
    Ok(End {
        complete: chain.whole && unclosed == 0 && failed.is_none(),
        bytes: chain.bytes,
        trailing_bytes: 0,
        dropped_events: lost,
    })
}

/// Hands events from the merge to the state.
struct Delivery<'s, 'v> {
    state: &'s mut EtlState<'v>,
}

impl Receiver for Delivery<'_, '_> {
    fn event(&mut self, body: &body::Body<'_>, at: usize, ticks: i64) -> ControlFlow<()> {
        let bytes = body.bytes().get(at..).unwrap_or_default();
        self.state.event(bytes, ticks, body.processor, body.place_of(at), body.offset_of(at))
    }

    fn events_lost(&mut self, since: i64) {
        self.state.events_lost(since);
    }

    fn gap(&mut self, since: i64, until: i64) {
        self.state.gap(since, until);
    }

    fn problem(&mut self, problem: Problem) {
        self.state.problem(problem);
    }

    fn progress(&mut self, bytes: u64) {
        self.state.visitor.progress(bytes);
    }
}
