//! LZNT1, the older compression of buffers. No real file with it was at hand: the examples of the specification and
//! streams of another program's compressor prove this decoder.
//!
//! ```text
//!  chunk: u16   bit 15: compressed | bits 0-11: bytes behind this word, minus 1     at most 4096 bytes come out of it
//!  compressed: a byte of 8 flags, from the lowest bit; 0: a literal, 1: a u16 of distance and length, whose border
//!              moves with the position in the chunk
//! ```
//! Source: `MS-XCA` 2.5 (LZNT1).

use super::xpress::{Failure, copy};

const CHUNK: usize = 4096;
const SHORT: Failure = "the compressed bytes end too early";

/// Expands `bytes` to exactly `size` bytes behind what `out` holds already.
pub fn expand(bytes: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
    let end = out.len().saturating_add(size);
    let mut rest = bytes;
    while out.len() < end {
        let (head, after) = rest.split_first_chunk::<2>().ok_or(SHORT)?;
        let head = u16::from_le_bytes(*head);
        if head == 0 {
            return Err(SHORT);
        }
        let (chunk, after) = after.split_at_checked(usize::from(head & 0xFFF) + 1).ok_or(SHORT)?;
        rest = after;
        let limit = end.min(out.len() + CHUNK);
        if head & 0x8000 == 0 {
            out.extend(chunk.iter().take(limit - out.len()));
        } else {
            expand_chunk(chunk, limit, out)?;
        }
    }
    Ok(())
}

fn expand_chunk(chunk: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
    let start = out.len();
    let mut rest = chunk;
    while let Some((flags, after)) = rest.split_first() {
        rest = after;
        for bit in 0..8 {
            if rest.is_empty() || out.len() >= limit {
                break;
            }
            if flags >> bit & 1 == 0 {
                let (byte, after) = rest.split_first().ok_or(SHORT)?;
                out.push(*byte);
                rest = after;
                continue;
            }
            let (word, after) = rest.split_first_chunk::<2>().ok_or(SHORT)?;
            rest = after;
            let word = usize::from(u16::from_le_bytes(*word));
            // The distance needs as many bits as the position, at least 4; the rest is the length.
            let position = out.len() - start;
            let bits = (usize::BITS - position.saturating_sub(1).leading_zeros()).max(4);
            let length_bits = 16 - bits.min(12);
            let (distance, length) = ((word >> length_bits) + 1, (word & ((1 << length_bits) - 1)) + 3);
            copy(out, start, distance, length.min(limit - out.len()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification_expands() {
        // MS-XCA 3.3.
        let bytes = [
            0x38, 0xB0, 0x88, 0x46, 0x23, 0x20, 0x00, 0x20, 0x47, 0x20, 0x41, 0x00, 0x10, 0xA2, 0x47, 0x01, 0xA0, 0x45,
            0x20, 0x44, 0x00, 0x08, 0x45, 0x01, 0x50, 0x79, 0x00, 0xC0, 0x45, 0x20, 0x05, 0x24, 0x13, 0x88, 0x05, 0xB4,
            0x02, 0x4A, 0x44, 0xEF, 0x03, 0x58, 0x02, 0x8C, 0x09, 0x16, 0x01, 0x48, 0x45, 0x00, 0xBE, 0x00, 0x9E, 0x00,
            0x04, 0x01, 0x18, 0x90, 0x00,
        ];
        let text = "F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E F# D E F# G F# D E F# G \
                    F# E D E A F# F# G A A G F# E D D E F# E D D\0";
        let mut out = Vec::new();
        expand(&bytes, text.len(), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }

    #[test]
    fn a_stream_of_another_compressor_expands() {
        // Made by the package lznt1 0.2 for Python.
        let bytes = [
            0xAE, 0xB0, 0x00, 0x72, 0x61, 0x6E, 0x67, 0x65, 0x20, 0x30, 0x20, 0x00, 0x6D, 0x6F, 0x76, 0x65, 0x64, 0x20,
            0x66, 0x72, 0x00, 0x6F, 0x6D, 0x20, 0x30, 0x78, 0x30, 0x20, 0x74, 0x52, 0x6F, 0x01, 0x30, 0x3B, 0x20, 0x03,
            0xF0, 0x31, 0x0B, 0x78, 0x31, 0x84, 0x30, 0x30, 0x04, 0x84, 0x32, 0x30, 0x30, 0x31, 0x05, 0x48, 0x0A, 0x34,
            0x0B, 0x48, 0x32, 0x06, 0x48, 0x34, 0x30, 0x30, 0x32, 0x15, 0x05, 0x48, 0x39, 0x0B, 0x48, 0x33, 0x06, 0x48,
            0x36, 0x30, 0x30, 0x2A, 0x33, 0x06, 0x6E, 0x36, 0x0B, 0x25, 0x34, 0x06, 0x25, 0x38, 0x30, 0xA4, 0x30, 0x34,
            0x05, 0x25, 0x32, 0x35, 0x0B, 0x25, 0x35, 0x06, 0x25, 0x50, 0x61, 0x30, 0x30, 0x35, 0x05, 0x25, 0x33, 0x0C,
            0x4B, 0x36, 0x61, 0x06, 0x25, 0x63, 0x30, 0x30, 0x36, 0x06, 0xBB, 0x8C, 0x4B, 0x37, 0xA1, 0x86, 0x12, 0x65,
            0x30, 0x30, 0x37, 0x85, 0x12, 0x36, 0x0C, 0x71, 0x56, 0x38, 0x86, 0x12, 0x81, 0x88, 0x38, 0x05, 0x13, 0x38,
            0x0C, 0x97, 0x39, 0xDB, 0x07, 0x13, 0x00, 0x8A, 0x39, 0x86, 0x4C, 0x8B, 0x12, 0x61, 0x87, 0x12, 0x80, 0x77,
            0x36, 0x61, 0x86, 0x72, 0x8C, 0x39, 0x62, 0x07, 0x13, 0x00, 0x65, 0x62, 0x3B, 0x00, 0x20,
        ];
        let line = |i: u32| format!("range {} moved from {:#x} to {:#x}; ", i * i % 97, i * 4096, i * 8192 + i);
        let text: String = (0..12).map(line).collect();
        let mut out = Vec::new();
        expand(&bytes, text.len(), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }

    #[test]
    fn hostile_streams_fail_and_do_not_grow() {
        let expanded = |bytes: &[u8], size| {
            let mut out = Vec::new();
            expand(bytes, size, &mut out).map(|()| out)
        };
        assert_eq!(expanded(&[], 1), Err(SHORT));
        assert_eq!(expanded(&[0, 0], 1), Err(SHORT));
        assert_eq!(expanded(&[0xFF, 0xBF, 0], 1), Err(SHORT));
        assert!(expanded(&[2, 0xB0, 1, 0, 0], 8).is_err(), "a match before the first byte");
        assert_eq!(expanded(&[1, 0x30, b'a', b'b'], 2).unwrap(), b"ab");
    }
}
