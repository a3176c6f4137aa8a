//! XPRESS (plain LZ77), the compression of buffers that the merge step writes.
//!
//! ```text
//!  u32 of 32 flags, from the top bit down      0: one literal byte      1: a match
//!  match: u16   distance - 1 (13 bits) | length code (3 bits)
//!         code < 7: length = code + 3
//!         code = 7: a nibble n (the first match of a pair takes the low half of a byte, the second its high half)
//!                   n < 15: length = n + 10;   n = 15: a byte e < 255: e + 25;   e = 255: a u16, or 0 and a u32, + 3
//! ```
//! Source: `MS-XCA` 2.3 and 2.4 (plain LZ77); checked by decoding every compressed buffer of real files.

/// Why a compressed buffer cannot be expanded.
pub type Failure = &'static str;

pub(super) const SHORT: Failure = "the compressed bytes end too early";

/// Compressed bytes, and how far they are read.
pub(super) struct Input<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl Input<'_> {
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let found = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>()).ok_or(SHORT)?;
        self.at += N;
        Ok(*found)
    }

    pub fn u8(&mut self) -> Result<u8, Failure> {
        self.array::<1>().map(|[b]| b)
    }
}

/// Expands `bytes` to exactly `size` bytes behind what `out` holds already. Nothing is allocated beyond that size, and
/// no more than what the input can justify is allocated at once.
pub fn expand(bytes: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), Failure> {
    let start = out.len();
    let end = start.saturating_add(size);
    let mut input = Input { bytes, at: 0 };
    // Half of the buffer of a nibble pair: its place in the input.
    let mut half: Option<usize> = None;
    let mut flags = 0u32;
    let mut left = 0u32;
    while out.len() < end {
        if left == 0 {
            flags = u32::from_le_bytes(input.array()?);
            left = 32;
        }
        left -= 1;
        let is_match = flags >> left & 1 == 1;
        if !is_match {
            out.push(input.u8()?);
            continue;
        }
        let word = u16::from_le_bytes(input.array()?);
        let distance = usize::from(word >> 3) + 1;
        let length = match usize::from(word & 7) {
            code @ 0..7 => code + 3,
            _ => long_length(&mut input, &mut half)?,
        };
        copy(out, start, distance, length.min(end - out.len()))?;
    }
    Ok(())
}

fn long_length(input: &mut Input<'_>, half: &mut Option<usize>) -> Result<usize, Failure> {
    let nibble = match half.take() {
        Some(place) => input.bytes.get(place).copied().unwrap_or_default() >> 4,
        None => {
            *half = Some(input.at);
            input.u8()? & 15
        }
    };
    if nibble < 15 {
        return Ok(usize::from(nibble) + 10);
    }
    let byte = input.u8()?;
    if byte < 255 {
        return Ok(usize::from(byte) + 25);
    }
    let length = match u16::from_le_bytes(input.array()?) {
        0 => u32::from_le_bytes(input.array()?) as usize,
        word => usize::from(word),
    };
    if length < 22 {
        return Err("a match is shorter than its code says");
    }
    Ok(length.saturating_add(3))
}

/// Repeats `length` bytes from `distance` bytes back; they may overlap those being written.
pub(super) fn copy(out: &mut Vec<u8>, start: usize, distance: usize, length: usize) -> Result<(), Failure> {
    let from = match out.len().checked_sub(distance) {
        Some(from) if from >= start && distance > 0 => from,
        _ => return Err("a match begins before the buffer"),
    };
    if distance >= length {
        out.extend_from_within(from..from + length);
        return Ok(());
    }
    let mut left = length;
    while left > 0 {
        let piece = left.min(out.len() - from);
        out.extend_from_within(from..from + piece);
        left -= piece;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(bytes: &[u8], size: usize) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::new();
        expand(bytes, size, &mut out).map(|()| out)
    }

    /// The first flags, then their literals and matches.
    fn stream(flags: u32, rest: &[u8]) -> Vec<u8> {
        [&flags.to_le_bytes(), rest].concat()
    }

    fn pair(distance: u16, code: u16) -> [u8; 2] {
        ((distance - 1) << 3 | code).to_le_bytes()
    }

    #[test]
    fn the_examples_of_the_specification_expand() {
        // MS-XCA 3.1: the alphabet as literals.
        let alphabet = b"abcdefghijklmnopqrstuvwxyz";
        assert_eq!(expanded(&stream(0x0000_003F, alphabet), 26).unwrap(), alphabet);
        // MS-XCA 3.1: "abc" a hundred times, one match with a 16-bit length.
        let bytes = [0xFF, 0xFF, 0xFF, 0x1F, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0F, 0xFF, 0x26, 0x01];
        assert_eq!(expanded(&bytes, 300).unwrap(), b"abc".repeat(100));
    }

    #[test]
    fn every_form_of_a_length_is_read() {
        let literal = |lengths: &[u8]| {
            let mut bytes = stream(0x7FFF_FFFF, b"x");
            bytes.extend(pair(1, 7));
            bytes.extend(lengths);
            bytes
        };
        assert_eq!(expanded(&stream(0x7FFF_FFFF, &[b"x".as_slice(), &pair(1, 0)].concat()), 4).unwrap(), b"xxxx");
        assert_eq!(expanded(&literal(&[4]), 15).unwrap().len(), 15);
        assert_eq!(expanded(&literal(&[15, 3]), 29).unwrap().len(), 29);
        assert_eq!(expanded(&literal(&[15, 255, 200, 0]), 204).unwrap().len(), 204);
        assert_eq!(expanded(&literal(&[15, 255, 0, 0, 0, 0, 1, 0]), 65_540).unwrap().len(), 65_540);
        assert!(expanded(&literal(&[15, 255, 21, 0]), 100).is_err(), "a length below its code");
    }

    #[test]
    fn the_second_long_match_takes_the_high_half_of_the_same_byte() {
        let mut bytes = stream(0x7FFF_FFFF, b"x");
        bytes.extend(pair(1, 7));
        bytes.push(0x21); // 1 now, 2 next time
        bytes.extend(pair(1, 7));
        bytes.extend(pair(1, 7));
        bytes.push(0x03);
        assert_eq!(expanded(&bytes, 1 + 11 + 12 + 13).unwrap().len(), 37);
        assert_eq!(expanded(&bytes, 38), Err(SHORT));
    }

    #[test]
    fn hostile_streams_fail_and_do_not_grow() {
        assert_eq!(expanded(&[], 1), Err(SHORT));
        assert_eq!(expanded(&[], 0), Ok(Vec::new()));
        assert_eq!(expanded(&[0, 0, 0], 8), Err(SHORT));
        let before = stream(0x7FFF_FFFF, &[b"x".as_slice(), &pair(2, 0)].concat());
        assert_eq!(expanded(&before, 8), Err("a match begins before the buffer"));
        let first = stream(0xFFFF_FFFF, &pair(1, 0));
        assert_eq!(expanded(&first, 8), Err("a match begins before the buffer"));
        // A length of 4 GiB stops at the size.
        let mut bomb = stream(0x7FFF_FFFF, b"x");
        bomb.extend(pair(1, 7));
        bomb.extend([15, 255, 0, 0, 255, 255, 255, 255]);
        assert_eq!(expanded(&bomb, 4096).unwrap().len(), 4096);
    }
}
