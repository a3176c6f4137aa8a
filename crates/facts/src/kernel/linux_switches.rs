//! Context switches of Linux, as record-trace (one-collect) and `dotnet-trace collect-linux --profile thread-time`
//! record them.
//!
//! One event, `Universal.Events/cswitch`, says that a thread had no processor for a while: its `Value` is the time
//! between being switched out and being switched in, in ticks of the recording's clock, and its stack is where the
//! thread was switched out.
//!
//! ```text
//!         switched out              switched in            switched out         switched in
//!  running ...|------- Value --------|------- running -------|------ Value ------|... running
//!             ^ time of the event (one-collect)               ^ the definition's ^
//! ```
//! The definition (perfview's `UniversalProviders.md`) gives the event the time of switching in, and TraceEvent reads
//! it so; the one writer that is known, one-collect, gives it the time of switching out. Waits of one thread do not
//! overlap, so that a recording mostly shows by itself which of both it has: the other reading makes them overlap.

use crate::fact::{CallsiteId, ContextSwitch, ThreadTime};
use crate::prelude::*;

/// Which moment an event has the time of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// When the thread was switched out.
    Out,
    /// When it was switched in.
    In,
}

/// By how many waits that would overlap one reading has to be behind the other: a few may be due to clocks.
const ENOUGH: i32 = 8;

/// Events that wait until it is clear which moment they have the time of.
const MAX_HELD: usize = 1 << 14;

/// Threads that are remembered, at most.
const MAX_THREADS: usize = 1 << 18;

/// A process and a thread of it, by their OS ids.
type ThreadId = (u64, u64);

/// An event.
#[derive(Clone, Copy, Debug)]
struct Switch {
    thread: ThreadId,
    ts_ns: i64,
    waited_ns: i64,
    processor: Option<u32>,
    callsite_id: CallsiteId,
    /// The number of losses before it.
    losses: u64,
}

/// A thread, as far as its switches are known.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Time and wait of its last event.
    last: (i64, i64),
    /// Since when and where it runs, and how many losses were before.
    runs: Option<(i64, Option<u32>, u64)>,
}

/// The threads of a recording.
#[derive(Debug, Default)]
pub struct LinuxSwitches {
    threads: Map<ThreadId, Known>,
    /// Which moment the events have the time of, when that is clear.
    moment: Option<Moment>,
    /// Waits that would overlap if events had the time of switching in, less those that would if they had that of
    /// switching out.
    overlaps: i32,
    held: Vec<Switch>,
    losses: u64,
    /// Events of threads for which there was no room.
    unkept: u64,
}

impl LinuxSwitches {
    /// Compares a wait with the one before it of the same thread.
    fn weigh(&mut self, before: (i64, i64), switch: &Switch) {
        let (ts_ns, waited_ns) = before;
        self.overlaps += i32::from(switch.ts_ns.saturating_sub(switch.waited_ns) < ts_ns);
        self.overlaps -= i32::from(ts_ns.saturating_add(waited_ns) > switch.ts_ns);
    }

    /// Decides which moment the time of events means, or that this will not become clear.
    fn decide(&mut self, sink: &mut impl FactSink) {
        self.moment = Some(if self.overlaps > 0 { Moment::Out } else { Moment::In });
        for switch in std::mem::take(&mut self.held) {
            self.report(&switch, sink);
        }
    }

    fn report(&mut self, switch: &Switch, sink: &mut impl FactSink) {
        let is_out = self.moment == Some(Moment::Out);
        let (start_ns, end_ns) = match is_out {
            true => (switch.ts_ns, switch.ts_ns.saturating_add(switch.waited_ns)),
            false => (switch.ts_ns.saturating_sub(switch.waited_ns), switch.ts_ns),
        };
        let (process_id, thread_id) = switch.thread;
        let of_thread = ThreadTime { process_id, thread_id, complete: true, ..ThreadTime::default() };
        let known = self.threads.get_mut(&switch.thread);
        // The processor of an event is where its moment was.
        let (ran_on, runs_on) = if is_out { (switch.processor, None) } else { (None, switch.processor) };
        if let Some(known) = known {
            let ran = known.runs.replace((end_ns, runs_on, switch.losses));
            // A run during which events were lost is not known.
            let ran = ran.filter(|(since_ns, _, losses)| *since_ns < start_ns && *losses == switch.losses);
            if let Some((since_ns, processor, _)) = ran {
                let processor = processor.or(ran_on);
                let row = ThreadTime { state: "running", start_ts_ns: since_ns, end_ts_ns: start_ns, ..of_thread };
                sink.add(&ThreadTime { processor, ..row });
            }
        }
        let callsite_id = switch.callsite_id;
        let row = ThreadTime { state: "blocked", start_ts_ns: start_ns, end_ts_ns: end_ns, ..of_thread };
        sink.add(&ThreadTime { callsite_id, ..row });
        let row =
            ContextSwitch { ts_ns: end_ns, processor: runs_on, process_id, thread_id, ..ContextSwitch::default() };
        sink.add(&ContextSwitch { callsite_id, ..row });
    }
}

impl Tracker for LinuxSwitches {
    type Action = ();
    const EVENTS: Events<()> = &[("Universal.Events", "cswitch", ())];

    fn event(&mut self, _: (), input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let frequency = shared.clock.map_or(1, |clock| clock.frequency.max(1));
        let waited_ns = u128::from(input.number("Value")) * 1_000_000_000 / frequency.unsigned_abs() as u128;
        let (thread, processor) = ((input.process_id(), input.thread_id()), input.event.raw.processor);
        let switch = Switch {
            thread,
            ts_ns: input.ts_ns(),
            waited_ns: i64::try_from(waited_ns).unwrap_or(i64::MAX),
            processor: (processor != u32::MAX).then_some(processor),
            callsite_id: input.callsite_id,
            losses: self.losses,
        };
        let last = (switch.ts_ns, switch.waited_ns);
        let has_room = self.threads.len() < MAX_THREADS;
        let before = match self.threads.get_mut(&thread) {
            Some(known) => Some(std::mem::replace(&mut known.last, last)),
            None if has_room => {
                self.threads.insert(thread, Known { last, runs: None });
                None
            }
            None => {
                self.unkept += 1;
                None
            }
        };
        if self.moment.is_some() {
            return self.report(&switch, sink);
        }
        if let Some(before) = before {
            self.weigh(before, &switch);
        }
        self.held.push(switch);
        if self.overlaps.abs() >= ENOUGH || self.held.len() >= MAX_HELD {
            self.decide(sink);
        }
    }

    fn cut(&mut self, cut: &Cut, _: &mut impl FactSink) {
        self.losses += u64::from(cut.is_lost());
    }

    fn finish(&mut self, position: u64, sink: &mut impl FactSink) {
        if self.moment.is_none() && !self.held.is_empty() {
            self.decide(sink);
        }
        if self.moment == Some(Moment::Out) {
            let message = "cswitch events have the time of switching out, not in as their definition says: read so";
            sink.problem(&Problem::info("switches_by_their_beginning", position, message));
        }
    }

    fn dropped(&self) -> Vec<Dropped> {
        let message = "too many threads; the others have no rows `running` in the table thread_time";
        vec![Dropped { code: "too_many_threads", count: self.unkept, message }]
    }
}
