//! Hands events with their meaning to a visitor: the joint between readers and decoders.

use std::borrow::Cow;

use super::{Event, EventInfo};
use crate::prelude::*;
use crate::reader::etl::{Describes, EventManifests, complete};
use crate::reader::text::{TextBudget, text_of};
use crate::reader::{
    self, End, EventType, Field, Order, Process, RawEvent, Thread, ThreadIndex, TraceInfo, TypeId, Visitor,
};
use crate::source::Input;
use crate::time::Clock;

/// Receives the events of a recording with their meaning. Implement what you need: only [`EventVisitor::event`] and
/// [`EventVisitor::problem`] have no default.
pub trait EventVisitor {
    /// The header was read. Called once, before everything else.
    fn trace(&mut self, _info: &TraceInfo) {}

    /// A process, before the first event (.etl).
    fn process(&mut self, _process: &Process) {}

    /// A new kind of event. Kinds are numbered from 0 in this order. Returns whether its events are wanted; others are
    /// not delivered.
    fn event_type(&mut self, _id: TypeId, _info: &EventInfo) -> bool {
        true
    }

    /// A new thread. Threads are numbered from 0 in this order.
    fn thread(&mut self, _index: ThreadIndex, _thread: &Thread) {}

    /// An event of a wanted kind, before anything is found out about it. Returns whether it is wanted. For visitors
    /// that count many events and look at few.
    #[inline]
    fn wants(&mut self, _event: &RawEvent<'_>) -> bool {
        true
    }

    /// One event. `Break` stops the reader.
    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()>;

    /// An event that is nothing but the stack of another one, which has it already (.etl).
    fn stack_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.event(event)
    }

    /// Keys of earlier stacks ([`reader::Stack::key`]) are no longer valid.
    fn stacks_forgotten(&mut self) {}

    /// Events that a thread recorded (`None`: any thread) are missing, all of them later than `since_ns`. Reported
    /// before the first event behind the gap (.nettrace from V4 on, .etl).
    fn events_lost(&mut self, _capture_thread: Option<(ThreadIndex, &Thread)>, _since_ns: i64) {}

    /// Events that a thread recorded (`None`: any thread) are missing between two times. Reported as soon as it is
    /// known: events between them may have been delivered already (.nettrace), or come yet (.etl).
    fn gap(&mut self, _capture_thread: Option<(ThreadIndex, &Thread)>, _since_ns: i64, _until_ns: i64) {}

    /// All gaps before the events that come have been reported (.nettrace from V4 on).
    fn losses_known(&mut self) {}

    /// Something lost, damaged or not understood; reading continues where possible.
    fn problem(&mut self, problem: Problem);

    /// Number of bytes of the (unpacked) recording that are read.
    fn progress(&mut self, _position: u64) {}
}

/// Reads a recording of events from its first byte to its end and hands them to `visitor`, whatever its format.
///
/// Fails when the recording cannot be opened or has no usable header. Damage behind it comes as
/// [`EventVisitor::problem`].
pub fn read(input: Input, order: Order, visitor: &mut dyn EventVisitor) -> Result<End> {
    reader::read(input, order, &mut Resolver::new(visitor))
}

/// A [`Visitor`] of raw events that finds out what they are and hands them to an [`EventVisitor`].
pub struct Resolver<'v> {
    visitor: &'v mut dyn EventVisitor,
    manifests: Option<&'v EventManifests>,
    /// The memory that is left for texts and fields which manifests describe and the recording does not.
    budget: TextBudget,
    /// The budget was not enough, and a diagnostic says so.
    is_too_much: bool,
    info: Option<TraceInfo>,
    resolved: Resolved,
}

/// The kinds of events and the threads of a recording.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Resolved {
    /// Kinds of events, by their [`TypeId`].
    pub kinds: Vec<EventInfo>,
    /// Threads, by their [`ThreadIndex`].
    pub threads: Vec<Thread>,
}

