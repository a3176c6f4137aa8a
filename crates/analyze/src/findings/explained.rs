//! The findings of recordings as an answer, the most important first: what `explain` prints.

use std::collections::{BTreeMap, BTreeSet};

use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::read::{Dataset, Recording};

use super::overview::{self, Overview};
use super::walks;
use super::{Finding, Findings, Input, TABLE, Verdict, followed, rule};
use crate::heap;
use crate::present::units::counted;
use crate::present::{Answer, Cell, Column, Document, Sentence, Table, Unit, table};

/// Findings that are shown where not everything is asked for.
const SHOWN: usize = 6;

/// The tables that findings and what holds objects are read from, each once.
pub fn tables() -> Vec<&'static str> {
    let mut tables = Findings::tables();
    tables.extend([TABLE, "process"]);
    tables.extend(heap::TABLES);
    tables.extend(walks::TABLES);
    tables.extend(overview::TABLES);
    tables.sort_unstable();
    tables.dedup();
    tables
}

/// A recording with its findings.
#[derive(Debug)]
struct Explained {
    trace_id: String,
    overview: Overview,
    findings: Vec<Finding>,
    /// Names of the processes that have one, by number.
    processes: BTreeMap<u64, String>,
}

tracequet_dataset::row!(struct Process of process { process_id, name });

/// The names of the processes that findings are about, by their ids. Processes without a name are left out.
pub fn process_names(recording: &Recording<'_>, findings: &[Finding]) -> Result<BTreeMap<u64, String>> {
    // 0 stands for the recording, and is the idle process of Windows.
    let ids: BTreeSet<u64> = findings.iter().map(|finding| finding.process_id).filter(|id| *id > 0).collect();
    let mut names = BTreeMap::new();
    recording.each_recorded::<Process<'_>>(|row| {
        if !row.name.is_empty() && ids.contains(&row.process_id) {
            names.insert(row.process_id, row.name.to_owned());
        }
    })?;
    Ok(names)
}

impl Explained {
    /// The findings of a recording; those about some processes, and about the recording, where that is asked for.
    fn of(recording: &Recording<'_>, asked: &[String]) -> Result<Explained> {
        let mut findings = followed(recording)?;
        let ids: BTreeSet<u64> = findings.iter().map(|finding| finding.process_id).collect();
        let processes = process_names(recording, &findings)?;
        let bare = |name: &str| name.to_lowercase().trim_end_matches(".exe").to_owned();
        let is_it = |id: u64, asked: &str| {
            id.to_string() == asked || processes.get(&id).is_some_and(|name| bare(name) == bare(asked))
        };
        if let Some(unknown) = asked.iter().find(|asked| !ids.iter().any(|id| is_it(*id, asked))) {
            let trace_id = &recording.info().trace_id;
            let what = format!("nothing is judged of a process {unknown} in the recording {trace_id}");
            return Err(Error::Usage(what));
        }
        let is_asked = |id: u64| id == 0 || asked.is_empty() || asked.iter().any(|asked| is_it(id, asked));
        findings.retain(|finding| is_asked(finding.process_id));
        let (trace_id, overview) = (recording.info().trace_id.clone(), Overview::of(recording)?);
        Ok(Explained { trace_id, overview, findings, processes })
    }

    /// The process of a finding: its name, or its number when it has no name and the findings are about several processes.
    fn process_of(&self, finding: &Finding) -> Option<String> {
        let id = finding.process_id;
        let is_other = |other: &Finding| ![0, id].contains(&other.process_id);
        match self.processes.get(&id) {
            Some(name) => Some(format!("{name} ({id})")),
            None => (id > 0 && self.findings.iter().any(is_other)).then(|| format!("process {id}")),
        }
    }
}

/// The recording of a key, or all that could be read.
fn recordings<'d>(dataset: &'d Dataset, key: Option<&str>) -> Result<Vec<Recording<'d>>> {
    if key.is_some() {
        return Ok(vec![dataset.recording(key)?]);
    }
    let read = dataset.recordings().iter().filter(|info| info.status != "failed");
    read.map(|info| dataset.recording(Some(&info.trace_id))).collect()
}

/// A line on the whole: how many of what.
fn verdict(findings: &[Finding]) -> String {
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count() as u64;
    let (warnings, infos) = (count(Verdict::Warning), count(Verdict::Info));
    let unknown = count(Verdict::NotRecorded) + count(Verdict::TooLittle);
    let found = match (warnings, infos) {
        (0, 0) if unknown == 0 => "nothing found".to_owned(),
        (0, 0) => "nothing found in what was recorded".to_owned(),
        (0, infos) => format!("no warning, {} worth a look", counted(infos, "finding", "findings")),
        (warnings, 0) => counted(warnings, "warning", "warnings"),
        (warnings, infos) => format!("{}, {infos} more worth a look", counted(warnings, "warning", "warnings")),
    };
    let fine = count(Verdict::Fine);
    format!("{found}; {} fine, {unknown} not judged", counted(fine, "rule", "rules"))
}

