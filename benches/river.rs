//! What each room costs, on the samples: walking headers, decoding payloads, finding facts, writing tables.
//!
//! `cargo bench`; compare before and after with `--save-baseline` and `--baseline`.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tracequet::error::Problem;
use tracequet::event::value::ValueColumn;
use tracequet::event::{Event, EventInfo};
use tracequet::normalize::Normalizer;
use tracequet::normalize::fact::{Fact, FactSink};
use tracequet::pipeline::{Convert, convert};
use tracequet::reader::{EventType, Order, RawEvent, Thread, TraceInfo, TypeId, Visitor, nettrace};
use tracequet::source::Input;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(name)
}

/// Looks at nothing.
struct Headers;

impl Visitor for Headers {
    fn event(&mut self, event: &RawEvent<'_>) -> ControlFlow<()> {
        black_box(event.ticks);
        ControlFlow::Continue(())
    }

    fn problem(&mut self, _: Problem) {}
}

/// Decodes every payload, and finds facts when asked to.
#[derive(Default)]
struct Meaning {
    pointer_size: u8,
    kinds: Vec<(EventInfo, Vec<ValueColumn>)>,
    threads: Vec<Thread>,
    normalizer: Option<Normalizer>,
    facts: Count,
}

#[derive(Default)]
struct Count(u64);

impl FactSink for Count {
    fn fact(&mut self, fact: Fact<'_>) {
        black_box(fact);
        self.0 += 1;
    }
}

impl Visitor for Meaning {
    fn trace(&mut self, info: &TraceInfo) {
        self.pointer_size = info.pointer_size;
    }

    fn event_type(&mut self, id: TypeId, event_type: &EventType) -> bool {
        let info = EventInfo::resolve(event_type, self.pointer_size);
        if let Some(normalizer) = &mut self.normalizer {
            normalizer.event_type(id, &info);
        }
        let columns = info.plan(&[]).map(|plan| ValueColumn::for_fields(&plan.fields)).unwrap_or_default();
        self.kinds.push((info, columns));
        true
    }

    fn thread(&mut self, _: u32, thread: &Thread) {
        self.threads.push(thread.clone());
    }

    fn event(&mut self, raw: &RawEvent<'_>) -> ControlFlow<()> {
        let (info, columns) = &mut self.kinds[raw.event_type.0 as usize];
        let event = Event { raw, info, thread: &self.threads[raw.thread as usize], ts_ns: raw.ticks };
        match &mut self.normalizer {
            Some(normalizer) => normalizer.event(&event, 0, &mut self.facts),
            None => drop(black_box(event.decode(columns))),
        }
        ControlFlow::Continue(())
    }

    fn problem(&mut self, _: Problem) {}
}

fn read(path: &Path, order: Order, visitor: &mut impl Visitor) {
    nettrace::read(Input::open(path).expect("a sample"), order, visitor).expect("a readable sample");
}

fn rooms(criterion: &mut Criterion) {
    for name in ["gc-churn.nettrace", "stacks.nettrace", "events.nettrace"] {
        let path = sample(name);
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(std::fs::metadata(&path).expect("a sample").len()));
        group.bench_function("headers in the order of the file", |b| b.iter(|| read(&path, Order::File, &mut Headers)));
        group.bench_function("headers in the order of time", |b| b.iter(|| read(&path, Order::Time, &mut Headers)));
        group.bench_function("decode", |b| b.iter(|| read(&path, Order::Time, &mut Meaning::default())));
        group.bench_function("normalize", |b| {
            b.iter(|| {
                let mut meaning = Meaning { normalizer: Some(Normalizer::new()), ..Meaning::default() };
                read(&path, Order::Time, &mut meaning);
                meaning.facts.0
            });
        });
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("out");
        let request = Convert { inputs: vec![path.clone()], output, overwrite: true, ..Convert::default() };
        group.bench_function("convert", |b| b.iter(|| convert(&request, &mut |_| {}).expect("a conversion")));
        group.finish();
    }
}

criterion_group!(benches, rooms);
criterion_main!(benches);
