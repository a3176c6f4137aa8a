//! A walk of the heap that is kept while a recording is converted, so that its objects are not written and read again.

use crate::prelude::*;

use tracequet_facts::fact::Fact;

use super::graph::HeapGraph;
use super::limit::Limit;
use super::read::of_kept;
use super::snapshots::Snapshot;
use super::walk::{Walk, parts};

/// The objects and references of one walk: that of a collection, or the last one.
#[derive(Debug)]
pub struct KeptWalk {
    memory: u64,
    wanted: Option<u32>,
    /// The last collection that has objects, and those behind it, which may get some.
    walks: BTreeMap<u32, Walk>,
    last: u32,
    refused: Option<String>,
}

impl KeptWalk {
    /// For a graph that takes at most this many bytes: of a collection by its `gc_id`, or of the last one with a walk.
    pub fn new(memory: u64, gc_id: Option<u32>) -> KeptWalk {
        KeptWalk { memory, wanted: gc_id, walks: BTreeMap::new(), last: 0, refused: None }
    }

    /// Takes what is part of the walk. Beyond the memory nothing is kept.
    pub fn fact(&mut self, fact: &Fact<'_>) {
        if let (Fact::HeapObject(rows), None) = (fact, self.wanted)
            && let Some(last) = rows.iter().map(|row| row.gc_id).max().filter(|last| *last > self.last)
        {
            self.last = last;
            self.walks = self.walks.split_off(&last);
        }
        parts(fact, &mut |gc_id, add| {
            let is_wanted = self.wanted.map_or(gc_id >= self.last, |wanted| wanted == gc_id);
            if !is_wanted || self.refused.is_some() {
                return;
            }
            let walk = self.walks.entry(gc_id).or_default();
            add(walk);
            if let Err(error) = (Limit { gc_id, memory: self.memory }).check(walk, 0) {
                self.refused = Some(error.to_string());
                self.walks.clear();
            }
        });
    }

    /// The graph of the walk, with the roots and names of the dataset that was written meanwhile. Fails when it takes
    /// more memory than is allowed, and when the walk is another one.
    pub fn graph(mut self, recording: &Recording<'_>, snapshot: &Snapshot) -> Result<HeapGraph> {
        if let Some(message) = self.refused {
            return Err(Error::OverMemory(message));
        }
        let limit = Limit { gc_id: snapshot.gc_id, memory: self.memory };
        let walk = self.walks.remove(&snapshot.gc_id);
        let walk = walk.ok_or_else(|| Error::Internal(format!("no walk of collection {} was kept", snapshot.gc_id)))?;
        self.walks.clear();
        of_kept(walk, recording, snapshot, &limit)
    }
}

#[cfg(test)]
mod tests {
    use tracequet_facts::fact::{GcWeakElement, HeapObject, HeapReference};

    use super::*;

    /// Objects and references of a collection, those of a handle before its objects.
    fn walk(into: &mut KeptWalk, gc_id: u32, objects: u64) {
        let weak = GcWeakElement { gc_id, key_object_id: 8, value_object_id: 16, ..GcWeakElement::default() };
        into.fact(&Fact::GcWeakElement(&[weak]));
        for number in 0..objects {
            let object = HeapObject { gc_id, object_id: number * 8, size_bytes: 8, ..HeapObject::default() };
            let reference = HeapReference { gc_id, object_id: number * 8, ..HeapReference::default() };
            into.fact(&Fact::HeapObject(&[object]));
            into.fact(&Fact::HeapReference(&[reference]));
        }
    }

    fn kept(walks: &KeptWalk) -> Vec<(u32, u64, u64)> {
        walks.walks.iter().map(|(gc_id, walk)| (*gc_id, walk.object_count, walk.reference_count())).collect()
    }

    #[test]
    fn the_last_walk_with_objects_is_kept_or_the_one_that_is_asked_for() {
        let (mut last, mut asked) = (KeptWalk::new(1 << 20, None), KeptWalk::new(1 << 20, Some(3)));
        for walks in [&mut last, &mut asked] {
            for (gc_id, objects) in [(1, 5), (3, 7), (4, 0), (6, 9), (8, 0)] {
                walk(walks, gc_id, objects);
            }
            // Rows that come late for another walk are left out.
            walk(walks, 1, 2);
        }
        assert_eq!(kept(&last), [(6, 9, 10), (8, 0, 1)]);
        assert_eq!(kept(&asked), [(3, 7, 8)]);
    }

    #[test]
    fn a_walk_beyond_the_memory_is_refused_with_what_it_takes() {
        let mut walks = KeptWalk::new(100_000, None);
        walk(&mut walks, 1, 10_000);
        assert!(walks.walks.is_empty());
        assert!(
            walks.refused.is_some_and(|message| message.contains("100,000") || message.contains("1 MB are allowed"))
        );
    }
}
