//! Characters of foreign text that a message shows in another way.

/// Whether a character changes how text around it is shown, and is not seen itself: control characters, marks of direction, line
/// and paragraph separators, characters without width, tags.
pub fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{AD}' | '\u{61C}' | '\u{180E}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
        || matches!(c, '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}
