//! Texts of a dataset that are kept once each: a damaged one may repeat a long name for each object.

use crate::prelude::*;

/// Bytes of all texts. The names of a hundred thousand types have some 10 MB.
const MAX_TEXT: u64 = 256 << 20;

/// The texts so far.
#[derive(Default)]
pub(crate) struct Texts {
    known: Set<Arc<str>>,
    bytes: u64,
}

impl Texts {
    /// A text that may have been there before. Fails when all together are too long.
    pub fn keep(&mut self, text: &str) -> Result<Arc<str>> {
        if let Some(known) = self.known.get(text) {
            return Ok(known.clone());
        }
        self.bytes += text.len() as u64;
        if self.bytes > MAX_TEXT {
            return Err(Error::TooLarge("the names of types, methods and roots have more than 256 MB".into()));
        }
        let text: Arc<str> = text.into();
        self.known.insert(text.clone());
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_once_and_all_are_bounded() {
        let mut texts = Texts::default();
        let first = texts.keep("name").unwrap();
        assert!((0..1000).all(|_| Arc::ptr_eq(&texts.keep("name").unwrap(), &first)));
        assert_eq!(texts.bytes, 4);
        texts.bytes = MAX_TEXT;
        assert!(texts.keep("name").is_ok() && texts.keep("another").is_err());
    }
}
