//! Text in cells of Markdown tables. Names of types and methods have characters with a meaning in Markdown or HTML.

use super::text::clean;

/// Characters of a cell; names in recordings have no bound.
const MOST: usize = 300;

/// Text as it is: code, in which nothing becomes a link or a mention. The fence is longer than any row of backticks in it (``List`1``).
pub fn code(text: &str) -> String {
    let text = shortened(text).replace('|', "\\|");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // A backtick at the edge would be taken for one of the fence.
    let edge = if text.starts_with('`') || text.ends_with('`') || text.is_empty() { " " } else { "" };
    format!("{fence}{edge}{text}{edge}{fence}")
}

fn shortened(text: &str) -> String {
    let text = clean(text);
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_stay_what_they_are() {
        assert_eq!(code("System.String"), "`System.String`");
        assert_eq!(code("List`1[a|b]"), "``List`1[a\\|b]``");
        assert_eq!(code("``2"), "``` ``2 ```");
        assert_eq!(code(&"a".repeat(1 << 20)).len(), MOST + 5);
    }
}
