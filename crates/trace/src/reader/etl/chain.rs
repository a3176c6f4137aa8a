//! Walks the chain of buffers from one end to the other, reading only their headers, and reports what is wrong with it.

use std::ops::Range;

use super::buffer::{BUFFER_LOST, Buffer, Compression, EVENTS_LOST, HEADER, MAX_BUFFER};
use super::header::{self, Head};
use super::logfile::LogFile;
use super::resync::Finder;
use crate::bytes::inner;
use crate::error::{Error, Problem, Report, Result, Severity};
use crate::source::MappedFile;
use crate::time::Clock;

/// No more buffers than this are remembered (128 MB): a terabyte at the usual size.
const MAX_BUFFERS: usize = 4 << 20;
/// Gaps in the chain that are remembered.
const MAX_GAPS: usize = 1 << 16;

/// Where a buffer with events lies; 32 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Offset of its header in the file.
    pub offset: u64,
    /// Bytes of it that are in the file, header included.
    pub stored: u32,
    /// Valid bytes, header included, when it is expanded.
    pub valid: u32,
    /// Number in the order in which buffers were begun.
    pub sequence: i64,
    /// Processor.
    pub processor: u16,
    /// Whether the body is compressed.
    pub compressed: bool,
    /// Whether the file ends inside of it.
    pub cut: bool,
    /// Whether events of its processor before it were lost, as its header or damage to the chain says.
    pub lossy: bool,
    /// Whether events of its processor behind it were lost.
    pub lossy_behind: bool,
    /// Which of the logs it belongs to.
    pub log: u16,
}

/// The logs of one recording. There is one, but for archives that hold several (that of the kernel, and others).
pub struct Session {
    /// The log that began first: its clock is that of the recording.
    pub base: Log,
    /// All logs, in the order of their bytes.
    pub logs: Vec<Log>,
    /// Logs that cannot be read.
    pub problems: Vec<Problem>,
}

/// The first buffer of a log and what follows from it.
#[derive(Clone, Debug)]
pub struct Log {
    /// The header event.
    pub header: LogFile,
    /// Header of the header event: its time is the start of the clock.
    pub head: Head,
    /// The compression of the buffers.
    pub compression: Compression,
    /// The bytes of the log in the file.
    pub bytes: Range<usize>,
    /// The log's own clock, when that is another than the recording's.
    clock: Option<Clock>,
}

/// The buffers of a file.
#[derive(Default)]
pub struct Chain {
    /// The buffers that hold events, in the order of the file.
    pub links: Vec<Link>,
    /// Whether the chain ends where the file ends.
    pub whole: bool,
    /// Bytes that it covers.
    pub bytes: u64,
    /// Where buffers are missing or cannot be used, by log and offset. Their processors are unknown.
    gaps: Vec<(u16, u64)>,
    /// Logs that say that they have more buffers.
    lacking: Vec<u16>,
}

impl Session {
    /// Reads the header buffers of logs that begin at these places; an error when the first is no .etl, its header
    /// cannot be used, or they are not of one system.
    pub fn open(map: &MappedFile, starts: &[u64]) -> Result<Session> {
        let place = |at: Option<&u64>| at.and_then(|at| usize::try_from(*at).ok()).unwrap_or(map.size());
        let (mut logs, mut problems) = (Vec::new(), Vec::new());
        for (index, start) in starts.iter().enumerate() {
            let bytes = place(Some(start))..place(starts.get(index + 1));
            match Log::open(map, bytes) {
                Ok(log) => logs.push(log),
                Err(error) if logs.is_empty() => return Err(error),
                Err(error) => problems.push(Problem::error("unreadable_log", *start, error.to_string())),
            }
        }
        let base = logs.iter().min_by_key(|log| log.header.start_utc_ns().unwrap_or(i64::MAX)).cloned();
        let Some(base) = base else { return Err(Error::Internal("an archive without logs".into())) };
        if let Some(log) = logs.iter().find(|log| log.is_of_another_start(&base)) {
            // Ids of processes would be mixed up.
            return Err(Error::Unreadable {
                path: map.path().to_owned(),
                offset: log.bytes.start as u64,
                what: "a log of another system, or of another start of it".into(),
                expected: "the logs of one session; unpack the archive and give them one by one".into(),
            });
        }
        for log in &mut logs {
            log.clock = (!log.shares_clock(&base)).then(|| log.clock());
        }
        Ok(Session { base, logs, problems })
    }

