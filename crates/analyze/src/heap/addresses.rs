//! The addresses of the objects in their order, four bytes each, and which object is at an address.
#![allow(clippy::indexing_slicing, reason = "every index is a node or a segment, counted when they were made")]

/// Addresses that rise, as the numbers of nodes.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// The low half of each.
    low: Vec<u32>,
    /// Segments with the same high half.
    segments: Vec<Segment>,
    /// Of the segments one behind the other: a bit for each place at which an object can lie.
    words: Vec<Word>,
    /// Of the segments in which objects lie far from each other: the first node of each part of the addresses, and the
    /// end.
    starts: Vec<u32>,
}

/// Bytes of words that a segment may have for each of its objects.
const WORD_BYTES_PER_OBJECT: u64 = 6;

/// The largest `align` of [`Index::Bits`].
const MAX_ALIGN: u32 = 12;

/// Addresses with the same high half.
#[derive(Clone, Copy, Debug)]
struct Segment {
    high: u32,
    /// The first node.
    first: u32,
    end: u32,
    index: Index,
}

/// A bit for each of 64 places.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    /// In two parts, so that it takes 12 bytes.
    bits: [u32; 2],
    /// The nodes before these.
    before: u32,
}

impl Word {
    fn bits(self) -> u64 {
        u64::from(self.bits[1]) << 32 | u64::from(self.bits[0])
    }
}

/// An index by which the nodes of a segment are found.
#[derive(Clone, Copy, Debug)]
enum Index {
    /// A bit for each `1 << align` addresses from the first node's on. They begin at this word.
    Bits { align: u32, word: u32 },
    /// Parts of `1 << shift` addresses each, from the first node's on. Their places in `starts` begin here.
    Parts { shift: u32, start: u32 },
}

impl Addresses {
    /// Of addresses each of which is larger than the one before. `None` when they are not, or when they are more than
    /// there are numbers.
    pub fn of(addresses: impl Iterator<Item = u64>) -> Option<Addresses> {
        let mut low: Vec<u32> = Vec::new();
        let mut heads: Vec<(u32, u32)> = Vec::new();
        let mut last = None;
        for address in addresses {
            if last.is_some_and(|last| last >= address) || low.len() >= u32::MAX as usize - 1 {
                return None;
            }
            last = Some(address);
            let high = (address >> 32) as u32;
            if heads.last().is_none_or(|(last, _)| *last != high) {
                heads.push((high, low.len() as u32));
            }
            low.push(address as u32);
        }
        Some(Addresses::with(low, &heads))
    }

    /// Of the low halves, and the high halves with the first node of each.
    pub(super) fn with(low: Vec<u32>, heads: &[(u32, u32)]) -> Addresses {
        let mut all = Addresses { segments: Vec::with_capacity(heads.len()), low, ..Addresses::default() };
        let ends = heads.iter().skip(1).map(|(_, first)| *first).chain([all.low.len() as u32]);
        for (&(high, first), end) in heads.iter().zip(ends) {
            let of = &all.low[first as usize..end as usize];
            let (Some(least), Some(most)) = (of.first(), of.last()) else { continue };
            let align = of.iter().fold(1 << MAX_ALIGN, |all, low| all | (low - least)).trailing_zeros();
            let words = ((most - least) >> align) / 64 + 1;
            let is_close =
                u64::from(words) * size_of::<Word>() as u64 <= u64::from(end - first) * WORD_BYTES_PER_OBJECT;
            let index = if is_close { all.by_bits(first, end, align, words) } else { all.by_parts(first, end) };
            all.segments.push(Segment { high, first, end, index });
        }
        all
    }

    /// Adds the words of a segment.
    fn by_bits(&mut self, first: u32, end: u32, align: u32, words: u32) -> Index {
        let of = &self.low[first as usize..end as usize];
        let word = self.words.len();
        self.words.resize(word + words as usize, Word::default());
        let words = &mut self.words[word..];
        for low in of {
            let place = ((low - of[0]) >> align) as usize;
            words[place / 64].bits[place / 32 % 2] |= 1 << (place % 32);
        }
        let mut before = first;
        for word in words {
            word.before = before;
            before += word.bits().count_ones();
        }
        Index::Bits { align, word: word as u32 }
    }

    /// Adds the parts of a segment.
    fn by_parts(&mut self, first: u32, end: u32) -> Index {
        let of = &self.low[first as usize..end as usize];
        // About two objects in each part.
        let (span, most_parts) = (of[of.len() - 1] - of[0], of.len() as u32 / 2 + 1);
        let mut shift = 0;
        while span >> shift >= most_parts {
            shift += 1;
        }
        let start = self.starts.len() as u32;
        let mut part = 0;
        for (node, low) in (first..end).zip(of) {
            while part <= (low - of[0]) >> shift {
                self.starts.push(node);
                part += 1;
            }
        }
        self.starts.push(end);
        Index::Parts { shift, start }
    }

    /// The number of nodes.
    pub fn len(&self) -> u32 {
        self.low.len() as u32
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.low.is_empty()
    }

