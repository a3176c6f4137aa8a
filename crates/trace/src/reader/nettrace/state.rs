//! State shared by all versions: the objects of ids, the region, and the delivery of events to the visitor.

use std::ops::{ControlFlow, RangeInclusive};

use super::block_header::BlockHeader;
use super::drops::{Drops, SequenceSlot};
use super::event_header::EventHeader;
use super::event_types::{EventTypes, Overrides};
use super::labels::RegionLabels;
use super::losses::Losses;
use super::region::{Pending, Region};
use super::report::Reporter;
use super::stacks::Stacks;
use super::threads::Threads;
use crate::bytes::{ParseError, Parsed, inner, refuse, take};
use crate::error::Problem;
use crate::reader::text::TextBudget;
use crate::reader::{EventType, Labels, Order, RawEvent, Stack, Thread, ThreadIndex, TraceInfo, TypeId, Visitor};
use crate::source::{Chunk, Source};

/// A record of zeros in compressed form, with as many zeros behind it as make up this many bytes, is a hole in the
/// file.
const ZERO_RUN: usize = 32;

/// The state of a reader.
pub struct NettraceState<'a, 'v> {
    pub out: Reporter<'v>,
    pub order: Order,
    /// The visitor wants no more.
    pub stopped: bool,
    /// The block at hand is cut by the end of the file, which was reported already.
    cut: bool,
    pub types: EventTypes,
    pub threads: Threads,
    pub labels: RegionLabels,
    pub stacks: Stacks<'a>,
    pub drops: Drops,
    text: TextBudget,
    pub region: Region<'a>,
    newest: i64,
    /// Ticks that can be shown as a time.
    times: RangeInclusive<i64>,
    /// Events whose ticks cannot.
    clamped: u64,
    late: u64,
    /// Events whose stack is not known because of a gap, and where the first of them lies.
    lost_stacks: Option<(u64, u64)>,
    /// Whether a gap lies between the last sequence point and here.
    gap_in_region: bool,
    /// Flags of V6 sequence points seen so far.
    flags: u32,
    /// Gaps in sequence numbers that the block at hand shows; reported when it is read without damage.
    gaps: Vec<Problem>,
    /// Where events are missing, to be reported in the order of time.
    losses: Losses,
}

impl<'a, 'v> NettraceState<'a, 'v> {
    pub fn new(visitor: &'v mut dyn Visitor, order: Order, info: &TraceInfo) -> NettraceState<'a, 'v> {
        NettraceState {
            out: Reporter::new(visitor),
            order,
            stopped: false,
            cut: false,
            types: EventTypes::default(),
            threads: Threads::new(info.process_id),
            labels: RegionLabels::default(),
            stacks: Stacks::default(),
            drops: Drops::new(info.version == 6),
            text: TextBudget::default(),
            region: Region::new(),
            newest: i64::MIN,
            times: info.clock.range(),
            clamped: 0,
            late: 0,
            lost_stacks: None,
            gap_in_region: false,
            flags: 0,
            gaps: Vec::new(),
            losses: Losses::default(),
        }
    }

    /// Reports a problem.
    pub fn problem(&mut self, problem: Problem) {
        self.out.problem(problem);
    }

    /// The block at hand is cut by the end of the file, which was reported already: what is torn in it is no news.
    pub fn set_cut(&mut self) {
        self.cut = true;
        self.out.damage_known = true;
    }

