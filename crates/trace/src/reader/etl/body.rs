//! The body of one buffer: its bytes, expanded if they were compressed, and the places of its events.

use super::buffer::HEADER;
use super::chain::{Link, Session};
use super::header;
use crate::error::{Problem, Report};
use crate::source::{Chunk, MappedFile};

/// An event in the body of a buffer.
#[derive(Clone, Copy, Debug)]
pub struct EventStart {
    /// The time in ticks; that of the event before when it has none.
    pub ticks: i64,
    /// Where it begins in the body.
    pub at: u32,
}

/// The body of a buffer.
#[derive(Default)]
pub struct Body<'m> {
    mapped: Option<&'m [u8]>,
    own: Vec<u8>,
    /// Whether it was compressed: then its expanded bytes have no place in the file.
    compressed: bool,
    /// The events in the order of time.
    pub events: Vec<EventStart>,
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Processor; `u32::MAX` when all processors of the session share buffers.
    pub processor: u32,
}

impl<'m> Body<'m> {
    /// The valid bytes behind the header.
    pub fn bytes(&self) -> &[u8] {
        self.mapped.unwrap_or(&self.own)
    }

    /// Bytes that are held in memory of its own.
    pub fn owned(&self) -> usize {
        self.own.len()
    }

    /// Offset of a place in the body: in a compressed buffer that of its beginning.
    pub fn offset_of(&self, at: usize) -> u64 {
        self.place_of(at).unwrap_or(self.offset)
    }

    /// Where in the file a place in the body is; `None` in a compressed buffer.
    pub fn place_of(&self, at: usize) -> Option<u64> {
        (!self.compressed).then_some(self.offset + at as u64)
    }

    /// Takes the events of another buffer in; what was there is forgotten, its memory is used again. `copy` asks for a
    /// copy of what is in the file.
    pub fn load(&mut self, file: &'m MappedFile, link: &Link, session: &Session, copy: bool, report: &mut Report<'_>) {
        self.events.clear();
        self.own.clear();
        self.mapped = None;
        self.compressed = link.compressed;
        let start = usize::try_from(link.offset).unwrap_or(usize::MAX).saturating_add(HEADER);
        self.offset = start as u64;
        let Some(log) = session.logs.get(usize::from(link.log)) else { return };
        self.processor = if log.header.knows_processors() { u32::from(link.processor) } else { u32::MAX };
        let size = (link.valid as usize).saturating_sub(HEADER);
        let mut stored = file.part(start..start.saturating_add((link.stored as usize).saturating_sub(HEADER)));
        if link.compressed {
            if let Err(why) = log.compression.expand(&stored, size, &mut self.own) {
                // Of a buffer that the end of the file cuts, what came before the cut is sound.
                if !link.cut {
                    let message = format!("a compressed buffer cannot be expanded, its events are lost: {why}");
                    report(Problem::error("damaged_compression", link.offset, message));
                    self.own.clear();
                }
            }
        } else {
            stored.truncate(size);
            match stored {
                Chunk::Borrowed(bytes) if copy => self.own.extend_from_slice(bytes),
                Chunk::Borrowed(bytes) => self.mapped = Some(bytes),
                Chunk::Owned(bytes) => self.own = bytes,
            }
        }
        self.find_events(link, &|ticks| log.ticks(ticks, &session.base), report);
    }

    fn find_events(&mut self, link: &Link, clock: &dyn Fn(i64) -> i64, report: &mut Report<'_>) {
        let mut events = std::mem::take(&mut self.events);
        let bytes = self.bytes();
        let (mut at, mut ticks, mut sorted) = (0usize, None::<i64>, true);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let head = match header::parse(rest) {
                Ok(head) => head,
                Err(what) => {
                    if !link.cut {
                        let message = format!("{what}; {} bytes of the buffer are not read", rest.len());
                        let offset = self.offset_of(at);
                        report(Problem::error("damaged_event", offset, message).count(1));
                    }
                    break;
                }
            };
            let time = head.ticks.map(clock).or(ticks).unwrap_or_default();
            sorted &= ticks.is_none_or(|before| before <= time);
            ticks = Some(time);
            events.push(EventStart { ticks: time, at: at as u32 });
            at = at.saturating_add(head.size.next_multiple_of(8));
        }
        if !sorted {
            events.sort_by_key(|e| e.ticks);
        }
        self.events = events;
    }
}
