//! Foreign text in messages, which may be megabytes long.

use std::borrow::Cow;

/// The beginning of a text, of at most `most` bytes.
pub fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// The beginning of a text, of at most `most` bytes, with a mark where something is left out.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match beginning(text, most) {
        whole if whole.len() == text.len() => Cow::Borrowed(text),
        part => Cow::Owned(format!("{part}…")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!([cut("", 0), cut("name", 4), cut("names", 4)], ["", "name", "name…"]);
        assert_eq!([cut("aé", 2), cut("aé", 3), cut("é", 0)], ["a…", "aé", "…"]);
    }
}
