//! Processor time: which samples say that a thread ran, and for how much time each of them stands.
//!
//! The runtime's sampler takes a sample of every managed thread each time, whether it runs or not. Within managed code
//! it runs. Outside of managed code the sampler does not see whether it runs; nearly always it waits, for a lock, a
//! socket or work. Such samples are no processor time. A kernel samples what runs on each processor, and says when
//! nothing does.

use crate::prelude::*;

/// The state of a thread in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The thread ran.
    Running,
    /// The thread was outside of managed code, where it waits or runs native code. The column `kind` says `external`.
    Waiting,
    /// No thread wanted the processor.
    Idle,
}

impl State {
    /// By the column `kind` of `cpu_sample`.
    pub fn of(kind: Option<&str>) -> State {
        match kind {
            Some("external") => State::Waiting,
            Some("idle") => State::Idle,
            _ => State::Running,
        }
    }
}

/// Whether the runtime's sampler took a sample of this kind, and not a kernel.
pub fn is_of_runtime(kind: Option<&str>) -> bool {
    matches!(kind, Some("managed" | "external" | "error"))
}

/// Which samples are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Samples {
    /// Samples of threads that ran: processor time.
    #[default]
    Running,
    /// Also those of threads outside of managed code, which wait or run native code.
    All,
}

impl Samples {
    /// Whether samples of a state are meant.
    pub fn has(self, state: State) -> bool {
        match state {
            State::Running => true,
            State::Waiting => self == Samples::All,
            State::Idle => false,
        }
    }
}

/// The table of samples.
pub const TABLE: &str = "cpu_sample";

row!(struct Trace of trace { sampling_ns });

row!(struct Seen of cpu_sample { process_id, thread_id, ts_ns, kind });

row!(struct Row of cpu_sample { process_id, thread_id, callsite_id, ts_ns, kind, sample_count });

/// A sample with its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuSample {
    /// OS process id.
    pub process_id: u64,
    /// OS thread id.
    pub thread_id: u64,
    /// Call stack; 0 when there is none.
    pub callsite_id: u32,
    /// When, nanoseconds since the recording began.
    pub ts_ns: i64,
    /// Samples that the row stands for.
    pub count: u64,
    /// Time in nanoseconds, or samples where the recording does not say how far apart they are: see
    /// [`Processor::is_time`].
    pub weight: u64,
}

/// For how much time the samples of a recording stand.
#[derive(Debug, Default)]
pub(crate) struct Processor {
    /// The interval that was asked for; 0 when the recording does not say.
    asked_ns: u64,
    /// The interval of the runtime's sampler that is observed, by process.
    observed_ns: Map<u64, u64>,
}

/// Memory of a thread whose samples are counted, with room in a map.
const THREAD_STORED: u64 = 64;

impl Processor {
    /// Reads how far apart the samples are.
    pub(crate) fn of(recording: &Recording<'_>) -> Result<Processor> {
        let mut asked_ns = 0;
        recording.each_recorded::<Trace<'_>>(|row| asked_ns = row.sampling_ns)?;
        if asked_ns == 0 {
            return Ok(Processor::default());
        }
        let mut rounds = Rounds::default();
        each_row::<Seen<'_>>(recording, 0, |row| {
            if is_of_runtime(row.kind) {
                rounds.see((row.process_id, row.thread_id), row.ts_ns);
            }
            held(recording, TABLE, rounds.threads.len() as u64, THREAD_STORED)
        })?;
        Ok(Processor { asked_ns, observed_ns: rounds.intervals() })
    }

    /// Whether weights are time, and not samples.
    pub(crate) fn is_time(&self) -> bool {
        self.asked_ns > 0
    }

    /// The longest time between two samples; 0 when the recording does not say.
    pub(crate) fn interval_ns(&self) -> u64 {
        self.observed_ns.values().copied().max().unwrap_or(self.asked_ns)
    }

    /// The weight of a sample of a process, by the column `kind`.
    fn weight(&self, process: u64, kind: Option<&str>) -> u64 {
        let observed = self.observed_ns.get(&process).filter(|_| is_of_runtime(kind));
        observed.copied().unwrap_or(self.asked_ns.max(1))
    }

    /// Calls `take` with each sample that is meant, and says how many of threads that wait are left out. Rows are not
    /// kept: `take` holds what it keeps to the bound of memory.
    pub(crate) fn each(
        &self,
        recording: &Recording<'_>,
        samples: Samples,
        mut take: impl FnMut(&CpuSample) -> Result<()>,
    ) -> Result<u64> {
        let mut left_out = 0u64;
        each_row::<Row<'_>>(recording, 0, |row| {
            let (state, count) = (State::of(row.kind), u64::from(row.sample_count));
            if !samples.has(state) {
                left_out = left_out.saturating_add(if state == State::Waiting { count } else { 0 });
                return Ok(());
            }
            take(&CpuSample {
                process_id: row.process_id,
                thread_id: row.thread_id,
                callsite_id: row.callsite_id,
                ts_ns: row.ts_ns,
                count,
                weight: count.saturating_mul(self.weight(row.process_id, row.kind)),
            })
        })?;
        Ok(left_out)
    }
}

