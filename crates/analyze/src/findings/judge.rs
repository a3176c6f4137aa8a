//! From a picture of the recording to findings: each rule is asked about each process.

use std::cmp::Reverse;

use super::picture::{Picture, Process};
use super::rule::{Judged, Look, Rule};
use super::rules::RULES;
use super::score::{INFO, WARNING, score};
use super::words;
use crate::metrics::Missing;

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Verdict {
    /// Its events were not recorded: nothing is known.
    NotRecorded,
    /// There is too little for a verdict.
    TooLittle,
    /// Nothing is wrong.
    Fine,
    /// Worth a look.
    Info,
    /// Something is wrong.
    Warning,
}

impl Verdict {
    /// The word, as the table has it.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::NotRecorded => "not_recorded",
            Verdict::TooLittle => "too_little",
            Verdict::Fine => "fine",
            Verdict::Info => "info",
            Verdict::Warning => "warning",
        }
    }

    /// The one that a word stands for; of an unknown word none is given.
    pub(super) fn of_word(word: &str) -> Verdict {
        let all = [Verdict::Warning, Verdict::Info, Verdict::Fine, Verdict::TooLittle];
        all.into_iter().find(|verdict| verdict.word() == word).unwrap_or(Verdict::NotRecorded)
    }

    fn of_score(score: f64) -> Verdict {
        match score {
            score if score >= WARNING => Verdict::Warning,
            score if score >= INFO => Verdict::Info,
            _ => Verdict::Fine,
        }
    }
}

/// What a rule says of a recording or a process: a row of the table `finding`, which describes the fields.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "schemas/tables/finding.toml says it")]
#[non_exhaustive]
pub struct Finding {
    pub rule: String,
    pub process_id: u64,
    pub verdict: Verdict,
    pub score: Option<f64>,
    pub figure: Option<f64>,
    pub unit: String,
    pub info_limit: f64,
    pub warning_limit: f64,
    pub subject: Option<String>,
    pub own_method: Option<String>,
    pub sentence: String,
    pub cause_rule: Option<String>,
    pub evidence_sql: Option<String>,
    pub next_step: String,
    pub doc: String,
}

/// All findings, the most important first.
pub(super) fn all(picture: &Picture, trace_id: Option<&str>) -> Vec<Finding> {
    let trace = match trace_id {
        Some(key) => words::quoted(key),
        None => "only_trace()".to_owned(),
    };
    let none = Process::default();
    let mut found: Vec<Finding> = Vec::new();
    for rule in RULES {
        let look = |id: u64, process| {
            let of_trace = format!("trace_id = {trace}");
            let of_process = if id == 0 { of_trace.clone() } else { format!("{of_trace} AND process_id = {id}") };
            one(rule, &Look { picture, process, id, trace: &trace, of_trace, of_process })
        };
        if rule.of_recording || picture.processes.is_empty() {
            found.push(look(0, &none));
            continue;
        }
        let mut each: Vec<Finding> = picture.processes.iter().map(|(id, process)| look(*id, process)).collect();
        if each.len() > 1 {
            // Of many processes those of interest have a row, and else the best verdict stands for all.
            each.sort_by_key(|finding| Reverse(finding.verdict));
            let of_interest = each.iter().filter(|finding| finding.verdict >= Verdict::Info).count();
            each.truncate(of_interest.max(1));
        }
        found.extend(each);
    }
    causes(&mut found);
    sort(&mut found);
    found
}

fn one(rule: &Rule, look: &Look<'_>) -> Finding {
    let finding = Finding {
        rule: rule.name.to_owned(),
        process_id: if rule.of_recording { 0 } else { look.id },
        verdict: Verdict::NotRecorded,
        score: None,
        figure: None,
        unit: rule.unit.to_owned(),
        info_limit: rule.info,
        warning_limit: rule.warning,
        subject: None,
        own_method: None,
        sentence: "Its events were not recorded.".to_owned(),
        cause_rule: None,
        evidence_sql: None,
        next_step: format!("tracequet collect --for {}", rule.record),
        doc: format!("docs/FINDINGS.md#{}", rule.name),
    };
    let is_recorded = rule.needs.is_empty() || rule.needs.iter().any(|need| look.picture.has(need));
    let is_known = rule.needs.iter().all(|need| look.picture.needs.missing(Some(need)) == Some(Missing::NotAsked));
    let figure = match (rule.judge)(look) {
        Judged::Figure(figure) if is_recorded || figure.rows > 0 => *figure,
        Judged::TooLittle(why) if is_recorded => {
            return Finding { verdict: Verdict::TooLittle, sentence: why, ..finding };
        }
        _ if is_known => return finding,
        _ => {
            let sentence = "No event of its kind is in the recording, and nothing says whether they were asked for.";
            return Finding { sentence: sentence.to_owned(), ..finding };
        }
    };
    let score = score(figure.value, rule.info, rule.warning).min(figure.at_most.unwrap_or(100.0));
    let verdict = Verdict::of_score(score);
    let Picture { dropped, events, .. } = look.picture;
    if verdict == Verdict::Fine && !rule.of_recording && dropped.saturating_mul(100) > *events {
        let sentence = "More than 1 % of the events were lost: what there was may be among them.".to_owned();
        return Finding { verdict: Verdict::TooLittle, sentence, ..finding };
    }
    Finding {
        verdict,
        score: Some(score),
        figure: Some(figure.value),
        subject: figure.subject,
        own_method: figure.own_method,
        sentence: figure.sentence,
        evidence_sql: Some(figure.evidence),
        next_step: rule.next.to_owned(),
        ..finding
    }
}

/// A finding with this score may be the cause of one with any.
const CAUSE: f64 = 50.0;

/// Where a cause of a finding is found, too, it is named.
fn causes(found: &mut [Finding]) {
    let of_interest: Vec<(String, u64, f64)> = found
        .iter()
        .filter(|finding| finding.verdict >= Verdict::Info)
        .map(|finding| (finding.rule.clone(), finding.process_id, finding.score.unwrap_or_default()))
        .collect();
    for finding in found.iter_mut().filter(|finding| finding.verdict >= Verdict::Info) {
        let Some(rule) = RULES.iter().find(|rule| rule.name == finding.rule) else { continue };
        // A small matter is not the cause of a large one.
        let enough = finding.score.unwrap_or_default().min(CAUSE);
        let is_found = |cause: &&&str| {
            let is_it = |(rule, process, score): &(String, u64, f64)| {
                rule == **cause && *process == finding.process_id && *score >= enough
            };
            of_interest.iter().any(is_it)
        };
        finding.cause_rule = rule.causes.iter().find(is_found).map(|cause| (*cause).to_owned());
    }
}

/// By importance: causes before what comes from them, then by score; rules of one score in the order in which they are listed.
pub(super) fn sort(found: &mut [Finding]) {
    let place = |finding: &Finding| RULES.iter().position(|rule| rule.name == finding.rule);
    found.sort_by(|a, b| {
        let rank = |finding: &Finding| (finding.verdict < Verdict::Info, finding.cause_rule.is_some());
        let by_verdict = Reverse(a.verdict).cmp(&Reverse(b.verdict));
        let by_score = b.score.unwrap_or(-1.0).total_cmp(&a.score.unwrap_or(-1.0));
        rank(a).cmp(&rank(b)).then(by_verdict).then(by_score).then(place(a).cmp(&place(b)))
    });
}
