//! Puts the parts of a page together.

use std::fmt::Write;

use tracequet_analyze::findings::overview::Overview;
use tracequet_analyze::findings::{Finding, Verdict, followed, rule};
use tracequet_analyze::kept::Kept;
use tracequet_analyze::lifetime::live_times;
use tracequet_analyze::present::units::counted;
use tracequet_analyze::present::{Amount, escaped};
use tracequet_analyze::profile::{self, Labels, Profile, Sample, ThreadSamples, What};
use tracequet_dataset::error::Result;
use tracequet_dataset::read::Recording;

use crate::collections::Collections;
use crate::counters::counters;
use crate::document::{Parts, document, note};
use crate::facts::{Facts, figures, findings, losses};
use crate::flame::Flame;
use crate::generations::generations;
use crate::heap_map::HeapMap;
use crate::opened::opened;
use crate::packed::element;
use crate::pool::pool;
use crate::requests::requests;
use crate::retained::retained;
use crate::selection::{Item, Panel, Selection};
use crate::sites;
use crate::subjects::{self, BytesByType, STACKS, Subject};
use crate::tasks::tasks;
use crate::threads::{Lanes, threads};
use crate::timeline::{Charted, Series, Shown, Timeline};
use crate::tree::{Packed, Room};

/// The tables that a page is made of.
pub const TABLES: [&str; 48] = [
    "trace", "trace_label", "process", "thread", "finding", "metric", "gc", "gc_pause", "gc_heap_stats", "gc_heap",
    "gc_heap_generation", "gc_mark", "gc_join", "gc_generation_range", "gc_surviving_range", "gc_moved_range",
    "gc_cohort", "gc_root", "gc_finalizable", "gc_tuning", "gc_allocation_wait", "gc_weak_element", "heap_object",
    "heap_reference", "allocation", "allocation_lifetime", "type", "cpu_sample", "exception", "contention", "wait",
    "thread_pool", "thread_pool_work", "activity", "thread_activity", "async_task", "async_wait", "log",
    "session_provider", "counter", "method", "method_compilation", "thread_time", "callsite", "frame",
    "managed_module", "assembly", "diagnostic",
];

/// Parts that show something recorded: identifier, title, and the words that stand in their place where it was not recorded. Backticks hold
/// options of `tracequet collect`.
const PARTS: [(&str, &str, &str); 18] = [
    ("timeline", "Timeline", "Nothing that has a place in time is recorded. `--for gc,cpu` records it."),
    ("stacks", "Call stacks", "No call stacks are recorded. `--for cpu,allocations,exceptions` records them."),
    ("collections", "Collections", "No collections are recorded. `--for gc` records them."),
    ("heap", "Heap map", "No ranges that survived are recorded. `--for gc-survival` records them."),
    ("survival", "Survival", "How much survives is not recorded. `--for gc-survival` records it."),
    ("retained", "Heap dump", "No heap dump is recorded. `--heap` records one."),
    ("allocations", "Allocations", "No allocations are recorded. `--for allocations` records them."),
    ("deaths", "Died in gen 2", "What died in gen 2 is not recorded. `--for lifetimes` records it."),
    ("requests", "Requests", "No requests are recorded. `--for requests` records them."),
    ("async", "Asynchronous work", "No tasks are recorded. `--for async` records them."),
    ("exceptions", "Exceptions", "No exceptions are recorded. `--for exceptions` records them."),
    ("locks", "Locks", "No waits for locks are recorded. `--for contention` records them."),
    ("waits", "Waits", "No waits are recorded. `--for threadpool` records them, from .NET 9 on."),
    ("pool", "Thread pool", "The thread pool is not recorded. `--for threadpool` records it."),
    ("jit", "Compiling", "No compiling is recorded. `--for jit` records it."),
    ("counters", "Counters", "No counters are recorded. `--for counters` records them."),
    ("threads", "Threads", "What threads did is not recorded. `--for cpu,contention,threadpool` records it."),
    (
        "modules",
        "Modules",
        "No modules are recorded. The runtime writes them at the end of a recording (rundown), unless the recorder leaves that out.",
    ),
];

/// Adds a part, or the line that says how to record it.
fn add(parts: &mut Parts, id: &str, html: Option<String>) {
    if let Some((id, title, missing)) = PARTS.iter().find(|(of, ..)| *of == id) {
        parts.add_or(id, title, html, missing.replacen('`', "<code>tracequet collect ", 1).replacen('`', "</code>", 1));
    }
}

