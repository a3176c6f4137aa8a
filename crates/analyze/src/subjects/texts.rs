//! Texts by number, each once, within a bound.

use crate::prelude::*;

/// Texts by number, from 1.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    texts: Vec<Arc<str>>,
    places: Map<Arc<str>, u32>,
    bytes: usize,
    most_bytes: usize,
}

impl Texts {
    /// For texts with at most this number of bytes together.
    pub(crate) fn new(most_bytes: usize) -> Texts {
        Texts { most_bytes, ..Texts::default() }
    }

    /// The number of a text; 0 of an empty one, and when there is no room for it.
    pub(crate) fn place(&mut self, text: &str) -> u32 {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        if text.is_empty() || self.bytes + text.len() > self.most_bytes {
            return 0;
        }
        self.bytes += text.len();
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        let place = u32::try_from(self.texts.len()).unwrap_or_default();
        self.places.insert(text, place);
        place
    }

    /// The text of a number.
    pub(crate) fn get(&self, place: u32) -> Option<&str> {
        self.texts.get((place as usize).checked_sub(1)?).map(|text| &**text)
    }
}
