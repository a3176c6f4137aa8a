//! Chunks of a recording, and the records in those of one thread.

use std::collections::HashMap;

use super::format::{CHUNK_HEADER, CHUNK_MARK, COMMIT_AT, RECORD_HEADER, committed, crc32};
use crate::bytes::{Parsed, take, u8le, u16le, u32le, u64le};
use crate::error::{Problem, Severity};

/// All chunks, by thread.
pub struct Chunks<'a> {
    /// Threads in the order of their first chunk.
    pub threads: Vec<Cursor<'a>>,
    /// End of the last committed byte.
    pub end: u64,
}

/// The records of one thread, one after the other.
pub struct Cursor<'a> {
    /// OS thread id.
    pub thread_id: u64,
    /// The record that comes next.
    pub current: Option<RawRecord<'a>>,
    /// Committed parts of its chunks that are still to come, last first: start, end, number.
    parts: Vec<(usize, usize, u32)>,
    at: usize,
    end: usize,
}

/// A record whose payload is not looked into.
#[derive(Clone, Copy, Debug)]
pub struct RawRecord<'a> {
    pub kind: u8,
    pub flags: u8,
    pub sequence: u64,
    pub ticks: u64,
    pub duration: u32,
    pub payload: &'a [u8],
    pub offset: u64,
}

struct ChunkHead {
    capacity: usize,
    thread_id: u64,
    thread: u32,
    number: u32,
    committed: Option<u32>,
}

/// The header of a chunk, if these bytes are one.
fn chunk_head(input: &[u8]) -> Option<ChunkHead> {
    fn parse(input: &[u8]) -> Parsed<'_, (u32, ChunkHead)> {
        let (rest, _) = u32le("chunk mark")(input)?;
        let (rest, capacity) = u32le("chunk capacity")(rest)?;
        let (rest, thread_id) = u64le("thread id")(rest)?;
        let (rest, thread) = u32le("thread")(rest)?;
        let (rest, number) = u32le("chunk number")(rest)?;
        let (rest, word) = u64le("commit word")(rest)?;
        let (rest, crc) = u32le("chunk CRC")(rest)?;
        let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
        Ok((rest, (crc, ChunkHead { capacity, thread_id, thread, number, committed: committed(word) })))
    }
    if input.first_chunk() != Some(&CHUNK_MARK.to_le_bytes()) {
        return None;
    }
    let (_, (crc, head)) = parse(input).ok()?;
    let intact = crc32(0, input.get(..COMMIT_AT)?) == crc;
    (intact && head.capacity >= CHUNK_HEADER).then_some(head)
}

impl<'a> Chunks<'a> {
    /// Finds all chunks behind the header.
    pub fn scan(bytes: &'a [u8], header: usize, align: u32, visitor: &mut impl super::Visitor) -> Chunks<'a> {
        let align = usize::try_from(align).unwrap_or(8).max(8);
        let mut found = Chunks { threads: Vec::new(), end: header as u64 };
        let mut numbers: HashMap<u32, usize> = HashMap::new();
        let mut at = header.next_multiple_of(align);
        let mut damage: Option<(usize, u64)> = None;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if let Some(chunk) = chunk_head(rest) {
                report_damage(&mut damage, visitor);
                let index = *numbers.entry(chunk.thread).or_insert(found.threads.len());
                if index == found.threads.len() {
                    let thread_id = chunk.thread_id;
                    found.threads.push(Cursor { thread_id, current: None, parts: Vec::new(), at: 0, end: 0 });
                }
                found.add(index, &chunk, at, bytes, visitor);
                at = at.saturating_add(chunk.capacity).next_multiple_of(align);
                continue;
            }
            // Space that no thread has taken is zero.
            let step = rest.get(..align).unwrap_or(rest);
            if step.iter().any(|byte| *byte != 0) {
                damage.get_or_insert((at, 0)).1 += step.len() as u64;
            }
            at = at.saturating_add(align);
        }
        report_damage(&mut damage, visitor);
        for thread in &mut found.threads {
            // A sort that keeps the order of the file where numbers are equal.
            thread.parts.sort_by_key(|(_, _, number)| std::cmp::Reverse(*number));
        }
        found
    }

