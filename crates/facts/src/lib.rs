//! Events in the order of time become facts: rows of the tables. Knows no Arrow.
//!
//! Each subject is a tracker, a file of its own that says which events it asks for and gives facts (`tracker`).
//! [`Normalizer`] takes each event to the trackers that hear it. Recorded callbacks come by another way, [`callbacks`],
//! to the same facts.

pub mod callbacks;
pub mod code;
mod enum_names;
mod enum_values;
pub mod fact;
mod gaps;
mod gc;
mod generic_names;
pub mod heap_dump;
mod input;
mod kernel;
mod listed;
mod loader;
mod losses;
mod nested;
mod pairs;
mod prelude;
mod problem_summary;
mod processes;
mod scalars;
mod shared;
mod sources;
mod threads;
mod totals;
mod tracker;

use std::sync::Arc;

use tracequet_trace::catalog::Provider;
use tracequet_trace::error::Problem;
use tracequet_trace::event::{Decoding, Event, EventInfo};
use tracequet_trace::map::Map;
use tracequet_trace::reader::symbols::Symbols;
use tracequet_trace::reader::{self, ProcessKey, TypeId};
use tracequet_trace::time::Clock;

pub use code::frames::UNNAMED_FRAMES;
use code::own::OwnCode;
use fact::{CallsiteId, FactSink};
use input::{Handler, Input, ShortRows, Traits};
use pairs::{Marking, Pairs};
pub use problem_summary::ProblemSummary;
use shared::Shared;
pub use sources::event_sources::{SOURCE_FAULT, SourceFaults};
pub use totals::{FrameCounts, Totals};
use tracker::{Cut, Dropped, Tracker};

/// Makes the trackers of a recording from the one list of them, and the ways of events to them.
macro_rules! trackers {
    ($($name:ident: $tracker:ty),+ $(,)?) => {
        /// The trackers of a recording.
        #[derive(Default)]
        struct Trackers {
            $($name: $tracker,)+
        }

        /// The way of an event to a tracker: which one, and what it does with the event.
        #[derive(Clone, Copy, Debug)]
        #[allow(non_camel_case_types, reason = "a route is named as the tracker that it leads to")]
        enum Route {
            $($name(<$tracker as Tracker>::Action),)+
        }

        /// The trackers that hear events of a type.
        fn routes(info: &EventInfo) -> Vec<(Route, Traits)> {
            let mut routes = Vec::new();
            $(if let Some(action) = <$tracker>::action(info) {
                routes.push((Route::$name(action), <$tracker>::traits(action)));
            })+
            routes
        }

        impl Trackers {
            fn event(&mut self, route: Route, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
                match route {
                    $(Route::$name(action) => hand_over(&mut self.$name, action, input, shared, sink),)+
                }
            }

            /// Nothing that is open is joined with what comes.
            fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
                $(self.$name.cut(cut, sink);)+
            }

            fn finish(&mut self, position: u64, sink: &mut impl FactSink) {
                $(self.$name.finish(position, sink);)+
            }

            /// A problem for each kind of what was left out.
            fn report_dropped(&self, position: u64, sink: &mut impl FactSink) {
                let mut all: Vec<Dropped> = Vec::new();
                for found in [$(self.$name.dropped()),+].into_iter().flatten().filter(|found| found.count > 0) {
                    match all.iter_mut().find(|known| known.code == found.code) {
                        Some(known) => known.count = known.count.saturating_add(found.count),
                        None => all.push(found),
                    }
                }
                for Dropped { code, count, message } in all {
                    sink.problem(&Problem::loss(code, position, message).count(count));
                }
            }
        }

        /// Every event that a tracker asks for: provider, name, what it needs.
        #[cfg(test)]
        fn asked() -> Vec<(&'static str, &'static str, input::Needs)> {
            let mut asked = Vec::new();
            $(asked.extend(<$tracker>::EVENTS.iter().map(|(provider, name, action)| (*provider, *name, <$tracker>::needs(*action))));)+
            asked
        }
    };
}

