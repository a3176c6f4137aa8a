//! One recording on its way through the layers.

use tracequet_dataset::table::{EventRoute, MAX_SHORT, NotExact, ShortPayload};
use tracequet_facts::fact::{self, FactSink};
use tracequet_facts::{Normalizer, Totals};
use tracequet_trace::event::{Decoding, Event, EventInfo, EventVisitor, Resolved};
use tracequet_trace::reader::symbols::Symbols;
use tracequet_trace::reader::{End, NO_SUBJECT, Process, RawEvent, Thread, ThreadIndex, TraceInfo, TypeId};
use tracequet_trace::source::FileIdentity;

use super::chosen::Chosen;
use super::conversion::Conversion;
use super::course::Course;
use super::output::TableOutput;
use super::process_filter::ProcessFilter;
use super::threads::ThreadCounts;
use crate::prelude::*;
use crate::summary::{InputSummary, TableSummary};

/// Counts of one kind of event.
#[derive(Default)]
struct Counts {
    events: u64,
    payload_bytes: u64,
    longer: u64,
    shorter: u64,
    replaced: u64,
    raw: u64,
    last_offset: u64,
}

impl Counts {
    fn add(&mut self, raw: &RawEvent<'_>) {
        self.events += 1;
        self.payload_bytes += raw.payload.len() as u64;
        self.last_offset = raw.offset;
    }
}

struct Kind {
    route: Option<EventRoute>,
    has_facts: bool,
    /// Modules, methods or types, which are taken from the whole recording.
    is_reference: bool,
    /// Whether facts about one process follow from events of others.
    needs_others: bool,
    counts: Counts,
}

/// Receives the events of one recording.
pub struct EventRun<'r> {
    conversion: Conversion<'r>,
    state: Option<EventRunState>,
    kinds: Vec<Kind>,
    threads: Vec<ThreadCounts>,
    wanted: ProcessFilter,
    chosen: Chosen,
    normalizer: Normalizer,
    course: Course,
    /// The newest event when rows were published last.
    published_ns: i64,
}

/// State that exists once the header is read.
struct EventRunState {
    info: TraceInfo,
    out: TableOutput,
}

impl<'r> EventRun<'r> {
    /// The tables, once the header is read.
    #[cfg(feature = "live")]
    pub(crate) fn output(&mut self) -> Option<&mut TableOutput> {
        self.state.as_mut().map(|state| &mut state.out)
    }