/// Objects whose times of life a page has.
const MAX_LIVES: usize = 60_000;

/// Makes the page of a recording: HTML that needs nothing beside it.
///
/// A table that the dataset lacks is a part that says so. Fails when a table cannot be read.
pub fn page(recording: &Recording<'_>) -> Result<String> {
    page_after(recording, "")
}

/// Makes the page with a text above all parts, such as the result of a check. Lines of the text that begin with a space
/// belong to the one before.
pub fn page_after(recording: &Recording<'_>, verdict: &str) -> Result<String> {
    page_with(recording, verdict, Kept::default())
}

/// Makes the page with what the conversion of the recording kept, so that it need not be in the dataset.
pub fn page_with(recording: &Recording<'_>, verdict: &str, kept: Kept) -> Result<String> {
    // A recording that is not finished has no table at all: this says why.
    recording.table("trace")?;
    let facts = Facts::read(recording)?;
    let end_ns = facts.duration_ns;
    let collections = Collections::read(recording)?;
    let cpu = subjects::samples(recording, end_ns)?;
    let labels = Labels::read(recording)?;
    let mut selection = Selection::of(end_ns);
    let mut requests = requests(recording, &collections.pauses, &labels, &mut selection, end_ns)?;
    let topic = requests.as_mut().and_then(|requests| requests.topic.take());
    let (mut stacks_data, mut room) = (String::new(), Room::default());
    let (mut graphs, mut waiting, mut allocated) = (Vec::new(), 0, BytesByType::default());
    let mut found: Vec<(What, Subject)> = Vec::new();
    for (what, id, name) in STACKS {
        let profile = stacks(recording, what)?;
        let flame = profile.as_ref().map(Flame::of);
        // The script draws the objects that are alive at a moment, so that the graph has all that ever were.
        let lives =
            profile.as_ref().filter(|_| what == What::Live).map(|of| lives(recording, of)).transpose()?.flatten();
        let drawn = lives.as_ref().map(|(lives, _)| Flame::of(lives));
        let drawn = drawn.as_ref().or(flame.as_ref()).filter(|flame| flame.all() > 0);
        let packed = drawn.map(|flame| flame.packed(&mut room)).transpose()?;
        let (packed, nodes) = packed.unzip();
        let mut panel = Panel::new(&mut selection, profile.as_ref(), nodes.unwrap_or_default());
        let subject = match what {
            What::Allocation => {
                let (subject, by_type) = subjects::allocations(recording, &mut panel, end_ns)?;
                allocated = by_type;
                Some(subject)
            }
            What::Exception => Some(subjects::exceptions(recording, &mut panel, end_ns)?),
            What::Contention => Some(sites::locks(recording, &mut panel, end_ns)?),
            What::Wait => Some(sites::waits(recording, &mut panel, end_ns)?),
            What::Jit => Some(sites::compiled(recording, &mut panel, end_ns)?),
            What::Gen2Deaths if profile.is_some() => Some(subjects::deaths(recording, &mut panel, end_ns)?),
            _ => None,
        };
        match (&lives, profile.as_ref().filter(|_| subject.is_none())) {
            (Some((_, times)), _) => times.iter().for_each(|item| panel.add_place(*item)),
            (None, Some(profile)) => panel.add_profile(profile),
            _ => {}
        }
        panel.finish(id, subject.as_ref().map_or(&[], |subject| &subject.lines))?;
        found.extend(subject.map(|subject| (what, subject)));
        if let Some((profile, flame)) = profile.as_ref().zip(flame.as_ref()) {
            waiting = if what == What::Cpu && flame.all() == 0 { profile.waiting } else { waiting };
            graphs.extend(packed.map(|packed| graph(flame, profile, id, name, &mut stacks_data, &packed)));
        }
    }
    let (mut heap_dump, heap) = retained(recording, &allocated, kept.walk)?.unzip();
    let mut dump_data = String::new();
    if let Some((profile, html)) = heap.flatten().as_ref().zip(heap_dump.as_mut()) {
        let flame = Flame::of(profile);
        let (packed, _) = flame.packed(&mut room)?;
        let name = "Who holds the memory, drawn: the bytes below a type are those that it retains";
        let drawn = graph(&flame, profile, "heap", name, &mut dump_data, &packed);
        *html += &flame_part(vec![drawn], 0).unwrap_or_default();
    }
    let subject_of = |what: What| found.iter().find(|(of, subject)| *of == what && subject.rows > 0).map(|(_, of)| of);
    let pool = pool(recording)?;
    let threads = threads(recording, &labels, end_ns)?;
    // Where routes are recorded, they name the work of the pool.
    let (lanes, handlers) = Lanes::read(recording, &mut selection, end_ns, requests.is_none())?;
    let mut ranges = kept.collections;
    let map = HeapMap::read(recording, &collections, &mut ranges)?;
    let mut series: Vec<Charted<'_>> = Vec::new();
    let of_collections = Series::of_collections(&collections, end_ns);
    series.push(match subject_of(What::Allocation) {
        Some(allocations) => Charted::of("allocations", "Allocated", Shown::ByteRate, &allocations.over_time),
        None => Charted::of("", "Allocated", Shown::ByteRate, &of_collections),
    });
    series.push(Charted::of("cpu", "CPU samples of threads that ran", Shown::Rate, &cpu));
    series.extend(requests.as_ref().map(|of| Charted::of("requests", "Requests", Shown::Rate, &of.over_time)));
    let names = [
        (What::Exception, "exceptions", "Exceptions", Shown::Rate),
        (What::Contention, "locks", "Waits for locks", Shown::Time),
        (What::Wait, "waits", "Other waits", Shown::Time),
        (What::Jit, "jit", "Compiling", Shown::Time),
        (What::Gen2Deaths, "deaths", "Died in gen 2", Shown::ByteRate),
    ];
    series.extend(
        names
            .into_iter()
            .filter_map(|(what, rows, name, shown)| Some(Charted::of(rows, name, shown, &subject_of(what)?.over_time))),
    );
    let lines = [
        requests.as_ref().and_then(|requests| requests.slowest.clone()),
        pool.as_ref().and_then(|pool| pool.line.clone()),
        threads.as_ref().and_then(|threads| threads.line.clone()),
    ];
    let timeline = Timeline { end_ns, collections: &collections, series, lines: lines.into_iter().flatten().collect() };

    let mut parts = Parts::default();
    let figures = figures(recording)?;
    if let Some(html) = figures {
        let of_all = if collections.other_processes > 0 { note("Of all processes together.") } else { String::new() };
        parts.add("figures", "Figures", of_all + &html);
    }
    add(&mut parts, "timeline", timeline_part(&timeline));
    add(&mut parts, "stacks", flame_part(graphs, waiting));
    add(&mut parts, "collections", collections_part(recording, &collections, end_ns)?);
    parts.add_data("stacks", &stacks_data);
    if let Some((rows, lines)) = requests.as_mut().and_then(|requests| requests.durations.take()) {
        selection.add("durations", rows, &lines)?;
    }
    parts.add_data("timeline", &selection.packed(&labels, &collections.pauses)?);
    let mut map_data = String::new();
    let heap = map.as_ref().map(|map| heap_part(map, &collections, &mut map_data)).transpose()?;
    add(&mut parts, "heap", heap);
    parts.add_data("heap", &map_data);
    let survived = map.as_ref().map(|map| (&map.survival, ranges.as_mut().filter(|_| map.is_whole)));
    let survival = survived.map(|(survival, ranges)| survival.html(recording, &collections, ranges, end_ns));
    let survival = survival.transpose()?.flatten();
    add(&mut parts, "survival", survival);
    add(&mut parts, "retained", heap_dump);
    parts.add_data("retained", &dump_data);
    add(&mut parts, "allocations", subject_of(What::Allocation).map(subject));
    add(&mut parts, "deaths", subject_of(What::Gen2Deaths).map(subject));
    match (requests, handlers) {
        (None, Some(handlers)) => parts.add("requests", "What workers ran", handlers),
        (requests, _) => add(&mut parts, "requests", requests.map(|requests| requests.html)),
    }
    add(&mut parts, "async", tasks(recording)?);
    add(&mut parts, "exceptions", subject_of(What::Exception).map(subject));
    add(&mut parts, "locks", subject_of(What::Contention).map(subject));
    add(&mut parts, "waits", subject_of(What::Wait).map(subject));
    add(&mut parts, "pool", pool.map(|pool| pool.html));
    add(&mut parts, "jit", subject_of(What::Jit).map(subject));
    add(&mut parts, "counters", counters(recording, end_ns)?);
    add(&mut parts, "threads", threads_part(lanes, threads.map(|threads| threads.html)));
    let (table, about, modules) = subjects::modules(recording)?;
    let modules = (modules > 0).then(|| {
        let rows = counted(modules, "row", "rows");
        format!("{}<details><summary>{rows}</summary>\n{table}</details>\n", note(&about))
    });
    add(&mut parts, "modules", modules);
    parts.add("losses", "Losses", losses(recording, &facts)?);
    parts.add_missing();
    let found = followed(recording)?;
    parts.in_order(&led_to(&found));
    // Findings lead to what is in the page.
    let found = findings(recording, found, &parts, &facts.name)?;
    let mut all = Parts::default();
    if !verdict.is_empty() {
        all.add("verdict", "Check", format!("<pre>{}</pre>\n", verdict_lines(verdict)));
    }
    let overview = Overview::with(recording, Ok(topic))?;
    if !overview.topics.is_empty() {
        all.add("summary", "Where it went", overview.html());
    }
    if let Some(html) = found {
        all.add("findings", "Findings", html);
    }
    all.parts.extend(parts.parts);
    Ok(document(&facts.name, &facts.html(), all.parts))
}

