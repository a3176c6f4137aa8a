//! The collections of a recording, from the fixed fields of GCStart and GCEnd. Where the runtime recorded none, from
//! the events of PerfView's profiler, or from the walk of a generational-aware analysis.

use std::collections::{BTreeSet, HashSet};

use tracequet_trace::event::catalog::{Provider, ValueMap};
use tracequet_trace::event::fixed_field::FixedField;
use tracequet_trace::event::{EventInfo, layout};
use tracequet_trace::reader::{ProcessKey, RawEvent};
use tracequet_trace::time::Clock;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const GC_START: u32 = 1;
const GC_END: u32 = 2;
const GC_GLOBAL_HISTORY: u32 = 205;
/// GCGlobalMechanisms: threads ran while it collected.
const CONCURRENT: u64 = 1;
const WALK_BEGIN: u32 = 206;
const WALK_END: u32 = 207;
const PROFILER: &str = "ETWClrProfiler";
const PROFILER_GC_START: u32 = 20;
const PROFILER_GC_STOP: u32 = 21;
/// More starts and ends than this are counted but not listed (24 MB).
const MAX_MARKS: usize = 1 << 19;

/// The collections of a recording.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GcList {
    /// In the order in which they began.
    pub list: Vec<Collection>,
    /// Starts and ends that were more than fit into the list.
    pub unlisted_marks: u64,
}

/// One collection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Collection {
    /// OS process id.
    pub process_id: u64,
    /// The runtime's own count of collections; the profiler's where only that recorded them.
    pub number: u64,
    /// The oldest generation that is collected; `None` for runtimes before .NET Framework 4.5.
    pub generation: Option<u64>,
    /// Why it was started; `None` when the start is not in the recording.
    pub reason: Option<u64>,
    /// The name of `reason`.
    pub reason_name: Option<&'static str>,
    /// The kind of collection beside the program.
    pub kind: Option<CollectionKind>,
    /// Nanoseconds since the recording began; `None` when the start is not in the recording.
    pub start_ns: Option<i64>,
    /// Nanoseconds from start to end; `None` when one of the two is not in the recording.
    pub duration_ns: Option<i64>,
}

tracequet_trace::worded! {
    /// A kind of collection, by how it runs beside the program.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum CollectionKind {
        /// The program is stopped.
        Blocking = "blocking",
        /// The program runs for most of it.
        Background = "background",
        /// The program is stopped, while a background collection is under way.
        Foreground = "foreground",
    }
    /// The word for it.
    pub fn as_str;
}

impl CollectionKind {
    /// By its name in the catalogue (`GCTypeMap`).
    fn by_name(name: &str) -> Option<CollectionKind> {
        match name {
            "NonConcurrentGC" => Some(CollectionKind::Blocking),
            "BackgroundGC" => Some(CollectionKind::Background),
            "ForegroundGC" => Some(CollectionKind::Foreground),
            _ => None,
        }
    }
}

/// Where GCStart, GCEnd or GCGlobalHeapHistory of one version has its fields.
pub(super) struct EventShape {
    is_end: bool,
    /// Of a summary, whether threads ran meanwhile is in here.
    mechanisms: Option<FixedField>,
    stands_in: bool,
    number: FixedField,
    generation: Option<FixedField>,
    reason: Option<FixedField>,
    kind: Option<FixedField>,
    instance: Option<FixedField>,
    reasons: Option<&'static ValueMap>,
    kinds: Option<&'static ValueMap>,
}

impl EventShape {
    /// `None` when events of this kind are no starts or ends of collections.
    pub fn new(info: &EventInfo) -> Option<EventShape> {
        let id = info.event_type.event_id;
        let is_summary = (info.provider.as_str(), id) == (RUNTIME, GC_GLOBAL_HISTORY);
        let (is_end, stands_in) = match (info.provider.as_str(), id) {
            (RUNTIME, GC_GLOBAL_HISTORY) => (false, false),
            (RUNTIME, GC_START | GC_END) => (id == GC_END, false),
            (RUNTIME, WALK_BEGIN | WALK_END) => (id == WALK_END, true),
            (PROFILER, PROFILER_GC_START | PROFILER_GC_STOP) => (id == PROFILER_GC_STOP, true),
            _ => return None,
        };
        let plan = info.decoding.plan()?;
        let map = |field| value_map(info.catalogue?, id, info.event_type.version, field);
        // A summary does not say of which collection it is.
        let [number, generation] = match (info.provider == PROFILER, is_summary) {
            (true, _) => ["GCID", "Generation"],
            (false, true) => ["NumHeaps", "CondemnedGeneration"],
            (false, false) => ["Count", "Depth"],
        };
        Some(EventShape {
            is_end,
            stands_in,
            mechanisms: if is_summary { Some(FixedField::of(plan, "GlobalMechanisms")?) } else { None },
            number: FixedField::of(plan, number)?,
            generation: FixedField::of(plan, generation),
            reason: FixedField::of(plan, "Reason"),
            kind: FixedField::of(plan, "Type"),
            instance: FixedField::of(plan, "ClrInstanceID"),
            reasons: map("Reason"),
            kinds: map("Type"),
        })
    }
}

