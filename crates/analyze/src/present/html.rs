//! HTML of a page: a table that its script makes sortable, in a region that scrolls by itself on a narrow screen.

use std::fmt::Write;

use super::cell::Cell;
use super::escape::{escaped, escaped_to};
use super::table::{Column, Table};

impl Table {
    /// The rows that people see. Rows with a time are those that a selection on the timeline leaves.
    pub fn html(&self, label: &str) -> String {
        let mut out = String::new();
        let (id, label) = (&self.id, escaped(label));
        out += &format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\"><table id=\"{id}\"><thead><tr>"
        );
        for (column, name) in self.seen() {
            let class = if column.is_number { " class=\"n\"" } else { "" };
            let (meaning, name) = (escaped(column.meaning), escaped(name));
            write!(out, "<th scope=\"col\"{class} title=\"{meaning}\">{name}</th>").ok();
        }
        out.push_str("</tr></thead><tbody>\n");
        for row in self.seen_rows() {
            match row.ts_ns {
                Some(ts_ns) => write!(out, "<tr data-t=\"{ts_ns}\">").ok(),
                None => write!(out, "<tr>").ok(),
            };
            if let Some(group) = &row.group {
                let columns = self.seen().count();
                write!(out, "<th colspan=\"{columns}\">{}</th>", escaped(&group.in_text())).ok();
            }
            self.seen_cells(row).for_each(|(column, cell)| element(&mut out, column, cell));
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
        out
    }
}

fn element(out: &mut String, column: &Column, cell: &Cell) {
    let text = cell.written(escaped_to, escaped);
    match cell.for_programs() {
        _ if cell.is_missing() => {
            let class = if column.is_number { " class=\"n\"" } else { "" };
            write!(out, "<td{class}>–</td>").ok()
        }
        // Rows are sorted by the number as it is.
        Cell::Amount(amount) => write!(out, "<td data-v=\"{}\">{text}</td>", amount.value()).ok(),
        _ => {
            // A long text needs a column that is wide, a short one should not be broken.
            let class = if text.chars().nth(24).is_some() { " class=\"w\"" } else { "" };
            write!(out, "<td{class}>{text}</td>").ok()
        }
    };
}

#[cfg(test)]
mod tests {
    use super::super::table::{numbers, words};
    use super::*;

    #[test]
    fn what_was_not_recorded_is_no_zero() {
        let mut table = Table::new("t", &[words("name", ""), numbers("bytes", "")]);
        table.row([Cell::optional(None), Cell::size(None)]);
        table.row([Cell::text("a"), Cell::size(0)]);
        table.at(7);
        table.row([Cell::text("b"), Cell::in_unit(f64::INFINITY, "bytes")]);
        let html = table.html("x");
        assert!(html.contains("<tr><td>–</td><td class=\"n\">–</td></tr>"), "{html}");
        assert!(html.contains("<tr data-t=\"7\"><td>a</td><td data-v=\"0\">0 B</td></tr>"), "{html}");
        assert!(html.contains("<tr><td>b</td><td class=\"n\">–</td></tr>"), "{html}");
    }

    #[test]
    fn a_column_of_which_nothing_is_recorded_is_taken_out() {
        let mut table = Table::new("t", &[numbers("a", ""), words("b", ""), numbers("c", "")]);
        table.row([Cell::Missing, Cell::text("x"), Cell::Missing]);
        table.row([Cell::Missing, Cell::Missing, Cell::count(0)]);
        assert_eq!(table.without_empty(), ["a"]);
        assert!(table.html("x").contains("<tr><td>x</td><td class=\"n\">–</td></tr>"));
        assert!(table.without_empty().is_empty());
    }
}
