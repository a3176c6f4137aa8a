//! What grew between walks of the heap, for `tracequet heap --base` and `tracequet diff`.

use std::sync::Arc;

use serde_json::{Value, json};
use tracequet::Error;
use tracequet::analyze::diff::{Held, TypeAmounts, TypeChange, Walked, heap_difference, held};
use tracequet::analyze::heap::{HeapGraph, Retention, Snapshot, Step, read};
use tracequet::dataset::read::Recording;

use super::check_report;
use super::text::{clean, count, counted, moment, size};

/// Types of which it is shown what holds them.
const HELD: usize = 3;

/// Steps of a path that are shown: as many of its beginning and of its end.
const PATH_ENDS: usize = 5;

/// The heaps of two sides.
pub struct HeapChange {
    pub base: Vec<Walked>,
    pub new: Vec<Walked>,
    pub types: Vec<TypeChange>,
    /// What holds the types that grew most.
    pub held: Vec<(Arc<str>, Held)>,
}

/// Compares walks. Only one graph is held at a time; what holds objects is looked up in the last one of the new side, of the types
/// that grew most, or of the one that is asked about.
pub fn change(
    base: &[(Recording<'_>, Snapshot)],
    new: &[(Recording<'_>, Snapshot)],
    memory: u64,
    asked: Option<&str>,
) -> Result<HeapChange, Error> {
    let graph_of = |(recording, snapshot): &(Recording<'_>, Snapshot)| {
        let graph = read(recording, snapshot, memory)?;
        let retention = Retention::of(&graph);
        Ok::<_, Error>((Walked::of(&recording.info().trace_id, &graph, &retention), graph, retention))
    };
    let base: Vec<Walked> = base.iter().map(|walk| Ok(graph_of(walk)?.0)).collect::<Result<_, Error>>()?;
    let mut last: Option<(HeapGraph, Retention)> = None;
    let mut walks = Vec::new();
    for walk in new {
        drop(last.take());
        let (walked, graph, retention) = graph_of(walk)?;
        walks.push(walked);
        last = Some((graph, retention));
    }
    let types = heap_difference(&base, &walks);
    let mut found: Vec<(Arc<str>, Held)> = Vec::new();
    let grew = |change: &&TypeChange| match asked {
        Some(name) => *change.name == *name,
        None => change.size_bytes() > 0.0 && !change.is_noise(),
    };
    for change in types.iter().filter(grew) {
        let Some((graph, retention)) = &last else { break };
        // What lies on a path that is shown needs none of its own.
        let is_on = |(_, held): &(Arc<str>, Held)| held.explanation.shortest.iter().any(|s| s.type_name == change.name);
        if found.len() >= HELD || found.iter().any(is_on) {
            continue;
        }
        found.extend(held(graph, retention, &change.name, &base).map(|held| (change.name.clone(), held)));
    }
    Ok(HeapChange { base, new: walks, types, held: found })
}

/// A number of bytes or objects with its sign.
pub fn signed(value: f64, shown: fn(u64) -> String) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", shown(value.abs() as u64))
}

/// The columns of types, and their cells.
pub const HEADS: [&str; 8] = [">bytes", ">%", ">objects", ">retained", ">before", ">now", ">chance", "type"];

pub fn cells(change: &TypeChange) -> [String; 8] {
    let (before, now) = (change.base.size_bytes, change.new.size_bytes);
    [
        signed(change.size_bytes(), size),
        check_report::change(Some(before), Some(now)),
        signed(change.objects(), count),
        signed(change.retained_bytes(), size),
        size(before as u64),
        size(now as u64),
        change.chance.map_or_else(String::new, |chance| format!("{chance:.3}")),
        clean(&change.name),
    ]
}

/// All objects of both sides, in a sentence.
pub fn head(change: &HeapChange) -> String {
    let of = |walks: &[Walked]| match walks {
        [walk] => {
            let (of, Snapshot { gc_id, start_ns, .. }) = (clean(&walk.trace_id), &walk.snapshot);
            let objects = counted(walk.objects, "object", "objects");
            format!("{objects} of {} (collection {gc_id} of {of} at {} s)", size(walk.size_bytes), moment(*start_ns))
        }
        all => {
            let bytes = all.iter().map(|walk| walk.size_bytes).max().unwrap_or_default();
            format!("{} of at most {}", counted(all.len() as u64, "walk", "walks"), size(bytes))
        }
    };
    let missing = change.base.iter().chain(&change.new).any(|walk| !walk.is_whole);
    let missing = if missing { "; a part of a walk is missing" } else { "" };
    format!("{} before, {} now{missing}", of(&change.base), of(&change.new))
}

/// What holds a type, in a sentence.
pub fn holder((name, held): &(Arc<str>, Held)) -> String {
    let objects = counted(held.objects, "object", "objects");
    let before = size(held.base_bytes as u64);
    let start = format!("{}: {} in {objects} ({before} before) held by", clean(name), size(held.size_bytes));
    let path = held.explanation.path(PATH_ENDS);
    format!("{start} {}", path.map_or_else(|| "no root of the recording".to_owned(), |path| clean(&path)))
}

/// Everything as JSON.
pub fn json(change: &HeapChange) -> Value {
    let walk = |walk: &Walked| {
        json!({
            "trace_id": walk.trace_id, "gc_id": walk.snapshot.gc_id, "start_ts_ns": walk.snapshot.start_ns,
            "objects": walk.objects, "size_bytes": walk.size_bytes, "complete": walk.is_whole,
        })
    };
    let amounts = |amounts: &TypeAmounts| {
        json!({
            "objects": amounts.objects, "size_bytes": amounts.size_bytes, "retained_bytes": amounts.retained_bytes,
        })
    };
    let one = |change: &TypeChange| {
        json!({
            "type": &*change.name, "base": amounts(&change.base), "new": amounts(&change.new), "chance": change.chance,
            "is_noise": change.is_noise(),
        })
    };
    let way = |(name, held): &(Arc<str>, Held)| {
        json!({
            "type": &**name, "objects": held.objects, "size_bytes": held.size_bytes, "base_size_bytes": held.base_bytes,
            "root": held.explanation.root.as_ref().map(|root| root.describe()),
            "shortest_path": held.explanation.shortest.iter().map(step_json).collect::<Vec<_>>(),
        })
    };
    json!({
        "base": change.base.iter().map(walk).collect::<Vec<_>>(),
        "new": change.new.iter().map(walk).collect::<Vec<_>>(),
        "types": change.types.iter().map(one).collect::<Vec<_>>(),
        "held": change.held.iter().map(way).collect::<Vec<_>>(),
    })
}

/// A step of a path as JSON.
pub fn step_json(step: &Step) -> Value {
    json!({
        "address": step.address, "type": &*step.type_name, "size_bytes": step.size_bytes,
        "retained_bytes": step.retained_bytes,
    })
}
