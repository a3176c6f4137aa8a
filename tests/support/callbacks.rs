//! Recordings of callbacks, made and read by tests.

use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;

use tracequet::facts::callbacks::CallbackNormalizer;
use tracequet::facts::fact::*;
use tracequet::trace::error::{Error, Problem};
use tracequet::trace::reader::callback::encode::{self, BoundsSaid};
use tracequet::trace::reader::callback::format::{self, Header, kind};
use tracequet::trace::reader::callback::{Record, Visitor, Writer, read};
use tracequet::trace::reader::{End, TraceInfo};
use tracequet::trace::source::Input;

pub const MONITOR_GC: u32 = 0x80;
pub const MONITOR_SUSPENDS: u32 = 0x1_0000;

/// A header as the recorder writes it.
pub fn header() -> Header {
    Header {
        chunk_align: 8,
        pointer_size: 8,
        os: 1,
        arch: 2,
        process_id: 42,
        frequency: 1_000_000_000,
        start_ticks: 1_000,
        start_utc_ns: 1_700_000_000_000_000_000,
        granted: [MONITOR_GC | MONITOR_SUSPENDS, 0],
        policy: format::POLICY_V2 | format::POLICY_SUSPENDS,
        ..Header::default()
    }
}

fn said<'a>(rows: &'a [[u64; 4]], non_gc: &'a [[u64; 3]]) -> BoundsSaid<'a> {
    let non_gc_hresult = if non_gc.is_empty() { format::NOT_ASKED } else { 0 };
    BoundsSaid { rows, non_gc_hresult, non_gc, ..BoundsSaid::default() }
}

/// A recording in the making. Each record is a microsecond after the one before it.
pub struct Making {
    writer: Writer<Vec<u8>>,
    ticks: u64,
    /// What GetNonGCHeapBounds says from now on: (start, length, reserved).
    pub non_gc: Vec<[u64; 3]>,
}

impl Making {
    pub fn new() -> Making {
        Making::with(&header())
    }

    /// With two threads: 0 and 1, OS ids 100 and 101.
    pub fn with(header: &Header) -> Making {
        let mut writer = Writer::new(Vec::new(), header).unwrap().chunk_bytes(256);
        writer.thread(100);
        writer.thread(101);
        Making { writer, ticks: 1_000, non_gc: Vec::new() }
    }

    /// One more thread: 2, 3 and so on.
    pub fn thread(&mut self, os_id: u64) -> &mut Making {
        self.writer.thread(os_id);
        self
    }

    pub fn record(&mut self, thread: u32, kind: u8, flags: u8, fill: impl FnOnce(&mut Vec<u8>)) -> &mut Making {
        self.ticks += 1_000;
        let mut payload = Vec::new();
        fill(&mut payload);
        self.writer.record(thread, kind, flags, self.ticks, &payload).unwrap();
        self
    }

    /// A collection of generations 0 to `generation` starts. Bounds are (generation, start, length).
    pub fn started(&mut self, generation: u32, bounds: &[[u64; 3]]) -> &mut Making {
        let rows: Vec<_> = bounds.iter().map(|[g, s, l]| [*g, *s, *l, *l]).collect();
        let bits = if generation == 2 { 0b11111 } else { (2 << generation) - 1 };
        let non_gc = self.non_gc.clone();
        self.record(0, kind::GC_STARTED, 0, |out| encode::gc_started(out, 5, bits, 0, &said(&rows, &non_gc)))
    }

    pub fn finished(&mut self, bounds: &[[u64; 3]]) -> &mut Making {
        let rows: Vec<_> = bounds.iter().map(|[g, s, l]| [*g, *s, *l, *l]).collect();
        let non_gc = self.non_gc.clone();
        self.record(0, kind::GC_FINISHED, 0, |out| encode::gc_finished(out, &said(&rows, &non_gc)))
    }

    pub fn surviving(&mut self, thread: u32, version: u8, rows: &[[u64; 2]]) -> &mut Making {
        let kind = if version == 2 { kind::SURVIVING2 } else { kind::SURVIVING };
        self.record(thread, kind, 0, |out| encode::surviving(out, rows.iter().copied()))
    }

    pub fn moved(&mut self, thread: u32, version: u8, rows: &[[u64; 3]]) -> &mut Making {
        let kind = if version == 2 { kind::MOVED2 } else { kind::MOVED };
        self.record(thread, kind, 0, |out| encode::moved(out, rows.iter().copied()))
    }

    pub fn roots2(&mut self, rows: &[[u64; 4]]) -> &mut Making {
        self.record(0, kind::ROOTS2, 0, |out| encode::columns(out, rows.iter().copied()))
    }

    pub fn numbers(&mut self, kind: u8, numbers: &[u64]) -> &mut Making {
        self.record(0, kind, 0, |out| encode::numbers(out, numbers))
    }

    pub fn suspend(&mut self, reason: u64) -> &mut Making {
        self.numbers(kind::SUSPEND_STARTED, &[reason]).numbers(kind::SUSPEND_FINISHED, &[])
    }

    pub fn resume(&mut self) -> &mut Making {
        self.numbers(kind::RESUME_STARTED, &[]).numbers(kind::RESUME_FINISHED, &[])
    }

    /// The recording, with its end mark.
    pub fn bytes(&mut self) -> Vec<u8> {
        let ticks = self.ticks + 1_000;
        std::mem::replace(self, Making::new()).writer.finish(ticks).unwrap()
    }

    /// The recording without an end mark.
    pub fn cut(&mut self) -> Vec<u8> {
        std::mem::replace(self, Making::new()).writer.abandon().unwrap()
    }

