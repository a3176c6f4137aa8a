//! The two versions of a callback: the second is called first, and the first right after it on the same thread, with
//! the same rows and 32-bit lengths. A call with many rows is several records of one version, one after the other.

use tracequet_trace::map::Map;

use super::callback_collections::CallbackGcTracker;
use super::lengths::{CLAMP, tag};
use crate::callbacks::call::Call;
use crate::fact::LengthKind;

/// The rows of a second version whose first may follow.
enum Rows {
    Surviving(Vec<[u64; 2]>),
    Moved(Vec<[u64; 3]>),
    Roots(Vec<u64>),
}

struct Second {
    rows: Rows,
    /// More rows of this call follow.
    continues: bool,
    failed: bool,
    /// The number of rows of the first version so far, and whether they agree.
    seen: usize,
    agrees: bool,
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

impl Rows {
    fn put(self, kind: LengthKind, collections: &mut CallbackGcTracker, ts_ns: i64) {
        match self {
            Rows::Surviving(rows) => {
                let rows = rows.into_iter().map(|[start, length]| [start, tag(length, kind)]);
                collections.innermost(ts_ns).ranges.survived(rows);
            }
            Rows::Moved(rows) => {
                let rows = rows.into_iter().map(|[old, new, length]| [old, new, tag(length, kind)]);
                collections.innermost(ts_ns).ranges.moved(rows);
            }
            // Roots are facts already.
            Rows::Roots(_) => {}
        }
    }

    fn len(&self) -> usize {
        match self {
            Rows::Surviving(rows) => rows.len(),
            Rows::Moved(rows) => rows.len(),
            Rows::Roots(rows) => rows.len(),
        }
    }

    /// Adds the rows of another record of the same call. Gives them back when they are of another callback.
    fn append(&mut self, other: Rows) -> Result<(), Rows> {
        match (self, other) {
            (Rows::Surviving(rows), Rows::Surviving(more)) => rows.extend(more),
            (Rows::Moved(rows), Rows::Moved(more)) => rows.extend(more),
            (Rows::Roots(rows), Rows::Roots(more)) => rows.extend(more),
            (_, other) => return Err(other),
        }
        Ok(())
    }
}

impl Pairs {
    /// The thread continues with something else: its second version stays alone.
    #[inline]
    pub fn flush(&mut self, thread: u32, collections: &mut CallbackGcTracker, ts_ns: i64) {
        if !self.waiting.is_empty()
            && let Some(second) = self.waiting.remove(&thread)
        {
            second.rows.put(LengthKind::Exact, collections, ts_ns);
        }
    }

    /// A collection starts or ends: nothing waits any longer.
    pub fn flush_all(&mut self, collections: &mut CallbackGcTracker, ts_ns: i64) {
        // In the order of threads, so that a recording gives the same rows each time.
        let mut waiting: Vec<_> = self.waiting.drain().collect();
        waiting.sort_unstable_by_key(|(thread, _)| *thread);
        for (_, second) in waiting {
            second.rows.put(LengthKind::Exact, collections, ts_ns);
        }
    }

    fn wait(&mut self, call: &Call<'_>, rows: Rows, collections: &mut CallbackGcTracker) {
        if call.alone {
            return rows.put(LengthKind::Exact, collections, call.ts_ns);
        }
        let mut rows = rows;
        if let Some(second) = self.waiting.get_mut(&call.thread).filter(|second| second.continues) {
            match second.rows.append(rows) {
                Ok(()) => return second.continues = call.continues,
                Err(other) => rows = other,
            }
        }
        self.flush(call.thread, collections, call.ts_ns);
        let (continues, failed) = (call.continues, call.failed);
        self.waiting.insert(call.thread, Second { rows, continues, failed, seen: 0, agrees: true });
    }