    /// Facts of the header that have no field in [`crate::reader::TraceInfo`]: those of the base, and the names of all
    /// logs.
    pub fn key_values(&self) -> Vec<(String, String)> {
        let mut pairs = self.base.header.key_values();
        if self.logs.len() > 1 {
            let names: Vec<&str> = self.logs.iter().map(|log| log.header.logger_name.as_str()).collect();
            pairs.push(("logs".to_owned(), names.join(", ")));
        }
        pairs
    }

    /// Walks the chains of all logs. Problems are handed to `report`.
    pub fn chain(&self, map: &MappedFile, report: &mut Report<'_>) -> Chain {
        let mut chain = Chain { whole: self.problems.is_empty(), ..Chain::default() };
        for (index, log) in self.logs.iter().enumerate() {
            log.chain(map, index as u16, &mut chain, report);
        }
        chain
    }
}

impl Log {
    fn open(map: &MappedFile, bytes: Range<usize>) -> Result<Log> {
        let (start, size) = (bytes.start, bytes.len());
        let refuse = |offset: u64, what: String, expected: &str| {
            let (path, offset) = (map.path().to_owned(), start as u64 + offset);
            Err(Error::Unreadable { path, offset, what, expected: expected.into() })
        };
        let buffer = match Buffer::parse(&map.part(start..start + HEADER.min(size))) {
            Ok((_, buffer)) => buffer,
            Err(_) => return refuse(0, format!("{size} bytes in all"), "the header buffer of an .etl"),
        };
        if !buffer.is_header() {
            let what = format!("a buffer of type {} and {} bytes", buffer.kind, buffer.size);
            return refuse(0, what, "a header buffer (type 4)");
        }
        let limit = (buffer.valid.min(buffer.size) as usize).min(size);
        let body = map.part(start + HEADER..start + limit);
        let head = match header::parse(&body) {
            Ok(head) if head.is_kernel && (head.group, head.opcode) == (0, 0) && head.ticks.is_some() => head,
            Ok(_) => return refuse(HEADER as u64, "another event".into(), "the header event of an .etl"),
            Err(what) => return refuse(HEADER as u64, what.into(), "the header event of an .etl"),
        };
        let payload = body.get(head.body..head.size).unwrap_or_default();
        let header = match LogFile::parse(payload, usize::from(head.pointer_size)) {
            Ok((_, header)) => header,
            Err(e) => {
                let e = inner(e);
                let offset = e.offset((HEADER + head.body) as u64, payload.len());
                return refuse(offset, format!("{} cannot be read", e.field()), e.expected());
            }
        };
        Ok(Log { header, head, compression: Compression::of_state(buffer.state), bytes, clock: None })
    }

    /// The clock of the log.
    pub fn clock(&self) -> Clock {
        self.header.clock(self.head.ticks.unwrap_or_default()).0
    }

    /// Whether the system was started at quite another time. What the header says of that is rounded to half a second,
    /// and moves when the clock is set.
    fn is_of_another_start(&self, other: &Log) -> bool {
        let (a, b) = (self.header.boot_time, other.header.boot_time);
        a > 0 && b > 0 && a.abs_diff(b) > 60 * 10_000_000
    }

    /// Whether ticks of both logs are the same: the same counter since the same start of the system.
    fn shares_clock(&self, other: &Log) -> bool {
        let (a, b) = (&self.header, &other.header);
        let same_start = a.boot_time > 0 && a.boot_time.abs_diff(b.boot_time) <= 10_000_000;
        let same_rate = self.clock().frequency == other.clock().frequency && a.is_utc() == b.is_utc();
        let same_log = self.bytes == other.bytes;
        same_log || same_rate && (a.is_utc() || same_start)
    }

    /// A time of an event of this log in the clock of the recording.
    pub fn ticks(&self, ticks: i64, base: &Log) -> i64 {
        self.clock.map_or(ticks, |own| own.translate(ticks, &base.clock()))
    }

