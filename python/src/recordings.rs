//! Recordings that are read again for each table.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use arrow_schema::{DataType, Field};
use pyo3::prelude::*;
use tracequet::dataset::read::with_columns_of;
use tracequet::trace::error::{Error as TraceError, Severity};
use tracequet::{AddressType, Convert, DatasetLayout, Identities, Summary};
use tracequet::{Error, Result};

use super::errors::exception;
use super::feed::{Reading, Summaries};
use super::interrupt::interruptible;
use super::stream::{Schema, Stream};

/// Recordings, and which of their events are wanted.
#[pyclass(frozen, module = "tracequet._tracequet")]
pub struct Recordings {
    request: Convert,
    summaries: Summaries,
}

/// Name of a table, what selects it, its columns.
type Found = (String, String, Schema);
/// Path and message of a recording that cannot be read.
type Failed = (String, String);
/// Path, code, severity, rows, sum of counts, first message and first offset of what was lost.
type Loss = (String, String, String, u64, u64, String, Option<u64>);

#[pymethods]
impl Recordings {
    #[new]
    #[pyo3(signature = (inputs, *, providers, processes, manifests, symbols, start_ns, end_ns, dominators, signed, hive))]
    #[allow(clippy::too_many_arguments, reason = "named, as in Python")]
    fn new(
        inputs: Vec<PathBuf>,
        providers: Vec<String>,
        processes: Vec<String>,
        manifests: Vec<PathBuf>,
        symbols: Vec<PathBuf>,
        start_ns: Option<i64>,
        end_ns: Option<i64>,
        dominators: Option<u64>,
        signed: bool,
        hive: bool,
    ) -> Recordings {
        let request = Convert::default()
            .inputs(inputs)
            .providers(providers)
            .processes(processes)
            .manifests(manifests)
            .symbols(symbols)
            .dominators(dominators)
            .from_ns(start_ns)
            .to_ns(end_ns)
            .address_type(if signed { AddressType::Int64 } else { AddressType::Uint64 })
            .layout(if hive { DatasetLayout::Hive } else { DatasetLayout::Auto });
        Recordings { request, summaries: Summaries::default() }
    }

    /// The tables that `names` select, with the columns that they have over all recordings, and the recordings that
    /// cannot be read. `None` means all tables. One recording alone that cannot be read is an exception. Ctrl+C ends
    /// it.
    #[pyo3(signature = (names = None))]
    fn tables(&self, py: Python<'_>, names: Option<Vec<String>>) -> PyResult<(Vec<Found>, Vec<Failed>)> {
        let request = self.request.clone().tables(names.unwrap_or_default());
        interruptible(py, move |stop| list(&request, stop))
    }

    /// The rows of a table. Nothing is read before the first batch is asked for.
    #[pyo3(signature = (name, selection, schema, columns = None))]
    fn stream(
        &self,
        py: Python<'_>,
        name: &str,
        selection: String,
        schema: &Schema,
        columns: Option<Vec<String>>,
    ) -> PyResult<Stream> {
        let chosen = schema.chosen(name, columns.as_deref()).map_err(|error| exception(py, &error))?;
        let mut selected = vec![selection];
        if matches!(name, "event_type" | "diagnostic") {
            // These two tables report payloads that do not fit, which takes decoding them.
            selected.push("event".into());
        }
        let mut request = self.request.clone().tables(selected);
        if !matches!(name, "heap_dominator" | "diagnostic") {
            // Other tables are the same without.
            request = request.dominators(None);
        }
        if chosen.index_of("trace_id").is_err() && name != "trace" {
            // The hash of a recording is only for its key, which is not wanted.
            request = request.identities(Identities::none());
        }
        let feed = Reading::new(request, name, chosen.clone(), self.summaries.clone());
        Ok(Stream::new(chosen, Box::new(feed)))
    }

    /// The losses that finished readings have reported; each once.
    fn take_losses(&self) -> Vec<Loss> {
        let mut summaries = self.summaries.lock().unwrap_or_else(PoisonError::into_inner);
        summaries.drain(..).flat_map(|summary| losses(&summary)).collect()
    }
}

fn list(request: &Convert, stop: &AtomicBool) -> Result<(Vec<Found>, Vec<Failed>)> {
    let mut found: Vec<(String, String, arrow_schema::Schema)> = Vec::new();
    let mut failed = Vec::new();
    let one_alone = request.input_paths().len() == 1;
    let hive = request.is_of_several();
    for input in request.input_paths() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // Without keys, which take reading the whole recording.
        let alone = request.clone().inputs([input]).layout(DatasetLayout::Auto);
        let tables = match tracequet::tables(&alone) {
            Ok(tables) => tables,
            Err(error @ (Error::Trace(TraceError::Unreadable { .. }) | Error::Io { .. })) if !one_alone => {
                failed.push((input.display().to_string(), error.to_string()));
                continue;
            }
            Err(error) => return Err(error),
        };
        for table in tables.into_iter().flatten() {
            // The recordings of an archive have keys already.
            let columns = without_trace_id(&table.schema);
            match found.iter_mut().find(|(name, ..)| *name == table.name) {
                Some((name, selection, schema)) => {
                    *schema = with_columns_of(name, Some(schema.clone()), &columns)?;
                    if *selection != table.selection {
                        *selection = "event".to_owned();
                    }
                }
                None => {
                    found.push((table.name.clone(), table.selection, with_columns_of(&table.name, None, &columns)?))
                }
            }
        }
    }
    let with_key = |schema| if hive { with_trace_id(&schema) } else { schema };
    let one = |(name, selection, schema): (String, String, _)| {
        let schema = Schema::of(&name, &with_key(schema));
        (name, selection, schema)
    };
    Ok((found.into_iter().map(one).collect(), failed))
}

/// The columns of a table of several recordings.
fn with_trace_id(schema: &arrow_schema::Schema) -> arrow_schema::Schema {
    let label = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let key = Arc::new(Field::new("trace_id", label, false));
    arrow_schema::Schema::new(std::iter::once(key).chain(schema.fields().iter().cloned()).collect::<Vec<_>>())
}

fn without_trace_id(schema: &arrow_schema::Schema) -> arrow_schema::Schema {
    let fields = schema.fields().iter().filter(|field| field.name() != "trace_id");
    arrow_schema::Schema::new(fields.cloned().collect::<Vec<_>>())
}

fn losses(summary: &Summary) -> Vec<Loss> {
    let mut all = Vec::new();
    for input in summary.inputs.iter().filter(|input| input.has_losses()) {
        let path = input.path.display().to_string();
        let problems = input.problems.iter().filter(|problem| problem.severity > Severity::Info);
        all.extend(problems.map(|problem| {
            let severity = problem.severity.as_str().to_owned();
            let message = problem.message.clone();
            (
                path.clone(),
                problem.code.to_owned(),
                severity,
                problem.rows,
                problem.count,
                message,
                Some(problem.offset),
            )
        }));
        if all.is_empty() {
            let message = "the recording does not reach its end mark".to_owned();
            all.push((path, "incomplete".into(), "data_loss".into(), 1, 1, message, None));
        }
    }
    let failed = summary.failed.iter().map(|failed| {
        let path = failed.path.display().to_string();
        (path, "unreadable".into(), "error".into(), 1, 1, failed.error.clone(), None)
    });
    all.extend(failed);
    all
}
