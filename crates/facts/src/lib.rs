//! Events in the order of time become facts: rows of the tables. Knows no Arrow.
//!
//! Each subject is a tracker, a file of its own that says which events it hears and gives facts (`tracker`). [`Normalizer`]
//! takes each event to the trackers that hear it. Recorded callbacks come by another way, [`callbacks`], to the same facts.

pub mod callbacks;
pub mod code;
mod enum_names;
mod enum_values;
pub mod fact;
mod gaps;
mod gc;
mod generic_names;
pub mod heap_dump;
mod kernel;
mod listed;
mod loader;
mod losses;
#[cfg(test)]
mod made_up;
mod nested;
mod pairs;
mod problem_summary;
mod processes;
mod scalars;
mod sources;
mod threads;
mod tracker;
mod unended;

use tracequet_trace::catalog::Provider;
use tracequet_trace::error::{Problem, Severity};
use tracequet_trace::event::{Event, EventInfo};
use tracequet_trace::reader::symbols::Symbols;
use tracequet_trace::reader::{self, ProcessKey, ThreadIndex, TypeId};
use tracequet_trace::time::Clock;

pub use code::frames::UNNAMED_FRAMES;
use code::own::OwnCode;
use fact::{CallsiteId, FactSink};
use gc::join::Moment;
use pairs::{Marking, Pairs};
pub use problem_summary::ProblemSummary;
use tracker::{Action, Handler, Input, Needs, ShortRows};
pub use tracker::{FrameCounts, Totals};

/// Makes the enum of routes, and finds the routes of an event type: the trackers that hear it, each with its action.
macro_rules! trackers {
    ($($name:ident = $($path:ident)::+),+ $(,)?) => {
        /// The way of an event to a tracker: which one, and what it does with the event.
        #[derive(Clone, Copy, Debug)]
        enum Route {
            $($name($($path)::+::Action),)+
        }

        fn routes(info: &EventInfo) -> Vec<(Route, Needs)> {
            let mut routes = Vec::new();
            $(if let Some(action) = tracker::action($($path)::+::HEARS, info) {
                routes.push((Route::$name(action), action.needs()));
            })+
            routes
        }

        /// Every event that a tracker hears: provider, name, what it needs.
        #[cfg(test)]
        fn heard() -> Vec<(&'static str, &'static str, Needs)> {
            let mut heard = Vec::new();
            $(for hears in $($path)::+::HEARS {
                heard.extend(hears.events.iter().map(|(name, action)| (hears.provider, *name, action.needs())));
            })+
            heard
        }
    };
}

trackers! {
    Collections = gc::collections,
    Survival = gc::survival,
    HeapStats = gc::heap_stats,
    Generations = gc::generations,
    Marks = gc::marks,
    Joins = gc::joins,
    Tuning = gc::tuning,
    HeapWalk = gc::heap_walk,
    Roots = gc::roots,
    Handles = gc::handles,
    Finalizers = gc::finalizers,
    Allocations = gc::allocations,
    Profiler = gc::profiler,
    Types = code::types,
    Methods = code::methods,
    IlMaps = code::il_maps,
    Modules = code::modules,
    Mappings = code::mappings,
    Assemblies = loader::assemblies,
    ManagedModules = loader::managed_modules,
    AssemblyLoads = loader::assembly_loads,
    Compilations = loader::compilation,
    Samples = threads::samples,
    Exceptions = threads::exceptions,
    Waits = threads::waits,
    Pool = threads::pool,
    Scheduling = kernel::scheduling,
    Disk = kernel::disk,
    Files = kernel::files,
    FileOperations = kernel::file_operations,
    Network = kernel::network,
    Counters = sources::counters,
    Activities = sources::activities,
    Processes = processes,
}

/// Finds the facts in the events of one recording.
#[derive(Default)]
pub struct Normalizer {
    /// The trackers that hear the events of each type.
    handlers: Vec<Box<[Handler<Route>]>>,
    trackers: Trackers,
    pairs: Pairs,
    short_rows: ShortRows,
    /// The providers of the catalogue that the recording has events of.
    catalogues: Vec<&'static Provider>,
    /// Where source lines come from, if they are wanted.
    symbols: Option<Symbols>,
    /// What code is the user's own.
    own: OwnCode,
}

