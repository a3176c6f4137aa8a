//! Headers of single events: V4 to V6 blobs, compressed and not, and the flat form of V1 to V3.
//! Source: `NetTraceFormat.md` and `NetTraceFormat_v5.md`, "Event rows" and "Event blobs"; `NetPerfFormat.md`.

use crate::bytes::{Parsed, fail, guid, i32le, i64le, take, u8le, u32le, u64le, varuint32, varuint64};
use crate::prelude::*;

const METADATA_ID: u8 = 1;
const CAPTURE_AND_SEQUENCE: u8 = 2;
const THREAD: u8 = 4;
const STACK: u8 = 8;
const ACTIVITY_OR_LABELS: u8 = 16;
const RELATED_ACTIVITY: u8 = 32;
const SORTED: u8 = 64;
const PAYLOAD_SIZE: u8 = 128;

/// The header of one event. In compressed blocks it is also the state that the next header is a difference to.
#[derive(Clone, Debug, Default)]
pub struct EventHeader {
    /// Which metadata describes the event; 0 in metadata blocks.
    pub metadata_id: u32,
    /// Counter of the capturing thread.
    pub sequence: u32,
    /// Thread that recorded the event: OS id (V4), index (V6).
    pub capture_thread: u64,
    /// Processor of that thread; `u32::MAX` when unknown.
    pub processor: u32,
    /// Thread the event is about.
    pub thread: u64,
    /// Stack id; 0 for none.
    pub stack_id: u32,
    /// Ticks.
    pub ticks: i64,
    /// Activity id (V4).
    pub activity_id: Guid,
    /// Related activity id (V4).
    pub related_activity_id: Guid,
    /// Label list (V6); 0 for none.
    pub label_list: u32,
    /// Bytes of payload behind the header.
    pub payload_size: u32,
    /// No later event in the file is older than this one.
    pub sorted: bool,
    /// Whether ids or labels differ from the event before in the block.
    pub labels_changed: bool,
}

