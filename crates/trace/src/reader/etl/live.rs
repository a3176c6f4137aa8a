//! Events of a session that runs, in the form that they have in an .etl, one by one as they come.
//!
//! Unlike a file a session cannot be read twice: a schema holds for the events behind it. The events of the runtime
//! need none, and an EventSource sends its manifest first.

use super::header::{self, NO_ID};
use super::prescan::Prescan;
use super::schemas::Pieces;
use super::state::EtlState;
use crate::error::{Problem, Result, Severity};
use crate::map::Set;
use crate::reader::{End, Process, TraceInfo, Visitor};
use crate::source::live::{Live, Next};
use crate::time::{Clock, FILE_TIME_UNIX_EPOCH};

/// Processes whose names are asked for at most.
const MAX_PROCESSES: usize = 1 << 14;
/// Bytes after which progress is reported.
const PROGRESS_STEP: u64 = 1 << 20;

/// Reads a session until it ends, in the order in which the system delivers. Each packet is one event with the header
/// EVENT or FULL and its extended items (`header.rs`, `items.rs`).
///
/// A process is named when it is first seen, if it still runs then.
pub fn read_live(live: &mut Live, visitor: &mut dyn Visitor) -> Result<End> {
    let clock = Clock {
        sync_ticks: live.start(),
        sync_utc_ns: live.start().saturating_sub(FILE_TIME_UNIX_EPOCH).saturating_mul(100),
        frequency: 10_000_000,
    };
    visitor.trace(&TraceInfo {
        container: crate::reader::LIVE_CONTAINER,
        clock,
        start_known: true,
        pointer_size: size_of::<usize>() as u8,
        processor_count: std::thread::available_parallelism().map_or(0, |n| n.get() as u64),
        key_values: vec![("logger_name".into(), live.name().to_owned())],
        ..TraceInfo::default()
    });
    let mut state = EtlState::new(visitor, Prescan::default(), &clock, None);
    let mut pieces = Pieces::default();
    let mut met = Set::<u32>::default();
    let mut found = Vec::new();
    let (mut bytes, mut reported, mut newest, mut late) = (0u64, 0u64, i64::MIN, 0u64);
    let ending = loop {
        let packet = match live.take() {
            Next::Packet(packet) => packet,
            Next::Idle => {
                state.visitor.progress(bytes);
                continue;
            }
            Next::End(ending) => break Some(ending),
        };
        let offset = bytes;
        bytes += packet.bytes.len() as u64;
        let head = match header::parse(&packet.bytes) {
            Ok(head) => head,
            Err(what) => {
                state.problem(Problem::error("damaged_event", offset, what));
                continue;
            }
        };
        if head.process_id != NO_ID && met.len() < MAX_PROCESSES && met.insert(head.process_id) {
            let name = live.process_name(head.process_id);
            let process_id = u64::from(head.process_id);
            let process = name.map(|name| Process { process_id, name, ..Process::default() });
            process.iter().for_each(|process| state.visitor.process(process));
        }
        let body = packet.bytes.get(head.body..head.size).unwrap_or_default();
        let payload = state.known.schemas.event(&head, body, offset, &mut pieces, &mut |p| found.push(p));
        state.known.processes.event(&head, payload);
        found.drain(..).for_each(|p| state.problem(p));
        let ticks = head.ticks.unwrap_or(newest);
        late += u64::from(ticks < newest);
        newest = newest.max(ticks);
        if state.event(&packet.bytes, ticks, packet.processor.into(), None, offset).is_break() {
            break None;
        }
        if bytes - reported >= PROGRESS_STEP {
            reported = bytes;
            state.visitor.progress(bytes);
        }
    };
    let stopped = ending.is_none();
    let ending = ending.unwrap_or_default();
    let message = "the session reports lost events";
    state.total(Severity::DataLoss, "dropped_events", ending.lost_events, bytes, message);
    let message = "the session reports lost buffers";
    state.total(Severity::DataLoss, "dropped_buffers", ending.lost_buffers, bytes, message);
    let message = "events came faster than they could be taken in";
    state.total(Severity::DataLoss, "overrun_events", ending.overruns, bytes, message);
    state.total(Severity::Info, "late_events", late, bytes, "events came after later ones");
    if let Some(failure) = &ending.failure {
        state.total(Severity::Error, "stream_error", 1, bytes, failure);
    }
    state.finish(bytes);
    Ok(End {
        complete: !stopped && ending.failure.is_none(),
        bytes,
        trailing_bytes: 0,
        dropped_events: ending.lost_events.saturating_add(ending.overruns),
    })
}
