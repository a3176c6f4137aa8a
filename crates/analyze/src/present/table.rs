//! A table: columns, each with what it is called and means, and rows of cells.

use super::cell::Cell;
use super::sentence::Sentence;

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// The head for people; `None` where only programs get the column.
    pub name: Option<&'static str>,
    /// The meaning, for a page.
    pub meaning: &'static str,
    /// The name in JSON and CSV; `None` where only people see the column.
    pub key: Option<&'static str>,
    /// Whether it has numbers, which are aligned to the right.
    pub is_number: bool,
}

/// A column of texts.
pub const fn words(name: &'static str, meaning: &'static str) -> Column {
    Column { name: Some(name), meaning, key: None, is_number: false }
}

/// A column of numbers.
pub const fn numbers(name: &'static str, meaning: &'static str) -> Column {
    Column { name: Some(name), meaning, key: None, is_number: true }
}

impl Column {
    /// A column that only programs get.
    pub const fn raw(key: &'static str) -> Column {
        Column { name: None, meaning: "", key: Some(key), is_number: false }
    }

    /// The column, which programs get by this name, too.
    pub const fn key(self, key: &'static str) -> Column {
        Column { key: Some(key), ..self }
    }
}

/// Colours, by their numbers for terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Something is wrong.
    Red = 31,
    /// Nothing is.
    Green = 32,
    /// Something may be.
    Yellow = 33,
}

/// Makes a [`Table`]: each column beside the cell that a row has in it.
///
/// ```
/// use tracequet_analyze::present::{Cell, numbers, table, words};
///
/// let types = [("City", 202, 8080u64), ("Street", 10, 400)];
/// let table = table!("types", &types, |(name, objects, bytes)| {
///     words("type", "Of the objects").key("type") => Cell::text(name),
///     numbers("objects", "That were found").key("objects") => Cell::count(*objects),
///     numbers("each", "Bytes of one") => Cell::size(bytes / objects),
/// });
/// assert_eq!(table.csv(), "type,objects\nCity,202\nStreet,10\n");
/// ```
///
/// Braces before the columns have what several cells need: `|row| { let whole = row.a + row.b; } { ... }`. Before these
/// may stand `at TIME,` ([`Table::at`]) and `color COLOR,` ([`Table::color`]).
#[macro_export]
macro_rules! table {
    ($id:expr, $rows:expr, |$row:pat_param| $(at $at:expr,)? $(color $color:expr,)? { $($before:tt)* } {
        $($column:expr => $cell:expr),+ $(,)?
    }) => {{
        let mut table = $crate::present::Table::new($id, &[$($column),+]);
        for $row in $rows {
            $($before)*
            table.row([$($cell),+]);
            $(table.at($at);)?
            $(table.color($color);)?
        }
        table
    }};
    ($id:expr, $rows:expr, |$row:pat_param| $(at $at:expr,)? $(color $color:expr,)? {
        $($column:expr => $cell:expr),+ $(,)?
    }) => {
        $crate::table!($id, $rows, |$row| $(at $at,)? $(color $color,)? {} { $($column => $cell),+ })
    };
}

/// A row.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) cells: Vec<Cell>,
    /// A heading for the rows that follow, in place of cells.
    pub(super) group: Option<Sentence>,
    /// When it was, in nanoseconds since the start; a selection on the timeline of a page leaves rows by it.
    pub(super) ts_ns: Option<i64>,
    /// Of its first cell.
    pub(super) color: Option<Color>,
}

/// Columns and rows.
#[derive(Clone, Debug)]
pub struct Table {
    pub(super) id: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
    /// Rows that people see.
    pub(super) most: usize,
    /// The last columns, whose cells get lines of their own where a table is too wide.
    pub(super) moved: usize,
}

impl Table {
    /// A table without rows. The id is that of its element on a page.
    pub fn new(id: impl Into<String>, columns: &[Column]) -> Table {
        Table { id: id.into(), columns: columns.to_vec(), rows: Vec::new(), most: usize::MAX, moved: 0 }
    }

    /// The table, of which people see only so many rows.
    pub fn first(self, most: usize) -> Table {
        Table { most, ..self }
    }

    /// The table, whose last columns are sentences: where a table is too wide, they get lines of their own.
    pub fn with_sentences(self, moved: usize) -> Table {
        Table { moved, ..self }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        self.rows.push(Row { cells: cells.into(), ..Row::default() });
    }

    /// The last row happened at this time.
    pub fn at(&mut self, ts_ns: i64) {
        if let Some(row) = self.rows.last_mut() {
            row.ts_ns = Some(ts_ns);
        }
    }

    /// The first cell of the last row has this colour.
    pub fn color(&mut self, color: Option<Color>) {
        if let Some(row) = self.rows.last_mut() {
            row.color = color;
        }
    }

    /// Adds a heading for the rows that follow.
    pub fn group(&mut self, heading: impl Into<Sentence>) {
        self.rows.push(Row { group: Some(heading.into()), ..Row::default() });
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The number of rows that people do not see.
    pub fn rest(&self) -> u64 {
        self.rows.len().saturating_sub(self.most) as u64
    }

    /// Takes out the columns in which nothing is recorded, and returns their names.
    pub fn without_empty(&mut self) -> Vec<&'static str> {
        let is_missing = |place: usize| self.rows.iter().all(|row| row.cells.get(place).is_none_or(Cell::is_missing));
        let empty: Vec<bool> = (0..self.columns.len()).map(is_missing).collect();
        let gone = self.columns.iter().zip(&empty).filter(|(_, is_empty)| **is_empty);
        let gone = gone.filter_map(|(column, _)| column.name).collect();
        let mut kept = empty.iter().map(|is_empty| !is_empty);
        self.columns.retain(|_| kept.next().unwrap_or(true));
        for row in &mut self.rows {
            let mut kept = empty.iter().map(|is_empty| !is_empty);
            row.cells.retain(|_| kept.next().unwrap_or(true));
        }
        gone
    }

    /// The columns that people see.
    pub(super) fn seen(&self) -> impl Iterator<Item = (&Column, &'static str)> {
        self.columns.iter().filter_map(|column| Some((column, column.name?)))
    }

    /// The rows that people see.
    pub(super) fn seen_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().take(self.most)
    }

    /// The cells of a row in the columns that people see.
    pub(super) fn seen_cells<'t>(&'t self, row: &'t Row) -> impl Iterator<Item = (&'t Column, &'t Cell)> {
        self.columns.iter().zip(&row.cells).filter(|(column, _)| column.name.is_some())
    }
}
