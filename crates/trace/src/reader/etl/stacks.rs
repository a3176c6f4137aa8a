//! Stacks that come as events of their own, and the events to which they belong.
//!
//! ```text
//!  StackWalk 32       u64 time of the event   u32 process   u32 thread   P x n return addresses
//!  StackWalk 37, 38   u64 time of the event   u32 process   u32 thread   P key      (kernel part, user part)
//!  StackWalk 34 - 36  P key   P x n return addresses: ends the use of the key, so that it comes after its references
//!  CLR 82             u16 runtime   u8 u8   u32 n   P x n: of the event before it of its provider and thread
//! ```
//! A stack follows its event by microseconds, or by minutes (the user part of a thread that waits in the kernel; a key
//! that is in use until the end). So the first walk over the file takes note of every stack, 32 bytes each, and the
//! second one, which delivers, finds the stacks of an event by its time and thread: nothing is held back.
//! Source: `StackWalk_Event` of the NT kernel logger's MOF classes, `ClrEtwAll.man`; checked on 21,760 stacks of the
//! kernel and 20,189 of the CLR.

use std::fs::File;
use std::io::{BufWriter, Write};

use super::body::Body;
use super::header::{Head, NO_ID};
use super::kernel_layouts::KernelLayouts;
use super::refs::{Key, Noted, Part, Ref, Refs};
use super::subject::{self, STACK_WALK};
use crate::prelude::*;
use crate::source::{MappedFile, temporary};

/// Events that are stacks of which note is taken (100 MB); those beyond stay events of their own.
const MAX_STACKS: usize = 3 << 20;
/// Threads of which the last event of the runtime is remembered.
const MAX_THREADS: usize = 1 << 18;
/// Stacks of one time, thread and part that are looked at: as many events of a thread as a tick may have.
const MAX_SAME: usize = 16;
/// Set in the place of addresses that are in the temporary file: those of compressed buffers.
const COPIED: u64 = 1 << 63;
/// Stacks that are not near their events, after which pages are given back: each may have brought its neighbours along.
const MAX_READS: u32 = 64;
/// Bytes of copied addresses that are looked for again before they are forgotten: most call stacks come often.
const KNOWN_BYTES: usize = 4 << 20;
/// Bytes that remembering a copy takes beside its addresses.
const KNOWN_COST: usize = 64;
/// The place of addresses that are not known.
const NOWHERE: u64 = u64::MAX;
/// Ends the chain of references to a key.
const NO_REF: u32 = u32::MAX;

/// Microsoft-Windows-DotNETRuntime and Microsoft-Windows-DotNETRuntimePrivate.
const CLR: [Guid; 2] =
    [Guid::constant("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4"), Guid::constant("763fd754-7086-4dfe-95eb-c01a46faf4ca")];
const CLR_STACK_WALK: u32 = 82;
/// StackWalk opcodes: references to the kernel and the user part of a stack.
const KERNEL_STACK: u8 = 37;
const USER_STACK: u8 = 38;

/// The fate of an event that is a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The event of the stack was not delivered, or is not in the file.
    Unattached,
    /// The event of the stack was delivered with it; of a definition: there are references to it.
    Taken,
}

/// An event that carries a stack or defines one.
enum Carrier<'p> {
    /// Time and thread of its event; the addresses.
    Whole(i64, u32, &'p [u8]),
    /// Time and thread of its event, part, key.
    Keyed(i64, u32, Part, u64),
    /// Key and addresses.
    Definition(u64, &'p [u8]),
    /// Addresses of the event before.
    Runtime(&'p [u8]),
}

fn carrier<'p>(head: &Head, payload: &'p [u8]) -> Option<Carrier<'p>> {
    let pointer = usize::from(head.pointer_size);
    if head.is_kernel && head.group == STACK_WALK {
        return kernel_carrier(head, payload);
    }
    if !head.is_kernel && head.id == CLR_STACK_WALK && head.guid.is_some_and(|guid| CLR.contains(&guid)) {
        let count = u32::from_le_bytes(*payload.get(4..)?.first_chunk()?) as usize;
        let addresses = payload.get(8..)?;
        return Some(Carrier::Runtime(addresses.get(..count.checked_mul(pointer)?)?));
    }
    None
}

