//! The two versions of a callback: the second is called first, and the first right after it on the same thread, with
//! the same rows and 32-bit lengths.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::callback_collections::CallbackGcTracker;
use super::lengths::{CLAMP, tag};
use crate::normalize::callbacks::call::Call;
use crate::normalize::fact::LengthKind;

/// A second version whose first may follow.
enum Second {
    Surviving(Vec<[u64; 2]>),
    Moved(Vec<[u64; 3]>),
    Roots(Vec<u64>),
}

/// What waits, by thread.
#[derive(Default)]
pub struct Pairs {
    waiting: HashMap<u32, Second, RandomState>,
    /// Callbacks that both versions tell of.
    pub paired: u64,
}

impl Second {
    fn put(self, kind: LengthKind, collections: &mut CallbackGcTracker, ts_ns: i64) {
        match self {
            Second::Surviving(rows) => {
                let rows = rows.into_iter().map(|[start, length]| [start, tag(length, kind)]);
                collections.innermost(ts_ns).ranges.survived(rows);
            }
            Second::Moved(rows) => {
                let rows = rows.into_iter().map(|[old, new, length]| [old, new, tag(length, kind)]);
                collections.innermost(ts_ns).ranges.moved(rows);
            }
            Second::Roots(_) => {}
        }
    }
}

impl Pairs {
    /// The thread goes on with something else: its second version stays alone.
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
        for (_, second) in self.waiting.drain() {
            second.put(LengthKind::Exact, collections, ts_ns);
        }
    }

    fn wait(&mut self, call: &Call<'_>, second: Second, collections: &mut CallbackGcTracker, ts_ns: i64) {
        if call.alone {
            second.put(LengthKind::Exact, collections, ts_ns);
        } else {
            self.waiting.insert(call.thread, second);
        }
    }

    /// SurvivingReferences2.
    pub fn surviving2(
        &mut self,
        call: &Call<'_>,
        rows: impl Iterator<Item = [u64; 2]>,
        collections: &mut CallbackGcTracker,
        ts_ns: i64,
    ) {
        self.wait(call, Second::Surviving(rows.collect()), collections, ts_ns);
    }

    /// MovedReferences2.
    pub fn moved2(
        &mut self,
        call: &Call<'_>,
        rows: impl Iterator<Item = [u64; 3]>,
        collections: &mut CallbackGcTracker,
        ts_ns: i64,
    ) {
        self.wait(call, Second::Moved(rows.collect()), collections, ts_ns);
    }

    /// RootReferences2: its rows are facts already, only the objects are kept.
    pub fn roots2(&mut self, call: &Call<'_>, objects: impl Iterator<Item = u64>) {
        if !call.alone {
            self.waiting.insert(call.thread, Second::Roots(objects.collect()));
        }
    }

    /// Takes up what waits on the thread, if it is `fits`.
    fn take(
        &mut self,
        thread: u32,
        collections: &mut CallbackGcTracker,
        ts_ns: i64,
        fits: fn(&Second) -> bool,
    ) -> Option<Second> {
        let second = self.waiting.remove(&thread)?;
        if fits(&second) {
            return Some(second);
        }
        second.put(LengthKind::Exact, collections, ts_ns);
        None
    }

    fn settle(
        &mut self,
        second: Second,
        agrees: bool,
        collections: &mut CallbackGcTracker,
        ts_ns: i64,
    ) -> Option<bool> {
        self.paired += u64::from(agrees);
        second.put(if agrees { LengthKind::Paired } else { LengthKind::Exact }, collections, ts_ns);
        Some(agrees)
    }

    /// SurvivingReferences: whether it agrees with its second version; `None` when there is none.
    pub fn surviving1(
        &mut self,
        thread: u32,
        rows: impl Iterator<Item = [u64; 2]>,
        collections: &mut CallbackGcTracker,
        ts_ns: i64,
    ) -> Option<bool> {
        let second = self.take(thread, collections, ts_ns, |s| matches!(s, Second::Surviving(_)))?;
        let agrees = match &second {
            Second::Surviving(known) => rows.eq(known.iter().map(|[start, length]| [*start, (*length).min(CLAMP)])),
            _ => false,
        };
        self.settle(second, agrees, collections, ts_ns)
    }

    /// MovedReferences, in the same way.
    pub fn moved1(
        &mut self,
        thread: u32,
        rows: impl Iterator<Item = [u64; 3]>,
        collections: &mut CallbackGcTracker,
        ts_ns: i64,
    ) -> Option<bool> {
        let second = self.take(thread, collections, ts_ns, |s| matches!(s, Second::Moved(_)))?;
        let agrees = match &second {
            Second::Moved(known) => rows.eq(known.iter().map(|[old, new, length]| [*old, *new, (*length).min(CLAMP)])),
            _ => false,
        };
        self.settle(second, agrees, collections, ts_ns)
    }

    /// RootReferences, in the same way.
    pub fn roots1(
        &mut self,
        thread: u32,
        objects: &[[u64; 1]],
        collections: &mut CallbackGcTracker,
        ts_ns: i64,
    ) -> Option<bool> {
        let second = self.take(thread, collections, ts_ns, |s| matches!(s, Second::Roots(_)))?;
        let agrees = match &second {
            Second::Roots(known) => objects.iter().map(|[object]| *object).eq(known.iter().copied()),
            _ => false,
        };
        self.settle(second, agrees, collections, ts_ns)
    }
}