/// Hands an event to a tracker. Never inlined: a browser optimises one function at a time, and one with all trackers in
/// it takes a second.
#[inline(never)]
fn hand_over<T: Tracker>(
    tracker: &mut T,
    action: T::Action,
    input: &Input<'_>,
    shared: &mut Shared,
    sink: &mut impl FactSink,
) {
    tracker.event(action, input, shared, sink);
}

trackers! {
    collections: gc::collections::Collections,
    survival: gc::survival::Survival,
    heap_stats: gc::heap_stats::HeapStats,
    generations: gc::generations::Generations,
    marks: gc::marks::Marks,
    joins: gc::joins::Joins,
    allocation_waits: gc::allocation_waits::AllocationWaits,
    tuning: gc::tuning::Tuning,
    heap_walks: gc::heap_walk::HeapWalks,
    roots: gc::roots::Roots,
    handles: gc::handles::Handles,
    finalizers: gc::finalizers::Finalizers,
    allocations: gc::allocations::Allocations,
    traced_objects: gc::traced_objects::TracedObjects,
    profiler_events: gc::profiler_events::ProfilerEvents,
    mono: gc::mono::Mono,
    types: code::bulk_types::BulkTypes,
    methods: code::methods::Methods,
    il_maps: code::il_maps::IlMaps,
    inlinings: code::inlinings::Inlinings,
    modules: code::modules::Modules,
    mappings: code::mappings::Mappings,
    assemblies: loader::assemblies::Assemblies,
    managed_modules: loader::managed_modules::ManagedModules,
    assembly_loads: loader::assembly_loads::AssemblyLoads,
    compilations: loader::compilation::Compilations,
    samples: threads::samples::Samples,
    exceptions: threads::exceptions::Exceptions,
    waits: threads::waits::Waits,
    pool: threads::pool::Pool,
    working: threads::working::Working,
    scheduling: kernel::scheduling::Scheduling,
    linux_switches: kernel::linux_switches::LinuxSwitches,
    hardware_counters: kernel::hardware_counters::HardwareCounters,
    interrupts: kernel::interrupts::Interrupts,
    disk: kernel::disk::Disk,
    files: kernel::files::Files,
    file_operations: kernel::file_operations::FileOperations,
    connections: kernel::network::Connections,
    registry: kernel::registry::RegistryOperations,
    system_calls: kernel::system_calls::SystemCalls,
    messages: kernel::alpc::Messages,
    counters: sources::counters::Counters,
    activities: sources::activities::Activities,
    logs: sources::logs::Logs,
    source_faults: sources::event_sources::SourceFaults,
    async_tasks: sources::async_tasks::AsyncTasks,
    processes: processes::Processes,
}

/// Finds the facts in the events of one recording.
#[derive(Default)]
pub struct Normalizer {
    /// The trackers that hear events of one layout.
    handlers: Vec<Box<[Handler<Route>]>>,
    /// Which of them hear the events of each type.
    by_type: Vec<u32>,
    /// Types with layouts in the catalogue, by the places of their plans and the ids of their events.
    by_layout: Map<(usize, u32), u32>,
    trackers: Trackers,
    shared: Shared,
    pairs: Pairs,
    short_rows: ShortRows,
    /// The providers of the catalogue that the recording has events of.
    catalogues: Vec<&'static Provider>,
    /// Where source lines come from, if they are wanted.
    symbols: Option<Symbols>,
    /// The rules for user code.
    own: OwnCode,
}

impl Normalizer {
    /// For one recording, whose stacks have addresses of `stack_width` bytes.
    pub fn new(stack_width: u8) -> Normalizer {
        let callsites = code::callsites::Callsites::new(stack_width);
        Normalizer { shared: Shared { callsites, ..Shared::default() }, ..Normalizer::default() }
    }

    /// Frames get source lines from these symbols. To be called before the first event type.
    pub fn find_lines(&mut self, symbols: Symbols) {
        self.symbols = Some(symbols);
    }

