//! The first walk over all events. It collects what other events need: schemas, processes and threads, and stacks that
//! are events of their own.

use std::ops::ControlFlow;

use super::body::Body;
use super::chain::{Link, Session};
use super::header;
use super::merge::{self, Receiver};
use super::process_table::ProcessTable;
use super::schemas::{Pieces, Schemas};
use super::stacks::{self, Stacks};
use crate::error::{Problem, Report, Severity};
use crate::reader::Order;
use crate::source::MappedFile;

/// What the first walk collected.
#[derive(Default)]
pub struct Prescan {
    /// What the recording says of its own events.
    pub schemas: Schemas,
    /// Processes and threads.
    pub processes: ProcessTable,
    /// Stacks that are events of their own; `None` when the second walk is not in the order of time.
    pub stacks: Option<Stacks>,
}

/// Walks over the buffers, sorted by processor and age, in the order of time.
pub fn prescan(map: &MappedFile, session: &Session, sorted: &[Link], order: Order, report: &mut Report<'_>) -> Prescan {
    let mut walk = Walk {
        schemas: Schemas::default(),
        pieces: Pieces::default(),
        processes: ProcessTable::default(),
        stacks: (order == Order::Time).then(stacks::StackCollector::default),
        report,
    };
    merge::by_time(map, session, sorted, &mut walk);
    let Walk { schemas, pieces, processes, stacks, report } = walk;
    let end = sorted.iter().map(|l| l.offset.saturating_add(l.stored.into())).max().unwrap_or_default();
    pieces.finish(end, report);
    let stacks = stacks.map(|stacks| {
        let (stacks, failed) = stacks.finish();
        if let Some(error) = failed {
            let message = format!("stacks stay events of their own, the temporary file failed: {error}");
            report(Problem::new(Severity::DataLoss, "spill_failed", end, message));
        }
        stacks
    });
    Prescan { schemas, processes, stacks }
}

struct Walk<'r> {
    schemas: Schemas,
    pieces: Pieces,
    processes: ProcessTable,
    stacks: Option<stacks::StackCollector>,
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
        if let Some(stacks) = &mut self.stacks {
            stacks.event(&head, payload, ticks, body, at);
        }
        ControlFlow::Continue(())
    }

    // What is damaged is reported when events are delivered.
    fn problem(&mut self, _: Problem) {}

    fn progress(&mut self, _: u64) {}
}
