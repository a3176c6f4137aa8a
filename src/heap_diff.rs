//! Growth between walks of the heap, for `tracequet heap --base` and `tracequet diff`.

use std::sync::Arc;

use serde_json::{Value, json};
use tracequet::analyze::diff::{HeapChange, Held, Walked, types_table};
use tracequet::analyze::heap::{Snapshot, Step};
use tracequet::analyze::present::units::{counted, moment, size};

use super::prelude::*;

/// Types that are shown without --all.
const SHOWN: usize = 25;

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

/// The answer of `tracequet heap --base`.
pub struct Grown<'c> {
    pub change: &'c HeapChange,
    pub all: bool,
}

impl Answer for Grown<'_> {
    fn document(&self) -> Document {
        let Grown { change, all } = self;
        let mut out = Document::default();
        out.line(Cell::sentence(&format!("Heap: {}", head(change))));
        match change.types.is_empty() {
            true => out.note("no type has changed"),
            false => {
                let most = if *all { usize::MAX } else { SHOWN };
                let mut table = types_table(&change.types, true).first(most);
                table.without_empty();
                first_rows(&mut out, table, "more", "more");
            }
        }
        change.holders().for_each(|held| out.note(Cell::sentence(&held)));
        out
    }

    fn rows(&self) -> Table {
        types_table(&self.change.types, true)
    }

    fn json(&self) -> Value {
        json(self.change)
    }
}

/// Everything as JSON.
pub fn json(change: &HeapChange) -> Value {
    let walk = |walk: &Walked| {
        json!({
            "trace_id": walk.trace_id, "gc_id": walk.snapshot.gc_id, "start_ts_ns": walk.snapshot.start_ns,
            "objects": walk.objects, "size_bytes": walk.size_bytes, "complete": walk.is_whole,
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
        "types": types_table(&change.types, true).json(),
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