    /// Adds these patterns to the rules for user code.
    pub fn own_code(&mut self, own: OwnCode) {
        self.own = own;
    }

    /// The number of the call stack of an event of a process; 0 when it has none.
    #[inline]
    pub fn callsite(&mut self, stack: &reader::Stack<'_>, process: ProcessKey, ts_ns: i64) -> CallsiteId {
        self.shared.callsites.intern(stack, process, ts_ns)
    }

    /// The reader's keys of stacks are void.
    pub fn stacks_forgotten(&mut self) {
        self.shared.callsites.forget_keys();
    }

    /// The clock of the recording, set before its events.
    pub fn clock(&mut self, clock: &Clock) {
        self.shared.clock = Some(*clock);
    }

    /// A process that the recording describes.
    pub fn process(&mut self, process: &reader::Process, clock: &Clock) {
        self.trackers.processes.describe(process, clock);
    }

    /// Counts events of a process, from the first to the last; called before the end.
    pub fn counted(&mut self, process: ProcessKey, events: u64, first_ns: i64, last_ns: i64) {
        self.trackers.processes.counted(process, events, first_ns, last_ns);
    }

    /// A new event type. Returns whether facts come from it.
    pub fn event_type(&mut self, id: TypeId, info: &EventInfo) -> bool {
        if let Some(catalogue) = info.catalogue
            && !self.catalogues.iter().any(|known| known.provider == catalogue.provider)
        {
            self.catalogues.push(catalogue);
        }
        // A recording can make up a hundred thousand types of one layout.
        let layout = match &info.decoding {
            Decoding::Catalogue { plan, sized, .. } if sized.is_empty() => {
                Some((Arc::as_ptr(plan).addr(), info.event_type.event_id))
            }
            _ => None,
        };
        let known = layout.and_then(|layout| self.by_layout.get(&layout).copied());
        let place = known.unwrap_or_else(|| {
            let routes = routes(info).into_iter();
            self.handlers.push(routes.filter_map(|(route, traits)| Handler::new(route, traits, info)).collect());
            self.handlers.len() as u32 - 1
        });
        if let Some(layout) = layout {
            self.by_layout.insert(layout, place);
        }
        // Types that are not reported leave gaps.
        self.by_type.resize(id.0 as usize, u32::MAX);
        self.by_type.push(place);
        self.handlers_of(id).next().is_some()
    }

    /// Whether events of a type say what ids and addresses mean: modules, methods, types, the process itself.
    pub fn is_reference(&self, id: TypeId) -> bool {
        self.handlers_of(id).any(|handler| handler.traits.is_reference)
    }

    /// Whether events of a type have call stacks in their fields.
    pub fn has_callsites(&self, id: TypeId) -> bool {
        self.handlers_of(id).any(|handler| handler.traits.has_callsites)
    }

    /// Whether rows of one process follow from events of others, too: what a thread does ends when another one runs.
    pub fn needs_others(&self, id: TypeId) -> bool {
        self.handlers_of(id).any(|handler| handler.traits.needs_others)
    }

    fn handlers_of(&self, id: TypeId) -> impl Iterator<Item = &Handler<Route>> {
        let place = self.by_type.get(id.0 as usize);
        place.and_then(|place| self.handlers.get(*place as usize)).into_iter().flatten()
    }

    /// The recording goes on, with an event of any kind and process.
    #[inline]
    pub fn passes(&mut self, ts_ns: i64) {
        self.trackers.scheduling.passes(ts_ns);
    }

    /// An event of any kind that a thread of a process that is wanted wrote.
    #[inline]
    pub fn written(&mut self, event: &Event<'_>, sink: &mut impl FactSink) {
        self.trackers.working.written(event, sink);
    }

