//! The snapshots of a recording: collections in which the heap was walked.

use crate::prelude::*;
use tracequet_dataset::error::{Evidence, Named};

/// A collection in which the heap was walked.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The collection.
    pub gc_id: u32,
    /// The runtime's own number of it; 0 when not known.
    pub gc_number: u32,
    /// Process whose heap it is.
    pub process_id: u64,
    /// When the collection began, nanoseconds since the recording began.
    pub start_ns: i64,
    /// Whether nothing of the collection is known to be missing.
    pub complete: bool,
    /// Objects that the walk listed, with those that it listed twice.
    pub objects: u64,
}

impl Snapshot {
    /// One of which only the walk is known.
    pub(super) fn stored(gc_id: u32, objects: u64) -> Snapshot {
        Snapshot { gc_id, gc_number: 0, process_id: 0, start_ns: 0, complete: true, objects }
    }
}

row!(struct GcRow of gc { gc_id, gc_number, process_id, start_ts_ns, complete, heap_object_count });

/// The snapshots of a recording, the oldest first.
pub fn snapshots(recording: &Recording<'_>) -> Result<Vec<Snapshot>> {
    let mut found = Vec::new();
    each_row::<GcRow<'_>>(recording, size_of::<Snapshot>() as u64, |gc| {
        let objects = gc.heap_object_count;
        if objects > 0 {
            let GcRow { gc_id, gc_number, process_id, start_ts_ns: start_ns, complete, .. } = gc;
            found.push(Snapshot { gc_id, gc_number, process_id, start_ns, complete, objects });
        }
        Ok(())
    })?;
    found.sort_unstable_by_key(|snapshot| snapshot.gc_id);
    Ok(found)
}

/// The snapshot of collection `gc`, or the last one.
pub fn snapshot(recording: &Recording<'_>, gc: Option<u32>) -> Result<Snapshot> {
    let mut all = snapshots(recording)?;
    let listed = || all.iter().take(20).map(|s| s.gc_id.to_string()).collect::<Vec<_>>().join(", ");
    let key = &recording.info().trace_id;
    if all.is_empty() {
        let how = "a heap dump is recorded with the keywords 0x1980001 of the runtime";
        let message = format!("the recording {key} has no walk of the heap; {how}");
        return Err(Error::NotRecorded { what: Evidence::HeapWalk, message });
    }
    match gc {
        None => all.pop().ok_or_else(|| Error::Internal("no snapshot".into())),
        Some(gc) => match all.iter().position(|snapshot| snapshot.gc_id == gc) {
            Some(place) => Ok(all.swap_remove(place)),
            None => {
                let message =
                    format!("the recording {key} has no walk of the heap in collection {gc}, but in {}", listed());
                Err(Error::NotFound { what: Named::Collection, message })
            }
        },
    }
}
