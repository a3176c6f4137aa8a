//! A difference as an answer: findings, metrics, methods and types that changed.

use serde_json::{Value as Json, json};
use tracequet::analyze::diff::{
    Absent, By, Compared, Difference, FindingChange, HeapChange, Measured, MetricRow, Per, Section, Side,
    findings_table, metrics_table, types_table,
};
use tracequet::analyze::metrics::definition_of;
use tracequet::analyze::present::units::{count, counted, duration};
use tracequet::analyze::present::{Answer, Cell, Document, Sentence, Table, Unit, numbers, words};
use tracequet::analyze::samples::median;

use super::heap_diff;

/// Version of the JSON: it rises when a field changes its meaning or goes.
const VERSION: u32 = 2;

/// Rows of all parts together that are shown without --all, and of one part at least and at most.
const ROWS: usize = 30;
const LEAST_ROWS: usize = 3;
const MOST_ROWS: usize = 10;

/// A comparison, and how much of it is shown.
pub struct Report {
    pub compared: Compared,
    pub noise: f64,
    pub by: By,
    pub all: bool,
}

/// A part of the answer: a heading, a table, and sentences below it.
struct Part {
    heading: Sentence,
    table: Table,
    /// Rows that are within noise and not in the table.
    noise: usize,
    below: Vec<Cell>,
}

impl Report {
    /// The parts, those that users feel before those that the program does.
    fn parts(&self) -> Vec<Part> {
        let Difference { findings, metrics, sections, .. } = &self.compared.difference;
        let part = |heading: &str, table: Table, of: usize| Part {
            heading: heading.into(),
            noise: of.saturating_sub(table.len()),
            table,
            below: Vec::new(),
        };
        let head = if findings.is_empty() { "Findings: the same on both sides" } else { "Findings" };
        let mut parts = vec![part(head, findings_table(findings, self.all), findings.len())];
        let table = metrics_table(metrics, self.all);
        let head = if table.is_empty() { "Metrics: none changed" } else { "Metrics: of whole recordings" };
        // Most metrics do not change, which is not worth a line.
        parts.push(Part { noise: 0, ..part(head, table, 0) });
        // A section that no side has is left out.
        let known = sections.iter().filter(|section| section.base.total.is_some() || section.new.total.is_some());
        parts.extend(known.map(|section| self.section(section)));
        parts.extend(self.compared.heap.as_ref().map(|heap| self.heap(heap)));
        parts
    }

    fn section(&self, section: &Section) -> Part {
        let Compared { base, new, difference, .. } = &self.compared;
        let beside = match self.by {
            By::Method => Some("innermost"),
            By::Type => Some("type"),
            _ => None,
        };
        let table = section.table(difference.per, beside, self.all);
        let noise = section.rows.len() - table.len();
        let none = if table.is_empty() && noise > 0 { "; no change" } else { "" };
        let heading = format!("{}: {}{none}", section.subject.title(), section.totals(base, new, difference.per));
        Part { heading: heading.into(), table, noise, below: Vec::new() }
    }

    fn heap(&self, heap: &HeapChange) -> Part {
        let table = types_table(&heap.types, self.all);
        let none = if table.is_empty() { "; no change" } else { "" };
        Part {
            heading: Cell::sentence(&format!("Heap: {}{none}", heap_diff::head(heap))).into(),
            noise: heap.types.len() - table.len(),
            table,
            below: heap.holders().map(|held| Cell::sentence(&held)).collect(),
        }
    }

    /// Sentences on the two sides, and on what is left out.
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

    /// The number of rows of each part that people see.
    fn room(&self, parts: &[Part]) -> usize {
        let filled = parts.iter().filter(|part| !part.table.is_empty()).count().max(1);
        if self.all { usize::MAX } else { (ROWS / filled).clamp(LEAST_ROWS, MOST_ROWS) }
    }
}

impl Answer for Report {
    fn document(&self) -> Document {
        let mut out = Document::default();
        self.head().into_iter().for_each(|sentence| out.line(sentence));
        self.compared.said().for_each(|note| out.line(Cell::sentence(note)));
        let parts = self.parts();
        let room = self.room(&parts);
        for Part { heading, table, noise, below } in parts {
            out.heading(heading);
            let mut table = table.first(room);
            let more = (table.rest() > 0).then(|| format!("{} more (--all)", count(table.rest())));
            let noise = (noise > 0).then(|| format!("{} within noise", count(noise as u64)));
            if !table.is_empty() {
                table.without_empty();
                out.table(table);
            }
            let rest: Vec<String> = more.into_iter().chain(noise).collect();
            if !rest.is_empty() {
                out.note(rest.join(", "));
            }
            below.into_iter().for_each(|line| out.note(line));
        }
        out
    }