    /// One event, in the order of time.
    #[inline]
    pub fn event(&mut self, event: &Event<'_>, callsite_id: CallsiteId, sink: &mut impl FactSink) {
        let place = self.by_type.get(event.raw.event_type.0 as usize);
        let handlers = place.and_then(|place| self.handlers.get_mut(*place as usize));
        let sink = &mut Marking { pairs: &mut self.pairs, sink };
        for handler in handlers.into_iter().flatten() {
            let route = handler.route;
            if let Some(input) = handler.read(event, callsite_id, &self.short_rows) {
                self.trackers.event(route, &input, &mut self.shared, sink);
            }
        }
    }

    /// The end of the recording: open collections are incomplete, and what was only counted is reported.
    pub fn finish(&mut self, position: u64, sink: &mut impl FactSink) -> Totals {
        self.no_more_gaps(position, sink);
        let sink = &mut Marking { pairs: &mut self.pairs, sink };
        self.trackers.async_tasks.settle(&mut self.shared, sink);
        self.trackers.cut(&Cut::default(), sink);
        let Shared { runtimes, profiled, callsites, .. } = &mut self.shared;
        profiled.finish(position, runtimes.all(), sink);
        runtimes.finish(position, sink);
        let (short_rows, at) = self.short_rows.total();
        let message = "rows of bulk events are missing: the payload is shorter than its count says";
        sink.problems(Problem::loss("short_bulk_event", at, message), short_rows);
        let collections = profiled.collections();
        callsites.report(position, sink);
        let (nodes, places, allocated) = std::mem::take(callsites).finish();
        let Trackers {
            methods, async_tasks, il_maps, inlinings, modules, mappings, assemblies, managed_modules, ..
        } = &mut self.trackers;
        let has_logical = places.iter().any(|space| space.is_logical);
        let names = has_logical.then(|| code::methods::Names::of(methods));
        if let Some(names) = &names {
            async_tasks.name(names, sink);
        }
        let names = names.as_ref();
        let own = &self.own;
        let known = code::frames::Known {
            methods,
            names,
            modules,
            mappings,
            assemblies,
            managed_modules,
            inlinings,
            il_maps,
            own,
        };
        let lines = self.symbols.as_mut();
        let lines = lines.map(|symbols| code::lines::Lines::new(symbols, (managed_modules, modules)));
        let frames = code::frames::resolve((nodes, &places, &allocated), known, lines, position, sink);
        self.trackers.finish(position, sink);
        self.trackers.report_dropped(position, sink);
        self.catalogues.sort_unstable_by(|a, b| a.provider.cmp(&b.provider));
        enum_values::report(&self.catalogues, sink);
        Totals { collections, frames }
    }
}

#[cfg(test)]
mod tests {
    pub mod made_up;

    use super::*;
    use input::Needs;
    use tracequet_trace::catalog::{self, EventLayout};

    fn layouts(provider: &str) -> Option<&'static [EventLayout]> {
        catalog::provider(provider).map(|parsed| parsed.as_ref().unwrap().events.as_slice())
    }

    #[test]
    fn trackers_hear_events_that_the_catalogue_knows() {
        let mut known = 0;
        for (provider, name, _) in asked() {
            // Universal.Events is described by each recording.
            let Some(layouts) = layouts(provider) else { continue };
            assert!(layouts.iter().any(|layout| layout.name == name), "{provider} has no {name}");
            known += 1;
        }
        assert!(known >= 48, "{known}");
    }

    #[test]
    fn rows_of_bulk_events_are_read_where_the_catalogue_says_so() {
        let mut bulk = 0;
        for provider in catalog::provider_names() {
            for layout in layouts(provider).unwrap() {
                let needs =
                    asked().into_iter().find(|(p, n, _)| *p == provider && *n == layout.name).map(|found| found.2);
                let reads = matches!(needs, Some(Needs::Rows(_)) | Some(Needs::FieldsAndRows(_)));
                // Rows that vary in size are read as a field.
                let as_field = layout.rows_kept && needs == Some(Needs::Fields);
                let (name, declared) = (&layout.name, layout.rows_in.is_some());
                assert_eq!(reads || as_field, declared, "{provider} {name}: a tracker and rows_in disagree");
                bulk += u32::from(declared);
            }
        }
        assert_eq!(bulk, 14);
    }
}
