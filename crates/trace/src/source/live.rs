//! A live recording: the queue between a callback that must not wait and a reader.
//!
//! ```text
//!  callback --offer--> [ queue, bounded by bytes ] --take--> reader
//!     ^                                                        |
//!  session <------------------- Stop ------------ Ctrl+C, time, a reader that fails
//! ```
//! A full queue drops what comes and counts it. Waiting instead would only move the loss: the system's own buffers
//! would overflow, and a session that is waited for cannot be stopped.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::guid::Guid;

/// Bytes that wait for the reader at most: some seconds of a busy collector.
const MAX_QUEUED: usize = 64 << 20;
/// The memory of a packet beside its bytes.
const PACKET_COST: usize = 64;
/// The time that the reader waits before it looks whether the session has ended, and shows that it lives.
const PATIENCE: Duration = Duration::from_millis(100);

/// Which session of the system to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Name of the session, unique on the machine.
    pub name: String,
    /// The providers to record.
    pub providers: Vec<Provider>,
    /// When to stop; `None`: when asked to.
    pub duration: Option<Duration>,
}

/// A provider, and how much of it is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The provider.
    pub id: ProviderId,
    /// Events with any of these keywords.
    pub keywords: u64,
    /// Events up to this verbosity, 5 for all.
    pub level: u8,
}

/// The name of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderId {
    /// By its GUID.
    Guid(Guid),
    /// By a name that the system knows.
    Name(String),
}

/// One event as bytes.
#[derive(Debug)]
pub struct Packet {
    /// Processor on which it was written.
    pub processor: u16,
    /// The event.
    pub bytes: Vec<u8>,
}

/// The end of a session: its counts, and its failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Events that the system lost, as it says.
    pub lost_events: u64,
    /// Buffers that the system lost, as it says.
    pub lost_buffers: u64,
    /// Events that came while the queue was full.
    pub overruns: u64,
    /// The failure that ended it before its time, or kept the numbers above from being known.
    pub failure: Option<String>,
}

/// The next thing in the feed, when the reader asks for more.
#[derive(Debug)]
pub enum Next {
    /// An event.
    Packet(Packet),
    /// Nothing yet.
    Idle,
    /// The session is over, and everything of it was taken.
    End(Ending),
}

