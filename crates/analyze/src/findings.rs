//! What is wrong in a recording, by rules: each looks at the same sums of rows and gives a verdict with its evidence.
//!
//! A rule is a file in `rules/`. docs/FINDINGS.md has a section for each.

mod allocations;
mod closer;
mod collections;
mod explained;
mod holders;
mod judge;
mod line;
mod loops;
pub mod overview;
mod picture;
mod prelude;
mod queries;
mod rule;
mod rules;
mod score;
mod shared;
mod stretches;
mod survivors;
#[cfg(test)]
mod tests {
    pub(super) mod story;
}
mod times;
mod verdict;
mod walks;
mod windows;
mod words;

use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::read::Recording;
use tracequet_dataset::read::arrow_array::RecordBatch;
use tracequet_facts::fact;

use self::picture::Picture;
use super::HeldTexts;
use super::lifetime::{Lifetime, found_lifetimes};
use super::rows::each_row;
pub use explained::{Explanation, process_names, tables as explained_tables};
pub use judge::{Finding, Input};
pub use rule::{Evidence, Example, Rule};
pub use rules::{rule, title_of};
pub use score::{INFO, WARNING, score};
pub use verdict::Verdict;

/// The rule that looks at sampled objects that were followed, and the tables that they are followed in.
pub(crate) const FOLLOWS: &str = "leak";
const TABLES: [&str; 3] = ["allocation", "gc_generation_range", "gc_surviving_range"];

/// The table that `convert` writes findings to.
pub const TABLE: &str = "finding";

/// Bytes of its texts, at most.
const MAX_TEXT: u64 = 64 << 20;

/// All rules.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    rules::RULES.iter().copied()
}

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

    /// Sees what became of a sampled object.
    fn follow(&mut self, lifetime: &Lifetime<'_>) {
        self.0.follow(lifetime);
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

/// The same, with what sampled objects say that are followed through its collections, and with what holds the objects that stay.
/// Objects are followed here when the recording has what it takes, and it was not done when the dataset was written. Holders are looked
/// up when there is a dump of the heap.
pub fn followed(recording: &Recording<'_>) -> Result<Vec<Finding>> {
    let mut found = findings(recording)?;
    let is_known = found.iter().any(|finding| finding.rule == FOLLOWS && finding.verdict >= Verdict::Fine);
    let has = |name: &str| recording.tables().any(|table| table.name == name && table.rows > 0);
    // Without one of the tables that findings are made of, those that were made when the dataset was written say more.
    let is_whole = || Findings::tables().into_iter().all(|name| recording.table(name).is_ok());
    // Rows of `allocation_lifetime` are seen as those of any table: followed once more they would count twice.
    if !is_known && !has(super::lifetime::TABLE) && TABLES.into_iter().all(has) && is_whole() {
        let mut findings = Findings::new()?;
        match found_lifetimes(recording, |lifetime| {
            findings.follow(lifetime);
            Ok(())
        }) {
            Ok(()) => found = summed(findings, recording)?,
            // Nothing to follow, or too much of it: the others stand.
            Err(Error::NotRecorded { .. } | Error::OverMemory { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    walks::judge_walks(recording, &mut found)?;
    holders::name_holders(recording, &mut found)?;
    Ok(found)
}

/// The findings of a recording by its other tables; of tables that it does not have nothing is known.
pub fn computed(recording: &Recording<'_>) -> Result<Vec<Finding>> {
    summed(Findings::new()?, recording)
}

fn summed(mut findings: Findings, recording: &Recording<'_>) -> Result<Vec<Finding>> {
    for table in Findings::tables() {
        let Ok(found) = recording.table(table) else { continue };
        for batch in found.scan().columns(Picture::columns(table)).batches()? {
            findings.add(table, &batch?)?;
        }
    }
    Ok(findings.finish(Some(&recording.info().trace_id)))
}

tracequet_dataset::row!(struct Row of finding {
    rule, process_id, verdict, score, figure, unit, info_limit, warning_limit, subject, own_method, sentence,
    cause_rule, evidence_sql, next_step, doc
});

fn stored(recording: &Recording<'_>) -> Result<Vec<Finding>> {
    let (mut found, mut texts) = (Vec::new(), HeldTexts::of(recording, TABLE).up_to(MAX_TEXT));
    each_row::<Row<'_>>(recording, 512, |row| {
        let mut some = |text: Option<&str>| text.map(|text| texts.copy(text)).transpose();
        found.push(Finding {
            subject: some(row.subject)?,
            own_method: some(row.own_method)?,
            cause_rule: some(row.cause_rule)?,
            evidence_sql: some(row.evidence_sql)?,
            rule: texts.copy(row.rule)?,
            verdict: Verdict::of_word(row.verdict),
            unit: texts.copy(row.unit)?,
            sentence: texts.copy(row.sentence)?,
            next_step: texts.copy(row.next_step)?,
            doc: texts.copy(row.doc)?,
            process_id: row.process_id,
            score: row.score,
            figure: row.figure,
            info_limit: row.info_limit,
            warning_limit: row.warning_limit,
        });
        Ok(())
    })?;
    judge::sort(&mut found);
    Ok(found)
}
