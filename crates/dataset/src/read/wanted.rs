//! The request of a scan: columns, and rows that may be left out.

use crate::prelude::*;
use arrow_schema::SchemaRef;

use std::ops::Range;

/// Rows that a batch has at most.
pub(super) const BATCH_ROWS: usize = 16 << 10;

/// The parts of a table in a file that are wanted.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub path: PathBuf,
    /// `None` wants all.
    pub columns: Option<Vec<String>>,
    pub between: Vec<Between>,
    /// `None` wants all rows.
    pub rows: Option<Range<u64>>,
}

/// Rows whose value of a column lies outside these bounds are not needed.
#[derive(Clone, Debug)]
pub(super) struct Between {
    pub column: String,
    pub low: u64,
    pub high: u64,
}

impl Wanted {
    /// The places of the wanted columns in a table; `None` means all.
    pub fn projection(&self, schema: &SchemaRef) -> Result<Option<Vec<usize>>> {
        let Some(names) = &self.columns else { return Ok(None) };
        let mut places = Vec::with_capacity(names.len());
        for name in names {
            places.push(schema.index_of(name).map_err(|_| self.no_column(name))?);
        }
        places.sort_unstable();
        places.dedup();
        Ok(Some(places))
    }

    fn no_column(&self, name: &str) -> Error {
        let what = format!("there is no column {name}");
        Error::Dataset { path: self.path.clone(), what, expected: "a column of this table".into() }
    }
}
