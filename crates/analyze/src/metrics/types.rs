//! Names of types by their ids, for rows that say the id alone.

use crate::prelude::*;
use arrow_array::RecordBatch;

/// Types that are remembered, and bytes of their names. Others have no name.
const MOST_TYPES: usize = 1 << 18;
const MOST_BYTES: usize = 16 << 20;

row!(struct Type of r#type { process_id, type_id, name, element_type });

/// Names of types.
#[derive(Debug, Default)]
pub struct TypeNames {
    /// By process and id.
    names: Map<(u64, u64), Box<str>>,
    bytes: usize,
    /// Whether types are of values, where the recording says it.
    values: Map<(u64, u64), bool>,
}

/// Whether a CorElementType is of values: numbers, enums (by the number that they are) and structures.
fn is_value(element_type: u8) -> bool {
    // ELEMENT_TYPE_BOOLEAN to R8, VALUETYPE, I and U.
    matches!(element_type, 0x02..=0x0d | 0x11 | 0x18 | 0x19)
}

impl TypeNames {
    /// The table that says them.
    pub(crate) const TABLE: &str = Type::TABLE;

    /// The columns of a table that say them.
    pub(crate) fn columns(table: &str) -> &'static [&'static str] {
        if table == TypeNames::TABLE { Type::COLUMNS } else { &[] }
    }

    /// Sees rows of a table. Of several names of an id the last one of the alphabet counts, as in the views.
    pub(crate) fn add(&mut self, table: &str, batch: &RecordBatch) -> Result<()> {
        if table != TypeNames::TABLE {
            return Ok(());
        }
        rows_of::<Type<'_>>(batch)?.for_each(|row| self.row(&row));
        Ok(())
    }

    fn row(&mut self, row: &Type<'_>) {
        if row.element_type != 0 && self.values.len() < MOST_TYPES {
            self.values.insert((row.process_id, row.type_id), is_value(row.element_type));
        }
        self.also(row.process_id, row.type_id, row.name);
    }

    /// Reads the names of a recording.
    pub fn read(recording: &Recording<'_>) -> Result<TypeNames> {
        let mut names = TypeNames::default();
        recording.each_recorded::<Type<'_>>(|row| names.row(&row))?;
        Ok(names)
    }

    /// A name of a type; an empty one says nothing.
    pub(crate) fn also(&mut self, process_id: u64, type_id: u64, name: &str) {
        let key = (process_id, type_id);
        let known = self.names.get(&key);
        if name.is_empty() || known.is_some_and(|known| **known >= *name) {
            return;
        }
        if self.bytes + name.len() > MOST_BYTES || known.is_none() && self.names.len() >= MOST_TYPES {
            return;
        }
        self.bytes += name.len();
        if let Some(before) = self.names.insert(key, name.into()) {
            self.bytes -= before.len();
        }
    }

    /// Whether a type is one of values; `None` where the recording does not say. An object of it is a box.
    pub(crate) fn is_value(&self, process_id: u64, type_id: u64) -> Option<bool> {
        self.values.get(&(process_id, type_id)).copied()
    }

    /// The name of a type.
    pub fn name(&self, process_id: u64, type_id: u64) -> Option<&str> {
        self.names.get(&(process_id, type_id)).map(|name| &**name)
    }
}
