//! One input of a request on its way into the dataset.

use tracequet_analyze::findings::{self, Findings};
use tracequet_analyze::metrics::{self, Figures};
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::table::{Shape, Tables};
use tracequet_dataset::write::TableSink;
use tracequet_trace::reader::TraceInfo;

use super::output::TableOutput;
use crate::prelude::*;
use crate::request::Convert;

/// One input of a request on its way into the dataset.
pub(crate) struct Conversion<'r> {
    pub(crate) request: &'r Convert,
    pub(crate) selection: &'r Selection,
    pub(crate) shape: Shape,
    pub(crate) dataset: &'r mut dyn TableSink,
    pub(crate) progress: &'r mut dyn FnMut(u64, Option<u64>, u64),
    /// Size of the input, if it is known.
    pub(crate) total: Option<u64>,
}

impl Conversion<'_> {
    /// Whether this problem ends the conversion: `--strict` stops at damage.
    pub(crate) fn ends_at(&self, problem: &Problem) -> bool {
        self.request.strict && problem.severity == Severity::Error
    }

    /// Where the tables of a recording whose header was read come out.
    pub(crate) fn output(&self, info: &TraceInfo) -> Result<TableOutput> {
        let figures = if self.selection.asks_for(metrics::TABLE) { Some(Figures::new()?) } else { None };
        // Some figures are made of the findings.
        let findings = match figures.is_some() || self.selection.asks_for(findings::TABLE) {
            true => Some(Findings::new()?),
            false => None,
        };
        // Figures and findings are the same, whatever other tables were asked for.
        let mut needed = figures.as_ref().map_or_else(Vec::new, Figures::tables);
        needed.extend(findings.iter().flat_map(|_| Findings::tables()));
        let selection = self.selection.with_needed(needed);
        let tables = Tables::new(selection.clone(), info.clock, info.pointer_size, self.shape.clone())?;
        let findings = findings.map(|findings| (findings, self.shape.trace_id.clone()));
        let mut output = TableOutput::new(tables, self.request);
        (output.figures, output.selection, output.findings) = (figures, selection, findings);
        Ok(output)
    }
}