fn kernel_carrier<'p>(head: &Head, payload: &'p [u8]) -> Option<Carrier<'p>> {
    let offsets = KernelLayouts::get().of_kernel(head)?.offsets(head.pointer_size);
    let at = |offset: Option<u16>| offset.and_then(|offset| payload.get(usize::from(offset)..));
    let key = || match head.pointer_size {
        4 => at(offsets.stack_key)?.first_chunk().map(|b| u64::from(u32::from_le_bytes(*b))),
        _ => at(offsets.stack_key)?.first_chunk().map(|b| u64::from_le_bytes(*b)),
    };
    let addresses = || {
        let bytes = at(offsets.addresses)?;
        let pointer = usize::from(head.pointer_size);
        bytes.get(..bytes.len() / pointer * pointer)
    };
    if offsets.target_time.is_none() {
        return Some(Carrier::Definition(key()?, addresses()?));
    }
    let ticks = i64::from_le_bytes(*at(offsets.target_time)?.first_chunk()?);
    let thread = u32::from_le_bytes(*at(offsets.thread_id)?.first_chunk()?);
    match head.opcode {
        KERNEL_STACK => Some(Carrier::Keyed(ticks, thread, Part::Kernel, key()?)),
        USER_STACK => Some(Carrier::Keyed(ticks, thread, Part::User, key()?)),
        _ => Some(Carrier::Whole(ticks, thread, addresses()?)),
    }
}

/// The kernel's addresses are in the upper half; its part may continue in the user's.
fn part_of(addresses: &[u8], narrow: bool) -> Part {
    let highest = if narrow { addresses.get(3) } else { addresses.get(7) };
    if highest.is_some_and(|byte| byte & 0x80 != 0) { Part::Kernel } else { Part::User }
}

/// Numbers the events of one time. Both walks give the same numbers.
#[derive(Default)]
struct Ordinal {
    ticks: i64,
    next: u32,
}

impl Ordinal {
    fn next_at(&mut self, ticks: i64) -> u32 {
        if ticks != self.ticks {
            (self.ticks, self.next) = (ticks, 0);
        }
        self.next = self.next.saturating_add(1);
        self.next - 1
    }
}

/// The last event of a runtime on a thread.
#[derive(Clone, Copy)]
struct Last {
    ticks: i64,
    ordinal: u32,
}

/// The first walk.
#[derive(Default)]
pub struct StackCollector {
    refs: Noted,
    fates: Vec<Fate>,
    /// The last reference to each key that is not defined yet.
    pending: Map<u64, u32>,
    last: Map<(u32, usize), Last>,
    ordinal: Ordinal,
    copies: Option<BufWriter<File>>,
    copied: u64,
    /// Places of copies by their addresses, and the bytes that they take.
    known: Map<Box<[u8]>, u64>,
    known_bytes: usize,
    failed: Option<std::io::Error>,
}

impl StackCollector {
    /// Takes note of an event, in the order of time. `at` is where it begins in `body`.
    pub fn event(&mut self, head: &Head, payload: &[u8], ticks: i64, body: &Body<'_>, at: usize) {
        let ordinal = self.ordinal.next_at(ticks);
        let Some(carrier) = carrier(head, payload) else {
            if let Some(provider) = provider(head)
                && (self.last.len() < MAX_THREADS || self.last.contains_key(&(head.thread_id, provider)))
            {
                self.last.insert((head.thread_id, provider), Last { ticks, ordinal });
            }
            return;
        };
        if self.fates.len() >= MAX_STACKS {
            return;
        }
        let number = self.fates.len() as u32;
        let narrow = head.pointer_size == 4;
        let mut fate = Fate::Unattached;
        let mut new = Ref {
            ticks,
            place: NOWHERE,
            thread_or_ordinal: 0,
            carrier: number,
            len: 0,
            part: Part::User,
            narrow,
            lane: 0,
        };
        let lane = |thread| lane_of(thread, body.processor);
        match carrier {
            Carrier::Whole(ticks, thread_or_ordinal, addresses) => {
                let part = part_of(addresses, narrow);
                let place = self.place(addresses, payload, head, body, at);
                let lane = lane(thread_or_ordinal);
                self.refs.push(Ref { ticks, place, thread_or_ordinal, len: len(addresses), part, lane, ..new });
            }
            Carrier::Keyed(ticks, thread_or_ordinal, part, key) => {
                let before = self.pending.insert(key, self.refs.len() as u32).unwrap_or(NO_REF);
                let lane = lane(thread_or_ordinal);
                self.refs.push(Ref { ticks, place: before.into(), thread_or_ordinal, part, lane, ..new });
            }
            Carrier::Definition(key, addresses) => {
                if let Some(first) = self.pending.remove(&key) {
                    fate = Fate::Taken;
                    let place = self.place(addresses, payload, head, body, at);
                    self.define(first, place, len(addresses));
                }
            }
            Carrier::Runtime(addresses) => {
                if let Some(last) = provider(head).and_then(|p| self.last.remove(&(head.thread_id, p))) {
                    new.place = self.place(addresses, payload, head, body, at);
                    let (ticks, thread_or_ordinal) = (last.ticks, last.ordinal);
                    self.refs.push(Ref { ticks, thread_or_ordinal, len: len(addresses), part: Part::Runtime, ..new });
                }
            }
        }
        self.fates.push(fate);
    }