/// The names of the values of a field.
fn value_map(catalogue: &'static Provider, id: u32, version: u32, field: &str) -> Option<&'static ValueMap> {
    let fields = &catalogue.layout(id, version)?.fields;
    let text = fields.iter().find(|f| f.split(':').next() == Some(field))?;
    catalogue.maps.get(layout::map_of(text)?)
}

/// Starts and ends as they come; which belong together is found out when all are there, since in the order of the file
/// an end may come before its start.
#[derive(Default)]
pub(super) struct GcMarks {
    marks: Vec<Mark>,
    /// When a collection of generation 2 ended that had stopped all threads, whatever its start said.
    stopped: BTreeSet<(ProcessKey, u16, i64)>,
    unlisted: u64,
    reasons: Option<&'static ValueMap>,
}

struct Mark {
    process: ProcessKey,
    ticks: i64,
    number: u32,
    reason: Option<u32>,
    instance: u16,
    generation: Option<u8>,
    kind: Option<CollectionKind>,
    is_end: bool,
    stands_in: bool,
}

impl GcMarks {
    /// Takes note of a start or an end; one whose payload is cut short is left out.
    pub fn add(&mut self, shape: &EventShape, event: &RawEvent<'_>, process: ProcessKey) {
        let value = |place: Option<FixedField>| place?.read(event.payload);
        let Some(number) = value(Some(shape.number)).and_then(|v| u32::try_from(v).ok()) else { return };
        let instance = value(shape.instance).and_then(|v| u16::try_from(v).ok()).unwrap_or_default();
        if let Some(mechanisms) = shape.mechanisms {
            let is_concurrent = value(Some(mechanisms)).is_none_or(|bits| bits & CONCURRENT != 0);
            let is_full = value(shape.generation).is_some_and(|generation| generation >= 2);
            if is_full && !is_concurrent && self.stopped.len() < MAX_MARKS {
                self.stopped.insert((process, instance, event.ticks));
            }
            return;
        }
        if self.marks.len() >= MAX_MARKS {
            self.unlisted += 1;
            return;
        }
        self.reasons = self.reasons.or(shape.reasons);
        let kind = value(shape.kind).and_then(|v| shape.kinds?.name(v)).and_then(CollectionKind::by_name);
        self.marks.push(Mark {
            process,
            ticks: event.ticks,
            number,
            reason: value(shape.reason).and_then(|v| u32::try_from(v).ok()),
            instance,
            generation: value(shape.generation).and_then(|v| u8::try_from(v).ok()),
            kind,
            is_end: shape.is_end,
            stands_in: shape.stands_in,
        });
    }

    /// Puts each start together with the end that follows it under the same number.
    pub fn into_list(mut self, clock: &Clock) -> GcList {
        // Where both recorded collections, these are the same ones.
        let known: HashSet<ProcessKey> = self.marks.iter().filter(|m| !m.stands_in).map(|m| m.process).collect();
        self.marks.retain(|mark| !mark.stands_in || !known.contains(&mark.process));
        let key = |mark: &Mark| (mark.process, mark.instance, mark.number);
        self.marks.sort_by_key(|mark| (key(mark), mark.ticks, mark.is_end));
        let is_full = |mark: &&Mark| !mark.is_end && mark.generation.is_some_and(|generation| generation >= 2);
        let full: BTreeSet<(ProcessKey, u16, i64)> =
            self.marks.iter().filter(is_full).map(|mark| (mark.process, mark.instance, mark.ticks)).collect();
        // Before the next collection of all generations one ended that had stopped all threads: it is this one.
        let has_stopped = |mark: &Mark| {
            let (process, instance) = (mark.process, mark.instance);
            let (after, last) = ((process, instance, mark.ticks.saturating_add(1)), (process, instance, i64::MAX));
            let until = full.range(after..=last).next().map_or(i64::MAX, |(_, _, ticks)| *ticks);
            self.stopped.range(after..=last).next().is_some_and(|(_, _, ticks)| *ticks <= until)
        };
        let mut list = Vec::new();
        let mut marks = self.marks.iter().peekable();
        while let Some(mark) = marks.next() {
            let start = (!mark.is_end).then_some(mark);
            // .NET Framework announces each start twice, the second time with more fields.
            let mut chosen = mark;
            while let Some(again) = marks.next_if(|next| !next.is_end && !mark.is_end && key(next) == key(mark)) {
                chosen = again;
            }
            let end = match start {
                Some(start) => marks.next_if(|next| next.is_end && key(next) == key(start)),
                None => Some(mark),
            };
            let start_ns = start.and_then(|s| clock.since_start(s.ticks));
            let end_ns = end.and_then(|e| clock.since_start(e.ticks));
            let reason = start.and_then(|s| s.reason).map(u64::from);
            let kind = match chosen.kind.or(mark.kind) {
                Some(CollectionKind::Background) if start.is_some() && has_stopped(chosen) => {
                    Some(CollectionKind::Blocking)
                }
                kind => kind,
            };
            let collection = Collection {
                process_id: mark.process.id,
                number: u64::from(mark.number),
                generation: chosen.generation.or(mark.generation).or(end.and_then(|e| e.generation)).map(u64::from),
                reason,
                reason_name: reason.and_then(|r| self.reasons?.name(r)),
                kind,
                start_ns,
                duration_ns: start_ns.zip(end_ns).and_then(|(start, end)| end.checked_sub(start)),
            };
            list.push((mark.ticks, collection));
        }
        list.sort_by_key(|(ticks, _)| *ticks);
        GcList { list: list.into_iter().map(|(_, c)| c).collect(), unlisted_marks: self.unlisted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(number: u32, ticks: i64, is_end: bool) -> Mark {
        Mark {
            process: ProcessKey { id: 1, incarnation: 0 },
            ticks,
            number,
            reason: (!is_end).then_some(1),
            instance: 0,
            generation: Some(2),
            kind: None,
            is_end,
            stands_in: false,
        }
    }

    #[test]
    fn starts_and_ends_meet_whatever_order_they_lie_in() {
        let marks = GcMarks {
            // 7 ends before the recording knows of its start, 9 is still under way, 8 runs inside 10.
            marks: vec![
                mark(8, 40, true),
                mark(10, 10, false),
                mark(7, 5, true),
                mark(9, 90, false),
                mark(10, 60, true),
                mark(8, 30, false),
            ],
            ..GcMarks::default()
        };
        let clock = Clock { sync_ticks: 0, sync_utc_ns: 0, frequency: 1_000_000_000 };
        let found: Vec<_> =
            marks.into_list(&clock).list.iter().map(|c| (c.number, c.start_ns, c.duration_ns)).collect();
        assert_eq!(found, [(7, None, None), (10, Some(10), Some(50)), (8, Some(30), Some(10)), (9, Some(90), None)]);
    }

    #[test]
    fn a_start_that_is_announced_twice_is_one_collection() {
        let more = Mark { kind: Some(CollectionKind::Background), ..mark(3, 12, false) };
        let marks = GcMarks {
            marks: vec![mark(3, 10, false), more, mark(3, 30, true), mark(4, 40, false), mark(4, 41, false)],
            ..GcMarks::default()
        };
        let clock = Clock { sync_ticks: 0, sync_utc_ns: 0, frequency: 1_000_000_000 };
        let found: Vec<_> =
            marks.into_list(&clock).list.iter().map(|c| (c.number, c.start_ns, c.duration_ns, c.kind)).collect();
        let expected = [(3, Some(10), Some(20), Some(CollectionKind::Background)), (4, Some(40), None, None)];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_profiler_counts_where_the_runtime_is_silent() {
        let mark = |process_id, number, stands_in, is_end| Mark {
            process: ProcessKey { id: process_id, incarnation: 0 },
            stands_in,
            ..mark(number, i64::from(number) + i64::from(is_end), is_end)
        };
        let marks = GcMarks {
            marks: vec![
                mark(1, 1, true, false),
                mark(1, 1, true, true),
                mark(2, 1, true, false),
                mark(2, 7, false, true),
            ],
            ..GcMarks::default()
        };
        let clock = Clock { sync_ticks: 0, sync_utc_ns: 0, frequency: 1_000_000_000 };
        let found: Vec<_> = marks.into_list(&clock).list.iter().map(|c| (c.process_id, c.number)).collect();
        assert_eq!(found, [(1, 1), (2, 7)]);
    }
}
