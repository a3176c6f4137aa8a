//! Puts the parts of a page together.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use tracequet_analyze::profile::{self, Profile, Unit};
use tracequet_dataset::read::Recording;
use tracequet_trace::error::Result;

use crate::collections::Collections;
use crate::facts::{Facts, figures, findings, losses};
use crate::flame::Flame;
use crate::heap_map::HeapMap;
use crate::html::escaped;
use crate::packed::{base64, element};
use crate::subjects::{self, STACKS, Subject};
use crate::timeline::{Series, Shown, Timeline};
use crate::units::{count, counted, duration, size};

/// What makes the page look as it does, and what improves it: as they stand in the repository.
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The tables that a page is made of.
pub const TABLES: [&str; 21] = [
    "trace",
    "trace_label",
    "process",
    "thread",
    "finding",
    "metric",
    "gc",
    "gc_pause",
    "gc_heap_stats",
    "gc_generation_range",
    "gc_surviving_range",
    "gc_moved_range",
    "allocation",
    "type",
    "cpu_sample",
    "exception",
    "contention",
    "callsite",
    "frame",
    "managed_module",
    "diagnostic",
];

/// A part of the page with its heading. The navigation leads to it.
struct Part {
    id: &'static str,
    title: &'static str,
    html: String,
}

/// Makes the page of a recording: HTML that needs nothing beside it.
///
/// A table that the dataset lacks is a part that says so. Fails when a table cannot be read.
pub fn page(recording: &Recording<'_>) -> Result<String> {
    // A recording that is not finished has no table at all: this says why.
    recording.table("trace")?;
    let facts = Facts::read(recording)?;
    let end_ns = facts.duration_ns;
    let collections = Collections::read(recording)?;
    let (cpu, mut allocations) = (subjects::samples(recording, end_ns)?, subjects::allocations(recording, end_ns)?);
    let exceptions = subjects::exceptions(recording, end_ns)?;
    let mut data = String::new();
    let mut graphs = Vec::new();
    let mut locks = None;
    for (what, id, name) in STACKS {
        let Some(profile) = stacks(recording, what)? else { continue };
        let weights = match what {
            profile::What::Allocation => std::mem::take(&mut allocations.weights),
            _ => profile.by_callsite(),
        };
        if what == profile::What::Contention {
            locks = Some(subjects::locks(recording, Some(&profile), end_ns)?);
        }
        let flame = Flame::of(&profile, &weights);
        if flame.all() > 0 {
            graphs.push(graph(&flame, &profile, id, name, &mut data)?);
        }
    }
    let locks = match locks {
        Some(locks) => locks,
        None => subjects::locks(recording, None, end_ns)?,
    };
    let mut parts = Vec::new();
    let mut part = |id, title, html| parts.push(Part { id, title, html });
    if let Some(html) = findings(recording)? {
        part("findings", "Findings", html);
    }
    if let Some(html) = figures(recording)? {
        part("figures", "Figures", html);
    }
    part("timeline", "Timeline", timeline(end_ns, &collections, &cpu, &allocations, &exceptions, &locks));
    part("stacks", "Call stacks", flame_part(graphs));
    part("collections", "Collections", collections_part(&collections));
    part("heap", "Heap map", heap_part(recording, &collections, &mut data)?);
    part("allocations", "Allocations", subject(&allocations, "allocations", "allocations"));
    part("exceptions", "Exceptions", subject(&exceptions, "exceptions", "exceptions"));
    part("locks", "Locks", subject(&locks, "waits for locks", "contention"));
    let (table, note, modules) = subjects::modules(recording)?;
    part("modules", "Modules", match modules {
        0 => "<p class=\"none\">No modules are recorded. The runtime writes them at the end of a recording (rundown), unless the recorder leaves that out.</p>\n".to_owned(),
        _ => format!("<p class=\"note\">{}</p>\n<details><summary>{}</summary>\n{table}</details>\n", escaped(&note), counted(modules, "row", "rows")),
    });
    part("losses", "Losses", losses(recording, &facts)?);
    Ok(document(&facts, &parts, &data))
}

/// The profile of a kind; `None` when the dataset lacks a table for it, or there are no samples with stacks.
fn stacks(recording: &Recording<'_>, what: profile::What) -> Result<Option<Profile>> {
    let needed = [
        "process",
        "thread",
        "callsite",
        "frame",
        match what {
            profile::What::Cpu => "cpu_sample",
            profile::What::Allocation => "allocation",
            profile::What::Exception => "exception",
            _ => "contention",
        },
    ];
    if !needed.iter().all(|name| recording.tables().any(|table| table.name == *name)) {
        return Ok(None);
    }
    let profile = profile::read(recording, what)?;
    Ok(Some(profile).filter(|profile| !profile.threads.is_empty()))
}

/// A flame graph: what the script draws, and the table behind it.
struct Graph {
    id: &'static str,
    name: &'static str,
    unit: &'static str,
    words: String,
    table: String,
    note: String,
}

