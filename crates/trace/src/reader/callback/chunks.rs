//! Chunks of a recording, by the threads that filled them; and what is left of chunks whose header is damaged.

use std::collections::HashMap;

use nom::Parser;

use super::parse::expect;
use super::records::{Cursor, Part, find_record};
use crate::bytes::{Parsed, u32le, u64le};
use crate::error::{Problem, Report};
use crate::source::MappedFile;
use corprof::{CHUNK_HEADER, CHUNK_MARK, COMMIT_AT, RECORD_HEADER, committed, crc32};

/// Bytes of the file after which the pages that were looked at are given back.
pub const RELEASE_STEP: usize = 8 << 20;

/// All chunks, by thread.
pub struct Chunks<'a> {
    /// Threads in the order of their first chunk.
    pub threads: Vec<Cursor<'a>>,
    /// End of the last committed byte.
    pub end: u64,
    /// Indices of threads by their numbers in the recording.
    numbers: HashMap<u32, usize>,
}

struct ChunkHeader {
    capacity: usize,
    thread_id: u64,
    thread: u32,
    number: u32,
    committed: Option<u32>,
}

fn chunk_header(input: &[u8]) -> Parsed<'_, (ChunkHeader, u32)> {
    let (rest, (_, capacity, thread_id, thread, number, word, crc)) = (
        expect(u32le("chunk mark"), "chunk mark", "\"CHNK\"", |mark| *mark == CHUNK_MARK),
        u32le("chunk capacity"),
        u64le("OS thread id"),
        u32le("thread"),
        u32le("chunk number"),
        u64le("commit word"),
        u32le("chunk CRC"),
    )
        .parse(input)?;
    let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
    Ok((rest, (ChunkHeader { capacity, thread_id, thread, number, committed: committed(word) }, crc)))
}

/// The header of a chunk, if these bytes are one and its CRC is right.
fn chunk_at(input: &[u8]) -> Option<ChunkHeader> {
    // Asked first, because it is asked at every possible place of a chunk.
    if !input.starts_with(&CHUNK_MARK.to_le_bytes()) {
        return None;
    }
    let (_, (header, crc)) = chunk_header(input).ok()?;
    let intact = crc32(0, input.get(..COMMIT_AT)?) == crc;
    (intact && header.capacity >= CHUNK_HEADER).then_some(header)
}

impl<'a> Chunks<'a> {
    /// Finds all chunks behind the header. Only the places where a chunk may begin are looked at, and damage.
    pub fn scan(map: &'a MappedFile, header: usize, align: u32, report: &mut Report<'_>) -> Chunks<'a> {
        let bytes = map.bytes();
        let align = usize::try_from(align).unwrap_or(8).max(8);
        let mut found = Chunks { threads: Vec::new(), end: header as u64, numbers: HashMap::new() };
        let mut at = header.next_multiple_of(align);
        let mut released = at;
        // Where bytes begin that are no chunk, and where the last of them that are not zero end.
        let mut damage: Option<(usize, usize)> = None;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if let Some(chunk) = chunk_at(rest) {
                found.damage(damage.take(), bytes, report);
                found.chunk(&chunk, at, bytes, report);
                at = at.saturating_add(chunk.capacity).next_multiple_of(align);
            } else {
                // Space that no thread has taken is zero.
                let step = rest.get(..align).unwrap_or(rest);
                if step.iter().any(|byte| *byte != 0) {
                    damage.get_or_insert((at, at)).1 = at + step.len();
                }
                at = at.saturating_add(align);
            }
            if at.saturating_sub(released) >= RELEASE_STEP {
                map.release_all();
                released = at;
            }
        }
        found.damage(damage, bytes, report);
        for thread in &mut found.threads {
            // A sort that keeps the order of the file where numbers are equal.
            thread.parts.sort_by_key(|part| std::cmp::Reverse(part.number));
        }
        found
    }

    /// Takes note of a chunk at `at`.
    fn chunk(&mut self, chunk: &ChunkHeader, at: usize, bytes: &[u8], report: &mut Report<'_>) {
        let start = at + CHUNK_HEADER;
        let room = chunk.capacity - CHUNK_HEADER;
        let known = chunk.committed.and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= room);
        let end = start.saturating_add(known.unwrap_or(room));
        if known.is_none() {
            let message = "the commit word of a chunk is damaged: its records are read as far as they are complete";
            report(Problem::error("damaged_chunk", (at + COMMIT_AT) as u64, message).thread(chunk.thread_id));
        }
        let there = end.min(bytes.len());
        if there < end {
            let problem = Problem::loss("cut_recording", there as u64, "the recording is cut within a chunk");
            report(problem.count((end - there) as u64).thread(chunk.thread_id));
        }
        let torn = bytes.get(end..at.saturating_add(chunk.capacity).min(bytes.len())).unwrap_or_default();
        if known.is_some() && torn.iter().take(RECORD_HEADER).any(|byte| *byte != 0) {
            let message = "a record was being written when the recording ended here";
            report(Problem::info("torn_record", end as u64, message).thread(chunk.thread_id));
        }
        self.end = self.end.max(there as u64);
        let index = *self.numbers.entry(chunk.thread).or_insert(self.threads.len());
        if index == self.threads.len() {
            self.threads.push(Cursor::new(chunk.thread_id));
        }
        if let Some(thread) = self.threads.get_mut(index) {
            let part = Part { start: start.min(there), end: there, number: chunk.number, is_open: known.is_none() };
            thread.parts.push(part);
        }
    }

    /// Takes note of bytes that are no chunk. Records among them are those of a chunk whose header is damaged: they are
    /// read as records of a thread of their own, because nothing says which thread it was.
    fn damage(&mut self, damage: Option<(usize, usize)>, bytes: &[u8], report: &mut Report<'_>) {
        let Some((start, end)) = damage else { return };
        let lost = match find_record(bytes.get(start..end).unwrap_or_default()) {
            Some(at) => {
                let mut thread = Cursor::new(0);
                thread.parts.push(Part { start: start + at, end, number: 0, is_open: true });
                self.threads.push(thread);
                self.end = self.end.max(end as u64);
                at
            }
            None => end - start,
        };
        let message = if lost < end - start {
            "these bytes are not a chunk; the records behind them are read as those of an unknown thread"
        } else {
            "these bytes are no chunk"
        };
        report(Problem::error("damaged_chunk", start as u64, message).count(lost as u64));
    }
}
