//! The contents of a recording of profiler callbacks.

use crate::prelude::*;

use tracequet_facts::ProblemSummary;
use tracequet_facts::callbacks::CallbackNormalizer;
use tracequet_facts::fact::{Fact, FactSink, Gc};
use tracequet_trace::reader::callback::format::{Header, kind_name};
use tracequet_trace::reader::callback::{self, PROVIDER, Record, Visitor};
use tracequet_trace::reader::{Thread, ThreadIndex, TraceInfo};
use tracequet_trace::source::Input;

use super::gc_list::{Collection, CollectionKind, GcList};
use super::process::ProcessInfo;
use super::report::{DecodedBy, EventTypeCount, Inspection, ProviderCount, ThreadCount, processes};

/// More collections than this are counted but not listed.
const MAX_LISTED: usize = 1 << 18;

#[derive(Default)]
struct Found {
    collections: GcList,
    problems: Vec<ProblemSummary>,
}

impl Found {
    fn collection(&mut self, row: &Gc) {
        if self.collections.list.len() >= MAX_LISTED {
            self.collections.unlisted_marks += 2;
            return;
        }
        self.collections.list.push(Collection {
            process_id: row.process_id,
            number: u64::from(row.gc_id),
            generation: row.generation.map(u64::from),
            reason: row.reason.map(|_| 1),
            reason_name: row.reason,
            kind: CollectionKind::ALL.into_iter().find(|kind| Some(kind.as_str()) == row.kind),
            start_ns: Some(row.start_ts_ns),
            duration_ns: row.end_ts_ns.map(|end| end.saturating_sub(row.start_ts_ns)),
        });
    }
}

impl FactSink for Found {
    fn fact(&mut self, fact: Fact<'_>) {
        match fact {
            Fact::Gc(rows) => rows.iter().for_each(|row| self.collection(row)),
            Fact::Diagnostic(rows) => rows.iter().for_each(|row| ProblemSummary::note(&mut self.problems, row)),
            _ => {}
        }
    }
}

struct Counter<'p> {
    state: Option<(TraceInfo, ProcessInfo, CallbackNormalizer)>,
    found: Found,
    kinds: [(u64, u64); 256],
    threads: Vec<ThreadCount>,
    first: Option<i64>,
    last: Option<i64>,
    progress: &'p mut dyn FnMut(u64, Option<u64>),
    total: Option<u64>,
}

impl Visitor for Counter<'_> {
    fn trace(&mut self, header: &Header, info: &TraceInfo) {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let process = ProcessInfo {
            command_line: text(&header.command_line),
            os: text(header.os_name()),
            arch: text(header.arch_name()),
            runtime_version: text(&header.runtime_version),
        };
        let mut info = info.clone();
        // Values with a line of their own are not said twice.
        info.key_values.retain(|(key, _)| key != "command_line" && key != "runtime_version");
        let normalizer = CallbackNormalizer::new(header, info.clock);
        self.state = Some((info, process, normalizer));
    }

    fn thread(&mut self, _: ThreadIndex, thread: &Thread) {
        self.threads.push(ThreadCount { thread: thread.clone(), events: 0 });
    }

    fn record(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        let Some((_, _, normalizer)) = &mut self.state else { return ControlFlow::Break(()) };
        let ts_ns = normalizer.time(record);
        self.first = Some(self.first.map_or(ts_ns, |first| first.min(ts_ns)));
        self.last = Some(self.last.map_or(ts_ns, |last| last.max(ts_ns)));
        if let Some(kind) = self.kinds.get_mut(usize::from(record.kind)) {
            kind.0 += 1;
            kind.1 += record.payload_bytes;
        }
        if let Some(thread) = usize::try_from(record.thread).ok().and_then(|index| self.threads.get_mut(index)) {
            thread.events += 1;
        }
        normalizer.record(record, &mut self.found);
        ControlFlow::Continue(())
    }

    fn records_lost(&mut self) {
        if let Some((_, _, normalizer)) = &mut self.state {
            normalizer.records_lost();
        }
    }

    fn problem(&mut self, problem: Problem) {
        ProblemSummary::note(&mut self.found.problems, &(&problem).into());
    }

    fn progress(&mut self, position: u64) {
        (self.progress)(position, self.total);
    }
}

/// Reads a recording of callbacks and counts what is in it.
pub(super) fn inspect(path: &Path, input: Input, progress: &mut dyn FnMut(u64, Option<u64>)) -> Result<Inspection> {
    let (found, threads, total) = (Found::default(), Vec::new(), input.size());
    let mut counter =
        Counter { state: None, found, kinds: [(0, 0); 256], threads, first: None, last: None, progress, total };
    let end = callback::read(input, &mut counter)?;
    let Counter { state, mut found, kinds, mut threads, first, last, .. } = counter;
    let Some((info, process, mut normalizer)) = state else {
        return Err(Error::Internal("a recording was read without its header".into()));
    };
    normalizer.finish(end.bytes, &mut found);
    // Problems of pairing are of use in the tables only.
    found.problems.retain(|p| p.severity > Severity::Info || p.code != "paired_callbacks");
    found.problems.sort_by_key(|p| p.code);
    for thread in &mut threads {
        thread.thread.name = normalizer.thread_name(thread.thread.thread_id);
    }
    threads.sort_by_key(|t| std::cmp::Reverse(t.events));
    let counted = (0u8..=255).zip(kinds).filter(|(_, (records, _))| *records > 0);
    let event_types = counted.map(|(kind, (events, payload_bytes))| EventTypeCount {
        provider: PROVIDER.to_owned(),
        event_id: u32::from(kind),
        version: 1,
        name: kind_name(kind).unwrap_or_default().to_owned(),
        opcode: None,
        level: 0,
        keywords: 0,
        events,
        payload_bytes,
        decoded_by: DecodedBy::Catalogue(1),
    });
    let mut event_types: Vec<_> = event_types.collect();
    event_types.sort_by_key(|e| std::cmp::Reverse(e.events));
    let events = event_types.iter().map(|e| e.events).sum();
    let payload_bytes = event_types.iter().map(|e| e.payload_bytes).sum();
    let name = PROVIDER.to_owned();
    let provider = ProviderCount { name, event_types: event_types.len() as u64, events, payload_bytes };
    Ok(Inspection {
        path: path.to_owned(),
        info,
        end,
        process,
        processes: processes(&threads, &[]),
        events,
        payload_bytes,
        first_ns: first,
        last_ns: last,
        providers: vec![provider],
        event_types,
        threads,
        collections: found.collections,
        heap: None,
        problems: found.problems,
    })
}
