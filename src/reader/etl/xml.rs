//! XML of foreign origin as a tree, when it is small enough to be one.
//!
//! A tree of nodes takes many times the memory of its text, and the parser compares each attribute with all others of its
//! element and copies the namespaces of an element into its children: text that would make it pay for that is refused by
//! a single walk over the characters beforehand. Entities of a DTD are refused by the parser.

use roxmltree::Document;

/// Bounds; the largest manifests of Windows have a tenth of that.
const MAX_TEXT: usize = 16 << 20;
const MAX_TAGS: usize = 1 << 18;
const MAX_ATTRIBUTES: usize = 1 << 19;
const MAX_ATTRIBUTES_OF_ONE: usize = 64;
const MAX_DEPTH: usize = 64;
const MAX_NAMESPACES: usize = 64;

/// Something wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line, from 1.
    pub line: u32,
    /// Character in the line, from 1.
    pub column: u32,
    /// What is wrong.
    pub what: String,
    /// What should stand there; empty when `what` says it.
    pub expected: &'static str,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)?;
        if self.expected.is_empty() { Ok(()) } else { write!(f, ", expected {}", self.expected) }
    }
}

/// Reads XML.
pub fn tree(text: &str) -> Result<Document<'_>, Fault> {
    if let Err((at, what)) = check(text) {
        let (line, column) = position(text, at);
        return Err(Fault { line, column, what: what.into(), expected: "the XML of a manifest" });
    }
    Document::parse(text).map_err(|error| {
        let pos = error.pos();
        let message = error.to_string();
        // The parser says the place at the end of its message, too.
        let what = message.strip_suffix(&format!(" at {}:{}", pos.row, pos.col)).unwrap_or(&message).to_owned();
        Fault { line: pos.row, column: pos.col, what, expected: "" }
    })
}

/// Line and column of a byte.
pub fn position(text: &str, at: usize) -> (u32, u32) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
    (line as u32, column as u32)
}

/// Finds what is too much; the place of it and its name. What is no XML at all is left to the parser.
fn check(text: &str) -> Result<(), (usize, &'static str)> {
    if text.len() > MAX_TEXT {
        return Err((MAX_TEXT, "more than 16 MB"));
    }
    let (mut tags, mut attributes, mut namespaces, mut depth) = (0usize, 0usize, 0usize, 0usize);
    let mut at = 0;
    while let Some(open) = text.get(at..).and_then(|rest| rest.find('<')) {
        at += open;
        let rest = text.get(at..).unwrap_or_default();
        tags += 1;
        // The end is looked for behind the beginning, as the parser does: "<!-->" is no whole comment.
        let skip = |begin: &str, end: &str| {
            let inside = rest.strip_prefix(begin)?;
            Some(inside.find(end).map_or(rest.len(), |found| begin.len() + found + end.len()))
        };
        let other = skip("<!--", "-->").or_else(|| skip("<![CDATA[", "]]>")).or_else(|| skip("<?", "?>"));
        let length = if let Some(length) = other {
            length
        } else {
            let tag = Tag::of(rest);
            attributes += tag.values;
            namespaces += tag.namespaces;
            match (tag.ends, tag.empty) {
                (true, _) => depth = depth.saturating_sub(1),
                (false, true) => {}
                (false, false) => depth += 1,
            }
            if tag.values > MAX_ATTRIBUTES_OF_ONE {
                return Err((at, "an element of more than 64 attributes"));
            }
            tag.length
        };
        let bounds = [
            (depth > MAX_DEPTH, "more than 64 elements inside of each other"),
            (namespaces > MAX_NAMESPACES, "more than 64 namespaces"),
            (tags > MAX_TAGS, "more than 262144 tags"),
            (attributes > MAX_ATTRIBUTES, "more than 524288 attributes"),
        ];
        if let Some((_, what)) = bounds.iter().find(|(beyond, _)| *beyond) {
            return Err((at, what));
        }
        at += length;
    }
    Ok(())
}

