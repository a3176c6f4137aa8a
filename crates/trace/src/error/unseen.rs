//! Characters of foreign text that a message shows in another way.

/// Whether a character is not seen itself, or is blank and no space: text with it looks like other text, or is shown in
/// another order. Control characters, line and paragraph separators, marks of direction, annotations, and those without
/// a picture of their own. Source: `Default_Ignorable_Code_Point` of Unicode 16, `DerivedCoreProperties.txt`; blank
/// letters, notes and signs by their names in `UnicodeData.txt`.
pub fn is_unseen(c: char) -> bool {
    if c.is_ascii() {
        return c.is_control();
    }
    c.is_control()
        || matches!(c, '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}')
        || matches!(c, '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
        || matches!(c, '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}')
        || matches!(c, '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{13441}' | '\u{13442}' | '\u{16FE4}')
        || matches!(c, '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D159}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_told_from_what_is() {
        // Fillers of Hangul, a blank of Braille, selectors, joiners, marks of direction, tags, and controls.
        let unseen = "\u{3164}\u{115F}\u{1160}\u{FFA0}\u{2800}\u{FE0F}\u{E0100}\u{34F}\u{17B4}\u{180B}\u{180F}\u{200D}\u{2063}\
            \u{206A}\u{202E}\u{2028}\u{FEFF}\u{FFF9}\u{1BCA0}\u{1D159}\u{1D17A}\u{E007F}\u{13441}\u{AD}\u{1B}\u{85}\n\0";
        assert!(unseen.chars().all(is_unseen), "{:?}", unseen.chars().filter(|c| !is_unseen(*c)).collect::<Vec<_>>());
        // Spaces are seen as such.
        let seen = "aZ~ é\u{A0}\u{3000}\u{202F}ㄱ가힣⠁⠿한국어日本語العربيةעברית🎉\u{1D158}\u{FFFD}…";
        assert!(!seen.chars().any(is_unseen), "{:?}", seen.chars().filter(|c| is_unseen(*c)).collect::<Vec<_>>());
    }
}
