//! Collections as PerfView's profiler (ETWClrProfiler) reports them, put together with the runtime's own reports.
//!
//! Mostly both are recorded:
//! ```text
//!   GCStart (profiler)   GCStart   bounds   ranges of both   GCStop (profiler)   bounds   GCEnd
//! ```
//! (So it is on .NET Core 3.1 and .NET 10.) The one that starts second takes the number of the first. The bounds of the
//! runtime hold for the ranges of the profiler, and these are left out when the runtime reports ranges itself. The row
//! of the profiler is added to that of the runtime.
//!
//! [`Profiled`] is the only way in: it is given the events of profilers, learns of each event of a runtime before its
//! tracker does, and numbers the collections of both.

use super::event_collections::EventGcTracker;
use super::moment::Moment;
use super::profiler::{ProfilerEvent, Scratch, Translated, translate};
use super::ranges::Ranges;
use super::report_queue;
use crate::callbacks::CallbackNormalizer;
use crate::callbacks::call::Call;
use crate::code::types::Types;
use crate::fact::{Fact, FactSink, GcId};
use crate::input::Input;
use crate::prelude::*;

/// Processes with a profiler; no machine runs more. Events of further ones are counted and left out.
const MAX_PROCESSES: usize = 4096;

/// The profiler in one process. Its events are calls, and go where those of a `.corprof` go.
struct Profiler {
    calls: CallbackNormalizer,
    /// The profiler's number of the collection that it reported last.
    number: Option<u32>,
    /// The last collection that the runtime reports, too.
    joined: GcId,
}

/// The profilers of all processes, and the numbers of all collections.
#[derive(Default)]
pub struct Profiled {
    profilers: BTreeMap<ProcessKey, Profiler>,
    scratch: Scratch,
    /// Number of the collection that began last, in either report.
    last_gc_id: GcId,
    missing_collections: u64,
    unpaired_ranges: u64,
    left_out_events: u64,
    last_offset: u64,
}

/// The numbering of the next collection of a runtime.
#[derive(Clone, Copy, Debug)]
pub struct Numbering {
    /// The next number follows this one.
    pub last_gc_id: GcId,
    /// The number of a collection that only the profiler has reported so far.
    profiled: Option<GcId>,
}

impl Profiled {
    /// An event of a profiler, in the order of time.
    pub fn profiler_event(
        &mut self,
        event: ProfilerEvent,
        input: &Input<'_>,
        runtimes: &mut [EventGcTracker],
        types: &mut Types,
        sink: &mut impl FactSink,
    ) {
        let process = input.process();
        let open = runtimes.iter().find_map(|runtime| runtime.open_in(process));
        if event == ProfilerEvent::GcStart
            && let Some(open) = open
            && let Some(profiler) = self.profilers.get_mut(&process)
        {
            // If it is joined already, its end is lost.
            self.unpaired_ranges += profiler.runtime_ends(open, input.offset(), sink);
        }
        let open = open.map(|(gc_id, _)| gc_id);
        self.call(event, input, open, types, sink);
        if let Some(profiler) = self.profilers.get_mut(&process) {
            profiler.add_rows(runtimes, sink);
        }
        if event == ProfilerEvent::Shutdown {
            self.profilers.remove(&process);
        }
    }

    fn call(
        &mut self,
        event: ProfilerEvent,
        input: &Input<'_>,
        open: Option<GcId>,
        types: &mut Types,
        sink: &mut impl FactSink,
    ) {
        let process = input.process();
        self.last_offset = input.offset();
        if !self.profilers.contains_key(&process) {
            if self.profilers.len() >= MAX_PROCESSES {
                self.left_out_events += 1;
                return;
            }
            let calls = CallbackNormalizer::of_process(process.id);
            self.profilers.insert(process, Profiler { calls, number: None, joined: 0 });
        }
        let Some(profiler) = self.profilers.get_mut(&process) else { return };
        let sink = &mut Once { process, types, sink };
        let number = input.fields.small("GCID");
        self.missing_collections += match event {
            ProfilerEvent::GcStart => profiler.starts(number),
            ProfilerEvent::GcStop => profiler.stops(number, input.offset(), sink),
            _ => 0,
        };
        match translate(event, input, &mut self.scratch) {
            Translated::Call(call) => profiler.call(&call, open, &mut self.last_gc_id, sink),
            Translated::Problem(problem) => sink.problem(&problem),
            Translated::Shutdown => profiler.calls.end(input.offset(), sink),
            Translated::Nothing => {}
        }
        if event == ProfilerEvent::GcStop {
            profiler.calls.collections.report(sink);
        }
    }

    /// An event of a runtime comes next. Where it ends a collection, or begins another, what a profiler reports of it
    /// is over, too.
    pub fn runtime_moves_on(
        &mut self,
        moment: Moment,
        input: &Input<'_>,
        runtimes: &mut [EventGcTracker],
        index: usize,
        sink: &mut impl FactSink,
    ) {
        if self.profilers.is_empty() {
            return;
        }
        let (process, offset) = (input.process(), input.offset());
        let (Some(runtime), Some(profiler)) = (runtimes.get(index), self.profilers.get_mut(&process)) else { return };
        let over = match moment {
            Moment::End(number) => runtime.ending(number),
            Moment::Start(number) => runtime.given_up(number),
            Moment::Suspend => None,
            Moment::Bounds | Moment::Within => return,
        };
        if let Some(over) = over {
            self.unpaired_ranges += profiler.runtime_ends(over, offset, sink);
        }
        if !matches!(moment, Moment::End(_)) {
            let open = runtime.open_in(process).filter(|_| over.is_none()).map(|(gc_id, _)| gc_id);
            profiler.runtime_goes_on(open, offset, sink);
        }
        profiler.add_rows(runtimes, sink);
    }

