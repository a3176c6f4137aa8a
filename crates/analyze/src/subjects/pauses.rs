//! Pauses: when managed threads stood still for collections, and how much of it lies within another time.
//!
//! The table `gc_pause` has other stops, too: those of the sampler, a debugger, the end of the process. They are no
//! pauses. Pauses of several runtimes of a process may overlap: a sum of times counts what they have in common once,
//! for the one that began first.

use crate::metrics::{is_recorded, metrics};
use crate::prelude::*;

/// Bytes of a pause in memory, with its part.
const ROW_STORED: u64 = 64;

row! {
    /// A time in which managed threads were stopped, for whatever reason.
    pub struct Stop of gc_pause { process_id, gc_id, start_ts_ns, duration_ns, suspend_ns, kind, reason }
}

impl Stop<'_> {
    /// The pause, where a collection was the reason.
    pub fn pause(&self) -> Option<Pause> {
        (self.kind == "gc").then_some(Pause {
            process_id: self.process_id,
            gc_id: self.gc_id,
            start_ns: self.start_ts_ns,
            duration_ns: self.duration_ns,
            suspend_ns: self.suspend_ns,
        })
    }

    /// When all threads ran again, or a second collection began in the same stop.
    pub fn end_ns(&self) -> i64 {
        self.start_ts_ns.saturating_add(self.duration_ns)
    }
}

/// A condition of SQL on `gc_pause`: its rows that are pauses.
pub const SQL: &str = "kind = 'gc'";

/// A pause for a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// OS process id.
    pub process_id: u64,
    /// The collection; 0 where it is not known.
    pub gc_id: u32,
    /// When it began, nanoseconds since the recording began.
    pub start_ns: i64,
    /// The length in nanoseconds.
    pub duration_ns: i64,
    /// The part of it until all threads had stopped, in nanoseconds.
    pub suspend_ns: i64,
}

impl Pause {
    /// When all threads ran again.
    pub fn end_ns(&self) -> i64 {
        self.start_ns.saturating_add(self.duration_ns)
    }
}

/// The pauses of a process.
#[derive(Debug, Default)]
struct OfProcess {
    all: Vec<Pause>,
    /// Their times in order, without what an earlier one has.
    apart: Vec<(i64, i64)>,
}

/// The pauses of a recording, by process.
#[derive(Debug, Default)]
pub struct Pauses {
    processes: BTreeMap<u64, OfProcess>,
    count: usize,
}

impl Pauses {
    /// All pauses of a recording; none when it lacks the table. Fails when they do not fit into memory.
    pub fn read(recording: &Recording<'_>) -> Result<Pauses> {
        let mut pauses = Pauses::default();
        if recording.has::<Stop<'_>>() {
            each_row::<Stop<'_>>(recording, ROW_STORED, |stop| {
                pauses.add(&stop);
                Ok(())
            })?;
        }
        pauses.finish();
        Ok(pauses)
    }

    /// Adds a stop, if it is a pause.
    pub fn add(&mut self, stop: &Stop<'_>) {
        if let Some(pause) = stop.pause() {
            self.processes.entry(pause.process_id).or_default().all.push(pause);
            self.count += 1;
        }
    }

    /// All stops were added.
    pub fn finish(&mut self) {
        for process in self.processes.values_mut() {
            process.all.sort_by_key(|pause| (pause.start_ns, pause.duration_ns, pause.gc_id));
            let mut until = i64::MIN;
            for pause in &process.all {
                let (from, to) = (pause.start_ns.max(until), pause.end_ns());
                if from < to {
                    process.apart.push((from, to));
                    until = to;
                }
            }
        }
    }

    /// The number of pauses.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Processes that have pauses.
    pub fn processes(&self) -> impl Iterator<Item = u64> {
        self.processes.keys().copied()
    }

    /// The pauses of a process, in the order in which they began.
    pub fn of(&self, process_id: u64) -> &[Pause] {
        self.processes.get(&process_id).map_or(&[], |process| &process.all)
    }

    /// Their times in order, without what an earlier one has: starts and ends.
    pub fn apart(&self, process_id: u64) -> &[(i64, i64)] {
        self.processes.get(&process_id).map_or(&[], |process| &process.apart)
    }

    /// The pauses of all processes.
    pub fn all(&self) -> impl Iterator<Item = &Pause> {
        self.processes.values().flat_map(|process| &process.all)
    }

    /// The longest of some; of several as long the one that began first.
    pub fn longest<'p>(pauses: impl IntoIterator<Item = &'p Pause>) -> Option<&'p Pause> {
        pauses.into_iter().min_by_key(|pause| (std::cmp::Reverse(pause.duration_ns), pause.start_ns))
    }

    /// Nanoseconds of a time of a process in which its threads stood still.
    pub fn within_ns(&self, process_id: u64, start_ns: i64, end_ns: i64) -> i64 {
        let apart = self.apart(process_id);
        let first = apart.partition_point(|(_, to)| *to <= start_ns);
        let near = apart.get(first..).unwrap_or_default().iter().take_while(|(from, _)| *from < end_ns);
        near.map(|(from, to)| (*to).min(end_ns).saturating_sub((*from).max(start_ns))).sum()
    }
}

/// Whether the recording would have pauses if there had been any, so that none means 0.
pub fn are_recorded(recording: &Recording<'_>) -> Result<bool> {
    Ok(is_recorded(&metrics(recording)?, "gc.pause.total"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(rows: &[(u64, i64, i64, &str)]) -> Pauses {
        let mut pauses = Pauses::default();
        for (process_id, start_ts_ns, duration_ns, kind) in rows {
            pauses.add(&Stop {
                process_id: *process_id,
                gc_id: 1,
                start_ts_ns: *start_ts_ns,
                duration_ns: *duration_ns,
                suspend_ns: 0,
                kind,
                reason: None,
            });
        }
        pauses.finish();
        pauses
    }

    #[test]
    fn a_time_has_the_pauses_of_its_process_each_moment_once() {
        let pauses = pauses(&[
            (7, 100, 50, "gc"),
            (7, 0, 1000, "other"),
            (8, 0, 1000, "gc"),
            // Of another runtime of the process.
            (7, 120, 60, "gc"),
            (7, 130, 10, "gc"),
            (7, 300, 10, "gc"),
        ]);
        let within = |start, end| pauses.within_ns(7, start, end);
        assert_eq!(within(0, 1000), 80 + 10);
        assert_eq!((within(0, 100), within(110, 140), within(140, 305), within(180, 300)), (0, 30, 45, 0));
        assert_eq!((pauses.within_ns(8, 500, 600), pauses.within_ns(9, 0, 1000)), (100, 0));
        assert_eq!(Pauses::longest(pauses.of(7)).map(|pause| pause.start_ns), Some(120));
        assert_eq!(Pauses::longest(pauses.all()).map(|pause| pause.process_id), Some(8));
    }
}