    /// One row for each finding, metric, method and type.
    fn rows(&self) -> Table {
        let columns = [
            words("part", "").key("part"),
            words("name", "").key("name"),
            words("method or type", "").key("beside"),
            words("change", "").key("what"),
            words("unit", "").key("unit"),
            numbers("before", "").key("base"),
            numbers("now", "").key("new"),
            numbers("chance", "").key("chance"),
            words("", "").key("is_noise"),
        ];
        let mut table = Table::new("differences", &columns);
        let number = |value: Option<f64>| Cell::number(value, Unit::Count);
        let mut add = |[part, name, beside, what, unit]: [Cell; 5], [base, new]: [_; 2], chance, is_noise| {
            let [base, new] = [base, new].map(number);
            table.row([part, name, beside, what, unit, base, new, Cell::chance(chance), Cell::Flag(is_noise, "noise")]);
        };
        let Difference { per, findings, metrics, sections, .. } = &self.compared.difference;
        for FindingChange { rule, what, chance, is_noise, base, new, .. } in findings {
            let [part, what, unit] = ["finding", what, "score"].map(Cell::words);
            add([part, Cell::text(rule), Cell::Missing, what, unit], [base.score, new.score], *chance, *is_noise);
        }
        for MetricRow { change, is_noise, .. } in metrics {
            let unit = definition_of(&change.metric).ok().flatten().map(|definition| definition.unit.as_str());
            let [part, what] = ["metric", change.what].map(Cell::words);
            let cells = [part, Cell::text(&change.metric), Cell::Missing, what, Cell::optional(unit)];
            add(cells, [change.base, change.new], change.chance, *is_noise);
        }
        for (section, row) in sections.iter().flat_map(|section| section.rows.iter().map(move |row| (section, row))) {
            let [own, method, type_name] = [&row.place.own_method, &row.place.method, &row.place.type_name];
            let [name, beside] = [own, if method.is_some() { method } else { type_name }];
            let [name, beside] = [name, beside].map(|name| Cell::optional(name.as_deref()));
            let unit = Cell::words(format!("{}{}", section.unit.word(), per.suffix()));
            let sides = [row.base, row.new].map(|value| value.and_then(|value| value.per(*per)));
            let cells = [Cell::words(section.subject.word()), name, beside, Cell::Missing, unit];
            add(cells, sides, row.chance, row.is_noise);
        }
        for change in self.compared.heap.iter().flat_map(|heap| &heap.types) {
            let [part, unit] = ["heap", "bytes"].map(Cell::words);
            let cells = [part, Cell::text(&change.name), Cell::Missing, Cell::Missing, unit];
            add(cells, [change.base.size_bytes, change.new.size_bytes].map(Some), change.chance, change.is_noise());
        }
        table
    }

    /// Both sides, and all rows of all parts.
    fn json(&self) -> Json {
        let Compared { base, new, difference, heap, incomparable, notes, .. } = &self.compared;
        let Difference { per, sections, findings, metrics, is_tested, .. } = difference;
        let recording = |measured: &Measured| {
            json!({
                "trace_id": measured.run.trace_id, "labels": measured.run.labels, "seconds": measured.seconds,
                "requests": measured.requests, "has_losses": measured.run.has_losses,
            })
        };
        let recordings = |side: &[Measured]| side.iter().map(recording).collect::<Vec<Json>>();
        let side = |side: &Side| {
            let total = side.total.map(|total| {
                json!({
                    "count": total.count, "amount": total.amount, "share": total.share,
                    "per_second": total.per_second, "per_request": total.per_request,
                })
            });
            json!({ "recordings": side.recordings, "absent": side.absent.map(Absent::word), "total": total })
        };
        let section = |section: &Section| {
            json!({
                "what": section.subject.word(), "unit": section.unit.word(), "base": side(&section.base),
                "new": side(&section.new), "rows": section.table(*per, None, true).json(),
            })
        };
        json!({
            "version": VERSION,
            "base": recordings(base),
            "new": recordings(new),
            "incomparable": incomparable,
            "notes": notes,
            "per": per.word(),
            "is_tested": is_tested,
            "noise": self.noise,
            "sections": sections.iter().map(section).collect::<Vec<_>>(),
            "heap": heap.as_ref().map(heap_diff::json),
            "findings": findings_table(findings, true).json(),
            "metrics": metrics_table(metrics, true).json(),
        })
    }
}