/// Findings about the program, and findings about the recording.
fn of_interest(findings: &[Finding]) -> (Vec<&Finding>, Vec<&Finding>) {
    findings.iter().filter(|finding| finding.verdict >= Verdict::Info).partition(|finding| !finding.is_of_recording())
}

/// All warnings with what they come from, and what else there is room for.
fn first(mut found: Vec<&Finding>) -> Vec<&Finding> {
    let named = |all: &[&Finding], finding: &Finding| {
        let is_it = |other: &&Finding| other.cause_rule.as_ref() == Some(&finding.rule);
        all.iter().any(|other| is_it(other) && other.verdict == Verdict::Warning)
    };
    let is_needed: Vec<bool> = found.iter().map(|one| one.verdict == Verdict::Warning || named(&found, one)).collect();
    let mut room = SHOWN.saturating_sub(is_needed.iter().filter(|is_needed| **is_needed).count());
    let mut is_needed = is_needed.into_iter();
    found.retain(|_| {
        let keep = is_needed.next() == Some(true);
        let fits = !keep && room > 0;
        room -= usize::from(fits);
        keep || fits
    });
    found
}

/// The findings of recordings.
#[derive(Debug)]
pub struct Explanation {
    all: Vec<Explained>,
    /// Whether all rules are shown, those that find nothing, too, and the queries.
    pub everything: bool,
}

impl Explanation {
    /// The findings of a recording of a dataset, or of all that could be read; of some processes where that is asked for, by their
    /// names or numbers. Commands of next steps read the `input`. Fails when a table cannot be read, or there is no such recording or
    /// process.
    pub fn of(dataset: &Dataset, trace: Option<&str>, asked: &[String], input: Input<'_>) -> Result<Explanation> {
        let mut all = Vec::new();
        for recording in recordings(dataset, trace)? {
            let mut explained = Explained::of(&recording, asked)?;
            let of_recording = input(&explained.trace_id);
            explained.findings.iter_mut().for_each(|finding| finding.next_step = finding.command(&of_recording));
            all.push(explained);
        }
        Ok(Explanation { all, everything: false })
    }

    /// Whether there is a finding of this weight or more.
    pub fn has(&self, least: Verdict) -> bool {
        self.all.iter().flat_map(|one| &one.findings).any(|found| found.verdict >= least)
    }
}

impl Answer for Explanation {
    fn document(&self) -> Document {
        let mut out = Document::default();
        for explained in &self.all {
            let Explained { trace_id, overview, findings, .. } = explained;
            out.heading(Sentence::default().text(trace_id).words(format!(": {}", verdict(findings))));
            if overview.topics.iter().any(|topic| topic.name != "threads") {
                out.heading("Where it went");
                out.add(overview.document());
            }
            let one = |out: &mut Document, finding: &Finding, everything| {
                one(out, finding, explained.process_of(finding), everything);
            };
            let (of_program, of_recording) = of_interest(findings);
            let more = of_program.len();
            let shown = if self.everything { of_program } else { first(of_program) };
            let more = more.saturating_sub(shown.len());
            shown.into_iter().for_each(|finding| one(&mut out, finding, self.everything));
            if more > 0 {
                out.gap();
                out.line(format!("{more} more worth a look: --all shows them"));
            }
            if !of_recording.is_empty() {
                out.heading("About the recording, which makes what is said above less certain");
            }
            of_recording.into_iter().for_each(|finding| one(&mut out, finding, self.everything));
            let fine = findings.iter().filter(|finding| self.everything && finding.verdict == Verdict::Fine);
            fine.for_each(|finding| one(&mut out, finding, true));
            not_judged(&mut out, findings);
        }
        out
    }

    fn rows(&self) -> Table {
        rows(&self.all)
    }

    /// An array of recordings.
    fn json(&self) -> serde_json::Value {
        let recording = |one: &Explained| serde_json::json!({ "trace_id": one.trace_id, "summary": one.overview.json(), "findings": rows(std::slice::from_ref(one)).json() });
        self.all.iter().map(recording).collect()
    }
}

