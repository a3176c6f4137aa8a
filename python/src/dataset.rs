//! A dataset that `convert` wrote.

use std::collections::VecDeque;
use std::path::PathBuf;

use pyo3::prelude::*;
use tracequet::dataset::read::{self, Scan};
use tracequet::trace::error::{Error, Result};

use super::errors::exception;
use super::feed::Stored;
use super::merge;
use super::stream::{Schema, Stream};

/// A dataset: the directory that `convert` wrote.
#[pyclass(frozen, module = "tracequet._tracequet")]
pub struct Dataset(read::Dataset);

/// Trace id, path, size in bytes, events, lost events, and whether the recording is complete.
type Recording = (String, String, u64, u64, u64, bool);

#[pymethods]
impl Dataset {
    #[new]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Dataset> {
        let open = || {
            let dataset = read::Dataset::open(path)?;
            // A table is that of all recordings, so that one of which nothing is known is not left out.
            match dataset.damaged().first() {
                Some(damaged) => Err(damaged.at(dataset.path())),
                None => Ok(Dataset(dataset)),
            }
        };
        py.detach(open).map_err(|error| exception(py, &error))
    }

    /// Name, rows and bytes of each table.
    fn tables(&self) -> Vec<(String, u64, u64)> {
        self.0.tables().iter().map(|table| (table.name.clone(), table.rows, table.bytes)).collect()
    }

    fn recordings(&self) -> Vec<Recording> {
        let one = |r: &read::RecordingInfo| {
            (r.trace_id.clone(), r.path.display().to_string(), r.size_bytes, r.events, r.dropped_events, r.complete)
        };
        self.0.recordings().iter().map(one).collect()
    }

    /// The columns that a table has over all recordings.
    fn schema(&self, py: Python<'_>, name: &str) -> PyResult<Schema> {
        let schema = py.detach(|| self.columns_of(name)).map_err(|error| exception(py, &error))?;
        Ok(Schema(schema.into()))
    }

    /// The rows of a table.
    #[pyo3(signature = (name, schema, columns = None))]
    fn stream(&self, py: Python<'_>, name: &str, schema: &Schema, columns: Option<Vec<String>>) -> PyResult<Stream> {
        let made = || {
            let chosen = merge::choose(name, &schema.0, columns.as_deref())?;
            let mut scans = self.scans(name)?;
            if let Some(columns) = &columns {
                for scan in &mut scans {
                    let there = scan.batches()?.schema();
                    let own: Vec<String> = columns.iter().filter(|c| there.index_of(c).is_ok()).cloned().collect();
                    *scan = scan.clone().columns(own);
                }
            }
            Ok(Stream::new(chosen.clone(), Box::new(Stored::new(chosen, scans))))
        };
        py.detach(made).map_err(|error| exception(py, &error))
    }
}

impl Dataset {
    /// The table in each recording that has it.
    fn scans(&self, name: &str) -> Result<VecDeque<Scan>> {
        let dataset = &self.0;
        let mut scans = VecDeque::new();
        for info in dataset.recordings() {
            let recording = dataset.recording(Some(&info.trace_id))?;
            match recording.table(name) {
                Ok(table) => scans.push_back(table.scan()),
                // A recording without such an event has no such table.
                Err(_) if name.starts_with("event/") => {}
                Err(error) => return Err(error),
            }
        }
        if scans.is_empty() {
            return Err(Error::Usage(format!("{}: no table {name}", dataset.path().display())));
        }
        Ok(scans)
    }

    fn columns_of(&self, name: &str) -> Result<arrow_schema::Schema> {
        let mut known = None;
        for scan in self.scans(name)? {
            known = Some(merge::add(name, known, &scan.batches()?.schema())?);
            // Tables of facts are the same in all recordings.
            if !name.starts_with("event/") {
                break;
            }
        }
        known.ok_or_else(|| Error::Internal(format!("{name} has no columns")))
    }
}