/// One tag.
struct Tag {
    length: usize,
    /// Quoted values.
    values: usize,
    namespaces: usize,
    /// `</a>`.
    ends: bool,
    /// `<a/>`.
    empty: bool,
}

impl Tag {
    /// The tag that begins `text`.
    fn of(text: &str) -> Tag {
        let bytes = text.as_bytes();
        let mut tag =
            Tag { length: bytes.len(), values: 0, namespaces: 0, ends: bytes.get(1) == Some(&b'/'), empty: false };
        let (mut quote, mut name, mut before) = (None, 1, b'<');
        for (index, byte) in bytes.iter().copied().enumerate().skip(1) {
            match (quote, byte) {
                (Some(open), _) if byte == open => {
                    quote = None;
                    name = index + 1;
                }
                (Some(_), _) => {}
                (None, b'"' | b'\'') => {
                    quote = Some(byte);
                    tag.values += 1;
                    let named = bytes.get(name..index).unwrap_or_default().trim_ascii_start();
                    tag.namespaces += usize::from(named.starts_with(b"xmlns") || tag.values == 1 && has_xmlns(named));
                }
                (None, b'>') => {
                    tag.length = index + 1;
                    tag.empty = before == b'/';
                    break;
                }
                (None, _) => {}
            }
            before = byte;
        }
        tag
    }
}

/// Whether a namespace is declared behind the name of an element.
fn has_xmlns(name_and_attribute: &[u8]) -> bool {
    name_and_attribute.windows(5).any(|word| word == b"xmlns")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        tree(text).err().map(|fault| fault.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_a_manifest_may_be_is_read() {
        let text = "<?xml version='1.0'?>\n<!-- <a 'b' > -->\n<a xmlns='x' b=\"/>\"><![CDATA[<<<]]><b/><c>'\"</c></a>";
        assert!(tree(text).is_ok(), "{}", refused(text));
        let many = format!("<a>{}</a>", "<b c='1' d='2'/>".repeat(10_000));
        assert!(tree(&many).is_ok());
    }

    #[test]
    fn the_place_of_a_fault_is_said() {
        assert_eq!(refused("<a>\n  <b></c>\n</a>"), "2:6: expected 'b' tag, not 'c'");
        assert_eq!(position("é\nüx", 5), (2, 2));
        assert!(refused("").starts_with("1:1: "));
        assert!(refused("<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>").contains("DTD"));
    }

    #[test]
    fn what_would_cost_too_much_is_refused() {
        let deep = "<a>".repeat(100_000);
        assert!(refused(&deep).contains("inside of each other"));
        let names = |count: usize, of: &dyn Fn(usize) -> String| (0..count).map(of).collect::<String>();
        let wide = format!("<a {}/>", names(100_000, &|n| format!("b{n}='' ")));
        assert!(refused(&wide).contains("64 attributes"));
        let spaces = format!("<r>{}</r>", names(100, &|n| format!("<a xmlns:n{n}='u{n}'/>")));
        assert!(refused(&spaces).contains("namespaces"));
        let spaces = format!("<a b='' {}>", names(40, &|n| format!("xmlns:n{n}='u{n}' ")).repeat(2));
        assert!(refused(&spaces).contains("64 attributes"));
        assert!(refused(&format!("<r>{}</r>", "<a/>".repeat(300_000))).contains("tags"));
        assert!(refused(&format!("<r>{}</r>", "<a b='' c='' d='' e=''/>".repeat(140_000))).contains("attributes"));
        // What hides behind something that looks like a whole comment.
        let hidden = format!("<r><!--> <x '--><a {}/></r>", names(1000, &|n| format!("b{n}='' ")));
        assert!(refused(&hidden).contains("64 attributes"));
        assert!(refused(&" ".repeat(MAX_TEXT + 1)).contains("16 MB"));
    }
}
