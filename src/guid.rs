//! Sixteen-byte ids, as Windows stores them: the first three groups little-endian, the rest as written.

use std::fmt;

/// A GUID in the byte order of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// All zero: no id.
    pub const NONE: Guid = Guid([0; 16]);

    /// Whether every byte is zero.
    pub fn is_none(&self) -> bool {
        self.0 == [0; 16]
    }

    /// Parses the usual text form, with or without braces. `None` when it is not 32 hexadecimal digits in groups.
    pub fn parse(text: &str) -> Option<Guid> {
        let text = text.trim_start_matches('{').trim_end_matches('}');
        let mut digits = text.bytes().filter(|b| *b != b'-').map(|b| (b as char).to_digit(16));
        let mut read = [0u8; 16];
        for byte in &mut read {
            let (high, low) = (digits.next()??, digits.next()??);
            *byte = (high * 16 + low) as u8;
        }
        if digits.next().is_some() {
            return None;
        }
        let [a, b, c, d, e, f, g, h, tail @ ..] = read;
        let [i, j, k, l, m, n, o, p] = tail;
        Some(Guid([d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p]))
    }

    /// The lower-case text form, 36 characters, without allocating.
    #[allow(clippy::indexing_slicing, reason = "half a byte is below 16")]
    pub fn text(&self) -> [u8; 36] {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        let mut out = [b'-'; 36];
        let mut at = 0;
        for (index, from) in ORDER.into_iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                at += 1;
            }
            let byte = self.0.get(from).copied().unwrap_or_default();
            if let Some([high, low]) = out.get_mut(at..at + 2) {
                *high = HEX[usize::from(byte >> 4)];
                *low = HEX[usize::from(byte & 15)];
            }
            at += 2;
        }
        out
    }
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
        assert_eq!(Guid::parse("e13c0d23"), None);
    }
}