    /// The numbering of the next collection of a runtime of this process: as the one that a profiler reports, if there
    /// is one.
    #[inline]
    pub fn number(&self, process: ProcessKey) -> Numbering {
        let profiled = match self.profilers.is_empty() {
            true => None,
            false => self.profilers.get(&process).and_then(|profiler| profiler.calls.collections.not_joined()),
        };
        Numbering { last_gc_id: profiled.map_or(self.last_gc_id, |id| id.saturating_sub(1)), profiled }
    }

    /// The event of a runtime is done; the last collection has this number now.
    #[inline]
    pub fn numbered(&mut self, process: ProcessKey, before: Numbering, last_gc_id: GcId) {
        match before.profiled {
            None => self.last_gc_id = last_gc_id,
            Some(id) if id == last_gc_id => {
                if let Some(profiler) = self.profilers.get_mut(&process) {
                    profiler.joined = id;
                    profiler.calls.collections.join();
                }
            }
            Some(_) => {}
        }
    }

    /// The number of collections.
    pub fn collections(&self) -> u64 {
        u64::from(self.last_gc_id)
    }

    /// The end of the recording.
    pub fn finish(&mut self, position: u64, runtimes: &mut [EventGcTracker], sink: &mut impl FactSink) {
        for profiler in self.profilers.values_mut() {
            profiler.calls.end(position, sink);
        }
        let mut report = |code, count: u64, message: &str| {
            sink.problems(Problem::loss(code, self.last_offset, message), count);
        };
        let message = "collections are missing: gap in the profiler's GC numbers";
        report("lost_collections", self.missing_collections, message);
        let message = "profiler ranges missing from the runtime's";
        report("unpaired_ranges", self.unpaired_ranges, message);
        let message = "more than 4,096 profiled processes; events of the others are left out";
        report("too_many_processes", self.left_out_events, message);
        for profiler in self.profilers.values_mut() {
            profiler.add_rows(runtimes, sink);
        }
    }
}

impl Profiler {
    /// A collection of this number starts. Returns how many are missing before it.
    fn starts(&mut self, number: Option<u32>) -> u64 {
        let last = std::mem::replace(&mut self.number, number);
        // A smaller number is that of another runtime, or of another process with the same id.
        number.zip(last).map_or(0, |(now, last)| u64::from(now.saturating_sub(last).saturating_sub(1)))
    }

    /// A collection of this number ends. When it is another one than that which started last, both are incomplete.
    fn stops(&mut self, number: Option<u32>, offset: u64, sink: &mut impl FactSink) -> u64 {
        if number == self.number {
            return 0;
        }
        if self.calls.collections.runs() {
            self.calls.interrupt(offset, sink);
        }
        self.starts(number)
    }

    /// A call, while the runtime reports the collection `open`.
    fn call(&mut self, call: &Call<'_>, open: Option<GcId>, last_gc_id: &mut GcId, sink: &mut impl FactSink) {
        let shared = &mut self.calls.collections.shared;
        shared.end_is_provisional = open == Some(self.joined);
        let new = open.filter(|open| *open != self.joined);
        shared.starts_joined = new.is_some();
        match new {
            Some(open) => {
                let mut last = open.saturating_sub(1);
                self.calls.call(call, &mut last, sink);
                if last == open {
                    self.joined = open;
                }
            }
            None => self.calls.call(call, last_gc_id, sink),
        }
    }

    /// The runtime's own events of a collection end, which reported these ranges. Returns how many ranges they lack.
    fn runtime_ends(&mut self, (gc_id, ranges): (GcId, &Ranges), offset: u64, sink: &mut impl FactSink) -> u64 {
        let lacking = self.calls.collections.joined_ends(gc_id, ranges, sink);
        self.calls.after(offset, sink);
        lacking
    }

    /// The runtime continues with another collection than `open`.
    fn runtime_goes_on(&mut self, open: Option<GcId>, offset: u64, sink: &mut impl FactSink) {
        if open != Some(self.joined) && self.calls.collections.has_joined() {
            self.calls.interrupt(offset, sink);
        }
    }

    /// Adds the rows of its joined collections that are over to those of the runtime.
    fn add_rows(&mut self, runtimes: &mut [EventGcTracker], sink: &mut impl FactSink) {
        for row in self.calls.collections.shared.closed.drain(..) {
            if !runtimes.iter_mut().any(|runtime| runtime.add(&row)) {
                report_queue::report(row, sink);
            }
        }
    }
}

/// The profiler's classes where the runtime's own events report types, too: each once.
struct Once<'t, S> {
    process: ProcessKey,
    types: &'t mut Types,
    sink: &'t mut S,
}

impl<S: FactSink> FactSink for Once<'_, S> {
    fn fact(&mut self, fact: Fact<'_>) {
        match fact {
            Fact::Type(rows) => rows.iter().for_each(|found| self.types.profiled(self.process, found, self.sink)),
            other => self.sink.fact(other),
        }
    }
}
