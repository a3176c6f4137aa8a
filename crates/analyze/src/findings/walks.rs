//! Old objects that hold young ones, where an analysis for generations walked the heap at the end of a young collection.
//!
//! Such a recording has no marking, which the rule `young_held_by_old` is made of, but each object and each reference.

use std::collections::BTreeMap;

use tracequet_dataset::error::Result;
use tracequet_dataset::read::Recording;

use super::holders::{graph_of, short_path};
use super::judge::{Finding, sort};
use super::score::score;
use super::verdict::Verdict;
use super::words;
use crate::heap::{self, HeapGraph, Retention, explain};
use crate::present::units::count;

const RULE: &str = "young_held_by_old";

/// The tables that it is judged by, beside those of the heap.
pub(super) const TABLES: [&str; 2] = ["gc", "gc_generation_range"];

/// With fewer young objects there is no verdict.
const LEAST_OBJECTS: u64 = 1_000;

/// Generations of old objects: 2, large objects, pinned objects.
const OLD: std::ops::RangeInclusive<u8> = 2..=4;

tracequet_dataset::row!(struct Collection of gc { gc_id, generation });

tracequet_dataset::row!(struct Bound of gc_generation_range { gc_id, phase, generation, range_start, range_length });

/// What old objects hold.
#[derive(Debug, Default)]
struct Held {
    young_objects: u64,
    young_bytes: u64,
    held_objects: u64,
    held_bytes: u64,
    /// The old object that holds most young ones, and how many.
    largest: Option<(u32, u64)>,
}

/// Judges the last walk of a young collection.
pub(super) fn judge_walks(recording: &Recording<'_>, found: &mut Vec<Finding>) -> Result<()> {
    let has = |name: &str| recording.tables().any(|table| table.name == name && table.rows > 0);
    let is_open = |finding: &Finding| finding.rule == RULE && finding.verdict < Verdict::Fine;
    if !found.iter().any(is_open)
        || !TABLES.into_iter().all(has)
        || heap::TABLES.iter().any(|name| recording.table(name).is_err())
    {
        return Ok(());
    }
    let mut generations: BTreeMap<u32, Option<u8>> = BTreeMap::new();
    let walks = heap::snapshots(recording)?;
    recording.each_recorded::<Collection<'_>>(|row| {
        if walks.iter().any(|walk| walk.gc_id == row.gc_id) {
            generations.insert(row.gc_id, row.generation);
        }
    })?;
    // The collection of an ordinary heap dump is a full one, behind which hardly any object is young.
    let Some(walk) = walks.iter().rfind(|walk| generations.get(&walk.gc_id) != Some(&Some(2))) else { return Ok(()) };
    let is_its = |finding: &&mut Finding| is_open(finding) && [0, walk.process_id].contains(&finding.process_id);
    let Some(finding) = found.iter_mut().find(is_its) else { return Ok(()) };
    let mut bounds: Vec<(u64, u64, u8)> = Vec::new();
    recording.each_recorded::<Bound<'_>>(|row| {
        if row.gc_id == walk.gc_id && row.phase == "end" {
            bounds.push((row.range_start, row.range_start.saturating_add(row.range_length), row.generation));
        }
    })?;
    bounds.sort_unstable();
    let Some(graph) = graph_of(recording, walk)? else { return Ok(()) };
    let held = held(&graph, &bounds);
    if held.young_objects < LEAST_OBJECTS {
        let why =
            format!("{} young objects that the walk of the heap found are too little.", count(held.young_objects));
        (finding.verdict, finding.sentence) = (Verdict::TooLittle, why);
    } else {
        judge(&graph, &held, finding);
        finding.evidence_sql = Some(format!(
            "SELECT holder_type, young_type, holders, held_references, young_objects, young_bytes FROM old_to_young WHERE trace_id = {} AND \
             gc_id = {} ORDER BY young_bytes DESC LIMIT 20",
            words::quoted(&recording.info().trace_id),
            walk.gc_id
        ));
    }
    sort(found);
    Ok(())
}

fn held(graph: &HeapGraph, bounds: &[(u64, u64, u8)]) -> Held {
    let generation = |node: u32| {
        let address = graph.address(node);
        let last = bounds.partition_point(|(start, ..)| *start <= address).checked_sub(1)?;
        bounds.get(last).filter(|(_, end, _)| address < *end).map(|(.., generation)| *generation)
    };
    let is_young = |node: u32| generation(node).is_some_and(|generation| generation < 2);
    let mut is_held = vec![false; graph.len() as usize];
    let mut sums = Held::default();
    for node in 0..graph.len() {
        if is_young(node) {
            sums.young_objects += 1;
            sums.young_bytes = sums.young_bytes.saturating_add(graph.size(node));
        }
        if !generation(node).is_some_and(|generation| OLD.contains(&generation)) {
            continue;
        }
        let mut young = 0;
        for target in graph.references.targets(node).filter(|target| is_young(*target)) {
            young += 1;
            let seen = is_held.get_mut(target as usize).map(|seen| std::mem::replace(seen, true));
            if seen == Some(false) {
                sums.held_objects += 1;
                sums.held_bytes = sums.held_bytes.saturating_add(graph.size(target));
            }
        }
        if young > sums.largest.map_or(0, |(_, most)| most) {
            sums.largest = Some((node, young));
        }
    }
    sums
}

fn judge(graph: &HeapGraph, held: &Held, finding: &mut Finding) {
    let value = held.held_bytes as f64 / (held.young_bytes as f64).max(1.0);
    // Little that lives on costs little.
    let at_most = score(held.held_bytes as f64, 100e3, 10e6);
    let score = score(value, finding.info_limit, finding.warning_limit).min(at_most);
    (finding.verdict, finding.score, finding.figure) = (Verdict::of_score(score), Some(score), Some(value));
    finding.sentence = format!(
        "In the last walk of the heap {} of {} young objects, {} of {}, are held by old ones.",
        count(held.held_objects),
        count(held.young_objects),
        words::size(held.held_bytes as f64),
        words::size(held.young_bytes as f64)
    );
    let Some((node, young)) = held.largest else { return };
    let explanation = explain(graph, &Retention::of(graph), node);
    let name = &explanation.object.type_name;
    let path = short_path(&explanation).map_or_else(String::new, |path| format!(", held by {path}"));
    finding.sentence += &format!(" One {} holds {} of them{path}.", words::short(name, 80), count(young));
    finding.subject = Some(name.to_string());
    finding.next_step = format!("tracequet heap IN --object {:#x}", explanation.object.address);
}
