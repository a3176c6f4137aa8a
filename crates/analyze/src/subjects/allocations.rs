//! Sampled allocations: which samples count where a recording has several kinds that stand for the same bytes.

use crate::prelude::*;

/// The kinds of samples, the best first, those of one rank together. The view `allocation_source` has the same order.
pub const SOURCES: [(&str, u8); 5] =
    [("object", 1), ("sampled", 2), ("object_high", 3), ("object_low", 3), ("tick", TICK)];

/// The rank of samples of which one object stands for the last 100 KB.
pub(crate) const TICK: u8 = 4;

/// The rank of a kind of samples, by the word in the column `source`; those of the lowest rank that a recording has count.
/// `None` for what stands for no bytes.
pub fn rank(source: &str) -> Option<u8> {
    SOURCES.iter().find(|(word, _)| *word == source).map(|(_, rank)| *rank)
}

row!(struct Source of allocation { source });

row! {
    /// A sampled allocation that counts.
    pub struct Allocation of allocation {
        process_id, thread_id, callsite_id, ts_ns, source, allocation_bytes, object_count, type_id, type_name
    }
}

/// The rank of the samples that count in a recording; `None` when none of its samples stands for bytes.
pub fn best(recording: &Recording<'_>) -> Result<Option<u8>> {
    let mut best: Option<u8> = None;
    recording.each_recorded::<Source<'_>>(|row| best = best.into_iter().chain(rank(row.source)).min())?;
    Ok(best)
}

/// Calls `take` with each allocation that counts. Rows are not kept: `take` holds what it keeps to the bound of memory.
pub fn each(recording: &Recording<'_>, mut take: impl FnMut(&Allocation<'_>) -> Result<()>) -> Result<()> {
    let best = best(recording)?;
    each_row::<Allocation<'_>>(recording, 0, |row| match rank(row.source) {
        Some(rank) if Some(rank) == best => take(&row),
        _ => Ok(()),
    })
}