fn graph(
    flame: &Flame<'_>,
    profile: &Profile,
    id: &'static str,
    name: &'static str,
    data: &mut String,
) -> Result<Graph> {
    let (unit, show): (&str, fn(u64) -> String) = match profile.unit {
        Unit::Nanoseconds => ("ns", |ns| duration(ns.min(i64::MAX as u64) as i64)),
        Unit::Bytes => ("bytes", size),
        _ => ("count", count),
    };
    let packed = flame.packed()?;
    let mut words = format!("{} in all.", show(flame.all()));
    if id == "cpu" && unit == "ns" {
        words +=
            " Time of all threads together; a sample of the runtime counts also while its thread waits in native code.";
    }
    if profile.without_stack > 0 {
        words += &format!(
            " {} no call stack and are left out.",
            counted(profile.without_stack, "sample has", "samples have")
        );
    }
    if packed.nodes < packed.of {
        let share = format!("{:.2} %", packed.share * 100.0);
        words += &format!(
            " The graph has the {} largest of {} calls; the others, of at most {share} each, are merged into their callers.",
            count(packed.nodes as u64),
            count(packed.of as u64)
        );
    }
    let table_id = match id {
        "cpu" => "stacks-cpu-table",
        "allocations" => "stacks-allocations-table",
        "exceptions" => "stacks-exceptions-table",
        _ => "stacks-locks-table",
    };
    let (table, note) = flame.table(table_id, &format!("{name} by function"), show);
    data.push_str(&element(&format!("flame-{id}"), &packed.data));
    Ok(Graph { id, name, unit, words, table, note })
}

fn flame_part(graphs: Vec<Graph>) -> String {
    if graphs.is_empty() {
        return "<p class=\"none\">No call stacks are recorded. <code>tracequet collect --for cpu,allocations,exceptions</code> records them.</p>\n".to_owned();
    }
    let mut out = String::new();
    for graph in graphs {
        let Graph { id, name, unit, words, table, note } = graph;
        writeln!(
            out,
            "<div class=\"stacks\" data-flame=\"flame-{id}\" data-unit=\"{unit}\"><h3>{name}</h3>\n<p class=\"note\">{}</p>\n\
             <div class=\"graph\"></div>\n<details><summary>{} by function</summary>\n<p class=\"note\">{}</p>\n{table}</details></div>",
            escaped(&words),
            escaped(name),
            escaped(&note),
        )
        .ok();
    }
    out
}

fn timeline(
    end_ns: i64,
    collections: &Collections,
    cpu: &Series,
    allocations: &Subject,
    exceptions: &Subject,
    locks: &Subject,
) -> String {
    let allocated = Series::of_collections(collections, end_ns);
    let allocation = if allocations.rows > 0 { &allocations.over_time } else { &allocated };
    let series = vec![
        ("Allocated", Shown::ByteRate, allocation),
        ("CPU samples", Shown::Rate, cpu),
        ("Exceptions", Shown::Rate, &exceptions.over_time),
        ("Waits for locks", Shown::Time, &locks.over_time),
    ];
    let timeline = Timeline { end_ns, collections, series };
    if !timeline.has_charts() {
        return "<p class=\"none\">Nothing that has a place in time is recorded. <code>tracequet collect --for gc,cpu</code> records it.</p>\n".to_owned();
    }
    let mut out = timeline.html();
    if timeline.has_sums() {
        writeln!(out, "<details><summary>The sums as a table</summary>\n{}</details>", timeline.table()).ok();
    }
    out
}

fn collections_part(collections: &Collections) -> String {
    if collections.all.is_empty() {
        return "<p class=\"none\">No collections are recorded. <code>tracequet collect --for gc</code> records them.</p>\n".to_owned();
    }
    let (table, note) = collections.table();
    format!("<p class=\"note\">{}</p>\n{table}", escaped(&note))
}

fn heap_part(recording: &Recording<'_>, collections: &Collections, data: &mut String) -> Result<String> {
    let Some(map) = HeapMap::read(recording, collections)? else {
        return Ok("<p class=\"none\">No ranges that survived are recorded. <code>tracequet collect --for gc-survival</code> records them.</p>\n".to_owned());
    };
    let packed = map.packed()?;
    data.push_str(&element("heap-map", &packed));
    Ok(format!(
        "<p class=\"note\">{}</p>\n<div class=\"map\" data-map=\"heap-map\"></div>\n<details><summary>What became of the bytes</summary>\n{}</details>\n",
        escaped(&map.note()),
        map.table()
    ))
}

fn subject(subject: &Subject, name: &str, option: &str) -> String {
    if subject.rows == 0 {
        return format!(
            "<p class=\"none\">No {name} are recorded. <code>tracequet collect --for {option}</code> records them.</p>\n"
        );
    }
    format!("<p class=\"note\">{}</p>\n{}", escaped(&subject.note), subject.table)
}

/// The whole document. Its policy lets only this style and this script be used, and nothing be fetched.
fn document(facts: &Facts, parts: &[Part], data: &str) -> String {
    let hash = |text: &str| base64(&Sha256::digest(text.as_bytes()));
    let mut out = String::new();
    let name = escaped(&facts.name);
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{}'; \
         style-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>",
        hash(SCRIPT),
        hash(STYLE),
    )
    .ok();
    writeln!(out, "<header>\n<h1>{name}</h1>\n{}</header>\n<nav aria-label=\"Parts\"><ul>", facts.html()).ok();
    for part in parts {
        writeln!(out, "<li><a href=\"#{}\">{}</a></li>", part.id, part.title).ok();
    }
    out.push_str("</ul></nav>\n<main>\n");
    for Part { id, title, html } in parts {
        writeln!(out, "<section id=\"{id}\">\n<h2>{title}</h2>\n{html}</section>").ok();
    }
    writeln!(
        out,
        "</main>\n<footer>Made by tracequet {}. The page holds all of its data and asks for nothing.</footer>\n{data}<script>{SCRIPT}</script>\n</body>\n</html>",
        env!("CARGO_PKG_VERSION")
    )
    .ok();
    out
}
