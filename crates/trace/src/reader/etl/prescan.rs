//! The first walk over all events. It collects what other events need: schemas, processes and threads, and stacks that
//! are events of their own.

use std::ops::ControlFlow;

use super::body::Body;
use super::chain::{Link, Session};
use super::header::{self, Head};
use super::kernel_layouts::KernelLayouts;
use super::merge::{self, Receiver};
use super::process_table::ProcessTable;
use super::schemas::{Pieces, Schemas};
use super::stacks::{self, Stacks};
use super::subject::PERF_INFO;
use crate::error::{Problem, Report};
use crate::reader::Order;
use crate::source::MappedFile;

/// Events of the class PerfInfo that say how often processors are sampled.
const SET_INTERVAL: u8 = 72;
const INTERVAL_START: u8 = 73;
/// The source of samples that is the timer; others are counters of the processor.
const TIMER: u32 = 0;

/// The facts that the first walk collected.
#[derive(Default)]
pub struct Prescan {
    /// The recording's descriptions of its own events.
    pub schemas: Schemas,
    /// Processes and threads.
    pub processes: ProcessTable,
    /// Stacks that are events of their own; `None` when the second walk is not in the order of time.
    pub stacks: Option<Stacks>,
    /// Nanoseconds between samples of the processors; 0 when no event says.
    pub sampling_ns: u64,
}

/// Walks over the buffers, sorted by processor and age, in the order of time.
pub fn prescan(map: &MappedFile, session: &Session, sorted: &[Link], order: Order, report: &mut Report<'_>) -> Prescan {
    let mut walk = Walk {
        schemas: Schemas::default(),
        pieces: Pieces::default(),
        processes: ProcessTable::default(),
        stacks: (order == Order::Time).then(stacks::StackCollector::default),
        sampling_ns: 0,
        report,
    };
    merge::by_time(map, session, sorted, &mut walk);
    let Walk { schemas, pieces, processes, stacks, sampling_ns, report } = walk;
    let end = sorted.iter().map(|l| l.offset.saturating_add(l.stored.into())).max().unwrap_or_default();
    pieces.finish(end, report);
    let stacks = stacks.map(|stacks| {
        let (stacks, failed) = stacks.finish();
        if let Some(error) = failed {
            let message = format!("stacks stay events of their own, the temporary file failed: {error}");
            report(Problem::loss("spill_failed", end, message));
        }
        stacks
    });
    Prescan { schemas, processes, stacks, sampling_ns }
}

/// The interval of the timer by which processors are sampled, when this event says it.
fn sampling_ns(head: &Head, payload: &[u8]) -> Option<u64> {
    let says = head.is_kernel && head.group == PERF_INFO && matches!(head.opcode, SET_INTERVAL | INTERVAL_START);
    let layout = if says { KernelLayouts::get().of_kernel(head)? } else { return None };
    let mut words = layout.fields(payload, head.pointer_size).map(|(name, bytes)| {
        let word = bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        (name, word)
    });
    let is_timer = words.next()? == ("Source", TIMER);
    let (_, interval) = words.find(|(name, _)| is_timer && *name == "NewInterval")?;
    // In 100 ns.
    Some(u64::from(interval) * 100)
}

struct Walk<'r> {
    schemas: Schemas,
    pieces: Pieces,
    processes: ProcessTable,
    stacks: Option<stacks::StackCollector>,
    sampling_ns: u64,
    report: &'r mut Report<'r>,
}

impl Receiver for Walk<'_> {
    fn event(&mut self, body: &Body<'_>, at: usize, ticks: i64) -> ControlFlow<()> {
        let bytes = body.bytes().get(at..).unwrap_or_default();
        let Ok(mut head) = header::parse(bytes) else { return ControlFlow::Continue(()) };
        // In the clock of the recording.
        head.ticks = head.ticks.map(|_| ticks);
        let whole = bytes.get(head.body..head.size).unwrap_or_default();
        let payload = self.schemas.event(&head, whole, body.offset_of(at), &mut self.pieces, self.report);
        self.processes.event(&head, payload);
        if self.sampling_ns == 0 {
            self.sampling_ns = sampling_ns(&head, payload).unwrap_or(0);
        }
        if let Some(stacks) = &mut self.stacks {
            stacks.event(&head, payload, ticks, body, at);
        }
        ControlFlow::Continue(())
    }

    // Damage is reported when events are delivered.
    fn problem(&mut self, _: Problem) {}

    fn progress(&mut self, _: u64) {}
}
