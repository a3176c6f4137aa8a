//! Datasets whose files are whole and whose numbers are not: any number may stand in any row.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use tracequet::dataset::read::Dataset;

use crate::hostile::fuzzing::dataset::{ask, places};
use crate::support::files::files;
use crate::support::mutate::{EDGES, Random};
use crate::support::patience::ends;

/// A column with some numbers at their edges, or near numbers of other rows.
fn changed<T: ArrowPrimitiveType>(column: &ArrayRef, random: &mut Random, cast: impl Fn(u64) -> T::Native) -> ArrayRef {
    let array = column.as_primitive::<T>();
    let mut values: Vec<Option<T::Native>> = array.iter().collect();
    for _ in 0..=random.below(8) {
        let (row, other) = (random.below(values.len()), random.below(values.len()));
        let value = match random.below(4) {
            0 => values[other],
            1 => Some(cast(random.below(values.len() * 2) as u64)),
            _ => Some(cast(EDGES[random.below(EDGES.len())])),
        };
        if let Some(place) = values.get_mut(row) {
            *place = value;
        }
    }
    Arc::new(PrimitiveArray::<T>::from_iter(values).with_data_type(column.data_type().clone()))
}

fn edited(column: &ArrayRef, random: &mut Random) -> ArrayRef {
    match column.data_type() {
        DataType::UInt8 => changed::<UInt8Type>(column, random, |n| n as u8),
        DataType::UInt16 => changed::<UInt16Type>(column, random, |n| n as u16),
        DataType::UInt32 => changed::<UInt32Type>(column, random, |n| n as u32),
        DataType::UInt64 => changed::<UInt64Type>(column, random, |n| n),
        DataType::Int64 => changed::<Int64Type>(column, random, |n| n as i64),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            changed::<TimestampMicrosecondType>(column, random, |n| n as i64)
        }
        DataType::Float64 => changed::<Float64Type>(column, random, f64::from_bits),
        _ => column.clone(),
    }
}

#[test]
fn numbers_of_a_dataset_may_be_any() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let mut datasets: Vec<&Path> = places().iter().map(|place| place.dataset.as_path()).collect();
    datasets.dedup();
    datasets.retain(|path| path.to_string_lossy().ends_with("arrow"));
    let mut changes = 0;
    for round in 0..24 {
        // A copy: the other tests use these.
        let (from, path) = (datasets[round % datasets.len()], folder.path().join(round.to_string()));
        std::fs::create_dir(&path).unwrap();
        for (name, bytes) in files(from) {
            std::fs::write(path.join(name), bytes).unwrap();
        }
        let dataset = Dataset::open(&path).unwrap();
        let recording = dataset.recording(None).unwrap();
        for info in recording.tables() {
            let table = recording.table(&info.name).unwrap();
            let batches: Vec<RecordBatch> = table.scan().batches().unwrap().map(|batch| batch.unwrap()).collect();
            let Some(first) = batches.first().filter(|_| random.below(3) == 0) else { continue };
            let mut out = Vec::new();
            let mut writer = arrow_ipc::writer::FileWriter::try_new(&mut out, &first.schema()).unwrap();
            for batch in &batches {
                let columns = batch.columns().iter();
                let columns = columns
                    .map(|column| if random.below(2) == 0 { edited(column, &mut random) } else { column.clone() });
                let columns: Vec<ArrayRef> = columns.collect();
                changes += 1;
                writer.write(&RecordBatch::try_new(batch.schema(), columns).unwrap()).unwrap();
            }
            writer.finish().unwrap();
            drop(writer);
            std::fs::write(table.path(), out).unwrap();
        }
        ends(&format!("round {round}"), || ask(&path));
        std::fs::remove_dir_all(&path).unwrap();
    }
    assert!(changes > 30, "{changes}");
}
