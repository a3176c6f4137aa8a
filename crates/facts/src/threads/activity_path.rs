//! The path in an activity id of EventSource: which activity lies in which.
//!
//! Source: `ActivityTracker.ActivityInfo.CreateActivityPathGuid` of the .NET runtime. The first twelve bytes are
//! numbers, a nibble each where they are small; the last four are a checksum with the process id. Where a number from
//! 11 to 255 begins at a whole byte, the runtime writes its code and forgets the number, so that all of them have one
//! id: checked with ids that .NET 10 gave.

use std::fmt::Write;

use tracequet_trace::guid::Guid;

/// Numbers up to this one are a nibble.
const LAST_IMMEDIATE: u8 = 0xA;
/// The prefix of the number of an activity whose path is too long.
const PREFIX: u8 = 0xB;
/// One byte follows; 0xD to 0xF: two to four.
const ONE_BYTE: u8 = 0xC;
/// The first value of the checksum.
const SEED: u32 = 0x599D_99AD;

/// The path of an activity of a process: `//1/34/2`. `*` stands for a number that the runtime forgot. `None` when the
/// id is not made so.
pub fn path(id: &Guid, process_id: u64) -> Option<String> {
    let (numbers, checksum) = id.0.split_at_checked(12)?;
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
    let sum = numbers.chunks_exact(4).map(word).fold(SEED, u32::wrapping_add);
    // Older runtimes leave the process out.
    let checksum = word(checksum);
    if checksum != sum ^ process_id as u32 && checksum != sum {
        return None;
    }
    let nibble = |at: usize| numbers.get(at / 2).map(|byte| if at.is_multiple_of(2) { byte >> 4 } else { byte & 0xF });
    let (mut path, mut at) = (String::from("/"), 0);
    while let Some(first) = nibble(at).filter(|first| *first != 0) {
        if first <= LAST_IMMEDIATE {
            write!(path, "/{first}").ok()?;
            at += 1;
            continue;
        }
        let is_deep = first == PREFIX;
        at += usize::from(is_deep);
        let length = nibble(at).and_then(|code| code.checked_sub(ONE_BYTE))?;
        // Behind a code in the upper half of a byte, its lower half is a part of the number.
        let high = nibble(at + 1).filter(|_| at % 2 == 0).unwrap_or_default();
        let from = at / 2 + 1;
        if length == 0 && at % 2 == 0 && high == 0 {
            path.push_str(if is_deep { "$*" } else { "/*" });
            at = 2 * from;
            continue;
        }
        let to = from + usize::from(length) + 1;
        let Some(bytes) = numbers.get(from..to) else { break };
        let number = bytes.iter().rev().fold(u64::from(high), |number, byte| number << 8 | u64::from(*byte));
        write!(path, "{}{number}", if is_deep { '$' } else { '/' }).ok()?;
        at = 2 * to;
    }
    (path.len() > 1).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path of an id, given as its bytes.
    fn of(hex: &str, process_id: u64) -> Option<String> {
        let byte = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
        path(&Guid(std::array::from_fn(byte)), process_id)
    }

    /// Ids that .NET 10 gave to the activity of each path, of one process.
    #[test]
    fn paths_are_those_that_the_runtime_made() {
        let process = u64::from(0x599D_AE68u32 ^ SEED.wrapping_add(0x13));
        let given = [
            ("13000000000000000000000068AE9D59", "/1/3"),
            ("1A00000000000000000000006FAE9D59", "/1/10"),
            ("1C0B0000000000000000000061939D59", "/1/11"),
            ("1C2000000000000000000000618E9D59", "/1/32"),
            ("1C2210000000000000000000618CAD59", "/1/34/1"),
            ("1C22A0000000000000000000618C3D5A", "/1/34/10"),
            // 11, 12, 255.
            ("1C22C0000000000000000000618C5D5A", "/1/34/*"),
            ("1C22C1000000000000000000618C5E5A", "/1/34/256"),
            ("1C22C1100000000000000000618C5E6A", "/1/34/272"),
            ("1C22C0100000000000000000618C5D6A", "/1/34/*/1"),
            ("1C22C0210000000000000000618C5D7B", "/1/34/*/2/1"),
            ("13C0C0100000000000000000686E5E6A", "/1/3/*/*/1"),
            ("13C110A00000000000000000686DAEF9", "/1/3/272/10"),
            ("13C110C01000000000000000786DAE19", "/1/3/272/*/1"),
        ];
        for (id, path) in given {
            assert_eq!(of(id, process), Some(format!("/{path}")), "{id}");
            assert_eq!(of(id, process + 1), None, "{id} is of another process");
        }
    }

    #[test]
    fn what_is_no_path_has_none() {
        // A sum without the process, as older runtimes make it.
        let made = |start: &[u8]| {
            let mut id = [0; 16];
            id[..start.len()].copy_from_slice(start);
            let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
            let sum = id[..12].chunks_exact(4).map(word).fold(SEED, u32::wrapping_add);
            id[12..].copy_from_slice(&sum.to_le_bytes());
            path(&Guid(id), 7)
        };
        assert_eq!(made(&[0x12, 0xBC, 0x05]).as_deref(), Some("//1/2$5"), "one that lies deep");
        assert_eq!(made(&[0x1D, 0x20, 0x01, 0x12]).as_deref(), Some("//1/288/1/2"));
        assert_eq!(made(&[0x12, 0xB1]), None, "such a code means nothing");
        let long = [0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1F];
        assert_eq!(made(&long), Some(format!("/{}", "/1".repeat(23))), "a number without its bytes is left out");
        assert_eq!(made(&[]), None);
        assert_eq!(of("123456789ABCDEF0123456789ABCDEF0", 7), None);
    }
}
