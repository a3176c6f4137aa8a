//! Text in cells of Markdown tables. Names of types and methods have signs that Markdown or HTML would take for theirs.

use super::text::clean;

/// Characters of a cell; names in recordings have no bound.
const MOST: usize = 300;

/// Plain text.
pub fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in shortened(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '~' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// A name as it is. The fence is longer than any row of backticks in it (``List`1``).
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
        assert_eq!(cell("List<a|b> & *_[x]"), "List&lt;a\\|b&gt; &amp; \\*\\_\\[x\\]");
        assert_eq!(code(&"a".repeat(1 << 20)).len(), MOST + 5);
    }
}
