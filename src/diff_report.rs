//! A difference as text, JSON and Markdown.

use std::fmt::Write;

use serde_json::{Value as Json, json};
use tracequet::analyze::diff::{
    Absent, Compared, Difference, FindingChange, HeapChange, Measured, MetricChange, MetricRow, Per, Row, Section,
    Side, SideFinding, Value,
};
use tracequet::analyze::present::code;
use tracequet::analyze::samples::median;
use tracequet::report::changes::{amount, own_method, side_of, title, way};

use super::check_report;
use super::heap_diff;
use super::names::Names;
use super::stats::shown;
use super::text::{Color, Columns, clean, count, counted, duration, wrapped};

/// Version of the JSON: it rises when a field changes its meaning or goes.
const VERSION: u32 = 2;

/// Rows of all parts together that are shown without --all, and of one part at least.
const ROWS: usize = 30;
const LEAST_ROWS: usize = 3;
const MOST_ROWS: usize = 10;

/// What there is to say.
pub struct Report {
    pub compared: Compared,
    pub noise: f64,
    /// The head of what stands beside the own method.
    pub beside: &'static str,
    pub all: bool,
    pub is_colored: bool,
}

/// A part of the output: a sentence, a table, and sentences below it.
struct Part {
    title: &'static str,
    head: String,
    heads: [&'static str; 8],
    rows: Vec<[String; 8]>,
    /// The columns with names of the recording.
    names: &'static [usize],
    /// Rows that are not among `rows`, because they are within noise.
    noise: usize,
    below: Vec<String>,
}

fn chance(chance: Option<f64>) -> String {
    chance.map_or_else(String::new, |chance| format!("{chance:.3}"))
}

fn color_of(way: &str) -> Option<Color> {
    match way {
        "worse" | "came" => Some(Color::Red),
        "better" | "went" => Some(Color::Green),
        _ => None,
    }
}

impl Report {
    /// What users feel comes before what the program does.
    fn parts(&self) -> Vec<Part> {
        let mut parts = vec![self.findings(), self.metrics()];
        parts.extend(self.compared.difference.sections.iter().filter_map(|section| self.section(section)));
        parts.extend(self.compared.heap.as_ref().map(|change| heap(change, self.all)));
        parts
    }

    fn findings(&self) -> Part {
        let side = |side: &SideFinding| match side.score {
            Some(score) => format!("{} {score:.0}", side.verdict.word()),
            None => side.verdict.word().to_owned(),
        };
        let all = &self.compared.difference.findings;
        let none = String::new;
        let cells = |change: &FindingChange| {
            let (own, sentence) = (change.finding.own_method.as_deref(), &change.finding.sentence);
            let what = way(change.what, change.toward).replace('_', " ");
            let (own, sentence) = (own.map_or_else(none, clean), clean(sentence));
            let (base, new) = (side(&change.base), side(&change.new));
            [what, base, new, chance(change.chance), clean(&change.rule), own, sentence, none()]
        };
        let rows: Vec<[String; 8]> = all.iter().filter(|change| self.all || !change.is_noise).map(cells).collect();
        Part {
            title: "Findings",
            head: if all.is_empty() { "the same on both sides".to_owned() } else { String::new() },
            heads: ["", "before", "now", ">chance", "rule", "own method", "sentence", ""],
            noise: all.len() - rows.len(),
            rows,
            names: &[4, 5, 6],
            below: Vec::new(),
        }
    }

    fn metrics(&self) -> Part {
        let all = &self.compared.difference.metrics;
        let names = Names::of(all.iter().map(|row| row.change.metric.as_str()));
        let none = String::new;
        let cells = |MetricRow { change, .. }: &MetricRow| {
            let value = |value: Option<f64>| value.map_or_else(String::new, |value| shown(&change.metric, value));
            [
                way(change.what, change.toward),
                clean(&names.shown(&change.metric)),
                value(change.base),
                value(change.new),
                check_report::change(change.base, change.new),
                chance(change.chance),
                none(),
                none(),
            ]
        };
        let rows: Vec<[String; 8]> = all.iter().filter(|row| self.all || !row.is_noise).map(cells).collect();
        Part {
            title: "Metrics",
            head: if rows.is_empty() { "none changed".to_owned() } else { "of whole recordings".to_owned() },
            heads: ["", "metric", ">before", ">now", ">change", ">chance", "", ""],
            noise: 0,
            rows,
            names: &[1],
            below: Vec::new(),
        }
    }

