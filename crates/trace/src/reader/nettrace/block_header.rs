//! The header of a block of events or metadata (V4 to V6), and whether the events keep to it.
//! Source: `NetTraceFormat.md` and `NetTraceFormat_v5.md`, "EventBlock".

use crate::bytes::{Parsed, i64le, refuse, take, u16le};
use crate::prelude::*;

/// The header of a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockHeader {
    /// Whether headers of events are compressed.
    pub compressed: bool,
    /// The times of the events.
    pub times: BlockTimes,
}

/// The least and the greatest time of the events: those in the header, and the real ones. Runtimes write them; other
/// writers leave them 0 or at their limits.
#[derive(Clone, Copy, Debug)]
pub struct BlockTimes {
    stated: Option<(i64, i64)>,
    least: i64,
    greatest: i64,
}

impl BlockTimes {
    fn stated(least: i64, greatest: i64) -> BlockTimes {
        let stated = Some((least, greatest)).filter(|_| 0 < least && least <= greatest && greatest < i64::MAX);
        BlockTimes { stated, least: i64::MAX, greatest: i64::MIN }
    }

    /// Takes note of the time of an event.
    #[inline]
    pub fn event(&mut self, ticks: i64) {
        (self.least, self.greatest) = (self.least.min(ticks), self.greatest.max(ticks));
    }

    /// When all events were read: what is wrong if they are not those of the header. Which of them are not
    /// as they were written cannot be said.
    pub fn problem(&self, offset: u64) -> Option<Problem> {
        let has_events = self.least <= self.greatest;
        self.stated.filter(|stated| has_events && *stated != (self.least, self.greatest)).map(|_| {
            let message = "the times of the events of a block are not those of its header: some of its events, or \
                           their times, are not as they were written";
            Problem::error("damaged_block", offset, message)
        })
    }
}

/// `HeaderSize:u16 Flags:u16 MinTimestamp:i64 MaxTimestamp:i64` and more, as the size says, which counts itself.
pub fn block_header(block: &[u8]) -> Parsed<'_, BlockHeader> {
    let (rest, (size, flags)) = (u16le("HeaderSize"), u16le("Flags")).parse(block)?;
    if size < 20 {
        return Err(refuse(block, "HeaderSize", "at least 20"));
    }
    let (_, (least, greatest)) = (i64le("MinTimestamp"), i64le("MaxTimestamp")).parse(rest)?;
    let times = BlockTimes::stated(least, greatest);
    take(size.into(), "Header").map(|_| BlockHeader { compressed: flags & 1 != 0, times }).parse(block)
}
