//! A list in pieces: it grows without a copy, where a vector needs memory for its old and its new place at once.

/// Items in a piece.
const PIECE: usize = 1 << 10;

/// Items in the order in which they were added.
#[derive(Clone, Debug)]
pub(crate) struct Pieces<T> {
    /// All but the last are full.
    pieces: Vec<Vec<T>>,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Pieces { pieces: Vec::new() }
    }
}

impl<T> Pieces<T> {
    /// Adds an item.
    pub fn push(&mut self, item: T) {
        match self.pieces.last_mut().filter(|last| last.len() < PIECE) {
            Some(last) => last.push(item),
            None => {
                let mut piece = Vec::with_capacity(PIECE);
                piece.push(item);
                self.pieces.push(piece);
            }
        }
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * PIECE + last.len())
    }

    /// The item at a place.
    pub fn get(&self, place: usize) -> Option<&T> {
        self.pieces.get(place / PIECE)?.get(place % PIECE)
    }

    /// The item at a place, to change it.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.pieces.get_mut(place / PIECE)?.get_mut(place % PIECE)
    }

    /// The items.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_in_all_pieces() {
        let count = 2 * PIECE + 3;
        let mut list = Pieces::default();
        (0..count).for_each(|item| list.push(item));
        *list.get_mut(PIECE).unwrap() += 1;
        assert_eq!((list.iter().count(), list.get(PIECE), list.get(count)), (count, Some(&(PIECE + 1)), None));
    }
}
