//! Escapes foreign text, a function for each form that it is shown in.

use tracequet_trace::error::is_unseen;

/// Characters of a name that are shown at most; names in recordings have no bound.
pub const MAX_SHOWN: usize = 240;

/// Characters of a sentence or a query that are shown at most.
pub(super) const MAX_SENTENCE: usize = 4_000;

/// A text without the characters that would steer a terminal, or are not seen: `\u{202e}` stands for one. No part is left out.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| push(&mut out, c));
    out
}

fn push(out: &mut String, c: char) {
    if is_unseen(c) {
        out.extend(c.escape_unicode());
    } else {
        out.push(c);
    }
}

/// [`clean`] text of at most [`MAX_SHOWN`] characters.
pub fn shown(text: &str) -> String {
    shown_to(text, MAX_SHOWN)
}

/// [`clean`] text of at most so many characters.
pub(super) fn shown_to(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    for c in text.chars() {
        length += if is_unseen(c) { c.escape_unicode().len() } else { 1 };
        if length > most {
            out.push('…');
            break;
        }
        push(&mut out, c);
    }
    out
}

/// The beginning of a text, of at most this many bytes.
pub fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// [`shown`] text as code of Markdown, in which nothing becomes a link or a mention, also in a cell of a table. The fence is longer
/// than any row of backticks in it (``List`1``).
pub fn code(text: &str) -> String {
    code_to(text, MAX_SHOWN)
}

/// [`code`] of at most so many characters.
pub(super) fn code_to(text: &str, most: usize) -> String {
    let text = shown_to(text, most).replace('|', "\\|");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    // A backtick at the edge would be taken for one of the fence, and blanks at both edges are left out.
    let edge = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) || text.is_empty() { " " } else { "" };
    format!("{fence}{edge}{text}{edge}{fence}")
}

/// [`shown`] text as HTML: of elements and of quoted attributes.
pub fn escaped(text: &str) -> String {
    escaped_to(text, MAX_SHOWN)
}

/// [`escaped`] sentence, which may be longer than a name.
pub fn escaped_sentence(text: &str) -> String {
    escaped_to(text, MAX_SENTENCE)
}

/// [`escaped`] text of at most so many characters.
pub(super) fn escaped_to(text: &str, most: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for c in shown_to(text, most).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// [`escaped`] name of a file: a line breaks behind its signs rather than inside of a word.
pub fn escaped_name(name: &str) -> String {
    name.split_inclusive(['.', '-', '_', '/', '\\', ' ']).map(|part| escaped(part) + "<wbr>").collect()
}

/// A text within XML, whole. Characters that XML cannot have are replaced.
pub fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

/// A field of CSV by RFC 4180: the text as it is, quoted where it has to be.
pub(super) fn csv(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_cannot_steer_the_terminal() {
        assert_eq!(clean("a\u{2028}\u{200e}\u{feff}b"), "a\\u{2028}\\u{200e}\\u{feff}b");
        assert_eq!(clean("a\u{1b}[31mb\n\u{202e}c"), "a\\u{1b}[31mb\\u{a}\\u{202e}c");
    }

    #[test]
    fn texts_of_recordings_stay_texts_of_a_page() {
        assert_eq!(escaped("</script><b a='\"'>&"), "&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;");
        assert_eq!(escaped("a\u{202e}b\nc"), "a\\u{202e}b\\u{a}c");
        assert_eq!(escaped("Größe<名>"), "Größe&lt;名&gt;");
        let long = "x".repeat(MAX_SHOWN + 1);
        assert_eq!(escaped(&long), format!("{}…", "x".repeat(MAX_SHOWN)));
        // The length is that of the escapes, so that a text of such characters is not longer than others.
        assert_eq!(shown(&"\u{202e}".repeat(MAX_SHOWN)), format!("{}…", "\\u{202e}".repeat(MAX_SHOWN / 8)));
    }

    #[test]
    fn names_of_types_stay_what_they_are_in_markdown_xml_and_csv() {
        assert_eq!(code("System.String"), "`System.String`");
        assert_eq!(code("List`1[a|b]"), "``List`1[a\\|b]``");
        assert_eq!(code("``2"), "``` ``2 ```");
        assert_eq!(code("::error::\n# a"), "`::error::\\u{a}# a`");
        assert_eq!(code(&"a".repeat(1 << 20)).chars().count(), MAX_SHOWN + 3);
        assert_eq!(xml("List<\"a\"&\u{1}>"), "List&lt;&quot;a&quot;&amp;\u{FFFD}&gt;");
        assert_eq!(["a b", "a,b", "a\"b", "a\nb"].map(csv), ["a b", "\"a,b\"", "\"a\"\"b\"", "\"a\nb\""]);
    }
}