/// Asks a session to stop; clones ask the same session.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// Asks.
    pub fn request(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Whether an end was requested.
    pub fn is_requested(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a request, at most for this time.
    pub fn wait(&self, limit: Option<Duration>) {
        let asked = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        match limit {
            Some(limit) => drop(self.0.1.wait_timeout_while(asked, limit, |asked| !*asked)),
            None => drop(self.0.1.wait_while(asked, |asked| !*asked)),
        }
    }
}

#[derive(Default)]
struct Shared {
    queued: AtomicUsize,
    overruns: AtomicU64,
    ending: Mutex<Option<Ending>>,
}

/// The callback's end of the queue.
#[derive(Clone)]
pub struct Feed {
    sender: Sender<Packet>,
    shared: Arc<Shared>,
}

impl Feed {
    /// Hands an event over, or counts it as lost when the queue is full. Never waits.
    pub fn offer(&self, packet: Packet) {
        let cost = packet.bytes.len() + PACKET_COST;
        let queued = self.shared.queued.fetch_add(cost, Ordering::Relaxed);
        if queued > MAX_QUEUED || self.sender.send(packet).is_err() {
            self.shared.queued.fetch_sub(cost, Ordering::Relaxed);
            self.refuse();
        }
    }

    /// Counts an event that cannot be handed over.
    pub fn refuse(&self) {
        self.shared.overruns.fetch_add(1, Ordering::Relaxed);
    }

    /// Says that nothing comes any more, and what was lost.
    pub fn end(&self, ending: Ending) {
        *self.shared.ending.lock().unwrap_or_else(PoisonError::into_inner) = Some(ending);
    }
}

/// The reader's end of the queue, and the session behind it. Dropped, it stops the session and waits for that.
pub struct Live {
    name: String,
    start: i64,
    receiver: Receiver<Packet>,
    shared: Arc<Shared>,
    stop: Stop,
    session: Option<JoinHandle<()>>,
    process_name: fn(u32) -> Option<String>,
}

impl Live {
    /// A queue without a session behind it: the holder of the [`Feed`] is the session. `start` is its beginning in 100
    /// ns units since 1601 (UTC), the clock of its events; `process_name` gives the file name of a process that runs.
    pub fn new(name: &str, start: i64, process_name: fn(u32) -> Option<String>) -> (Feed, Live) {
        let (sender, receiver) = std::sync::mpsc::channel();
        let shared = Arc::<Shared>::default();
        let feed = Feed { sender, shared: shared.clone() };
        let (name, stop) = (name.to_owned(), Stop::default());
        (feed, Live { name, start, receiver, shared, stop, session: None, process_name })
    }

    /// Adds the thread that ends the session when [`Live::stop`] asks for it.
    pub fn of_session(mut self, session: JoinHandle<()>) -> Live {
        self.session = Some(session);
        self
    }

    /// Name of the session.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When the session began, in 100 ns units since 1601 (UTC).
    pub fn start(&self) -> i64 {
        self.start
    }

    /// A handle that asks the session to stop.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// File name of a process that runs; `None` when it does not, or may not be asked.
    pub fn process_name(&self, process_id: u32) -> Option<String> {
        (self.process_name)(process_id)
    }

    /// The next event. Waits for a moment when there is none.
    pub fn take(&mut self) -> Next {
        // Looked at first: what was offered before the end is in the queue then.
        let ending = self.shared.ending.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let patience = if ending.is_some() { Duration::ZERO } else { PATIENCE };
        match (self.receiver.recv_timeout(patience), ending) {
            (Ok(packet), _) => {
                self.shared.queued.fetch_sub(packet.bytes.len() + PACKET_COST, Ordering::Relaxed);
                Next::Packet(packet)
            }
            (Err(RecvTimeoutError::Timeout), None) => Next::Idle,
            (Err(_), ending) => {
                let ending = ending.or_else(|| self.shared.ending.lock().ok()?.clone());
                let unknown =
                    || Ending { failure: Some("the session ended without a reason".into()), ..Ending::default() };
                let overruns = self.shared.overruns.load(Ordering::Relaxed);
                Next::End(Ending { overruns, ..ending.unwrap_or_else(unknown) })
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(session) = self.session.take() {
            session.join().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(len: usize) -> Packet {
        Packet { processor: 0, bytes: vec![0; len] }
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let (feed, mut live) = Live::new("test", 0, |_| None);
        for _ in 0..5 {
            feed.offer(packet(MAX_QUEUED / 3));
        }
        feed.end(Ending { lost_events: 7, ..Ending::default() });
        let mut packets = 0;
        let ending = loop {
            match live.take() {
                Next::Packet(_) => packets += 1,
                Next::Idle => {}
                Next::End(ending) => break ending,
            }
        };
        assert_eq!((packets, ending.overruns, ending.lost_events, ending.failure), (3, 2, 7, None));
        // Packets that were taken made room.
        feed.offer(packet(1));
        assert!(matches!(live.take(), Next::Packet(_)));
    }

    #[test]
    fn a_session_that_vanishes_ends_the_reading() {
        let (feed, mut live) = Live::new("test", 0, |_| None);
        assert!(matches!(live.take(), Next::Idle));
        feed.offer(packet(1));
        drop(feed);
        assert!(matches!(live.take(), Next::Packet(_)));
        assert!(matches!(live.take(), Next::End(Ending { failure: Some(_), .. })));
    }

    #[test]
    fn dropping_the_reader_stops_the_session() {
        let (feed, live) = Live::new("test", 0, |_| None);
        let stop = live.stop();
        let session = std::thread::spawn(move || {
            stop.wait(None);
            feed.offer(packet(1));
            feed.end(Ending::default());
        });
        let stop = live.stop();
        drop(live.of_session(session));
        assert!(stop.is_requested());
    }
}
