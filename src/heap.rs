//! `tracequet heap`: which types fill the heap, what they retain, and what keeps an object alive.

use serde_json::{Value, json};
use tracequet::Keep;
use tracequet::analyze::diff::HeapChange;
use tracequet::analyze::heap::{
    Explanation, HeapGraph, Retention, Snapshot, Step, TABLES, TypeRow, explain, read, snapshot, snapshots,
};
use tracequet::analyze::lifetime::{self, By, OriginRow, Origins, origins};
use tracequet::analyze::present::units::{count, counted, moment, size};
use tracequet::dataset::read::Recording;

use super::heap_diff::{self, step_json};
use super::prelude::*;

/// The description of the command.
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
    #[command(flatten)]
    pub asked: AskedArgs,
    /// Memory limit for the graph: 48 bytes for an object or root, 8 bytes for a reference; a larger heap is refused
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = values::size)]
    pub memory: u64,
    #[command(flatten)]
    pub format: FormatArgs,
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
    let request = args.asked.request().keep(Keep::walk(args.memory, args.gc));
    let mut opened = opened::open(&args.input, &tables, &args.asked, request)?;
    let recording = opened.dataset.recording(args.asked.trace())?;
    let all = snapshots(&recording)?;
    let snapshot = snapshot(&recording, args.gc)?;
    let graph = match opened.kept.walk.take() {
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
    let origins = origins.as_ref();
    let heap = Heap { args, graph: &graph, retention: &retention, rows: &rows, all: &all, subject, origins };
    args.format.print(&heap, Outcome::with_losses(opened.losses))
}

/// Prints the types that grew since another walk.
fn compared(args: &HeapArgs) -> anyhow::Result<Outcome> {
    let opened = opened::open(&args.input, &TABLES, &args.asked, args.asked.request())?;
    let recording = opened.dataset.recording(args.asked.trace())?;
    let new = (recording, snapshot(&recording, args.gc)?);
    let open = |path: &std::path::Path| opened::open(path, &TABLES, &args.asked, args.asked.request());
    let other = args.base.as_deref().map(open).transpose()?;
    let of_base = match &other {
        Some(other) => other.dataset.recording(args.base_trace.as_deref())?,
        None if args.base_trace.is_some() => opened.dataset.recording(args.base_trace.as_deref())?,
        None => recording,
    };
    let base = (of_base, snapshot(&of_base, args.base_gc)?);
    let mut change = HeapChange::between(&[base], &[new], args.memory, args.type_name.as_deref())?;
    let types = &mut change.types;
    match args.by {
        OrderArg::Size => {}
        OrderArg::Retained => types.sort_by(|a, b| b.retained_bytes().abs().total_cmp(&a.retained_bytes().abs())),
        OrderArg::Count => types.sort_by(|a, b| b.objects().abs().total_cmp(&a.objects().abs())),
    }
    let losses = opened.losses || other.is_some_and(|other| other.losses);
    args.format.print(&heap_diff::Grown { change: &change, all: args.all }, Outcome::with_losses(losses))
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
    subject: Option<Subject<'r>>,
    origins: Option<&'r Origins>,
}

