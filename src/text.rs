//! Formats numbers, sizes, durations and columns for people.

use std::fmt::Write;

use tracequet::ProblemSummary;
pub use tracequet::analyze::present::units::{count, counted, duration, moment, size};
use tracequet::analyze::present::{Cell, Sentence, cut, shortened};
pub use tracequet::analyze::present::{Color, clean};

/// Alignment of a cell in its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// No column is wider: a longer cell moves only the cells behind it. Names in recordings have no bound, formatted
/// widths have one of 65,535, and each row would be as long as the longest name.
const WIDEST: usize = 200;

/// Bytes of a cell.
const MOST: usize = 4_000;

/// A shortened column keeps this much.
const LEAST: usize = 12;

/// What is moved to lines of its own begins here.
const INDENT: usize = 6;

/// Rows of cells in aligned columns, two blanks apart and two from the edge. A column without content is left out.
pub struct Columns {
    sides: Vec<Side>,
    rows: Vec<Row>,
    /// Columns whose cells are shortened in the middle when a table is too wide.
    shortened: Vec<usize>,
    /// The last ones, whose cells get lines of their own when a table is too wide.
    moved: usize,
}

/// Cells, and the colour of the first one.
struct Row {
    cells: Vec<String>,
    color: Option<Color>,
}

impl Columns {
    /// Columns with a head. Heads that begin with `>` are aligned to the right.
    pub fn new(heads: &[&str]) -> Columns {
        let side = |head: &&str| if head.starts_with('>') { Side::Right } else { Side::Left };
        let sides = heads.iter().map(side).collect();
        let cells = heads.iter().map(|h| h.trim_start_matches('>').to_owned()).collect();
        Columns { sides, rows: vec![Row { cells, color: None }], shortened: Vec::new(), moved: 0 }
    }

    /// When the table is too wide, the cells of these columns are shortened in the middle, and those of the last `moved` columns
    /// get lines of their own.
    pub fn fitting(mut self, shortened: &[usize], moved: usize) -> Columns {
        (self.shortened, self.moved) = (shortened.to_vec(), moved);
        self
    }

    /// Adds a row whose first cell has a colour.
    pub fn colored<const N: usize>(&mut self, cells: [String; N], color: Option<Color>) {
        let cells = cells.map(|cell| cut(&cell, MOST).to_owned());
        self.rows.push(Row { cells: cells.into(), color });
    }

    /// Appends the rows to `out`, in lines of at most `most` characters as far as columns can be shortened and moved.
    pub fn print_within(&self, most: usize, out: &mut String) {
        let width = |column: usize| {
            let lengths = || self.rows.iter().filter_map(|row| row.cells.get(column)).map(|cell| cell.chars().count());
            let has_content = self.rows.len() == 1 || lengths().skip(1).any(|length| length > 0);
            if has_content { lengths().max().map(|widest| widest.min(WIDEST)) } else { None }
        };
        let mut widths: Vec<Option<usize>> = (0..self.sides.len()).map(width).collect();
        let is_too_wide = all_of(&widths) > most;
        let kept = if is_too_wide { self.sides.len().saturating_sub(self.moved) } else { self.sides.len() };
        widths.truncate(kept);
        if is_too_wide {
            shrink(&mut widths, &self.shortened, most);
        }
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (column, (cell, width)) in row.cells.iter().zip(&widths).enumerate() {
                let Some(width) = *width else { continue };
                let is_shortened = is_too_wide && self.shortened.contains(&column);
                let cell = if is_shortened { shortened(cell, width) } else { cell.clone() };
                let padded = match self.sides.get(column) {
                    Some(Side::Right) => format!("{cell:>width$}"),
                    _ => format!("{cell:<width$}"),
                };
                match row.color.filter(|_| column == 0) {
                    Some(color) => write!(line, "  \u{1b}[{}m{padded}\u{1b}[0m", color as u8).ok(),
                    None => write!(line, "  {padded}").ok(),
                };
            }
            out.push_str(line.trim_end());
            out.push('\n');
            // Their heads are not needed: what they say is read as a sentence.
            if number == 0 {
                continue;
            }
            let moved = row.cells.iter().skip(kept);
            for line in moved.flat_map(|cell| wrapped(cell, most.saturating_sub(INDENT))) {
                writeln!(out, "{:INDENT$}{line}", "").ok();
            }
        }
    }
}

