//! Fetches the next recordings from stores while those before them are converted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use tracequet_dataset::error::Result;
use tracequet_trace::source::RecordingPath;

use super::fetches::Fetches;

/// A recording that is wanted now.
#[derive(Debug)]
pub(crate) enum Came {
    /// A file of this machine: the recording as it is, or a copy of an object.
    Here(RecordingPath),
    /// An object that is what it was when its tag was the one that is known.
    Same,
}

enum Slot {
    /// The fetch was not begun.
    Waiting,
    Begun,
    Ready(Result<Came>),
    Taken,
}

struct AheadState {
    /// One for each recording that has an address.
    slots: Vec<Slot>,
    /// The first that was not begun.
    next: usize,
    /// The number of fetches that are begun and not taken.
    held: usize,
}

/// The recordings of a batch. Of those with an address, at most as many as there are jobs are on this machine before
/// they are wanted.
pub(crate) struct Ahead<'b> {
    recordings: &'b [(usize, RecordingPath)],
    /// Which of them have an address, in their order.
    remote: Vec<usize>,
    fetches: &'b Fetches,
    state: Mutex<AheadState>,
    changed: Condvar,
    most: usize,
    /// Threads that fetch.
    threads: AtomicUsize,
}

impl<'b> Ahead<'b> {
    pub(crate) fn new(recordings: &'b [(usize, RecordingPath)], fetches: &'b Fetches, jobs: usize) -> Ahead<'b> {
        let has_address = |index: &usize| recordings.get(*index).is_some_and(|(_, r)| r.address().is_some());
        let remote: Vec<usize> = (0..recordings.len()).filter(has_address).collect();
        let slots = remote.iter().map(|_| Slot::Waiting).collect();
        Ahead {
            recordings,
            remote,
            fetches,
            state: Mutex::new(AheadState { slots, next: 0, held: 0 }),
            changed: Condvar::new(),
            most: jobs.max(1),
            threads: AtomicUsize::new(0),
        }
    }

    /// The number of threads that are worth it.
    pub(crate) fn threads(&self) -> usize {
        self.most.min(self.remote.len())
    }

    /// Says that there will be a thread that calls [`Ahead::work`]. Without any, each recording is fetched when it is
    /// wanted.
    pub(crate) fn add_thread(&self) {
        self.threads.fetch_add(1, Ordering::AcqRel);
    }

    /// Says that it could not be started.
    pub(crate) fn remove_thread(&self) {
        self.threads.fetch_sub(1, Ordering::AcqRel);
    }

    /// Fetches one recording after the other, until there is none left or it is stopped. `known` is the tag of what the
    /// dataset has of a recording.
    pub(crate) fn work(&self, known: &(dyn Fn(&RecordingPath) -> Option<String> + Sync)) {
        while let Some(place) = self.begin() {
            let index = self.remote.get(place).copied().unwrap_or_default();
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.fetch(index, known)));
            let came =
                caught.unwrap_or_else(|_| Err(tracequet_dataset::error::Error::Internal("fetching panicked".into())));
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(slot) = state.slots.get_mut(place) {
                *slot = Slot::Ready(came);
            }
            self.changed.notify_all();
        }
    }

    /// The recording, when it is here. Called once for each.
    pub(crate) fn take(&self, index: usize, known: &(dyn Fn(&RecordingPath) -> Option<String> + Sync)) -> Result<Came> {
        let Ok(place) = self.remote.binary_search(&index) else {
            return Ok(Came::Here(self.recording(index)));
        };
        if self.threads.load(Ordering::Acquire) == 0 {
            return self.fetch(index, known);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(slot) = state.slots.get_mut(place)
                && matches!(slot, Slot::Ready(_))
                && let Slot::Ready(came) = std::mem::replace(slot, Slot::Taken)
            {
                state.held -= 1;
                self.changed.notify_all();
                return came;
            }
            // The threads that fetch have ended without it.
            if self.fetches.is_stopped() && state.slots.get(place).is_some_and(|slot| matches!(slot, Slot::Waiting)) {
                drop(state);
                return self.fetch(index, known);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the threads that fetch, in the middle of what they do.
    pub(crate) fn stop(&self) {
        // Under the lock: who looks at it before waiting must not miss it.
        let _state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.fetches.stop();
        self.changed.notify_all();
    }

    /// The next one to fetch, when there is room for it.
    fn begin(&self) -> Option<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.fetches.is_stopped() {
            let place = state.next;
            state.slots.get(place)?;
            if state.held < self.most {
                state.next += 1;
                state.held += 1;
                if let Some(slot) = state.slots.get_mut(place) {
                    *slot = Slot::Begun;
                }
                return Some(place);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    fn fetch(&self, index: usize, known: &(dyn Fn(&RecordingPath) -> Option<String> + Sync)) -> Result<Came> {
        let recording = self.recording(index);
        let Some(address) = recording.address() else { return Ok(Came::Here(recording)) };
        let copy = self.fetches.fetch(&address?, known(&recording).as_deref())?;
        Ok(copy.map_or(Came::Same, |copy| Came::Here(RecordingPath::of_copy(copy))))
    }

    fn recording(&self, index: usize) -> RecordingPath {
        self.recordings.get(index).map_or_else(|| RecordingPath::of_file("".as_ref()), |(_, r)| r.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Addresses of nothing: without the feature all of them fail at once, with it they have a scheme that is refused.
    fn recordings(count: usize) -> Vec<(usize, RecordingPath)> {
        let name = |index: usize| match index % 3 {
            0 => format!("{index}.nettrace"),
            _ => format!("https://user:secret@host/{index}.nettrace"),
        };
        (0..count).map(|index| (index, RecordingPath::of_file(Path::new(&name(index))))).collect()
    }

    #[test]
    fn each_is_taken_once_whoever_is_faster() {
        let recordings = recordings(100);
        for jobs in [1, 3, 200] {
            let fetches = Fetches::default();
            let ahead = Ahead::new(&recordings, &fetches, jobs);
            let none = |_: &RecordingPath| None;
            std::thread::scope(|scope| {
                for _ in 0..ahead.threads() {
                    ahead.add_thread();
                    scope.spawn(|| ahead.work(&none));
                }
                for index in 0..recordings.len() {
                    let came = ahead.take(index, &none);
                    assert_eq!(came.is_ok(), index % 3 == 0, "{index}");
                    let held = ahead.state.lock().unwrap().held;
                    assert!(held <= jobs, "{held}");
                }
                ahead.stop();
            });
        }
    }

    #[test]
    fn stopping_ends_those_who_wait_for_room() {
        let recordings = recordings(100);
        let fetches = Fetches::default();
        let ahead = Ahead::new(&recordings, &fetches, 2);
        std::thread::scope(|scope| {
            ahead.add_thread();
            let fetching = scope.spawn(|| ahead.work(&|_| None));
            while ahead.state.lock().unwrap().held < 2 {
                std::thread::yield_now();
            }
            ahead.stop();
            fetching.join().unwrap();
            assert!(ahead.take(99 - 2, &|_| None).is_err(), "fetched by who wants it");
        });
    }
}
