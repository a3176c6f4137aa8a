//! Numbers one behind the other, those that are small in few bytes.

/// Bytes of a piece, so that a long list does not move when it grows.
const PIECE: usize = 1 << 20;

/// Bytes that a number takes at most.
const MOST: usize = 10;

/// Numbers in the order in which they came: seven bits a byte, the lowest first.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
}

impl Packed {
    /// Adds a number.
    #[inline]
    pub fn push(&mut self, mut number: u64) {
        if self.last.len() + MOST > PIECE {
            self.full.push(std::mem::replace(&mut self.last, Vec::with_capacity(PIECE)));
        }
        while number >= 0x80 {
            self.last.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.last.push(number as u8);
    }

    /// Adds how far an address is from another one: most lie near, and at a multiple of eight.
    #[inline]
    pub fn push_step(&mut self, from: u64, to: u64) {
        let step = to.wrapping_sub(from) as i64;
        let (length, rest) = (step.unsigned_abs() >> 3, step.unsigned_abs() & 7);
        self.push(length << 2 | u64::from(step < 0) << 1 | u64::from(rest != 0));
        if rest != 0 {
            self.push(rest);
        }
    }

    /// Memory that the numbers take.
    pub fn bytes(&self) -> u64 {
        (self.full.len() * PIECE + self.last.capacity()) as u64
    }

    /// The numbers from the first one on.
    pub fn numbers(&self) -> Numbers<'_> {
        Numbers { rest: &[], pieces: self.full.iter(), last: &self.last }
    }
}

/// Gives packed numbers back.
pub(crate) struct Numbers<'p> {
    rest: &'p [u8],
    pieces: std::slice::Iter<'p, Vec<u8>>,
    last: &'p [u8],
}

impl Numbers<'_> {
    /// The address that was added as a step from this one.
    #[inline]
    pub fn step(&mut self, from: u64) -> Option<u64> {
        let head = self.next()?;
        let rest = if head & 1 == 0 { 0 } else { self.next()? };
        let length = head >> 2 << 3 | rest;
        Some(if head & 2 == 0 { from.wrapping_add(length) } else { from.wrapping_sub(length) })
    }
}

impl Iterator for Numbers<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        while self.rest.is_empty() {
            self.rest = match self.pieces.next() {
                Some(piece) => piece,
                None if self.last.is_empty() => return None,
                None => std::mem::take(&mut self.last),
            };
        }
        let (mut number, mut shift) = (0, 0);
        // A number does not go over the end of a piece.
        for (at, byte) in self.rest.iter().enumerate().take(MOST) {
            number |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                self.rest = self.rest.get(at + 1..).unwrap_or_default();
                return Some(number);
            }
            shift += 7;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::dice::Dice;

    #[test]
    fn any_numbers_and_steps_come_back() {
        let mut dice = Dice(11);
        let mut numbers = vec![0, 1, 0x7f, 0x80, u64::MAX, u64::MAX - 7, 1 << 63, (1 << 63) - 1];
        numbers.extend((0..400_000).map(|_| {
            let bits = dice.below(64) as u32;
            (dice.below(u64::MAX) << 13) >> bits
        }));
        let (mut plain, mut steps) = (Packed::default(), Packed::default());
        let mut from = 0;
        for &number in &numbers {
            plain.push(number);
            steps.push_step(from, number);
            from = number;
        }
        assert!(!plain.full.is_empty(), "several pieces");
        assert!(plain.numbers().eq(numbers.iter().copied()));
        let mut back = steps.numbers();
        from = 0;
        for &number in &numbers {
            from = back.step(from).unwrap();
            assert_eq!(from, number);
        }
        assert_eq!((back.next(), Packed::default().numbers().next()), (None, None));
    }

    #[test]
    fn neighbours_take_one_byte() {
        let mut steps = Packed::default();
        (0..1000).for_each(|n| steps.push_step(n * 64, n * 64 + 64));
        assert_eq!(steps.last.len(), 1000);
    }
}
