//! Rows behind a finding: its query, asked of the tables of a recording without an engine of SQL.
//!
//! Queries of rules have one form, and this module knows no other: columns and sums of one table, beside the rows of others that belong to
//! each, under conditions, in an order. `.ci/page` holds the rows against DuckDB. What views sum is on the page, in the panel that a finding
//! leads to: of a query of a view, as of any other query, nothing is known here.

mod parse;
mod run;
mod shown;
mod value;

use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::read::Recording;

use crate::present::Table;

/// Asks a recording for the rows of findings.
pub struct Evidence<'r>(run::Asked<'r>);

impl<'r> Evidence<'r> {
    /// Of a recording.
    pub fn of(recording: &'r Recording<'r>) -> Result<Evidence<'r>> {
        Ok(Evidence(run::Asked::of(recording)?))
    }

    /// The rows of a query of a finding, `most` of them, as a table with this id. `None` of a query of another form, of a column that has
    /// no title here, and where a table has too many rows to be asked for this.
    pub fn rows(&self, sql: &str, id: &str, most: usize) -> Result<Option<Table>> {
        let Some(query) = parse::query(sql) else { return Ok(None) };
        match self.0.run(&query) {
            // The query asks for a column that the table does not have.
            Err(Error::MissingColumn { .. }) => Ok(None),
            found => Ok(found?.and_then(|rows| shown::table(&rows, id, most))),
        }
    }
}
