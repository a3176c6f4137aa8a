//! `tracequet heap`: which types fill the heap, what they retain, and what keeps an object alive.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tracequet::KeepWalk;
use tracequet::analyze::heap::{
    Explanation, HeapGraph, Retention, Snapshot, Step, TABLES, TypeRow, explain, read, snapshot, snapshots,
};
use tracequet::analyze::lifetime::{self, By, Origins, origins};
use tracequet::dataset::read::Recording;

use super::diff_report;
use super::heap_diff::{self, step_json};
use super::output::{Outcome, print_result};
use super::text::{Columns, clean, count, counted, moment, size};
use super::{opened, terminal, values};

/// What the command does.
pub const ABOUT: &str = "Shows a heap dump: types with the number and bytes of their objects, and the bytes that they retain, \
            which would be garbage without them. With --type or --object: a shortest path from a root, and the \
            dominators, through which every path leads. With --type and a recording of allocations, too (collect --for \
            lifetimes --heap-at-end): which methods allocated its objects.\n\n\
            IN is a dataset made by convert, or a recording of a heap dump (collect --heap, or the keywords 0x1980001 of \
            the runtime).";

/// Examples of the command line.
pub const EXAMPLES: &str = "\
Examples:
  tracequet heap app.nettrace
  tracequet heap app --by count --all
  tracequet heap app --type MyApp.Order
  tracequet heap app --object 0x7f3b2c001020
  tracequet heap after.gcdump --base before.gcdump
  tracequet heap app --base-gc 3
  tracequet heap app --gc 12 --json | jq '.types[0]'";

/// Types that are shown without --all.
const SHOWN: usize = 25;

/// Steps of a path that are shown without --all: as many of its beginning and of its end.
const PATH_ENDS: usize = 12;

#[derive(Debug, Args)]
pub struct HeapArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// Collection in which the heap was walked: its gc_id [default: the last one]
    #[arg(long, value_name = "N")]
    pub gc: Option<u32>,
    /// Show what keeps the objects of this type alive: paths to the one that retains most
    #[arg(long = "type", value_name = "NAME", conflicts_with = "object")]
    pub type_name: Option<String>,
    /// Show what keeps the object at this address alive
    #[arg(long, value_name = "ADDRESS", value_parser = values::address)]
    pub object: Option<u64>,
    /// Show what grew since the heap dump in this recording, dataset or .gcdump, by type, and what holds it
    #[arg(long, value_name = "BASE", conflicts_with = "object")]
    pub base: Option<PathBuf>,
    /// Collection of the walk to compare with, in BASE or else in IN: its gc_id [default: the last one]
    #[arg(long, value_name = "N", conflicts_with = "object")]
    pub base_gc: Option<u32>,
    /// Recording to compare with, in BASE or else in IN, if that has several: its trace_id
    #[arg(long, value_name = "KEY", conflicts_with = "object")]
    pub base_trace: Option<String>,
    /// Order of the types
    #[arg(long, value_enum, default_value_t = OrderArg::Retained)]
    pub by: OrderArg,
    /// Show all types and steps
    #[arg(long)]
    pub all: bool,
    /// Recording in a dataset of several: its trace_id
    #[arg(long, value_name = "KEY")]
    pub trace: Option<String>,
    /// Memory limit for the graph: 48 bytes for an object or root, 8 bytes for a reference; a larger heap is refused
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = values::size)]
    pub memory: u64,
    /// Print one JSON object, with all types
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    /// Bytes that would be garbage without the objects of the type
    Retained,
    /// Bytes of the objects
    Size,
    /// Number of objects
    Count,
}

