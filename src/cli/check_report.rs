//! What came of a check: for people, as JSON, as JUnit XML and as Markdown.

use std::fmt::Write;

use tracequet::analyze::check::{Finding, Verdict};

use super::markdown::{cell, code};
use super::stats::shown;
use super::text::{Columns, clean, counted};

/// Bytes that a job summary of GitHub may have.
pub const MAX_MARKDOWN: usize = 1 << 20;

/// How many runs there were.
pub struct Facts {
    pub new: usize,
    pub base: usize,
}

fn word(finding: &Finding) -> &'static str {
    match (finding.verdict, finding.is_warning) {
        (Verdict::Passed, _) => "passed",
        (Verdict::Undecided, _) => "undecided",
        (Verdict::Failed, false) => "FAILED",
        (Verdict::Failed, true) => "warning",
    }
}

fn value(finding: &Finding, value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| shown(&finding.metric, value))
}

/// `+12.3 %`.
pub fn change(before: Option<f64>, now: Option<f64>) -> String {
    match before.zip(now) {
        Some((before, now)) if before != 0.0 => format!("{:+.1} %", (now - before) / before * 100.0),
        _ => String::new(),
    }
}

/// Those that are not passed first.
fn sorted(findings: &[Finding]) -> Vec<&Finding> {
    let mut all: Vec<&Finding> = findings.iter().collect();
    all.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    all
}

fn head(findings: &[Finding], facts: &Facts) -> String {
    let number = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let few = if facts.new == 1 { "; one run: bounds apply as they are, and nothing tells chance" } else { "" };
    format!(
        "{} against {}: {} failed, {} undecided, {} passed{few}",
        counted(facts.new as u64, "run", "runs"),
        counted(facts.base as u64, "run of the baseline", "runs of the baseline"),
        number(Verdict::Failed),
        number(Verdict::Undecided),
        number(Verdict::Passed),
    )
}

/// A table for people.
pub fn text(findings: &[Finding], facts: &Facts) -> String {
    let mut out = head(findings, facts) + "\n";
    let mut columns = Columns::new(&["", "metric", ">value", ">bound", ">baseline", "rule", "why"]);
    for f in sorted(findings) {
        let why = match (&f.look_at, f.verdict) {
            (Some(place), Verdict::Failed) => format!("{}; see {place}", f.why),
            _ => f.why.clone(),
        };
        columns.row([
            word(f).to_owned(),
            clean(&f.metric),
            value(f, f.value),
            value(f, f.bound),
            value(f, f.baseline),
            clean(&f.rule),
            clean(&why),
        ]);
    }
    columns.print(&mut out);
    out
}

/// Markdown of at most `room` bytes; the last line says how many findings are left out.
pub fn markdown(findings: &[Finding], facts: &Facts, room: usize) -> String {
    let mut out = format!("### Performance\n\n{}\n\n", head(findings, facts));
    out.push_str("| | metric | value | bound | baseline | change | why |\n|---|---|---:|---:|---:|---:|---|\n");
    for (number, f) in sorted(findings).into_iter().enumerate() {
        let place = f.look_at.as_deref().filter(|_| f.verdict == Verdict::Failed);
        let why = place.map_or_else(|| cell(&f.why), |place| format!("{}; see {}", cell(&f.why), code(place)));
        let cells = [
            word(f).to_owned(),
            code(&f.metric),
            value(f, f.value),
            value(f, f.bound),
            value(f, f.baseline),
            change(f.baseline, f.value),
            why,
        ];
        let row = format!("| {} |\n", cells.join(" | "));
        // Room for the last line.
        if out.len() + row.len() + 100 > room {
            writeln!(out, "\n{} more", findings.len() - number).ok();
            break;
        }
        out.push_str(&row);
    }
    out.push('\n');
    if out.len() <= room { out } else { String::new() }
}

/// An array of findings.
pub fn json(findings: &[Finding]) -> anyhow::Result<String> {
    let one = |f: &Finding| {
        serde_json::json!({
            "rule": f.rule, "metric": f.metric, "verdict": word(f).to_lowercase(), "value": f.value, "runs": f.runs,
            "baseline": f.baseline, "baseline_runs": f.baseline_runs, "bound": f.bound, "chance": f.chance, "why": f.why,
            "look_at": f.look_at,
        })
    };
    Ok(serde_json::to_string_pretty(&findings.iter().map(one).collect::<Vec<_>>())? + "\n")
}

/// JUnit XML: a rule is a test, one that is undecided is skipped.
pub fn junit(findings: &[Finding]) -> String {
    let failed = |f: &&Finding| f.verdict == Verdict::Failed && !f.is_warning;
    let undecided = |f: &&Finding| f.verdict == Verdict::Undecided;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    writeln!(
        out,
        "<testsuite name=\"tracequet\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">",
        findings.len(),
        findings.iter().filter(failed).count(),
        findings.iter().filter(undecided).count(),
    )
    .ok();
    for f in findings {
        let what = format!("{} (bound {}): {}", value(f, f.value), value(f, f.bound), f.why);
        let what = f.look_at.as_ref().map_or(what.clone(), |place| format!("{what}; see {place}"));
        write!(out, "  <testcase classname=\"{}\" name=\"{}\">", escaped(&f.metric), escaped(&f.rule)).ok();
        match f.verdict {
            Verdict::Failed if !f.is_warning => write!(out, "<failure message=\"{}\"/>", escaped(&what)).ok(),
            Verdict::Undecided => write!(out, "<skipped message=\"{}\"/>", escaped(&what)).ok(),
            _ => write!(out, "<system-out>{}</system-out>", escaped(&what)).ok(),
        };
        out.push_str("</testcase>\n");
    }
    out.push_str("</testsuite>\n");
    out
}

/// Text within XML. Characters that XML cannot have are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_are_text_in_xml() {
        assert_eq!(escaped("List<\"a\"&\u{1}>"), "List&lt;&quot;a&quot;&amp;\u{FFFD}&gt;");
    }
}
