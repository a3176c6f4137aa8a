//! The result of a check as text, JSON, JUnit XML and Markdown.

use std::fmt::Write;

use tracequet::analyze::check::{Finding, Verdict};
use tracequet::analyze::metrics::Names;
use tracequet::analyze::present::units::counted;
use tracequet::analyze::present::{
    Amount, Answer, Cell, Color, Column, Document, Table, Unit, cut, numbers, table, words, xml,
};

use super::stats::{cell_of, shown};

/// Bytes that a job summary of GitHub may have.
pub const MAX_MARKDOWN: usize = 1 << 20;

/// The verdicts of a check, and how many runs there were.
pub struct Checked {
    pub findings: Vec<Finding>,
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

/// The findings, those that are not passed first.
fn sorted(findings: &[Finding]) -> Vec<&Finding> {
    let mut all: Vec<&Finding> = findings.iter().collect();
    all.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    all
}

fn head(Checked { findings, new, base }: &Checked) -> String {
    let number = |of: fn(&Finding) -> bool| findings.iter().filter(|finding| of(finding)).count();
    let warnings = match number(|f| f.verdict == Verdict::Failed && f.is_warning) {
        0 => String::new(),
        warnings => format!(", {}", counted(warnings as u64, "warning", "warnings")),
    };
    let few = if *new == 1 { "; no significance test with one run" } else { "" };
    format!(
        "{} against {}: {} failed{warnings}, {} undecided, {} passed{few}",
        counted(*new as u64, "run", "runs"),
        counted(*base as u64, "run of the baseline", "runs of the baseline"),
        number(|f| f.verdict == Verdict::Failed && !f.is_warning),
        number(|f| f.verdict == Verdict::Undecided),
        number(|f| f.verdict == Verdict::Passed),
    )
}

/// `5 / 4`: with those of the baseline. Without one the head says how many there are.
fn runs(finding: &Finding) -> Cell {
    match finding.baseline_runs {
        0 => Cell::Missing,
        base => Cell::words(format!("{} / {base}", finding.runs)),
    }
}

fn chance(finding: &Finding) -> String {
    finding.chance.map_or_else(String::new, |chance| format!("{chance:.3}"))
}

/// `+8.1 to +15.0 %`: between which changes that of a finding lies. Empty where it is not known, or the baseline is 0.
fn interval(f: &Finding) -> String {
    let interval = f.shift.and_then(|shift| shift.interval).zip(f.baseline.filter(|baseline| *baseline != 0.0));
    interval.map_or_else(String::new, |(bounds, baseline)| {
        let [low, high] = bounds.map(|by| Amount::new(by / baseline.abs(), Unit::Share).change().to_string());
        format!("{} to {high}", low.trim_end_matches(" %"))
    })
}

/// The change, and between which it lies.
fn change_of(f: &Finding) -> String {
    match (Cell::change_from(f.baseline, f.value).in_text(), interval(f)) {
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

/// A row for each finding.
fn table(findings: &[&Finding]) -> Table {
    let names = Names::of(findings.iter().map(|f| f.metric.as_str()));
    table!("check", findings, |f| color Some(color), {
        let color = match (f.verdict, f.is_warning) {
            (Verdict::Failed, false) => Color::Red,
            (Verdict::Passed, _) => Color::Green,
            (Verdict::Failed | Verdict::Undecided, _) => Color::Yellow,
        };
        let why = match (&f.look_at, f.verdict) {
            (Some(place), Verdict::Failed) => format!("{}; see {place}", f.why),
            _ => f.why.clone(),
        };
        let change = change_of(f);
        let of = |value| cell_of(&f.metric, value);
        let interval = f.shift.and_then(|shift| shift.interval);
    } {
        words("", "").key("verdict") => Cell::words(word(f).to_lowercase()).shown_as(Cell::words(word(f))),
        words("metric", "").key("metric") => Cell::text(&f.metric).shown_as(Cell::text(&names.shown(&f.metric))),
        numbers("value", "").key("value") => of(f.value),
        numbers("bound", "").key("bound") => of(f.bound),
        numbers("baseline", "").key("baseline") => of(f.baseline),
        numbers("change", "") => if change.is_empty() { Cell::Missing } else { Cell::words(change) },
        numbers("runs", "").key("runs") => Cell::count(f.runs as u64).shown_as(runs(f)),
        numbers("p", "").key("chance") => Cell::chance(f.chance),
        words("rule", "").key("rule") => Cell::text(&f.rule),
        words("why", "").key("why") => Cell::text(&f.why).shown_as(Cell::sentence(&why)),
        Column::raw("look_at") => Cell::optional(f.look_at.as_deref()),
        Column::raw("baseline_runs") => Cell::count(f.baseline_runs as u64),
        Column::raw("shift") => of(f.shift.map(|shift| shift.estimate)),
        Column::raw("shift_low") => of(interval.map(|[low, _]| low)),
        Column::raw("shift_high") => of(interval.map(|[_, high]| high)),
    })
    .with_sentences(2)
}

impl Answer for Checked {
    fn document(&self) -> Document {
        let mut out = Document::default();
        out.line(head(self));
        out.table(table(&sorted(&self.findings)));
        out
    }

    /// A row for each rule, in the order of the file.
    fn rows(&self) -> Table {
        table(&self.findings.iter().collect::<Vec<_>>())
    }
}

/// Markdown of at most `room` bytes; the last line says how many findings are left out.
pub fn markdown(checked: &Checked, room: usize) -> String {
    let head = format!("### Performance\n\n{}\n\n", head(checked));
    let all = table(&sorted(&checked.findings)).markdown();
    // Room for the last line.
    if head.len() + all.len() <= room {
        return head + &all;
    }
    let most = room.saturating_sub(head.len() + 100);
    let rows = cut(&all, most).rsplit_once('\n').map(|(rows, _)| rows);
    let Some(rows) = rows.filter(|rows| rows.lines().count() > 1) else { return String::new() };
    format!("{head}{rows}\n\n{} more\n\n", checked.findings.len() - (rows.lines().count() - 2))
}

/// JUnit XML: a rule is a test, one that is undecided is skipped.
pub fn junit(findings: &[Finding]) -> String {
    let failed = |f: &&Finding| f.verdict == Verdict::Failed && !f.is_warning;
    let undecided = |f: &&Finding| f.verdict == Verdict::Undecided;
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out += &format!(
        "<testsuite name=\"tracequet\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n",
        findings.len(),
        findings.iter().filter(failed).count(),
        findings.iter().filter(undecided).count(),
    );
    for f in findings {
        let what = sentence(f);
        write!(out, "  <testcase classname=\"{}\" name=\"{}\">", xml(&f.metric), xml(&f.rule)).ok();
        match f.verdict {
            Verdict::Failed if !f.is_warning => write!(out, "<failure message=\"{}\"/>", xml(&what)).ok(),
            Verdict::Undecided => write!(out, "<skipped message=\"{}\"/>", xml(&what)).ok(),
            _ => write!(out, "<system-out>{}</system-out>", xml(&what)).ok(),
        };
        out.push_str("</testcase>\n");
    }
    out.push_str("</testsuite>\n");
    out
}