/// Answers from a dataset, or from a recording that is converted for it.
pub fn run(args: &HeapArgs) -> anyhow::Result<Outcome> {
    if args.base.is_some() || args.base_gc.is_some() || args.base_trace.is_some() {
        return compared(args);
    }
    // Samples of allocations say where objects of a type were allocated, where the recording has them.
    let origin_tables: &[&str] = if args.type_name.is_some() { &lifetime::TABLES } else { &[] };
    let names: &[&str] = if args.type_name.is_some() { &lifetime::NAMES } else { &[] };
    let mut tables: Vec<&str> = TABLES.iter().chain(origin_tables).chain(names).copied().collect();
    tables.sort_unstable();
    tables.dedup();
    let mut opened = opened::open_with_walk(&args.input, &tables, KeepWalk::new(args.memory, args.gc))?;
    let recording = opened.dataset.recording(args.trace.as_deref())?;
    let all = snapshots(&recording)?;
    let snapshot = snapshot(&recording, args.gc)?;
    let graph = match opened.walk.take() {
        Some(walk) => walk.graph(&recording, &snapshot)?,
        None => read(&recording, &snapshot, args.memory)?,
    };
    let retention = Retention::of(&graph);
    let mut rows = retention.by_type(&graph);
    match args.by {
        OrderArg::Retained => {}
        OrderArg::Size => rows.sort_by_key(|row| std::cmp::Reverse(row.size_bytes)),
        OrderArg::Count => rows.sort_by_key(|row| std::cmp::Reverse(row.objects)),
    }
    let subject = subject(args, &graph, &retention, &rows)?;
    let origins = match subject.as_ref().and_then(|subject| subject.of_type) {
        Some(row) if has_samples(&recording) => {
            origins(&recording, &graph, By::Own, |node| graph.type_name(node) == &*row.name)?
        }
        _ => None,
    };
    let heap = Heap { args, graph: &graph, retention: &retention, rows: &rows, all: &all, origins: origins.as_ref() };
    let text = match (args.json, subject) {
        (true, subject) => serde_json::to_string_pretty(&heap.json(subject.as_ref()))? + "\n",
        (false, Some(subject)) => heap.head() + &heap.explained(&subject),
        (false, None) => heap.head() + &heap.types(),
    };
    Outcome::with_losses(opened.losses).printed(print_result(&text))
}

/// What grew since another walk.
fn compared(args: &HeapArgs) -> anyhow::Result<Outcome> {
    let opened = opened::open(&args.input, &TABLES)?;
    let recording = opened.dataset.recording(args.trace.as_deref())?;
    let new = (recording, snapshot(&recording, args.gc)?);
    let other = args.base.as_deref().map(|path| opened::open(path, &TABLES)).transpose()?;
    let of_base = match &other {
        Some(other) => other.dataset.recording(args.base_trace.as_deref())?,
        None if args.base_trace.is_some() => opened.dataset.recording(args.base_trace.as_deref())?,
        None => recording,
    };
    let base = (of_base, snapshot(&of_base, args.base_gc)?);
    let mut change = heap_diff::change(&[base], &[new], args.memory, args.type_name.as_deref())?;
    let types = &mut change.types;
    match args.by {
        OrderArg::Size => {}
        OrderArg::Retained => types.sort_by(|a, b| b.retained_bytes().abs().total_cmp(&a.retained_bytes().abs())),
        OrderArg::Count => types.sort_by(|a, b| b.objects().abs().total_cmp(&a.objects().abs())),
    }
    let text = match args.json {
        true => serde_json::to_string_pretty(&heap_diff::json(&change))? + "\n",
        false => diff_report::heap_text(&change, args.all, terminal::width()),
    };
    let losses = opened.losses || other.is_some_and(|other| other.losses);
    Outcome::with_losses(losses).printed(print_result(&text))
}

/// Whether the recording has the tables that lifetimes are found in.
fn has_samples(recording: &Recording<'_>) -> bool {
    let mut needed = lifetime::TABLES.iter().chain(&lifetime::NAMES);
    needed.all(|needed| recording.tables().any(|table| table.name == *needed))
}

/// The object that is asked about, and its type where that was asked for.
struct Subject<'r> {
    explanation: Explanation,
    of_type: Option<&'r TypeRow>,
}

fn subject<'r>(
    args: &HeapArgs,
    graph: &HeapGraph,
    retention: &Retention,
    rows: &'r [TypeRow],
) -> anyhow::Result<Option<Subject<'r>>> {
    if let Some(address) = args.object {
        let node = graph.find(address).ok_or_else(|| {
            anyhow::anyhow!("there is no object at {address:#x} in the walk of collection {}", graph.snapshot.gc_id)
        })?;
        return Ok(Some(Subject { explanation: explain(graph, retention, node), of_type: None }));
    }
    let Some(name) = &args.type_name else { return Ok(None) };
    let Some(row) = rows.iter().find(|row| *row.name == **name) else {
        let wanted = name.to_lowercase();
        let near = rows.iter().filter(|row| row.name.to_lowercase().contains(&wanted)).map(|row| clean(&row.name));
        let near: Vec<String> = near.take(10).collect();
        let near = if near.is_empty() { String::new() } else { format!("; there are {}", near.join(", ")) };
        anyhow::bail!("no object of the type {} is on the heap{near}", clean(name));
    };
    let of_type = |node: &u32| graph.type_name(*node) == &**name;
    let nodes = (0..graph.len()).filter(of_type);
    let largest = nodes.max_by_key(|node| (retention.bytes(graph, *node), std::cmp::Reverse(*node)));
    let node = largest.ok_or_else(|| anyhow::anyhow!("no object of the type {} is on the heap", clean(name)))?;
    Ok(Some(Subject { explanation: explain(graph, retention, node), of_type: Some(row) }))
}