/// Characters of a line with columns of these widths.
fn all_of(widths: &[Option<usize>]) -> usize {
    widths.iter().flatten().map(|width| width.saturating_add(2)).fold(0, usize::saturating_add)
}

/// Makes the widest of these columns narrower until a line fits, or they have the least that they keep.
fn shrink(widths: &mut [Option<usize>], columns: &[usize], most: usize) {
    while all_of(widths) > most {
        let widest = columns.iter().filter_map(|column| Some(((*widths.get(*column)?)?, *column))).max();
        let Some((width, column)) = widest.filter(|(width, _)| *width > LEAST) else { return };
        if let Some(place) = widths.get_mut(column) {
            *place = Some(width - 1);
        }
    }
}

/// A text in lines of at most `most` characters, cut at blanks.
pub fn wrapped(text: &str, most: usize) -> impl Iterator<Item = String> {
    let mut lines: Vec<String> = Vec::new();
    let mut length = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let word = shortened(word, most);
        let count = word.chars().count();
        match lines.last_mut().filter(|_| length + 1 + count <= most) {
            Some(line) => {
                line.push(' ');
                line.push_str(&word);
                length += 1 + count;
            }
            None => {
                lines.push(word);
                length = count;
            }
        }
    }
    lines.into_iter()
}

/// One line about all problems of a kind.
pub fn problem(p: &ProblemSummary) -> Sentence {
    let first = if p.rows > 1 { format!("in {} places, first ", count(p.rows)) } else { String::new() };
    let times = if p.count > p.rows { format!("{} in all, ", count(p.count)) } else { String::new() };
    Sentence::from(format!("{}: {times}{first}at byte {}: ", p.code, p.offset)).cell(Cell::sentence(&p.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_cell_moves_only_its_own_row() {
        let mut columns = Columns::new(&["name", ">n"]);
        columns.colored(["a".into(), "1".into()], None);
        columns.colored(["b".repeat(100_000), "2".into()], None);
        let mut out = String::new();
        columns.print_within(usize::MAX, &mut out);
        let lengths: Vec<usize> = out.lines().map(str::len).collect();
        assert_eq!(lengths, [2 + WIDEST + 3, 2 + WIDEST + 3, 2 + MOST + 3]);
    }

    #[test]
    fn a_table_fits_into_the_terminal() {
        let table = |most| {
            let mut columns = Columns::new(&["", "metric", ">value", "rule", "why"]).fitting(&[1], 2);
            let name = "cpu.by_method[Company.Product.Services.OrderService.Calculate]";
            let why = "the median of 5 runs is above the bound in 4 of them; see recording-20261123-1a2b3c4d";
            columns
                .colored(["FAILED".into(), name.into(), "12".into(), "cpu <= 10".into(), why.into()], Some(Color::Red));
            columns.colored(["passed".into(), "gc.count".into(), "7".into(), String::new(), String::new()], None);
            let mut out = String::new();
            columns.print_within(most, &mut out);
            out
        };
        let wide = table(400);
        assert!(
            wide.lines().count() == 3 && wide.contains("  rule") && wide.contains("OrderService.Calculate]"),
            "{wide}"
        );
        assert!(wide.contains("  \u{1b}[31mFAILED\u{1b}[0m  "), "{wide}");
        let narrow = table(60).replace("\u{1b}[31m", "").replace("\u{1b}[0m", "");
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
        assert!(table(10).contains("  passed"));
    }

    #[test]
    fn columns_are_aligned() {
        let mut columns = Columns::new(&["name", ">events"]);
        columns.colored(["a".into(), "1".into()], None);
        columns.colored(["bärß".into(), "12".into()], None);
        let mut out = String::new();
        columns.print_within(usize::MAX, &mut out);
        assert_eq!(out, "  name  events\n  a          1\n  bärß      12\n");

        let mut columns = Columns::new(&["name", "unit", ">rows"]);
        columns.colored(["a".into(), String::new(), "1".into()], None);
        let mut out = String::new();
        columns.print_within(usize::MAX, &mut out);
        assert_eq!(out, "  name  rows\n  a        1\n");
    }
}
