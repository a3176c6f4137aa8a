//! The cost of each stage on the samples, beside its floor: `cargo bench -p tracequet-benches`. The floor of a stage is
//! the least that any program has to do for it: read the bytes, copy the payloads, sort the rows, copy the columns,
//! encode them with the plain writer of parquet. For whole programs on large recordings: `benches/compare.sh` and
//! `benches/floor.py`.

#![allow(clippy::expect_used, reason = "a benchmark may stop where it stands")]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Codec, ZstdLevel};
use parquet::file::properties::WriterProperties;
use tracequet::dataset::table::schema;
use tracequet::dataset::write::{DatasetOptions, DatasetWriter, TableId};
use tracequet::facts::Normalizer;
use tracequet::facts::fact::{Fact, FactSink};
use tracequet::trace::error::Problem;
use tracequet::trace::event::value::ValueColumn;
use tracequet::trace::event::{self, Decoding, Event, EventInfo, EventVisitor};
use tracequet::trace::reader::{Order, RawEvent, TypeId};
use tracequet::trace::source::Input;
use tracequet::{Convert, batches};

/// The last stage that each event goes through.
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

/// A visitor that hands each event to a function.
struct Each<F>(F);

impl<F: FnMut(&Event<'_>)> EventVisitor for Each<F> {
    fn event_type(&mut self, _: TypeId, _: &EventInfo) -> bool {
        true
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.0(event);
        ControlFlow::Continue(())
    }

    fn problem(&mut self, _: Problem) {}
}

fn path(sample: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples").join(sample)
}

fn read(sample: &str, stage: Stage, order: Order) -> u64 {
    let mut bench =
        Bench { stage, columns: Vec::new(), normalizer: Normalizer::new(8), facts: Facts::default(), events: 0 };
    let end = event::read(Input::open(&path(sample)).expect("a sample"), order, &mut bench).expect("a recording");
    bench.normalizer.finish(end.bytes, &mut bench.facts);
    bench.events + bench.facts.0
}

fn payloads(sample: &str) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut each = Each(|event: &Event<'_>| all.push(event.raw.payload.to_vec()));
    event::read(Input::open(&path(sample)).expect("a sample"), Order::File, &mut each).expect("a recording");
    all
}

/// The rows of tables of a sample, by table.
fn rows(sample: &str, tables: &[&str]) -> Vec<(String, Vec<RecordBatch>)> {
    let request = Convert::default().inputs([path(sample)]).tables(tables.iter().copied());
    let mut all: Vec<(String, Vec<RecordBatch>)> = Vec::new();
    let receive = &mut |batch: tracequet::Rows<'_>| {
        match all.iter_mut().find(|(name, _)| name == batch.table) {
            Some((_, rows)) => rows.push(batch.rows),
            None => all.push((batch.table.to_owned(), vec![batch.rows])),
        }
        ControlFlow::Continue(())
    };
    batches(&request, receive, &mut |_| true).expect("rows");
    all
}

fn copied(batches: &[RecordBatch]) -> usize {
    let buffers = batches.iter().flat_map(RecordBatch::columns).flat_map(|column| {
        column.to_data().buffers().iter().map(|buffer| buffer.as_slice().to_vec()).collect::<Vec<_>>()
    });
    buffers.map(black_box).map(|copy| copy.len()).sum()
}

fn dataset(folder: &Path, tables: &[(String, Vec<RecordBatch>)]) {
    let options = DatasetOptions { overwrite: true, ..DatasetOptions::default() };
    let mut writer = DatasetWriter::create(&folder.join("out"), options).expect("a dataset");
    for (name, batches) in tables {
        let spec = schema::of(name).and_then(|schema| schema.spec()).expect("a table");
        let table: TableId = writer.table(spec).expect("a table");
        for batch in batches.iter().filter(|batch| batch.num_rows() > 0) {
            writer.write(table, batch.clone()).expect("rows");
        }
    }
    writer.close_tables(&[]).expect("files");
}