    /// For one input of a request.
    pub fn new(conversion: Conversion<'r>) -> EventRun<'r> {
        EventRun {
            state: None,
            kinds: Vec::new(),
            threads: Vec::new(),
            wanted: ProcessFilter::new(&conversion.request.processes),
            chosen: Chosen::new(conversion.request, conversion.selection),
            conversion,
            normalizer: Normalizer::default(),
            course: Course::new(),
            published_ns: i64::MIN,
        }
    }

    /// Hands what is ready to the sink.
    fn write_ready(&mut self) {
        let Some(state) = &mut self.state else { return };
        count_not_exact(&mut self.kinds, &mut state.out);
        if let Err(e) = state.out.write(self.conversion.dataset) {
            self.course.fail(e);
        }
    }

    /// Hands over all rows that there are, where the sink is to publish them.
    fn publish_if_due(&mut self) -> Result<()> {
        let Some(state) = self.state.as_mut().filter(|_| self.conversion.dataset.is_due()) else { return Ok(()) };
        self.normalizer.settle(self.published_ns, &mut state.out);
        self.published_ns = self.course.span().1;
        finish_events(&mut self.kinds, &mut state.out);
        state.out.tables.finish();
        state.out.write(self.conversion.dataset)?;
        self.conversion.dataset.publish()
    }

    /// Whether nothing more can be written.
    pub(crate) fn has_failed(&self) -> bool {
        self.course.flow().is_break()
    }

    /// Adds an event; one that is only the stack of another is counted and nothing else.
    fn add_event(&mut self, event: &Event<'_>, is_stack: bool) {
        let Some(EventRunState { out, .. }) = &mut self.state else { return };
        let Event { raw, thread, ts_ns, .. } = *event;
        let Some(kind) = self.kinds.get_mut(raw.event_type.0 as usize) else { return };
        let is_wanted = self.wanted.wants(raw.thread);
        if is_wanted {
            self.chosen.happened(ts_ns);
        }
        if !self.conversion.request.covers(ts_ns) {
            // The meaning of addresses and ids in the window is often said outside of it.
            if kind.is_reference && (is_wanted || kind.needs_others) {
                self.normalizer.event(event, 0, out);
            }
            return;
        }
        self.normalizer.passes(ts_ns);
        if !is_wanted {
            if kind.needs_others {
                self.normalizer.event(event, 0, out);
            }
            return;
        }
        self.course.event(ts_ns);
        if let Some(captor) = self.threads.get_mut(raw.capture_thread as usize) {
            captor.captured += 1;
        }
        let Some(counts) = self.threads.get_mut(raw.thread as usize) else { return };
        counts.event(ts_ns);

        if is_stack {
            kind.counts.add(raw);
            return;
        }
        self.normalizer.written(event, out);
        let callsite = self.normalizer.callsite(&raw.stack, thread.process(), ts_ns);
        if kind.has_facts {
            self.normalizer.event(event, callsite, out);
        }
        kind.counts.add(raw);
        if let Some(route) = &kind.route {
            out.tables.event(route, event, callsite);
        }
        if out.tables.has_ready() {
            self.write_ready();
        }
    }

    /// The end of the recording: what was counted of the `resolved` kinds and threads becomes rows, and the tables are
    /// closed.
    pub fn finish(
        mut self,
        path: &Path,
        end: &End,
        identity: &FileIdentity,
        resolved: &Resolved,
    ) -> Result<(InputSummary, Vec<TableSummary>)> {
        self.course.damage(path)?;
        let Some(EventRunState { info, mut out }) = self.state.take() else { return Err(self.course.no_header()) };
        self.wanted.check(path)?;
        self.chosen.check(path)?.iter().for_each(|note| out.problem(note));
        let threads = || resolved.threads.iter().zip(&self.threads);
        for (thread, counts) in threads().filter(|(_, counts)| counts.events > 0) {
            self.normalizer.counted(thread.process(), counts.events, counts.first_ns, counts.last_ns);
        }
        let totals = self.normalizer.finish(end.bytes, &mut out);
        finish_events(&mut self.kinds, &mut out);
        for (info, kind) in resolved.kinds.iter().zip(&self.kinds) {
            report_kind(info, kind, &mut out);
        }
        let behind = Problem::info("trailing_bytes", end.bytes, "bytes behind the end mark were not read");
        out.problems(behind, end.trailing_bytes);
        let threads = resolved.threads.iter().zip(&self.threads).enumerate();
        for (index, (thread, counts)) in threads {
            let is_thread = thread.thread_id != NO_SUBJECT && !(thread.is_attached && counts.events == 0);
            if is_thread && self.wanted.wants(index as ThreadIndex) {
                out.add(&counts.row(thread, &info.clock));
            }
        }
        let summary = self.summary(path, end, identity, info, totals);
        out.close(summary, self.conversion.dataset, self.course.failure())
    }

    fn summary(
        &self,
        path: &Path,
        end: &End,
        identity: &FileIdentity,
        info: TraceInfo,
        totals: Totals,
    ) -> InputSummary {
        let seen = || self.kinds.iter().filter(|k| k.counts.events > 0);
        let sum = |of: fn(&Counts) -> u64| seen().map(|k| of(&k.counts)).sum::<u64>();
        let raw = sum(|c| c.raw);
        let partial = sum(|c| c.longer + c.shorter);
        InputSummary {
            event_types: seen().count() as u64,
            decoded_full: self.course.events.saturating_sub(raw).saturating_sub(partial),
            decoded_partial: partial,
            raw,
            collections: totals.collections,
            frames: totals.frames,
            ..self.course.summary(path, end, identity, info)
        }
    }
}

/// Decodes all events that wait, and counts those that do not fit.
fn finish_events(kinds: &mut [Kind], out: &mut TableOutput) {
    out.tables.finish_events();
    count_not_exact(kinds, out);
}

/// Counts the events that do not fit their columns, and reports the first of each kind that end too early.
fn count_not_exact(kinds: &mut [Kind], out: &mut TableOutput) {
    for found in out.tables.take_not_exact() {
        let Some(kind) = kinds.get_mut(found.event_type.0 as usize) else { continue };
        let counts = &mut kind.counts;
        let room = (MAX_SHORT as u64).saturating_sub(counts.shorter);
        for short in found.first_shorter.iter().take(room as usize) {
            out.problem(&short_payload(&found, short));
        }
        counts.raw += found.raw;
        counts.longer += found.longer;
        counts.replaced += found.replaced;
        counts.shorter += found.shorter;
    }
}

fn short_payload(found: &NotExact, short: &ShortPayload) -> Problem {
    let (info, ShortPayload { offset, bytes, field }) = (&found.info, short);
    let message = format!(
        "{}/{} version {}: the payload of {bytes} bytes ends before the end of {field}; it is kept raw beside the \
        fields before",
        info.provider, info.name, info.event_type.version,
    );
    Problem::loss("short_payload", *offset, message)
}

/// The row of a kind of event, and what there is to say of its decoding.
fn report_kind(info: &EventInfo, kind: &Kind, out: &mut TableOutput) {
    let counts = &kind.counts;
    if counts.events == 0 {
        return;
    }
    let without_table = if kind.route.is_none() && out.tables.wants_event(info) { counts.events } else { 0 };
    let lacks_columns = kind.route.as_ref().is_some_and(|route| out.tables.lacks_columns(route));
    let mut say = |severity, code, count, message: String| {
        out.problems(Problem::new(severity, code, counts.last_offset, message), count);
    };
    let what = format!("{}/{} version {}", info.provider, info.name, info.event_type.version);
    say(
        Severity::Info,
        "longer_payload",
        if lacks_columns { 0 } else { counts.longer },
        format!("{what}: payloads have bytes behind the last known field"),
    );
    say(
        Severity::Info,
        "replaced_text",
        counts.replaced,
        format!("{what}: text that is not valid Unicode was replaced; see raw_payload"),
    );
    let folded = counts.shorter.saturating_sub(MAX_SHORT as u64);
    let message = format!("{what}: too many kinds of events for tables; its payloads are left out");
    say(Severity::DataLoss, "too_many_event_tables", without_table, message);
    let message = format!("{what}: too many fields for columns; the last ones are only in raw_payload");
    say(Severity::DataLoss, "too_many_fields", if lacks_columns { counts.events } else { 0 }, message);
    say(Severity::DataLoss, "short_payload", folded, format!("{what}: more payloads that end too early"));
    let mut reason = match &info.decoding {
        Decoding::Raw(why) => Some((*why).to_owned()),
        Decoding::Catalogue { version, .. } if *version != info.event_type.version => Some(format!(
            "version {} is not in the catalogue; the layout of version {version} was used",
            info.event_type.version
        )),
        _ => None,
    };
    if counts.raw > 0 && reason.is_none() {
        reason = Some("the recording does not describe the fields of this event".into());
    }
    if let Some(reason) = &reason
        && counts.raw > 0
    {
        say(Severity::Info, "raw_payload", counts.raw, format!("{what}: kept raw, {reason}"));
    }
    let decoded = match (&info.decoding, counts.raw, counts.longer + counts.shorter + counts.replaced) {
        (Decoding::Raw(_), ..) => "raw",
        (_, raw, _) if raw > 0 && raw == counts.events => "raw",
        (_, 0, 0) => "full",
        _ => "partial",
    };
    let table_name = kind.route.as_ref().and_then(|r| out.tables.route_name(r)).map(str::to_owned);
    out.add(&fact::EventType {
        provider_name: &info.provider,
        event_id: info.event_type.event_id,
        event_version: info.event_type.version,
        event_name: &info.name,
        opcode: info.opcode,
        level: info.event_type.level,
        keywords: info.event_type.keywords,
        event_count: counts.events,
        payload_bytes: counts.payload_bytes,
        decoded,
        longer_count: counts.longer,
        shorter_count: counts.shorter,
        reason: reason.as_deref(),
        table_name: table_name.as_deref(),
        message_template: info.event_type.message.as_deref(),
    });
}

impl EventVisitor for EventRun<'_> {
    fn trace(&mut self, info: &TraceInfo) {
        self.normalizer = Normalizer::new(info.stack_width());
        self.normalizer.clock(&info.clock);
        if info.finds_gaps_late() {
            self.normalizer.gaps_are_late();
        }
        let own = self.conversion.request.own.clone();
        self.normalizer.own_code(own);
        let folders = &self.conversion.request.symbols;
        if !folders.is_empty() {
            match Symbols::open(folders) {
                Ok(symbols) => self.normalizer.find_lines(symbols),
                Err(e) => self.course.fail(e.into()),
            }
        }
        match self.conversion.output(info) {
            Ok(out) => self.state = Some(EventRunState { info: info.clone(), out }),
            Err(e) => self.course.fail(e),
        }
    }