    /// Parts of the heap that lie 4 GiB from each other.
    pub(super) fn parts(&self) -> u64 {
        self.segments.len() as u64
    }

    /// The address of a node.
    pub fn get(&self, node: u32) -> Option<u64> {
        let low = self.low.get(node as usize)?;
        let segment = self.segments.get(self.segments.partition_point(|one| one.end <= node))?;
        Some(u64::from(segment.high) << 32 | u64::from(*low))
    }

    /// All in their order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.segments.iter().flat_map(|segment| {
            let of = &self.low[segment.first as usize..segment.end as usize];
            of.iter().map(|low| u64::from(segment.high) << 32 | u64::from(*low))
        })
    }

    /// The node at an address.
    #[inline]
    pub fn find(&self, address: u64) -> Option<u32> {
        let (high, low) = ((address >> 32) as u32, address as u32);
        let segment = self.segments.get(self.segments.partition_point(|one| one.high < high))?;
        if segment.high != high {
            return None;
        }
        let offset = low.checked_sub(self.low[segment.first as usize])?;
        match segment.index {
            Index::Bits { align, word } => {
                let place = offset >> align;
                // Behind the last word begin those of the next segment, whose nodes are not this one's.
                let word = self.words.get(word as usize + place as usize / 64)?;
                let (bits, bit) = (word.bits(), 1 << (place % 64));
                let node = word.before + (bits & (bit - 1)).count_ones();
                (bits & bit != 0 && place << align == offset && node < segment.end).then_some(node)
            }
            Index::Parts { shift, start } => {
                let starts = self.starts.get(start as usize + (offset >> shift) as usize..)?;
                let (first, end) = (*starts.first()?, *starts.get(1)?);
                // Behind the last part begins the next segment.
                let end = end.min(segment.end);
                if first >= end {
                    return None;
                }
                let of = &self.low[first as usize..end as usize];
                let place =
                    if of.len() <= 8 { of.iter().position(|one| *one == low) } else { of.binary_search(&low).ok() };
                place.map(|place| first + place as u32)
            }
        }
    }

    /// The last node at or below an address.
    pub fn at_or_below(&self, address: u64) -> Option<u32> {
        let (high, low) = ((address >> 32) as u32, address as u32);
        let segment = self.segments.partition_point(|one| one.high < high);
        match self.segments.get(segment) {
            Some(segment) if segment.high == high => {
                let of = &self.low[segment.first as usize..segment.end as usize];
                (segment.first + of.partition_point(|one| *one <= low) as u32).checked_sub(1)
            }
            Some(segment) => segment.first.checked_sub(1),
            None => self.len().checked_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::dice::Dice;

    #[test]
    fn what_is_found_is_what_a_search_finds() {
        let mut dice = Dice(21);
        let (mut has_bits, mut has_parts) = (false, false);
        for round in 0..300 {
            let mut plain: Vec<u64> = match round % 4 {
                // Close to each other, as objects are; in few places; anywhere; at the edges.
                0 => (0..1 + dice.below(400)).map(|_| 0x7f00_0000_0000 + dice.below(4000) * 8).collect(),
                1 => (0..1 + dice.below(400)).map(|n| ((n % 3) << 34) | (0xffff_0000 + dice.below(1 << 17))).collect(),
                2 => (0..dice.below(60)).map(|_| dice.below(u64::MAX) << 11).collect(),
                _ => vec![0, 1, 0xffff_ffff, 1 << 32, (1 << 32) + 1, u64::MAX - 1, u64::MAX],
            };
            plain.sort_unstable();
            plain.dedup();
            let found = Addresses::of(plain.iter().copied()).unwrap();
            assert!(found.iter().eq(plain.iter().copied()));
            assert_eq!((found.len() as usize, found.is_empty()), (plain.len(), plain.is_empty()));
            assert!((0..found.len()).all(|node| found.get(node) == Some(plain[node as usize])));
            assert_eq!(found.get(found.len()), None);
            has_bits |= found.segments.iter().any(|one| matches!(one.index, Index::Bits { .. }));
            has_parts |= found.segments.iter().any(|one| matches!(one.index, Index::Parts { .. }));
            let near = plain.iter().flat_map(|one| {
                [
                    one.wrapping_sub(1),
                    *one,
                    one.wrapping_add(1),
                    one.wrapping_add(8),
                    one.wrapping_add(4096),
                    one ^ 1 << 32,
                ]
            });
            for address in near.chain([0, 7, 1 << 32, u64::MAX]) {
                let place = plain.binary_search(&address).ok().map(|place| place as u32);
                assert_eq!(found.find(address), place, "{address:x}");
                let below = plain.partition_point(|one| *one <= address).checked_sub(1).map(|place| place as u32);
                assert_eq!(found.at_or_below(address), below, "{address:x}");
            }
        }
        assert!(has_bits && has_parts, "both ways to find a node");
        assert!(Addresses::of([1, 1].into_iter()).is_none() && Addresses::of([2, 1].into_iter()).is_none());
    }
}
