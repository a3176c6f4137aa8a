//! Fields of protocol buffers, <https://protobuf.dev/programming-guides/encoding/>.

use crate::present::clean;
pub use tracequet_trace::corprof::encode::varint;

/// A field that is a number; 0 is left out.
pub fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    if value != 0 {
        present(out, field, value);
    }
}

/// A field that is a number, also when that is 0: one of several kinds of values, or one that may be missing.
pub fn present(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

/// A field that is a number with fractions.
pub fn double(out: &mut Vec<u8>, field: u64, value: f64) {
    fixed(out, field, value.to_bits());
}

/// A field that is text of a recording, without what would steer a terminal: `pprof -top` prints names as they are.
pub fn string(out: &mut Vec<u8>, field: u64, text: &str) {
    bytes(out, field, clean(text).as_bytes());
}

/// A field that is text or a message.
pub fn bytes(out: &mut Vec<u8>, field: u64, content: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// A field that is a message.
pub fn message(out: &mut Vec<u8>, field: u64, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut content = Vec::new();
    fill(&mut content);
    bytes(out, field, &content);
}

/// A field of several numbers.
pub fn packed(out: &mut Vec<u8>, field: u64, values: impl Iterator<Item = u64>) {
    message(out, field, |content| values.for_each(|value| varint(content, value)));
}

/// A field of eight bytes.
pub fn fixed(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// A field of several numbers of eight bytes each.
pub fn packed_fixed(out: &mut Vec<u8>, field: u64, values: impl Iterator<Item = u64>) {
    message(out, field, |content| values.for_each(|value| content.extend_from_slice(&value.to_le_bytes())));
}
