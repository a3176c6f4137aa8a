//! One heap dump on its way through the layers.

use tracequet_dataset::write::TableSink;
use tracequet_facts::fact::{Fact, FactSink};
use tracequet_facts::heap_dump;
use tracequet_trace::error::Error as TraceError;
use tracequet_trace::reader::gcdump::GcDump;
use tracequet_trace::source::FileIdentity;

use super::conversion::Conversion;
use super::output::TableOutput;
use crate::prelude::*;
use crate::summary::{InputSummary, TableSummary};

/// Hands batches on while the rows come.
struct Writing<'w> {
    out: &'w mut TableOutput,
    dataset: &'w mut dyn TableSink,
    failure: Option<Error>,
}

impl FactSink for Writing<'_> {
    fn fact(&mut self, fact: Fact<'_>) {
        self.out.fact(fact);
        if self.out.tables.has_ready()
            && self.failure.is_none()
            && let Err(e) = self.out.write(self.dataset)
        {
            self.failure = Some(e);
        }
    }
}

/// Writes the tables of a dump.
pub(crate) fn run(
    conversion: Conversion<'_>,
    dump: &GcDump,
    path: &Path,
    identity: &FileIdentity,
) -> Result<(InputSummary, Vec<TableSummary>)> {
    let info = dump.info();
    let mut out = conversion.output(&info)?;
    let mut failure = None;
    if let Some(problem) = &dump.problem {
        if conversion.ends_at(problem) {
            let (offset, what) = (problem.offset, problem.message.clone());
            return Err(TraceError::Damaged { path: path.to_owned(), offset, what }.into());
        }
        out.problem(problem);
    }
    if !conversion.request.processes.is_empty() {
        // One process: it is the wanted one, or there is nothing to write.
        let (id, name) = (dump.about.process_id, dump.about.process.as_deref().unwrap_or_default());
        let is_it = |asked: &String| asked.parse() == Ok(id) || asked.eq_ignore_ascii_case(name);
        if !conversion.request.processes.iter().any(is_it) {
            return Err(Error::Usage(format!("{}: it is of process {id} {name:?}", path.display())));
        }
    }
    let wanted = conversion.request.providers.is_empty() && conversion.request.covers(0);
    if wanted {
        let mut sink = Writing { out: &mut out, dataset: conversion.dataset, failure: None };
        heap_dump::facts(dump, &mut sink);
        failure = sink.failure;
    }
    let summary = InputSummary {
        path: path.to_owned(),
        identity: identity.clone(),
        info,
        complete: dump.problem.is_none(),
        bytes: dump.bytes,
        collections: u64::from(wanted),
        ..InputSummary::default()
    };
    out.close(summary, conversion.dataset, failure)
}
