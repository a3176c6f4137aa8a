//! What each layer costs on the samples: `cargo bench`. For whole programs on large recordings: `benches/compare.sh`.

#![allow(clippy::expect_used, reason = "a benchmark may stop where it stands")]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tracequet::error::Problem;
use tracequet::event::value::ValueColumn;
use tracequet::event::{Decoding, Event, EventInfo};
use tracequet::normalize::Normalizer;
use tracequet::normalize::fact::{Fact, FactSink};
use tracequet::reader::{EventType, Order, RawEvent, Thread, TraceInfo, TypeId, Visitor, nettrace};
use tracequet::source::Input;

/// How far each event is taken.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Headers,
    Decode,
    Normalize,
}

#[derive(Default)]
struct Facts(u64);

impl FactSink for Facts {
    fn fact(&mut self, fact: Fact<'_>) {
        self.0 += fact.rows() as u64;
    }
}

struct Bench {
    stage: Stage,
    info: Option<TraceInfo>,
    kinds: Vec<(EventInfo, Vec<ValueColumn>)>,
    threads: Vec<Thread>,
    normalizer: Normalizer,
    facts: Facts,
    events: u64,
}

impl Visitor for Bench {
    fn trace(&mut self, info: &TraceInfo) {
        self.info = Some(info.clone());
    }

    fn event_type(&mut self, id: TypeId, event_type: &EventType) -> bool {
        let info = EventInfo::resolve(event_type, self.info.as_ref().map_or(8, |info| info.pointer_size));
        let columns = match &info.decoding {
            Decoding::Described(plan) => ValueColumn::for_fields(&plan.fields),
            _ => Vec::new(),
        };
        self.normalizer.event_type(id, &info);
        self.kinds.push((info, columns));
        true
    }

    fn thread(&mut self, _index: u32, thread: &Thread) {
        self.threads.push(thread.clone());
    }

    fn event(&mut self, raw: &RawEvent<'_>) -> ControlFlow<()> {
        self.events += 1;
        if self.stage == Stage::Headers {
            black_box(raw);
            return ControlFlow::Continue(());
        }
        let kind = self.kinds.get_mut(raw.event_type.0 as usize).zip(self.threads.get(raw.thread as usize));
        let ts_ns = self.info.as_ref().and_then(|info| info.clock.since_start(raw.ticks)).unwrap_or_default();
        if let Some(((info, columns), thread)) = kind {
            let event = Event { raw, info, thread, ts_ns };
            match self.stage {
                Stage::Decode => drop(black_box(event.decode(columns))),
                _ => self.normalizer.event(&event, 0, &mut self.facts),
            }
        }
        ControlFlow::Continue(())
    }

    fn problem(&mut self, _problem: Problem) {}
}

fn read(sample: &str, stage: Stage, order: Order) -> u64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(sample);
    let mut bench = Bench {
        stage,
        info: None,
        kinds: Vec::new(),
        threads: Vec::new(),
        normalizer: Normalizer::new(),
        facts: Facts::default(),
        events: 0,
    };
    let end = nettrace::read(Input::open(&path).expect("a sample"), order, &mut bench).expect("a recording");
    bench.normalizer.finish(end.bytes, &mut bench.facts);
    bench.events + bench.facts.0
}

fn stages(criterion: &mut Criterion) {
    for (name, sample, stage, order) in [
        ("headers in file order", "stacks.nettrace", Stage::Headers, Order::File),
        ("headers in time order", "stacks.nettrace", Stage::Headers, Order::Time),
        ("decode self-described", "events.nettrace", Stage::Decode, Order::File),
        ("normalize ranges", "gc-churn.nettrace", Stage::Normalize, Order::Time),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(sample);
        let mut group = criterion.benchmark_group("stages");
        group.throughput(Throughput::Bytes(std::fs::metadata(path).expect("a sample").len()));
        group.bench_function(name, |bencher| bencher.iter(|| read(sample, stage, order)));
        group.finish();
    }
}

criterion_group!(benches, stages);
criterion_main!(benches);
