//! What changed between two recordings, or two sets of them, as one page.

use std::fmt::Write;

use tracequet_analyze::diff::{
    self, Absent, Compared, Difference, FindingChange, HeapChange, Measured, MetricRow, Per, Place, Row, Section, Side,
    SideFinding, Subject, TypeChange, Value,
};
use tracequet_analyze::metrics::definition_of;
use tracequet_analyze::present::Unit::{Bytes, Count, Score};
use tracequet_analyze::present::units::{count, counted, duration, share};
use tracequet_analyze::present::{Amount, Cell, Table, cut, escaped, numbers, words};
use tracequet_analyze::profile::{Unit, What};
use tracequet_dataset::error::Result;
use tracequet_dataset::read::Dataset;

use crate::document::{Parts, document};
use crate::flame::Room;
use crate::flame_change::FlameChange;
use crate::packed::element;
use crate::page::{stacks, stacks_table};

/// Rows of a table, recordings that are named, and bytes of a name.
const MAX_ROWS: usize = 200;
const MAX_NAMED: usize = 20;
const MAX_NAME: usize = 200;

/// The tables that a page of changes is made of.
pub fn tables() -> Vec<&'static str> {
    let mut all = diff::tables();
    all.push("thread");
    all
}

/// An amount in its unit, divided as the difference says.
pub fn amount(unit: Unit, per: Per, value: f64) -> Amount {
    Amount::in_unit(value, unit.word()).per(by(per))
}

fn by(per: Per) -> &'static str {
    match per {
        Per::Request => "/request",
        Per::Second => "/s",
        _ => "",
    }
}

/// The heading of a part.
pub fn title(subject: Subject) -> &'static str {
    match subject {
        Subject::Cpu => "CPU",
        Subject::Allocation => "Allocations",
        Subject::Exception => "Exceptions",
        Subject::Contention => "Locks",
        Subject::Wait => "Waits",
        _ => subject.word(),
    }
}

/// Why a side has nothing, as the end of a sentence.
pub fn why(absent: Absent) -> String {
    match absent {
        Absent::Events(missing) => missing.why().to_owned(),
        Absent::Table(table) => format!("its dataset was made without the table {table}"),
        _ => "it was not recorded".to_owned(),
    }
}

/// What a side has of a subject, with `when` behind it: `1.25 s/s before`.
pub fn side_of(section: &Section, side: &Side, of: &[Measured], per: Per, when: &str) -> String {
    match (&side.total, side.absent) {
        (_, Some(absent)) => format!("nothing is known {when}: {}", why(absent)),
        (Some(total), _) => {
            let shown =
                total.per(per).map_or_else(|| "-".to_owned(), |value| amount(section.unit, per, value).to_string());
            let missing = of.len() - side.recordings;
            let missing = if missing > 0 { format!(" (not recorded in {missing})") } else { String::new() };
            format!("{shown} {when}{missing}")
        }
        (None, None) => format!("- {when}"),
    }
}

/// The own method of a place, or why there is none.
pub fn own_method(place: &Place) -> &str {
    match &place.own_method {
        Some(method) => method,
        None if !place.has_stack => "(no call stack)",
        None if place.is_unnamed => "(names were not recorded)",
        None => "(no code of your own)",
    }
}

/// What a change is. Where nothing says that chance did not make it, the way that it goes has a question mark.
pub fn way(what: &str, toward: &str) -> String {
    match (what, toward) {
        ("unclear", "better" | "worse") => format!("{toward}?"),
        ("unclear", "other") => toward.to_owned(),
        _ => what.to_owned(),
    }
}

/// The change as a part of the value before. `None` where that is 0, or one of both is not known.
pub fn part(before: Option<f64>, now: Option<f64>) -> Option<f64> {
    before.zip(now).filter(|(before, _)| *before != 0.0).map(|(before, now)| (now - before) / before)
}