    fn add(&mut self, index: usize, chunk: &ChunkHead, at: usize, bytes: &[u8], visitor: &mut impl super::Visitor) {
        let start = at + CHUNK_HEADER;
        let room = chunk.capacity - CHUNK_HEADER;
        let known = chunk.committed.and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= room);
        let end = start.saturating_add(known.unwrap_or(room));
        if known.is_none() {
            let message = "the commit word of a chunk is damaged: its records are read as far as they are whole";
            let problem = Problem::new(Severity::Error, "damaged_chunk", (at + COMMIT_AT) as u64, message);
            visitor.problem(problem.thread(chunk.thread_id));
        }
        let there = end.min(bytes.len());
        if there < end {
            let message = "the recording is cut within a chunk";
            let problem = Problem::new(Severity::DataLoss, "cut_recording", there as u64, message);
            visitor.problem(problem.count((end - there) as u64).thread(chunk.thread_id));
        }
        let torn = bytes.get(end..at.saturating_add(chunk.capacity).min(bytes.len())).unwrap_or_default();
        if known.is_some() && torn.iter().take(RECORD_HEADER).any(|byte| *byte != 0) {
            let message = "a record was being written when the recording ended here";
            let problem = Problem::new(Severity::Info, "torn_record", end as u64, message);
            visitor.problem(problem.thread(chunk.thread_id));
        }
        self.end = self.end.max(there as u64);
        if let Some(thread) = self.threads.get_mut(index) {
            thread.parts.push((start.min(there), there, chunk.number));
        }
    }
}

fn report_damage(damage: &mut Option<(usize, u64)>, visitor: &mut impl super::Visitor) {
    if let Some((at, bytes)) = damage.take() {
        let message = "these bytes are no chunk";
        visitor.problem(Problem::new(Severity::Error, "damaged_chunk", at as u64, message).count(bytes));
    }
}

/// A record at the start of `input`, and whether its CRC is right.
fn record(input: &[u8], offset: usize) -> Parsed<'_, (RawRecord<'_>, bool)> {
    let (rest, kind) = u8le("record kind")(input)?;
    let (rest, flags) = u8le("record flags")(rest)?;
    let (rest, _) = u16le("reserved")(rest)?;
    let (rest, len) = u32le("payload length")(rest)?;
    let (rest, sequence) = u64le("sequence")(rest)?;
    let (rest, ticks) = u64le("ticks")(rest)?;
    let (rest, duration) = u32le("duration")(rest)?;
    let (rest, crc) = u32le("record CRC")(rest)?;
    let (rest, payload) = take(usize::try_from(len).unwrap_or(usize::MAX), "payload")(rest)?;
    let head = input.get(..RECORD_HEADER - 4).unwrap_or_default();
    let intact = crc32(crc32(0, head), payload) == crc;
    Ok((rest, (RawRecord { kind, flags, sequence, ticks, duration, payload, offset: offset as u64 }, intact)))
}

impl<'a> Cursor<'a> {
    /// Goes on to the next whole record of the thread.
    pub fn advance(&mut self, bytes: &'a [u8], problem: &mut dyn FnMut(Problem)) {
        loop {
            while self.at >= self.end {
                let Some((start, end, _)) = self.parts.pop() else {
                    self.current = None;
                    return;
                };
                (self.at, self.end) = (start, end);
            }
            let input = bytes.get(self.at..self.end).unwrap_or_default();
            let offset = self.at;
            match record(input, offset) {
                Ok((rest, (record, true))) => {
                    self.at = self.end - rest.len();
                    self.current = Some(record);
                    return;
                }
                Ok((rest, (_, false))) => {
                    let message = "the CRC of a record is wrong; it is left out";
                    problem(Problem::new(Severity::Error, "damaged_record", offset as u64, message));
                    // Its length may be what is damaged: it is believed if a whole record, or the end, is where it says.
                    let believed = rest.is_empty() || matches!(record_after(rest), Some(true));
                    self.at = if believed { self.end - rest.len() } else { self.skip(bytes, problem) };
                }
                Err(_) => {
                    let message = "a record is longer than its chunk; what is left of the chunk is searched for others";
                    let lost = Problem::new(Severity::DataLoss, "overlong_record", offset as u64, message);
                    problem(lost.count(input.len() as u64));
                    self.at = self.skip(bytes, problem);
                }
            }
        }
    }

    /// Looks for the next whole record behind a damaged one.
    fn skip(&self, bytes: &[u8], problem: &mut dyn FnMut(Problem)) -> usize {
        let left = bytes.get(self.at..self.end).unwrap_or_default();
        // Each place costs a CRC over what would be its payload, so a bounded number of likely ones is tried.
        let mut tries = 64;
        for step in 1..left.len().saturating_sub(RECORD_HEADER - 1) {
            let rest = left.get(step..).unwrap_or_default();
            let likely = rest.first().is_some_and(|k| super::format::kind_name(*k).is_some())
                && rest.get(2..4) == Some(&[0, 0])
                && rest.get(1).is_some_and(|flags| *flags < 8);
            if likely && record(rest, 0).is_ok() {
                if record_after(rest) == Some(true) {
                    let message = "bytes between two records are not readable";
                    problem(Problem::new(Severity::Error, "damaged_chunk", self.at as u64, message).count(step as u64));
                    return self.at + step;
                }
                tries -= 1;
                if tries == 0 {
                    break;
                }
            }
        }
        self.end
    }
}

fn record_after(input: &[u8]) -> Option<bool> {
    record(input, 0).ok().map(|(_, (_, intact))| intact)
}