    /// Nothing where no side has anything.
    fn section(&self, section: &Section) -> Option<Part> {
        let per = self.compared.difference.per;
        if section.base.total.is_none() && section.new.total.is_none() {
            return None;
        }
        let cells = |row: &Row| {
            let value = |value: Option<Value>| value.and_then(|value| value.per(per));
            let (before, now) = (value(row.base), value(row.new));
            let shown = |value: Option<f64>| {
                value.map_or_else(|| "-".to_owned(), |value| amount(section.unit, per, value).to_string())
            };
            let beside = row.place.method.as_ref().or(row.place.type_name.as_ref());
            let share = row.new.or(row.base).and_then(|value| value.share);
            [
                row.change
                    .map_or_else(|| "-".to_owned(), |change| amount(section.unit, per, change).change().to_string()),
                check_report::change(before, now),
                shown(before),
                shown(now),
                share.map_or_else(String::new, |share| format!("{:.1} %", share * 100.0)),
                chance(row.chance),
                clean(own_method(&row.place)),
                beside.map_or_else(String::new, |name| clean(name)),
            ]
        };
        let rows = section.rows.iter().filter(|row| self.all || !row.is_noise);
        let rows: Vec<[String; 8]> = rows.map(cells).collect();
        let base = side_of(section, &section.base, &self.compared.base, per, "before");
        let new = side_of(section, &section.new, &self.compared.new, per, "now");
        Some(Part {
            title: title(section.subject),
            head: format!("{base}; {new}"),
            heads: [">change", ">%", ">before", ">now", ">share", ">chance", "own method", self.beside],
            noise: section.rows.len() - rows.len(),
            rows,
            names: &[6, 7],
            below: Vec::new(),
        })
    }

