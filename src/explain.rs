//! `tracequet explain`: what is wrong in recordings, the most important first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tracequet::analyze::findings::{self, Finding, Findings, Verdict};
use tracequet::analyze::heap;
use tracequet::dataset::read::{Dataset, Recording};

use super::markdown::code;
use super::opened;
use super::output::{Outcome, print_result};
use super::own::OwnArgs;
use super::terminal;
use super::text::{clean, counted};

pub const ABOUT: &str = "\
Says what is wrong in a recording, or in each recording of a dataset: the most important first, with its figure, your own method that \
has the largest part in it, and the next step. Then what could not be judged, and how to record it. docs/FINDINGS.md has the \
rules, their limits and where these come from. Each finding has a query for DuckDB that gives the rows behind it (--all, --format json).";

pub const EXAMPLES: &str = "\
Examples:
  tracequet explain app.nettrace
  tracequet explain app.nettrace --own 'Shop*' --all
  tracequet explain lake --format markdown --fail-on warning";

/// Findings that are shown without --all.
const SHOWN: usize = 6;

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = ExplainFormat::Text)]
    pub format: ExplainFormat,
    /// Show all rules, those that find nothing, too, and the queries
    #[arg(long)]
    pub all: bool,
    /// Exit with code 3 when there is a finding of this weight or more
    #[arg(long, value_enum, value_name = "VERDICT")]
    pub fail_on: Option<FailOn>,
    /// Only findings about the processes with this name or number, and those about the recording
    #[arg(long, value_name = "NAME|PID")]
    pub process: Option<String>,
    /// Recording in a dataset of several: its trace_id [default: all]
    #[arg(long, value_name = "KEY")]
    pub trace: Option<String>,
    #[command(flatten)]
    pub own: OwnArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// For reading
    Text,
    /// For programs: an array of recordings
    Json,
    /// For documents and job summaries
    Markdown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// What is worth a look, and warnings
    Info,
    /// Warnings
    Warning,
}

/// A recording with its findings.
struct Explained {
    trace_id: String,
    findings: Vec<Finding>,
    /// Names of the processes that have one, by number.
    processes: BTreeMap<u64, String>,
}

tracequet::dataset::row! {
    struct Process of process { process_id, name }
}

impl Explained {
    /// The findings of a recording; those about one process where that is asked for.
    fn of(recording: &Recording<'_>, process: Option<&str>) -> anyhow::Result<Explained> {
        let (mut findings, mut processes) = (findings::followed(recording)?, BTreeMap::new());
        let ids: BTreeSet<u64> = findings.iter().map(|finding| finding.process_id).collect();
        if recording.has::<Process<'_>>() {
            recording.each::<Process<'_>>(|row| {
                if !row.name.is_empty() && ids.contains(&row.process_id) {
                    processes.insert(row.process_id, row.name.to_owned());
                }
                Ok(())
            })?;
        }
        if let Some(asked) = process {
            let bare = |name: &str| name.to_lowercase().trim_end_matches(".exe").to_owned();
            let is_it =
                |id: &u64| id.to_string() == asked || processes.get(id).is_some_and(|name| bare(name) == bare(asked));
            if !ids.iter().any(is_it) {
                let trace_id = &recording.info().trace_id;
                anyhow::bail!("nothing is judged of a process {asked} in the recording {trace_id}");
            }
            findings.retain(|finding| finding.process_id == 0 || is_it(&finding.process_id));
        }
        Ok(Explained { trace_id: recording.info().trace_id.clone(), findings, processes })
    }

    /// The process of a finding by its name; by its number where it has none and the findings are about several.
    fn process_of(&self, finding: &Finding) -> Option<String> {
        let id = finding.process_id;
        let is_other = |other: &Finding| ![0, id].contains(&other.process_id);
        match self.processes.get(&id) {
            Some(name) => Some(format!("{} ({id})", clean(name))),
            None => (id > 0 && self.findings.iter().any(is_other)).then(|| format!("process {id}")),
        }
    }
}

/// Prints the findings. Exit code 3 when --fail-on asks for it, else 2 when the recording has losses.
pub fn run(args: &ExplainArgs) -> anyhow::Result<Outcome> {
    let mut tables = Findings::tables();
    tables.extend([findings::TABLE, "process"]);
    tables.extend(heap::TABLES);
    tables.sort_unstable();
    tables.dedup();
    let opened = opened::open_explained(&args.input, &tables, &[], args.own.patterns())?;
    let mut all = Vec::new();
    for recording in recordings(&opened.dataset, args.trace.as_deref())? {
        let mut explained = Explained::of(&recording, args.process.as_deref())?;
        let input = tracequet::trace::source::store::shown(&args.input).display().to_string();
        explained.findings.iter_mut().for_each(|finding| finding.next_step = finding.command(&input));
        all.push(explained);
    }
    let printed = match args.format {
        ExplainFormat::Text => text(&all, args.all, terminal::width()),
        ExplainFormat::Json => json(&all)?,
        ExplainFormat::Markdown => markdown(&all, args.all),
    };
    let least = args.fail_on.map(|fail_on| match fail_on {
        FailOn::Info => Verdict::Info,
        FailOn::Warning => Verdict::Warning,
    });
    let fails = least.is_some_and(|least| all.iter().flat_map(|one| &one.findings).any(|found| found.verdict >= least));
    let outcome = if fails { Outcome::RuleBroken } else { Outcome::with_losses(opened.losses) };
    outcome.printed(print_result(&printed))
}

