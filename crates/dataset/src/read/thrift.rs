//! The compact protocol of Thrift, in which Parquet writes its footer and the headers of its pages, as far as bounds
//! need it.
//!
//! arrow-rs believes the lengths in them. Source: apache/thrift, doc/specs/thrift-compact-protocol.md.

use tracequet_trace::{varuint64, zigzag};

/// A list of values.
pub(super) const LIST: u8 = 9;
/// Fields up to a stop.
pub(super) const STRUCT: u8 = 12;

/// Structs and lists in each other. The footer of Parquet has six.
const MAX_DEPTH: u32 = 32;

/// Bytes that are still to be read. Every answer is `None` where they end too early or make no sense.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compact<'b>(pub &'b [u8]);

impl<'b> Compact<'b> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A number without a sign, seven bits a byte, the lowest first.
    pub fn varint(&mut self) -> Option<u64> {
        let (rest, value) = varuint64("number")(self.0).ok()?;
        self.0 = rest;
        Some(value)
    }

    /// The number of a field, or of an element, of this type.
    pub fn number(&mut self, kind: u8) -> Option<i64> {
        match kind {
            3 => self.byte().map(|byte| i64::from(byte.cast_signed())),
            4..=6 => self.varint().map(zigzag),
            _ => None,
        }
    }

    /// Type and number of the elements of a list.
    pub fn list(&mut self) -> Option<(u8, u64)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => count.into(),
        };
        Some((head & 15, count))
    }

    /// Calls `field` with the id and the type of each field of a struct; it reads the value, or gives it back unread as
    /// `false`.
    pub fn each_field(&mut self, mut field: impl FnMut(&mut Self, i64, u8) -> Option<bool>) -> Option<()> {
        self.fields(0, &mut field)
    }

    fn fields(&mut self, depth: u32, field: &mut dyn FnMut(&mut Self, i64, u8) -> Option<bool>) -> Option<()> {
        let mut id = 0i64;
        loop {
            let head = self.byte()?;
            let kind = head & 15;
            if kind == 0 {
                return Some(());
            }
            let next = match head >> 4 {
                0 => self.number(4)?,
                more => id.checked_add(more.into())?,
            };
            // Readers disagree about a field that comes twice.
            if next <= id {
                return None;
            }
            id = next;
            if !field(self, id, kind)? {
                self.skip(kind, depth)?;
            }
        }
    }

    /// Passes over the value of a field.
    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let within = Some(depth + 1).filter(|depth| *depth <= MAX_DEPTH);
        match kind {
            // A truth value is the type of its field.
            1 | 2 => Some(()),
            3..=6 => self.number(kind).map(drop),
            7 => self.pass(8),
            8 => {
                let length = self.varint()?;
                self.pass(length)
            }
            LIST | 10 => {
                let (kind, count) = self.list()?;
                for _ in 0..count {
                    // As an element it has a byte of its own.
                    if matches!(kind, 1 | 2) { self.pass(1)? } else { self.skip(kind, within?)? }
                }
                Some(())
            }
            STRUCT => self.fields(within?, &mut |_, _, _| Some(false)),
            // Parquet has no maps.
            _ => None,
        }
    }

    fn pass(&mut self, length: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(length).ok()?..)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_passed_over() {
        // 1: i32 -3, 2: true, 4: binary "ab", 5: list of two structs, 6: double, 40: i64 300
        let bytes = [
            &[0x15, 5, 0x11, 0x28, 2, b'a', b'b', 0x19, 0x2C, 0x15, 2, 0, 0][..],
            &[0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x06, 80, 0xD8, 0x04, 0],
        ]
        .concat();
        let read = |bytes: &[u8]| {
            let (mut compact, mut numbers) = (Compact(bytes), Vec::new());
            compact.each_field(|compact, id, kind| {
                let is_number = (3..=6).contains(&kind);
                if is_number {
                    numbers.push((id, compact.number(kind)?));
                }
                Some(is_number)
            })?;
            Some((numbers, compact.0.len()))
        };
        assert_eq!(read(&bytes), Some((vec![(1, -3), (40, 300)], 0)));
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), None, "cut at {end}");
        }
        // A field again, a map, a length and a count beyond the end, and structs without end.
        for wrong in [&[0x15, 5, 0x05, 2, 5, 0][..], &[0x1B, 0, 0], &[0x18, 0x7F, 0], &[0x19, 0xFC, 0xFF, 0x7F]] {
            assert_eq!(read(wrong), None, "{wrong:x?}");
        }
        assert_eq!(read(&[0x1C; 100_000]), None);
    }
}
