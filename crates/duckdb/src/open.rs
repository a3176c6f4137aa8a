//! `CALL tracequet_open(file)`: a view for each table, and the views and macros for common questions.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use tracequet_dataset::format::{Format, Layout};
use tracequet_dataset::table::views::{self, Files, ReadBy};

use crate::capi::{Asked, Columns, Connection, Rows, TableFunction, Type};
use crate::session::{self, Opened};

/// A connection to the database that loaded the extension, until `tracequet_close`. DuckDB lends the database only
/// while it loads the extension, and a table function cannot run statements by the connection that calls it.
pub type Kept = Arc<Mutex<Option<Connection>>>;

/// Keeps a connection.
pub fn keep(kept: &Kept, connection: Connection) {
    *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection);
}

/// Takes the connection that was kept.
pub fn take(kept: &Kept) -> Option<Connection> {
    kept.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The table function `tracequet_open`.
pub struct OpenAll(Kept);

impl OpenAll {
    /// Makes views by this connection.
    pub fn new(connection: Kept) -> OpenAll {
        OpenAll(connection)
    }
}

/// The input to be opened, and the schema that the views are to be in.
pub struct Bound {
    opened: Opened,
    input: String,
    schema: Option<String>,
}

impl TableFunction for OpenAll {
    type Bound = Bound;

    const NAME: &'static str = "tracequet_open";
    const PARAMETERS: u64 = 1;
    const OPTIONS: &'static [&'static str] = &["schema"];

    fn bind(&self, asked: &Asked) -> Result<(Bound, Columns, Option<u64>), String> {
        let input = Path::new(asked.parameter(0));
        let opened = session::open(input).map_err(|error| error.to_string())?;
        // Views name the file by its full path, because a query may run in another working directory.
        let input = std::path::absolute(input).map_err(|error| error.to_string())?;
        let input = input.to_str().ok_or("the path is not UTF-8")?.to_owned();
        let columns = vec![("name".into(), Type::TEXT), ("kind".into(), Type::TEXT), ("rows".into(), Type::NUMBER)];
        Ok((Bound { opened, input, schema: asked.option(0).map(str::to_owned) }, columns, None))
    }

    fn scan(&self, bound: &Bound, columns: &[usize]) -> Result<Box<dyn Rows>, String> {
        let (tables, script) = bound.script();
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let connection =
            kept.as_ref().ok_or("tracequet_close was called, expected a database that was opened after it")?;
        connection.run("BEGIN")?;
        let made = connection.run(&script).and_then(|()| connection.run("COMMIT"));
        if made.is_err() {
            // ROLLBACK fails where DuckDB has ended the transaction by itself.
            connection.run("ROLLBACK").ok();
        }
        made?;
        once(&listed(&tables).map_err(|error| error.to_string())?, columns)
    }
}

impl Bound {
    /// The tables with their rows, and the statements that make the views.
    fn script(&self) -> (Vec<(&str, u64)>, String) {
        let dataset = self.opened.dataset();
        let tables: Vec<(&str, u64)> = dataset.tables().iter().map(|table| (table.name.as_str(), table.rows)).collect();
        let names: Vec<&str> = tables.iter().map(|(name, _)| *name).collect();
        // Parquet files that stay are for DuckDB, which reads them with several threads and leaves out what a filter
        // does not need.
        let read_by = match &self.opened {
            Opened::Dataset(dataset) if dataset.format() == Format::Parquet => ReadBy::ParquetIn(&self.input),
            _ => ReadBy::Tracequet(&self.input),
        };
        let only = dataset.recordings().first().filter(|_| dataset.layout() == Layout::Flat);
        let files = Files { only_trace: only.map(|recording| recording.trace_id.as_str()), read_by };
        let mut script = String::from("RESET schema;\n");
        if let Some(schema) = &self.schema {
            let schema = schema.replace('"', "\"\"");
            script.push_str(&format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\";\nUSE \"{schema}\";\n"));
        }
        script.push_str(&views::sql(&names, files));
        (tables, script)
    }
}

/// The result of the call: tables with their rows, then views and macros.
fn listed(tables: &[(&str, u64)]) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let names: Vec<&str> = tables.iter().map(|(name, _)| *name).collect();
    let questions = views::questions(&names);
    let kind = |text: &str, name: &str| if text.contains(&format!("VIEW {name} AS")) { "view" } else { "macro" };
    let all_names = names.iter().copied().chain(questions.iter().map(|(name, _)| *name));
    let kinds = names.iter().map(|_| "table").chain(questions.iter().map(|(name, text)| kind(text, name)));
    let rows = tables.iter().map(|(_, rows)| Some(*rows)).chain(questions.iter().map(|_| None));
    RecordBatch::try_from_iter([
        ("name", Arc::new(StringArray::from_iter_values(all_names)) as ArrayRef),
        ("kind", Arc::new(StringArray::from_iter_values(kinds)) as ArrayRef),
        ("rows", Arc::new(rows.collect::<UInt64Array>()) as ArrayRef),
    ])
}

/// The wanted columns of one batch.
pub fn once(batch: &RecordBatch, columns: &[usize]) -> Result<Box<dyn Rows>, String> {
    let batch = batch.project(columns).map_err(|error| error.to_string())?;
    Ok(Box::new(Once(Some(batch))))
}

struct Once(Option<RecordBatch>);

impl Rows for Once {
    fn next(&mut self) -> Result<Option<RecordBatch>, String> {
        Ok(self.0.take())
    }
}
