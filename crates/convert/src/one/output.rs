//! Where a run writes its facts: the tables of the recording. It counts the problems on their way and closes the tables
//! at the end.

use std::collections::{BTreeMap, BTreeSet};

use tracequet_analyze::cohort::stored_cohorts;
use tracequet_analyze::collection::SpilledCollections;
use tracequet_analyze::findings::{self, Findings};
use tracequet_analyze::heap::{HeldWalks, KeptWalk};
use tracequet_analyze::lifetime::{Samples, stored_lifetimes};
use tracequet_analyze::metrics::{Figures, Missing, definition_of};
use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::table::select::Selection;
use tracequet_dataset::table::{Tables, of_file, source_footer};
use tracequet_dataset::write::{TableId, TableSink};
use tracequet_facts::ProblemSummary;
use tracequet_facts::fact::{self, Alpc, ContextSwitch, Fact, FactSink, FileIo, Trace, TraceLabel};
use tracequet_trace::error::{Problem, Severity};
use tracequet_trace::reader::NO_SUBJECT;

use crate::keep::Keep;
use crate::request::Convert;
use crate::summary::{FailedInput, InputSummary, TableSummary};

/// Limits of the control groups of a process. `None` is no limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub memory_bytes: Option<u64>,
    /// In thousandths of a processor.
    pub cpu_millicores: Option<u64>,
}

/// The tables, and a count of the problems on their way there.
pub(crate) struct TableOutput {
    pub(crate) tables: Tables,
    problems: BTreeMap<&'static str, ProblemSummary>,
    /// The tables in the dataset; `None` of one that only others are made of.
    table_ids: Vec<Option<TableId>>,
    labels: BTreeMap<String, String>,
    /// Tables that this does not ask for are not written.
    pub(super) selection: Selection,
    /// The figures, when the table of them was asked for.
    pub(super) figures: Option<Figures>,
    /// The findings, when they or the figures were asked for; with the key of the recording in a dataset of several.
    pub(super) findings: Option<(Findings, Option<String>)>,
    /// The walks of the heap, when it was asked what their objects retain.
    walks: Option<HeldWalks>,
    /// The walk that is kept for the caller, and where what is kept goes at the end.
    kept: Option<(KeptWalk, Keep)>,
    /// The collections with their ranges, when survival over time or lifetimes were asked for, or they are kept for the caller.
    collections: Option<SpilledCollections>,
    /// Whether survival over time was.
    cohorts: bool,
    /// The allocations, when lifetimes were.
    samples: Option<Samples>,
    /// OS ids of the processes whose rows are wanted, where rows of others come as well; `None`: all.
    only: Option<BTreeSet<u64>>,
    /// The limits of the control groups of the process, where they are known.
    pub(crate) limits: Option<Limits>,
}

impl FactSink for TableOutput {
    fn fact(&mut self, fact: Fact<'_>) {
        if let Fact::Diagnostic(rows) = fact {
            for row in rows {
                self.problems.entry(row.code).or_insert_with(|| ProblemSummary::of(row)).add(row);
            }
        }
        if let Some(walks) = &mut self.walks {
            walks.fact(&fact);
        }
        if let Some((walk, _)) = &mut self.kept {
            walk.fact(&fact);
        }
        if let Some(collections) = &mut self.collections {
            collections.fact(&fact);
        }
        if let (Some(samples), Fact::Allocation(rows)) = (&mut self.samples, &fact) {
            rows.iter().for_each(|row| samples.take(row));
        }
        match &self.only {
            Some(only) => add_only(&mut self.tables, only, fact),
            None => self.tables.fact(fact),
        }
    }
}

/// Adds the rows of these processes, of tables that are made from events of all of them.
fn add_only(tables: &mut Tables, only: &BTreeSet<u64>, fact: Fact<'_>) {
    let is_in = |process_id: &u64| only.contains(process_id);
    match fact {
        Fact::ThreadTime(rows) => rows.iter().filter(|row| is_in(&row.process_id)).for_each(|row| tables.add(row)),
        Fact::ReadyThread(rows) => rows.iter().filter(|row| is_in(&row.process_id)).for_each(|row| tables.add(row)),
        // Rows of no process in particular belong to each.
        Fact::FileIo(rows) => {
            let concerns = |row: &&FileIo<'_>| is_in(&row.process_id) || row.process_id == NO_SUBJECT;
            rows.iter().filter(concerns).for_each(|row| tables.add(row));
        }
        Fact::Alpc(rows) => {
            let concerns =
                |row: &&Alpc<'_>| is_in(&row.process_id) || row.receiver_process_id.as_ref().is_some_and(is_in);
            rows.iter().filter(concerns).for_each(|row| tables.add(row));
        }
        Fact::ContextSwitch(rows) => {
            let concerns =
                |row: &&ContextSwitch<'_>| is_in(&row.process_id) || row.old_process_id.as_ref().is_some_and(is_in);
            rows.iter().filter(concerns).for_each(|row| tables.add(row));
        }
        fact => tables.fact(fact),
    }
}

