//! What all versions share while a file is read: event types, threads, labels, the region, and the way to the visitor.

use std::collections::HashMap;
use std::ops::ControlFlow;

use foldhash::fast::RandomState;

use super::drops::{Drops, Place};
use super::header::Header;
use super::order::{Pending, Region};
use super::resolve::{MAX_LABELS, Overrides};
use super::stacks::Stacks;
use crate::bytes::{ParseError, inner, take};
use crate::error::{Problem, ProblemLog, Severity};
use crate::guid::Guid;
use crate::reader::{EventType, Labels, Order, RawEvent, Stack, Thread, ThreadIndex, TypeId, Visitor};
use crate::source::{Chunk, Source};

static NO_LABELS: Labels = Labels { activity_id: Guid::NONE, related_activity_id: Guid::NONE, json: String::new() };

/// The state of a reader.
pub struct State<'a, 'v, V: Visitor> {
    pub visitor: &'v mut V,
    pub order: Order,
    pub stopped: bool,
    /// The block at hand is cut by the end of the file, which was reported already: what is torn in it is no news.
    pub cut: bool,
    pub(super) metadata: HashMap<u32, TypeId, RandomState>,
    pub(super) types: Vec<EventType>,
    pub(super) wanted: Vec<bool>,
    pub(super) type_by_content: HashMap<EventType, TypeId, RandomState>,
    pub(super) overridden: HashMap<(TypeId, Overrides), TypeId, RandomState>,
    pub(super) threads: Vec<Thread>,
    pub(super) thread_by_content: HashMap<Thread, ThreadIndex, RandomState>,
    /// V6: thread index of the file to thread.
    pub thread_table: HashMap<u64, ThreadIndex, RandomState>,
    /// V6: label list id to its place in `labels` and its overrides.
    pub label_table: HashMap<u32, (u32, Overrides), RandomState>,
    pub(super) labels: Vec<Labels>,
    pub stacks: Stacks<'a>,
    pub drops: Drops,
    region: Region<'a>,
    newest: i64,
    late: u64,
    problems: ProblemLog,
    pub(super) default_process: u64,
}

impl<'a, 'v, V: Visitor> State<'a, 'v, V> {
    pub fn new(visitor: &'v mut V, order: Order, default_process: u64, v6: bool) -> State<'a, 'v, V> {
        State {
            visitor,
            order,
            stopped: false,
            cut: false,
            metadata: HashMap::default(),
            types: Vec::new(),
            wanted: Vec::new(),
            type_by_content: HashMap::default(),
            overridden: HashMap::default(),
            threads: Vec::new(),
            thread_by_content: HashMap::default(),
            thread_table: HashMap::default(),
            label_table: HashMap::default(),
            labels: vec![Labels::default()],
            stacks: Stacks::default(),
            drops: Drops::new(v6),
            region: Region::new(),
            newest: i64::MIN,
            late: 0,
            // Each gap has its own row.
            problems: ProblemLog::passing_all(&["dropped_events"]),
            default_process,
        }
    }

    /// Reports a problem, folding the flood of a kind that repeats.
    pub fn problem(&mut self, problem: Problem) {
        self.problems.report(problem, |problem| self.visitor.problem(problem));
    }

    /// Reports a parse error inside a block of `len` bytes that begins at `start`.
    pub fn parse_problem(&mut self, code: &'static str, what: &str, start: u64, len: usize, error: &ParseError) {
        if self.cut {
            return;
        }
        let message = format!("{what}: {error}");
        self.problem(Problem::new(Severity::Error, code, error.offset(start, len), message));
    }