/// The rounds of the runtime's sampler. It takes a sample of every thread each time, and comes less often than
/// it is meant to: the time between two is the one that is observed.
#[derive(Debug, Default)]
struct Rounds {
    /// Of each thread how many samples there are, and when the first and the last one was taken.
    threads: Map<(u64, u64), (u64, i64, i64)>,
}

impl Rounds {
    /// A sample of a thread, by its process and id.
    fn see(&mut self, thread: (u64, u64), ts_ns: i64) {
        let (count, first, last) = self.threads.entry(thread).or_insert((0, ts_ns, ts_ns));
        (*count, *first, *last) = (*count + 1, (*first).min(ts_ns), (*last).max(ts_ns));
    }

    /// The time between two samples of each process: that of the thread with the most samples.
    fn intervals(&self) -> Map<u64, u64> {
        let mut most: Map<u64, (u64, u64)> = Map::default();
        for ((process, _), (count, first, last)) in &self.threads {
            let between = count.saturating_sub(1);
            let span = last.saturating_sub(*first).cast_unsigned();
            let known = most.entry(*process).or_default();
            *known = (*known).max((between, span));
        }
        let interval = |(process, (between, span)): (u64, (u64, u64))| Some((process, span.checked_div(between)?));
        most.into_iter().filter_map(interval).filter(|(_, interval)| *interval > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_stands_for_the_time_between_two_that_is_observed() {
        let mut rounds = Rounds::default();
        // A thread from the beginning to the end, a short one, and one of a process that was seen once.
        (0..=500).for_each(|n| rounds.see((1, 10), n * 10_000_000));
        [7, 90].into_iter().for_each(|n| rounds.see((1, 11), n * 10_000_000));
        rounds.see((2, 20), 50_000_000);
        let processor = Processor { asked_ns: 1_000_000, observed_ns: rounds.intervals() };
        assert_eq!(processor.weight(1, Some("managed")), 10_000_000);
        assert_eq!(processor.weight(1, Some("thread")), 1_000_000, "a kernel does not come in rounds");
        assert_eq!(processor.weight(2, Some("managed")), 1_000_000, "as it was meant to be");
        assert_eq!((processor.interval_ns(), processor.is_time()), (10_000_000, true));
        assert_eq!((Processor::default().weight(1, None), Processor::default().is_time()), (1, false));
    }

    #[test]
    fn what_waits_or_idles_is_no_processor_time() {
        for (kind, running, all) in [
            (Some("managed"), true, true),
            (Some("external"), false, true),
            (Some("idle"), false, false),
            (Some("dpc"), true, true),
            (None, true, true),
        ] {
            let state = State::of(kind);
            assert_eq!((Samples::Running.has(state), Samples::All.has(state)), (running, all), "{kind:?}");
        }
    }
}
