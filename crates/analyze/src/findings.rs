//! What is wrong in a recording, by rules: each looks at the same sums of rows and gives a verdict with its evidence.
//!
//! A rule is a file in `rules/`. docs/FINDINGS.md has a section for each.

mod allocations;
mod collections;
mod judge;
mod picture;
mod queries;
mod rule;
mod rules;
mod score;
mod shared;
mod sites;
mod times;
mod windows;
mod words;

use tracequet_dataset::read::arrow_array::RecordBatch;
use tracequet_dataset::read::{Column, Recording};
use tracequet_facts::fact;
use tracequet_trace::error::Result;

use self::picture::Picture;
use super::{HeldTexts, held};
pub use judge::{Finding, Verdict};
pub use score::{INFO, WARNING, score};

/// The table that `convert` writes findings to.
pub const TABLE: &str = "finding";

/// Bytes of its texts, at most.
const MAX_TEXT: u64 = 64 << 20;

/// The findings of one recording in the making.
#[derive(Debug)]
pub struct Findings(Picture);

impl Findings {
    /// Nothing seen yet.
    pub fn new() -> Result<Findings> {
        Ok(Findings(Picture::new()?))
    }

    /// The tables that findings are made of, each once.
    pub fn tables() -> Vec<&'static str> {
        Picture::tables()
    }

    /// Sees rows of a table.
    pub fn add(&mut self, table: &str, batch: &RecordBatch) -> Result<()> {
        self.0.add(table, batch)
    }

    /// The findings, the most important first. `trace_id` is the key of the recording in its dataset; `None` when it is the only one.
    pub fn finish(mut self, trace_id: Option<&str>) -> Vec<Finding> {
        self.0.finish();
        judge::all(&self.0, trace_id)
    }
}

/// The row of a finding.
pub fn row(finding: &Finding) -> fact::Finding<'_> {
    fact::Finding {
        rule: &finding.rule,
        process_id: finding.process_id,
        verdict: finding.verdict.word(),
        score: finding.score,
        figure: finding.figure,
        unit: &finding.unit,
        info_limit: finding.info_limit,
        warning_limit: finding.warning_limit,
        subject: finding.subject.as_deref(),
        own_method: finding.own_method.as_deref(),
        sentence: &finding.sentence,
        cause_rule: finding.cause_rule.as_deref(),
        evidence_sql: finding.evidence_sql.as_deref(),
        next_step: &finding.next_step,
        doc: &finding.doc,
    }
}

/// All findings of a recording, the most important first: the rows of its table `finding`, or, where that was left out, what the
/// other tables give.
pub fn findings(recording: &Recording<'_>) -> Result<Vec<Finding>> {
    if recording.table(TABLE).is_ok() { stored(recording) } else { computed(recording) }
}

/// The findings of a recording by its other tables; of tables that it does not have nothing is known.
pub fn computed(recording: &Recording<'_>) -> Result<Vec<Finding>> {
    let mut findings = Findings::new()?;
    for table in Findings::tables() {
        let Ok(found) = recording.table(table) else { continue };
        for batch in found.scan().columns(Picture::columns(table)).batches()? {
            findings.add(table, &batch?)?;
        }
    }
    Ok(findings.finish(Some(&recording.info().trace_id)))
}

fn stored(recording: &Recording<'_>) -> Result<Vec<Finding>> {
    let (mut found, mut texts) = (Vec::new(), HeldTexts::of(recording, TABLE).up_to(MAX_TEXT));
    let columns = [
        "rule",
        "verdict",
        "unit",
        "subject",
        "own_method",
        "sentence",
        "cause_rule",
        "evidence_sql",
        "next_step",
        "doc",
        "process_id",
        "score",
        "figure",
        "info_limit",
        "warning_limit",
    ];
    for batch in recording.table(TABLE)?.scan().columns(columns).batches()? {
        let batch = batch?;
        let all = columns.iter().map(|name| Column::of(&batch, name)).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            let mut text = |at: usize| -> Result<Option<String>> {
                all.get(at).and_then(|column| column.text(row)).map(|text| texts.copy(text)).transpose()
            };
            let real = |at: usize| all.get(at).and_then(|column| column.real(row));
            found.push(Finding {
                rule: text(0)?.unwrap_or_default(),
                verdict: Verdict::of_word(&text(1)?.unwrap_or_default()),
                unit: text(2)?.unwrap_or_default(),
                subject: text(3)?,
                own_method: text(4)?,
                sentence: text(5)?.unwrap_or_default(),
                cause_rule: text(6)?,
                evidence_sql: text(7)?,
                next_step: text(8)?.unwrap_or_default(),
                doc: text(9)?.unwrap_or_default(),
                process_id: all.get(10).and_then(|column| column.number(row)).unwrap_or_default(),
                score: real(11),
                figure: real(12),
                info_limit: real(13).unwrap_or_default(),
                warning_limit: real(14).unwrap_or_default(),
            });
        }
        held(recording, TABLE, found.len() as u64, 512)?;
    }
    judge::sort(&mut found);
    Ok(found)
}
