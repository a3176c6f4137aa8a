//! XPRESS with Huffman codes, a compression that the merge step knows. No real file with it was at hand: the examples
//! of the specification and streams of another program's compressor prove this decoder.
//!
//! ```text
//!  blocks of 64 KiB of output:   256 bytes: the lengths of 512 codes, 4 bits each     then codes
//!  codes: 16-bit words, from their top bit down      below 256: a literal
//!         else 256 + 16 * bits + length: a match; a length of 15 goes on in bytes (a byte, 255 and a u16, 0 and a u32)
//!         behind the words in use; then that many bits of the distance
//! ```
//! Source: `MS-XCA` 2.1 and 2.2 (LZ77 with Huffman codes).

use super::xpress::{Failure, Input, SHORT, copy};

const CODES: usize = 512;
const LENGTHS: usize = 256;
const MAX_BITS: usize = 15;
const BLOCK: usize = 65_536;

/// Expands `bytes` to exactly `size` bytes behind what `out` holds already. Nothing is allocated beyond that size and a
/// table of 64 KiB.
pub fn expand(bytes: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
    let start = out.len();
    let end = start.saturating_add(size);
    let mut input = Input { bytes, at: 0 };
    let mut table = Vec::new();
    while out.len() < end {
        codes(&input.array::<LENGTHS>()?, &mut table)?;
        let mut bits = Bits::new(&mut input)?;
        let block_end = end.min(out.len().saturating_add(BLOCK));
        while out.len() < block_end {
            let code = table.get(bits.top(MAX_BITS)).copied().unwrap_or_default();
            bits.drop(usize::from(code >> 12))?;
            let symbol = usize::from(code & 0xFFF);
            if symbol < 256 {
                out.push(symbol as u8);
                continue;
            }
            let (distance_bits, low) = ((symbol - 256) / 16, symbol % 16);
            let length = if low == 15 { bits.long_length()? } else { low };
            let distance = 1 << distance_bits | bits.top(distance_bits);
            bits.drop(distance_bits)?;
            copy(out, start, distance, length.saturating_add(3).min(end - out.len()))?;
        }
    }
    Ok(())
}

/// Fills the table from the next 15 bits to what they begin with: the length of the code (4 bits) and its symbol.
fn codes(lengths: &[u8; LENGTHS], table: &mut Vec<u16>) -> Result<(), Failure> {
    table.clear();
    let length_of = |symbol: usize| {
        let pair = lengths.get(symbol / 2).copied().unwrap_or_default();
        usize::from(if symbol.is_multiple_of(2) { pair & 15 } else { pair >> 4 })
    };
    for length in 1..=MAX_BITS {
        for symbol in (0..CODES).filter(|symbol| length_of(*symbol) == length) {
            let places = 1 << (MAX_BITS - length);
            if table.len() + places > 1 << MAX_BITS {
                return Err("the lengths of the codes are more than there are codes");
            }
            table.resize(table.len() + places, (length << 12 | symbol) as u16);
        }
    }
    if table.len() == 1 << MAX_BITS { Ok(()) } else { Err("the lengths of the codes do not make a code") }
}

/// The bits that come next, at least 16 of them as long as the input has any.
struct Bits<'i, 'b> {
    input: &'i mut Input<'b>,
    bits: u32,
    have: usize,
}

impl<'i, 'b> Bits<'i, 'b> {
    fn new(input: &'i mut Input<'b>) -> Result<Bits<'i, 'b>, Failure> {
        let [a, b, c, d] = input.array::<4>()?;
        Ok(Bits { input, bits: u32::from_be_bytes([b, a, d, c]), have: 32 })
    }

    fn top(&self, count: usize) -> usize {
        (u64::from(self.bits) >> (32 - count)) as usize
    }

    fn drop(&mut self, count: usize) -> Result<(), Failure> {
        self.have = self.have.checked_sub(count).ok_or(SHORT)?;
        self.bits <<= count;
        if self.have < 16
            && let Ok(word) = self.input.array()
        {
            self.bits |= u32::from(u16::from_le_bytes(word)) << (16 - self.have);
            self.have += 16;
        }
        Ok(())
    }

