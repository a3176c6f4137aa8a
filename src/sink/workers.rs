//! The threads that encode, and the bound on what waits for them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::error::{Error, Result};

/// Bytes of batches that may wait for the workers or be in their hands.
const IN_FLIGHT: usize = 16 << 20;

/// A bundle of threads, each of which does its jobs in the order in which they were submitted to it.
#[derive(Debug)]
pub(super) struct Workers {
    workers: Vec<Worker>,
    state: Arc<State>,
}

#[derive(Debug)]
struct Worker {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

struct Job {
    work: Box<dyn FnOnce() -> Result<()> + Send>,
    /// Held until the work is done.
    _ticket: Option<Arc<Ticket>>,
}

/// What the caller's thread and the workers share.
#[derive(Debug, Default)]
struct State {
    /// Set by the first failure, or when nobody wants the results any more: what is still queued is dropped.
    stopped: AtomicBool,
    failure: Mutex<Option<Error>>,
    in_flight: Mutex<usize>,
    space: Condvar,
}

/// A share of the bytes that may be in flight. All jobs of one batch hold it; the last to end gives it back.
#[derive(Debug)]
pub(super) struct Ticket {
    bytes: usize,
    state: Arc<State>,
}

impl Workers {
    /// Starts `count` threads, or as many as the system lets it have. None at all is an error.
    pub(super) fn start(count: usize) -> std::io::Result<Workers> {
        let state = Arc::new(State::default());
        let mut workers = Workers { workers: Vec::new(), state: state.clone() };
        for index in 0..count.max(1) {
            let (jobs, queue) = channel();
            let state = state.clone();
            let named = std::thread::Builder::new().name(format!("sink-{index}"));
            match named.spawn(move || work_through(&queue, &state)) {
                Ok(thread) => workers.workers.push(Worker { jobs, thread }),
                Err(error) if index == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(workers)
    }

    /// How many threads there are.
    pub(super) fn count(&self) -> usize {
        self.workers.len()
    }

    /// Waits until `bytes` more may be in flight. A batch that is larger than the limit waits until nothing else is in flight.
    pub(super) fn admit(&self, bytes: usize) -> Arc<Ticket> {
        let mut in_flight = lock(&self.state.in_flight);
        while *in_flight > 0 && *in_flight + bytes > IN_FLIGHT {
            in_flight = self.state.space.wait(in_flight).unwrap_or_else(PoisonError::into_inner);
        }
        *in_flight += bytes;
        Arc::new(Ticket { bytes, state: self.state.clone() })
    }

    /// Queues work for one of the threads.
    pub(super) fn submit(
        &self,
        worker: usize,
        ticket: Option<Arc<Ticket>>,
        work: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let job = Job { work: Box::new(work), _ticket: ticket };
        match self.workers.get(worker) {
            Some(worker) if worker.jobs.send(job).is_ok() => Ok(()),
            _ => Err(Error::Internal("an encoding thread is gone".into())),
        }
    }

    /// Waits until everything submitted so far is done.
    pub(super) fn wait(&self) -> Result<()> {
        let (done, all_done) = channel::<()>();
        for worker in 0..self.count() {
            let done = done.clone();
            self.submit(worker, None, move || {
                drop(done);
                Ok(())
            })?;
        }
        drop(done);
        // Ends when the last of the senders is gone, whether its job was run or dropped.
        for () in all_done {}
        self.check()
    }

    /// The first failure of a worker, once; after that, that there was one.
    pub(super) fn check(&self) -> Result<()> {
        if !self.state.stopped.load(Ordering::Acquire) {
            return Ok(());
        }
        let failure = lock(&self.state.failure).take();
        Err(failure.unwrap_or_else(|| Error::Internal("this dataset has failed before".into())))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::Release);
        for Worker { jobs, thread } in self.workers.drain(..) {
            drop(jobs);
            // A job that panicked was caught and reported.
            let _ = thread.join();
        }
    }
}

impl Ticket {
    /// How many bytes it is for.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut in_flight = lock(&self.state.in_flight);
        *in_flight = in_flight.saturating_sub(self.bytes);
        self.state.space.notify_one();
    }
}

/// The worker that has been given least.
pub(super) fn least(loads: &[usize]) -> usize {
    loads.iter().enumerate().min_by_key(|(_, load)| **load).map_or(0, |(worker, _)| worker)
}

/// Locks what a panic may have left behind: the failure is reported by other means, and the data is not used again.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work_through(queue: &Receiver<Job>, state: &State) {
    for Job { work, _ticket } in queue {
        if state.stopped.load(Ordering::Acquire) {
            continue;
        }
        // The writers of other crates have panics of their own; one of them must not hang or end the program.
        let outcome = catch_unwind(AssertUnwindSafe(work));
        let outcome = outcome.unwrap_or_else(|_| Err(Error::Internal("an encoding thread panicked".into())));
        if let Err(error) = outcome {
            lock(&state.failure).get_or_insert(error);
            state.stopped.store(true, Ordering::Release);
        }
    }
}
