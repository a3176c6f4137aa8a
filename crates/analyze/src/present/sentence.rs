//! A sentence: words, names and numbers.

use super::cell::Cell;
use super::escape::{escaped, escaped_to};

/// Words, names of a recording and numbers, one behind the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sentence(Vec<Cell>);

impl Sentence {
    /// With a text of a recording behind it.
    pub fn text(self, text: &str) -> Sentence {
        self.cell(Cell::text(text))
    }

    /// With words of this program behind it.
    pub fn words(self, words: impl Into<String>) -> Sentence {
        self.cell(Cell::words(words.into()))
    }

    /// With a cell behind it.
    pub fn cell(mut self, cell: Cell) -> Sentence {
        self.0.push(cell);
        self
    }

    /// The sentence as text of a terminal, in one line.
    pub fn in_text(&self) -> String {
        self.0.iter().map(Cell::in_text).collect()
    }

    /// The sentence as HTML.
    pub fn html(&self) -> String {
        self.0.iter().map(|cell| cell.written(escaped_to, escaped)).collect()
    }

    pub(super) fn markdown(&self) -> String {
        self.0.iter().map(Cell::markdown).collect()
    }
}

impl From<&str> for Sentence {
    fn from(words: &str) -> Sentence {
        Sentence::default().words(words)
    }
}

impl From<String> for Sentence {
    fn from(words: String) -> Sentence {
        Sentence::default().words(words)
    }
}

impl From<Cell> for Sentence {
    fn from(cell: Cell) -> Sentence {
        Sentence::default().cell(cell)
    }
}
