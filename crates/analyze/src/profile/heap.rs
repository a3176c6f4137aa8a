//! A heap dump as a profile: a stack is the types of the objects without each of which the next one would be freed, so that the sum
//! below a type is what it retains.

use super::model::{Code, Function, Profile, ProfileFrame, Sample, ThreadSamples, Unit, What};
use crate::heap::{self, HeapGraph, Retention, Snapshot};
use crate::prelude::*;
use crate::subjects::sites::is_of_framework;

/// Memory of the graph in bytes, where nothing else bounds it.
const MAX_GRAPH: u64 = 8 << 30;

/// The largest number of stacks, and of types on a stack. Objects beyond them count for the stack that holds them.
const MAX_STACKS: usize = 1 << 20;
const MAX_DEPTH: u32 = 64;

/// Reads the last heap dump of a recording into its profile. Fails for a recording without a heap dump.
pub(super) fn read(recording: &Recording<'_>, profile: Profile) -> Result<Profile> {
    let snapshot = heap::snapshot(recording, None)?;
    let graph = heap::read(recording, &snapshot, MAX_GRAPH)?;
    Ok(of(&graph, &Retention::of(&graph), &snapshot, profile))
}

/// The profile of a heap: `profile` has what is known of the recording. Objects that no root leads to are left out.
pub fn of(graph: &HeapGraph, retention: &Retention, snapshot: &Snapshot, profile: Profile) -> Profile {
    // Of each stack its caller, its type, how deep it is, and what its objects are less what those below are.
    let mut stacks: Vec<(u32, u32, u32, i128)> = vec![(0, 0, 0, 0)];
    let mut places: Map<(u32, u32), u32> = Map::default();
    retention.fold_down(graph, 0u32, |kind, bytes, above| {
        let depth = stacks.get(above as usize).map_or(0, |(_, _, depth, _)| depth + 1);
        let at = match places.get(&(above, kind)) {
            Some(known) => *known,
            None if above > 0 && (stacks.len() >= MAX_STACKS || depth > MAX_DEPTH) => above,
            None => {
                let new = u32::try_from(stacks.len()).unwrap_or(u32::MAX);
                stacks.push((above, kind, depth, 0));
                places.insert((above, kind), new);
                new
            }
        };
        // The bytes that an object retains count for its type's stack, and no longer for the stack that holds it.
        for (place, change) in [(at, i128::from(bytes)), (above, -i128::from(bytes))] {
            if let Some((.., own)) = stacks.get_mut(place as usize) {
                *own += change;
            }
        }
        at
    });
    let functions = graph.type_names.iter().map(|name| Function {
        name: name.to_string(),
        code: Code::Managed,
        is_framework: Some(is_of_framework(name)),
        ..Function::default()
    });
    let functions: Vec<Function> = functions.collect();
    let frames = (0..functions.len() as u32).map(|function| ProfileFrame { function, line: 0 }).collect();
    let of_stacks = (0u32..).zip(&stacks).skip(1);
    let samples = of_stacks.map(|(callsite, (.., own))| Sample {
        ts_ns: snapshot.start_ns,
        callsite,
        weight: u64::try_from(*own).unwrap_or_default(),
    });
    let number = if snapshot.gc_number > 0 { snapshot.gc_number } else { snapshot.gc_id };
    let thread = ThreadSamples {
        process_id: snapshot.process_id,
        thread_id: 0,
        label: format!("Heap in GC #{number}"),
        samples: samples.filter(|sample| sample.weight > 0).collect(),
    };
    let callsites = stacks.iter().map(|(above, kind, ..)| (*above, *kind)).collect();
    let (what, unit, table) = (What::Heap, Unit::Bytes, "heap_object".to_owned());
    Profile { what, unit, table, functions, frames, callsites, threads: vec![thread], places: vec![0], ..profile }
}