    /// Reads the events of a block. `start` is the offset of `chunk` in the file, `events_at` where in it the first
    /// event lies.
    pub fn event_block<const V6: bool>(
        &mut self,
        source: &mut Source<'a>,
        start: u64,
        chunk: Chunk<'a>,
        events_at: usize,
        compressed: bool,
    ) {
        let mut header = Header::default();
        let mut cached = Cached::default();
        // Number the block gets; it is added when its events are read.
        let number = self.region.add_chunk(start);
        let mut sorted_until = i64::MIN;
        let mut rest: &[u8] = chunk.get(events_at..).unwrap_or_default();
        while !rest.is_empty() && !self.stopped {
            let before = rest;
            let payload = match next_event::<V6>(&mut header, before, compressed) {
                Ok((next, payload)) => {
                    rest = next;
                    payload
                }
                Err(e) => {
                    let error = inner(e);
                    let what = "event block ends in the middle of an event; what stood before it is kept";
                    self.parse_problem("damaged_event", what, start, chunk.len(), &error);
                    break;
                }
            };
            let end = chunk.len() - rest.len();
            let offset = start + (chunk.len() - before.len()) as u64;
            self.one_event::<V6>(&header, &mut cached, number, &chunk, (payload, end, compressed), offset, start);
            if header.sorted && header.ticks > sorted_until {
                sorted_until = header.ticks;
            }
        }
        if let Some(unused) = self.region.fill_last_chunk(chunk) {
            source.recycle(unused);
        }
        let many_labels = !V6 && self.labels.len() > MAX_LABELS / 8;
        if self.region.is_full() || many_labels {
            self.flush(source, i64::MAX);
        } else if self.region.wants_partial_flush() && sorted_until > i64::MIN {
            self.flush(source, sorted_until);
        } else if self.order == Order::File {
            self.region.delivered(Vec::new(), source);
        }
        if !V6 && self.region.events.is_empty() {
            self.labels.truncate(1);
        }
        self.visitor.progress(source.position());
    }

    #[inline]
    #[allow(clippy::too_many_arguments, reason = "one call site; a struct would be built for every event")]
    fn one_event<const V6: bool>(
        &mut self,
        header: &Header,
        cached: &mut Cached,
        chunk_number: u32,
        chunk: &[u8],
        (payload, end, compressed): (&[u8], usize, bool),
        offset: u64,
        block_start: u64,
    ) {
        if cached.capture_raw != Some(header.capture_thread) {
            cached.capture = self.thread_of::<V6>(header.capture_thread, offset);
            cached.capture_raw = Some(header.capture_thread);
            cached.place = self.drops.place(header.capture_thread);
        }
        if cached.thread_raw != Some(header.thread) {
            cached.thread = self.thread_of::<V6>(header.thread, offset);
            cached.thread_raw = Some(header.thread);
        }
        let gap = self.drops.event(cached.place, header.sequence);
        if gap > 0 {
            self.gap(cached.capture, gap, offset);
        }
        if cached.metadata_id != Some(header.metadata_id) {
            cached.event_type = self.type_of(header, offset);
            cached.metadata_id = Some(header.metadata_id);
            cached.wanted = self.wanted.get(cached.event_type.0 as usize).copied().unwrap_or(true);
        }
        if header.labels_changed {
            self.labels_of::<V6>(header, cached, offset);
        }
        let mut event_type = cached.event_type;
        let mut wanted = cached.wanted;
        if V6 && cached.overrides != Overrides::default() {
            event_type = self.overridden_type(event_type, cached.overrides);
            wanted = self.wanted.get(event_type.0 as usize).copied().unwrap_or(true);
        }
        if !wanted {
            return;
        }
        // A compressed event's payload ends where the next header begins; an uncompressed one may be padded.
        let payload_at = if compressed {
            end - payload.len()
        } else {
            (payload.as_ptr() as usize).saturating_sub(chunk.as_ptr() as usize)
        };
        let pending = Pending {
            ticks: header.ticks,
            event_type: event_type.0,
            thread: cached.thread,
            capture_thread: cached.capture,
            processor: header.processor,
            stack_id: header.stack_id,
            labels: cached.labels,
            chunk: chunk_number,
            start: payload_at as u32,
            len: payload.len() as u32,
        };
        match self.order {
            Order::Time => self.region.push(pending),
            Order::File => self.deliver(&pending, payload, block_start + payload_at as u64),
        }
    }

    /// Reports a gap in a thread's sequence numbers.
    pub fn gap(&mut self, thread: ThreadIndex, gap: u32, offset: u64) {
        let thread_id = self.thread_id(thread);
        let message = format!("at least {gap} events of thread {thread_id} were dropped before this point");
        let problem = Problem::new(Severity::DataLoss, "dropped_events", offset, message);
        self.problem(problem.count(u64::from(gap)).thread(thread_id));
    }

