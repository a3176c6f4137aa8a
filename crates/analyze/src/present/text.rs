//! Text for terminals: tables in aligned columns, sentences in lines that fit.

use std::fmt::Write;

use super::cell::Cell;
use super::table::{Column, Table};

/// A shortened column keeps this much.
const LEAST: usize = 12;

/// The indent of cells that are moved to lines of their own.
const INDENT: usize = 6;

/// The place where text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Characters of a line, at which sentences are folded.
    pub line: usize,
    /// Characters of a row of a table, for which its texts are shortened.
    pub row: usize,
    /// Whether it shows colours.
    pub is_colored: bool,
}

/// A terminal of this width, without colours.
impl From<usize> for Terminal {
    fn from(width: usize) -> Terminal {
        Terminal { line: width, row: width, is_colored: false }
    }
}

impl Table {
    /// The rows in columns, two blanks apart and two from the edge, in lines that fit as far as texts can be shortened
    /// in the middle and sentences moved. A column without content is left out.
    pub fn text(&self, terminal: impl Into<Terminal>) -> String {
        let Terminal { row: most, is_colored, .. } = terminal.into();
        let columns: Vec<&Column> = self.seen().map(|(column, _)| column).collect();
        let mut lines: Vec<Vec<String>> = vec![self.seen().map(|(_, name)| name.to_owned()).collect()];
        for row in self.seen_rows() {
            lines.push(self.seen_cells(row).map(|(column, cell)| written(column, cell)).collect());
        }
        let has_content = |place: usize| {
            let mut rows = self.seen_rows();
            self.is_empty()
                || rows.any(|row| self.seen_cells(row).nth(place).is_some_and(|(_, cell)| !cell.is_missing()))
        };
        let width = |place: usize| {
            let lengths = lines.iter().filter_map(|cells| cells.get(place)).map(|cell| cell.chars().count());
            if has_content(place) { lengths.max() } else { None }
        };
        let mut widths: Vec<Option<usize>> = (0..columns.len()).map(width).collect();
        let is_too_wide = all_of(&widths) > most;
        let kept = if is_too_wide { columns.len().saturating_sub(self.moved) } else { columns.len() };
        widths.truncate(kept);
        if is_too_wide {
            shrink(&mut widths, &columns, most);
        }
        let rows = std::iter::once(None).chain(self.seen_rows().map(Some));
        let mut out = String::new();
        for (number, (cells, row)) in lines.iter().zip(rows).enumerate() {
            if let Some(group) = row.and_then(|row| row.group.as_ref()) {
                fold(&mut out, 0, &group.in_text(), most);
                continue;
            }
            let color = row.and_then(|row| row.color).filter(|_| is_colored);
            let mut line = String::new();
            for (place, ((cell, width), column)) in cells.iter().zip(&widths).zip(&columns).enumerate() {
                let Some(width) = *width else { continue };
                let cell = shortened(cell, width);
                let padded = if column.is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
                match color.filter(|_| place == 0) {
                    Some(color) => write!(line, "  \u{1b}[{}m{padded}\u{1b}[0m", color as u8).ok(),
                    None => write!(line, "  {padded}").ok(),
                };
            }
            writeln!(out, "{}", line.trim_end()).ok();
            // Their heads are not needed: what they say is read as a sentence.
            let moved = cells.iter().skip(if number == 0 { usize::MAX } else { kept });
            moved.for_each(|cell| fold(&mut out, INDENT, &fitting(cell, most.saturating_sub(INDENT)), most));
        }
        out
    }
}

/// A missing number is a dash.
fn written(column: &Column, cell: &Cell) -> String {
    if cell.is_missing() && column.is_number { "-".to_owned() } else { cell.in_text() }
}

/// Characters of a line with columns of these widths.
fn all_of(widths: &[Option<usize>]) -> usize {
    widths.iter().flatten().map(|width| width.saturating_add(2)).fold(0, usize::saturating_add)
}

/// Makes the widest columns of texts narrower until a line fits, or they have the least that they keep.
fn shrink(widths: &mut [Option<usize>], columns: &[&Column], most: usize) {
    while all_of(widths) > most {
        let texts = widths.iter_mut().zip(columns).filter(|(_, column)| !column.is_number);
        let widest = texts.filter_map(|(width, _)| width.as_mut()).max_by_key(|width| **width);
        let Some(width) = widest.filter(|width| **width > LEAST) else { return };
        *width -= 1;
    }
}

/// A text of at most `most` characters, without its middle if it is longer.
pub fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    // The end says more: the method, or the type in brackets.
    let (front, back) = (kept / 2, kept - kept / 2);
    text.chars().take(front).chain(['…']).chain(text.chars().skip(count - back)).collect()
}