    /// Reads what there is of a block whose damage is reported with the bytes behind it.
    pub fn damaged<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.out.damage_known = true;
        let read = read(self);
        self.out.damage_known = false;
        read
    }

    /// Binds a metadata id to a kind of event.
    pub fn define_metadata(&mut self, id: u32, event_type: EventType, offset: u64) {
        self.types.define(id, event_type, &mut self.text, &mut self.out, offset);
    }

    /// The number of a thread.
    pub fn intern_thread(&mut self, thread: Thread, offset: u64) -> ThreadIndex {
        self.threads.intern(thread, &mut self.text, &mut self.out, offset)
    }

    /// A thread by its OS id (V1 to V5).
    pub fn os_thread(&mut self, thread_id: u64) -> ThreadIndex {
        self.threads.by_os_id(thread_id, &mut self.text, &mut self.out)
    }

    /// Reads the events of a block. `start` is the offset of `chunk` in the file, `events_at` where in it the first
    /// event lies. Gives how many bytes at the end of the block could not be read.
    pub fn event_block<const V6: bool>(
        &mut self,
        source: &mut Source<'a>,
        start: u64,
        chunk: Chunk<'a>,
        events_at: usize,
        BlockHeader { compressed, mut times }: BlockHeader,
    ) -> usize {
        let mut header = EventHeader::default();
        let mut resolved = Resolved::default();
        // Number the block gets; it is added when its events are read.
        let number = self.region.add_chunk(start);
        let mut sorted_until = i64::MIN;
        let mut rest: &[u8] = chunk.get(events_at..).unwrap_or_default();
        let dropped_before = self.drops.total;
        let mut failed = None;
        while !rest.is_empty() && !self.stopped {
            let before = rest;
            let payload = match next_event::<V6>(&mut header, before, compressed) {
                Ok((next, payload)) => {
                    rest = next;
                    payload
                }
                Err(e) => {
                    failed = Some(inner(e));
                    break;
                }
            };
            let end = chunk.len() - rest.len();
            let offset = start + (chunk.len() - before.len()) as u64;
            self.one_event::<V6>(&header, &mut resolved, number, &chunk, (payload, end, compressed), offset, start);
            if header.sorted && header.ticks > sorted_until {
                sorted_until = header.ticks;
            }
            times.event(header.ticks);
        }
        let unread = if failed.is_some() { rest.len() } else { 0 };
        let is_whole = failed.is_none() && !self.stopped && !self.out.damage_known;
        // One writer of V6 gives the times of its first buffers for all.
        if let Some(problem) = times.problem(start).filter(|_| !V6 && is_whole) {
            self.prove_nothing(dropped_before);
            self.out.problem(problem);
        }
        self.end_of_events(start, &chunk, failed, unread, dropped_before);
        if let Some(unused) = self.region.fill_last_chunk(chunk) {
            source.recycle(unused);
        }
        let many_labels = !V6 && self.labels.are_many();
        if self.region.is_full() || many_labels {
            self.flush(source, i64::MAX);
        } else if (source.is_live() || self.region.wants_partial_flush()) && sorted_until > i64::MIN {
            self.flush(source, sorted_until);
        } else if self.order == Order::File {
            self.region.delivered(Vec::new(), source);
        }
        if !V6 && self.region.events.is_empty() {
            self.labels.clear();
        }
        self.out.visitor.progress(source.position());
        unread
    }

    /// Reports what came up while the events of a block were read. Where one of them was damaged, the numbers before it
    /// are in doubt as well, and prove no loss.
    fn end_of_events(
        &mut self,
        start: u64,
        chunk: &[u8],
        failed: Option<ParseError>,
        unread: usize,
        dropped_before: u64,
    ) {
        let Some(error) = failed.filter(|_| !self.cut) else {
            return std::mem::take(&mut self.gaps).into_iter().for_each(|gap| self.out.problem(gap));
        };
        self.prove_nothing(dropped_before);
        if !self.out.damage_known {
            let message = format!(
                "event block is damaged; the events before the damage are kept, {unread} bytes are lost: {error}"
            );
            let problem = Problem::error("damaged_event", error.offset_in(start, chunk), message);
            self.out.problem(problem.count(unread as u64));
        }
    }

    /// Forgets what was read of a block: it proves no loss, and nothing is joined across it.
    fn prove_nothing(&mut self, dropped_before: u64) {
        self.gaps.clear();
        self.drops.total = dropped_before;
        self.drops.lose_track();
        self.losses.hole(self.newest);
    }

    #[inline]
    #[allow(clippy::too_many_arguments, reason = "one call site; a struct would be built for every event")]
    fn one_event<const V6: bool>(
        &mut self,
        header: &EventHeader,
        resolved: &mut Resolved,
        chunk_number: u32,
        chunk: &[u8],
        (payload, end, compressed): (&[u8], usize, bool),
        offset: u64,
        block_start: u64,
    ) {
        if resolved.capture_raw != Some(header.capture_thread) {
            resolved.capture = self.thread_of::<V6>(header.capture_thread, offset);
            resolved.capture_raw = Some(header.capture_thread);
            resolved.slot = self.drops.slot(header.capture_thread);
        }
        if resolved.thread_raw != Some(header.thread) {
            resolved.thread = self.thread_of::<V6>(header.thread, offset);
            resolved.thread_raw = Some(header.thread);
        }
        let since = self.drops.time(resolved.slot, header.ticks);
        let gap = self.drops.event(resolved.slot, header.sequence);
        self.losses.event_behind_hole(header.ticks);
        if gap > 0 {
            self.losses.add(Some(resolved.capture), since, header.ticks);
            let problem = self.gap_problem(resolved.capture, gap, offset);
            self.gaps.push(problem);
        }
        if resolved.metadata_id != Some(header.metadata_id) {
            resolved.event_type = self.types.by_id(header.metadata_id, &mut self.text, &mut self.out, offset);
            resolved.metadata_id = Some(header.metadata_id);
            resolved.wanted = self.types.is_wanted(resolved.event_type);
        }
        if header.labels_changed {
            (resolved.labels, resolved.overrides) = if V6 {
                self.labels.by_list_id(header.label_list, &mut self.out, offset)
            } else {
                (self.add_activity_ids(header, offset), Overrides::default())
            };
        }
        let mut event_type = resolved.event_type;
        let mut wanted = resolved.wanted;
        if V6 && resolved.overrides != Overrides::default() {
            event_type = self.types.overridden(event_type, resolved.overrides, &mut self.text, &mut self.out, offset);
            wanted = self.types.is_wanted(event_type);
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
            thread: resolved.thread,
            capture_thread: resolved.capture,
            processor: header.processor,
            stack_id: header.stack_id,
            stack_epoch: self.stacks.epoch,
            labels: resolved.labels,
            chunk: chunk_number,
            start: payload_at as u32,
            len: payload.len() as u32,
        };
        match self.order {
            Order::Time => self.region.push(pending),
            Order::File => {
                self.losses.report_until(i64::MAX, header.ticks, self.out.visitor);
                self.deliver(&pending, payload, block_start + payload_at as u64);
            }
        }
    }

    fn thread_of<const V6: bool>(&mut self, raw: u64, offset: u64) -> ThreadIndex {
        if V6 { self.threads.by_index(raw, &mut self.text, &mut self.out, offset) } else { self.os_thread(raw) }
    }

    fn add_activity_ids(&mut self, header: &EventHeader, offset: u64) -> u32 {
        let labels = Labels {
            activity_id: header.activity_id,
            related_activity_id: header.related_activity_id,
            json: String::new(),
        };
        self.labels.add(labels, &mut self.out, offset)
    }

    fn gap_problem(&self, thread: ThreadIndex, gap: u32, offset: u64) -> Problem {
        let thread_id = self.threads.os_id(thread);
        let message = format!("at least {gap} events of thread {thread_id} were dropped before this point");
        Problem::loss("dropped_events", offset, message).count(u64::from(gap)).thread(thread_id)
    }

    /// Takes note of the last sequence number that a thread has at a sequence point.
    pub fn last_number(&mut self, raw: u64, thread: impl FnOnce(&mut Self) -> ThreadIndex, sequence: u32, offset: u64) {
        let gap = self.drops.point(raw, sequence);
        if gap > 0 {
            let thread = thread(self);
            let since = self.drops.last_time(raw);
            self.losses.add(Some(thread), since, i64::MAX);
            let problem = self.gap_problem(thread, gap, offset);
            self.out.problem(problem);
        }
    }

    /// One event with a stack of its own (V1 to V3).
    pub fn flat_event(&mut self, header: &EventHeader, payload: &[u8], stack: &[u8], payload_offset: u64) {
        let event_type = self.types.by_id(header.metadata_id, &mut self.text, &mut self.out, payload_offset);
        if !self.types.is_wanted(event_type) {
            return;
        }
        let thread = self.os_thread(header.thread);
        let labels = self.add_activity_ids(header, payload_offset);
        self.note_time(header.ticks);
        let event = RawEvent {
            event_type,
            ticks: header.ticks,
            thread,
            capture_thread: thread,
            processor: u32::MAX,
            stack: Stack { addresses: stack, key: None },
            labels: self.labels.get(labels),
            counters: &[],
            payload,
            offset: payload_offset,
        };
        self.stopped |= matches!(self.out.visitor.event(&event), ControlFlow::Break(()));
        // No event waits for its labels.
        self.labels.clear();
    }

    fn note_time(&mut self, ticks: i64) {
        if ticks < self.newest && self.order == Order::Time {
            self.late += 1;
        }
        self.newest = self.newest.max(ticks);
        self.clamped += u64::from(!self.times.contains(&ticks));
    }

    #[inline]
    fn deliver(&mut self, event: &Pending, payload: &[u8], offset: u64) {
        self.note_time(event.ticks);
        let stack = match self.stacks.get(event.stack_epoch, event.stack_id) {
            Some(stack) => stack,
            None if event.stack_id == 0 => Stack::default(),
            None if self.gap_in_region => {
                self.lost_stacks.get_or_insert((offset, 0)).1 += 1;
                Stack::default()
            }
            None => {
                let message = format!("stack {} is not defined in this region", event.stack_id);
                self.out.problem(Problem::error("unknown_stack", offset, message));
                Stack::default()
            }
        };
        let raw = RawEvent {
            event_type: TypeId(event.event_type),
            ticks: event.ticks,
            thread: event.thread,
            capture_thread: event.capture_thread,
            processor: event.processor,
            stack,
            labels: self.labels.get(event.labels),
            counters: &[],
            payload,
            offset,
        };
        if self.out.visitor.event(&raw).is_break() {
            self.stopped = true;
        }
    }

    /// Delivers the waiting events up to and including `until`, in time order.
    pub fn flush(&mut self, source: &mut Source<'a>, until: i64) {
        self.losses.tell_holes(|| self.region.newest(), self.out.visitor);
        let ready = self.region.sorted_until(until);
        let region = std::mem::take(&mut self.region);
        for event in &ready {
            if self.stopped {
                break;
            }
            self.losses.report_until(event.ticks, self.newest, self.out.visitor);
            let (offset, chunk) = region.chunk(event.chunk);
            let start = event.start as usize;
            let payload = chunk.get(start..start + event.len as usize).unwrap_or_default();
            self.deliver(event, payload, offset + u64::from(event.start));
        }
        self.losses.delivered(until, self.newest, self.out.visitor);
        self.region = region;
        self.region.delivered(ready, source);
    }

    /// A sequence point: everything before it is older than everything behind it; stacks and labels are void.
    pub fn end_region(&mut self, source: &mut Source<'a>) {
        self.flush(source, i64::MAX);
        self.stacks.forget(source);
        self.labels.forget_ids();
        self.labels.clear();
        self.gap_in_region = false;
        self.losses.end_region(self.out.visitor);
        self.out.visitor.stacks_forgotten();
    }

    /// Forgets what the flags of a V6 sequence point say: 1 the thread indices, 2 the metadata ids.
    pub fn forget_by_flags(&mut self, flags: u32) {
        self.flags |= flags;
        if flags & 1 != 0 {
            self.threads.forget_indices();
            self.drops.forget_all();
        }
        if flags & 2 != 0 {
            self.types.forget_ids();
        }
    }

    /// `bytes` bytes at `offset` cannot be read. There may have been a sequence point among them, so that ids of stacks
    /// and label lists may mean others from here on. Kinds of events and threads keep their ids, unless it is a
    /// recording whose sequence points end those, too.
    pub fn gap(&mut self, offset: u64, bytes: u64, message: String) {
        self.out.problem(Problem::error("damaged_container", offset, message).count(bytes));
        self.stacks.gap();
        self.labels.forget_ids();
        self.forget_by_flags(self.flags);
        self.drops.lose_track();
        self.losses.hole(self.newest);
        self.gap_in_region = true;
    }

    /// The end of the file: delivers what waits and reports what was only counted.
    pub fn finish(&mut self, source: &mut Source<'a>) {
        self.flush(source, i64::MAX);
        let position = source.position();
        if let Some((offset, count)) = self.lost_stacks {
            let message = "events whose stacks are unknown, because bytes before them are missing";
            self.out.problem(Problem::error("unknown_stack", offset, message).count(count));
        }
        let message = "events are older than one delivered before them: the file breaks its own order";
        self.out.problems(Problem::info("out_of_order", position, message), self.late);
        let message = "times of events beyond 64 bits of nanoseconds were clamped to 64 bits";
        self.out.problems(Problem::error("time_out_of_range", position, message), self.clamped);
        self.out.finish();
        self.out.visitor.progress(position);
    }
}