    /// SurvivingReferences2.
    pub fn surviving2(
        &mut self,
        call: &Call<'_>,
        rows: impl Iterator<Item = [u64; 2]>,
        collections: &mut CallbackGcTracker,
    ) {
        self.wait(call, Rows::Surviving(rows.collect()), collections);
    }

    /// MovedReferences2.
    pub fn moved2(
        &mut self,
        call: &Call<'_>,
        rows: impl Iterator<Item = [u64; 3]>,
        collections: &mut CallbackGcTracker,
    ) {
        self.wait(call, Rows::Moved(rows.collect()), collections);
    }

    /// RootReferences2: its rows are facts already, only the objects are kept.
    pub fn roots2(&mut self, call: &Call<'_>, objects: impl Iterator<Item = u64>, collections: &mut CallbackGcTracker) {
        if !call.alone {
            self.wait(call, Rows::Roots(objects.collect()), collections);
        }
    }

    /// A record of a first version. `compare` looks at the rows of the second from the given one on, and returns how
    /// many rows this record has and whether they agree; `None` when the second is that of another callback.
    fn first(
        &mut self,
        call: &Call<'_>,
        collections: &mut CallbackGcTracker,
        compare: impl FnOnce(&Rows, usize) -> Option<(usize, bool)>,
    ) -> Option<bool> {
        let second = self.waiting.get_mut(&call.thread)?;
        let Some((rows, agrees)) = compare(&second.rows, second.seen) else {
            self.flush(call.thread, collections, call.ts_ns);
            return None;
        };
        if second.failed && second.seen == 0 && !agrees {
            // As it should be: the first version is that of another call.
            self.flush(call.thread, collections, call.ts_ns);
            return None;
        }
        second.seen += rows;
        second.agrees &= agrees;
        if call.continues {
            return Some(true);
        }
        let second = self.waiting.remove(&call.thread)?;
        let agrees = second.agrees && second.seen == second.rows.len() && !second.continues;
        self.after_failure += u64::from(second.failed);
        self.paired += u64::from(agrees);
        let kind = if agrees { LengthKind::Paired } else { LengthKind::Exact };
        second.rows.put(kind, collections, call.ts_ns);
        Some(agrees)
    }

    /// SurvivingReferences: whether it agrees with its second version; `None` when there is none.
    pub fn surviving1(
        &mut self,
        call: &Call<'_>,
        rows: impl Iterator<Item = [u64; 2]>,
        collections: &mut CallbackGcTracker,
    ) -> Option<bool> {
        self.first(call, collections, |second, seen| {
            let Rows::Surviving(known) = second else { return None };
            let known = known.iter().skip(seen).map(|[start, length]| [*start, (*length).min(CLAMP)]);
            Some(compare(rows, known))
        })
    }

    /// MovedReferences, in the same way.
    pub fn moved1(
        &mut self,
        call: &Call<'_>,
        rows: impl Iterator<Item = [u64; 3]>,
        collections: &mut CallbackGcTracker,
    ) -> Option<bool> {
        self.first(call, collections, |second, seen| {
            let Rows::Moved(known) = second else { return None };
            let known = known.iter().skip(seen).map(|[old, new, length]| [*old, *new, (*length).min(CLAMP)]);
            Some(compare(rows, known))
        })
    }

    /// RootReferences, in the same way.
    pub fn roots1(
        &mut self,
        call: &Call<'_>,
        objects: &[[u64; 1]],
        collections: &mut CallbackGcTracker,
    ) -> Option<bool> {
        self.first(call, collections, |second, seen| {
            let Rows::Roots(known) = second else { return None };
            Some(compare(objects.iter().map(|[object]| *object), known.iter().skip(seen).copied()))
        })
    }
}

/// Compares rows: how many there are, and whether they are those that come first in `known`.
fn compare<T: PartialEq>(rows: impl Iterator<Item = T>, mut known: impl Iterator<Item = T>) -> (usize, bool) {
    rows.fold((0, true), |(count, agrees), row| (count + 1, agrees && known.next() == Some(row)))
}