    pub fn facts(&mut self) -> Facts {
        facts(&self.bytes()).expect("a readable recording")
    }
}

/// All facts of a recording.
#[derive(Default)]
pub struct Facts {
    pub collections: Vec<Gc>,
    pub pauses: Vec<GcPause>,
    pub bounds: Vec<GcGenerationRange>,
    pub surviving: Vec<GcSurvivingRange>,
    pub moved: Vec<GcMovedRange>,
    pub roots: Vec<(GcId, u64, &'static str, u32, u64)>,
    pub weak: Vec<(GcId, u64, u64, u64)>,
    pub handles: Vec<(&'static str, u64, u64, u64)>,
    pub finalizable: Vec<(GcId, &'static str, u64)>,
    pub finalizer_flags: Vec<u32>,
    pub types: Vec<(u64, String)>,
    /// Id, namespace, name.
    pub methods: Vec<(u64, String, String)>,
    pub objects: Vec<(u64, u64, u64)>,
    /// The collection of each.
    pub walks: Vec<GcId>,
    pub references: Vec<(u64, u64)>,
    pub allocations: Vec<(&'static str, u64, Option<f64>)>,
    pub problems: Vec<Problem>,
    /// (OS thread id, name), sorted.
    pub thread_names: Vec<(u64, String)>,
    pub records: u64,
    pub end: End,
}

impl FactSink for Facts {
    fn fact(&mut self, fact: Fact<'_>) {
        match fact {
            Fact::Gc(rows) => self.collections.extend(rows),
            Fact::GcPause(rows) => self.pauses.extend(rows),
            Fact::GcGenerationRange(rows) => self.bounds.extend(rows),
            Fact::GcSurvivingRange(rows) => self.surviving.extend(rows),
            Fact::GcMovedRange(rows) => self.moved.extend(rows),
            Fact::GcRoot(rows) => {
                self.roots.extend(rows.iter().map(|r| (r.gc_id, r.object_id, r.root_kind, r.root_flags, r.root_id)));
            }
            Fact::GcWeakElement(rows) => {
                self.weak.extend(rows.iter().map(|e| (e.gc_id, e.key_object_id, e.value_object_id, e.root_id)));
            }
            Fact::GcHandle(rows) => {
                self.handles.extend(rows.iter().map(|h| (h.action, h.handle_id, h.object_id, h.thread_id)));
            }
            Fact::GcFinalizable(rows) => {
                self.finalizable.extend(rows.iter().map(|f| (f.gc_id, f.action, f.object_id)));
                self.finalizer_flags.extend(rows.iter().map(|f| f.finalizer_flags));
            }
            Fact::Type(rows) => self.types.extend(rows.iter().map(|t| (t.type_id, t.name.to_owned()))),
            Fact::Method(rows) => {
                self.methods.extend(rows.iter().map(|m| (m.method_id, m.namespace.to_owned(), m.name.to_owned())));
            }
            Fact::HeapObject(rows) => {
                self.objects.extend(rows.iter().map(|o| (o.object_id, o.type_id, o.reference_count)));
                self.walks.extend(rows.iter().map(|o| o.gc_id));
            }
            Fact::HeapReference(rows) => {
                self.references.extend(rows.iter().map(|r| (r.object_id, r.target_object_id)));
            }
            Fact::Allocation(rows) => {
                self.allocations.extend(rows.iter().map(|a| (a.source, a.type_id, a.object_count)));
            }
            Fact::Diagnostic(rows) => self.problems.extend(rows.iter().map(|row| {
                Problem::new(row.level(), row.code, row.byte_offset, row.message).count(row.count).thread(row.thread_id)
            })),
            _ => {}
        }
    }
}

impl Facts {
    pub fn codes(&self) -> Vec<&'static str> {
        let mut codes: Vec<_> = self.problems.iter().map(|p| p.code).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    /// (start, length, kind of length) of all surviving ranges.
    pub fn survived(&self) -> Vec<(u64, u64, &'static str)> {
        self.surviving.iter().map(|r| (r.range_start, r.range_length, r.length_kind)).collect()
    }
}

#[derive(Default)]
struct Reading {
    facts: Facts,
    normalizer: Option<CallbackNormalizer>,
}

impl Visitor for Reading {
    fn trace(&mut self, header: &Header, info: &TraceInfo) {
        self.normalizer = Some(CallbackNormalizer::new(header, info.clock));
    }

    fn record(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        self.facts.records += 1;
        self.normalizer.as_mut().expect("a header").record(record, &mut self.facts);
        ControlFlow::Continue(())
    }

    fn records_lost(&mut self) {
        self.normalizer.as_mut().expect("a header").records_lost();
    }

    fn problem(&mut self, problem: Problem) {
        self.facts.problems.push(problem);
    }
}

/// Reads a recording.
pub fn facts(bytes: &[u8]) -> Result<Facts, Error> {
    facts_of(Input::from_reader(Path::new("test.corprof"), Box::new(Cursor::new(bytes.to_vec())), None)?)
}

/// Reads a recording from an input that was opened.
pub fn facts_of(input: Input) -> Result<Facts, Error> {
    let mut reading = Reading::default();
    let end = read(input, &mut reading)?;
    let Reading { mut facts, normalizer } = reading;
    facts.end = end;
    let mut normalizer = normalizer.expect("a header");
    normalizer.finish(end.bytes, &mut facts);
    facts.thread_names = normalizer.thread_names.into_iter().collect();
    facts.thread_names.sort_unstable();
    Ok(facts)
}