/// Makes the page of two sides that were compared. `name` is its title; call stacks are read from the datasets of the base and of the new
/// side. Fails when a table cannot be read.
pub fn changes(name: &str, datasets: [&Dataset; 2], all: &Compared) -> Result<String> {
    let Difference { per, sections, findings, metrics, .. } = &all.difference;
    let mut parts = Parts::default();
    parts.add_or(
        "findings",
        "Findings",
        findings_part(findings),
        "Rules find the same on both sides, or the datasets have no table <code>finding</code>.",
    );
    parts.add_or("figures", "Figures", metrics_part(metrics), "No figure changed by more than noise.");
    let (mut unknown, mut room) = (String::new(), Room::default());
    for section in sections {
        let (id, title) = (section.subject.word(), title(section.subject));
        if section.base.total.is_none() && section.new.total.is_none() {
            let why = section.new.absent.map_or_else(String::new, why);
            writeln!(unknown, "<p class=\"none\">{title}: nothing is known of either side; {}.</p>", escaped(&why))
                .ok();
        } else {
            let graph = graph(id, title, section, *per, (datasets, all), &mut room)?;
            let (html, data) = graph.unwrap_or_default();
            parts.add(id, title, section_part(id, title, section, *per, all) + &html);
            parts.add_data(id, &data);
        }
    }
    let missing = "Heaps are not compared: a side has no heap dump. <code>tracequet collect --heap</code> records one.";
    parts.add_or("heap", "Heap", all.heap.as_ref().map(heap_part), missing);
    if !unknown.is_empty() {
        parts.add("unknown", "Not recorded on either side", unknown);
    }
    parts.add_missing();
    Ok(document(name, &head(*per, all), parts.parts))
}

fn profile_of(subject: Subject) -> Option<What> {
    match subject {
        Subject::Cpu => Some(What::Cpu),
        Subject::Allocation => Some(What::Allocation),
        Subject::Exception => Some(What::Exception),
        Subject::Contention => Some(What::Contention),
        Subject::Wait => Some(What::Wait),
        _ => None,
    }
}

/// The call stacks of both sides as one flame graph, and its data. `None` where a side does not have them, or weighs them otherwise.
fn graph(
    id: &str,
    title: &str,
    section: &Section,
    per: Per,
    (datasets, all): ([&Dataset; 2], &Compared),
    room: &mut Room,
) -> Result<Option<(String, String)>> {
    let Some(what) = profile_of(section.subject) else { return Ok(None) };
    let (mut flame, mut divided_by, mut unit) = (FlameChange::new(), [0.0; 2], None);
    let sides = datasets.into_iter().zip([&all.base, &all.new]).zip(&mut divided_by);
    for (side, ((dataset, recordings), divided_by)) in sides.enumerate() {
        for measured in recordings.iter().filter(|measured| measured.has(section.subject)) {
            let recording = dataset.recording(Some(&measured.run.trace_id))?;
            let Some(by) = per.of(measured).filter(|_| stacks_table(&recording, what).is_some()) else {
                return Ok(None);
            };
            *divided_by += by;
            let Some(profile) = stacks(&recording, what)? else { continue };
            if *unit.get_or_insert(profile.unit) != profile.unit {
                return Ok(None);
            }
            flame.add(&profile, side);
        }
    }
    let Some(unit) = unit.filter(|_| divided_by.iter().all(|by| *by > 0.0) && flame.all != [0; 2]) else {
        return Ok(None);
    };
    let packed = flame.packed(room)?;
    let [before, now] = [0, 1].map(|side| {
        let sum = flame.all.get(side).copied().unwrap_or_default() as f64;
        amount(unit, per, sum / divided_by.get(side).copied().unwrap_or(1.0))
    });
    let mut words = format!("Samples with call stacks: {before} before, {now} now.");
    if all.base.len() > 1 || all.new.len() > 1 {
        words += " A side of several recordings is all of them together, not their median.";
    }
    if flame.without_stack != [0; 2] {
        let [before, now] = flame.without_stack;
        words += &format!(" Without a call stack and left out: {before} samples before, {now} now.");
    }
    if packed.nodes < packed.of {
        words += &format!(
            " The graph has the {} largest of {} calls; the others, of at most {} of a side each, are merged into their callers.",
            count(packed.nodes as u64),
            count(packed.of as u64),
            share(packed.share)
        );
    }
    let of = |value: f64| amount(unit, per, value);
    let (table, note) = flame.table(&format!("{id}-functions-table"), &format!("{title} by function"), divided_by, of);
    let unit = unit.word();
    let [before, now] = divided_by;
    let html = format!(
        "<div class=\"stacks\" id=\"stacks-{id}\" data-flame=\"flame-{id}\" data-unit=\"{unit}\" data-before=\"{before}\" data-now=\"{now}\" data-per=\"{}\">\
         <h3>Call stacks</h3>\n<p class=\"note\">{}</p>\n<div class=\"graph\"></div>\n\
         <details><summary>The functions as a table</summary>\n<p class=\"note\">{}</p>\n{table}</details></div>\n",
        by(per),
        words,
        escaped(&note),
    );
    Ok(Some((html, element(&format!("flame-{id}"), &packed.data))))
}

