//! Writes a recording of profiler callbacks, one collection long:
//! `cargo run -p tracequet --example write_corprof OUT.corprof`.
//!
//! A profiler does the same from its callbacks. `tracequet convert OUT.corprof -o out` makes tables of it.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use tracequet::trace::corprof::{Header, Writer, encode, kind};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("expected a file to write")?;
    run(Path::new(&path))
}

/// Writes the recording.
pub fn run(path: &Path) -> Result<(), Box<dyn Error>> {
    let header = Header { pointer_size: 8, frequency: 1_000_000_000, ..Header::default() };
    let mut writer = Writer::new(BufWriter::new(File::create(path)?), &header)?;
    let thread = writer.thread(4711);
    let mut payload = Vec::new();

    // GarbageCollectionStarted(generationCollected = {0}, reason = COR_PRF_GC_INDUCED). The bounds were not asked for.
    encode::gc_started(&mut payload, 1, 0b1, 1, &encode::BoundsSaid::default());
    writer.record(thread, kind::GC_STARTED, 0, 1_000, &payload)?;

    // SurvivingReferences2: starts and lengths as the runtime passes them.
    payload.clear();
    encode::surviving(&mut payload, [[0x1000, 0x40], [0x2000, 0x18]].into_iter());
    writer.record(thread, kind::SURVIVING2, 0, 1_500, &payload)?;

    // GarbageCollectionFinished.
    payload.clear();
    encode::gc_finished(&mut payload, &encode::BoundsSaid::default());
    writer.record(thread, kind::GC_FINISHED, 0, 2_000, &payload)?;
    writer.finish(3_000)?;
    Ok(())
}
