//! A stream of batches in Python: it is read once, by another library or by this one.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tracequet::Error;
use tracequet::dataset::table::schema;

use super::capsule;
use super::errors::exception;
use super::feed::{Feed, Next};
use super::interrupt::PATIENCE;
use super::values;

/// The columns of a table.
#[pyclass(frozen, module = "tracequet._tracequet")]
pub struct Schema(pub SchemaRef);

impl Schema {
    /// The columns of a table, with what they mean.
    pub fn of(table: &str, columns: &arrow_schema::Schema) -> Schema {
        let name = if table.starts_with("event/") { schema::EVENT_HEADER } else { table };
        let Ok(known) = schema::of(name) else { return Schema(Arc::new(columns.clone())) };
        let mut documented = known.documented(columns);
        if name != table {
            // The header is not what the rows are.
            documented.metadata.clear();
        }
        Schema(Arc::new(documented))
    }

    /// The chosen columns, in the order of the table; all without a choice.
    pub fn chosen(&self, table: &str, columns: Option<&[String]>) -> tracequet::Result<SchemaRef> {
        let Some(columns) = columns else { return Ok(self.0.clone()) };
        if let Some(missing) = columns.iter().find(|name| self.0.index_of(name).is_err()) {
            let names = self.names().join(", ");
            return Err(Error::Usage(format!("{table}: no column {missing}; there are {names}")));
        }
        let fields = self.0.fields().iter().filter(|field| columns.contains(field.name()));
        let fields = fields.cloned().collect::<Vec<_>>();
        Ok(Arc::new(arrow_schema::Schema::new_with_metadata(fields, self.0.metadata().clone())))
    }
}

#[pymethods]
impl Schema {
    fn names(&self) -> Vec<String> {
        self.0.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The name and the Arrow type of each column.
    fn columns(&self) -> Vec<(String, String)> {
        self.0.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect()
    }

    /// The meaning of a row of the table, where that is known.
    fn doc(&self) -> Option<String> {
        self.0.metadata().get(schema::DOC).cloned()
    }

    /// Unit and meaning of each column, where they are known.
    fn docs(&self) -> Vec<(Option<String>, Option<String>)> {
        let of = |field: &arrow_schema::FieldRef, key| field.metadata().get(key).cloned();
        self.0.fields().iter().map(|field| (of(field, schema::UNIT), of(field, schema::DOC))).collect()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::schema(py, &self.0)
    }
}

/// Batches that were not read yet.
#[pyclass(frozen, module = "tracequet._tracequet")]
pub struct Stream {
    schema: SchemaRef,
    feed: Mutex<Option<Box<dyn Feed>>>,
}

impl Stream {
    /// A stream of batches with these columns.
    pub fn new(schema: SchemaRef, feed: Box<dyn Feed>) -> Stream {
        Stream { schema, feed: Mutex::new(Some(feed)) }
    }

    fn take(&self) -> PyResult<Box<dyn Feed>> {
        let feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner).take();
        feed.ok_or_else(|| PyValueError::new_err("the stream was read already"))
    }
}

#[pymethods]
impl Stream {
    /// Hands the stream to a library that reads Arrow streams.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Other types than asked for are allowed: the consumer casts.
        drop(requested_schema);
        capsule::stream(py, Box::new(Reader { schema: self.schema.clone(), feed: Some(self.take()?) }))
    }

    /// Reads all batches into memory, or as many as have `rows` rows. `progress` is called with bytes read and bytes in
    /// all about ten times a second; Ctrl+C ends it.
    #[pyo3(signature = (progress = None, rows = None))]
    fn collect(&self, py: Python<'_>, progress: Option<Bound<'_, PyAny>>, rows: Option<usize>) -> PyResult<Batches> {
        let mut missing = rows.unwrap_or(usize::MAX);
        let mut feed = self.take()?;
        let mut batches = Vec::new();
        loop {
            let (ended, result) = py.detach(|| {
                let until = std::time::Instant::now() + PATIENCE;
                loop {
                    let left = until.saturating_duration_since(std::time::Instant::now());
                    match feed.next(left) {
                        Ok(Next::Batch(batch)) => {
                            let batch = batch.slice(0, missing.min(batch.num_rows()));
                            missing = missing.saturating_sub(batch.num_rows());
                            batches.push(batch);
                            if missing == 0 {
                                return (true, Ok(()));
                            }
                        }
                        Ok(Next::End) => return (true, Ok(())),
                        Ok(Next::Nothing) => {}
                        Err(error) => return (true, Err(error)),
                    }
                    if left.is_zero() {
                        return (false, Ok(()));
                    }
                }
            });
            result.map_err(|error| exception(py, &error))?;
            if let Some(progress) = &progress {
                progress.call1(feed.progress())?;
            }
            if ended {
                return Ok(Batches { schema: self.schema.clone(), batches });
            }
            py.check_signals()?;
        }
    }
}

/// Batches in memory, which can be handed on any number of times.
#[pyclass(frozen, module = "tracequet._tracequet")]
pub struct Batches {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Batches {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        capsule::stream(py, Box::new(RecordBatchIterator::new(batches, self.schema.clone())))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::schema(py, &self.schema)
    }

    /// The values of each row, in the order of the columns. Times are microseconds since 1970.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Vec<Vec<Bound<'py, PyAny>>>> {
        let places = self.batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
        places.map(|(batch, row)| values::row(py, batch, row)).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// A stream as Arrow's C interface reads it, on any thread.
struct Reader {
    schema: SchemaRef,
    /// `None` after an error.
    feed: Option<Box<dyn Feed>>,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.feed.as_mut()?.next(PATIENCE) {
                Ok(Next::Batch(batch)) => return Some(Ok(batch)),
                Ok(Next::Nothing) => {}
                Ok(Next::End) => return None,
                Err(error) => {
                    self.feed = None;
                    return Some(Err(ArrowError::ExternalError(Box::new(error))));
                }
            }
        }
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