/// Writes the rows with the writer of the crate parquet, one table after the other into memory.
fn plain(tables: &[(String, Vec<RecordBatch>)]) -> usize {
    let level = ZstdLevel::try_new(1).expect("a level");
    let mut bytes = 0;
    for (_, batches) in tables {
        let Some(first) = batches.first() else { continue };
        let properties = WriterProperties::builder().set_compression(Codec::ZSTD(level)).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), first.schema(), Some(properties)).expect("a writer");
        batches.iter().for_each(|batch| writer.write(batch).expect("rows"));
        bytes += writer.into_inner().expect("a file").len();
    }
    bytes
}

fn stages(criterion: &mut Criterion) {
    let bytes = |sample: &str| std::fs::metadata(path(sample)).expect("a sample").len();

    let mut group = criterion.benchmark_group("headers");
    group.throughput(Throughput::Bytes(bytes("stacks.nettrace")));
    group.bench_function("floor: read the bytes", |bencher| {
        bencher.iter(|| {
            let all = std::fs::read(path("stacks.nettrace")).expect("a sample");
            all.iter().fold(0u64, |sum, byte| sum.wrapping_add(u64::from(*byte)))
        });
    });
    for (name, order) in [("in file order", Order::File), ("in time order", Order::Time)] {
        group.bench_function(name, |bencher| bencher.iter(|| read("stacks.nettrace", Stage::Headers, order)));
    }
    group.finish();

    let mut group = criterion.benchmark_group("decode");
    let all = payloads("events.nettrace");
    group.throughput(Throughput::Bytes(bytes("events.nettrace")));
    group.bench_function("floor: copy the payloads", |bencher| {
        let mut out: Vec<u8> = Vec::new();
        bencher.iter(|| {
            out.clear();
            all.iter().for_each(|payload| out.extend_from_slice(payload));
            black_box(out.len())
        });
    });
    let decode = |bencher: &mut criterion::Bencher<'_>| {
        bencher.iter(|| read("events.nettrace", Stage::Decode, Order::File));
    };
    group.bench_function("self-described, with headers", decode);
    group.finish();

    let mut group = criterion.benchmark_group("facts");
    group.throughput(Throughput::Bytes(bytes("gc-churn.nettrace")));
    let tables = ["gc_surviving_range", "gc_moved_range"];
    let ranges = rows("gc-churn.nettrace", &tables);
    let starts: Vec<u64> = ranges
        .iter()
        .flat_map(|(_, batches)| batches)
        .filter_map(|batch| batch.column_by_name("range_start").or(batch.column_by_name("old_range_start")))
        .flat_map(|column| column.as_primitive::<UInt64Type>().values().to_vec())
        .collect();
    group.bench_function("floor: sort the starts of ranges", |bencher| {
        bencher.iter(|| {
            let mut sorted = starts.clone();
            sorted.sort_unstable();
            black_box(sorted.len())
        });
    });
    group.bench_function("ranges, with headers", |bencher| {
        bencher.iter(|| read("gc-churn.nettrace", Stage::Normalize, Order::Time));
    });
    group.finish();

    let mut group = criterion.benchmark_group("rows");
    group.throughput(Throughput::Bytes(bytes("events.nettrace")));
    let made: Vec<RecordBatch> = rows("events.nettrace", &[]).into_iter().flat_map(|(_, batches)| batches).collect();
    group.bench_function("floor: copy the columns", |bencher| bencher.iter(|| copied(&made)));
    group.bench_function("all tables in memory, from the recording", |bencher| {
        bencher.iter(|| rows("events.nettrace", &[]).len());
    });
    group.finish();

    let mut group = criterion.benchmark_group("write");
    let folder = tempfile::tempdir().expect("a folder");
    group.throughput(Throughput::Elements(starts.len() as u64));
    group.bench_function("floor: the writer of parquet", |bencher| bencher.iter(|| plain(&ranges)));
    group.bench_function("two tables of ranges", |bencher| bencher.iter(|| dataset(folder.path(), &ranges)));
    group.finish();
}

criterion_group!(benches, stages);
criterion_main!(benches);
