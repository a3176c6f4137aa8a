//! Settings of a dataset for all of its tables.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{Field, Schema};

use super::{schema, signed};
use crate::table_spec::{Encoding, TableSpec};

/// The column that names the recording in a dataset of several.
pub(super) const TRACE_ID: &str = "trace_id";

/// The shape that all tables of a dataset share.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Key of the recording, for a first column `trace_id`.
    pub trace_id: Option<String>,
    /// Whether unsigned 64-bit columns are written as signed ones with the same bits.
    pub signed: bool,
}

impl Shape {
    /// Gives a table this shape.
    pub(super) fn apply(&self, spec: &mut TableSpec) {
        if self.signed {
            spec.schema = Arc::new(Schema::new(spec.schema.fields().iter().map(signed::field).collect::<Vec<_>>()));
        }
        let Some(trace_id) = &self.trace_id else { return };
        // The batches take the value of the column from the metadata of its field.
        let metadata = HashMap::from([("value".to_owned(), trace_id.clone())]);
        let field = Field::new(TRACE_ID, schema::label(), false).with_metadata(metadata);
        let mut fields = vec![Arc::new(field)];
        fields.extend(spec.schema.fields().iter().cloned());
        spec.schema = Arc::new(Schema::new(fields));
        spec.encodings.insert(0, Encoding::Dictionary);
    }
}