    /// Walks the chain of its buffers.
    fn chain(&self, map: &MappedFile, index: u16, chain: &mut Chain, report: &mut Report<'_>) {
        let end = self.bytes.end;
        let (mut at, mut buffers, mut lossy, mut skipped) = (self.bytes.start, 0u64, 0u64, 0u64);
        let finder = Finder { file: map, end, buffer_size: self.header.buffer_size as usize };
        loop {
            let rest = end.saturating_sub(at);
            let Ok((_, buffer)) = Buffer::parse(&map.part(at..end.min(at.saturating_add(HEADER)))) else {
                if rest > 0 {
                    let message = format!("the file ends inside the header of a buffer, {rest} bytes into it");
                    report(Problem::error("truncated", at as u64, message));
                    chain.whole = false;
                }
                break;
            };
            let offset = at as u64;
            if !finder.may_be_header(at) {
                let next = finder.find(at + 1..end);
                let gap = next.unwrap_or(end) - at;
                let message = format!("no buffer begins here; {gap} bytes up to the next one are not read");
                report(Problem::error("bad_buffer_size", offset, message).count(gap as u64));
                chain.gap(index, offset);
                let Some(next) = next else { break };
                at = next;
                continue;
            }
            let mut size = buffer.size as usize;
            if size > rest || size < rest && !finder.may_be_header(at + size) {
                // The size is damaged, or the next header, or the file ends here.
                if let Some(next) = finder.find(at + HEADER..at.saturating_add(size)) {
                    let message = format!("a buffer of {size} bytes, but another one begins in it");
                    report(Problem::error("bad_buffer_size", offset, message));
                    chain.gap(index, offset + 1);
                    size = next - at;
                }
            }
            let left = rest.min(size);
            let cut = size > rest;
            if cut {
                let message = format!("the file ends {} bytes before the end of its last buffer", size - rest);
                report(Problem::error("truncated", offset, message));
                chain.whole = false;
            }
            lossy += u64::from(buffer.flags & (EVENTS_LOST | BUFFER_LOST) != 0);
            if !buffer.holds_events() {
                skipped += 1;
            } else if let Some(link) = self.link(&buffer, offset, left, cut, index, report) {
                if chain.links.len() >= MAX_BUFFERS {
                    report(Problem::loss("too_many_buffers", offset, "too many buffers; the rest is not read"));
                    chain.whole = false;
                    break;
                }
                chain.links.push(link);
            } else if buffer.valid as usize != HEADER {
                chain.gap(index, offset);
            }
            at = at.saturating_add(size);
            // Looking at headers only brings their neighbourhood into memory all the same.
            map.release(offset);
            buffers += 1;
            if cut {
                break;
            }
        }
        chain.bytes += at.min(end).saturating_sub(self.bytes.start) as u64;
        let missing = self.header.missing_buffers(buffers);
        if missing > 0 {
            chain.lacking.push(index);
            chain.whole = false;
        }
        let end = at.min(end) as u64;
        let mut total = |severity, code, count, message: &str| {
            if count > 0 {
                report(Problem::new(severity, code, end, message).count(count));
            }
        };
        total(Severity::DataLoss, "missing_buffers", missing, "the header says that more buffers were written");
        total(
            Severity::DataLoss,
            "lossy_buffers",
            lossy,
            "buffers are marked: events or buffers before them were lost",
        );
        total(Severity::Info, "skipped_buffers", skipped, "buffers of other types than events were passed over");
    }

    /// A buffer with events; `None` when there are none in it or it cannot be used.
    fn link(
        &self,
        buffer: &Buffer,
        offset: u64,
        left: usize,
        cut: bool,
        log: u16,
        report: &mut Report<'_>,
    ) -> Option<Link> {
        let valid = buffer.valid as usize;
        let compressed = buffer.is_compressed();
        // No buffer expands to more than the session's buffers hold.
        let limit = match compressed {
            true => (self.header.buffer_size as usize).min(MAX_BUFFER),
            false => buffer.size as usize,
        };
        if valid < HEADER || valid > limit {
            let message = format!("{valid} valid bytes in a buffer of at most {limit}");
            report(Problem::error("bad_buffer_offset", offset, message));
        }
        if valid < HEADER || (compressed && valid > limit) {
            return None;
        }
        let link = Link {
            offset,
            stored: buffer.size.min(u32::try_from(left).unwrap_or(u32::MAX)),
            valid: buffer.valid.min(limit as u32),
            sequence: buffer.sequence,
            processor: buffer.processor,
            compressed,
            cut,
            lossy: buffer.flags & (EVENTS_LOST | BUFFER_LOST) != 0,
            lossy_behind: false,
            log,
        };
        (link.valid as usize > HEADER).then_some(link)
    }
}