/// The trackers, as far as they remember anything.
#[derive(Default)]
struct Trackers {
    runtimes: gc::runtimes::Runtimes,
    join: gc::join::Join,
    heap_walks: gc::heap_walk::HeapWalks,
    marks: gc::marks::Marks,
    joins: gc::joins::Joins,
    types: code::types::Types,
    callsites: code::callsites::Callsites,
    methods: code::methods::Methods,
    il_maps: code::il_maps::IlMaps,
    modules: code::modules::Modules,
    mappings: code::mappings::Mappings,
    assemblies: loader::assemblies::Assemblies,
    managed_modules: loader::managed_modules::ManagedModules,
    assembly_loads: loader::assembly_loads::AssemblyLoads,
    compilations: loader::compilation::Compilations,
    exceptions: threads::exceptions::Exceptions,
    waits: threads::waits::Waits,
    pool: threads::pool::Pool,
    counters: sources::counters::Counters,
    activities: sources::activities::Activities,
    scheduling: kernel::scheduling::Scheduling,
    files: kernel::files::Files,
    file_operations: kernel::file_operations::FileOperations,
    clock: Option<Clock>,
    processes: processes::Processes,
}

impl Normalizer {
    /// For one recording, whose stacks have addresses of `stack_width` bytes.
    pub fn new(stack_width: u8) -> Normalizer {
        let callsites = code::callsites::Callsites::new(stack_width);
        Normalizer { trackers: Trackers { callsites, ..Trackers::default() }, ..Normalizer::default() }
    }

    /// Frames get source lines from these symbols. To be called before the first event type.
    pub fn find_lines(&mut self, symbols: Symbols) {
        self.symbols = Some(symbols);
    }

    /// What code is the user's own is decided by these patterns, too.
    pub fn own_code(&mut self, own: OwnCode) {
        self.own = own;
    }

    /// The number of the call stack of an event of a process; 0 when it has none.
    #[inline]
    pub fn callsite(&mut self, stack: &reader::Stack<'_>, process: ProcessKey, ts_ns: i64) -> CallsiteId {
        self.trackers.callsites.intern(stack, process, ts_ns)
    }

    /// The reader's keys of stacks are void.
    pub fn stacks_forgotten(&mut self) {
        self.trackers.callsites.forget_keys();
    }

    /// The clock of the recording, set before its events.
    pub fn clock(&mut self, clock: &Clock) {
        self.trackers.clock = Some(*clock);
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
        let index = id.0 as usize;
        if self.handlers.len() <= index {
            self.handlers.resize_with(index + 1, Box::default);
        }
        if let Some(catalogue) = info.catalogue
            && !self.catalogues.iter().any(|known| known.provider == catalogue.provider)
        {
            self.catalogues.push(catalogue);
        }
        let mut routes = routes(info);
        if let Some(action) = sources::activities::action(info) {
            routes.push((Route::Activities(action), action.needs()));
        }
        if self.symbols.is_none() {
            routes.retain(|(route, _)| !matches!(route, Route::IlMaps(_)));
        }
        let handlers: Box<[_]> =
            routes.into_iter().filter_map(|(route, needs)| Handler::new(route, needs, info)).collect();
        let wanted = !handlers.is_empty();
        if let Some(place) = self.handlers.get_mut(index) {
            *place = handlers;
        }
        wanted
    }

    /// Whether events of a type say what ids and addresses mean: modules, methods, types, the process itself.
    pub fn is_reference(&self, id: TypeId) -> bool {
        let handlers = self.handlers.get(id.0 as usize).into_iter().flatten();
        let is_reference = |handler: &Handler<Route>| {
            let Handler { route, .. } = handler;
            matches!(route, Route::Types(_) | Route::Methods(_) | Route::Modules(_) | Route::Processes(_))
                || matches!(route, Route::Mappings(_) | Route::IlMaps(_))
                || matches!(route, Route::Assemblies(_) | Route::ManagedModules(_) | Route::Files(_))
                || matches!(route, Route::Scheduling(action) if action.is_reference())
        };
        handlers.into_iter().any(is_reference)
    }

    /// Whether rows of one process follow from events of others, too: what a thread does ends when another one runs.
    pub fn needs_others(&self, id: TypeId) -> bool {
        let handlers = self.handlers.get(id.0 as usize).into_iter().flatten();
        let needs = |handler: &Handler<Route>| matches!(handler.route, Route::Scheduling(_) | Route::FileOperations(_));
        handlers.into_iter().any(needs)
    }

    /// The recording goes on, with an event of any kind and process.
    #[inline]
    pub fn passes(&mut self, ts_ns: i64) {
        self.trackers.scheduling.passes(ts_ns);
    }

    /// One event, in the order of time.
    #[inline]
    pub fn event(&mut self, event: &Event<'_>, callsite_id: CallsiteId, sink: &mut impl FactSink) {
        let index = event.raw.event_type.0 as usize;
        let sink = &mut Marking { pairs: &mut self.pairs, sink };
        for handler in self.handlers.get_mut(index).into_iter().flatten() {
            let route = handler.route;
            if let Some(input) = handler.read(event, callsite_id, &self.short_rows) {
                self.trackers.event(route, &input, sink);
            }
        }
    }

