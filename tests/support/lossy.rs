//! Recordings that lack blocks of events, as a reader that is too slow leaves them.

use super::mutate::Random;

/// The head of a file: two magic words, each with its length but the first.
const HEAD: usize = 32;

/// Fields of the object Trace, which is the only one without a size.
const TRACE_FIELDS: usize = 48;

/// A .nettrace of V4 without one of ten blocks of events, and at least without one; and how many these are.
pub fn without_blocks(bytes: &[u8], random: &mut Random) -> (Vec<u8>, usize) {
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (mut out, mut at, mut lost) = (bytes[..HEAD].to_vec(), HEAD, 0);
    // A tag, the type (two tags, two versions, the name with its length, a tag), the size, zeros up to four bytes, the content, a tag.
    while bytes[at] == 5 {
        let size_at = at + 15 + number(at + 11) + 1;
        let name = &bytes[at + 15..size_at - 1];
        let (from, end) = match name {
            b"Trace" => (size_at, size_at + TRACE_FIELDS),
            _ => {
                let from = (size_at + 4).next_multiple_of(4);
                (from, from + number(size_at))
            }
        };
        if name == b"EventBlock" && (random.below(10) == 0 || (lost == 0 && random.below(3) == 0)) {
            lost += 1;
        } else {
            out.extend(&bytes[at..if name == b"Trace" { size_at } else { size_at + 4 }]);
            if name != b"Trace" {
                out.resize(out.len().next_multiple_of(4), 0);
            }
            out.extend(&bytes[from..=end]);
        }
        at = end + 1;
    }
    out.extend(&bytes[at..]);
    (out, lost)
}
