//! Names of types by their ids, for rows that say the id alone.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use foldhash::fast::RandomState;
use tracequet_dataset::read::Column;
use tracequet_trace::error::Result;

/// Types that are remembered, and bytes of their names. Others have no name.
const MOST_TYPES: usize = 1 << 18;
const MOST_BYTES: usize = 16 << 20;

/// Names of types.
#[derive(Debug, Default)]
pub(super) struct TypeNames {
    /// By process and id.
    names: HashMap<(u64, u64), Box<str>, RandomState>,
    bytes: usize,
}

impl TypeNames {
    /// The table that says them.
    pub(super) const TABLE: &str = "type";

    /// The columns of a table that say them.
    pub(super) fn columns(table: &str) -> &'static [&'static str] {
        if table == TypeNames::TABLE { &["process_id", "type_id", "name"] } else { &[] }
    }

    /// Sees rows of a table. Of several names of an id the last one of the alphabet counts, as in the views.
    pub(super) fn add(&mut self, table: &str, batch: &RecordBatch) -> Result<()> {
        if table != TypeNames::TABLE {
            return Ok(());
        }
        let column = |name| Column::of(batch, name);
        let (process, id, name) = (column("process_id")?, column("type_id")?, column("name")?);
        for row in 0..batch.num_rows() {
            let Some(name) = name.text(row).filter(|name| !name.is_empty()) else { continue };
            let key = (process.number(row).unwrap_or_default(), id.number(row).unwrap_or_default());
            let known = self.names.get(&key);
            let is_full = self.bytes + name.len() > MOST_BYTES || known.is_none() && self.names.len() >= MOST_TYPES;
            if is_full || known.is_some_and(|known| **known >= *name) {
                continue;
            }
            self.bytes += name.len();
            if let Some(before) = self.names.insert(key, name.into()) {
                self.bytes -= before.len();
            }
        }
        Ok(())
    }

    /// What a type is called.
    pub(super) fn name(&self, process_id: u64, type_id: u64) -> Option<&str> {
        self.names.get(&(process_id, type_id)).map(|name| &**name)
    }
}
