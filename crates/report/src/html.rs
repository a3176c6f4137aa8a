//! Text of a recording as text of a page.

use std::fmt::Write;

use tracequet_trace::error::is_unseen;

use crate::units::span;

/// Characters of a text that a cell shows at most.
pub(crate) const MAX_SHOWN: usize = 240;

/// The text for a person: what is not seen or turns the direction is written as `\u{202e}`, and a long text is cut.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::new();
    let mut length = 0;
    for c in text.chars() {
        let is_unseen = is_unseen(c);
        length += if is_unseen { c.escape_unicode().len() } else { 1 };
        if length > MAX_SHOWN {
            out.push('…');
            break;
        }
        if is_unseen {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// The beginning of a text, in bytes.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The text for a person as HTML: of elements and of quoted attributes.
pub(crate) fn escaped(text: &str) -> String {
    let text = shown(text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
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

/// The same of the name of a file: a line breaks behind its signs rather than inside of a word.
pub(crate) fn escaped_name(name: &str) -> String {
    let mut out = String::new();
    for part in name.split_inclusive(['.', '-', '_', '/', '\\', ' ']) {
        out += &escaped(part);
        out += "<wbr>";
    }
    out
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    /// A text of a recording.
    Text(String),
    /// A number as it is, by which rows are sorted, and as it is shown.
    Number(String, String),
    /// What was not recorded.
    Missing,
}

impl Cell {
    /// A text that may be missing.
    pub(crate) fn text(text: Option<&str>) -> Cell {
        text.filter(|text| !text.is_empty()).map_or(Cell::Missing, |text| Cell::Text(text.to_owned()))
    }

    /// A number that may be missing, shown by a function.
    pub(crate) fn number(value: Option<u64>, show: impl Fn(u64) -> String) -> Cell {
        value.map_or(Cell::Missing, |value| Cell::Number(value.to_string(), show(value)))
    }

    /// Nanoseconds that may be missing.
    pub(crate) fn span(ns: Option<u64>) -> Cell {
        Cell::number(ns, span)
    }

    /// A number with a sign, likewise.
    pub(crate) fn signed(value: Option<i64>, show: impl Fn(i64) -> String) -> Cell {
        value.map_or(Cell::Missing, |value| Cell::Number(value.to_string(), show(value)))
    }
}

/// A column: its head, what it means, and whether it has numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub name: &'static str,
    pub meaning: &'static str,
    pub is_number: bool,
}

/// A column of texts.
pub(crate) const fn words(name: &'static str, meaning: &'static str) -> Head {
    Head { name, meaning, is_number: false }
}

/// A column of numbers.
pub(crate) const fn numbers(name: &'static str, meaning: &'static str) -> Head {
    Head { name, meaning, is_number: true }
}

/// A table that script makes sortable. Rows with a time are those that a selection on the timeline leaves.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    id: String,
    heads: Vec<Head>,
    rows: Vec<(Option<i64>, Vec<Cell>)>,
}

impl Rows {
    pub(crate) fn new(id: impl Into<String>, heads: &[Head]) -> Rows {
        Rows { id: id.into(), heads: heads.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push((None, cells));
    }

    pub(crate) fn row_at(&mut self, ts_ns: i64, cells: Vec<Cell>) {
        self.rows.push((Some(ts_ns), cells));
    }

    /// Whether there is no row.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Takes out the columns in which nothing is recorded, and returns their names.
    pub(crate) fn without_empty(&mut self) -> Vec<&'static str> {
        let is_missing = |place: usize| {
            self.rows.iter().all(|(_, cells)| cells.get(place).is_none_or(|cell| matches!(cell, Cell::Missing)))
        };
        let empty: Vec<bool> = (0..self.heads.len()).map(is_missing).collect();
        let gone =
            self.heads.iter().zip(&empty).filter(|(_, is_empty)| **is_empty).map(|(head, _)| head.name).collect();
        let mut kept = empty.iter().map(|is_empty| !is_empty);
        self.heads.retain(|_| kept.next().unwrap_or(true));
        for (_, cells) in &mut self.rows {
            let mut kept = empty.iter().map(|is_empty| !is_empty);
            cells.retain(|_| kept.next().unwrap_or(true));
        }
        gone
    }

    /// The table, in a region that scrolls by itself on a narrow screen.
    pub(crate) fn html(&self, label: &str) -> String {
        let mut out = String::new();
        let label = escaped(label);
        let id = &self.id;
        write!(
            out,
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table id=\"{id}\"><thead><tr>"
        )
        .ok();
        for head in &self.heads {
            let class = if head.is_number { " class=\"n\"" } else { "" };
            write!(out, "<th scope=\"col\"{class} title=\"{}\">{}</th>", escaped(head.meaning), escaped(head.name))
                .ok();
        }
        out.push_str("</tr></thead><tbody>\n");
        for (time, cells) in &self.rows {
            match time {
                Some(ts_ns) => write!(out, "<tr data-t=\"{ts_ns}\">").ok(),
                None => write!(out, "<tr>").ok(),
            };
            for (cell, head) in cells.iter().zip(&self.heads) {
                match cell {
                    Cell::Text(text) => {
                        // A long text needs a column that is wide, a short one should not be broken.
                        let class = if text.chars().nth(24).is_some() { " class=\"w\"" } else { "" };
                        write!(out, "<td{class}>{}</td>", escaped(text)).ok()
                    }
                    Cell::Number(raw, shown) => {
                        write!(out, "<td data-v=\"{}\">{}</td>", escaped(raw), escaped(shown)).ok()
                    }
                    Cell::Missing if head.is_number => write!(out, "<td class=\"n\">–</td>").ok(),
                    Cell::Missing => write!(out, "<td>–</td>").ok(),
                };
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_recordings_stay_texts() {
        assert_eq!(escaped("</script><b a='\"'>&"), "&lt;/script&gt;&lt;b a=&#39;&quot;&#39;&gt;&amp;");
        assert_eq!(escaped("a\u{202e}b\nc"), "a\\u{202e}b\\u{a}c");
        assert_eq!(escaped("Größe<名>"), "Größe&lt;名&gt;");
        let long = "x".repeat(MAX_SHOWN + 1);
        assert_eq!(escaped(&long), format!("{}…", "x".repeat(MAX_SHOWN)));
        // What a character is written as counts, so that a text of such characters is no longer than another.
        assert_eq!(shown(&"\u{202e}".repeat(MAX_SHOWN)), format!("{}…", "\\u{202e}".repeat(MAX_SHOWN / 8)));
    }

    #[test]
    fn what_was_not_recorded_is_no_zero() {
        let mut rows = Rows::new("t", &[words("name", ""), numbers("bytes", "")]);
        rows.row(vec![Cell::text(None), Cell::number(None, |n| n.to_string())]);
        rows.row_at(7, vec![Cell::text(Some("a")), Cell::number(Some(0), |n| format!("{n} B"))]);
        let html = rows.html("x");
        assert!(html.contains("<tr><td>–</td><td class=\"n\">–</td></tr>"), "{html}");
        assert!(html.contains("<tr data-t=\"7\"><td>a</td><td data-v=\"0\">0 B</td></tr>"), "{html}");
    }

    #[test]
    fn a_column_of_which_nothing_is_recorded_is_taken_out() {
        let mut rows = Rows::new("t", &[numbers("a", ""), words("b", ""), numbers("c", "")]);
        rows.row(vec![Cell::Missing, Cell::text(Some("x")), Cell::Missing]);
        rows.row(vec![Cell::Missing, Cell::Missing, Cell::number(Some(0), |n| n.to_string())]);
        assert_eq!(rows.without_empty(), ["a"]);
        assert!(rows.html("x").contains("<tr><td>x</td><td class=\"n\">–</td></tr>"));
        assert!(rows.without_empty().is_empty());
    }
}