impl Heap<'_> {
    fn head(&self, out: &mut Document) {
        let graph = self.graph;
        let Snapshot { gc_id, gc_number, start_ns, complete, .. } = graph.snapshot;
        // Dumps of other tools and of Mono have no number.
        let collection = match gc_number {
            0 => format!("collection {gc_id}"),
            number => format!("GC #{number} (gc_id {gc_id})"),
        };
        out.line(format!(
            "Heap in {collection} at {} s: {} of {} in all, {}, {}",
            moment(start_ns),
            counted(graph.len().into(), "object", "objects"),
            size(graph.size_bytes()),
            counted(graph.reference_count, "reference", "references"),
            counted(graph.roots.len() as u64, "object with a root", "objects with roots"),
        ));
        let others: Vec<_> =
            self.all.iter().filter(|other| other.gc_id != gc_id).map(|s| s.gc_id.to_string()).collect();
        if !others.is_empty() {
            let listed = others.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
            out.note(format!("other walks of the heap: in collection {listed} (--gc)"));
        }
        let (unreachable, bytes) = self.retention.unreachable(graph);
        if unreachable > 0 {
            let objects = counted(unreachable, "object is", "objects are");
            out.note(format!("{objects} unreachable: {} in all", size(bytes)));
        }
        let missing = graph.unresolved;
        if !complete || missing.without_object > 0 {
            out.note("a part of the walk is missing from the recording: sizes and paths are those of the rest");
        }
        for (number, one, many) in [
            (missing.without_object, "reference of no known object", "references of no known object"),
            (missing.without_target, "reference to no listed object", "references to no listed object"),
            (missing.roots, "root of no listed object", "roots of no listed object"),
            (missing.repeated_objects, "object that is listed again", "objects that are listed again"),
        ] {
            if number > 0 {
                out.note(format!("left out: {}", counted(number, one, many)));
            }
        }
        out.gap();
    }

    fn explained(&self, subject: &Subject<'_>, out: &mut Document) {
        let Explanation { object, root, shortest, dominators, retained_objects, .. } = &subject.explanation;
        if let Some(row) = subject.of_type {
            let objects = counted(row.objects, "object", "objects");
            let (bytes, retained) = (size(row.size_bytes), size(row.retained_bytes));
            let words = format!(": {objects} of {bytes}, which retain {retained}. The one that retains most:");
            out.line(Sentence::default().text(&row.name).words(words));
        }
        let (bytes, retained) = (size(object.size_bytes), size(object.retained_bytes));
        let objects = counted(u64::from(*retained_objects), "object", "objects");
        let named = Sentence::from(format!("{:#x} ", object.address)).text(&object.type_name);
        out.line(named.words(format!(": {bytes}, retains {retained} in {objects}")));
        let Some(root) = root else {
            out.gap();
            out.line("No root leads to it.");
            return self.allocated(out);
        };
        out.heading("Shortest path from a root:");
        out.note(Cell::sentence(&root.describe()));
        out.table(self.path(shortest));
        out.heading("Dominators (every path from any root leads through each of these):");
        if dominators.len() < 2 {
            out.note("none: it has a root of its own, or it is held in several ways");
        } else {
            out.table(self.path(dominators));
        }
        self.allocated(out);
    }

    /// Which methods allocated the objects of the type.
    fn allocated(&self, out: &mut Document) {
        let Some(origins) = self.origins.filter(|origins| origins.samples > 0) else { return };
        let samples = counted(origins.samples, "sampled object", "sampled objects");
        out.heading(format!("Which method of your own allocated them, by {samples}; with 95 % confidence:"));
        let most = if self.args.all { usize::MAX } else { SHOWN };
        first_rows(out, allocated_by(origins).first(most), "other", "others");
    }

    fn path(&self, steps: &[Step]) -> Table {
        let columns = [words("object", ""), numbers("bytes", ""), numbers("retained", ""), words("type", "")];
        let mut table = Table::new("path", &columns);
        let is_long = !self.args.all && steps.len() > 2 * PATH_ENDS + 1;
        for (index, step) in steps.iter().enumerate() {
            if is_long && (PATH_ENDS..steps.len() - PATH_ENDS).contains(&index) {
                if index == PATH_ENDS {
                    let more = format!("... {} more", count((steps.len() - 2 * PATH_ENDS) as u64));
                    table.row([Cell::words(more), Cell::words(""), Cell::words(""), Cell::words("(--all)")]);
                }
                continue;
            }
            table.row([
                Cell::number(Some(step.address), Unit::Address),
                Cell::size(step.size_bytes),
                Cell::size(step.retained_bytes),
                Cell::text(&step.type_name),
            ]);
        }
        table
    }
}

fn allocated_by(origins: &Origins) -> Table {
    table!("origins", &origins.rows, |row| {
        let OriginRow { group, samples, bytes, .. } = row;
        let [share, low, high] = origins.share(row).map(Cell::share);
        let own = match group.own_method.as_str() {
            "" if group.is_unnamed => Cell::Missing.shown_as(Cell::words("(names were not recorded)")),
            "" => Cell::Missing.shown_as(Cell::words("(no code of your own)")),
            own => Cell::text(own),
        };
    } {
        numbers("share", "").key("share") => share,
        numbers("from", "").key("share_low") => low,
        numbers("to", "").key("share_high") => high,
        numbers("samples", "").key("sample_count") => Cell::count(*samples),
        words("own method", "").key("own_method") => own,
        Column::raw("assembly") => Cell::text(&group.assembly),
        Column::raw("allocation_bytes") => Cell::size(*bytes),
    })
}

impl Answer for Heap<'_> {
    fn document(&self) -> Document {
        let mut out = Document::default();
        self.head(&mut out);
        match &self.subject {
            Some(subject) => self.explained(subject, &mut out),
            None => {
                let most = if self.args.all { usize::MAX } else { SHOWN };
                first_rows(&mut out, self.rows().first(most), "other type", "other types");
            }
        }
        out
    }

    fn rows(&self) -> Table {
        let whole = self.graph.size_bytes().max(1) as f64;
        table!("types", self.rows, |row| {
            numbers("retained", "").key("retained_bytes") => Cell::size(row.retained_bytes),
            numbers("share", "") => Cell::share(row.retained_bytes as f64 / whole),
            numbers("bytes", "").key("size_bytes") => Cell::size(row.size_bytes),
            numbers("objects", "").key("objects") => Cell::count(row.objects),
            words("type", "").key("type") => Cell::text(&row.name),
            Column::raw("retained_objects") => Cell::count(row.retained_objects),
            Column::raw("unreachable_objects") => Cell::count(row.unreachable),
        })
    }

    /// One object, with all types.
    fn json(&self) -> Value {
        let graph = self.graph;
        let (unreachable, unreachable_bytes) = self.retention.unreachable(graph);
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
            "types": self.rows().json(),
        });
        if let (Some(subject), Some(object)) = (&self.subject, object.as_object_mut()) {
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
                object.insert("allocated_by".into(), allocated_by(origins).json());
            }
        }
        object
    }
}
