//! From a picture of the recording to findings: each rule is asked about each process.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use super::closer;
use super::picture::{Picture, Process};
use super::rule::{Judged, Lack, Look, Rule};
use super::rules::{RULES, title_of};
use super::score::{INFO, score};
use super::verdict::Verdict;
use super::words;
use crate::metrics::Missing;

/// A figure of fewer rows than its rule asks for is a warning only from this many rows on: three of three GCs prove a share, and are not many.
const WARNING_ROWS: u64 = 6;

/// What a rule says of a recording or a process: a row of the table `finding`, which describes the fields.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "schemas/tables/finding.toml says it")]
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

impl Finding {
    /// What is wrong, as a heading: the title of its rule, or the name of a rule that this version does not have.
    pub fn title(&self) -> &str {
        title_of(&self.rule)
    }

    /// What to change, in terms of code; empty where nothing is wrong, or of a rule that this version does not have.
    pub fn advice(&self) -> &'static str {
        super::rule(&self.rule).filter(|_| self.verdict >= Verdict::Info).map_or("", |rule| rule.advice)
    }

    /// Whether it is about the recording, and not about the program.
    pub fn is_of_recording(&self) -> bool {
        super::rule(&self.rule).is_some_and(|rule| rule.of_recording)
    }

    /// The command that shows more, for an input. It runs as it stands. `inspect` takes no keys.
    pub fn command(&self, (path, key): &(String, Option<String>)) -> String {
        let path = words::in_shell(path);
        let key = key.as_ref().filter(|_| !self.next_step.starts_with("tracequet inspect"));
        let input = key.map_or(path.clone(), |key| format!("{path} --trace {}", words::in_shell(key)));
        self.next_step.split(' ').map(|word| if word == "IN" { &input } else { word }).collect::<Vec<_>>().join(" ")
    }
}

/// A recording on a command line, by its key: a path, and the key where that path has several recordings.
pub type Input<'i> = &'i dyn Fn(&str) -> (String, Option<String>);

/// All findings, the most important first.
pub(super) fn all(picture: &Picture, trace_id: Option<&str>) -> Vec<Finding> {
    let trace = if let Some(key) = trace_id { words::quoted(key) } else { "only_trace()".to_owned() };
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
    if rule.made_by.is_some_and(|events| look.picture.has(events)) {
        let sentence = "The way of recording makes it: a profiler that watches GCs switches background GCs off and works in pauses.";
        return Finding { sentence: sentence.to_owned(), ..finding };
    }
    let is_recorded = rule.needs.is_empty() || rule.needs.iter().any(|need| look.picture.has(need));
    let is_known = rule.needs.iter().all(|need| look.picture.needs.missing(Some(need)) == Some(Missing::NotAsked));
    let figure = match (rule.judge)(look) {
        Judged::Figure(figure) if is_recorded || figure.rows > 0 => *figure,
        Judged::TooLittle(lack) if is_recorded => return too_little(finding, look, lack),
        _ if is_known => return finding,
        _ => {
            let sentence = "No event of its kind is in the recording, and nothing says whether they were asked for.";
            return Finding { sentence: sentence.to_owned(), ..finding };
        }
    };
    let mut score_of = score(figure.value, rule.info, rule.warning).min(figure.at_most.unwrap_or(100.0));
    if let Some(few) = figure.few {
        score_of = score_of.min(score(few.least, rule.info, rule.warning));
        if figure.rows < WARNING_ROWS {
            score_of = score_of.min(60.0);
        }
        if score_of < INFO {
            return if is_recorded { too_little(finding, look, few.lack) } else { finding };
        }
    }
    let verdict = Verdict::of_score(score_of);
    let Picture { dropped, events, .. } = look.picture;
    if verdict == Verdict::Fine && !rule.of_recording && dropped.saturating_mul(100) > *events {
        let why = "More than 1 % of the events were lost: what there was may be among them.".to_owned();
        return too_little(finding, look, Lack { why, times: 0.0 });
    }
    let next_step = closer::command(rule.closer, look, figure.subject.as_deref());
    let evidence = if figure.evidence.is_empty() { look.sql(rule.query) } else { figure.evidence };
    Finding {
        verdict,
        score: Some(score_of),
        figure: Some(figure.value),
        subject: figure.subject,
        own_method: figure.own_method,
        sentence: figure.sentence,
        evidence_sql: Some(evidence),
        next_step,
        ..finding
    }
}

/// Seconds that people record for.
const TIMES: [u32; 5] = [10, 30, 60, 120, 300];

/// No verdict, with the time that a recording has to take for one.
fn too_little(finding: Finding, look: &Look<'_>, lack: Lack) -> Finding {
    // A little more than it takes by the rate so far.
    let wanted = look.seconds() * lack.times * 1.2;
    let seconds = TIMES.into_iter().find(|seconds| f64::from(*seconds) >= wanted).unwrap_or(600);
    let longer = if lack.times > 0.0 { format!(" --duration {seconds}s") } else { String::new() };
    let next_step = finding.next_step.clone() + &longer;
    Finding { verdict: Verdict::TooLittle, sentence: lack.why, next_step, ..finding }
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

/// By importance: what is wrong with the program, what is wrong with the recording, then all that is not of interest. A cause stands before
/// what comes from it, and these directly below it; a group is placed by its highest member.
pub(super) fn sort(found: &mut Vec<Finding>) {
    let place = |finding: &Finding| RULES.iter().position(|rule| rule.name == finding.rule);
    found.sort_by(|a, b| {
        let rank = |finding: &Finding| (finding.verdict < Verdict::Info, finding.is_of_recording());
        let by_verdict = Reverse(a.verdict).cmp(&Reverse(b.verdict));
        let by_score = b.score.unwrap_or(-1.0).total_cmp(&a.score.unwrap_or(-1.0));
        rank(a).cmp(&rank(b)).then(by_verdict).then(by_score).then(place(a).cmp(&place(b)))
    });
    let mut all: Vec<Option<Finding>> = std::mem::take(found).into_iter().map(Some).collect();
    let order = in_groups(&all.iter().flatten().collect::<Vec<_>>());
    found.extend(order.into_iter().filter_map(|at| all.get_mut(at)?.take()));
}

/// The places of findings, each cause with what comes from it below. A table of another program may name causes in a circle.
fn in_groups(found: &[&Finding]) -> Vec<usize> {
    let key = |finding: &Finding, rule: &str| (rule.to_owned(), finding.process_id, finding.verdict >= Verdict::Info);
    let mut places: HashMap<(String, u64, bool), usize> = HashMap::new();
    for (at, finding) in found.iter().enumerate() {
        places.entry(key(finding, &finding.rule)).or_insert(at);
    }
    let cause_of = |at: usize| found.get(at).and_then(|of| places.get(&key(of, of.cause_rule.as_ref()?)).copied());
    let mut effects: HashMap<usize, Vec<usize>> = HashMap::new();
    for at in 0..found.len() {
        if let Some(cause) = cause_of(at) {
            effects.entry(cause).or_default().push(at);
        }
    }
    let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
    for at in 0..found.len() {
        let mut first = at;
        for _ in 0..RULES.len() {
            first = cause_of(first).filter(|cause| !seen.contains(cause)).unwrap_or(first);
        }
        let mut next = vec![at, first];
        while let Some(at) = next.pop() {
            if seen.insert(at) {
                order.push(at);
                next.extend(effects.get(&at).into_iter().flatten().rev());
            }
        }
    }
    order
}