fn one(out: &mut Document, finding: &Finding, process: Option<String>, everything: bool) {
    let score = Cell::number(finding.score, Unit::Score).in_text();
    let verdict = format!("{} {score}", finding.verdict.word().to_uppercase());
    let mut head = Sentence::from(format!("{}  ", verdict.trim_end())).text(&finding.rule).words(": ");
    head = head.cell(title(finding));
    if let Some(process) = process {
        head = head.words(", ").text(&process);
    }
    out.heading(head);
    out.fact("  ", Cell::sentence(&finding.sentence));
    let place = place(finding);
    if let Some((first, more)) = place.split_first() {
        let all = more.iter().fold(Sentence::default().text(first), |all, more| all.words(", ").text(more));
        out.fact("  where:  ", all);
    }
    if let Some(cause) = &finding.cause_rule {
        out.fact("  cause:  ", Cell::text(cause));
    }
    if finding.verdict >= Verdict::Info {
        out.fact("  change: ", finding.advice());
        out.fact("  look closer: ", Cell::sentence(&finding.next_step));
    }
    if let Some(sql) = finding.evidence_sql.as_ref().filter(|_| everything) {
        out.fact("  rows: ", Cell::sentence(sql));
    }
}

/// The title of its rule; the name of one that this version does not have is a text of the dataset.
fn title(finding: &Finding) -> Cell {
    rule(&finding.rule).map_or_else(|| Cell::text(&finding.rule), |rule| Cell::words(rule.title))
}

/// Where it is: the user's method, and what it is about unless the sentence says it.
fn place(finding: &Finding) -> Vec<&str> {
    let subject = finding.subject.iter().filter(|subject| !finding.sentence.contains(subject.as_str()));
    finding.own_method.iter().chain(subject).map(String::as_str).collect()
}

/// Rules without a verdict: of those whose events are not there, how they are recorded, and of the others what is needed, what there is, and
/// the command with a time that may do.
fn not_judged(out: &mut Document, findings: &[Finding]) {
    let lack = |one: &Finding| match one.next_step.contains(" --duration ") {
        true => format!("{} {}", one.sentence, one.next_step),
        false => one.sentence.clone(),
    };
    let said = |one: &Finding| if one.verdict == Verdict::TooLittle { lack(one) } else { one.next_step.clone() };
    for (verdict, heading) in
        [(Verdict::NotRecorded, "Not recorded, or none seen"), (Verdict::TooLittle, "Too little for a verdict")]
    {
        let mut all: Vec<(String, Vec<&str>)> = Vec::new();
        for finding in findings.iter().filter(|finding| finding.verdict == verdict) {
            let of = said(finding);
            match all.iter_mut().find(|(known, _)| *known == of) {
                Some((_, rules)) => rules.push(&finding.rule),
                None => all.push((of, vec![&finding.rule])),
            }
        }
        if !all.is_empty() {
            out.heading(heading);
        }
        for (of, rules) in all {
            out.note(Sentence::from(Cell::sentence(&rules.join(", "))).words(": ").cell(Cell::sentence(&of)));
        }
    }
}

/// A row for each finding.
fn rows(all: &[Explained]) -> Table {
    let rows = all.iter().flat_map(|explained| explained.findings.iter().map(move |finding| (explained, finding)));
    table!("findings", rows, |(Explained { trace_id, processes, .. }, finding)| {
        let number = |value| Cell::in_unit(value, &finding.unit);
    } {
        Column::raw("trace_id") => Cell::text(trace_id),
        Column::raw("rule") => Cell::text(&finding.rule),
        Column::raw("process_id") => Cell::id(finding.process_id),
        Column::raw("process") => Cell::optional(processes.get(&finding.process_id).map(String::as_str)),
        Column::raw("verdict") => Cell::words(finding.verdict.word()),
        Column::raw("score") => Cell::number(finding.score, Unit::Score),
        Column::raw("figure") => number(finding.figure),
        Column::raw("unit") => Cell::text(&finding.unit),
        Column::raw("info_limit") => number(Some(finding.info_limit)),
        Column::raw("warning_limit") => number(Some(finding.warning_limit)),
        Column::raw("title") => title(finding),
        Column::raw("advice") => Cell::words(finding.advice()),
        Column::raw("of_recording") => Cell::Flag(finding.is_of_recording(), ""),
        Column::raw("subject") => Cell::optional(finding.subject.as_deref()),
        Column::raw("own_method") => Cell::optional(finding.own_method.as_deref()),
        Column::raw("sentence") => Cell::text(&finding.sentence),
        Column::raw("cause_rule") => Cell::optional(finding.cause_rule.as_deref()),
        Column::raw("evidence_sql") => Cell::optional(finding.evidence_sql.as_deref()),
        Column::raw("next_step") => Cell::text(&finding.next_step),
        Column::raw("doc") => Cell::text(&finding.doc),
    })
}