/// A sentence whose words have at most `most` characters.
fn fitting(text: &str, most: usize) -> String {
    text.split(' ').map(|word| shortened(word, most)).collect::<Vec<_>>().join(" ")
}

/// Words below each other, each line behind `head` or as much space, in lines of at most `most` characters. No word is
/// cut.
pub fn folded(head: &str, text: &str, most: usize) -> String {
    let mut out = String::new();
    let indent = head.chars().count();
    fold(&mut out, indent, text, most);
    match out.get(indent..) {
        Some(rest) => format!("{head}{rest}"),
        None => out,
    }
}

fn fold(out: &mut String, indent: usize, text: &str, most: usize) {
    let room = most.saturating_sub(indent);
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let count = word.chars().count();
        if length > 0 && length + 1 + count > room {
            writeln!(out, "{:indent$}{}", "", line.trim_end()).ok();
            line.clear();
            length = 0;
        }
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += count;
    }
    if length > 0 {
        writeln!(out, "{:indent$}{}", "", line.trim_end()).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{Color, numbers, words};
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new("", &[words("name", ""), words("unit", ""), numbers("events", "")]);
        table.row([Cell::text("a"), Cell::Missing, Cell::count(1)]);
        table.row([Cell::text("bärß"), Cell::text(""), Cell::count(12)]);
        table.row([Cell::text("c\u{1b}[31m\n"), Cell::Missing, Cell::Missing]);
        let expected = "  name              events\n  a                      1\n  bärß                  12\n  c\\u{1b}[31m\\u{a}       -\n";
        assert_eq!(table.text(usize::MAX), expected);
    }

    #[test]
    fn a_long_name_is_cut() {
        let mut table = Table::new("", &[words("name", ""), numbers("n", "")]);
        table.row([Cell::text("b".repeat(30_000).as_str()), Cell::count(2)]);
        assert!(table.text(usize::MAX).lines().all(|line| line.chars().count() < 250));
    }

    #[test]
    fn a_table_fits_into_the_terminal() {
        let columns = [words("", ""), words("metric", ""), numbers("value", ""), words("rule", ""), words("why", "")];
        let mut table = Table::new("", &columns).with_sentences(2);
        let name = "cpu.by_method[Company.Product.Services.OrderService.Calculate]";
        let why = "the median of 5 runs is above the bound in 4 of them; see recording-20261123-1a2b3c4d";
        let [failed, passed] = ["FAILED", "passed"].map(Cell::words);
        let rule = Cell::text("cpu <= 10");
        table.row([failed, Cell::text(name), Cell::count(12), rule, Cell::text(why)]);
        table.color(Some(Color::Red));
        table.row([passed, Cell::text("gc.count"), Cell::count(7), Cell::Missing, Cell::Missing]);
        let wide = table.text(Terminal { is_colored: true, ..Terminal::from(400) });
        assert!(
            wide.lines().count() == 3 && wide.contains("  rule") && wide.contains("OrderService.Calculate]"),
            "{wide}"
        );
        assert!(wide.contains("  \u{1b}[31mFAILED\u{1b}[0m  "), "{wide}");
        let narrow = table.text(60);
        let expected = [
            "          metric                                       value",
            "  FAILED  cpu.by_method[Company…derService.Calculate]     12",
            "      cpu <= 10",
            "      the median of 5 runs is above the bound in 4 of them;",
            "      see recording-20261123-1a2b3c4d",
            "  passed  gc.count                                         7",
        ];
        assert_eq!(narrow.lines().collect::<Vec<_>>(), expected, "{narrow}");
        // Narrower than what is kept of each column.
        assert!(table.text(10).contains("  passed"));
    }

    #[test]
    fn names_are_shortened_in_the_middle() {
        assert_eq!(shortened("abcdefghij", 10), "abcdefghij");
        assert_eq!(shortened("abcdefghij", 6), "ab…hij");
        assert_eq!(shortened("äöüäöü", 3), "ä…ü");
        assert_eq!((shortened("ab", 1), shortened("ab", 0)), ("…".into(), "…".into()));
    }

    #[test]
    fn words_are_folded_and_none_is_lost() {
        let text = format!("{} {}", "word ".repeat(40).trim(), "x".repeat(200));
        let out = folded("  own: ", &text, 96);
        assert!(
            out.starts_with("  own: word word") && out.lines().nth(1).is_some_and(|line| line.starts_with("       w"))
        );
        assert!(out.lines().all(|line| line.chars().count() <= 96 || line.trim().len() == 200));
        assert_eq!(out.split_whitespace().skip(1).collect::<Vec<_>>().join(" "), text);
    }
}