    /// One event with a stack of its own (V1 to V3).
    #[allow(clippy::indexing_slicing, reason = "entry 0, no labels, is always there")]
    pub fn flat_event(&mut self, header: &Header, payload: &[u8], stack: &[u8], payload_offset: u64) {
        let event_type = self.type_of(header, payload_offset);
        if !self.wanted.get(event_type.0 as usize).copied().unwrap_or(true) {
            return;
        }
        let thread = self.os_thread(header.thread);
        let labels = Labels {
            activity_id: header.activity_id,
            related_activity_id: header.related_activity_id,
            json: String::new(),
        };
        let labels = self.add_labels(labels, payload_offset);
        self.note_time(header.ticks);
        let event = RawEvent {
            event_type,
            ticks: header.ticks,
            thread,
            capture_thread: thread,
            processor: u32::MAX,
            stack: Stack { addresses: stack, key: None },
            labels: self.labels.get(labels as usize).unwrap_or(&NO_LABELS),
            payload,
            offset: payload_offset,
        };
        self.stopped |= matches!(self.visitor.event(&event), ControlFlow::Break(()));
        if self.labels.len() > 1000 {
            self.labels.truncate(1);
        }
    }

    fn note_time(&mut self, ticks: i64) {
        if ticks < self.newest && self.order == Order::Time {
            self.late += 1;
        }
        self.newest = self.newest.max(ticks);
    }

    #[inline]
    #[allow(clippy::indexing_slicing, reason = "entry 0, no labels, is always there")]
    fn deliver(&mut self, event: &Pending, payload: &[u8], offset: u64) {
        self.note_time(event.ticks);
        let stack = match event.stack_id {
            0 => self.stacks.get(0).unwrap_or_default(),
            id => match self.stacks.get(id) {
                Some(stack) => stack,
                None => {
                    let message = format!("stack {id} is not defined in this region");
                    self.problem(Problem::new(Severity::Error, "unknown_stack", offset, message));
                    Stack::default()
                }
            },
        };
        let raw = RawEvent {
            event_type: TypeId(event.event_type),
            ticks: event.ticks,
            thread: event.thread,
            capture_thread: event.capture_thread,
            processor: event.processor,
            stack,
            labels: self.labels.get(event.labels as usize).unwrap_or(&NO_LABELS),
            payload,
            offset,
        };
        if self.visitor.event(&raw).is_break() {
            self.stopped = true;
        }
    }

    /// Delivers the waiting events up to and including `until`, in time order.
    pub fn flush(&mut self, source: &mut Source<'a>, until: i64) {
        let ready = self.region.sorted_until(until);
        let region = std::mem::take(&mut self.region);
        for event in &ready {
            if self.stopped {
                break;
            }
            let (offset, chunk) = region.chunk(event.chunk);
            let start = event.start as usize;
            let payload = chunk.get(start..start + event.len as usize).unwrap_or_default();
            self.deliver(event, payload, offset + u64::from(event.start));
        }
        self.region = region;
        self.region.delivered(ready, source);
    }

    /// A sequence point: everything before it is older than everything behind it; stacks and labels are void.
    pub fn end_region(&mut self, source: &mut Source<'a>) {
        self.flush(source, i64::MAX);
        self.stacks.forget(source);
        self.labels.truncate(1);
        self.label_table.clear();
        self.visitor.stacks_forgotten();
    }

    /// The end of the file: delivers what waits and reports what was only counted.
    pub fn finish(&mut self, source: &mut Source<'a>) {
        self.flush(source, i64::MAX);
        let position = source.position();
        if self.late > 0 {
            let message = "events are older than one delivered before them: the file breaks its own order";
            let problem = Problem::new(Severity::Info, "out_of_order", position, message).count(self.late);
            self.visitor.problem(problem);
        }
        self.problems.finish(|problem| self.visitor.problem(problem));
        self.visitor.progress(position);
    }
}

/// What the headers of a block resolve to, remembered until a header changes it.
#[derive(Default)]
pub(super) struct Cached {
    capture_raw: Option<u64>,
    capture: ThreadIndex,
    place: Place,
    thread_raw: Option<u64>,
    thread: ThreadIndex,
    metadata_id: Option<u32>,
    event_type: TypeId,
    wanted: bool,
    pub(super) labels: u32,
    pub(super) overrides: Overrides,
}

impl Default for TypeId {
    fn default() -> Self {
        TypeId(u32::MAX)
    }
}

#[inline]
fn next_event<'b, const V6: bool>(
    header: &mut Header,
    input: &'b [u8],
    compressed: bool,
) -> crate::bytes::Parsed<'b, &'b [u8]> {
    if compressed {
        let (rest, ()) = header.compressed::<V6>(input)?;
        take(header.payload_size as usize, "Payload")(rest)
    } else {
        header.uncompressed::<V6>(input)
    }
}
