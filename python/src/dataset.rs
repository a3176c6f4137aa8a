//! A dataset that `convert` wrote.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tracequet::Result;
use tracequet::analyze::findings::overview::Overview;
use tracequet::analyze::findings::{Finding, followed, process_names};
use tracequet::dataset::read;
use tracequet::report;

use super::errors::exception;
use super::interrupt::interruptible;
use super::stream::{Schema, Stream};

/// A dataset: the directory that `convert` wrote.
#[pyclass(frozen, module = "tracequet._tracequet")]
pub struct Dataset(read::Dataset);

/// Trace id, path, size in bytes, events, lost events, and whether the recording is complete.
type Recording = (String, String, u64, u64, u64, bool);

/// Trace id, and findings.
type Explained<'py> = (String, Vec<Bound<'py, PyDict>>);

/// The recordings that are meant: one by its key, or all that could be read.
fn keys(dataset: &read::Dataset, trace: Option<String>) -> Vec<String> {
    let read = dataset.recordings().iter().filter(|info| info.status != "failed");
    trace.map_or_else(|| read.map(|info| info.trace_id.clone()).collect(), |key| vec![key])
}

/// A finding with the names of the columns of its table, and the name of its process.
fn named<'py>(py: Python<'py>, finding: &Finding, processes: &BTreeMap<u64, String>) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    named.set_item("rule", &finding.rule)?;
    named.set_item("process_id", finding.process_id)?;
    named.set_item("process", processes.get(&finding.process_id))?;
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
        let table = py.detach(|| self.0.merged(name)).map_err(|error| exception(py, &error))?;
        Ok(Schema::of(name, &table.schema))
    }

    /// The findings of each recording: its key and its findings, the most important first. Ctrl+C ends it.
    #[pyo3(signature = (trace = None))]
    fn findings<'py>(&self, py: Python<'py>, trace: Option<String>) -> PyResult<Vec<Explained<'py>>> {
        let dataset = self.0.clone();
        let found = interruptible(py, move |_| {
            let one = |key: String| {
                let recording = dataset.recording(Some(&key))?;
                let findings = followed(&recording)?;
                let processes = process_names(&recording, &findings)?;
                Ok((recording.info().trace_id.clone(), findings, processes))
            };
            keys(&dataset, trace).into_iter().map(one).collect::<Result<Vec<_>>>()
        })?;
        let mut explained = Vec::new();
        for (key, findings, processes) in found {
            let dicts = findings.iter().map(|finding| named(py, finding, &processes)).collect::<PyResult<_>>()?;
            explained.push((key, dicts));
        }
        Ok(explained)
    }

    /// Where time and memory of each recording went: its key, and topics with the own methods that have most of each, as the JSON of
    /// `explain` has them. Ctrl+C ends it.
    #[pyo3(signature = (trace = None))]
    fn summaries(&self, py: Python<'_>, trace: Option<String>) -> PyResult<Vec<(String, String)>> {
        let dataset = self.0.clone();
        interruptible(py, move |_| {
            let one = |key: String| {
                let recording = dataset.recording(Some(&key))?;
                Ok((recording.info().trace_id.clone(), Overview::of(&recording)?.json().to_string()))
            };
            keys(&dataset, trace).into_iter().map(one).collect::<Result<Vec<_>>>()
        })
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
            let chosen = schema.chosen(name, columns.as_deref())?;
            Ok(Stream::new(chosen.clone(), Box::new(self.0.merged(name)?.batches(chosen))))
        };
        py.detach(made).map_err(|error| exception(py, &error))
    }
}