impl EventHeader {
    /// Reads the next compressed header of a block. All arithmetic wraps: differences to a later time are written as
    /// the 64-bit complement.
    ///
    /// The rest is threaded by hand here: the same as a tuple of nom's `cond`s takes 84 ns a header instead of 10,
    /// since the tuple goes through memory.
    #[inline]
    pub fn compressed<'a, const V6: bool>(&mut self, input: &'a [u8]) -> Parsed<'a, ()> {
        let (mut rest, flags) = u8le("Flags")(input)?;
        if flags & METADATA_ID != 0 {
            (rest, self.metadata_id) = varuint32("MetadataId")(rest)?;
        }
        if flags & CAPTURE_AND_SEQUENCE != 0 {
            let difference;
            (rest, difference) = varuint32("SequenceNumber")(rest)?;
            self.sequence = self.sequence.wrapping_add(difference);
            (rest, self.capture_thread) = varuint64("CaptureThread")(rest)?;
            (rest, self.processor) = varuint32("ProcessorNumber")(rest)?;
        }
        if V6 || self.metadata_id != 0 {
            self.sequence = self.sequence.wrapping_add(1);
        }
        if flags & THREAD != 0 {
            (rest, self.thread) = varuint64("Thread")(rest)?;
        }
        if flags & STACK != 0 {
            (rest, self.stack_id) = varuint32("StackId")(rest)?;
        }
        let difference;
        (rest, difference) = varuint64("TimeStamp")(rest)?;
        self.ticks = self.ticks.wrapping_add(difference as i64);
        self.labels_changed = false;
        if V6 {
            if flags & ACTIVITY_OR_LABELS != 0 {
                (rest, self.label_list) = varuint32("LabelListId")(rest)?;
                self.labels_changed = true;
            }
        } else if flags & (ACTIVITY_OR_LABELS | RELATED_ACTIVITY) != 0 {
            if flags & ACTIVITY_OR_LABELS != 0 {
                (rest, self.activity_id) = guid("ActivityId")(rest)?;
            }
            if flags & RELATED_ACTIVITY != 0 {
                (rest, self.related_activity_id) = guid("RelatedActivityId")(rest)?;
            }
            self.labels_changed = true;
        }
        self.sorted = flags & SORTED != 0;
        if flags & PAYLOAD_SIZE != 0 {
            (rest, self.payload_size) = varuint32("PayloadSize")(rest)?;
        }
        Ok((rest, ()))
    }

    /// Reads an uncompressed event and gives its payload. The rest begins where `EventSize` says: writers differ in
    /// whether they pad.
    pub fn uncompressed<'a, const V6: bool>(&mut self, input: &'a [u8]) -> Parsed<'a, &'a [u8]> {
        let (body, event_size) = u32le("EventSize")(input)?;
        let (rest, mut event) = take(event_size as usize, "Event")(body)?;
        let id;
        (event, (id, self.sequence, self.thread, self.capture_thread)) =
            (u32le("MetadataId"), u32le("SequenceNumber"), u64le("ThreadId"), u64le("CaptureThreadId")).parse(event)?;
        (event, (self.processor, self.stack_id, self.ticks)) =
            (u32le("ProcessorNumber"), u32le("StackId"), i64le("TimeStamp")).parse(event)?;
        if V6 {
            (event, self.label_list) = u32le("LabelListId")(event)?;
        } else {
            (event, (self.activity_id, self.related_activity_id)) =
                (guid("ActivityId"), guid("RelatedActivityId")).parse(event)?;
        }
        (event, self.payload_size) = u32le("PayloadSize")(event)?;
        self.metadata_id = id & 0x7FFF_FFFF;
        // The specification calls the top bit IsSorted; the runtime and TraceEvent set it for events that are not.
        self.sorted = id & 0x8000_0000 == 0;
        self.labels_changed = true;
        let (surplus, payload) = take(self.payload_size as usize, "Payload")(event)?;
        if surplus.len() > 3 {
            return Err(fail(surplus.len(), "EventSize", "at most 3 bytes of padding behind the payload"));
        }
        Ok((rest, payload))
    }

    /// Reads one flat event of V1 to V3 (`padded`: V3 pads events to 4 bytes) with its payload and its stack bytes.
    pub fn flat<'a>(&mut self, input: &'a [u8], padded: bool) -> Parsed<'a, (&'a [u8], &'a [u8])> {
        let (body, event_size) = i32le("EventSize")(input)?;
        let size = usize::try_from(event_size).map_err(|_| fail(input.len(), "EventSize", "a size of at least 0"))?;
        let (mut rest, event) = take(size, "Event")(body)?;
        let (event, (id, thread, ticks)) = (u32le("MetadataId"), u32le("ThreadId"), i64le("TimeStamp")).parse(event)?;
        let (event, (activity, related)) = (guid("ActivityId"), guid("RelatedActivityId")).parse(event)?;
        let (event, payload_size) = u32le("PayloadSize")(event)?;
        let (event, payload) = take(payload_size as usize, "Payload")(event)?;
        let (event, stack_size) = u32le("StackSize")(event)?;
        let (surplus, stack) = take(stack_size as usize, "Stack")(event)?;
        let is_padding = padded && surplus.len() <= 3;
        if !surplus.is_empty() && !is_padding {
            return Err(fail(surplus.len(), "EventSize", "payload and stack to fill the event"));
        }
        if padded && (size + 4) % 4 != 0 {
            let over = 4 - (size + 4) % 4;
            rest = rest.get(over..).unwrap_or_default();
        }
        *self = EventHeader {
            metadata_id: id,
            thread: u64::from(thread),
            capture_thread: u64::from(thread),
            processor: u32::MAX,
            ticks,
            activity_id: activity,
            related_activity_id: related,
            payload_size,
            labels_changed: true,
            ..EventHeader::default()
        };
        Ok((rest, (payload, stack)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_header_is_a_difference_to_the_one_before() {
        let bytes = [
            0xCF, // everything but activity ids, sorted
            7,    // metadata id
            0, 9, 1, // sequence +0 (+1), capture thread 9, processor 1
            8, 3,   // thread 8, stack 3
            100, // time +100
            2,   // payload size
        ];
        let mut header = EventHeader::default();
        let (rest, ()) = header.compressed::<false>(&bytes).unwrap();
        assert!(rest.is_empty());
        assert_eq!((header.metadata_id, header.sequence, header.capture_thread, header.thread), (7, 1, 9, 8));
        assert_eq!((header.ticks, header.payload_size, header.sorted), (100, 2, true));
        // Only a time, ten ticks back: everything else repeats and the sequence advances.
        let back = [0x00, 0xF6, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];
        header.compressed::<false>(&back).unwrap();
        assert_eq!((header.ticks, header.sequence, header.payload_size, header.sorted), (90, 2, 2, false));
    }

    #[test]
    fn metadata_rows_do_not_count_in_v4_but_do_in_v6() {
        // The first header that every runtime writes: sequence difference 2^32-1.
        let first = [0xC6, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0, 0, 4];
        let mut header = EventHeader::default();
        header.compressed::<false>(&first).unwrap();
        assert_eq!(header.sequence, u32::MAX);
        let mut header = EventHeader::default();
        header.compressed::<true>(&first).unwrap();
        assert_eq!(header.sequence, 0);
    }
}
