//! Text as Windows and .NET write it: UTF-16, little-endian, often up to a unit that is zero.

/// Bytes of UTF-16 that are looked at together; compilers make a few wide instructions of it.
const BLOCK: usize = 32;

/// Where the first zero unit of a UTF-16 string begins, in bytes.
pub fn end(bytes: &[u8]) -> Option<usize> {
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    let whole = blocks.iter().take_while(|block| !has_zero_unit(block)).count() * BLOCK;
    let rest = bytes.get(whole..)?;
    let in_tail = || {
        let tail = rest.as_chunks::<8>().1;
        let place = tail.as_chunks::<2>().0.iter().position(|unit| *unit == [0, 0])?;
        Some(rest.len() - tail.len() + place * 2)
    };
    Some(whole + first_zero_unit(rest).or_else(in_tail)?)
}

/// Where the first zero unit begins, in bytes, as far as there are whole words.
#[inline]
fn first_zero_unit(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0001_0001_0001_0001;
    const TOPS: u64 = 0x8000_8000_8000_8000;
    bytes.as_chunks::<8>().0.iter().enumerate().find_map(|(index, word)| {
        let v = u64::from_le_bytes(*word);
        let zeros = v.wrapping_sub(ONES) & !v & TOPS;
        (zeros != 0).then(|| index * 8 + (zeros.trailing_zeros() / 16) as usize * 2)
    })
}

/// Where the zero unit begins that has `behind` others behind it, in bytes. At most `most_blocks` blocks are
/// searched, from the end on.
pub fn zero_from_end(bytes: &[u8], mut behind: usize, most_blocks: usize) -> Option<usize> {
    let bytes = bytes.as_chunks::<2>().0.as_flattened();
    let (before, blocks) = bytes.as_rchunks::<BLOCK>();
    for (index, block) in blocks.iter().enumerate().rev().take(most_blocks).filter(|(_, block)| has_zero_unit(block)) {
        for (place, _) in block.as_chunks::<2>().0.iter().enumerate().rev().filter(|(_, unit)| **unit == [0, 0]) {
            if behind == 0 {
                return Some(before.len() + index * BLOCK + place * 2);
            }
            behind -= 1;
        }
    }
    None
}

fn has_zero_unit(block: &[u8; BLOCK]) -> bool {
    block.as_chunks::<2>().0.iter().fold(false, |found, unit| found | (u16::from_le_bytes(*unit) == 0))
}

/// The characters of a block that is nothing but ASCII.
fn ascii_block(block: &[u8; BLOCK]) -> Option<[u8; BLOCK / 2]> {
    let mut units = [0u16; BLOCK / 2];
    units.iter_mut().zip(block.as_chunks::<2>().0).for_each(|(unit, bytes)| *unit = u16::from_le_bytes(*bytes));
    let bits = units.iter().fold(0, |bits, unit| bits | unit);
    (bits < 0x80).then(|| units.map(|unit| unit as u8))
}

/// Whether UTF-16 bytes are an ASCII text.
pub fn is(bytes: &[u8], ascii: &str) -> bool {
    bytes.len() == 2 * ascii.len()
        && bytes.as_chunks::<2>().0.iter().zip(ascii.bytes()).all(|(unit, c)| *unit == [c, 0])
}

/// Four units that are ASCII, as bytes.
fn ascii_word(word: [u8; 8]) -> Option<[u8; 4]> {
    let v = u64::from_le_bytes(word);
    let pairs = (v | (v >> 8)) & 0x0000_FFFF_0000_FFFF;
    (v & 0xFF80_FF80_FF80_FF80 == 0).then(|| ((pairs | (pairs >> 16)) as u32).to_le_bytes())
}

/// Appends UTF-16 bytes to `out` as UTF-8. Lone surrogates become U+FFFD; returns whether any did. An odd last byte
/// counts as one.
pub fn push(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    out.reserve(bytes.len() / 2);
    let mut rest = bytes;
    while let Some((block, tail)) = rest.split_first_chunk() {
        let Some(sixteen) = ascii_block(block) else { break };
        out.extend_from_slice(&sixteen);
        rest = tail;
    }
    while let Some((word, tail)) = rest.split_first_chunk() {
        let Some(four) = ascii_word(*word) else { break };
        out.extend_from_slice(&four);
        rest = tail;
    }
    while let Some(([low @ ..0x80, 0], tail)) = rest.split_first_chunk() {
        out.push(*low);
        rest = tail;
    }
    if rest.is_empty() { false } else { push_by_units(rest, out) }
}

