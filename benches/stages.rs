//! What each layer costs on the samples: `cargo bench`. For whole programs on large recordings: `benches/compare.sh`.

#![allow(clippy::expect_used, reason = "a benchmark may stop where it stands")]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tracequet::facts::Normalizer;
use tracequet::facts::fact::{Fact, FactSink};
use tracequet::trace::error::Problem;
use tracequet::trace::event::value::ValueColumn;
use tracequet::trace::event::{self, Decoding, Event, EventInfo, EventVisitor};
use tracequet::trace::reader::{Order, RawEvent, TypeId};
use tracequet::trace::source::Input;

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
    columns: Vec<Vec<ValueColumn>>,
    normalizer: Normalizer,
    facts: Facts,
    events: u64,
}

impl EventVisitor for Bench {
    fn event_type(&mut self, id: TypeId, info: &EventInfo) -> bool {
        self.columns.push(match &info.decoding {
            Decoding::Described(plan) => ValueColumn::for_fields(&plan.fields),
            _ => Vec::new(),
        });
        self.normalizer.event_type(id, info);
        true
    }

    fn wants(&mut self, raw: &RawEvent<'_>) -> bool {
        self.events += 1;
        black_box(raw);
        self.stage != Stage::Headers
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        if self.stage == Stage::Normalize {
            self.normalizer.event(event, 0, &mut self.facts);
        } else if let Some(columns) = self.columns.get_mut(event.raw.event_type.0 as usize) {
            black_box(event.decode(columns)).ok();
        }
        ControlFlow::Continue(())
    }

    fn problem(&mut self, _problem: Problem) {}
}

fn read(sample: &str, stage: Stage, order: Order) -> u64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples").join(sample);
    let mut bench =
        Bench { stage, columns: Vec::new(), normalizer: Normalizer::new(8), facts: Facts::default(), events: 0 };
    let end = event::read(Input::open(&path).expect("a sample"), order, &mut bench).expect("a recording");
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
