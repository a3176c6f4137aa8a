//! The threads that encode, and the bound on what waits for them. Where no thread can be made, the writer encodes itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::error::{Error, Result};

/// Bytes of batches that may wait for the workers or be in their hands.
const IN_FLIGHT: usize = 8 << 20;

/// Threads that encode, for one dataset or for several that are written at once. Each thread does its jobs in the order
/// in which they were submitted to it. Dropped, it waits for them.
#[derive(Debug)]
pub struct Encoders {
    threads: Vec<Encoder>,
    budget: Arc<Budget>,
}

#[derive(Debug)]
struct Encoder {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

/// The encoders as one dataset uses them: its jobs fail, stop and are waited for by themselves.
#[derive(Debug)]
pub(super) struct Workers {
    encoders: Arc<Encoders>,
    state: Arc<WorkersState>,
    /// Whether what is small is encoded by the thread that writes the dataset.
    small_here: bool,
    /// Whether a thread was given something since all were waited for.
    has_submitted: AtomicBool,
}

struct Job {
    work: Box<dyn FnOnce() -> Result<()> + Send>,
    /// Of the dataset that submitted it.
    state: Arc<WorkersState>,
    /// Held until the work is done.
    _ticket: Option<Arc<Ticket>>,
}

/// State that the thread which writes a dataset and the encoders share.
#[derive(Debug, Default)]
struct WorkersState {
    /// Set by the first failure, or when the results are not needed any more: queued work is dropped.
    stopped: AtomicBool,
    failure: Mutex<Option<Error>>,
}

/// Bytes in flight, of all datasets together.
#[derive(Debug, Default)]
struct Budget {
    in_flight: Mutex<usize>,
    space: Condvar,
}

/// A share of the bytes that may be in flight. All jobs of one batch hold it; the last to end gives it back.
#[derive(Debug)]
pub(super) struct Ticket {
    /// The number of bytes that it is for.
    pub(super) bytes: usize,
    budget: Arc<Budget>,
}

impl Encoders {
    /// Starts `count` threads, or as many as the system lets it have. Without any, jobs are done by those who submit them.
    pub fn start(count: usize) -> Arc<Encoders> {
        let mut encoders = Encoders { threads: Vec::new(), budget: Arc::default() };
        for index in 0..count.max(1) {
            let (jobs, queue) = channel();
            let named = std::thread::Builder::new().name(format!("sink-{index}"));
            let Ok(thread) = named.spawn(move || work_through(&queue)) else { break };
            encoders.threads.push(Encoder { jobs, thread });
        }
        Arc::new(encoders)
    }
}

impl Drop for Encoders {
    fn drop(&mut self) {
        for Encoder { jobs, thread } in self.threads.drain(..) {
            drop(jobs);
            // A job that panicked was caught and reported.
            let _ = thread.join();
        }
    }
}

impl Workers {
    /// For one dataset.
    pub(super) fn of(encoders: Arc<Encoders>, small_here: bool) -> Workers {
        Workers { encoders, state: Arc::default(), small_here, has_submitted: AtomicBool::new(false) }
    }

    /// Does work that is small: here, or on one of the threads.
    pub(super) fn do_small(
        &self,
        worker: usize,
        ticket: Option<Arc<Ticket>>,
        work: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        if !self.small_here {
            return self.submit(worker, ticket, work);
        }
        self.job(ticket, work).run();
        Ok(())
    }

    /// The threads.
    pub(super) fn encoders(&self) -> Arc<Encoders> {
        self.encoders.clone()
    }

    /// How many queues of jobs there are.
    pub(super) fn count(&self) -> usize {
        self.encoders.threads.len().max(1)
    }

    /// Waits until `bytes` more may be in flight. A batch that is larger than the limit waits until nothing else is in
    /// flight.
    pub(super) fn admit(&self, bytes: usize) -> Arc<Ticket> {
        let budget = &self.encoders.budget;
        let mut in_flight = lock(&budget.in_flight);
        while *in_flight > 0 && *in_flight + bytes > IN_FLIGHT {
            in_flight = budget.space.wait(in_flight).unwrap_or_else(PoisonError::into_inner);
        }
        *in_flight += bytes;
        Arc::new(Ticket { bytes, budget: budget.clone() })
    }

    fn job(&self, ticket: Option<Arc<Ticket>>, work: impl FnOnce() -> Result<()> + Send + 'static) -> Job {
        Job { work: Box::new(work), state: self.state.clone(), _ticket: ticket }
    }

    /// Queues work for one of the threads.
    pub(super) fn submit(
        &self,
        worker: usize,
        ticket: Option<Arc<Ticket>>,
        work: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        if self.encoders.threads.is_empty() {
            self.job(ticket, work).run();
            return Ok(());
        }
        self.has_submitted.store(true, Ordering::Release);
        match self.encoders.threads.get(worker) {
            Some(worker) if worker.jobs.send(self.job(ticket, work)).is_ok() => Ok(()),
            _ => Err(Error::Internal("an encoding thread is gone".into())),
        }
    }

    /// Waits until everything submitted so far is done.
    pub(super) fn wait(&self) -> Result<()> {
        self.drain()?;
        self.check()
    }

    fn drain(&self) -> Result<()> {
        if !self.has_submitted.load(Ordering::Acquire) {
            return Ok(());
        }
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
        self.has_submitted.store(false, Ordering::Release);
        Ok(())
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
        // The dataset's files are closed when its last job is gone. This fails only when the threads are gone, too.
        let _ = self.drain();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut in_flight = lock(&self.budget.in_flight);
        *in_flight = in_flight.saturating_sub(self.bytes);
        self.budget.space.notify_all();
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

fn work_through(queue: &Receiver<Job>) {
    queue.iter().for_each(Job::run);
}

impl Job {
    fn run(self) {
        let Job { work, state, _ticket } = self;
        if state.stopped.load(Ordering::Acquire) {
            return;
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
