//! One schema for the same table of several recordings.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow_schema::{Field, FieldRef, Schema, SchemaRef};
use tracequet::{Error, Result};

/// Adds the columns of one more recording's table. A column that one of them lacks may be null.
pub fn add(table: &str, known: Option<Schema>, more: &Schema) -> Result<Schema> {
    let more: Vec<FieldRef> = more.fields().iter().map(plain).collect();
    let Some(known) = known else { return Ok(Schema::new(more)) };
    let mut fields: Vec<FieldRef> = Vec::with_capacity(known.fields().len());
    for field in known.fields() {
        let Some(other) = more.iter().find(|other| other.name() == field.name()) else {
            fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
            continue;
        };
        if field.data_type() != other.data_type() {
            return Err(Error::Usage(format!(
                "{table}: the column {} is {} in one recording and {} in another, open them one by one",
                field.name(),
                field.data_type(),
                other.data_type()
            )));
        }
        let nullable = field.is_nullable() || other.is_nullable();
        fields.push(Arc::new(field.as_ref().clone().with_nullable(nullable)));
    }
    for field in more {
        if !fields.iter().any(|known| known.name() == field.name()) {
            fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
        }
    }
    Ok(Schema::new(fields))
}

/// Without the metadata that differs between recordings: the value of `trace_id`.
fn plain(field: &FieldRef) -> FieldRef {
    if field.name() != "trace_id" {
        return field.clone();
    }
    Arc::new(Field::new(field.name(), field.data_type().clone(), field.is_nullable()))
}

/// The chosen columns of a schema, in the order of the table; all without a choice.
pub fn choose(table: &str, schema: &Schema, columns: Option<&[String]>) -> Result<SchemaRef> {
    let Some(columns) = columns else { return Ok(Arc::new(schema.clone())) };
    if let Some(missing) = columns.iter().find(|name| schema.index_of(name).is_err()) {
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        return Err(Error::Usage(format!("{table}: no column {missing}; there are {}", names.join(", "))));
    }
    let fields = schema.fields().iter().filter(|field| columns.contains(field.name()));
    Ok(Arc::new(Schema::new_with_metadata(fields.cloned().collect::<Vec<_>>(), schema.metadata().clone())))
}

/// The batch with the columns of `schema`, by name.
pub fn fit(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    let rows = batch.num_rows();
    let column = |field: &FieldRef| -> ArrayRef {
        batch.column_by_name(field.name()).map_or_else(|| new_null_array(field.data_type(), rows), Arc::clone)
    };
    let columns = schema.fields().iter().map(column).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(|e| Error::Internal(e.to_string()))
}
