//! The thread pool: how many workers it had, why their number changed, and how long work waited for one.

use crate::prelude::*;

/// Numbers of workers, and times of waiting, that are kept; reasons that are distinguished.
const MOST: usize = 1 << 20;
const MOST_REASONS: usize = 100;

row! {
    /// An event of the pool.
    pub struct PoolEvent of thread_pool { process_id, ts_ns, kind, worker_count, reason, starvation }
}

row! {
    /// A work item.
    pub struct WorkItem of thread_pool_work { process_id, wait_ns }
}

impl PoolEvent<'_> {
    /// Whether a worker was added because all were busy.
    pub fn is_starvation(&self) -> bool {
        self.starvation == Some(true)
    }

    /// The number of active workers, where the event says it.
    pub fn active(&self) -> Option<u32> {
        self.worker_count.filter(|_| ["worker_start", "worker_stop", "worker_wait"].contains(&self.kind))
    }

    /// The number of workers that the pool wants from now on, where the event changes it.
    pub fn wanted(&self) -> Option<u32> {
        self.worker_count.filter(|_| self.kind == "adjustment")
    }
}

/// Changes of the wanted number of workers for one reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Adjusted {
    /// The number of times.
    pub times: u64,
    /// The least and the greatest number that was wanted.
    pub least: Option<u32>,
    /// See `least`.
    pub most: Option<u32>,
    /// When for the last time.
    pub last_ns: i64,
}

/// The pools of all processes of a recording.
#[derive(Debug, Default)]
pub struct Pool {
    /// Events of the pool.
    pub events: u64,
    /// The number of times that a worker was added because all were busy.
    pub starved: u64,
    /// By the runtime's word for the reason.
    pub adjusted: BTreeMap<String, Adjusted>,
    /// Active workers at times, in order; where the events of workers are not recorded, those that were wanted.
    pub workers: Vec<(i64, u32)>,
    /// Work items.
    pub items: u64,
    /// The waits of work items that a worker took, in order.
    pub waits_ns: Vec<u64>,
}

impl Pool {
    /// The pool of a recording.
    pub fn read(recording: &Recording<'_>) -> Result<Pool> {
        let mut pool = Pool::default();
        let mut wanted = Vec::new();
        recording.each_recorded::<PoolEvent<'_>>(|row| {
            pool.events += 1;
            pool.starved += u64::from(row.is_starvation());
            pool.workers.extend(row.active().filter(|_| pool.workers.len() < MOST).map(|count| (row.ts_ns, count)));
            wanted.extend(row.wanted().filter(|_| wanted.len() < MOST).map(|count| (row.ts_ns, count)));
            if row.kind == "adjustment" && pool.adjusted.len() < MOST_REASONS {
                let of_reason = pool.adjusted.entry(row.reason.unwrap_or("unknown").to_owned()).or_default();
                of_reason.times += 1;
                of_reason.least = of_reason.least.into_iter().chain(row.worker_count).min();
                of_reason.most = of_reason.most.max(row.worker_count);
                of_reason.last_ns = of_reason.last_ns.max(row.ts_ns);
            }
        })?;
        if pool.workers.is_empty() {
            pool.workers = wanted;
        }
        pool.workers.sort_by_key(|(ts_ns, _)| *ts_ns);
        recording.each_recorded::<WorkItem<'_>>(|row| {
            pool.items += 1;
            let wait_ns = row.wait_ns.filter(|_| pool.waits_ns.len() < MOST);
            pool.waits_ns.extend(wait_ns.map(|ns| ns.max(0).cast_unsigned()));
        })?;
        pool.waits_ns.sort_unstable();
        Ok(pool)
    }
}

/// A percentile of values in order: one of them, without interpolation, as the metrics have it.
pub fn percentile<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_are_there() {
        let values: Vec<u64> = (1..=10).collect();
        assert_eq!(
            [50, 95, 99, 100].map(|percent| percentile(&values, percent)),
            [Some(5), Some(10), Some(10), Some(10)]
        );
        assert_eq!(percentile::<u64>(&[], 50), None);
        assert_eq!(percentile(&[7], 1), Some(7));
    }
}
