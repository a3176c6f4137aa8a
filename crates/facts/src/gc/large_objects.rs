//! Lengths that are known only to be 4 GiB or more, narrowed by the part of the heap that the range lies in.

use crate::fact::LengthKind;

/// Number of the generation that large objects are in.
const LARGE_OBJECTS: u8 = 3;

/// The parts of the heap that hold ranges of unknown length.
#[derive(Default)]
pub struct LargeParts {
    parts: Vec<Part>,
}

struct Part {
    start: u64,
    end: u64,
    is_large: bool,
    /// Where the last range in it begins.
    last: u64,
}

impl LargeParts {
    /// A part of the heap that a range of unknown length begins in.
    pub fn add(&mut self, start: u64, end: u64, generation: Option<u8>) {
        self.parts.push(Part { start, end, is_large: generation == Some(LARGE_OBJECTS), last: 0 });
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// All parts are known.
    pub fn sort(&mut self) {
        self.parts.sort_by_key(|part| part.start);
        self.parts.dedup_by_key(|part| part.start);
    }

    fn part(&mut self, address: u64) -> Option<&mut Part> {
        let index = self.parts.partition_point(|p| p.start <= address).checked_sub(1)?;
        self.parts.get_mut(index).filter(|p| address < p.end)
    }

    /// A range begins here after the collection.
    pub fn saw(&mut self, new_start: u64) {
        if let Some(part) = self.part(new_start) {
            part.last = part.last.max(new_start);
        }
    }

    /// The length of a range of at least `least` bytes that begins at `new_start`, as well as its part proves it.
    /// `None` when the part has less room.
    pub fn narrow(&mut self, new_start: u64, least: u64) -> Option<(u64, LengthKind)> {
        let Some(part) = self.part(new_start) else { return Some((least, LengthKind::Clamped)) };
        let room = part.end - new_start;
        if room < least {
            return None;
        }
        let is_last = part.is_large && part.last == new_start;
        Some(if room == least || is_last { (room, LengthKind::Narrowed) } else { (least, LengthKind::Clamped) })
    }
}
