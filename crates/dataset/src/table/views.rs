//! `views.sql`: every table as a DuckDB view, and the views and macros of `schemas/views/*.sql` on top of them.
//!
//! Every view has the column `trace_id` and joins on it, in a dataset of one recording as well, so that there is one
//! text of each for all layouts.

use std::fmt::Write;

use crate::format::Format;

/// The layout and the reader of the files of a dataset.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// The key of the recording when each table is one file; `None` for `OUT/<table>/trace=<key>/`.
    pub only_trace: Option<&'a str>,
    /// The reader of the tables.
    pub read_by: ReadBy<'a>,
}

/// A reader of the tables in DuckDB.
#[derive(Clone, Copy, Debug)]
pub enum ReadBy<'a> {
    /// DuckDB: Parquet files, at names without a folder.
    Parquet,
    /// DuckDB: Parquet files of the dataset in this folder.
    ParquetIn(&'a str),
    /// An extension of DuckDB by others: Arrow IPC files, at names without a folder.
    Arrow,
    /// The extension of tracequet: this recording or dataset.
    Tracequet(&'a str),
}

impl From<Format> for ReadBy<'_> {
    fn from(format: Format) -> Self {
        match format {
            Format::Parquet => ReadBy::Parquet,
            Format::Arrow => ReadBy::Arrow,
        }
    }
}

impl ReadBy<'_> {
    /// Text of SQL that reads a table.
    fn table(self, name: &str, only_trace: Option<&str>) -> String {
        let place = |extension: &str| match only_trace {
            Some(_) => format!("{}.{extension}", quoted(name)),
            None => format!("{}/*/*.{extension}", quoted(name)),
        };
        match self {
            ReadBy::Parquet => format!("read_parquet('{}')", place("parquet")),
            ReadBy::ParquetIn(folder) => format!("read_parquet('{}/{}')", quoted(folder), place("parquet")),
            ReadBy::Arrow => format!("read_arrow('{}')", place("arrow")),
            ReadBy::Tracequet(input) => format!("tracequet('{}', '{}')", quoted(input), quoted(name)),
        }
    }
}

const HEAD: &str = "-- Views over this dataset, for DuckDB. In its directory: duckdb -init views.sql
-- From any other directory say where the dataset is before the script runs:
--     SET file_search_path = '/path/of/the/dataset';
-- Payload tables of events are views in double quotes: SELECT * FROM \"event/<provider>/<event>\"
-- Every view has the column trace_id. Ids count within one recording, so that every join needs it.
";

/// DuckDB has no reader of Arrow files of its own.
const ARROW: &str = "-- The tables are Arrow files: a community extension of DuckDB reads them.
INSTALL nanoarrow FROM community;
LOAD nanoarrow;
";

/// The script for a dataset with these tables.
pub fn sql(tables: &[&str], files: Files<'_>) -> String {
    let mut out = String::from(HEAD);
    if matches!(files.read_by, ReadBy::Arrow) {
        out.push_str(ARROW);
    }
    out.push('\n');
    for name in tables {
        let view = name.replace('"', "\"\"");
        let trace = files.only_trace.map(|key| format!("'{}' AS trace_id, ", quoted(key))).unwrap_or_default();
        let table = files.read_by.table(name, files.only_trace);
        writeln!(out, "CREATE OR REPLACE VIEW \"{view}\" AS SELECT {trace}* FROM {table};").ok();
    }
    if files.only_trace.is_none() {
        out.push_str(&of_one_layout(tables));
    }
    out.push_str(&only_trace(tables, files));
    for (_, text) in questions(tables) {
        out.push('\n');
        out.push_str(text);
    }
    out
}

/// The views and macros for questions that these tables can answer, each by its name and behind those that it needs.
pub fn questions(tables: &[&str]) -> Vec<(&'static str, &'static str)> {
    // A view needs tables and other views.
    let mut known: Vec<&str> = tables.to_vec();
    let mut left: Vec<_> = tracequet_schemas::VIEWS.to_vec();
    let mut found = Vec::new();
    loop {
        let before = left.len();
        left.retain(|(name, text)| {
            let ready = needs(text).all(|need| known.contains(&need));
            if ready {
                known.push(name);
                found.push((*name, *text));
            }
            !ready
        });
        if left.len() == before {
            return found;
        }
    }
}

/// Among several recordings the layout of a described event is a part of its table's name. Where an event has only one,
/// the name without it is good, too.
fn of_one_layout(tables: &[&str]) -> String {
    let mut out = String::new();
    for name in tables {
        let Some(event) = without_layout(name) else { continue };
        let same = |other: &&&str| without_layout(other) == Some(event) || **other == event;
        if tables.iter().filter(same).count() == 1 {
            let (view, of) = (event.replace('"', "\"\""), name.replace('"', "\"\""));
            writeln!(out, "CREATE OR REPLACE VIEW \"{view}\" AS SELECT * FROM \"{of}\";").ok();
        }
    }
    out
}