fn head(per: Per, all: &Compared) -> String {
    let mut out = String::from("<dl class=\"facts\">\n");
    for (name, side) in [("Before", &all.base), ("Now", &all.new)] {
        let mut names: Vec<&str> = side.iter().map(|one| cut(&one.run.trace_id, MAX_NAME)).take(MAX_NAMED).collect();
        let more = format!("and {} more", count(side.len().saturating_sub(MAX_NAMED) as u64));
        if side.len() > MAX_NAMED {
            names.push(&more);
        }
        let names: Vec<String> = names.into_iter().map(escaped).collect();
        writeln!(out, "<div class=\"long\"><dt>{name}</dt><dd>{}</dd></div>", names.join(", ")).ok();
    }
    let by = match per {
        Per::Request => "requests",
        Per::Second => "seconds of the recording",
        _ => "nothing",
    };
    writeln!(out, "<div><dt>Amounts are divided by</dt><dd>{by}</dd></div>").ok();
    let span = |side: &[Measured]| {
        let seconds: f64 = side.iter().filter_map(|one| one.seconds).sum();
        duration((seconds * 1e9) as i64)
    };
    writeln!(out, "<div><dt>Length before, now</dt><dd>{}, {}</dd></div>", span(&all.base), span(&all.new)).ok();
    let losses = |side: &[Measured]| count(side.iter().filter(|one| one.run.has_losses).count() as u64);
    let words = "Recordings with losses before, now";
    writeln!(out, "<div><dt>{words}</dt><dd>{}, {}</dd></div>", losses(&all.base), losses(&all.new)).ok();
    out.push_str("</dl>\n");
    for note in all.said().take(MAX_NAMED) {
        writeln!(out, "<p class=\"none\">{}</p>", escaped(note)).ok();
    }
    out
}

fn findings_part(all: &[FindingChange]) -> Option<String> {
    let all: Vec<&FindingChange> = all.iter().filter(|change| !change.is_noise).collect();
    if all.is_empty() {
        return None;
    }
    let heads = [
        words("change", "came and went: the other side was judged; only: it could not be; ?: chance may have made it"),
        words("rule", "docs/FINDINGS.md has them"),
        words("before", "The verdict"),
        numbers("score", "Before, from 0 to 100"),
        words("now", "The verdict"),
        numbers("score", "Now, from 0 to 100"),
        words("sentence", "Of the side that has it"),
        words("own method", "Where it comes from"),
        words("next step", "A command that shows more"),
    ];
    let mut table = Table::new("findings-table", &heads);
    for change in all.iter().take(MAX_ROWS) {
        let verdict = |side: &SideFinding| Cell::text(&side.verdict.word().replace('_', " "));
        let score = |side: &SideFinding| Cell::number(side.score, Score);
        table.row(vec![
            Cell::text(&way(change.what, change.toward).replace('_', " ")),
            Cell::text(&change.rule.replace('_', " ")),
            verdict(&change.base),
            score(&change.base),
            verdict(&change.new),
            score(&change.new),
            Cell::text(&change.finding.sentence),
            Cell::optional(change.finding.own_method.as_deref()),
            Cell::text(&change.finding.next_step),
        ]);
    }
    Some(table.html("Findings that changed"))
}

fn metrics_part(all: &[MetricRow]) -> Option<String> {
    let all: Vec<&MetricRow> = all.iter().filter(|row| !row.is_noise).collect();
    if all.is_empty() {
        return None;
    }
    let heads = [
        words("change", "better or worse; other where neither way is good; ?: chance may have made it"),
        words("metric", "docs/METRICS.md has the definition of each"),
        numbers("before", "The median of the base"),
        numbers("now", "The median of the new side"),
        numbers("%", "The change as a share of the value before"),
        numbers("chance", "Probability of such a change by chance, with four recordings or more on each side"),
    ];
    let mut table = Table::new("metrics-table", &heads);
    for MetricRow { change, .. } in all.iter().copied().take(MAX_ROWS) {
        let unit = definition_of(&change.metric).ok().flatten().map_or("", |definition| definition.unit.as_str());
        let number = |value: Option<f64>| Cell::in_unit(value, unit);
        table.row(vec![
            Cell::text(&way(change.what, change.toward)),
            Cell::text(&change.metric),
            number(change.base),
            number(change.new),
            Cell::change(part(change.base, change.new)),
            Cell::chance(change.chance),
        ]);
    }
    Some(format!("{}{}", first_of(all.len(), "figure", "figures"), table.html("Figures that changed")))
}