    /// The length of a match that does not fit into its symbol.
    fn long_length(&mut self) -> Result<usize, Failure> {
        let byte = self.input.u8()?;
        if byte < 255 {
            return Ok(usize::from(byte) + 15);
        }
        let length = match u16::from_le_bytes(self.input.array()?) {
            0 => u32::from_le_bytes(self.input.array()?) as usize,
            word => usize::from(word),
        };
        if length < 15 { Err("a match is shorter than its code says") } else { Ok(length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(bytes: &[u8], size: usize) -> Result<Vec<u8>, Failure> {
        let mut out = b"before".to_vec();
        expand(bytes, size, &mut out).map(|()| out.split_off(6))
    }

    /// The lengths of codes, then their symbols.
    fn stream(lengths: &[(usize, u8)], rest: &[u8]) -> Vec<u8> {
        let mut table = vec![0u8; LENGTHS];
        for (symbol, length) in lengths {
            table[symbol / 2] |= if symbol % 2 == 0 { *length } else { length << 4 };
        }
        table.extend(rest);
        table
    }

    /// Codes of 9 bits for all symbols: each is its own code.
    fn plain(symbols: &[(u16, u16, u8)]) -> Vec<u8> {
        let mut out = vec![0x99; LENGTHS];
        let (mut bits, mut count) = (0u64, 0);
        for (symbol, extra, width) in symbols {
            bits = bits << 9 | u64::from(*symbol);
            bits = bits << width | u64::from(*extra);
            count += 9 + u32::from(*width);
            while count >= 16 {
                count -= 16;
                out.extend(((bits >> count) as u16).to_le_bytes());
            }
        }
        out.extend(((bits << (16 - count)) as u16).to_le_bytes());
        out.extend([0; 4]);
        out
    }

    #[test]
    fn the_examples_of_the_specification_expand() {
        // MS-XCA 3.2: the alphabet, and "abc" a hundred times.
        let alphabet: Vec<(usize, u8)> =
            (b'a'..=b'z').map(|c| (usize::from(c), if c < b'w' { 5 } else { 4 })).collect();
        let lengths = [alphabet.as_slice(), &[(256, 4)]].concat();
        let codes = [
            0xD8, 0x52, 0x3E, 0xD7, 0x94, 0x11, 0x5B, 0xE9, 0x19, 0x5F, 0xF9, 0xD6, 0x7C, 0xDF, 0x8D, 0x04, 0, 0, 0, 0,
        ];
        assert_eq!(expanded(&stream(&lengths, &codes), 26).unwrap(), b"abcdefghijklmnopqrstuvwxyz");
        let lengths = [(97, 3), (98, 3), (99, 2), (256, 2), (287, 2)];
        let codes = [0xA8, 0xDC, 0, 0, 0xFF, 0x26, 0x01];
        assert_eq!(expanded(&stream(&lengths, &codes), 300).unwrap(), b"abc".repeat(100));
    }

    #[test]
    fn a_stream_of_another_compressor_expands() {
        // Made by wimlib 1.13, whose format is the same.
        let lengths = [
            (32, 4),
            (48, 2),
            (49, 5),
            (50, 5),
            (51, 6),
            (52, 5),
            (53, 6),
            (54, 5),
            (55, 6),
            (56, 5),
            (57, 6),
            (59, 6),
            (97, 5),
            (98, 6),
            (99, 7),
            (100, 7),
            (101, 6),
            (102, 7),
            (103, 7),
            (109, 6),
            (110, 7),
            (111, 6),
            (114, 5),
            (116, 7),
            (118, 7),
            (120, 7),
            (256, 7),
            (289, 7),
            (322, 7),
            (331, 7),
            (340, 7),
            (341, 5),
            (342, 4),
            (343, 5),
            (347, 5),
            (358, 7),
            (364, 6),
            (374, 5),
            (380, 6),
        ];
        let codes = [
            0x7B, 0x94, 0xD1, 0x75, 0xD7, 0x04, 0x1A, 0x6F, 0x4E, 0x73, 0xDB, 0x92, 0x3C, 0x54, 0xDF, 0x89, 0x7E, 0x6F,
            0x2F, 0x49, 0xCF, 0x9E, 0xC0, 0xBE, 0x26, 0xFC, 0x26, 0x83, 0x54, 0x57, 0x52, 0xAD, 0x1B, 0xB8, 0xE3, 0x32,
            0xDC, 0x52, 0x78, 0xA5, 0xFE, 0x5D, 0xD4, 0xF7, 0x53, 0xCE, 0x1D, 0x40, 0x36, 0x33, 0x9A, 0xFA, 0x34, 0xF5,
            0xF9, 0x42, 0xED, 0x9A, 0x7A, 0xCC, 0x90, 0x9B, 0xCF, 0x3E, 0x31, 0x38, 0x9B, 0x82, 0xC2, 0x40, 0x7F, 0x66,
            0xE0, 0x18, 0x60, 0xA6, 0x99, 0x10, 0xCA, 0xE0, 0x1A, 0x9F, 0xA1, 0x1D, 0x8D, 0x8D, 0xD1, 0x54, 0x9C, 0xA1,
            0xB6, 0x11, 0xF4, 0x6D, 0x87, 0xCE, 0x67, 0x78, 0x7A, 0x92, 0x00, 0x00,
        ];
        let line = |i: u32| format!("range {} moved from {:#x} to {:#x}; ", i * i % 97, i * 4096, i * 8192 + i);
        let text: String = (0..12).map(line).collect();
        assert_eq!(expanded(&stream(&lengths, &codes), text.len()).unwrap(), text.into_bytes());
    }

    #[test]
    fn every_form_of_a_length_is_read() {
        let lengths = [(97, 1), (256, 2), (271, 2)];
        // a, then a match of a long length at distance 1.
        let long = |bytes: &[u8]| stream(&lengths, &[&[0, 0b0110_0000, 0, 0], bytes].concat());
        assert_eq!(expanded(&long(&[0]), 19).unwrap(), [b'a'; 19]);
        assert_eq!(expanded(&long(&[254]), 273).unwrap().len(), 273);
        assert_eq!(expanded(&long(&[255, 15, 0]), 19).unwrap().len(), 19);
        assert_eq!(expanded(&long(&[255, 0, 0, 0, 0, 1, 0]), 65_540).unwrap().len(), 65_540);
        assert!(expanded(&long(&[255, 14, 0]), 19).is_err(), "a length below its code");
    }

    #[test]
    fn blocks_follow_each_other_and_look_back() {
        let literals: Vec<u8> = (0..BLOCK).map(|n| (n * 7 % 251) as u8).collect();
        let mut bytes = plain(&literals.iter().map(|b| (u16::from(*b), 0, 0)).collect::<Vec<_>>());
        // 9 bits * 65536 are whole words; one more is read ahead, the next block begins behind it.
        assert_eq!(bytes.len(), LENGTHS + BLOCK * 9 / 8 + 6);
        bytes.truncate(LENGTHS + BLOCK * 9 / 8 + 2);
        // A match of 3 + 5 bytes at the distance 0x8001.
        bytes.extend(plain(&[(256 + 15 * 16 + 5, 1, 15), (66, 0, 0)]));
        let out = expanded(&bytes, BLOCK + 9).unwrap();
        assert_eq!(out[..BLOCK], literals);
        let from = BLOCK - 0x8001;
        assert_eq!(out[BLOCK..], [&literals[from..from + 8], &[66]].concat());
    }

    #[test]
    fn hostile_streams_fail_and_do_not_grow() {
        assert_eq!(expanded(&[], 1), Err(SHORT));
        assert_eq!(expanded(&[], 0), Ok(Vec::new()));
        assert!(expanded(&[0; 300], 1).is_err(), "no codes");
        assert!(expanded(&[0x11; 300], 1).is_err(), "more codes than there are");
        assert!(expanded(&stream(&[(97, 1)], &[0; 8]), 1).is_err(), "half a code");
        assert_eq!(expanded(&plain(&[])[..LENGTHS + 3], 1), Err(SHORT));
        let before = plain(&[(u16::from(b'x'), 0, 0), (256 + 16, 0, 1)]);
        assert_eq!(expanded(&before, 8), Err("a match begins before the buffer"));
        let short = plain(&[(65, 0, 0); 100]);
        assert_eq!(expanded(&short[..LENGTHS + 20], 100), Err(SHORT));
        // A length of 4 GiB stops at the size.
        let bomb = stream(&[(97, 1), (256, 2), (271, 2)], &[0, 0b0110_0000, 0, 0, 255, 0, 0, 255, 255, 255, 255]);
        assert_eq!(expanded(&bomb, 4096).unwrap().len(), 4096);
    }
}
