//! A list of samples that grows without a copy: one that lies in one piece has twice its size beside it whenever it grows.

use super::samples::Sample;

/// Samples in a piece, of 100 bytes each.
const PIECE: usize = 1 << 10;

/// Samples in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct SampleList {
    /// All but the last are full.
    pieces: Vec<Vec<Sample>>,
}

impl SampleList {
    /// Adds a sample.
    pub fn push(&mut self, sample: Sample) {
        match self.pieces.last_mut().filter(|last| last.len() < PIECE) {
            Some(last) => last.push(sample),
            None => {
                let mut piece = Vec::with_capacity(PIECE);
                piece.push(sample);
                self.pieces.push(piece);
            }
        }
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The sample at a place.
    pub fn get(&self, place: usize) -> Option<&Sample> {
        self.pieces.get(place / PIECE)?.get(place % PIECE)
    }

    /// The samples.
    pub fn iter(&self) -> impl Iterator<Item = &Sample> {
        self.pieces.iter().flatten()
    }

    /// Keeps those for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut() -> bool) {
        for sample in std::mem::take(&mut self.pieces).into_iter().flatten() {
            if keep() {
                self.push(sample);
            }
        }
    }
}

impl FromIterator<Sample> for SampleList {
    fn from_iter<I: IntoIterator<Item = Sample>>(samples: I) -> SampleList {
        let mut list = SampleList::default();
        samples.into_iter().for_each(|sample| list.push(sample));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_found_in_all_pieces() {
        let count = 2 * PIECE + 3;
        let mut list: SampleList = (0..count).map(|number| Sample::new(number as i64, 1, 8)).collect();
        assert_eq!((list.len(), list.iter().count(), list.is_empty()), (count, count, false));
        let time = |list: &SampleList, place| list.get(place).map(|sample: &Sample| sample.ts_ns);
        assert_eq!(time(&list, PIECE), Some(PIECE as i64));
        assert_eq!(time(&list, count), None);
        let mut odd = false;
        list.retain(|| {
            odd = !odd;
            !odd
        });
        assert_eq!((list.len(), time(&list, PIECE)), (count / 2, Some(2 * PIECE as i64 + 1)));
    }
}
