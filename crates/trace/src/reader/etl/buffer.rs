//! The header of a buffer. Its first number is the distance to the next buffer.
//!
//! ```text
//!  0x00 u32 bytes to the next buffer          0x28 u16 processor (8 bits when flag 0x20 is clear)
//!  0x18 i64 sequence number                   0x30 u32 valid bytes, header included, uncompressed
//!  0x2C u32 state                             0x34 u16 flags      0x36 u16 type
//! ```
//! Source: `WMI_BUFFER_HEADER` of phnt's `ntwmi.h`; offsets checked on files of Windows Vista to 11. The number at 0x04
//! looks like the end of the valid bytes but is 0 or too small in header buffers: it is not used.

use nom::Parser;

use crate::bytes::{Parsed, i64le, take, u16le, u32le};

/// Bytes of the header of a buffer.
pub const HEADER: usize = 0x48;
/// No buffer of Windows is larger than 16 MiB; a larger one is damage.
pub const MAX_BUFFER: usize = 64 << 20;

/// The body is compressed.
const COMPRESSED: u16 = 0x40;
/// The processor number has 16 bits (Windows 8 and later).
const WIDE_PROCESSOR: u16 = 0x20;
/// Events were lost before or in this buffer.
pub const EVENTS_LOST: u16 = 0x02;
/// Buffers were lost.
pub const BUFFER_LOST: u16 = 0x04;

/// The header of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Bytes to the next buffer.
    pub size: u32,
    /// Valid bytes from the start of this header, when the body is expanded.
    pub valid: u32,
    /// Age of the buffer: numbers grow in the order in which buffers were begun.
    pub sequence: i64,
    /// Processor that filled it.
    pub processor: u16,
    /// See the constants.
    pub flags: u16,
    /// 0 events, 4 header; 1 and 5 hold events too.
    pub kind: u16,
    /// In a header buffer of a merged file: the compression of the others.
    pub state: u32,
}

impl Buffer {
    /// Reads the header of a buffer.
    pub fn parse(input: &[u8]) -> Parsed<'_, Buffer> {
        let fields = (
            u32le("BufferSize"),
            take(0x14, "SavedOffset to TimeStamp"),
            i64le("SequenceNumber"),
            take(8, "ClockType"),
            u16le("ProcessorIndex"),
            u16le("LoggerId"),
            u32le("State"),
            u32le("Offset"),
            u16le("BufferFlag"),
            u16le("BufferType"),
            take(0x10, "tail"),
        );
        let all = |(size, _, sequence, _, processor, _, state, valid, flags, kind, _)| {
            let bits = if flags & WIDE_PROCESSOR != 0 { 0x7FF } else { 0xFF };
            Buffer { size, valid, sequence, processor: processor & bits, flags, kind, state }
        };
        fields.map(all).parse(input)
    }

    /// Whether the body is compressed.
    pub fn is_compressed(&self) -> bool {
        self.flags & COMPRESSED != 0
    }

    /// Whether events lie in it.
    pub fn holds_events(&self) -> bool {
        matches!(self.kind, 0 | 1 | 4 | 5)
    }

    /// Whether this can be the first buffer of a file.
    pub fn is_header(&self) -> bool {
        let sizes = HEADER + 0x20..=MAX_BUFFER;
        self.kind == 4 && sizes.contains(&(self.size as usize)) && sizes.contains(&(self.valid as usize))
    }
}

/// A way in which the bodies of compressed buffers are expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// LZNT1.
    Lznt1,
    /// Plain XPRESS.
    Xpress,
    /// XPRESS with Huffman codes.
    Huffman,
    /// A number that is no known compression.
    Unknown(u16),
}

impl Compression {
    /// By the state of the header buffer.
    pub fn of_state(state: u32) -> Compression {
        match state as u16 {
            2 => Compression::Lznt1,
            3 => Compression::Xpress,
            4 => Compression::Huffman,
            other => Compression::Unknown(other),
        }
    }

    /// Expands the body of a buffer to `size` bytes behind what `out` holds already.
    pub fn expand(self, body: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), &'static str> {
        match self {
            Compression::Xpress => super::xpress::expand(body, size, out),
            Compression::Lznt1 => super::lznt1::expand(body, size, out),
            Compression::Huffman => super::huffman::expand(body, size, out),
            Compression::Unknown(_) => Err("unknown compression"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_have_eight_bits_before_windows_8() {
        let mut bytes = [0u8; HEADER];
        bytes[0x28..0x2A].copy_from_slice(&0x0802u16.to_le_bytes());
        assert_eq!(Buffer::parse(&bytes).unwrap().1.processor, 2);
        bytes[0x34] = 0x20;
        bytes[0x28..0x2A].copy_from_slice(&0x0102u16.to_le_bytes());
        assert_eq!(Buffer::parse(&bytes).unwrap().1.processor, 0x102);
        assert!(Buffer::parse(&bytes[..HEADER - 1]).is_err());
    }
}