    /// The end of the recording: open collections are incomplete, and what was only counted is reported.
    pub fn finish(&mut self, position: u64, sink: &mut impl FactSink) -> Totals {
        self.no_more_gaps(position, sink);
        let sink = &mut Marking { pairs: &mut self.pairs, sink };
        self.trackers.unpair(None, None, false, sink);
        unended::report(&self.trackers.unended(), position, sink);
        let unkept = self.trackers.scheduling.finish(sink);
        if unkept > 0 {
            let message = "too many threads; the others have no rows in the table thread_time";
            let problem = Problem::new(Severity::DataLoss, "too_many_threads", position, message);
            sink.problem(&problem.count(unkept));
        }
        let unkept = self.trackers.file_operations.unkept;
        if unkept > 0 {
            let message = "too many concurrent operations on files; ends missing in the table file_io";
            sink.problem(&Problem::new(Severity::DataLoss, "too_many_operations", position, message).count(unkept));
        }
        let Trackers { runtimes, join, heap_walks, .. } = &mut self.trackers;
        join.finish(position, runtimes.all(), sink);
        runtimes.finish(position, sink);
        let (short_rows, at) = self.short_rows.total();
        if short_rows > 0 {
            let message = "rows of bulk events are missing: the payload is shorter than its count says";
            sink.problem(&Problem::new(Severity::DataLoss, "short_bulk_event", at, message).count(short_rows));
        }
        heap_walks.finish(position, sink);
        let totals = Totals { collections: join.collections(), ..Totals::default() };
        let Trackers {
            callsites,
            methods,
            il_maps,
            modules,
            mappings,
            assemblies,
            managed_modules,
            files,
            processes,
            ..
        } = &mut self.trackers;
        let lost = modules.lost + mappings.lost + assemblies.lost() + managed_modules.lost();
        if lost > 0 {
            let message = "too many modules or assemblies to remember";
            sink.problem(&Problem::new(Severity::DataLoss, "too_many_modules", position, message).count(lost));
        }
        if files.lost() > 0 {
            let problem = Problem::new(Severity::DataLoss, "too_many_files", position, "too many files to remember");
            sink.problem(&problem.count(files.lost()));
        }
        files.finish(sink);
        processes.finish(sink);
        let known = code::frames::Known { methods, modules, mappings, assemblies, managed_modules, own: &self.own };
        callsites.report(position, sink);
        let (nodes, places) = std::mem::take(callsites).finish();
        let lines = self.symbols.as_mut();
        let lines = lines.map(|symbols| code::lines::Lines::new(symbols, il_maps, managed_modules, methods));
        let frames = code::frames::resolve(nodes, &places, known, lines, position, sink);
        modules.finish(sink);
        mappings.finish(sink);
        assemblies.finish(sink);
        managed_modules.finish(sink);
        self.catalogues.sort_unstable_by(|a, b| a.provider.cmp(&b.provider));
        enum_values::report(&self.catalogues, sink);
        Totals { frames, ..totals }
    }
}

impl Trackers {
    /// Counts of what was given up, because too much was open at a time.
    fn unended(&self) -> unended::Unended {
        unended::Unended {
            exceptions: self.exceptions.given_up(),
            waits: self.waits.given_up(),
            compilations: self.compilations.given_up(),
            loads: self.assembly_loads.given_up(),
            joins: self.joins.given_up(),
            work_items: self.pool.given_up,
            activities: self.activities.given_up(),
        }
    }

    /// Nothing that is open is joined with what comes: events of a thread (`None`: of any) were lost (`is_lost`), or the recording
    /// ends.
    fn unpair(
        &mut self,
        process: Option<ProcessKey>,
        thread: Option<ThreadIndex>,
        is_lost: bool,
        sink: &mut impl FactSink,
    ) {
        self.marks.forget();
        self.joins.events_lost(thread, is_lost, sink);
        self.assembly_loads.events_lost(thread, is_lost, sink);
        self.compilations.events_lost(thread, is_lost, sink);
        self.exceptions.events_lost(thread, is_lost, sink);
        self.waits.events_lost(thread, is_lost, sink);
        self.pool.events_lost(process, is_lost, sink);
        self.counters.events_lost(process);
        self.file_operations.events_lost(is_lost, sink);
        self.activities.events_lost(process, is_lost, sink);
    }