impl TableOutput {
    /// For tables of which nothing is written yet.
    pub(crate) fn new(tables: Tables, request: &Convert) -> TableOutput {
        // In one order and each name once, as in the entry of the recording, whatever the order of the options.
        let labels = request.labels.iter().cloned().collect();
        let walks = request.dominators.map(HeldWalks::new);
        let kept = request.keep.as_ref().map(|keep| (keep.begin(), keep.clone()));
        let kept_ranges = request.keep.as_ref().and_then(|keep| keep.ranges);
        let collections = request.cohorts.max(request.lifetimes).max(kept_ranges).map(SpilledCollections::new);
        let samples = request.lifetimes.map(Samples::new);
        let (problems, table_ids) = (BTreeMap::new(), Vec::new());
        let only = (!request.processes.is_empty()).then(BTreeSet::new);
        TableOutput {
            only,
            tables,
            problems,
            table_ids,
            walks,
            kept,
            collections,
            cohorts: request.cohorts.is_some(),
            samples,
            labels,
            selection: Selection::default(),
            figures: None,
            findings: None,
            limits: None,
        }
    }

    /// Rows of this process are wanted, where not all are.
    pub(crate) fn only(&mut self, process_id: u64) {
        self.only.get_or_insert_default().insert(process_id);
    }