/// The recording of a key, or all that could be read.
fn recordings<'d>(dataset: &'d Dataset, key: Option<&str>) -> anyhow::Result<Vec<Recording<'d>>> {
    if key.is_some() {
        return Ok(vec![dataset.recording(key)?]);
    }
    let read = dataset.recordings().iter().filter(|info| info.status != "failed");
    Ok(read.map(|info| dataset.recording(Some(&info.trace_id))).collect::<Result<_, _>>()?)
}

/// A line on the whole: how many of what.
fn verdict(findings: &[Finding]) -> String {
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count() as u64;
    let (warnings, infos) = (count(Verdict::Warning), count(Verdict::Info));
    let unknown = count(Verdict::NotRecorded) + count(Verdict::TooLittle);
    let found = match (warnings, infos) {
        (0, 0) => "nothing found".to_owned(),
        (0, infos) => format!("no warning, {} worth a look", counted(infos, "finding", "findings")),
        (warnings, 0) => counted(warnings, "warning", "warnings"),
        (warnings, infos) => format!("{}, {infos} more worth a look", counted(warnings, "warning", "warnings")),
    };
    let fine = count(Verdict::Fine);
    format!("{found}; {} fine, {unknown} not judged", counted(fine, "rule", "rules"))
}

/// What is wrong with the program, and what is wrong with the recording.
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

fn text(all: &[Explained], everything: bool, width: usize) -> String {
    let mut out = Lines { text: String::new(), width };
    for explained in all {
        let Explained { trace_id, findings, .. } = explained;
        writeln!(out, "{}: {}", clean(trace_id), verdict(findings)).ok();
        let one = |out: &mut Lines, finding: &Finding, everything| {
            one(out, finding, explained.process_of(finding), everything);
        };
        let (of_program, of_recording) = of_interest(findings);
        let more = of_program.len();
        let shown = if everything { of_program } else { first(of_program) };
        let more = more.saturating_sub(shown.len()) as u64;
        shown.into_iter().for_each(|finding| one(&mut out, finding, everything));
        if more > 0 {
            writeln!(out, "\n{more} more worth a look: --all shows them").ok();
        }
        if !of_recording.is_empty() {
            writeln!(out, "\nAbout the recording, which makes what is said above less certain").ok();
        }
        of_recording.into_iter().for_each(|finding| one(&mut out, finding, everything));
        if everything {
            for finding in findings.iter().filter(|finding| finding.verdict == Verdict::Fine) {
                one(&mut out, finding, true);
            }
        }
        not_judged(&mut out, findings, everything);
    }
    out.text
}

/// Text for a terminal.
struct Lines {
    text: String,
    /// Columns, at which sentences are folded.
    width: usize,
}

impl Write for Lines {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.text.write_str(text)
    }
}

fn one(out: &mut Lines, finding: &Finding, process: Option<String>, everything: bool) {
    let process = process.map_or_else(String::new, |process| format!(", {process}"));
    let verdict = finding.verdict.word().to_uppercase();
    let head = format!("{verdict}{}  {}: {}{process}", score(finding), clean(&finding.rule), clean(finding.title()));
    writeln!(out, "\n{head}").ok();
    fold(out, "  ", &clean(&finding.sentence));
    let place = place(finding);
    if !place.is_empty() {
        fold(out, "  where:  ", &clean(&place.join(", ")));
    }
    if let Some(cause) = &finding.cause_rule {
        fold(out, "  cause:  ", &clean(cause));
    }
    if finding.verdict >= Verdict::Info {
        fold(out, "  change: ", &clean(finding.advice()));
        fold(out, "  look closer: ", &clean(&finding.next_step));
    }
    if let Some(sql) = finding.evidence_sql.as_ref().filter(|_| everything) {
        writeln!(out, "  rows: {}", clean(sql)).ok();
    }
}

/// A score without its fraction, so that one below a limit does not read as the limit.
fn score(finding: &Finding) -> String {
    finding.score.map_or(String::new(), |score| format!(" {}", score.floor()))
}