    fn event(&mut self, route: Route, input: &Input<'_>, sink: &mut impl FactSink) {
        let Trackers { runtimes, join, heap_walks, marks, types, callsites, methods, modules, processes, .. } = self;
        match route {
            Route::Collections(action) => {
                runtimes.event(input, action.moment(input), join, sink, |runtime, sink| {
                    gc::collections::event(action, input, runtime, sink);
                });
            }
            Route::Survival(action) => {
                runtimes.event(input, action.moment(), join, sink, |runtime, _| {
                    gc::survival::event(action, input, runtime);
                });
            }
            Route::HeapStats(action) => {
                runtimes.event(input, Moment::Within, join, sink, |runtime, sink| {
                    gc::heap_stats::event(action, input, runtime, sink);
                });
            }
            Route::Generations(action) => {
                if let Some((_, runtime)) = runtimes.of(input) {
                    gc::generations::event(action, input, runtime, sink);
                }
            }
            Route::Marks(action) => marks.event(action, input, runtimes.of(input), sink),
            Route::Joins(action) => self.joins.event(action, input, runtimes, sink),
            Route::Tuning(action) => gc::tuning::event(action, input, runtimes.of(input), sink),
            Route::HeapWalk(action) => {
                runtimes.event(input, Moment::Within, join, sink, |runtime, sink| {
                    heap_walks.event(action, input, runtime, sink);
                });
            }
            Route::Roots(action) => {
                runtimes.event(input, Moment::Within, join, sink, |runtime, sink| {
                    gc::roots::event(action, input, runtime, sink);
                });
            }
            Route::Handles(action) => {
                runtimes.event(input, Moment::Within, join, sink, |_, sink| gc::handles::event(action, input, sink));
            }
            Route::Finalizers(action) => {
                runtimes.event(input, Moment::Within, join, sink, |runtime, sink| {
                    gc::finalizers::event(action, input, runtime, sink);
                });
            }
            Route::Allocations(action) => {
                runtimes.event(input, Moment::Within, join, sink, |_, sink| {
                    gc::allocations::event(action, input, types, sink);
                });
            }
            Route::Profiler(event) => {
                if event.is_past_start() {
                    runtimes.end_start_phase(input.capture_thread());
                }
                join.profiler_event(event, input, runtimes.all(), types, sink);
            }
            Route::Types(action) => types.event(action, input, sink),
            Route::Methods(action) => methods.event(action, input, callsites, sink),
            Route::IlMaps(action) => self.il_maps.event(action, input),
            Route::Modules(action) => modules.event(action, input),
            Route::Mappings(action) => self.mappings.event(action, input),
            Route::Assemblies(action) => self.assemblies.event(action, input),
            Route::ManagedModules(action) => self.managed_modules.event(action, input),
            Route::AssemblyLoads(action) => self.assembly_loads.event(action, input, sink),
            Route::Compilations(action) => self.compilations.event(action, input, sink),
            Route::Samples(action) => threads::samples::event(action, input, sink),
            Route::Exceptions(action) => self.exceptions.event(action, input, sink),
            Route::Waits(action) => self.waits.event(action, input, sink),
            Route::Pool(action) => self.pool.event(action, input, sink),
            Route::Disk(action) => kernel::disk::event(action, input, self.clock.as_ref(), sink),
            Route::Files(action) => self.files.event(action, input),
            Route::FileOperations(action) => self.file_operations.event(action, input, sink),
            Route::Scheduling(action) => self.scheduling.event(action, input, sink),
            Route::Network(action) => kernel::network::event(action, input, sink),
            Route::Counters(action) => self.counters.event(action, input, sink),
            Route::Activities(action) => self.activities.event(action, input, sink),
            Route::Processes(action) => processes.event(action, input),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracequet_trace::catalog::{self, EventLayout};

    fn layouts(provider: &str) -> Option<&'static [EventLayout]> {
        catalog::provider(provider).map(|parsed| parsed.as_ref().unwrap().layouts())
    }

    #[test]
    fn trackers_hear_events_that_the_catalogue_knows() {
        let mut known = 0;
        for (provider, name, _) in heard() {
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
                    heard().into_iter().find(|(p, n, _)| *p == provider && *n == layout.name).map(|found| found.2);
                let reads = matches!(needs, Some(Needs::Rows(_)) | Some(Needs::FieldsAndRows(_)));
                // Rows that vary in size are read as a field.
                let as_field = layout.rows_kept && needs == Some(Needs::Fields);
                let (name, declared) = (&layout.name, layout.rows_in.is_some());
                assert_eq!(reads || as_field, declared, "{provider} {name}: a tracker and rows_in disagree");
                bulk += u32::from(declared);
            }
        }
        assert_eq!(bulk, 12);
    }
}