    /// Gives all references to a key, of which `first` is the last, their addresses.
    fn define(&mut self, first: u32, place: u64, len: u16) {
        let mut next = u64::from(first);
        while next != u64::from(NO_REF)
            && let Some(waiting) = self.refs.get_mut(next as usize)
        {
            next = std::mem::replace(&mut waiting.place, place);
            waiting.len = len;
        }
    }

    /// Where the addresses, a part of the payload of the event at `at`, can be read again.
    fn place(&mut self, addresses: &[u8], payload: &[u8], head: &Head, body: &Body<'_>, at: usize) -> u64 {
        if let Some(event) = body.place_of(at) {
            let before = addresses.as_ptr().addr() - payload.as_ptr().addr();
            return event + (head.size - payload.len() + before) as u64;
        }
        match self.copy(addresses) {
            Ok(place) => place | COPIED,
            Err(error) => {
                self.failed.get_or_insert(error);
                NOWHERE
            }
        }
    }

    fn copy(&mut self, addresses: &[u8]) -> std::io::Result<u64> {
        if let Some(place) = self.known.get(addresses) {
            return Ok(*place);
        }
        let out = match &mut self.copies {
            Some(out) => out,
            None => self.copies.insert(BufWriter::with_capacity(256 << 10, temporary::file()?)),
        };
        out.write_all(addresses)?;
        let place = self.copied;
        self.copied += addresses.len() as u64;
        if self.known_bytes > KNOWN_BYTES {
            self.known_bytes = 0;
            self.known.clear();
        }
        self.known_bytes += addresses.len() + KNOWN_COST;
        self.known.insert(addresses.into(), place);
        Ok(place)
    }

    /// The stacks, for the second walk, and the error of the temporary file, if there was one.
    pub fn finish(mut self) -> (Stacks, Option<std::io::Error>) {
        // Keys that are never defined.
        let mut undefined: Vec<u32> = std::mem::take(&mut self.pending).into_values().collect();
        undefined.sort_unstable();
        for first in undefined {
            self.define(first, NOWHERE, 0);
        }
        let copies = self.copies.take().map(MappedFile::temporary).transpose().unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            None
        });
        let stacks = Stacks { refs: Refs::sorted(self.refs), fates: self.fates, copies, ..Stacks::default() };
        (stacks, self.failed)
    }
}

/// Every processor has an idle thread with the id 0. The kernel writes its stacks on the same processor.
fn lane_of(thread: u32, processor: u32) -> u16 {
    if thread == 0 { processor as u16 } else { 0 }
}

fn len(addresses: &[u8]) -> u16 {
    // An event has less than 64 KB.
    u16::try_from(addresses.len()).unwrap_or_default()
}

fn provider(head: &Head) -> Option<usize> {
    let guid = head.guid.filter(|_| !head.is_kernel)?;
    CLR.iter().position(|known| *known == guid)
}

/// The second walk: the stacks of a file, and the events that they were attached to.
#[derive(Default)]
pub struct Stacks {
    refs: Refs,
    /// Of every event that is a stack, in the order of time.
    fates: Vec<Fate>,
    copies: Option<MappedFile>,
    /// Stacks read from files since pages were given back.
    reads: u32,
    ordinal: Ordinal,
    carriers: usize,
    /// Where the stacks of the current time begin.
    cursor: usize,
    now: Option<i64>,
    frames: Vec<u8>,
    /// Events that are stacks and were delivered with the event that they belong to.
    pub attached: u64,
    /// Events that are stacks and whose own event is not there.
    pub unattached: u64,
}

/// Where addresses can be read.
pub struct Sources<'s> {
    /// From the current event on to the end of its buffer.
    pub bytes: &'s [u8],
    /// Their offset in the file; `None` when the buffer was compressed.
    pub place: Option<u64>,
    /// The file.
    pub file: Option<&'s MappedFile>,
}

impl Sources<'_> {
    /// Bytes of the current buffer: most stacks follow their events at once.
    fn near(&self, place: u64, len: u16) -> Option<&[u8]> {
        let at = usize::try_from(place.checked_sub(self.place?)?).ok()?;
        self.bytes.get(at..at.checked_add(len.into())?)
    }
}

/// The place of an event in the second walk.
#[derive(Clone, Copy, Debug)]
pub enum Turn {
    /// The number among the events of its time.
    Event(u32),
    /// A stack or the definition of one: its number among those.
    Carrier(usize),
}

impl Stacks {
    /// Counts an event; every event is counted, in the order of time.
    pub fn turn(&mut self, head: &Head, payload: &[u8], ticks: i64) -> Turn {
        let ordinal = self.ordinal.next_at(ticks);
        if self.fates.is_empty() || carrier(head, payload).is_none() {
            return Turn::Event(ordinal);
        }
        self.carriers += 1;
        Turn::Carrier(self.carriers - 1)
    }

