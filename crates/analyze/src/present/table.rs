//! A table: columns, each with what it is called and means, and rows of cells.

use super::cell::Cell;
use super::sentence::Sentence;

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its head for people; of what only programs get `None`.
    pub name: Option<&'static str>,
    /// What it means, for a page.
    pub meaning: &'static str,
    /// Its name in JSON and CSV; of what only people see `None`.
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

    /// Adds a row that happened at a time.
    pub fn row_at(&mut self, ts_ns: i64, cells: impl Into<Vec<Cell>>) {
        self.rows.push(Row { cells: cells.into(), ts_ns: Some(ts_ns), ..Row::default() });
    }

    /// Adds a row whose first cell has a colour.
    pub fn colored(&mut self, cells: impl Into<Vec<Cell>>, color: Option<Color>) {
        self.rows.push(Row { cells: cells.into(), color, ..Row::default() });
    }

    /// Adds a heading for the rows that follow.
    pub fn group(&mut self, heading: impl Into<Sentence>) {
        self.rows.push(Row { group: Some(heading.into()), ..Row::default() });
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many rows people do not see.
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
