//! What grew between walks of the heap.

use super::heap::{TypeChange, Walked, heap_difference, held};
use crate::heap::{HeapGraph, Held, Retention, Snapshot, read};
use crate::prelude::*;
use crate::present::clean;
use crate::present::units::{counted, size};

/// Types of which it is shown what holds them.
const HELD: usize = 3;

/// Steps of a path that are shown: as many of its beginning and of its end.
const PATH_ENDS: usize = 5;

/// The heaps of two sides.
#[derive(Clone, Debug)]
pub struct HeapChange {
    /// The walks of the base.
    pub base: Vec<Walked>,
    /// The walks of the new side.
    pub new: Vec<Walked>,
    /// The types that are not the same on both sides.
    pub types: Vec<TypeChange>,
    /// The holders of the types that grew most.
    pub held: Vec<(Arc<str>, Held)>,
}

impl HeapChange {
    /// Compares walks. Only one graph is held at a time; what holds objects is looked up in the last one of the new
    /// side, of the types that grew most, or of the one that is asked about.
    pub fn between(
        base: &[(Recording<'_>, Snapshot)],
        new: &[(Recording<'_>, Snapshot)],
        memory: u64,
        asked: Option<&str>,
    ) -> Result<HeapChange> {
        let graph_of = |(recording, snapshot): &(Recording<'_>, Snapshot)| {
            let graph = read(recording, snapshot, memory)?;
            let retention = Retention::of(&graph);
            Ok::<_, tracequet_dataset::error::Error>((
                Walked::of(&recording.info().trace_id, &graph, &retention),
                graph,
                retention,
            ))
        };
        let base: Vec<Walked> = base.iter().map(|walk| Ok(graph_of(walk)?.0)).collect::<Result<_>>()?;
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
            // A type on a path that is shown needs no path of its own.
            let is_on =
                |(_, held): &(Arc<str>, Held)| held.explanation.shortest.iter().any(|s| s.type_name == change.name);
            if found.len() >= HELD || found.iter().any(is_on) {
                continue;
            }
            found.extend(held(graph, retention, &change.name, &base).map(|held| (change.name.clone(), held)));
        }
        Ok(HeapChange { base, new: walks, types, held: found })
    }

    /// What holds the types that grew most, in sentences.
    pub fn holders(&self) -> impl Iterator<Item = String> + '_ {
        self.held.iter().map(|(name, held)| {
            let objects = counted(held.objects, "object", "objects");
            let before = size(held.base_bytes as u64);
            let start = format!("{}: {} in {objects} ({before} before) held by", clean(name), size(held.size_bytes));
            let path = held.explanation.path(PATH_ENDS);
            format!("{start} {}", path.map_or_else(|| "no root of the recording".to_owned(), |path| clean(&path)))
        })
    }
}
