//! Differences of two recordings, or two sets of them, as one page.

use tracequet_analyze::diff::{
    self, Absent, Compared, Difference, HeapChange, Measured, Per, Section, amount, findings_table, metrics_table,
    types_table,
};
use tracequet_analyze::present::cut;
use tracequet_analyze::present::units::duration;
use tracequet_analyze::profile::What;
use tracequet_dataset::read::Dataset;

use crate::document::{Parts, document};
use crate::flame_change::FlameChange;
use crate::packed::element;
use crate::page::{stacks, stacks_table};
use crate::prelude::*;
use crate::tree::Room;

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

/// Makes the page of two sides that were compared. `name` is its title; call stacks are read from the datasets of the
/// base and of the new side. Fails when a table cannot be read.
pub fn changes(name: &str, datasets: [&Dataset; 2], all: &Compared) -> Result<String> {
    let Difference { per, sections, findings, metrics, .. } = &all.difference;
    let mut parts = Parts::default();
    parts.add_or(
        "findings",
        "Findings",
        part(findings_table(findings, false), "Findings that changed", "finding", "findings"),
        "Rules find the same on both sides, or the datasets have no table <code>finding</code>.",
    );
    parts.add_or(
        "figures",
        "Figures",
        part(metrics_table(metrics, false), "Figures that changed", "figure", "figures"),
        "No figure changed by more than noise.",
    );
    let (mut unknown, mut room) = (String::new(), Room::default());
    for section in sections {
        let (id, title) = (section.subject.word(), section.subject.title());
        if section.base.total.is_none() && section.new.total.is_none() {
            let why = section.new.absent.map_or_else(String::new, Absent::why);
            unknown += &format!("<p class=\"none\">{title}: nothing is known of either side; {}.</p>\n", escaped(&why));
        } else {
            let graph = graph(id, title, section, *per, (datasets, all), &mut room)?;
            let (html, data) = graph.unwrap_or_default();
            parts.add(id, title, section_part(section, *per, all) + &html);
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

/// The call stacks of both sides as one flame graph, and its data. `None` where a side does not have them, or weighs
/// them otherwise.
fn graph(
    id: &str,
    title: &str,
    section: &Section,
    per: Per,
    (datasets, all): ([&Dataset; 2], &Compared),
    room: &mut Room,
) -> Result<Option<(String, String)>> {
    // Profiles have the same words.
    let Some(what) = What::named(section.subject.word()) else { return Ok(None) };
    let (mut flame, mut divided_by, mut unit) = (FlameChange::default(), [0.0; 2], None);
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
    let Some(unit) = unit.filter(|_| divided_by.iter().all(|by| *by > 0.0) && flame.tree.all != [0; 2]) else {
        return Ok(None);
    };
    let packed = flame.packed(room)?;
    let [before, now] = [0, 1].map(|side| {
        let sum = flame.tree.all.get(side).copied().unwrap_or_default() as f64;
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
    words += &packed.merged(["calls", "their callers"], " of a side");
    let of = |value: f64| amount(unit, per, value);
    let (table, about) = flame.table(&format!("{id}-functions-table"), &format!("{title} by function"), divided_by, of);
    let unit = unit.word();
    let [before, now] = divided_by;
    let html = format!(
        "<div class=\"stacks\" id=\"stacks-{id}\" data-flame=\"flame-{id}\" data-unit=\"{unit}\" data-before=\"{before}\" data-now=\"{now}\" data-per=\"{}\">\
         <h3>Call stacks</h3>\n{}<div class=\"graph\"></div>\n\
         <details><summary>The functions as a table</summary>\n{}{table}</details></div>\n",
        per.suffix(),
        note(&words),
        note(&about),
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

/// The rows of a table that a page has room for, with a note where there are more; `None` without rows.
fn part(table: Table, label: &str, one: &str, many: &str) -> Option<String> {
    let table = table.first(MAX_ROWS);
    let first = || note(&format!("The first {MAX_ROWS} of {}.", counted(table.len() as u64, one, many)));
    let first = if table.rest() > 0 { first() } else { String::new() };
    (!table.is_empty()).then(|| first + &table.html(label))
}

fn section_part(section: &Section, per: Per, all: &Compared) -> String {
    let table = section.table(per, None, false);
    let mut words = section.totals(&all.base, &all.new, per) + ".";
    let noise = section.rows.len() - table.len();
    if table.is_empty() {
        words += " No method changed by more than noise.";
    } else if noise > 0 {
        words += &format!(" {} within noise and left out.", counted(noise as u64, "method is", "methods are"));
    }
    let table = part(table, section.subject.title(), "method", "methods").unwrap_or_default();
    note(&words) + &table
}

fn heap_part(all: &HeapChange) -> String {
    let Some(mut out) = part(types_table(&all.types, false), "Types that changed", "type", "types") else {
        return note("No type changed by more than noise.");
    };
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