/// The sections that open findings lead to, those of the worst first.
fn led_to(found: &[Finding]) -> Vec<&'static str> {
    let open = found.iter().filter(|finding| finding.verdict >= Verdict::Info);
    let sections = open.filter_map(|finding| rule(&finding.rule)).flat_map(|rule| rule.evidence.sections);
    // A flame graph stands in the part of all.
    sections.map(|place| if place.starts_with("stacks") { "stacks" } else { *place }).collect()
}

/// The lines of a verdict as HTML.
pub(crate) fn verdict_lines(text: &str) -> String {
    text.lines().map(escaped).collect::<Vec<_>>().join("\n")
}

/// The table of a kind of profile, where the dataset has it and what else a profile needs.
pub(crate) fn stacks_table(recording: &Recording<'_>, what: What) -> Option<&'static str> {
    let of = match what {
        What::Cpu => "cpu_sample",
        What::Allocation => "allocation",
        What::Exception => "exception",
        What::Wait => "wait",
        What::Jit => "method_compilation",
        What::Blocked => "thread_time",
        What::Survivors | What::Gen2Deaths | What::Live => "allocation_lifetime",
        _ => "contention",
    };
    let has = |name: &str| recording.tables().any(|table| table.name == name);
    ["process", "thread", "callsite", "frame", of].into_iter().all(has).then_some(of)
}

/// The profile of a kind; `None` when the dataset lacks a table for it, or there are no samples with stacks, not even
/// of threads that wait.
pub(crate) fn stacks(recording: &Recording<'_>, what: What) -> Result<Option<Profile>> {
    let Some(of) = stacks_table(recording, what) else { return Ok(None) };
    if !has_rows(recording, of)? {
        return Ok(None);
    }
    let profile = profile::read(recording, what)?;
    Ok(Some(profile).filter(|profile| !profile.threads.is_empty() || profile.waiting > 0))
}

/// The profile of all objects that were alive at some time, and a row of each: from when on, and as another amount until when. `None` where
/// there are too many.
fn lives(recording: &Recording<'_>, known: &Profile) -> Result<Option<(Profile, Vec<Item>)>> {
    let mut items = Vec::new();
    live_times(recording, |lifetime, from, until| {
        let sample = lifetime.sample;
        let callsite = known.place_of(sample.callsite_id);
        if callsite > 0 && items.len() <= MAX_LIVES {
            let (thread, amount) = ((sample.process_id, sample.thread_id), lifetime.bytes());
            let (count, more) = (lifetime.weight.into(), until.map_or(f64::MAX, |until| until as f64));
            items.push(Item { thread, ts_ns: from, callsite, group: 0, count, amount, more });
        }
        Ok(())
    })?;
    if items.len() > MAX_LIVES {
        return Ok(None);
    }
    let samples = items.iter().map(|item| {
        let weight = item.amount.unwrap_or_default();
        Sample { ts_ns: item.ts_ns, callsite: item.callsite, weight }
    });
    let (process_id, thread_id, label) = (0, 0, String::new());
    let threads = vec![ThreadSamples { process_id, thread_id, label, samples: samples.collect() }];
    let mut profile = known.clone();
    profile.threads = threads;
    Ok(Some((profile, items)))
}

fn has_rows(recording: &Recording<'_>, table: &str) -> Result<bool> {
    for batch in recording.table(table)?.scan().columns(["process_id"]).batches()? {
        if batch?.num_rows() > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A flame graph: what the script draws, and the table behind it.
struct Graph {
    id: &'static str,
    name: &'static str,
    unit: &'static str,
    words: String,
    table: String,
    about: String,
}

fn graph(
    flame: &Flame<'_>,
    profile: &Profile,
    id: &'static str,
    name: &'static str,
    data: &mut String,
    packed: &Packed,
) -> Graph {
    let unit = profile.unit.word();
    let mut words = format!("{} in all.", Amount::in_unit(flame.all(), unit));
    if id == "cpu" && unit == "ns" {
        words += " Time of all threads that ran.";
    }
    if profile.waiting > 0 {
        let samples = counted(profile.waiting, "sample", "samples");
        words += &format!(" {samples} of threads outside of managed code, which nearly always wait, left out.");
    }
    if profile.without_stack > 0 {
        words += &format!(
            " {} left out.",
            counted(profile.without_stack, "sample has no call stack and is", "samples have no call stack and are")
        );
    }
    let names = if id == "heap" { ["parts", "what holds them"] } else { ["calls", "their callers"] };
    words += &packed.merged(names, "");
    let (table, about) = flame.table(&format!("stacks-{id}-table"), &format!("{name} by function"), unit);
    data.push_str(&element(&format!("flame-{id}"), &packed.data));
    Graph { id, name, unit, words, table, about }
}

/// The graphs. `waiting` are the samples of threads outside of managed code, where a recording has no others.
fn flame_part(graphs: Vec<Graph>, waiting: u64) -> Option<String> {
    let mut out = String::new();
    if waiting > 0 {
        let samples = counted(waiting, "sample is of a thread", "samples are of threads");
        let all =
            "outside of managed code, which nearly always waits. <code>tracequet export --samples all</code> has them.";
        writeln!(out, "<p class=\"none\">CPU: all {samples} {all}</p>").ok();
    } else if graphs.is_empty() {
        return None;
    }
    for graph in graphs {
        let Graph { id, name, unit, words, table, about } = graph;
        out += &format!(
            "<div class=\"stacks\" id=\"stacks-{id}\" data-flame=\"flame-{id}\" data-unit=\"{unit}\"><h3>{name}</h3>\n{}\
             <div class=\"graph\"></div>\n<details><summary>The functions as a table</summary>\n{}{table}</details></div>\n",
            note(&words),
            note(&about),
        );
    }
    Some(out)
}

/// Whose collections are drawn, where several processes have some.
fn whose(collections: &Collections, what: &str, others: &str) -> String {
    if collections.other_processes == 0 {
        return String::new();
    }
    let process = collections.process_id;
    let more = counted(collections.other_processes as u64, "other process has", "other processes have");
    note(&format!("{what} of process {process}, which has most collections; {more} some, too.{others}"))
}

fn timeline_part(timeline: &Timeline<'_>) -> Option<String> {
    if !timeline.has_charts() {
        return None;
    }
    let mut out = whose(timeline.collections, "Pauses and heap are those", " The other charts are of all processes.");
    out += &timeline.html();
    if timeline.has_sums() {
        writeln!(out, "<details><summary>The sums as a table</summary>\n{}</details>", timeline.table()).ok();
    }
    Some(out)
}

fn collections_part(recording: &Recording<'_>, collections: &Collections, end_ns: i64) -> Result<Option<String>> {
    if collections.all.is_empty() {
        return Ok(None);
    }
    let (table, about) = collections.table();
    let opened = opened(recording, collections)?.unwrap_or_default();
    let generations = generations(recording, collections, end_ns)?;
    Ok(Some(format!("{}{table}{generations}{opened}", note(&about))))
}

fn heap_part(map: &HeapMap, collections: &Collections, data: &mut String) -> Result<String> {
    data.push_str(&element("heap-map", &map.packed()?));
    let mut words = map.note();
    if let Some((ranges, of)) = map.followed(collections)? {
        data.push_str(&element("heap-ranges", &ranges));
        words += " ";
        words += &of;
    }
    Ok(format!(
        "{}{}<div class=\"map\" data-map=\"heap-map\"></div>\n<details><summary>What became of the bytes</summary>\n{}</details>\n",
        whose(collections, "The map is that", ""),
        note(&words),
        map.table()
    ))
}

/// What threads did: the lanes that the script draws, and the times of those with context switches.
fn threads_part(lanes: Option<&str>, times: Option<String>) -> Option<String> {
    let lanes = lanes.map(|about| format!("<div class=\"threads\">{}</div>\n", note(about)));
    if lanes.is_none() && times.is_none() {
        return None;
    }
    Some(lanes.unwrap_or_default() + &times.unwrap_or_default())
}

fn subject(subject: &Subject) -> String {
    note(&subject.note) + &subject.table
}
