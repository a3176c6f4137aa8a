//! The two versions of a callback: the second is called first, and the first right after it on the same thread, with
//! the same rows and 32-bit lengths. A call with many rows is several records of one version, one after the other.

use super::callback_collections::CallbackGcTracker;
use super::lengths::{CLAMP, tag};
use super::ranges::Ranges;
use crate::callbacks::call::Call;
use crate::fact::LengthKind;
use crate::prelude::*;

/// The meaning of rows: where memory was, where it is, and its length. What survives in place is in one place; a root is an
/// object without a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Surviving,
    Moved,
    Roots,
}

impl Kind {
    /// Hands rows on, whose lengths are tagged.
    pub fn put(self, rows: impl Iterator<Item = [u64; 3]>, ranges: &mut Ranges) {
        match self {
            Kind::Surviving => ranges.survived(rows.map(|[_, start, length]| [start, length])),
            Kind::Moved => ranges.moved(rows),
            // Roots are facts already.
            Kind::Roots => {}
        }
    }
}

/// A second version whose first may follow.
struct Second {
    kind: Kind,
    rows: Vec<[u64; 3]>,
    /// More rows of this call follow.
    continues: bool,
    failed: bool,
    /// The number of rows of the first version so far, and whether they agree.
    seen: usize,
    agrees: bool,
}

impl Second {
    fn put(self, known: LengthKind, collections: &mut CallbackGcTracker, ts_ns: i64) {
        if self.kind != Kind::Roots {
            let rows = self.rows.into_iter().map(|[old, new, length]| [old, new, tag(length, known)]);
            self.kind.put(rows, &mut collections.innermost(ts_ns).ranges);
        }
    }
}

/// Events that wait for their other version, by thread.
#[derive(Default)]
pub struct Pairs {
    waiting: Map<u32, Second>,
    /// Callbacks recorded in both versions.
    pub paired: u64,
    /// First versions after a second that failed.
    pub after_failure: u64,
}

impl Pairs {
    /// The thread continues with something else: its second version stays alone.
    #[inline]
    pub fn flush(&mut self, thread: u32, collections: &mut CallbackGcTracker, ts_ns: i64) {
        if !self.waiting.is_empty()
            && let Some(second) = self.waiting.remove(&thread)
        {
            second.put(LengthKind::Exact, collections, ts_ns);
        }
    }

    /// A collection starts or ends: nothing waits any longer.
    pub fn flush_all(&mut self, collections: &mut CallbackGcTracker, ts_ns: i64) {
        // In the order of threads, so that a recording gives the same rows each time.
        let mut waiting: Vec<_> = self.waiting.drain().collect();
        waiting.sort_unstable_by_key(|(thread, _)| *thread);
        for (_, second) in waiting {
            second.put(LengthKind::Exact, collections, ts_ns);
        }
    }

    /// Rows of a second version.
    pub fn second(
        &mut self,
        call: &Call<'_>,
        kind: Kind,
        rows: impl Iterator<Item = [u64; 3]>,
        collections: &mut CallbackGcTracker,
    ) {
        let (continues, failed) = (call.continues, call.failed);
        let mut second = Second { kind, rows: rows.collect(), continues, failed, seen: 0, agrees: true };
        if call.alone {
            return second.put(LengthKind::Exact, collections, call.ts_ns);
        }
        let known = self.waiting.get_mut(&call.thread);
        if let Some(known) = known.filter(|known| known.continues && known.kind == kind) {
            known.rows.append(&mut second.rows);
            known.continues = continues;
            return;
        }
        self.flush(call.thread, collections, call.ts_ns);
        self.waiting.insert(call.thread, second);
    }

    /// Rows of a first version: whether they agree with the second one before them, `None` where there was none.
    pub fn first(
        &mut self,
        call: &Call<'_>,
        kind: Kind,
        rows: impl Iterator<Item = [u64; 3]>,
        collections: &mut CallbackGcTracker,
    ) -> Option<bool> {
        let second = self.waiting.get_mut(&call.thread)?;
        let is_its = second.kind == kind;
        let mut known =
            second.rows.iter().skip(second.seen).map(|[old, new, length]| [*old, *new, (*length).min(CLAMP)]);
        let (count, agrees) =
            rows.fold((0, is_its), |(count, agrees), row| (count + 1, agrees && known.next() == Some(row)));
        // The first version is that of another callback, as it should be behind a second that failed.
        if !is_its || second.failed && second.seen == 0 && !agrees {
            self.flush(call.thread, collections, call.ts_ns);
            return None;
        }
        second.seen += count;
        second.agrees &= agrees;
        if call.continues {
            return Some(true);
        }
        let second = self.waiting.remove(&call.thread)?;
        let agrees = second.agrees && second.seen == second.rows.len() && !second.continues;
        self.after_failure += u64::from(second.failed);
        self.paired += u64::from(agrees);
        let known = if agrees { LengthKind::Paired } else { LengthKind::Exact };
        second.put(known, collections, call.ts_ns);
        Some(agrees)
    }
}