struct Heap<'r> {
    args: &'r HeapArgs,
    graph: &'r HeapGraph,
    retention: &'r Retention,
    rows: &'r [TypeRow],
    all: &'r [Snapshot],
    origins: Option<&'r Origins>,
}

impl Heap<'_> {
    fn head(&self) -> String {
        let graph = self.graph;
        let Snapshot { gc_id, gc_number, start_ns, complete, .. } = graph.snapshot;
        let mut out = format!(
            "Heap in collection {gc_id} (number {gc_number} of the runtime) at {} s: {} of {} in all, {}, {}\n",
            moment(start_ns),
            counted(graph.len().into(), "object", "objects"),
            size(graph.size_bytes()),
            counted(graph.reference_count, "reference", "references"),
            counted(graph.roots.len() as u64, "object with a root", "objects with roots"),
        );
        let mut note = |text: String| out.push_str(&format!("  {text}\n"));
        let others: Vec<_> =
            self.all.iter().filter(|other| other.gc_id != gc_id).map(|s| s.gc_id.to_string()).collect();
        if !others.is_empty() {
            let listed = others.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
            note(format!("other walks of the heap: in collection {listed} (--gc)"));
        }
        let (unreachable, bytes) = self.retention.unreachable(graph);
        if unreachable > 0 {
            let objects = counted(unreachable, "object", "objects");
            note(format!("no root leads to {objects} of {} in all", size(bytes)));
        }
        let missing = graph.unresolved;
        if !complete || missing.without_object > 0 {
            note("a part of the walk is missing from the recording: sizes and paths are those of the rest".into());
        }
        for (number, what) in
            [(missing.without_object, "of no known object"), (missing.without_target, "to no listed object")]
        {
            if number > 0 {
                note(format!("left out: {} {what}", counted(number, "reference", "references")));
            }
        }
        for (number, one, many) in [
            (missing.roots, "root of no listed object", "roots of no listed object"),
            (missing.repeated_objects, "object that is listed again", "objects that are listed again"),
        ] {
            if number > 0 {
                note(format!("left out: {}", counted(number, one, many)));
            }
        }
        out.push('\n');
        out
    }

    fn types(&self) -> String {
        let mut columns = Columns::new(&[">retained", ">%", ">bytes", ">objects", "type"]);
        let whole = self.graph.size_bytes().max(1) as f64;
        let shown = if self.args.all { usize::MAX } else { SHOWN };
        for row in self.rows.iter().take(shown) {
            columns.row([
                size(row.retained_bytes),
                format!("{:.1}", row.retained_bytes as f64 * 100.0 / whole),
                size(row.size_bytes),
                count(row.objects),
                clean(&row.name),
            ]);
        }
        let mut out = String::new();
        columns.print(&mut out);
        let rest = self.rows.len().saturating_sub(shown);
        if rest > 0 {
            out.push_str(&format!("  and {} (--all)\n", counted(rest as u64, "other type", "other types")));
        }
        out
    }

    fn explained(&self, subject: &Subject<'_>) -> String {
        let Explanation { object, root, shortest, dominators, retained_objects, .. } = &subject.explanation;
        let mut out = String::new();
        if let Some(row) = subject.of_type {
            out.push_str(&format!(
                "{}: {} of {}, which retain {}. The one that retains most:\n",
                clean(&row.name),
                counted(row.objects, "object", "objects"),
                size(row.size_bytes),
                size(row.retained_bytes)
            ));
        }
        out.push_str(&format!(
            "{:#x} {}: {}, retains {} in {}\n\n",
            object.address,
            clean(&object.type_name),
            size(object.size_bytes),
            size(object.retained_bytes),
            counted(u64::from(*retained_objects), "object", "objects")
        ));
        let Some(root) = root else {
            out.push_str("No root leads to it.\n");
            out.push_str(&self.allocated());
            return out;
        };
        out.push_str("Shortest path from a root:\n");
        out.push_str(&format!("  {}\n", clean(&root.describe())));
        out.push_str(&self.path(shortest));
        out.push_str("\nDominators (every path from any root leads through each of these):\n");
        if dominators.len() < 2 {
            out.push_str("  none: it has a root of its own, or it is held in several ways\n");
        } else {
            out.push_str(&self.path(dominators));
        }
        out.push_str(&self.allocated());
        out
    }

    /// Which methods allocated the objects of the type.
    fn allocated(&self) -> String {
        let Some(origins) = self.origins.filter(|origins| origins.samples > 0) else { return String::new() };
        let samples = counted(origins.samples, "sampled object", "sampled objects");
        let mut out = format!("\nWhich method of your own allocated them, by {samples}; with 95 % confidence:\n");
        let mut columns = Columns::new(&[">  share", ">from", ">to", ">samples", "own method"]);
        let shown = if self.args.all { usize::MAX } else { SHOWN };
        for row in origins.rows.iter().take(shown) {
            let [share, low, high] = origins.share(row).map(|share| format!("{:.1} %", share * 100.0));
            let own = match row.group.own_method.as_str() {
                "" => "(no code of your own)".into(),
                own => clean(own),
            };
            columns.row([share, low, high, count(row.samples), own]);
        }
        columns.print(&mut out);
        if origins.rows.len() > shown {
            out.push_str(&format!("  and {} others (--all)\n", count((origins.rows.len() - shown) as u64)));
        }
        out
    }

    fn path(&self, steps: &[Step]) -> String {
        let mut columns = Columns::new(&["  object", ">bytes", ">retained", "type"]);
        let is_long = !self.args.all && steps.len() > 2 * PATH_ENDS + 1;
        for (index, step) in steps.iter().enumerate() {
            if is_long && (PATH_ENDS..steps.len() - PATH_ENDS).contains(&index) {
                if index == PATH_ENDS {
                    let more = format!("  ... {} more", count((steps.len() - 2 * PATH_ENDS) as u64));
                    columns.row([more, String::new(), String::new(), "(--all)".into()]);
                }
                continue;
            }
            columns.row([
                format!("  {:#x}", step.address),
                size(step.size_bytes),
                size(step.retained_bytes),
                clean(&step.type_name),
            ]);
        }
        let mut out = String::new();
        columns.print(&mut out);
        out
    }

    fn json(&self, subject: Option<&Subject<'_>>) -> Value {
        let graph = self.graph;
        let (unreachable, unreachable_bytes) = self.retention.unreachable(graph);
        let types: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "type": &*row.name, "objects": row.objects, "size_bytes": row.size_bytes,
                    "retained_bytes": row.retained_bytes, "retained_objects": row.retained_objects,
                    "unreachable_objects": row.unreachable,
                })
            })
            .collect();
        let mut object = json!({
            "gc_id": graph.snapshot.gc_id, "gc_number": graph.snapshot.gc_number, "start_ts_ns": graph.snapshot.start_ns,
            "complete": graph.snapshot.complete,
            "snapshots": self.all.iter().map(|snapshot| snapshot.gc_id).collect::<Vec<_>>(),
            "objects": graph.len(), "size_bytes": graph.size_bytes(), "references": graph.reference_count,
            "dependent_handles": graph.dependent_count, "rooted_objects": graph.roots.len(), "weak_roots": graph.weak_roots,
            "unreachable_objects": unreachable, "unreachable_bytes": unreachable_bytes,
            "left_out": {
                "repeated_objects": graph.unresolved.repeated_objects, "roots": graph.unresolved.roots,
                "references_without_object": graph.unresolved.without_object,
                "references_without_target": graph.unresolved.without_target,
            },
            "types": types,
        });
        if let (Some(subject), Some(object)) = (subject, object.as_object_mut()) {
            let Explanation { object: about, root, shortest, dominators, retained_objects, .. } = &subject.explanation;
            let steps = |steps: &[Step]| steps.iter().map(step_json).collect::<Vec<_>>();
            let root = root.as_ref().map(|root| {
                json!({ "kind": &*root.kind, "name": root.name.as_deref(), "root_id": root.id, "description": root.describe() })
            });
            object.insert("object".into(), step_json(about));
            object.insert("retained_objects".into(), json!(retained_objects));
            object.insert("root".into(), json!(root));
            object.insert("shortest_path".into(), json!(steps(shortest)));
            object.insert("dominators".into(), json!(steps(dominators)));
            if let Some(origins) = self.origins {
                let origin = |row: &lifetime::OriginRow| {
                    let [share, low, high] = origins.share(row);
                    let name = |text: &str| (!text.is_empty()).then(|| text.to_owned());
                    json!({
                        "own_method": name(&row.group.own_method), "assembly": name(&row.group.assembly),
                        "sample_count": row.samples, "allocation_bytes": row.bytes,
                        "share": share, "share_low": low, "share_high": high,
                    })
                };
                object.insert("allocated_by".into(), json!(origins.rows.iter().map(origin).collect::<Vec<_>>()));
            }
        }
        object
    }
}
