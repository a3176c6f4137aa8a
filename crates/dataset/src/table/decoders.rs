//! The threads that make rows of events, a batch at a time, and the order in which the batches come back.

use crate::prelude::*;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use arrow_array::ArrayRef;
use tracequet_trace::time::Clock;

use super::event_layout::{EventLayout, Mapping};
use super::event_rows::EventRows;
use super::undecoded::{NotExact, Undecoded};

/// Batches that may be in the hands of the threads. The oldest is taken back, and waited for, when there are more: by
/// their number and never by which is ready, so that the order of batches does not depend on timing.
const ON_THE_WAY: usize = 4;

/// Bytes of these batches together. A larger batch is waited for at once.
const MAX_BYTES: usize = 4 << 20;

/// Threads at most. On recordings of many small events, decoding takes about as long as the rest of the reading
/// thread's work.
const MAX_THREADS: usize = 2;

/// Batches of fewer rows and bytes are decoded at once: to hand them over takes longer.
const FEW_ROWS: usize = 1 << 10;
const FEW_BYTES: usize = 128 << 10;

/// A batch of events of one table, with all that is needed to decode it.
pub(super) struct Batch {
    /// The table's place among the payload tables.
    pub(super) slot: usize,
    pub(super) layout: Arc<EventLayout>,
    pub(super) mappings: Arc<Vec<Arc<Mapping>>>,
    pub(super) events: Undecoded,
}

/// A batch of rows.
pub(super) struct DecodedBatch {
    pub(super) slot: usize,
    pub(super) arrays: Vec<ArrayRef>,
    pub(super) row_count: usize,
    pub(super) not_exact: Vec<NotExact>,
}

/// The threads, and the batches on their way.
pub(super) struct Decoders {
    clock: Clock,
    threads: Vec<Decoder>,
    /// Threads that may be started.
    left: usize,
    /// The thread that gets the next batch.
    next: usize,
    /// With the bytes of each.
    on_the_way: VecDeque<(usize, OnTheWay)>,
    bytes: usize,
}

struct Decoder {
    batches: Sender<Batch>,
    decoded: Receiver<DecodedBatch>,
    thread: JoinHandle<()>,
}

enum OnTheWay {
    /// Decoded at once.
    Here(Box<DecodedBatch>),
    /// The next one that this thread gives back.
    With(usize),
}

impl Batch {
    fn decode(self, clock: &Clock) -> DecodedBatch {
        let row_count = self.events.len();
        let mut rows = EventRows::new(&self.layout);
        let not_exact = self.events.decode(&mut rows, &self.layout, &self.mappings, clock);
        DecodedBatch { slot: self.slot, arrays: rows.finish(), row_count, not_exact }
    }
}

impl Decoders {
    /// Threads are started when there is something for them.
    pub(super) fn new(clock: Clock) -> Decoders {
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        let left = (processors / 2).min(MAX_THREADS);
        Decoders { clock, threads: Vec::new(), left, next: 0, on_the_way: VecDeque::new(), bytes: 0 }
    }

    /// Begins to decode a batch.
    pub(super) fn decode(&mut self, batch: Batch) {
        let bytes = batch.events.bytes();
        let is_small = batch.events.len() < FEW_ROWS && bytes < FEW_BYTES;
        let thread = if is_small { None } else { self.thread() };
        let sent = match thread.and_then(|thread| Some((thread, self.threads.get(thread)?))) {
            Some((thread, decoder)) => decoder.batches.send(batch).map(|()| thread).map_err(|back| Box::new(back.0)),
            None => Err(Box::new(batch)),
        };
        let on_the_way = match sent {
            Ok(thread) => OnTheWay::With(thread),
            Err(batch) => OnTheWay::Here(Box::new(batch.decode(&self.clock))),
        };
        self.bytes = self.bytes.saturating_add(bytes);
        self.on_the_way.push_back((bytes, on_the_way));
    }

    /// Whether batches have to be taken before more are decoded.
    pub(super) fn is_full(&self) -> bool {
        self.on_the_way.len() > ON_THE_WAY || self.bytes > MAX_BYTES
    }

    /// The next decoded batch; waits until it is ready. `None` when none is on its way.
    pub(super) fn take(&mut self) -> Result<Option<DecodedBatch>> {
        let Some((bytes, next)) = self.on_the_way.pop_front() else { return Ok(None) };
        self.bytes -= bytes.min(self.bytes);
        match next {
            OnTheWay::Here(decoded) => Ok(Some(*decoded)),
            OnTheWay::With(thread) => {
                let decoded = self.threads.get(thread).and_then(|thread| thread.decoded.recv().ok());
                decoded.map(Some).ok_or_else(|| Error::Internal("a decoding thread panicked".into()))
            }
        }
    }

    /// Chooses the thread for the next batch, and starts it if it was not started yet. `None` on a machine with one
    /// processor.
    fn thread(&mut self) -> Option<usize> {
        if self.left > 0 {
            self.left -= 1;
            self.start();
        }
        let thread = self.next;
        self.next = (thread + 1) % self.threads.len().max(1);
        (thread < self.threads.len()).then_some(thread)
    }

    fn start(&mut self) {
        let ((batches, queue), (done, decoded), clock) = (channel::<Batch>(), channel(), self.clock);
        let work = move || {
            for batch in queue {
                if done.send(batch.decode(&clock)).is_err() {
                    break;
                }
            }
        };
        let named = std::thread::Builder::new().name(format!("decode-{}", self.threads.len()));
        if let Ok(thread) = named.spawn(work) {
            self.threads.push(Decoder { batches, decoded, thread });
        }
    }
}

impl Drop for Decoders {
    fn drop(&mut self) {
        for Decoder { batches, decoded, thread } in self.threads.drain(..) {
            drop((batches, decoded));
            // A panic was reported when its batch did not come back.
            let _ = thread.join();
        }
    }
}
