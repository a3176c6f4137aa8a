//! A table over all recordings of a dataset: the columns that they have together, and the rows with these columns.

use crate::prelude::*;

use arrow_array::{ArrayRef, RecordBatchOptions, new_null_array};
use arrow_schema::{Field, FieldRef, Schema, SchemaRef};

use super::open::Dataset;
use super::table::{Batches, Scan};

/// A table of every recording that has it.
#[derive(Clone, Debug)]
pub struct Merged {
    scans: Vec<Scan>,
    /// The columns of the table over all recordings.
    pub schema: SchemaRef,
}

impl Dataset {
    /// A table of all recordings. Fails when no recording has it, or when a column has different types in two of them.
    pub fn merged(&self, table: &str) -> Result<Merged> {
        if let Some(damaged) = self.damaged().first() {
            // Nothing is known of a damaged recording, so that it must not be left out silently.
            return Err(damaged.at(self.path()));
        }
        let of_event = table.starts_with("event/");
        let mut scans = Vec::new();
        let mut schema = None;
        for recording in self.each_recording() {
            let scan = match recording.table(table) {
                Ok(found) => found.scan(),
                // A recording without such an event has no such table.
                Err(_) if of_event => continue,
                Err(error) => return Err(error),
            };
            // Tables of facts have the columns of the first recording in all of them.
            if of_event || schema.is_none() {
                schema = Some(with_columns_of(table, schema, &scan.batches()?.schema())?);
            }
            scans.push(scan);
        }
        let schema = schema.ok_or_else(|| Error::Usage(format!("{}: no table {table}", self.path().display())))?;
        Ok(Merged { scans, schema: Arc::new(schema) })
    }
}

impl Merged {
    /// The rows, recording by recording, with these columns: some of [`Merged::schema`]. Files are opened when their
    /// turn comes.
    pub fn batches(self, columns: SchemaRef) -> MergedBatches {
        MergedBatches { columns, scans: self.scans.into_iter(), current: None }
    }
}

/// Rows of a table recording by recording. Columns that a recording lacks are null.
pub struct MergedBatches {
    columns: SchemaRef,
    scans: std::vec::IntoIter<Scan>,
    current: Option<Batches>,
}

impl Iterator for MergedBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        self.next_batch().transpose()
    }
}

impl MergedBatches {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.current.as_mut().and_then(Batches::next) {
                return with_columns(&batch?, &self.columns).map(Some);
            }
            let Some(scan) = self.scans.next() else { return Ok(None) };
            let there = scan.batches()?.schema();
            let wanted = self.columns.fields().iter().map(|field| field.name());
            self.current = Some(scan.columns(wanted.filter(|name| there.index_of(name).is_ok())).batches()?);
        }
    }
}

/// Adds the columns of one more recording's table. A column that one of them lacks may be null.
pub fn with_columns_of(table: &str, known: Option<Schema>, more: &Schema) -> Result<Schema> {
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

/// The batch with the columns of `schema`, by name. Columns that it lacks are null.
pub fn with_columns(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
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
