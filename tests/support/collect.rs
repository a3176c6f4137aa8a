//! A visitor that keeps everything it is given, so that a test can look at it at leisure.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use tracequet::trace::error::{Error, Problem};
use tracequet::trace::event::EventInfo;
use tracequet::trace::event::{Event, value::Value};
use tracequet::trace::reader::etl::complete;
use tracequet::trace::reader::{End, EventType, Labels, Order, RawEvent, Stack, Thread, TraceInfo, TypeId, Visitor};
use tracequet::trace::source::{Input, MappedFile};

/// One event, owned.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    pub event_type: TypeId,
    pub ticks: i64,
    pub thread: u32,
    pub capture_thread: u32,
    pub processor: u32,
    pub stack: Vec<u8>,
    pub labels: Labels,
    pub payload: Vec<u8>,
    pub offset: u64,
}

/// Everything that one reading gave.
#[derive(Debug, Default)]
pub struct Recording {
    pub info: Option<TraceInfo>,
    pub types: Vec<EventInfo>,
    pub threads: Vec<Thread>,
    pub events: Vec<Seen>,
    pub problems: Vec<Problem>,
    pub end: End,
    /// Message of the error that refused the recording.
    pub refused: Option<String>,
    /// Stop after this many events.
    pub stop_after: Option<usize>,
}

impl Visitor for Recording {
    fn trace(&mut self, info: &TraceInfo) {
        assert!(self.info.is_none(), "the header comes once");
        self.info = Some(info.clone());
    }

    fn event_type(&mut self, id: TypeId, event_type: &EventType) -> bool {
        assert_eq!(id.0 as usize, self.types.len(), "types are numbered in the order of first sight");
        let pointer_size = self.info.as_ref().expect("the header comes first").pointer_size;
        let (described, _) = complete(None, event_type);
        self.types.push(EventInfo::resolve(&described, pointer_size));
        true
    }

    fn thread(&mut self, index: u32, thread: &Thread) {
        assert_eq!(index as usize, self.threads.len(), "threads are numbered in the order of first sight");
        self.threads.push(thread.clone());
    }

    fn event(&mut self, event: &RawEvent<'_>) -> ControlFlow<()> {
        assert!((event.event_type.0 as usize) < self.types.len(), "the type was introduced");
        assert!((event.thread as usize) < self.threads.len() && (event.capture_thread as usize) < self.threads.len());
        self.events.push(Seen {
            event_type: event.event_type,
            ticks: event.ticks,
            thread: event.thread,
            capture_thread: event.capture_thread,
            processor: event.processor,
            stack: event.stack.addresses.to_vec(),
            labels: event.labels.clone(),
            payload: event.payload.to_vec(),
            offset: event.offset,
        });
        if self.stop_after == Some(self.events.len()) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}

impl Recording {
    /// Reads `input` in time order.
    pub fn read(input: Input) -> Recording {
        Recording::read_in(input, Order::Time)
    }

    /// Reads `input` in the given order.
    pub fn read_in(input: Input, order: Order) -> Recording {
        let mut recording = Recording::default();
        match tracequet::trace::reader::read(input, order, &mut recording) {
            Ok(end) => recording.end = end,
            Err(error @ (Error::Unreadable { .. } | Error::Io { .. })) => recording.refused = Some(error.to_string()),
            Err(error) => panic!("a recording never causes '{error}'"),
        }
        recording
    }

    /// Reads a file by its path, packed or not.
    pub fn open(path: &Path) -> Recording {
        Recording::read(Input::open(path).expect("the file can be opened"))
    }

    /// Reads bytes as from a mapped file.
    pub fn mapped(bytes: &[u8]) -> Recording {
        Recording::read(mapped(bytes))
    }

    /// Reads bytes as from a pipe.
    pub fn piped(bytes: &[u8]) -> Recording {
        Recording::read(piped(bytes))
    }

    /// The kind of an event.
    pub fn info_of(&self, event: &Seen) -> &EventInfo {
        &self.types[event.event_type.0 as usize]
    }

    /// Codes of all problems, sorted, each once.
    pub fn codes(&self) -> Vec<&'static str> {
        let mut codes: Vec<_> = self.problems.iter().map(|p| p.code).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    /// Calls `look` with an event as it is seen by the rest of the crate.
    pub fn with_event<R>(&self, seen: &Seen, look: impl FnOnce(&Event<'_>) -> R) -> R {
        let mut raw = RawEvent::new(seen.event_type, seen.ticks, &seen.labels, &seen.payload);
        (raw.thread, raw.capture_thread, raw.processor) = (seen.thread, seen.capture_thread, seen.processor);
        (raw.stack, raw.offset) = (Stack::new(&seen.stack, None), seen.offset);
        let clock = self.info.as_ref().expect("a header").clock;
        let ts_ns = clock.since_start(seen.ticks).unwrap_or(i64::MAX);
        let thread = &self.threads[seen.thread as usize];
        look(&Event::new(&raw, self.info_of(seen), thread, ts_ns))
    }

    /// The decoded fields of an event by name; panics when it cannot be decoded exactly.
    pub fn fields(&self, seen: &Seen) -> Vec<(String, Value)> {
        self.with_event(seen, |event| {
            let (fields, fit) = event.fields().expect("fields");
            assert!(fit.is_exact(), "{fit:?}");
            fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
        })
    }
}

/// Bytes as a mapped file without a name.
pub fn mapped(bytes: &[u8]) -> Input {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(bytes).expect("room for a temporary file");
    Input::Mapped(MappedFile::from_file(Path::new("test"), file).expect("a map"))
}

/// Bytes as a pipe that gives them in small and uneven pieces.
pub fn piped(bytes: &[u8]) -> Input {
    let pieces = Pieces { bytes: bytes.to_vec(), at: 0 };
    Input::from_reader(Path::new("-"), Box::new(pieces), None).expect("a pipe")
}

struct Pieces {
    bytes: Vec<u8>,
    at: usize,
}

impl std::io::Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let rest = &self.bytes[self.at..];
        let count = rest.len().min(buffer.len()).min(1 + self.at * 7 % 8191);
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}
