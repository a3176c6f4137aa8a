//! Holders of the objects of which there are more and more, where the recording has a dump of the heap, too.

use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::read::Recording;

use super::judge::Finding;
use super::verdict::Verdict;
use super::words;
use crate::heap::{self, Explanation, HeapGraph, Retention, Snapshot, held};

/// The rules about objects that stay. The first one names their type.
const RULES: [&str; 2] = ["leak", "growing_live_set"];

/// Memory of the graph, as of `tracequet heap`. A larger heap is left to that command.
const MEMORY: u64 = 4 << 30;

/// Steps of a path that are named: as many of its beginning and of its end.
const PATH_ENDS: usize = 5;

/// Letters of a path.
const MAX_PATH: usize = 600;

/// Adds the root and the path to what is said of objects that stay, by the last dump of the heap.
pub(super) fn name_holders(recording: &Recording<'_>, found: &mut [Finding]) -> Result<()> {
    let of_interest = |finding: &Finding| finding.verdict >= Verdict::Info && RULES.contains(&finding.rule.as_str());
    let has = |name: &str| recording.table(name).is_ok();
    if !found.iter().any(of_interest) || !heap::TABLES.into_iter().all(has) {
        return Ok(());
    }
    let mut processes: Vec<u64> = found.iter().filter(|f| of_interest(f)).map(|finding| finding.process_id).collect();
    processes.sort_unstable();
    processes.dedup();
    let walks = heap::snapshots(recording)?;
    for process in processes {
        let is_its = |walk: &&Snapshot| process == 0 || walk.process_id == process;
        let Some(walk) = walks.iter().rev().find(is_its) else { continue };
        let Some(graph) = graph_of(recording, walk)? else { continue };
        let retention = Retention::of(&graph);
        let leaked = found.iter().find(|f| of_interest(f) && f.process_id == process && f.rule == RULES[0]);
        let leaked = leaked.and_then(|finding| finding.subject.clone());
        let Some((name, held)) = holder(&graph, &retention, leaked.as_deref()) else { continue };
        for finding in found.iter_mut().filter(|f| of_interest(f) && f.process_id == process) {
            finding.sentence = format!("{} {held}", finding.sentence);
            finding.next_step = format!("tracequet heap IN --type {}", words::in_shell(&words::short(&name, 400)));
            finding.subject.get_or_insert_with(|| name.clone());
        }
    }
    Ok(())
}

/// The graph of a walk, if there is memory for it.
pub(super) fn graph_of(recording: &Recording<'_>, walk: &Snapshot) -> Result<Option<HeapGraph>> {
    match heap::read(recording, walk, MEMORY) {
        Err(Error::TooLarge(_) | Error::OverMemory(_)) => Ok(None),
        graph => graph.map(Some),
    }
}

/// The path to an object, as far as there is room for it.
pub(super) fn short_path(explanation: &Explanation) -> Option<String> {
    explanation.path(PATH_ENDS).map(|path| words::short(&path, MAX_PATH))
}

/// A type, and a sentence on what holds it: the type that leaks, or else the own type that retains most.
fn holder(graph: &HeapGraph, retention: &Retention, leaked: Option<&str>) -> Option<(String, String)> {
    let at_end = |name: &str| {
        let held = held(graph, retention, name, |_| 0.0)?;
        let (retained, path) = (words::size(held.retained_bytes as f64), short_path(&held.explanation)?);
        let (name_of, is_one) = (words::short(name, 80), held.objects == 1);
        let objects = match is_one {
            true => format!("1 object of {name_of}, which retains {retained}, is held"),
            false => format!("{} objects of {name_of}, which retain {retained}, are held", held.objects),
        };
        Some((name.to_owned(), format!("In the last heap dump {objects} by {path}.")))
    };
    leaked.and_then(at_end).or_else(|| {
        let types = retention.by_type(graph);
        let own = types.iter().find(|row| words::is_own_type(&row.name) && row.unreachable < row.objects);
        at_end(&own?.name)
    })
}
