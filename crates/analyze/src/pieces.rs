//! A list that grows without a copy: one that lies in one piece has twice its size beside it whenever it grows.

/// Items in a piece.
const PIECE: usize = 1 << 10;

/// Items in the order in which they were added.
#[derive(Clone, Debug)]
pub struct Pieces<T> {
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

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The item at a place.
    pub fn get(&self, place: usize) -> Option<&T> {
        self.pieces.get(place / PIECE)?.get(place % PIECE)
    }

    /// The items.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }

    /// Keeps the items for which `keep` returns true. It is called once for each item, in their order.
    pub fn retain(&mut self, mut keep: impl FnMut() -> bool) {
        for item in std::mem::take(&mut self.pieces).into_iter().flatten() {
            if keep() {
                self.push(item);
            }
        }
    }
}

impl<T> FromIterator<T> for Pieces<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Pieces<T> {
        let mut list = Pieces::default();
        items.into_iter().for_each(|item| list.push(item));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_in_all_pieces() {
        let count = 2 * PIECE + 3;
        let mut list: Pieces<usize> = (0..count).collect();
        assert_eq!((list.len(), list.iter().count(), list.is_empty()), (count, count, false));
        assert_eq!((list.get(PIECE), list.get(count)), (Some(&PIECE), None));
        let mut odd = (0..count).map(|number| number % 2 == 1);
        list.retain(|| odd.next() == Some(true));
        assert_eq!((list.len(), list.get(PIECE)), (count / 2, Some(&(2 * PIECE + 1))));
    }
}
