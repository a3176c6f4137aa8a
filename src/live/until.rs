//! Watches a process until a condition of `--when` holds, by a session with only the events that this needs.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use super::condition::{Condition, ConditionWatch, providers};
use tracequet::trace::error::Problem;
use tracequet::trace::event::{self, Event, EventInfo, EventVisitor};
use tracequet::trace::reader::{Order, TypeId};
use tracequet::trace::source::Input;
use tracequet::trace::source::diagnostics::port::{Rundown, SessionRequest, Target, WhenFull};
use tracequet::trace::source::diagnostics::{Control, Limits, PortRecording, Reason};
use tracequet::{Error, Result};

/// Memory of the process for events that were not read yet.
const BUFFER_MB: u32 = 16;
/// A session that has watched as long is begun anew, so that nothing that grows with a session grows for weeks.
const LONGEST: Duration = Duration::from_secs(3600);

/// The event that was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    /// The condition, as it was typed.
    pub condition: String,
    /// The event in words.
    pub what: String,
}

/// Waits until one of the conditions holds. Nothing when the session ended before. `begun` gets what ends it.
pub fn watch(target: &Target, conditions: &[Condition], begun: impl FnOnce(Control)) -> Result<Option<Happened>> {
    let request = SessionRequest {
        buffer_mb: BUFFER_MB,
        when_full: WhenFull::Drop,
        rundown: Rundown::Off,
        stacks: false,
        providers: providers(conditions),
    };
    let limits = Limits { duration: Some(LONGEST), is_saved: false, ..Limits::default() };
    let mut recording = PortRecording::start(target, &request, &limits)?;
    begun(recording.control());
    let reader = recording.take_reader().ok_or_else(|| Error::Internal("a session without bytes".into()))?;
    let more = reader.more();
    let input = Input::from_live(Path::new("watch"), Box::new(reader), Box::new(more))?;
    let watches = conditions.iter().map(|one| (one.text.clone(), ConditionWatch::new(one))).collect();
    let mut visitor = Visitor { watches, happened: None };
    if !input.head().is_empty() {
        // Sorting holds events back as long as others come. The two of a pause are of one thread, whose events are in
        // order.
        event::read(input, Order::File, &mut visitor)?;
    }
    recording.control().stop(Reason::Asked);
    recording.ending();
    Ok(visitor.happened)
}

struct Visitor {
    watches: Vec<(String, ConditionWatch)>,
    happened: Option<Happened>,
}

impl EventVisitor for Visitor {
    /// Lost events are not seen: the next one is.
    fn problem(&mut self, _: Problem) {}

    fn event_type(&mut self, _: TypeId, info: &EventInfo) -> bool {
        self.watches.iter().any(|(_, watch)| watch.wants(info))
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        for (condition, watch) in &mut self.watches {
            if let Some(what) = watch.event(event) {
                self.happened = Some(Happened { condition: condition.clone(), what });
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}
