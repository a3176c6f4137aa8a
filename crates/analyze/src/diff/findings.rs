//! Findings that came and went.

use std::collections::BTreeSet;

use super::measure::Measured;
use crate::findings::{Finding, Verdict};
use crate::samples::{CHANCE, can_tell, chance, median};

/// The finding of a rule on one side.
#[derive(Clone, Debug)]
pub struct SideFinding {
    /// The verdict in the middle of those of its recordings that have one.
    pub verdict: Verdict,
    /// Median of their scores.
    pub score: Option<f64>,
    /// Recordings with a verdict.
    pub recordings: usize,
}

/// A finding that is not the same on both sides.
#[derive(Clone, Debug)]
pub struct FindingChange {
    /// The rule.
    pub rule: String,
    /// `came`, `went`, `worse`, `better`; `only_new` and `only_base` when the other side could not be judged; `unclear`
    /// in place of `worse` and `better` when chance could make it or no test says that it could not.
    pub what: &'static str,
    /// The way it goes, whether or not chance made it.
    pub toward: &'static str,
    /// Probability of such a difference of scores by chance; `None` when there are too few recordings for a test.
    pub chance: Option<f64>,
    /// Whether chance may have made it, though there are enough recordings to tell.
    pub is_noise: bool,
    /// The base.
    pub base: SideFinding,
    /// The new side.
    pub new: SideFinding,
    /// The strongest one of a recording: of the new side, or of the base if it went.
    pub finding: Finding,
    /// The key of that recording.
    pub trace_id: String,
    /// Whether that recording is of the base.
    pub is_of_base: bool,
}

fn is_judged(finding: &Finding) -> bool {
    finding.verdict >= Verdict::Fine
}

/// The strongest one of a rule: several processes may have one each.
fn strongest<'m>(measured: &'m Measured, rule: &str) -> Option<&'m Finding> {
    let of_rule = measured.findings.iter().filter(|finding| finding.rule == rule);
    of_rule.max_by(|a, b| {
        let score = |finding: &Finding| finding.score.unwrap_or(-1.0);
        a.verdict.cmp(&b.verdict).then(score(a).total_cmp(&score(b)))
    })
}

fn side(all: &[Measured], rule: &str) -> SideFinding {
    let found: Vec<&Finding> = all.iter().filter_map(|measured| strongest(measured, rule)).collect();
    let mut judged: Vec<Verdict> = found.iter().filter(|one| is_judged(one)).map(|one| one.verdict).collect();
    judged.sort_unstable();
    let unjudged = found.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::NotRecorded);
    let scores: Vec<f64> = found.iter().filter_map(|finding| finding.score).collect();
    SideFinding {
        verdict: judged.get(judged.len() / 2).copied().unwrap_or(unjudged),
        score: median(&scores),
        recordings: judged.len(),
    }
}

/// Scores of a rule, 0 where it finds nothing, in the recordings that could be judged.
fn scores(all: &[Measured], rule: &str) -> Vec<f64> {
    let judged = all.iter().filter_map(|measured| strongest(measured, rule)).filter(|finding| is_judged(finding));
    judged.map(|finding| finding.score.unwrap_or_default()).collect()
}

/// The findings that are not the same, those that came first, and of each kind those with the highest score.
pub(super) fn changes(base: &[Measured], new: &[Measured], noise: f64) -> Vec<FindingChange> {
    let rules: BTreeSet<&str> =
        base.iter().chain(new).flat_map(|measured| &measured.findings).map(|finding| finding.rule.as_str()).collect();
    let mut found: Vec<FindingChange> = rules.into_iter().filter_map(|rule| change(base, new, rule, noise)).collect();
    let rank =
        |what: &str| ["came", "worse", "only_new", "went", "better", "only_base"].iter().position(|one| *one == what);
    let score = |change: &FindingChange| change.new.score.or(change.base.score).unwrap_or_default();
    let key = |change: &FindingChange| (change.is_noise, rank(change.toward));
    found.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| score(b).total_cmp(&score(a))));
    found
}

fn change(base: &[Measured], new: &[Measured], rule: &str, noise: f64) -> Option<FindingChange> {
    let (before, now) = (side(base, rule), side(new, rule));
    let is_found = |side: &SideFinding| side.verdict >= Verdict::Info;
    let is_judged = |side: &SideFinding| side.verdict >= Verdict::Fine;
    // Scores go up to 100.
    let more = now.score.unwrap_or_default() - before.score.unwrap_or_default();
    let differs = now.verdict != before.verdict || more.abs() > noise * 100.0;
    let toward = match (is_found(&before), is_found(&now)) {
        (false, false) => return None,
        (true, true) if !differs => return None,
        (true, true) if more > 0.0 => "worse",
        (true, true) => "better",
        (false, true) if is_judged(&before) => "came",
        (false, true) => "only_new",
        (true, false) if is_judged(&now) => "went",
        (true, false) => "only_base",
    };
    let chance = chance(&scores(new, rule), &scores(base, rule));
    let by_chance = chance.is_none_or(|chance| chance > CHANCE);
    let what = if by_chance && matches!(toward, "worse" | "better") { "unclear" } else { toward };
    let is_noise = by_chance && can_tell(base.len(), new.len()) && !toward.starts_with("only");
    let is_of_base = !is_found(&now);
    let all = if is_of_base { base } else { new }.iter();
    let all = all.filter_map(|measured| Some((strongest(measured, rule)?, measured.run.trace_id.clone())));
    let (finding, trace_id) =
        all.max_by(|(a, _), (b, _)| a.score.unwrap_or(-1.0).total_cmp(&b.score.unwrap_or(-1.0)))?;
    Some(FindingChange {
        rule: rule.to_owned(),
        what,
        toward,
        chance,
        is_noise,
        base: before,
        new: now,
        finding: finding.clone(),
        trace_id,
        is_of_base,
    })
}