    /// The stack of an event, as 8-byte addresses; empty when there is none. `at` is its time and processor, `threads`
    /// are those under which its stack may be filed: the one that wrote it and the one that it is about.
    pub fn of_event(
        &mut self,
        head: &Head,
        ordinal: u32,
        (ticks, processor): (i64, u32),
        threads: [u32; 2],
        from: &Sources<'_>,
    ) -> &[u8] {
        self.frames.clear();
        if self.now != Some(ticks) {
            let start = if self.now.is_some_and(|now| ticks < now) { 0 } else { self.cursor };
            self.cursor = self.refs.find(start, (ticks, 0, Part::Kernel, 0));
            self.now = Some(ticks);
        }
        if self.refs.get(self.cursor).is_none_or(|r| r.ticks != ticks) {
            return &self.frames;
        }
        if provider(head).is_some() {
            self.take((ticks, ordinal, Part::Runtime, 0), from);
        }
        if subject::is_added_by_merge(head) {
            // The event has the time and the thread of the one that it describes further, but is no event of the
            // kernel.
            return &self.frames;
        }
        let [writer, about] = threads;
        for thread in [writer, about].into_iter().take(if writer == about { 1 } else { 2 }) {
            if self.frames.is_empty() && thread != NO_ID {
                let lane = lane_of(thread, processor);
                self.take((ticks, thread, Part::Kernel, lane), from);
                self.take((ticks, thread, Part::User, lane), from);
            }
        }
        &self.frames
    }

    /// The first stack at or behind a place in the list that is of this kind and fits.
    fn first(&mut self, from: usize, key: Key, fits: impl Fn(&Ref, &[Fate]) -> bool) -> Option<Ref> {
        let first = self.refs.find(from, key);
        for index in first..first + MAX_SAME {
            let found = self.refs.get(index).filter(|r| r.key() == key)?;
            if fits(&found, &self.fates) {
                return Some(found);
            }
        }
        None
    }

    /// Appends the addresses of the first stack of this kind that no event has yet.
    fn take(&mut self, key: Key, from: &Sources<'_>) {
        let is_free =
            |r: &Ref, fates: &[Fate]| fates.get(r.carrier as usize) == Some(&Fate::Unattached) && r.place != NOWHERE;
        let Some(found) = self.first(self.cursor, key, is_free) else { return };
        if let Some(fate) = self.fates.get_mut(found.carrier as usize) {
            *fate = Fate::Taken;
        }
        self.read(&found, from);
    }

    fn read(&mut self, found: &Ref, from: &Sources<'_>) {
        if found.place & COPIED == 0
            && let Some(bytes) = from.near(found.place, found.len)
        {
            return widen(bytes, found.narrow, &mut self.frames);
        }
        let file = if found.place & COPIED == 0 { from.file } else { self.copies.as_ref() };
        let Some(file) = file else { return };
        let at = usize::try_from(found.place & !COPIED).unwrap_or(usize::MAX);
        widen(&file.part(at..at.saturating_add(found.len.into())), found.narrow, &mut self.frames);
        self.reads += 1;
        if self.reads == MAX_READS {
            self.reads = 0;
            file.release_all();
        }
    }

    /// Of an event that is a stack: whether its own event has it. If not, its addresses, so that they are not lost.
    pub fn of_carrier(
        &mut self,
        number: usize,
        head: &Head,
        payload: &[u8],
        processor: u32,
        from: &Sources<'_>,
    ) -> (bool, &[u8]) {
        self.frames.clear();
        let taken = self.fates.get(number) == Some(&Fate::Taken);
        let narrow = head.pointer_size == 4;
        match carrier(head, payload) {
            // The definition of a key says nothing itself.
            Some(Carrier::Definition(..)) | None => return (taken, &self.frames),
            _ if taken => {}
            Some(Carrier::Whole(_, _, addresses) | Carrier::Runtime(addresses)) => {
                widen(addresses, narrow, &mut self.frames);
            }
            Some(Carrier::Keyed(ticks, thread, part, _)) => {
                let key = (ticks, thread, part, lane_of(thread, processor));
                if let Some(own) = self.first(0, key, |r, _| r.carrier as usize == number) {
                    self.read(&own, from);
                }
            }
        }
        self.attached += u64::from(taken);
        self.unattached += u64::from(!taken);
        (taken, &self.frames)
    }
}

/// Addresses of 4 or 8 bytes as addresses of 8.
pub fn widen(addresses: &[u8], narrow: bool, out: &mut Vec<u8>) {
    if !narrow {
        return out.extend_from_slice(addresses);
    }
    let (words, _) = addresses.as_chunks::<4>();
    words.iter().for_each(|word| out.extend(u64::from(u32::from_le_bytes(*word)).to_le_bytes()));
}
