//! A dataset that `convert` wrote.

use std::collections::VecDeque;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tracequet::analyze::findings::{Finding, followed};
use tracequet::dataset::read::{self, Scan};
use tracequet::report;
use tracequet::{Error, Result};

use super::errors::exception;
use super::feed::Stored;
use super::interrupt::interruptible;
use super::merge;
use super::stream::{Schema, Stream};

/// A dataset: the directory that `convert` wrote.
#[pyclass(frozen, module = "tracequet._tracequet")]
pub struct Dataset(read::Dataset);

/// Trace id, path, size in bytes, events, lost events, and whether the recording is complete.
type Recording = (String, String, u64, u64, u64, bool);

/// Trace id, and findings.
type Explained<'py> = (String, Vec<Bound<'py, PyDict>>);

/// A finding with the names of the columns of its table.
fn named<'py>(py: Python<'py>, finding: &Finding) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    named.set_item("rule", &finding.rule)?;
    named.set_item("process_id", finding.process_id)?;
    named.set_item("verdict", finding.verdict.word())?;
    named.set_item("score", finding.score)?;
    named.set_item("figure", finding.figure)?;
    named.set_item("unit", &finding.unit)?;
    named.set_item("info_limit", finding.info_limit)?;
    named.set_item("warning_limit", finding.warning_limit)?;
    named.set_item("title", finding.title())?;
    named.set_item("advice", finding.advice())?;
    named.set_item("of_recording", finding.is_of_recording())?;
    named.set_item("subject", &finding.subject)?;
    named.set_item("own_method", &finding.own_method)?;
    named.set_item("sentence", &finding.sentence)?;
    named.set_item("cause_rule", &finding.cause_rule)?;
    named.set_item("evidence_sql", &finding.evidence_sql)?;
    named.set_item("next_step", &finding.next_step)?;
    named.set_item("doc", &finding.doc)?;
    Ok(named)
}

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
        Ok(Schema::of(name, &schema))
    }

    /// What the rules found: for each recording its key and its findings, the most important first. Ctrl+C ends it.
    #[pyo3(signature = (trace = None))]
    fn findings<'py>(&self, py: Python<'py>, trace: Option<String>) -> PyResult<Vec<Explained<'py>>> {
        let dataset = self.0.clone();
        let found = interruptible(py, move |_| {
            let read = dataset.recordings().iter().filter(|info| info.status != "failed");
            let keys = match trace {
                Some(key) => vec![key],
                None => read.map(|info| info.trace_id.clone()).collect(),
            };
            let one = |key: String| {
                let recording = dataset.recording(Some(&key))?;
                Ok((recording.info().trace_id.clone(), followed(&recording)?))
            };
            keys.into_iter().map(one).collect::<Result<Vec<_>>>()
        })?;
        let dicts = |all: Vec<Finding>| all.iter().map(|finding| named(py, finding)).collect::<PyResult<Vec<_>>>();
        found.into_iter().map(|(key, all)| Ok((key, dicts(all)?))).collect()
    }

    /// A recording as one HTML page. Ctrl+C ends it.
    #[pyo3(signature = (trace = None))]
    fn report(&self, py: Python<'_>, trace: Option<String>) -> PyResult<String> {
        let dataset = self.0.clone();
        interruptible(py, move |_| report::page(&dataset.recording(trace.as_deref())?))
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