impl<'v> Resolver<'v> {
    /// Events go to `visitor`.
    pub fn new(visitor: &'v mut dyn EventVisitor) -> Resolver<'v> {
        let (budget, resolved) = (TextBudget::default(), Resolved::default());
        Resolver { visitor, manifests: None, budget, is_too_much: false, info: None, resolved }
    }

    /// Adds manifests of providers whose events an .etl does not describe itself.
    pub fn with_manifests(self, manifests: &'v EventManifests) -> Resolver<'v> {
        Resolver { manifests: Some(manifests), ..self }
    }

    /// The descriptions that were resolved, when the reader is done.
    pub fn finish(self) -> Resolved {
        self.resolved
    }

    /// A kind of event with what manifests say of it, as long as that is not too much in all.
    fn complete<'t>(&mut self, event_type: &'t EventType) -> (Cow<'t, EventType>, Describes) {
        if !self.budget.is_spent() {
            let (said, described_by) = complete(self.manifests, event_type);
            if matches!(said, Cow::Borrowed(_)) || self.budget.take(text_of(&said, size_of::<Field>())) {
                return (said, described_by);
            }
            if !std::mem::replace(&mut self.is_too_much, true) {
                let problem = self.budget.exceeded("kinds of events in manifests; the others stay as recorded", 0);
                self.visitor.problem(problem);
            }
        }
        (Cow::Borrowed(event_type), Describes::Recording)
    }

    #[inline]
    fn resolve<'a>(&'a mut self, raw: &'a RawEvent<'_>) -> Option<(&'a mut dyn EventVisitor, Event<'a>)> {
        if !self.visitor.wants(raw) {
            return None;
        }
        let info = self.resolved.kinds.get(raw.event_type.0 as usize)?;
        let thread = self.resolved.threads.get(raw.thread as usize)?;
        let ts_ns = time(&self.info.as_ref()?.clock, raw.ticks);
        Some((self.visitor, Event { raw, info, thread, ts_ns }))
    }
}

/// Nanoseconds since the recording began, clamped to 64 bits.
#[inline]
fn time(clock: &Clock, ticks: i64) -> i64 {
    clock.since_start(ticks).unwrap_or(if ticks < 0 { i64::MIN } else { i64::MAX })
}

impl Visitor for Resolver<'_> {
    fn trace(&mut self, info: &TraceInfo) {
        self.info = Some(info.clone());
        self.visitor.trace(info);
        if info.is_of_windows() {
            self.manifests.iter().flat_map(|manifests| manifests.problems()).for_each(|p| self.visitor.problem(p));
        }
    }

    fn process(&mut self, process: &Process) {
        self.visitor.process(process);
    }

    fn event_type(&mut self, id: TypeId, event_type: &EventType) -> bool {
        debug_assert_eq!(self.resolved.kinds.len(), id.0 as usize);
        let pointer_size = self.info.as_ref().map_or(8, |info| info.pointer_size);
        let (described, described_by) = self.complete(event_type);
        let info = EventInfo { described_by, ..EventInfo::resolve(&described, pointer_size) };
        let wanted = self.visitor.event_type(id, &info);
        self.resolved.kinds.push(info);
        wanted
    }

    fn thread(&mut self, index: ThreadIndex, thread: &Thread) {
        debug_assert_eq!(self.resolved.threads.len(), index as usize);
        self.resolved.threads.push(thread.clone());
        self.visitor.thread(index, thread);
    }

    fn events_lost(&mut self, capture_thread: Option<ThreadIndex>, since_ticks: i64) {
        let Some(info) = &self.info else { return };
        let thread = capture_thread.and_then(|index| Some((index, self.resolved.threads.get(index as usize)?)));
        self.visitor.events_lost(thread, time(&info.clock, since_ticks));
    }

    fn gap(&mut self, capture_thread: Option<ThreadIndex>, since_ticks: i64, until_ticks: i64) {
        let Some(info) = &self.info else { return };
        let thread = capture_thread.and_then(|index| Some((index, self.resolved.threads.get(index as usize)?)));
        self.visitor.gap(thread, time(&info.clock, since_ticks), time(&info.clock, until_ticks));
    }

    fn losses_known(&mut self) {
        self.visitor.losses_known();
    }

    #[inline]
    fn event(&mut self, raw: &RawEvent<'_>) -> ControlFlow<()> {
        match self.resolve(raw) {
            Some((visitor, event)) => visitor.event(&event),
            None => ControlFlow::Continue(()),
        }
    }

    fn stack_event(&mut self, raw: &RawEvent<'_>) -> ControlFlow<()> {
        match self.resolve(raw) {
            Some((visitor, event)) => visitor.stack_event(&event),
            None => ControlFlow::Continue(()),
        }
    }

    fn stacks_forgotten(&mut self) {
        self.visitor.stacks_forgotten();
    }

    fn problem(&mut self, problem: Problem) {
        self.visitor.problem(problem);
    }

    fn progress(&mut self, position: u64) {
        self.visitor.progress(position);
    }
}
