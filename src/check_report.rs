//! The result of a check as text, JSON, JUnit XML and Markdown.

use std::fmt::Write;

use tracequet::analyze::check::{Finding, Verdict};

use tracequet::report::changes::part;

use super::markdown::code;
use super::names::Names;
use super::stats::shown;
use super::text::{Color, Columns, clean, counted, wrapped};

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
    part(before, now).map_or_else(String::new, |part| format!("{:+.1} %", part * 100.0))
}

/// Those that are not passed first.
fn sorted(findings: &[Finding]) -> Vec<&Finding> {
    let mut all: Vec<&Finding> = findings.iter().collect();
    all.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    all
}

fn head(findings: &[Finding], facts: &Facts) -> String {
    let number = |of: fn(&Finding) -> bool| findings.iter().filter(|finding| of(finding)).count();
    let warnings = match number(|f| f.verdict == Verdict::Failed && f.is_warning) {
        0 => String::new(),
        warnings => format!(", {}", counted(warnings as u64, "warning", "warnings")),
    };
    let few = if facts.new == 1 { "; no significance test with one run" } else { "" };
    format!(
        "{} against {}: {} failed{warnings}, {} undecided, {} passed{few}",
        counted(facts.new as u64, "run", "runs"),
        counted(facts.base as u64, "run of the baseline", "runs of the baseline"),
        number(|f| f.verdict == Verdict::Failed && !f.is_warning),
        number(|f| f.verdict == Verdict::Undecided),
        number(|f| f.verdict == Verdict::Passed),
    )
}

/// `5`, or `5 / 4` with those of the baseline.
fn runs(finding: &Finding) -> String {
    match finding.baseline_runs {
        0 => finding.runs.to_string(),
        base => format!("{} / {base}", finding.runs),
    }
}

fn chance(finding: &Finding) -> String {
    finding.chance.map_or_else(String::new, |chance| format!("{chance:.3}"))
}

/// `+8.1 to +15.0 %`: between which changes that of a finding lies. Empty where it is not known, or the baseline is 0.
fn interval(f: &Finding) -> String {
    let interval = f.shift.and_then(|shift| shift.interval).zip(f.baseline.filter(|baseline| *baseline != 0.0));
    interval.map_or_else(String::new, |([low, high], baseline)| {
        let percent = |by: f64| by / baseline.abs() * 100.0;
        format!("{:+.1} to {:+.1} %", percent(low), percent(high))
    })
}

/// The change, and between which it lies.
fn change_of(f: &Finding) -> String {
    match (change(f.baseline, f.value), interval(f)) {
        (change, interval) if interval.is_empty() => change,
        (change, interval) => format!("{change} ({interval})"),
    }
}

/// All there is to say of a finding, in a sentence.
fn sentence(f: &Finding) -> String {
    let runs = match (f.runs, f.baseline_runs) {
        (0, 0) => String::new(),
        (new, 0) => counted(new as u64, "run", "runs"),
        (new, base) => format!("{new} against {}", counted(base as u64, "run", "runs")),
    };
    let parts = [
        ("", value(f, f.value)),
        ("bound ", value(f, f.bound)),
        ("baseline ", value(f, f.baseline)),
        ("change ", change_of(f)),
        ("", runs),
        ("p = ", chance(f)),
    ];
    let parts = parts.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| format!("{name}{text}"));
    let mut out = parts.collect::<Vec<_>>().join(", ");
    for (between, text) in [(": ", f.why.as_str()), ("; see ", f.look_at.as_deref().unwrap_or_default())] {
        if !text.is_empty() {
            out.push_str(if out.is_empty() { "" } else { between });
            out.push_str(text);
        }
    }
    out
}

/// A table for people, in lines of at most `width` characters.
pub fn text(findings: &[Finding], facts: &Facts, is_colored: bool, width: usize) -> String {
    let mut out = wrapped(&head(findings, facts), width).collect::<Vec<_>>().join("\n") + "\n";
    let mut columns = Columns::new(&["", "metric", ">value", ">bound", ">baseline", "rule", "why"]).fitting(&[1], 2);
    let names = Names::of(findings.iter().map(|f| f.metric.as_str()));
    for f in sorted(findings) {
        let color = match (f.verdict, f.is_warning) {
            (Verdict::Failed, false) => Color::Red,
            (Verdict::Passed, _) => Color::Green,
            (Verdict::Failed | Verdict::Undecided, _) => Color::Yellow,
        };
        let why = match (&f.look_at, f.verdict) {
            (Some(place), Verdict::Failed) => format!("{}; see {place}", f.why),
            _ => f.why.clone(),
        };
        let cells = [
            word(f).to_owned(),
            clean(&names.shown(&f.metric)),
            value(f, f.value),
            value(f, f.bound),
            value(f, f.baseline),
            clean(&f.rule),
            clean(&why),
        ];
        columns.colored(cells, Some(color).filter(|_| is_colored));
    }
    columns.print_within(width, &mut out);
    out
}

/// Markdown of at most `room` bytes; the last line says how many findings are left out.
pub fn markdown(findings: &[Finding], facts: &Facts, room: usize) -> String {
    let mut out = format!("### Performance\n\n{}\n\n", head(findings, facts));
    out.push_str("| | metric | value | bound | baseline | change | runs | p | why |\n");
    out.push_str("|---|---|---:|---:|---:|---:|---:|---:|---|\n");
    for (number, f) in sorted(findings).into_iter().enumerate() {
        let place = f.look_at.as_deref().filter(|_| f.verdict == Verdict::Failed);
        // Names of recordings would become links and mentions if they were not code.
        let why = [Some(f.why.as_str()), place].into_iter().flatten().filter(|text| !text.is_empty());
        let why = why.map(code).collect::<Vec<_>>().join("; see ");
        let cells = [
            word(f).to_owned(),
            code(&f.metric),
            value(f, f.value),
            value(f, f.bound),
            value(f, f.baseline),
            change_of(f),
            runs(f),
            chance(f),
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
            "look_at": f.look_at, "shift": f.shift.map(|shift| shift.estimate),
            "shift_low": f.shift.and_then(|shift| shift.interval).map(|[low, _]| low),
            "shift_high": f.shift.and_then(|shift| shift.interval).map(|[_, high]| high),
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
        let what = sentence(f);
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
