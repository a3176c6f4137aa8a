//! Texts that a profile names by their place in a list.

use tracequet_trace::map::Map;

/// Texts, each once.
#[derive(Default)]
pub struct Strings {
    /// In the order in which they came.
    pub list: Vec<String>,
    known: Map<String, u64>,
}

impl Strings {
    /// The place of a text in the list. One that is new comes to its end.
    pub fn index(&mut self, text: &str) -> u64 {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let index = self.list.len() as u64;
        self.list.push(text.to_owned());
        self.known.insert(text.to_owned(), index);
        index
    }
}