/// A note where a table has not all rows.
fn first_of(of: usize, one: &str, many: &str) -> String {
    if of <= MAX_ROWS {
        return String::new();
    }
    format!("<p class=\"note\">The first {MAX_ROWS} of {}.</p>\n", counted(of as u64, one, many))
}

fn section_part(id: &str, title: &str, section: &Section, per: Per, all: &Compared) -> String {
    let unit = section.unit;
    let base = side_of(section, &section.base, &all.base, per, "before");
    let new = side_of(section, &section.new, &all.new, per, "now");
    let rows: Vec<&Row> = section.rows.iter().filter(|row| !row.is_noise).collect();
    let mut note = format!("{base}; {new}.");
    let noise = section.rows.len() - rows.len();
    if rows.is_empty() {
        note += " No method changed by more than noise.";
    } else if noise > 0 {
        note += &format!(" {} within noise and left out.", counted(noise as u64, "method is", "methods are"));
    }
    let mut out = format!("<p class=\"note\">{}</p>\n{}", escaped(&note), first_of(rows.len(), "method", "methods"));
    if rows.is_empty() {
        return out;
    }
    let heads = [
        words("own method", "The nearest one on the stack that is not the framework's"),
        numbers("change", "The amount now less that before"),
        numbers("%", "The change as a share of the amount before"),
        numbers("before", "The median of the base"),
        numbers("now", "The median of the new side"),
        numbers("share", "Of all there is now, or was before"),
        numbers("chance", "Probability of such a change by chance, with four recordings or more on each side"),
    ];
    let mut table = Table::new(format!("{id}-table"), &heads);
    for row in rows.into_iter().take(MAX_ROWS) {
        let value = |value: Option<Value>| value.and_then(|value| value.per(per));
        let number = |value: Option<f64>| value.map_or(Cell::Missing, |value| amount(unit, per, value).into());
        let (before, now) = (value(row.base), value(row.new));
        let of_all = row.new.or(row.base).and_then(|value| value.share);
        table.row(vec![
            Cell::text(own_method(&row.place)),
            row.change.map_or(Cell::Missing, |value| amount(unit, per, value).change().into()),
            Cell::change(part(before, now)),
            number(before),
            number(now),
            Cell::share(of_all),
            Cell::chance(row.chance),
        ]);
    }
    out += &table.html(title);
    out
}

fn heap_part(all: &HeapChange) -> String {
    let rows: Vec<&TypeChange> = all.types.iter().filter(|change| !change.is_noise()).collect();
    if rows.is_empty() {
        return "<p class=\"note\">No type changed by more than noise.</p>\n".to_owned();
    }
    let heads = [
        words("type", "Of the objects in the last heap dump of each recording"),
        numbers("bytes", "Now less before"),
        numbers("%", "The change as a share of the bytes before"),
        numbers("objects", "Now less before"),
        numbers("retained", "Bytes that would be freed with them, now less before"),
        numbers("before", "Bytes"),
        numbers("now", "Bytes"),
        numbers("chance", "Probability of such a change by chance, with four heap dumps or more on each side"),
    ];
    let mut table = Table::new("heap-table", &heads);
    let with_sign = |value: f64, unit| Cell::from(Amount::new(value, unit).change());
    for change in rows.iter().take(MAX_ROWS) {
        let (before, now) = (change.base.size_bytes, change.new.size_bytes);
        table.row(vec![
            Cell::text(&change.name),
            with_sign(change.size_bytes(), Bytes),
            Cell::change(part(Some(before), Some(now))),
            with_sign(change.objects(), Count),
            with_sign(change.retained_bytes(), Bytes),
            Cell::number(Some(before), Bytes),
            Cell::number(Some(now), Bytes),
            Cell::chance(change.chance),
        ]);
    }
    let mut out = first_of(rows.len(), "type", "types") + &table.html("Types that changed");
    if !all.held.is_empty() {
        // A path is longer than other texts, and has a bound of its own.
        let lines: Vec<String> = all
            .holders()
            .map(|line| line.split(" > ").map(escaped).collect::<Vec<_>>().join(" &gt; "))
            .map(|line| format!("<li>{line}</li>\n"))
            .collect();
        write!(out, "<h3>What holds the types that grew most</h3>\n<ul>\n{}</ul>\n", lines.concat()).ok();
    }
    out
}