/// Where it is: the user's method, and what it is about unless the sentence says it.
fn place(finding: &Finding) -> Vec<&str> {
    let subject = finding.subject.iter().filter(|subject| !finding.sentence.contains(subject.as_str()));
    finding.own_method.iter().chain(subject).map(String::as_str).collect()
}

/// Rules without a verdict, by how the events for them are recorded.
fn not_judged(out: &mut Lines, findings: &[Finding], everything: bool) {
    let without = |verdict| findings.iter().filter(move |finding| finding.verdict == verdict);
    let mut steps: Vec<(&str, Vec<&str>)> = Vec::new();
    for finding in without(Verdict::NotRecorded) {
        match steps.iter_mut().find(|(step, _)| *step == finding.next_step) {
            Some((_, rules)) => rules.push(&finding.rule),
            None => steps.push((&finding.next_step, vec![&finding.rule])),
        }
    }
    if !steps.is_empty() {
        writeln!(out, "\nNot recorded, or none seen").ok();
        for (step, rules) in steps {
            fold(out, "  ", &format!("{}: {}", clean(&rules.join(", ")), clean(step)));
        }
    }
    let few: Vec<&Finding> = without(Verdict::TooLittle).collect();
    if few.is_empty() {
        return;
    }
    writeln!(out, "\nToo little for a verdict").ok();
    if !everything {
        return fold(out, "  ", &few.iter().map(|finding| finding.rule.as_str()).collect::<Vec<_>>().join(", "));
    }
    for finding in few {
        fold(out, "  ", &format!("{}: {}", finding.rule, clean(&finding.sentence)));
    }
}

/// Writes words below each other, each line behind `head` or as much space.
fn fold(out: &mut Lines, head: &str, text: &str) {
    let room = out.width.saturating_sub(head.len());
    let mut line = String::new();
    let mut lead = head.to_owned();
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            writeln!(out, "{lead}{line}").ok();
            lead = " ".repeat(head.len());
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    writeln!(out, "{lead}{line}").ok();
}

fn markdown(all: &[Explained], everything: bool) -> String {
    let mut out = String::new();
    for explained in all {
        let Explained { trace_id, findings, .. } = explained;
        writeln!(out, "**{}**: {}\n", code(trace_id), verdict(findings)).ok();
        let least = if everything { Verdict::NotRecorded } else { Verdict::Info };
        let shown: Vec<&Finding> = findings.iter().filter(|finding| finding.verdict >= least).collect();
        if shown.is_empty() {
            continue;
        }
        out.push_str("| | score | rule | what is wrong | where | what to change | look closer |\n");
        out.push_str("|---|---:|---|---|---|---|---|\n");
        for finding in shown {
            let (word, score, rule) = (finding.verdict.word(), score(finding), code(&finding.rule));
            let what = format!("{}: {}", finding.title(), finding.sentence);
            let process = explained.process_of(finding);
            let place = process.iter().chain(&finding.own_method).chain(&finding.subject).map(|place| code(place));
            let place = place.collect::<Vec<_>>().join(", ");
            let (what, closer) = (code(&what), code(&finding.next_step));
            writeln!(
                out,
                "| {word} | {} | {rule} | {what} | {place} | {} | {closer} |",
                score.trim(),
                finding.advice()
            )
            .ok();
        }
        out.push('\n');
    }
    out
}

fn json(all: &[Explained]) -> anyhow::Result<String> {
    let one = |explained: &Explained, finding: &Finding| {
        serde_json::json!({
            "rule": finding.rule, "process_id": finding.process_id,
            "process": explained.processes.get(&finding.process_id), "verdict": finding.verdict.word(),
            "score": finding.score, "figure": finding.figure, "unit": finding.unit,
            "info_limit": finding.info_limit, "warning_limit": finding.warning_limit,
            "title": finding.title(), "advice": finding.advice(), "of_recording": finding.is_of_recording(),
            "subject": finding.subject, "own_method": finding.own_method, "sentence": finding.sentence,
            "cause_rule": finding.cause_rule, "evidence_sql": finding.evidence_sql,
            "next_step": finding.next_step, "doc": finding.doc,
        })
    };
    let recording = |explained: &Explained| {
        serde_json::json!({
            "trace_id": explained.trace_id,
            "findings": explained.findings.iter().map(|finding| one(explained, finding)).collect::<Vec<_>>(),
        })
    };
    Ok(serde_json::to_string_pretty(&all.iter().map(recording).collect::<Vec<_>>())? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded_and_none_is_lost() {
        let mut out = Lines { text: String::new(), width: 96 };
        let text = format!("{} {}", "word ".repeat(40).trim(), "x".repeat(200));
        fold(&mut out, "  own: ", &text);
        let out = out.text;
        assert!(out.lines().all(|line| line.chars().count() <= 96 || line.trim().len() == 200));
        assert_eq!(out.split_whitespace().skip(1).collect::<Vec<_>>().join(" "), text);
    }
}
