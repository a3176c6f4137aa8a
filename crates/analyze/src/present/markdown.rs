//! Markdown: tables as GitHub reads them.

use std::fmt::Write;

use super::table::Table;

impl Table {
    /// The rows that people see as a table of Markdown, with an empty line behind it.
    pub fn markdown(&self) -> String {
        let mut out = String::from("|");
        self.seen().for_each(|(_, name)| write!(out, " {name} |").unwrap_or_default());
        out.push_str("\n|");
        self.seen().for_each(|(column, _)| out.push_str(if column.is_number { "---:|" } else { "---|" }));
        out.push('\n');
        for row in self.seen_rows() {
            out.push('|');
            if let Some(group) = &row.group {
                let others = self.seen().skip(1).map(|_| "  |").collect::<String>();
                writeln!(out, " **{}** |{others}", group.markdown()).ok();
                continue;
            }
            self.seen_cells(row).for_each(|(_, cell)| write!(out, " {} |", cell.markdown()).unwrap_or_default());
            out.push('\n');
        }
        out.push('\n');
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::Cell;
    use super::super::table::{numbers, words};
    use super::*;

    #[test]
    fn names_become_no_links_and_no_rows() {
        let mut table = Table::new("", &[words("name", ""), words("", ""), numbers("n", "")]);
        let hostile = "Login: http://evil.example/x @octocat\n| a |";
        table.row([Cell::text(hostile), Cell::words("a | b"), Cell::size(1000)]);
        table.row([Cell::Missing, Cell::Missing, Cell::Missing]);
        let expected = "| name |  | n |\n|---|---|---:|\n\
            | `Login: http://evil.example/x @octocat\\u{a}\\| a \\|` | a \\| b | 1.00 kB |\n|  |  |  |\n\n";
        assert_eq!(table.markdown(), expected);
    }
}
