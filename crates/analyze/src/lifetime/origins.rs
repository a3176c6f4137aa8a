//! Where the objects of a heap dump were allocated: samples that lie in the dump lend it their stacks.

use tracequet_dataset::error::{Error, Evidence, Result};
use tracequet_dataset::read::Recording;

use super::found::lifetimes_until;
use super::life::Fate;
use super::names::{By, Group, Groups};
use crate::heap::HeapGraph;

/// Which methods allocated some objects of a heap dump.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origins {
    /// Samples among these objects.
    pub samples: u64,
    /// Bytes that they stand for.
    pub bytes: u64,
    /// By group, those with the most bytes first.
    pub rows: Vec<OriginRow>,
}

/// The part of these objects that a group allocated.
#[derive(Clone, Debug, PartialEq)]
pub struct OriginRow {
    /// Type and method.
    pub group: Group,
    /// Samples.
    pub samples: u64,
    /// Bytes that they stand for.
    pub bytes: u64,
}

impl Origins {
    /// The share of a row, and between which shares it lies with 95 % confidence, by the number of samples (Wilson's
    /// interval).
    pub fn share(&self, row: &OriginRow) -> [f64; 3] {
        let (share, n) = (row.bytes as f64 / self.bytes.max(1) as f64, self.samples.max(1) as f64);
        let z = 1.96f64;
        let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
        let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
        [share, (middle - half).max(0.0), (middle + half).min(1.0)]
    }
}

/// Where the objects of a heap dump were allocated that `takes` says, by their places in the graph. `None` when the
/// recording has no allocations with addresses, or lists no survivors.
pub fn origins(
    recording: &Recording<'_>,
    graph: &HeapGraph,
    by: By,
    takes: impl Fn(u32) -> bool,
) -> Result<Option<Origins>> {
    let mut found = Origins::default();
    let mut groups: Groups<'_, [u64; 2]> = Groups::new(recording, by)?;
    let (gc_id, process_id) = (graph.snapshot.gc_id, graph.snapshot.process_id);
    let lives = lifetimes_until(recording, gc_id, |lifetime| {
        let (sample, life) = (lifetime.sample, lifetime.life);
        // An object that is alive lies where the collection left it, and the walk came behind it.
        if life.fate != Fate::Alive || sample.process_id != process_id {
            return Ok(());
        }
        if graph.find(life.end_object_id).is_none_or(|node| !takes(node)) {
            return Ok(());
        }
        let Some([samples, bytes]) = groups.of(lifetime, |_| true)? else { return Ok(()) };
        let weighed = lifetime.bytes().unwrap_or_default();
        // Confidence comes from the samples that were seen, however much each stands for.
        (*samples, found.samples) = (*samples + 1, found.samples + 1);
        *bytes = bytes.saturating_add(weighed);
        found.bytes = found.bytes.saturating_add(weighed);
        Ok(())
    });
    match lives {
        Err(Error::NotRecorded { what: Evidence::AllocatedObjects | Evidence::SurvivingRanges, .. }) => {
            return Ok(None);
        }
        other => other?,
    }
    let row = |(group, [samples, bytes]): (Group, [u64; 2])| OriginRow { group, samples, bytes };
    found.rows = groups.finish(|[_, bytes]| *bytes).into_iter().map(row).collect();
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_the_interval_of_wilson() {
        let row = OriginRow { group: Group::default(), samples: 30, bytes: 300 };
        let origins = Origins { samples: 100, bytes: 1000, rows: vec![row.clone()] };
        // By the formula with exact arithmetic: 0.3 of 100 is 0.2189 to 0.3959.
        let [share, low, high] = origins.share(&row);
        assert!(
            (share - 0.3).abs() < 1e-9 && (low - 0.2189).abs() < 1e-4 && (high - 0.3959).abs() < 1e-4,
            "{low} {high}"
        );
        let one = Origins { samples: 1, bytes: 5, rows: Vec::new() };
        let [share, low, high] = one.share(&OriginRow { bytes: 5, samples: 1, ..row });
        assert!(share == 1.0 && high == 1.0 && low < 0.21, "{low}");
    }
}