    /// Adds rows, and hands batches on.
    fn add_rows<'f>(&mut self, rows: impl Into<Fact<'f>>, dataset: &mut dyn TableSink) -> Result<()> {
        self.tables.add(rows);
        if self.tables.has_ready() { self.write(dataset) } else { Ok(()) }
    }

    /// The rows of `heap_dominator`, which can be computed only when all else is known.
    fn dominators(&mut self, position: u64, dataset: &mut dyn TableSink) -> Result<()> {
        let Some(walks) = self.walks.take() else { return Ok(()) };
        if let Some(message) = walks.refused() {
            self.problem(&Problem::loss("heap_too_large", position, message));
            return Ok(());
        }
        walks.finish(|row| self.add_rows(row, dataset))
    }

    /// The rows of `gc_cohort` and `allocation_lifetime`, likewise.
    fn followed(&mut self, position: u64, dataset: &mut dyn TableSink) -> Result<()> {
        let Some(mut collections) = self.collections.take() else { return Ok(()) };
        let refused = |output: &mut TableOutput, message: Option<String>, code| {
            if let Some(message) = message {
                output.problem(&Problem::loss(code, position, message));
            }
        };
        if let Some(samples) = self.samples.take() {
            if samples.weight() > 1 {
                let (rows, weight) = (samples.rows().len(), samples.weight());
                let message = format!(
                    "allocation_lifetime has {rows} samples, one of {weight}, chosen by chance: more are not followed. \
                     Each counts {weight} times"
                );
                self.problem(&Problem::info("lifetimes_thinned", position, message));
            }
            stored_lifetimes(&mut collections, &samples, |row| self.add_rows(row, dataset))?;
            refused(self, collections.refused("allocation_lifetime is empty", "--lifetimes"), "lifetimes_too_large");
        }
        if self.cohorts {
            stored_cohorts(&mut collections, |row| self.add_rows(row, dataset))?;
            refused(self, collections.refused("gc_cohort is incomplete", "--cohorts"), "cohorts_too_large");
        }
        self.collections = Some(collections);
        Ok(())
    }

    /// Declares new tables and hands batches on, in order.
    pub(crate) fn write(&mut self, dataset: &mut dyn TableSink) -> Result<()> {
        for spec in self.tables.specs().iter().skip(self.table_ids.len()) {
            let is_asked_for = spec.name.starts_with("event/") || self.selection.asks_for(&spec.name);
            self.table_ids.push(if is_asked_for { Some(dataset.table(spec.clone())?) } else { None });
            if let Some(figures) = &mut self.figures {
                figures.declare(&spec.name);
            }
        }
        let (specs, ready) = self.tables.take_ready();
        for batch in ready {
            if let (Some(figures), Some(spec)) = (&mut self.figures, specs.get(batch.table)) {
                figures.add(&spec.name, &batch.rows)?;
            }
            if let (Some((findings, _)), Some(spec)) = (&mut self.findings, specs.get(batch.table)) {
                findings.add(&spec.name, &batch.rows)?;
            }
            if let Some(Some(id)) = self.table_ids.get(batch.table) {
                dataset.write(*id, batch.rows)?;
            }
        }
        Ok(())
    }

    /// The rows of `finding`: all others but the figures are known by now, and some figures are made of them.
    fn add_findings(&mut self, dataset: &mut dyn TableSink) -> Result<()> {
        let Some((findings, trace_id)) = self.findings.take() else { return Ok(()) };
        for finding in findings.finish(trace_id.as_deref()) {
            self.tables.add(&findings::row(&finding));
        }
        self.tables.finish();
        self.write(dataset)
    }

    /// The rows of `metric`: all others are known by now.
    fn add_figures(&mut self, dataset: &mut dyn TableSink) -> Result<()> {
        let Some(figures) = self.figures.take() else { return Ok(()) };
        for metric in figures.finish()? {
            let Some(definition) = definition_of(&metric.name)? else { continue };
            let (scope, process_id) = metric.owner.columns();
            self.tables.add(&fact::Metric {
                name: &definition.name,
                key: metric.key(),
                value: metric.value,
                missing: metric.missing.map(Missing::word),
                unit: &definition.unit,
                better: definition.better.word(),
                observation_count: metric.observations,
                worst: metric.worst.as_deref(),
                scope,
                process_id,
                source: metric.source.as_deref(),
            });
        }
        self.tables.finish();
        self.write(dataset)
    }

    /// The end: the row of the recording, and all tables closed. `summary` says what was counted on the way; its
    /// problems are filled in here. A `failure` on the way is the result.
    pub(crate) fn close(
        mut self,
        mut summary: InputSummary,
        dataset: &mut dyn TableSink,
        failure: Option<Error>,
    ) -> Result<(InputSummary, Vec<TableSummary>)> {
        if failure.is_none() {
            self.dominators(summary.bytes, dataset)?;
            self.followed(summary.bytes, dataset)?;
        }
        let collections = self.collections.take();
        if let Some((walk, keep)) = self.kept.take() {
            keep.put(walk, collections);
        }
        summary.problems = self.problems.values().cloned().collect();
        summary.complete &= !self.problems.values().any(|p| p.severity == Severity::Error);
        let info = &summary.info;
        let pairs: serde_json::Map<String, serde_json::Value> =
            info.key_values.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect();
        let pairs = (!pairs.is_empty()).then(|| serde_json::Value::Object(pairs).to_string());
        let path = summary.path.display().to_string();
        let row = Trace {
            container: info.container,
            format_version: info.version,
            format_minor_version: info.minor,
            start_ts: info.clock.sync_utc_ns,
            start_known: info.start_known,
            start_ticks: Some(info.clock.sync_ticks),
            clock_frequency: info.clock.frequency,
            pointer_size: info.pointer_size,
            process_id: info.process_id,
            processor_count: info.processor_count,
            cgroup_known: self.limits.is_some(),
            memory_limit_bytes: self.limits.and_then(|limits| limits.memory_bytes),
            cpu_limit_millicores: self.limits.and_then(|limits| limits.cpu_millicores),
            sampling_ns: info.sampling_ns,
            duration_ns: summary.last_ns.saturating_sub(summary.first_ns),
            event_count: summary.events,
            dropped_event_count: summary.dropped_events,
            complete: summary.complete,
            key_values: pairs.as_deref(),
            frame_count: summary.frames.frames,
            named_frame_count: summary.frames.named,
            status: summary.status().name(),
            ..of_file(&path, &summary.identity)
        };
        self.add_recording(&row);
        self.tables.finish();
        if let Some(failure) = failure.or(self.tables.take_failure()) {
            return Err(failure);
        }
        self.write(dataset)?;
        self.add_findings(dataset)?;
        self.add_figures(dataset)?;
        let written = dataset.close_tables(&source_footer(&row))?;
        let tables = written.into_iter().map(TableSummary::from).collect();
        summary.incomplete_collections = ["open_collection", "running_collection"]
            .iter()
            .filter_map(|code| self.problems.get(code))
            .map(|p| p.count)
            .sum();
        Ok((summary, tables))
    }

    /// The tables of a recording that could not be read: its row, and its labels.
    pub(crate) fn close_failed(
        mut self,
        failed: &FailedInput,
        dataset: &mut dyn TableSink,
    ) -> Result<Vec<TableSummary>> {
        let path = failed.path.display().to_string();
        let row = Trace {
            status: "failed",
            error_message: Some(&failed.error),
            error_offset: failed.offset,
            ..of_file(&path, &failed.identity)
        };
        self.add_recording(&row);
        self.tables.finish();
        self.write(dataset)?;
        let written = dataset.close_tables(&source_footer(&row))?;
        Ok(written.into_iter().map(TableSummary::from).collect())
    }

    fn add_recording(&mut self, row: &Trace<'_>) {
        self.tables.add(row);
        for (name, value) in &self.labels {
            self.tables.add(&TraceLabel { name, value });
        }
    }
}