/// The name of an event's table without the layout, if it has one.
fn without_layout(name: &str) -> Option<&str> {
    let (event, layout) = name.rsplit_once('.')?;
    let is_hash = layout.len() == 8 && layout.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    (is_hash && event.starts_with("event/")).then_some(event)
}

/// The macro that names the recording where the person who asks does not.
fn only_trace(tables: &[&str], files: Files<'_>) -> String {
    let key = match files.only_trace {
        Some(key) => format!("'{}'", quoted(key)),
        None if tables.contains(&"trace") => "(SELECT CASE WHEN count(*) = 1 THEN min(trace_id) \
             ELSE error('the dataset has ' || count(*) || ' recordings: give a trace_id as the first argument') END \
             FROM trace)"
            .to_owned(),
        None => "error('give a trace_id as the first argument')".to_owned(),
    };
    format!("CREATE OR REPLACE MACRO only_trace() AS {key};\n")
}

/// A view or a macro of `schemas/views`.
#[derive(Clone, Debug, serde::Serialize)]
pub struct View {
    /// Its name.
    pub name: &'static str,
    /// The question that it answers, with its columns.
    pub doc: String,
    /// The tables and views that it is made of.
    pub needs: Vec<&'static str>,
    /// Its text.
    pub sql: &'static str,
}

/// The view or macro of a name.
pub fn view(name: &str) -> Option<View> {
    let (name, text) = *tracequet_schemas::VIEWS.iter().find(|(own, _)| *own == name)?;
    let (doc, _) = text.split_once("-- needs: ")?;
    let doc = doc.lines().map(|line| line.trim_start_matches("--").trim()).collect::<Vec<_>>().join(" ");
    let sql = text.split_once("-- needs: ").and_then(|(_, rest)| rest.split_once('\n')).map_or("", |(_, sql)| sql);
    Some(View { name, doc, needs: needs(text).collect(), sql })
}

/// The tables and views that a file says it needs.
fn needs(text: &str) -> impl Iterator<Item = &str> {
    let line = text.lines().find_map(|line| line.strip_prefix("-- needs: ")).unwrap_or_default();
    line.split(", ").filter(|need| !need.is_empty())
}

/// Text within single quotes of SQL.
fn quoted(text: &str) -> String {
    text.replace('\'', "''")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::schema;

    #[test]
    fn every_file_says_what_it_answers_and_needs_what_there_is() {
        let mut known: Vec<&str> = schema::all().unwrap().iter().map(|table| table.name.as_str()).collect();
        known.extend(tracequet_schemas::VIEWS.iter().map(|(name, _)| name));
        assert!(tracequet_schemas::VIEWS.len() >= 6);
        for (name, text) in tracequet_schemas::VIEWS {
            assert!(
                text.starts_with("-- ") && !text.starts_with("-- needs"),
                "{name}: no comment says what it answers"
            );
            assert!(needs(text).next().is_some(), "{name}: needs nothing");
            for need in needs(text) {
                assert!(known.contains(&need), "{name} needs {need}, which is neither a table nor a view");
            }
            let defines = [format!("VIEW {name} AS"), format!("MACRO {name}\n"), format!("MACRO {name}(")];
            assert!(defines.iter().any(|text_of| text.contains(text_of)), "{name}.sql does not define {name}");
            assert!(text.contains("trace_id"), "{name}: ids count within one recording");
        }
    }

    #[test]
    fn an_event_of_one_layout_has_a_view_without_it() {
        let tables = ["event/P/A.01234567", "event/P/B.01234567", "event/P/B.89abcdef", "event/P/C.v2"];
        let script = sql(&tables, Files { only_trace: None, read_by: ReadBy::Parquet });
        assert!(script.contains("VIEW \"event/P/A\" AS SELECT * FROM \"event/P/A.01234567\""), "{script}");
        assert!(!script.contains("VIEW \"event/P/B\"") && !script.contains("VIEW \"event/P/C\""), "{script}");
    }

    #[test]
    fn a_dataset_with_all_tables_has_all_views_in_every_layout() {
        let tables: Vec<&str> = schema::all().unwrap().iter().map(|table| table.name.as_str()).collect();
        for files in [None, Some("it's")].map(|only_trace| Files { only_trace, read_by: ReadBy::Parquet }) {
            let script = sql(&tables, files);
            for (name, text) in tracequet_schemas::VIEWS {
                assert!(script.contains(text), "{name} is missing: {files:?}");
            }
        }
        let script = sql(&["gc", "gc_pause"], Files { only_trace: Some("it's"), read_by: ReadBy::Arrow });
        assert!(
            script.contains("VIEW \"gc\" AS SELECT 'it''s' AS trace_id, * FROM read_arrow('gc.arrow')"),
            "{script}"
        );
        assert!(script.contains("VIEW gc_summary") && !script.contains("VIEW heap_by_type"), "{script}");
    }
}
