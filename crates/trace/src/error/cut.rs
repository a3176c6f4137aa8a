//! Foreign text in messages, which may be megabytes long.

use std::borrow::Cow;

/// The beginning of a text, of at most `most` bytes, with a mark where something is left out.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default()))
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
