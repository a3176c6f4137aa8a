//! The way out of a run, whatever it reads: tables, a count of the problems on their way there, and the end.

use std::collections::BTreeMap;
use std::path::Path;

use super::{InputSummary, ProblemSummary, TableSummary};
use crate::error::{Error, Result, Severity};
use crate::normalize::fact::{Fact, FactSink};
use crate::reader::TraceInfo;
use crate::sink::{Dataset, Encoding, TableId, TableSpec};
use crate::table::Tables;
use crate::table::facts::TraceTotals;
use crate::table::schema::{ColumnEncoding, SCHEMA_VERSION};

/// The tables, and a count of the problems on their way there.
pub(super) struct Out {
    pub(super) tables: Tables,
    problems: BTreeMap<&'static str, ProblemSummary>,
    table_ids: Vec<TableId>,
}

impl FactSink for Out {
    fn fact(&mut self, fact: Fact<'_>) {
        if let Fact::Problem(p) = fact {
            self.problems.entry(p.code).or_insert_with(|| ProblemSummary::of(p)).add(p);
        }
        self.tables.fact(fact);
    }
}

impl Out {
    /// For tables of which nothing is written yet.
    pub(super) fn new(tables: Tables) -> Out {
        Out { tables, problems: BTreeMap::new(), table_ids: Vec::new() }
    }

    /// Declares new tables and hands batches on, in order.
    pub(super) fn write(&mut self, dataset: &mut Dataset) -> Result<()> {
        for spec in self.tables.specs().iter().skip(self.table_ids.len()) {
            let encoding = |e: &ColumnEncoding| match e {
                ColumnEncoding::Plain => Encoding::Plain,
                ColumnEncoding::Dictionary => Encoding::Dictionary,
                ColumnEncoding::Delta => Encoding::Delta,
            };
            self.table_ids.push(dataset.table(TableSpec {
                name: spec.name.clone(),
                schema: spec.schema.clone(),
                encodings: spec.encodings.iter().map(encoding).collect(),
                sorted_by: spec.sorted_by.clone(),
            })?);
        }
        for ready in self.tables.ready.drain(..) {
            let Some(id) = self.table_ids.get(ready.table) else { continue };
            dataset.write(*id, ready.batch)?;
        }
        Ok(())
    }

    /// The end: the row of the recording, and all tables closed. `summary` says what was counted on the way; its problems
    /// are filled in here. A `failure` on the way is the result.
    pub(super) fn close(
        mut self,
        mut summary: InputSummary,
        dataset: &mut Dataset,
        failure: Option<Error>,
    ) -> Result<(InputSummary, Vec<TableSummary>)> {
        let undamaged = !self.problems.values().any(|p| p.severity == Severity::Error);
        let totals = TraceTotals {
            path: summary.path.display().to_string(),
            size_bytes: summary.identity.size_bytes,
            sha256: summary.identity.sha256.clone(),
            duration_ns: summary.last_ns.saturating_sub(summary.first_ns),
            events: summary.events,
            dropped: summary.dropped_events,
            complete: summary.complete && undamaged,
        };
        self.tables.trace(&summary.info, &totals);
        self.tables.finish();
        if let Some(failure) = failure.or(self.tables.take_failure()) {
            return Err(failure);
        }
        self.write(dataset)?;
        let written = dataset.close_tables(&footer(&summary.info, &totals))?;
        let tables = written.into_iter().map(|t| TableSummary { name: t.name, rows: t.rows, bytes: t.bytes }).collect();
        summary.incomplete_collections = self.problems.get("open_collection").map_or(0, |p| p.count);
        summary.problems = self.problems.into_values().collect();
        Ok((summary, tables))
    }
}

/// Where a file came from, for its footer.
fn footer(info: &TraceInfo, totals: &TraceTotals) -> Vec<(String, String)> {
    let source = Path::new(&totals.path).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let pairs = [
        ("tracequet.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("tracequet.schema_version", SCHEMA_VERSION.to_string()),
        ("tracequet.source_name", source),
        ("tracequet.source_size_bytes", totals.size_bytes.to_string()),
        ("tracequet.source_sha256", totals.sha256.clone()),
        ("tracequet.trace_start", crate::time::format_utc(info.clock.sync_utc_ns)),
        ("tracequet.clock_frequency", info.clock.frequency.to_string()),
        ("tracequet.pointer_size", info.pointer_size.to_string()),
        ("tracequet.dropped_event_count", totals.dropped.to_string()),
        ("tracequet.complete", totals.complete.to_string()),
    ];
    pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
}
