//! Data for the script of a page: gzip in base64, in an element that no browser runs.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use tracequet_dataset::error::{Error, Result};

/// Little-endian numbers, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Bytes(Vec<u8>);

impl Bytes {
    pub(crate) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn f64(&mut self, value: f64) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// Packed. There is no time in the head of the gzip, so that the same data are the same bytes.
    pub(crate) fn packed(&self) -> Result<String> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let written = gzip.write_all(&self.0).and_then(|()| gzip.finish());
        Ok(base64(&written.map_err(Error::io(Path::new("-")))?))
    }
}

/// The element.
pub(crate) fn element(id: &str, packed: &str) -> String {
    let mut out = String::with_capacity(packed.len() + 80);
    writeln!(out, "<script type=\"application/octet-stream\" id=\"{id}\">{packed}</script>").ok();
    out
}

/// Base64 of RFC 4648 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let at = |place: usize| part.get(place).copied().map_or(0, u32::from);
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * place) & 63) as usize).copied().unwrap_or(b'=');
            out.push(if place > part.len() { '=' } else { letter.into() });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_the_standard_has_it() {
        let pairs = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (plain, coded) in pairs {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xFB, 0xFF, 0xFE]), "+//+");
    }

    #[test]
    fn the_same_data_are_the_same_bytes() {
        let mut bytes = Bytes::default();
        (0..1000u32).for_each(|n| bytes.u32(n % 7));
        let (one, other) = (bytes.packed().unwrap(), bytes.packed().unwrap());
        assert_eq!(one, other);
        assert!(one.starts_with("H4sIAAAAAAA"), "no time: {one}");
    }
}
