//! Data for the script of a page: gzip in base64, in an element that no browser runs.

use base64::prelude::{BASE64_STANDARD, Engine as _};
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

    pub(crate) fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
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
        Ok(BASE64_STANDARD.encode(written.map_err(Error::io(Path::new("-")))?))
    }
}

/// The element.
pub(crate) fn element(id: &str, packed: &str) -> String {
    let mut out = String::with_capacity(packed.len() + 80);
    writeln!(out, "<script type=\"application/octet-stream\" id=\"{id}\">{packed}</script>").ok();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_data_are_the_same_bytes() {
        let mut bytes = Bytes::default();
        (0..1000u32).for_each(|n| bytes.u32(n % 7));
        let (one, other) = (bytes.packed().unwrap(), bytes.packed().unwrap());
        assert_eq!(one, other);
        assert!(one.starts_with("H4sIAAAAAAA"), "no time: {one}");
    }
}
