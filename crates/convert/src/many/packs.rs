//! Small recordings of a batch on their way into the dataset: their rows stay in memory until there are enough of them
//! for a pack.
//!
//! Packs are made of recordings in their order, by the bytes of their rows. So the same recordings make the same packs,
//! in whatever order they are ready.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::sync::{Condvar, Mutex, PoisonError};

use tracequet_dataset::error::Result;
use tracequet_lake::HeldRecording;
use tracequet_lake::Put;

use crate::summary::TableSummary;

/// A pack ends with the recording with which its rows reach this many bytes, or with this many recordings.
const PACK_BYTES: u64 = 128 << 20;
const PACK_RECORDINGS: usize = 1024;
/// While the rows in memory take more bytes than this, only the first input that has not arrived may begin.
const MOST_BYTES: u64 = 192 << 20;

/// The recordings in memory.
#[derive(Debug, Default)]
pub(crate) struct Held {
    state: Mutex<PacksState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PacksState {
    bytes: u64,
    /// All inputs before this one have arrived.
    next: usize,
    stopped: bool,
}

/// The place of an input: in a pack, or apart.
pub(crate) enum Came<T> {
    /// A recording with its rows, the bytes that they take in memory, and what the caller identifies it by.
    Held(Box<HeldRecording>, u64, T),
    /// The recording comes into no pack: it is large, failed, or known already.
    Apart,
}

/// An input, and what became of it.
pub(crate) type Arrival<T> = (usize, Came<T>);

impl Held {
    /// Waits until there is room for the rows of an input. Returns `false` if nothing more is to be done.
    pub(crate) fn enter(&self, input: usize) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while !state.stopped && state.bytes > MOST_BYTES && input != state.next {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.stopped
    }

    /// Nothing more is begun, and nothing waits any more.
    pub(crate) fn stop(&self) {
        self.change(|state| state.stopped = true);
    }

    fn change(&self, change: impl FnOnce(&mut PacksState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

/// The recordings of the next pack.
struct Coming<T> {
    bytes: u64,
    recordings: Vec<HeldRecording>,
    own: Vec<T>,
}

/// Puts recordings into the dataset by `put_pack`, until all `inputs` have arrived. `done` gets the outcome of each
/// recording; the first of a pack comes with the tables that were written. After an error nothing more is put.
pub(crate) fn put<T>(
    inputs: usize,
    held: &Held,
    arrivals: &Receiver<Arrival<T>>,
    put_pack: impl Fn(&[HeldRecording]) -> Result<(Vec<Put>, Vec<TableSummary>)>,
    mut done: impl FnMut(T, Put, Vec<TableSummary>),
) -> Result<()> {
    let mut early: BTreeMap<usize, Came<T>> = BTreeMap::new();
    let mut coming = Coming { bytes: 0, recordings: Vec::new(), own: Vec::new() };
    let mut next = 0;
    while next < inputs {
        // Without a sender the batch was stopped.
        let Ok((input, came)) = arrivals.recv() else { return Ok(()) };
        if let Came::Held(_, bytes, _) = came {
            held.change(|state| state.bytes = state.bytes.saturating_add(bytes));
        }
        early.insert(input, came);
        while let Some(came) = early.remove(&next) {
            next += 1;
            held.change(|state| state.next = next);
            if let Came::Held(recording, bytes, own) = came {
                coming.bytes = coming.bytes.saturating_add(bytes);
                coming.recordings.push(*recording);
                coming.own.push(own);
            }
            let is_full = coming.bytes >= PACK_BYTES || coming.recordings.len() >= PACK_RECORDINGS;
            if coming.recordings.is_empty() || !(is_full || next == inputs) {
                continue;
            }
            let (puts, mut tables) = put_pack(&coming.recordings)?;
            for (own, put) in coming.own.drain(..).zip(puts) {
                done(own, put, std::mem::take(&mut tables));
            }
            coming.recordings.clear();
            let bytes = std::mem::take(&mut coming.bytes);
            held.change(|state| state.bytes = state.bytes.saturating_sub(bytes));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use tracequet_dataset::format::Recorded;
    use tracequet_lake::HeldTables;

    use super::*;

    const MB: u64 = 1 << 20;

    fn came(input: usize, bytes: u64) -> Came<usize> {
        let recorded = Recorded { trace_id: format!("r{input}"), ..Recorded::default() };
        Came::Held(
            Box::new(HeldRecording { recorded, tables: HeldTables::default(), replaced: Vec::new() }),
            bytes,
            input,
        )
    }

    /// The keys of each pack.
    fn packs(arrivals: Vec<Arrival<usize>>) -> Vec<String> {
        let (sender, receiver) = channel();
        let inputs = arrivals.len();
        arrivals.into_iter().for_each(|arrival| sender.send(arrival).unwrap());
        let (packs, held, mut done) = (std::cell::RefCell::new(Vec::new()), Held::default(), Vec::new());
        let put_pack = |recordings: &[HeldRecording]| {
            let keys: Vec<&str> = recordings.iter().map(|one| one.recorded.trace_id.as_str()).collect();
            packs.borrow_mut().push(keys.join(" "));
            Ok((vec![Put::Done; recordings.len()], vec![TableSummary { name: "gc".into(), rows: 1, bytes: 1 }]))
        };
        put(inputs, &held, &receiver, put_pack, |own, _, tables| done.push((own, tables.len()))).unwrap();
        let packs = packs.into_inner();
        assert_eq!(done.iter().map(|(_, tables)| tables).sum::<usize>(), packs.len(), "each table counts once");
        assert_eq!(held.state.lock().unwrap().bytes, 0);
        packs
    }

    #[test]
    fn packs_follow_from_the_order_of_the_inputs_and_their_rows() {
        let sizes = [100, 20, 30, 1, 0, 127, 2, 5];
        let arrival = |input: usize| match sizes[input] {
            0 => (input, Came::Apart),
            bytes => (input, came(input, bytes * MB)),
        };
        let expected = ["r0 r1 r2", "r3 r5", "r6 r7"];
        assert_eq!(packs((0..8).map(arrival).collect()), expected);
        assert_eq!(packs((0..8).rev().map(arrival).collect()), expected);
        assert_eq!(packs([3, 7, 1, 0, 2, 6, 5, 4].map(arrival).into()), expected);
        assert!(packs(vec![(0, Came::Apart)]).is_empty());
    }

    #[test]
    fn only_the_next_one_is_begun_when_much_is_in_memory() {
        let held = Held::default();
        held.change(|state| (state.bytes, state.next) = (MOST_BYTES + 1, 3));
        assert!(held.enter(3));
        std::thread::scope(|scope| {
            let early = scope.spawn(|| held.enter(4));
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!early.is_finished());
            held.change(|state| state.bytes = MOST_BYTES);
            assert!(early.join().unwrap());
            held.change(|state| state.bytes = MOST_BYTES + 1);
            let early = scope.spawn(|| held.enter(4));
            held.stop();
            assert!(!early.join().unwrap());
        });
    }
}