    /// What was compared, in sentences.
    fn head(&self) -> Vec<String> {
        let of = |side: &[Measured]| {
            let seconds: Vec<f64> = side.iter().filter_map(|measured| measured.seconds).collect();
            let seconds = median(&seconds).map_or_else(String::new, |s| format!(" of {}", duration((s * 1e9) as i64)));
            let requests: Vec<f64> = side.iter().filter_map(|measured| measured.requests).collect();
            let requests =
                median(&requests).map_or_else(String::new, |n| format!(" with {} requests", count(n as u64)));
            format!("{}{seconds}{requests}", counted(side.len() as u64, "recording", "recordings"))
        };
        let by = match self.compared.difference.per {
            Per::Request => "Amounts are divided by requests",
            Per::Second => "Amounts are divided by seconds",
            _ => "Amounts are those of a recording",
        };
        let percent = self.noise * 100.0;
        let noise = match (self.all, self.compared.difference.is_tested) {
            (true, _) => "all rows are shown".to_owned(),
            (_, true) => {
                format!("changes of less than {percent} %, and those that chance may have made, are left out (--all)")
            }
            (_, false) => {
                format!("changes of less than {percent} % of a row, 1 % of its part or 1 ms/s are left out (--all)")
            }
        };
        let mut all = vec![
            format!("Before: {}. Now: {}.", of(&self.compared.base), of(&self.compared.new)),
            format!("{by}; {noise}."),
        ];
        if !self.compared.difference.is_tested {
            let few =
                "Fewer than 4 recordings on a side: chance may have made any of these changes, and no test says which";
            all.push(format!("{few} (?)."));
        }
        all
    }
}

fn heap(change: &HeapChange, all: bool) -> Part {
    let rows = change.types.iter().filter(|change| all || !change.is_noise());
    let rows: Vec<[String; 8]> = rows.map(|change| heap_diff::cells(change).map(|cell| cell.in_text())).collect();
    Part {
        title: "Heap",
        head: heap_diff::head(change),
        heads: [">bytes", ">%", ">objects", ">retained", ">before", ">now", ">chance", "type"],
        noise: change.types.len() - rows.len(),
        rows,
        names: &[7],
        below: change.holders().collect(),
    }
}

/// How many rows of each part are shown.
fn room(parts: &[Part], all: bool) -> usize {
    if all {
        return usize::MAX;
    }
    let filled = parts.iter().filter(|part| !part.rows.is_empty()).count().max(1);
    (ROWS / filled).clamp(LEAST_ROWS, MOST_ROWS)
}

/// Rows that are not shown, in a sentence.
fn rest(part: &Part, room: usize) -> Option<String> {
    let more = part.rows.len().saturating_sub(room);
    let more = (more > 0).then(|| format!("{} more (--all)", count(more as u64)));
    let noise = (part.noise > 0).then(|| format!("{} within noise", count(part.noise as u64)));
    let all: Vec<String> = more.into_iter().chain(noise).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Without changes the head says so.
fn heading(part: &Part) -> String {
    let is_unchanged = part.rows.is_empty() && (part.noise > 0 || part.title == "Heap");
    let none = if is_unchanged { "; no change" } else { "" };
    let between = if part.head.is_empty() { "" } else { ": " };
    format!("{}{between}{}{none}", part.title, part.head)
}

pub fn text(report: &Report, width: usize) -> String {
    let mut out = String::new();
    for sentence in report.head() {
        wrapped(&sentence, width).for_each(|line| out.push_str(&format!("{line}\n")));
    }
    let parts = report.parts();
    let room = room(&parts, report.all);
    for part in &parts {
        out.push('\n');
        part.print(room, report.is_colored, width, &mut out);
    }
    out
}

impl Part {
    fn print(&self, room: usize, is_colored: bool, width: usize, out: &mut String) {
        wrapped(&heading(self), width).for_each(|line| out.push_str(&format!("{line}\n")));
        if !self.rows.is_empty() {
            let is_of_findings = self.title == "Findings";
            let mut columns = Columns::new(&self.heads).fitting(self.names, if is_of_findings { 3 } else { 0 });
            for row in self.rows.iter().take(room) {
                columns.colored(row.clone(), row.first().and_then(|way| color_of(way)).filter(|_| is_colored));
            }
            columns.print_within(width, out);
        }
        for line in rest(self, room).iter().chain(&self.below) {
            wrapped(line, width.saturating_sub(2)).for_each(|line| out.push_str(&format!("  {line}\n")));
        }
    }
}

pub fn markdown(report: &Report) -> String {
    let mut out = report.head().join(" ") + "\n";
    // Notes go to standard error, which a pull request does not show.
    for note in report.compared.said() {
        writeln!(out, "\n> {}", code(note)).ok();
    }
    let parts = report.parts();
    let room = room(&parts, report.all);
    for part in &parts {
        // Sentences about heaps have names of recordings.
        let heading = if part.title == "Heap" { code(&heading(part)) } else { heading(part).replace('|', "\\|") };
        writeln!(out, "\n**{heading}**\n").ok();
        let rows = || part.rows.iter().take(room);
        if !part.rows.is_empty() {
            let used: Vec<usize> =
                (0..8).filter(|at| rows().any(|row| row.get(*at).is_some_and(|c| !c.is_empty()))).collect();
            let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
            let head = |at: &usize| part.heads.get(*at).copied().unwrap_or_default();
            out += &line(used.iter().map(|at| head(at).trim_start_matches('>').to_owned()).collect());
            out += &line(
                used.iter().map(|at| if head(at).starts_with('>') { "---:" } else { "---" }.to_owned()).collect(),
            );
            for row in rows() {
                let cell = |at: &usize| match row.get(*at) {
                    Some(cell) if part.names.contains(at) && !cell.is_empty() => code(cell),
                    cell => cell.cloned().unwrap_or_default(),
                };
                out += &line(used.iter().map(cell).collect());
            }
            out.push('\n');
        }
        rest(part, room).iter().for_each(|line| out.push_str(&format!("{line}\n")));
        part.below.iter().for_each(|line| out.push_str(&format!("{}\n", code(line))));
    }
    out
}

pub fn json(report: &Report) -> anyhow::Result<String> {
    let Difference { per, sections, findings, metrics, is_tested, .. } = &report.compared.difference;
    let recording = |measured: &Measured| {
        json!({
            "trace_id": measured.run.trace_id, "labels": measured.run.labels, "seconds": measured.seconds,
            "requests": measured.requests, "has_losses": measured.run.has_losses,
        })
    };
    let recordings = |side: &[Measured]| side.iter().map(recording).collect::<Vec<Json>>();
    let finding = |change: &FindingChange| {
        let side = |side: &SideFinding| json!({ "verdict": side.verdict.word(), "score": side.score, "recordings": side.recordings });
        json!({
            "rule": change.rule, "what": change.what, "toward": change.toward, "base": side(&change.base),
            "new": side(&change.new), "chance": change.chance, "is_noise": change.is_noise,
            "sentence": change.finding.sentence, "own_method": change.finding.own_method,
            "subject": change.finding.subject, "next_step": change.finding.next_step, "doc": change.finding.doc,
        })
    };
    let metric = |MetricRow { change, is_noise, .. }: &MetricRow| {
        let MetricChange { metric, base, new, chance, what, toward, .. } = change;
        json!({
            "metric": metric, "what": what, "toward": toward, "base": base, "new": new, "chance": chance, "is_noise": is_noise,
        })
    };
    let all = json!({
        "version": VERSION,
        "base": recordings(&report.compared.base),
        "new": recordings(&report.compared.new),
        "incomparable": report.compared.incomparable,
        "notes": report.compared.notes,
        "per": per.word(),
        "is_tested": is_tested,
        "noise": report.noise,
        "sections": sections.iter().map(section_json).collect::<Vec<_>>(),
        "heap": report.compared.heap.as_ref().map(heap_diff::json),
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
        "metrics": metrics.iter().map(metric).collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

fn section_json(section: &Section) -> Json {
    let value = |value: &Option<Value>| {
        value.map(|value| {
            json!({
                "count": value.count, "amount": value.amount, "share": value.share, "per_second": value.per_second,
                "per_request": value.per_request,
            })
        })
    };
    let side = |side: &Side| {
        json!({
            "recordings": side.recordings, "absent": side.absent.map(Absent::word), "total": value(&side.total),
        })
    };
    let row = |row: &Row| {
        json!({
            "own_method": row.place.own_method.as_deref(), "has_stack": row.place.has_stack,
            "is_unnamed": row.place.is_unnamed,
            "method": row.place.method.as_deref(), "type": row.place.type_name.as_deref(),
            "base": value(&row.base), "new": value(&row.new), "change": row.change, "chance": row.chance,
            "is_noise": row.is_noise,
        })
    };
    json!({
        "what": section.subject.word(), "unit": section.unit.word(), "base": side(&section.base), "new": side(&section.new),
        "rows": section.rows.iter().map(row).collect::<Vec<_>>(),
    })
}
