//! Names of frames: how many frames of call stacks have one, by the events that a conversion names them with.

use crate::prelude::*;

use tracequet_facts::fact::{Fact, FactSink};
use tracequet_facts::{FrameCounts, Normalizer, UNNAMED_FRAMES};
use tracequet_trace::event::{Event, EventInfo, EventVisitor, Resolver};
use tracequet_trace::reader::etl::EventManifests;
use tracequet_trace::reader::{self, Format, Order, Process, TraceInfo, TypeId};
use tracequet_trace::source::RecordingPath;
use tracequet_trace::time::Clock;

/// Frames of call stacks, and how many of them have a name.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FrameNames {
    /// The number of frames, and of those with a name.
    pub counts: FrameCounts,
    /// The number without a name and the reason, if there are any.
    pub unnamed: Option<String>,
}

/// Reads a recording in the order of time, every call stack of it, and names their frames as `convert` does. `None`
/// when its format has no call stacks (.corprof, .gcdump).
pub fn frame_names(recording: &RecordingPath, manifests: &EventManifests) -> Result<Option<FrameNames>> {
    let input = recording.open()?;
    if matches!(Format::detect(input.head()), Some(Format::Callbacks | Format::GcDump)) {
        return Ok(None);
    }
    let mut names = Names::default();
    let end = reader::read(input, Order::Time, &mut Resolver::new(&mut names).with_manifests(manifests))?;
    let counts = names.normalizer.finish(end.bytes, &mut names.facts).frames;
    Ok(Some(FrameNames { counts, unnamed: names.facts.unnamed }))
}

#[derive(Default)]
struct Names {
    normalizer: Normalizer,
    clock: Option<Clock>,
    /// By kind, whether its events say what addresses and ids mean, or have call stacks in their fields.
    says_more: Vec<bool>,
    facts: Facts,
}

/// All that is kept of the facts.
#[derive(Default)]
struct Facts {
    unnamed: Option<String>,
}

impl FactSink for Facts {
    fn fact(&mut self, fact: Fact<'_>) {
        if let Fact::Diagnostic(rows) = fact
            && let Some(row) = rows.iter().find(|row| row.code == UNNAMED_FRAMES)
        {
            self.unnamed = Some(row.message.to_owned());
        }
    }
}

impl EventVisitor for Names {
    fn trace(&mut self, info: &TraceInfo) {
        self.normalizer = Normalizer::new(info.stack_width());
        self.normalizer.clock(&info.clock);
        self.clock = Some(info.clock);
    }

    fn process(&mut self, process: &Process) {
        if let Some(clock) = &self.clock {
            self.normalizer.process(process, clock);
        }
    }

    fn event_type(&mut self, id: TypeId, info: &EventInfo) -> bool {
        let is_heard = self.normalizer.event_type(id, info);
        let says_more = is_heard && (self.normalizer.is_reference(id) || self.normalizer.has_callsites(id));
        self.says_more.push(says_more);
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        let callsite = self.normalizer.callsite(&event.raw.stack, event.thread.process(), event.ts_ns);
        if self.says_more.get(event.raw.event_type.0 as usize).is_some_and(|says_more| *says_more) {
            self.normalizer.event(event, callsite, &mut self.facts);
        }
        ControlFlow::Continue(())
    }

    fn stack_event(&mut self, _: &Event<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn stacks_forgotten(&mut self) {
        self.normalizer.stacks_forgotten();
    }

    fn problem(&mut self, _: Problem) {}
}
