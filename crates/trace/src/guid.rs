//! Sixteen-byte ids, as Windows stores them: the first three groups little-endian, the rest as written.

use std::fmt;
use std::hash::{Hash, Hasher};

/// A GUID in the byte order of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Guid(pub [u8; 16]);

impl Hash for Guid {
    /// As one number, which hashes faster than a list of bytes.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(u128::from_ne_bytes(self.0));
    }
}

impl Guid {
    /// All zero: no id.
    pub const NONE: Guid = Guid([0; 16]);

    /// Whether every byte is zero.
    pub fn is_none(&self) -> bool {
        self.0 == [0; 16]
    }

    /// Parses the usual text form, with or without braces. `None` when it is not 32 hexadecimal digits in groups.
    #[allow(
        clippy::indexing_slicing,
        reason = "the loops end at the bounds of the arrays; a constant cannot use `get`"
    )]
    pub const fn parse(text: &str) -> Option<Guid> {
        /// Where the bytes of the text are in memory.
        const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        let text = text.as_bytes();
        let (mut at, mut end) = (0, text.len());
        while at < end && text[at] == b'{' {
            at += 1;
        }
        while at < end && text[end - 1] == b'}' {
            end -= 1;
        }
        let (mut bytes, mut digits) = ([0u8; 16], 0);
        while at < end {
            let digit = match text[at] {
                byte @ b'0'..=b'9' => byte - b'0',
                byte @ b'a'..=b'f' => byte - b'a' + 10,
                byte @ b'A'..=b'F' => byte - b'A' + 10,
                b'-' => {
                    at += 1;
                    continue;
                }
                _ => return None,
            };
            if digits == 32 {
                return None;
            }
            let byte = ORDER[digits / 2];
            bytes[byte] = bytes[byte] << 4 | digit;
            digits += 1;
            at += 1;
        }
        if digits == 32 { Some(Guid(bytes)) } else { None }
    }

    /// A GUID of the source text. Meant for constants: text that is no GUID does not compile there.
    #[allow(clippy::panic, reason = "in a constant it is an error of the compiler")]
    pub const fn constant(text: &str) -> Guid {
        match Guid::parse(text) {
            Some(guid) => guid,
            None => panic!("no GUID"),
        }
    }

    /// The lower-case text form, 36 characters, without allocating.
    #[allow(clippy::indexing_slicing, reason = "a byte is below 256, and the places are constants below 35")]
    pub fn text(&self) -> [u8; 36] {
        /// Positions of the digits of each byte.
        const PLACES: [usize; 16] = [6, 4, 2, 0, 11, 9, 16, 14, 19, 21, 24, 26, 28, 30, 32, 34];
        let mut out = [b'-'; 36];
        for (place, byte) in PLACES.into_iter().zip(self.0) {
            [out[place], out[place + 1]] = DIGITS[usize::from(byte)];
        }
        out
    }
}

/// The digits of each byte.
const DIGITS: [[u8; 2]; 256] = digits();

#[allow(clippy::indexing_slicing, reason = "half a byte is below 16; a constant cannot use `get`")]
const fn digits() -> [[u8; 2]; 256] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let (mut all, mut byte) = ([[0; 2]; 256], 0);
    while byte < all.len() {
        all[byte] = [HEX[byte >> 4], HEX[byte & 15]];
        byte += 1;
    }
    all
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.text()).unwrap_or_default())
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_agree_with_windows() {
        let text = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4";
        let guid = Guid::parse(text).unwrap();
        assert_eq!(guid.0[..4], [0x23, 0x0D, 0x3C, 0xE1]);
        assert_eq!(guid.to_string(), text);
        assert_eq!(Guid::parse("{E13C0D23-CCBC-4E12-931B-D9CC2EEE27E4}"), Some(guid));
        const CONSTANT: Guid = Guid::constant("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4");
        assert_eq!(CONSTANT, guid);
        for wrong in ["", "e13c0d23", "e13c0d23-ccbc-4e12-931b-d9cc2eee27e", "e13c0d23-ccbc-4e12-931b-d9cc2eee27e44"] {
            assert_eq!(Guid::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Guid::parse("g13c0d23-ccbc-4e12-931b-d9cc2eee27e4"), None);
    }
}
