//! Addresses one behind the other in five bytes each.

/// Addresses of a piece, so that a long list does not move when it grows.
const PIECE: usize = 1 << 18;

/// High halves that have a number. A heap has some: one for each 4 GiB.
const MOST: usize = u8::MAX as usize;

/// Addresses in the order in which they came: the low half of each, and the number of its high half.
#[derive(Debug, Default)]
pub(super) struct Halves {
    low: Pieces<u32>,
    numbers: Pieces<u8>,
    /// The high halves by their numbers.
    highs: Vec<u32>,
    /// The high half of the last address, and its number.
    known: Option<(u32, u8)>,
    /// The high halves of addresses that came when all numbers were taken.
    others: Vec<u32>,
}

/// A list in pieces.
#[derive(Debug, Default)]
struct Pieces<T> {
    full: Vec<Vec<T>>,
    last: Vec<T>,
}

impl<T: Copy> Pieces<T> {
    #[inline]
    fn push(&mut self, value: T) {
        if self.last.len() == PIECE {
            self.full.push(std::mem::replace(&mut self.last, Vec::with_capacity(PIECE)));
        }
        self.last.push(value);
    }

    fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.full.iter().chain([&self.last]).flatten().copied()
    }

    fn bytes(&self) -> u64 {
        ((self.full.len() * PIECE + self.last.capacity()) * size_of::<T>()) as u64
    }
}

impl Halves {
    /// Adds an address.
    #[inline]
    pub fn push(&mut self, address: u64) {
        let high = (address >> 32) as u32;
        let number = match self.known {
            Some((known, number)) if known == high => number,
            _ => self.number(high),
        };
        if number as usize == MOST {
            self.others.push(high);
        }
        self.low.push(address as u32);
        self.numbers.push(number);
    }

    fn number(&mut self, high: u32) -> u8 {
        let number = self.highs.iter().position(|known| *known == high).unwrap_or(self.highs.len()) as u8;
        if number as usize == self.highs.len() && self.highs.len() < MOST {
            self.highs.push(high);
        }
        self.known = Some((high, number));
        number
    }

    /// All in their order.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        let mut others = self.others.iter();
        self.low.iter().zip(self.numbers.iter()).map(move |(low, number)| {
            let high = match self.highs.get(number as usize) {
                Some(high) => *high,
                None => others.next().copied().unwrap_or_default(),
            };
            u64::from(high) << 32 | u64::from(low)
        })
    }

    /// Memory that the addresses take.
    pub fn bytes(&self) -> u64 {
        let halves = (self.highs.capacity() + self.others.capacity()) * size_of::<u32>();
        self.low.bytes() + self.numbers.bytes() + halves as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::dice::Dice;

    #[test]
    fn any_addresses_come_back() {
        let mut dice = Dice(5);
        for highs in [1, 3, 254, 255, 256, 700, u32::MAX.into()] {
            let (mut halves, mut plain) = (Halves::default(), Vec::new());
            for _ in 0..PIECE + 5 {
                let address = dice.below(highs) << 32 | dice.below(1 << 32);
                halves.push(address);
                plain.push(address);
            }
            assert!(halves.iter().eq(plain.iter().copied()), "{highs}");
            assert_eq!(halves.others.is_empty(), highs <= MOST as u64);
            assert!(halves.bytes() >= 5 * plain.len() as u64);
        }
        assert_eq!(Halves::default().iter().next(), None);
    }
}
