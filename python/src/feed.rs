//! Where batches come from: a thread that reads recordings, or the files of a dataset. Nothing here knows Python.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tracequet::dataset::read::{MergedBatches, with_columns};
use tracequet::{Convert, Summary};
use tracequet::{Error, Result};

/// Batches that wait for the reader; a batch has some thousands of rows.
const WAITING: usize = 4;

/// The next of a feed.
pub enum Next {
    /// Rows.
    Batch(RecordBatch),
    /// Nothing yet.
    Nothing,
    /// No more.
    End,
}

/// Batches one after the other.
pub trait Feed: Send {
    /// The next batch, for which it waits for this time at most.
    fn next(&mut self, patience: Duration) -> Result<Next>;

    /// Bytes read, and bytes in all (0: not known).
    fn progress(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// Summaries that readings of recordings have reported at their end.
pub type Summaries = Arc<Mutex<Vec<Summary>>>;

enum Message {
    Batch(RecordBatch),
    End(Result<Option<Summary>>),
}

/// State that the reading thread and its feed share.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    position: AtomicU64,
    total: AtomicU64,
}

/// One table of recordings, read by a thread that starts when the first batch is asked for, and ends with the feed.
pub struct Reading {
    start: Option<(Convert, String)>,
    schema: SchemaRef,
    receiver: Option<Receiver<Message>>,
    shared: Arc<Shared>,
    summaries: Summaries,
}

impl Reading {
    /// Rows of `table`, with the columns of `schema`. The request selects it.
    pub fn new(request: Convert, table: &str, schema: SchemaRef, summaries: Summaries) -> Reading {
        let start = Some((request, table.to_owned()));
        Reading { start, schema, receiver: None, shared: Arc::default(), summaries }
    }
}

impl Feed for Reading {
    fn next(&mut self, patience: Duration) -> Result<Next> {
        if let Some((request, table)) = self.start.take() {
            let (sender, receiver) = sync_channel(WAITING);
            let shared = self.shared.clone();
            let run = move || read(&request, &table, &shared, &sender);
            let spawned = std::thread::Builder::new().name("tracequet".into()).spawn(run);
            spawned.map_err(Error::io("a thread"))?;
            self.receiver = Some(receiver);
        }
        let Some(receiver) = &self.receiver else { return Ok(Next::End) };
        match receiver.recv_timeout(patience) {
            Ok(Message::Batch(batch)) => with_columns(&batch, &self.schema).map(Next::Batch),
            Ok(Message::End(end)) => {
                self.receiver = None;
                if let Some(summary) = end? {
                    self.summaries.lock().unwrap_or_else(PoisonError::into_inner).push(summary);
                }
                Ok(Next::End)
            }
            Err(RecvTimeoutError::Timeout) => Ok(Next::Nothing),
            Err(RecvTimeoutError::Disconnected) => {
                self.receiver = None;
                Err(Error::Internal("the thread that reads died".into()))
            }
        }
    }

    fn progress(&self) -> (u64, u64) {
        (self.shared.position.load(Ordering::Relaxed), self.shared.total.load(Ordering::Relaxed))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

/// Reads recordings and sends the rows of one table, until the receiver ends.
fn read(request: &Convert, table: &str, shared: &Shared, sender: &SyncSender<Message>) {
    let mut receive = |rows: tracequet::Rows<'_>| {
        let is_wanted = rows.table == table && rows.rows.num_rows() > 0;
        if is_wanted && sender.send(Message::Batch(rows.rows)).is_err() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    let mut progress = |progress: tracequet::Progress| {
        shared.position.store(progress.position, Ordering::Relaxed);
        shared.total.store(progress.total.unwrap_or_default(), Ordering::Relaxed);
        !shared.stop.load(Ordering::Relaxed)
    };
    let end = tracequet::batches(request, &mut receive, &mut progress);
    // Whoever is gone does not want to know.
    sender.send(Message::End(end)).ok();
}

impl Feed for MergedBatches {
    fn next(&mut self, _: Duration) -> Result<Next> {
        Ok(Iterator::next(self).transpose()?.map_or(Next::End, Next::Batch))
    }
}
