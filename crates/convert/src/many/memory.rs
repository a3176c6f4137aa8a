//! Budgets of the recordings that are converted side by side: the memory that they may need together, and others.

use std::sync::{Condvar, Mutex, PoisonError};

/// The memory that one conversion is taken to need at most, an estimate; large recordings are bounded
/// (docs/ARCHITECTURE.md).
const MOST: u64 = 320 << 20;
/// The memory that a conversion of nothing needs.
const LEAST: u64 = 24 << 20;
/// Bytes for each byte of a recording that is small.
const FOR_EACH_BYTE: u64 = 8;
/// Assumed to be free where the system does not say.
const UNKNOWN: u64 = 2 << 30;

/// One budget of memory for all.
#[derive(Debug)]
pub(crate) struct Memory(Budget);

/// An amount of something that several threads share.
#[derive(Debug)]
pub(crate) struct Budget {
    total: u64,
    taken: Mutex<u64>,
    given_back: Condvar,
}

/// A part of a budget. Dropped, it is given back.
#[derive(Debug)]
pub(crate) struct Share<'b> {
    amount: u64,
    budget: &'b Budget,
}

impl Memory {
    /// A budget in bytes; by default half of the free memory.
    pub(crate) fn new(total: Option<u64>) -> Memory {
        Memory(Budget::new(total.unwrap_or_else(|| free().unwrap_or(UNKNOWN) / 2)))
    }

    /// Waits until there is enough for a recording of this size. One alone always runs.
    pub(crate) fn take(&self, recording_bytes: u64) -> Share<'_> {
        self.0.take(needed(recording_bytes))
    }
}

impl Budget {
    /// This much.
    pub(crate) fn new(total: u64) -> Budget {
        Budget { total, taken: Mutex::new(0), given_back: Condvar::new() }
    }

    /// Waits until this much is left. A recording that is alone gets it however much it is.
    pub(crate) fn take(&self, amount: u64) -> Share<'_> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken > 0 && *taken + amount > self.total {
            taken = self.given_back.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += amount;
        Share { amount, budget: self }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        *self.budget.taken.lock().unwrap_or_else(PoisonError::into_inner) -= self.amount;
        self.budget.given_back.notify_all();
    }
}

fn needed(recording_bytes: u64) -> u64 {
    LEAST.saturating_add(recording_bytes.saturating_mul(FOR_EACH_BYTE)).min(MOST)
}

/// Bytes that programs can still take, where the system says it.
fn free() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_that_do_not_fit_run_one_after_the_other() {
        let memory = Memory::new(Some(MOST));
        let first = memory.take(u64::MAX);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| drop(memory.take(1)));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!second.is_finished());
            drop(first);
        });
        assert_eq!(*memory.0.taken.lock().unwrap(), 0);
    }

    #[test]
    fn one_alone_runs_whatever_it_needs() {
        drop(Memory::new(Some(0)).take(u64::MAX));
    }
}
