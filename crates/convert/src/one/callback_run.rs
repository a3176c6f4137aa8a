//! One recording of profiler callbacks on its way through the layers.

use tracequet_facts::callbacks::CallbackNormalizer;
use tracequet_facts::fact::{self, FactSink};
use tracequet_trace::reader::callback::format::{Header, kind_name};
use tracequet_trace::reader::callback::{PROVIDER, Record, Visitor};
use tracequet_trace::reader::{End, Thread, ThreadIndex, TraceInfo};
use tracequet_trace::source::FileIdentity;

use super::chosen::Chosen;
use super::conversion::Conversion;
use super::course::Course;
use super::output::TableOutput;
use super::process_filter::ProcessFilter;
use super::threads::ThreadCounts;
use crate::prelude::*;
use crate::summary::{InputSummary, TableSummary};

/// The receiver of the reader of callbacks.
pub struct CallbackRun<'r> {
    conversion: Conversion<'r>,
    state: Option<CallbackRunState>,
    threads: Vec<(Thread, ThreadCounts)>,
    /// Records and bytes of payload, by kind.
    kinds: [(u64, u64); 256],
    wanted: bool,
    chosen: Chosen,
    processes: ProcessFilter,
    course: Course,
}

struct CallbackRunState {
    info: TraceInfo,
    out: TableOutput,
    normalizer: CallbackNormalizer,
}

impl<'r> CallbackRun<'r> {
    /// For one input of a request.
    pub fn new(conversion: Conversion<'r>) -> CallbackRun<'r> {
        let mut chosen = Chosen::new(conversion.request, conversion.selection);
        chosen.event_type(PROVIDER, "");
        CallbackRun {
            wanted: chosen.wants_provider(PROVIDER),
            chosen,
            processes: ProcessFilter::new(&conversion.request.processes),
            conversion,
            state: None,
            threads: Vec::new(),
            kinds: [(0, 0); 256],
            course: Course::new(),
        }
    }

    /// The end of the recording: what was counted becomes rows, and the tables are closed.
    pub fn finish(
        mut self,
        path: &Path,
        end: &End,
        identity: &FileIdentity,
    ) -> Result<(InputSummary, Vec<TableSummary>)> {
        self.course.damage(path)?;
        let Some(CallbackRunState { info, mut out, mut normalizer }) = self.state.take() else {
            return Err(self.course.no_header());
        };
        self.processes.check(path)?;
        self.chosen.check(path)?.iter().for_each(|note| out.problem(note));
        let totals = normalizer.finish(end.bytes, &mut out);
        self.report_kinds(&mut out);
        for (thread, counts) in &mut self.threads {
            thread.name = normalizer.thread_name(thread.thread_id);
            out.add(&counts.row(thread, &info.clock));
        }
        let summary = InputSummary {
            event_types: self.kinds.iter().filter(|(records, _)| *records > 0).count() as u64,
            decoded_full: self.course.events,
            collections: totals.collections,
            frames: totals.frames,
            ..self.course.summary(path, end, identity, info)
        };
        out.close(summary, self.conversion.dataset, self.course.failure())
    }

    fn report_kinds(&self, out: &mut TableOutput) {
        for (kind, (records, payload_bytes)) in (0u8..=255).zip(self.kinds) {
            let (Some(name), true) = (kind_name(kind), records > 0) else { continue };
            out.add(&fact::EventType {
                provider_name: PROVIDER,
                event_id: u32::from(kind),
                event_version: 1,
                event_name: name,
                event_count: records,
                payload_bytes,
                decoded: "full",
                ..fact::EventType::default()
            });
        }
    }
}

impl Visitor for CallbackRun<'_> {
    fn trace(&mut self, header: &Header, info: &TraceInfo) {
        match self.conversion.output(info) {
            Ok(out) => {
                let normalizer = CallbackNormalizer::new(header, info.clock);
                self.state = Some(CallbackRunState { info: info.clone(), out, normalizer });
            }
            Err(e) => self.course.fail(e),
        }
    }

    fn thread(&mut self, _index: ThreadIndex, thread: &Thread) {
        self.processes.thread(thread);
        self.threads.push((thread.clone(), ThreadCounts::default()));
    }

    fn record(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        let (Some(state), ControlFlow::Continue(())) = (&mut self.state, self.course.flow()) else {
            return ControlFlow::Break(());
        };
        let ts_ns = state.normalizer.time(record);
        self.chosen.happened(ts_ns);
        if !self.wanted || !self.conversion.request.covers(ts_ns) || !self.processes.wants(record.thread) {
            return ControlFlow::Continue(());
        }
        self.course.event(ts_ns);
        let thread = usize::try_from(record.thread).ok().and_then(|index| self.threads.get_mut(index));
        if let Some((_, counts)) = thread {
            counts.event(ts_ns);
            counts.captured += 1;
        }
        if let Some(kind) = self.kinds.get_mut(usize::from(record.kind)) {
            kind.0 += 1;
            kind.1 += record.payload_bytes;
        }
        state.normalizer.record(record, &mut state.out);
        if state.out.tables.has_ready()
            && let Err(e) = state.out.write(self.conversion.dataset)
        {
            self.course.fail(e);
        }
        self.course.flow()
    }

    fn records_lost(&mut self) {
        if let Some(state) = &mut self.state {
            state.normalizer.records_lost();
        }
    }

    fn problem(&mut self, problem: Problem) {
        self.course.problem(&problem, &self.conversion);
        if let Some(state) = &mut self.state {
            state.out.problem(&problem);
        }
    }

    fn progress(&mut self, position: u64) {
        self.course.progress(position, &mut self.conversion);
    }
}
