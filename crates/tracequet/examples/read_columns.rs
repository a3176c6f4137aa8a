//! Sums the bytes that each collection moved, from two columns of a dataset:
//! `cargo run -p tracequet --example read_columns DATASET`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use tracequet::dataset::read::{Column, Dataset};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("expected a dataset")?;
    run(Path::new(&path)).map(|_| ())
}

/// Prints and returns the bytes by collection, of all recordings of the dataset.
pub fn run(path: &Path) -> Result<BTreeMap<(String, u64), u64>, Box<dyn Error>> {
    let dataset = Dataset::open(path)?;
    let mut moved = BTreeMap::new();
    for recording in dataset.recordings() {
        let key = recording.trace_id.as_str();
        let table = dataset.recording(Some(key))?.table("gc_moved_range")?;
        for batch in table.scan().columns(["gc_id", "range_length"]).batches()? {
            let batch = batch?;
            let (gc, length) = (Column::of(&batch, "gc_id")?, Column::of(&batch, "range_length")?);
            for row in 0..batch.num_rows() {
                // gc_id counts from 1 in each recording: the key belongs to it.
                let gc = (key.to_owned(), gc.number(row).unwrap_or_default());
                *moved.entry(gc).or_default() += length.number(row).unwrap_or_default();
            }
        }
    }
    for ((recording, gc), bytes) in &moved {
        println!("{recording} collection {gc}: {bytes} bytes");
    }
    Ok(moved)
}
