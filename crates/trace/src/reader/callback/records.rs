//! Records of one thread: out of its chunks, past damage, in the order of their sequence numbers.

use std::collections::VecDeque;

use nom::Parser;

use crate::bytes::{Parsed, take, u8le, u16le, u32le, u64le};
use crate::error::{Problem, Report};
use corprof::{RECORD_HEADER, crc32, kind_name};

/// A thread's records may be this far from their order in the file. A profiler that writes at the exit of a
/// callback writes those that were entered within it first.
const WINDOW: usize = 64;
/// Bytes that a search for the next record may run a CRC over, as a multiple of the bytes that are searched. A search
/// without damage of the worst kind stays far below it.
const SEARCH_COST: usize = 16;

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

/// A record at the start of `input`, which lies at `offset`; and whether its CRC is right.
fn record(input: &[u8], offset: usize) -> Parsed<'_, (RawRecord<'_>, bool)> {
    let (rest, (kind, flags, _, len, sequence, ticks, duration, crc)) = (
        u8le("record kind"),
        u8le("record flags"),
        u16le("reserved"),
        u32le("payload length"),
        u64le("sequence"),
        u64le("ticks"),
        u32le("duration"),
        u32le("record CRC"),
    )
        .parse(input)?;
    let (rest, payload) = take(usize::try_from(len).unwrap_or(usize::MAX), "payload")(rest)?;
    let head = input.get(..RECORD_HEADER - 4).unwrap_or_default();
    let intact = crc32(crc32(0, head), payload) == crc;
    Ok((rest, (RawRecord { kind, flags, sequence, ticks, duration, payload, offset: offset as u64 }, intact)))
}

/// Whether there is a complete record at the start of `input`.
fn is_record(input: &[u8]) -> bool {
    record(input, 0).is_ok_and(|(_, (_, intact))| intact)
}

/// Where in `input` the first whole record of a known kind begins.
pub fn find_record(input: &[u8]) -> Option<usize> {
    let mut budget = input.len().saturating_mul(SEARCH_COST);
    for at in 0..=input.len().checked_sub(RECORD_HEADER)? {
        let rest = input.get(at..)?;
        let likely = matches!(rest, [kind, 0..8, 0, 0, ..] if kind_name(*kind).is_some());
        if !likely {
            continue;
        }
        let Ok((behind, (_, intact))) = record(rest, 0) else { continue };
        if intact {
            return Some(at);
        }
        budget = budget.checked_sub(rest.len() - behind.len())?;
    }
    None
}

/// A stretch of the file with records of one thread.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub start: usize,
    pub end: usize,
    /// The number of the record among those of its thread.
    pub number: u32,
    /// Whether its end is not known exactly, so that zeros may follow the last record.
    pub is_open: bool,
}

/// The records of one thread, one after the other.
pub struct Cursor<'a> {
    /// OS thread id; 0 when it is not known.
    pub thread_id: u64,
    /// Parts that are still to come, last first.
    pub parts: Vec<Part>,
    /// The part at hand: what is left of it.
    part: Part,
    /// Records that were read ahead, in order.
    ahead: VecDeque<RawRecord<'a>>,
}

impl<'a> Cursor<'a> {
    /// A thread without records.
    pub fn new(thread_id: u64) -> Cursor<'a> {
        let part = Part { start: 0, end: 0, number: 0, is_open: false };
        Cursor { thread_id, parts: Vec::new(), part, ahead: VecDeque::new() }
    }

    /// Takes the record with the smallest sequence number of those read ahead.
    pub fn take(&mut self) -> Option<RawRecord<'a>> {
        self.ahead.pop_front()
    }

    /// Reads ahead, and says which number comes next.
    pub fn fill(&mut self, bytes: &'a [u8], report: &mut Report<'_>) -> Option<u64> {
        while self.ahead.len() < WINDOW {
            let Some(record) = self.read(bytes, report) else { break };
            // Nearly always the last of all.
            let behind = self.ahead.iter().rev().take_while(|other| other.sequence > record.sequence).count();
            self.ahead.insert(self.ahead.len() - behind, record);
        }
        self.ahead.front().map(|record| record.sequence)
    }

    /// The next whole record in the file.
    fn read(&mut self, bytes: &'a [u8], report: &mut Report<'_>) -> Option<RawRecord<'a>> {
        loop {
            while self.part.start >= self.part.end {
                self.part = self.parts.pop()?;
            }
            let (at, end) = (self.part.start, self.part.end);
            let input = bytes.get(at..end).unwrap_or_default();
            match record(input, at) {
                Ok((rest, (record, true))) => {
                    self.part.start = end - rest.len();
                    return Some(record);
                }
                _ if self.part.is_open && input.iter().all(|byte| *byte == 0) => self.part.start = end,
                Ok((rest, (_, false))) => {
                    let message = "the CRC of a record is wrong; it is left out";
                    report(Problem::error("damaged_record", at as u64, message).thread(self.thread_id));
                    // The length itself may be damaged: it is believed if a whole record, or the end, is where it says.
                    let believed = rest.is_empty() || is_record(rest);
                    self.part.start = if believed { end - rest.len() } else { self.skip(input, report) };
                }
                Err(_) => {
                    let message = "a record is longer than its chunk; the rest of the chunk is searched for others";
                    let problem = Problem::loss("overlong_record", at as u64, message);
                    report(problem.count(input.len() as u64).thread(self.thread_id));
                    self.part.start = self.skip(input, report);
                }
            }
        }
    }

    /// Where the next whole record behind a damaged one begins.
    fn skip(&self, input: &[u8], report: &mut Report<'_>) -> usize {
        let Some(bytes) = find_record(input.get(1..).unwrap_or_default()) else { return self.part.end };
        let message = "bytes between two records are not readable";
        let problem = Problem::error("damaged_chunk", self.part.start as u64, message);
        report(problem.count(bytes as u64 + 1).thread(self.thread_id));
        self.part.start + 1 + bytes
    }
}