/// The identities that the headers of a block resolve to, remembered until a header changes them.
#[derive(Default)]
struct Resolved {
    capture_raw: Option<u64>,
    capture: ThreadIndex,
    slot: SequenceSlot,
    thread_raw: Option<u64>,
    thread: ThreadIndex,
    metadata_id: Option<u32>,
    event_type: TypeId,
    wanted: bool,
    labels: u32,
    overrides: Overrides,
}

impl Default for TypeId {
    fn default() -> Self {
        TypeId(u32::MAX)
    }
}

#[inline]
fn next_event<'b, const V6: bool>(header: &mut EventHeader, input: &'b [u8], compressed: bool) -> Parsed<'b, &'b [u8]> {
    if compressed {
        let (rest, ()) = header.compressed::<V6>(input)?;
        let (rest, payload) = take(header.payload_size as usize, "Payload")(rest)?;
        // No flags and no time difference: the same as before in all, at the same time. A hole that begins in an event
        // takes this one with it.
        let is_zero = input.starts_with(&[0, 0]) && is_hole(input, payload);
        if is_zero || (rest.starts_with(&[0, 0]) && payload.last() == Some(&0) && is_hole(rest, &[])) {
            return Err(refuse(input, "Flags", "an event and not a run of zeros"));
        }
        Ok((rest, payload))
    } else {
        header.uncompressed::<V6>(input)
    }
}

/// Whether an event of zeros is part of a hole in the file.
#[cold]
pub fn is_hole(input: &[u8], payload: &[u8]) -> bool {
    let run = input.get(..ZERO_RUN.max(payload.len() + 2)).unwrap_or(input);
    run.len() >= ZERO_RUN && run.iter().all(|byte| *byte == 0)
}
