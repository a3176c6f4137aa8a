//! A heap dump as a profile: a stack is the types of the objects without each of which the next one would be freed, so that the sum
//! below a type is what it retains.

use super::model::{Code, Function, Profile, ProfileFrame, Sample, ThreadSamples, Unit, What};
use crate::heap::{self, HeapGraph, Retention, Snapshot};
use crate::prelude::*;
use crate::subjects::sites::is_of_framework;

/// Memory of the graph in bytes, where nothing else bounds it.
const MAX_GRAPH: u64 = 8 << 30;

/// Types on a stack. Objects beyond them count for the stack that holds them.
const MAX_DEPTH: u32 = 64;

/// Reads the last heap dump of a recording into its profile. Fails for a recording without a heap dump.
pub(super) fn read(recording: &Recording<'_>, profile: Profile) -> Result<Profile> {
    let snapshot = heap::snapshot(recording, None)?;
    let graph = heap::read(recording, &snapshot, MAX_GRAPH)?;
    Ok(of(&graph, &Retention::of(&graph), &snapshot, profile))
}

/// The profile of a heap: `profile` has what is known of the recording. Objects that no root leads to are left out.
pub fn of(graph: &HeapGraph, retention: &Retention, snapshot: &Snapshot, profile: Profile) -> Profile {
    let branches = retention.branches(graph, MAX_DEPTH);
    // The bytes of each branch without those of the branches below.
    let mut own: Vec<u64> = branches.iter().map(|branch| branch.bytes).collect();
    for branch in &branches {
        if let Some(above) = own.get_mut(branch.above as usize) {
            *above = above.saturating_sub(branch.bytes);
        }
    }
    let functions = graph.type_names.iter().map(|name| Function {
        name: name.to_string(),
        code: Code::Managed,
        is_framework: Some(is_of_framework(name)),
        ..Function::default()
    });
    let functions: Vec<Function> = functions.collect();
    let frames = (0..functions.len() as u32).map(|function| ProfileFrame { function, line: 0 }).collect();
    let samples = (0u32..).zip(own).skip(1);
    let samples = samples.map(|(callsite, weight)| Sample { ts_ns: snapshot.start_ns, callsite, weight });
    let number = if snapshot.gc_number > 0 { snapshot.gc_number } else { snapshot.gc_id };
    let thread = ThreadSamples {
        process_id: snapshot.process_id,
        thread_id: 0,
        label: format!("Heap in GC #{number}"),
        samples: samples.filter(|sample| sample.weight > 0).collect(),
    };
    let callsites = branches.iter().map(|branch| (branch.above, branch.kind)).collect();
    let (what, unit, table) = (What::Heap, Unit::Bytes, "heap_object".to_owned());
    Profile { what, unit, table, functions, frames, callsites, threads: vec![thread], places: vec![0], ..profile }
}