#[cold]
fn push_by_units(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let mut lossy = false;
    let (units, odd) = bytes.as_chunks::<2>();
    for unit in char::decode_utf16(units.iter().map(|u| u16::from_le_bytes(*u))) {
        let c = unit.unwrap_or_else(|_| {
            lossy = true;
            char::REPLACEMENT_CHARACTER
        });
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
    if !odd.is_empty() {
        lossy = true;
        out.extend_from_slice("\u{FFFD}".as_bytes());
    }
    lossy
}

/// Like [`push`] with the bytes up to the first zero unit, which are looked at once. Returns where that is, and whether
/// something was replaced. Without one `out` stays as it is.
pub fn push_up_to_zero(bytes: &[u8], out: &mut Vec<u8>) -> Option<(usize, bool)> {
    let before = out.len();
    let mut rest = bytes;
    while let Some((block, tail)) = rest.split_first_chunk()
        && let Some(sixteen) = ascii_block(block)
    {
        out.extend_from_slice(&sixteen);
        if has_zero_unit(block)
            && let Some(end) = first_zero_unit(block)
        {
            out.truncate(out.len() - (BLOCK - end) / 2);
            return Some((bytes.len() - rest.len() + end, false));
        }
        rest = tail;
    }
    while let Some((word, tail)) = rest.split_first_chunk()
        && let Some(four) = ascii_word(*word)
        && !four.contains(&0)
    {
        out.extend_from_slice(&four);
        rest = tail;
    }
    while let Some(([low @ 1..0x80, 0], tail)) = rest.split_first_chunk() {
        out.push(*low);
        rest = tail;
    }
    let Some(end) = end(rest) else {
        out.truncate(before);
        return None;
    };
    let lossy = push(rest.get(..end).unwrap_or_default(), out);
    Some((bytes.len() - rest.len() + end, lossy))
}

/// UTF-16 bytes as a string, lone surrogates replaced.
pub fn string(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    push(bytes, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_survives_the_fast_path() {
        for text in ["", "a", "abcd", "abcdé", "é", "abcdefgh😀z", "日本語 and ascii"] {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            assert_eq!(string(&bytes), text);
        }
        let mut out = Vec::new();
        assert!(push(&[0x00, 0xD8, b'x', 0], &mut out));
        assert_eq!(String::from_utf8(out).unwrap(), "\u{FFFD}x");
    }

    fn naive_end(bytes: &[u8]) -> Option<usize> {
        bytes.chunks_exact(2).position(|unit| unit == [0, 0]).map(|place| 2 * place)
    }

    fn naive(bytes: &[u8]) -> String {
        let units: Vec<u16> = bytes.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
        String::from_utf16_lossy(&units) + if bytes.len().is_multiple_of(2) { "" } else { "\u{FFFD}" }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_read_as_unit_by_unit(
            runs in proptest::collection::vec((0..8usize, 0..40usize), 0..6),
            odd in proptest::prelude::any::<bool>(),
        ) {
            const UNITS: [u16; 8] = [0, b'a' as u16, b'Z' as u16, 0x7F, 0x80, 0x100, 0xD83D, 0xDE00];
            let units = runs.iter().flat_map(|(which, count)| std::iter::repeat_n(UNITS[*which], *count));
            let mut bytes: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
            bytes.extend(odd.then_some(b'x'));
            let found = end(&bytes);
            proptest::prop_assert_eq!(found, naive_end(&bytes));
            proptest::prop_assert_eq!(string(&bytes), naive(&bytes));
            let mut out = b"before".to_vec();
            let pushed = push_up_to_zero(&bytes, &mut out);
            proptest::prop_assert_eq!(pushed.map(|(end, _)| end), found);
            let text = found.map_or_else(String::new, |end| naive(&bytes[..end]));
            proptest::prop_assert_eq!(String::from_utf8(out).unwrap(), format!("before{text}"));
            let zeros = (0..bytes.len() / 2).filter(|unit| bytes[2 * unit..][..2] == [0, 0]).map(|unit| 2 * unit);
            for (behind, at) in zeros.rev().enumerate().filter(|(_, at)| *at >= bytes.len() / 2 * 2 % BLOCK) {
                proptest::prop_assert_eq!(zero_from_end(&bytes, behind, usize::MAX), Some(at));
            }
            if let Some((end, replaced)) = pushed {
                proptest::prop_assert_eq!(replaced, push(&bytes[..end], &mut Vec::new()));
            }
        }
    }

    #[test]
    fn a_text_is_compared_without_making_a_string() {
        let bytes: Vec<u8> = "Id".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(is(&bytes, "Id") && is(&[], ""));
        assert!(!is(&bytes, "Ie") && !is(&bytes, "I") && !is(&bytes[..3], "Id") && !is(&[b'I', 0, b'd', 1], "Id"));
    }
}