    fn event_type(&mut self, id: TypeId, info: &EventInfo) -> bool {
        let Some(state) = &mut self.state else { return false };
        self.chosen.event_type(&info.provider, &info.name);
        let wanted = self.chosen.wants_provider(&info.provider);
        let route = match wanted.then(|| state.out.tables.route(info)) {
            Some(Ok(route)) => route,
            Some(Err(e)) => {
                self.course.fail(e);
                None
            }
            None => None,
        };
        let has_facts = wanted && self.normalizer.event_type(id, info);
        debug_assert_eq!(self.kinds.len(), id.0 as usize);
        let is_reference = has_facts && self.normalizer.is_reference(id);
        let needs_others = has_facts && self.wanted.is_active() && self.normalizer.needs_others(id);
        self.kinds.push(Kind { route, has_facts, is_reference, needs_others, counts: Counts::default() });
        wanted
    }

    fn process(&mut self, process: &Process) {
        self.wanted.process(process);
        if let Some(state) = &self.state {
            self.normalizer.process(process, &state.info.clock);
        }
    }

    fn thread(&mut self, _index: ThreadIndex, thread: &Thread) {
        if self.wanted.thread(thread)
            && let Some(state) = &mut self.state
        {
            state.out.only(thread.process_id);
        }
        self.threads.push(ThreadCounts::default());
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.add_event(event, false);
        self.course.flow()
    }

    fn stack_event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.add_event(event, true);
        ControlFlow::Continue(())
    }

    fn events_lost(&mut self, thread: Option<(ThreadIndex, &Thread)>, since_ns: i64) {
        if let Some(state) = &mut self.state {
            self.normalizer.events_lost(thread, since_ns, &mut state.out);
        }
    }

    fn gap(&mut self, thread: Option<(ThreadIndex, &Thread)>, since_ns: i64, until_ns: i64) {
        self.normalizer.gap(thread.map(|(_, thread)| thread.process()), since_ns, until_ns);
    }

    fn losses_known(&mut self) {
        if let Some(state) = &mut self.state {
            self.normalizer.losses_known(&mut state.out);
        }
    }

    fn stacks_forgotten(&mut self) {
        self.normalizer.stacks_forgotten();
    }

    fn problem(&mut self, problem: Problem) {
        self.course.problem(&problem, &self.conversion);
        if let Some(state) = &mut self.state {
            state.out.problem(&problem);
        }
    }

    fn progress(&mut self, position: u64) {
        self.course.progress(position, &mut self.conversion);
        if let Err(e) = self.publish_if_due() {
            self.course.fail(e);
        }
    }
}