impl Chain {
    /// Buffers are missing from an offset on.
    fn gap(&mut self, log: u16, offset: u64) {
        self.whole = false;
        if self.gaps.len() < MAX_GAPS {
            self.gaps.push((log, offset));
        }
    }

    /// Marks the buffers of each processor between which others may be missing, of whatever processor they were.
    fn mark_gaps(&self, links: &mut [Link], jumps: &[(u16, i64)]) {
        let passed = |link: &Link| {
            let behind = |log: u16, offset: u64, sequence: i64| {
                let gaps = self.gaps.partition_point(|gap| *gap <= (log, offset));
                (gaps, jumps.partition_point(|jump| *jump <= (log, sequence)))
            };
            (behind(link.log, link.offset, link.sequence), behind(link.log, u64::MAX, i64::MAX))
        };
        for row in links.chunk_by_mut(|a, b| (a.log, a.processor) == (b.log, b.processor)) {
            let Some(first) = row.first() else { continue };
            let gaps_before = self.gaps.partition_point(|(log, _)| *log < first.log);
            let mut before = (gaps_before, jumps.partition_point(|(log, _)| *log < first.log));
            for link in row.iter_mut() {
                let (here, _) = passed(link);
                link.lossy |= here != before;
                before = here;
            }
            for index in 1..row.len() {
                if row.get(index).is_some_and(|link| link.lossy)
                    && let Some(last) = row.get_mut(index - 1)
                {
                    last.lossy_behind = true;
                }
            }
            if let Some(last) = row.last_mut() {
                let (here, all) = passed(last);
                last.lossy_behind = here != all;
            }
        }
    }

    /// The buffers by processor and age, and how many numbers are missing among their sequence numbers (a hint only).
    ///
    /// In a log that was appended to another one numbers repeat. There the order of the file is that of age.
    pub fn sorted(&self) -> (Vec<Link>, u64) {
        let mut links = self.links.clone();
        links.sort_by_key(|l| (l.log, l.sequence, l.offset));
        let gap = |pair: &[Link]| match pair {
            [a, b] => b.sequence.saturating_sub(a.sequence).saturating_sub(1).max(0) as u64,
            _ => 0,
        };
        // A gap between the header buffer and the first one behind it says nothing: old buffers may be overwritten.
        let of_log = |links: &[Link]| links.windows(2).skip(1).map(gap).fold(0u64, u64::saturating_add);
        let gaps = links.chunk_by(|a, b| a.log == b.log).map(of_log).fold(0u64, u64::saturating_add);
        let mut jumps = Vec::new();
        let repeats = links.windows(2).any(|pair| match pair {
            [a, b] => (a.log, a.sequence, a.processor) == (b.log, b.sequence, b.processor),
            _ => false,
        });
        if repeats {
            links.sort_by_key(|l| (l.log, l.processor, l.offset));
        } else {
            // Missing numbers are a hint only, unless buffers are known to be missing.
            let is_lacking = |log: u16| self.lacking.contains(&log) || self.gaps.iter().any(|gap| gap.0 == log);
            for of_log in links.chunk_by(|a, b| a.log == b.log).filter(|l| l.first().is_some_and(|l| is_lacking(l.log)))
            {
                let behind = of_log.windows(2).skip(1).filter(|pair| gap(pair) > 0);
                jumps
                    .extend(behind.filter_map(|pair| pair.last()).map(|link| (link.log, link.sequence)).take(MAX_GAPS));
            }
            links.sort_by_key(|l| (l.log, l.processor, l.sequence, l.offset));
        }
        self.mark_gaps(&mut links, &jumps);
        (links, gaps)
    }
}
