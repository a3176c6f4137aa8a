//! Trackers: each finds the facts about one subject in the events that it asks for.
//!
//! A tracker is one file, and one line of the list in `lib.rs`. Its `EVENTS` names the events by provider and name, each
//! with an action of the tracker's own enum, or `()` where there is one alone; its `event` takes the action with the event and gives facts.

use tracequet_trace::event::EventInfo;
use tracequet_trace::reader::{ProcessKey, ThreadIndex};

use crate::fact::FactSink;
use crate::input::{self, Events, Input, Needs, Traits};
use crate::shared::Shared;

/// A place in the recording across which nothing is joined: events are missing there, or the recording ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cut {
    /// The process whose events are missing; `None`: of any.
    pub process: Option<ProcessKey>,
    /// The thread that recorded them; `None`: any.
    pub thread: Option<ThreadIndex>,
    /// Events are missing, all of them later than this; `None` where the recording ends.
    pub lost_since_ns: Option<i64>,
}

impl Cut {
    /// Whether events are missing.
    pub fn is_lost(&self) -> bool {
        self.lost_since_ns.is_some()
    }

    /// Events of any thread are missing since a time.
    #[cfg(test)]
    pub fn lost(since_ns: i64) -> Cut {
        Cut { lost_since_ns: Some(since_ns), ..Cut::default() }
    }
}

/// Facts that a tracker left out because there were too many: a row of `diagnostic`.
#[derive(Clone, Copy, Debug)]
pub struct Dropped {
    /// The code of the problem. Counts of several trackers with the same code are added.
    pub code: &'static str,
    /// The number of facts.
    pub count: u64,
    /// The kind of fact that is missing, and where.
    pub message: &'static str,
}

impl Dropped {
    /// Modules or assemblies that were left out.
    pub fn modules(count: u64) -> Dropped {
        Dropped { code: "too_many_modules", count, message: "too many modules or assemblies to remember" }
    }
}

/// Finds the facts about one subject.
pub trait Tracker: Default {
    /// The use that it makes of an event.
    type Action: Copy + 'static;

    /// The events that it asks for by their names.
    const EVENTS: Events<Self::Action>;

    /// The action for events of a type, if it asks for them.
    fn action(info: &EventInfo) -> Option<Self::Action> {
        input::action(Self::EVENTS, info)
    }

    /// The parts of the event that an action needs beside the header.
    fn needs(_action: Self::Action) -> Needs {
        Needs::Fields
    }

    /// See [`Traits::is_reference`].
    fn is_reference(_action: Self::Action) -> bool {
        false
    }

    /// See [`Traits::needs_others`].
    fn needs_others(_action: Self::Action) -> bool {
        false
    }

    /// See [`Traits::has_callsites`].
    fn has_callsites(_action: Self::Action) -> bool {
        false
    }

    /// The traits of an action.
    fn traits(action: Self::Action) -> Traits {
        Traits {
            needs: Self::needs(action),
            is_reference: Self::is_reference(action),
            needs_others: Self::needs_others(action),
            has_callsites: Self::has_callsites(action),
        }
    }

    /// One event, in the order of time.
    fn event(&mut self, action: Self::Action, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink);

    /// Nothing that is open is joined with what comes.
    fn cut(&mut self, _cut: &Cut, _sink: &mut impl FactSink) {}

    /// The recording is over, `position` bytes of it. Called after the last [`Tracker::cut`], when frames have their
    /// names.
    fn finish(&mut self, _position: u64, _sink: &mut impl FactSink) {}

    /// The facts that it left out. Asked for behind [`Tracker::finish`].
    fn dropped(&self) -> Vec<Dropped> {
        Vec::new()
    }
}
