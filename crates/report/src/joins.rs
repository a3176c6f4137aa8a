//! The joins of a collection, at which the threads of its heaps wait for each other: between them lie its phases.

use std::collections::BTreeMap;

use crate::prelude::*;
use crate::read::span;

tracequet_dataset::row! {
    /// A thread waited for the others of a collection, or worked alone.
    pub(crate) struct JoinRow of gc_join { gc_id, start_ts_ns, duration_ns, heap_index, kind, join_id }
}

/// Joins of a collection that are kept; the runtime has some forty.
const MAX_JOINS: usize = 64;

/// What the threads come together for, by the number of the join. The runtime gives no number to another join later on
/// (`gc_join_stage` of its collector).
fn name(join: u64) -> Option<&'static str> {
    Some(match join {
        1 => "done",
        2 => "generation chosen",
        3 => "marking begins",
        4 => "dependent handles scanned",
        5 => "dependent handles scanned again",
        6 => "sized references scanned",
        7 => "short weak references cleared",
        8 => "finalizers looked for",
        9 => "long weak references cleared",
        10 => "sync blocks cleared",
        11 => "compact or sweep chosen",
        12 => "segments arranged for compacting",
        13 => "ages of handles set after compacting",
        14 => "ages of handles set after sweeping",
        15 => "relocating begins",
        16 => "relocating done",
        17 => "objects verified",
        18 => "background collection begins",
        19 => "threads go on",
        20 => "mark stack overflowed",
        21 => "threads stopped",
        22 => "background collection after a younger one",
        23 => "younger collections allowed",
        24 => "background sweep",
        28 => "card table updated",
        _ => return None,
    })
}

#[derive(Debug, Default)]
struct Join {
    /// When the first thread came, and the last one.
    first_ns: i64,
    last_ns: i64,
    /// The heap of the thread that came last; of several times that of the last one.
    last_heap: Option<u64>,
    waits: u64,
    waited_ns: Option<u64>,
    longest_ns: Option<u64>,
    alone_ns: Option<u64>,
}

/// The joins of one collection.
#[derive(Debug, Default)]
pub(crate) struct Joins(BTreeMap<u64, Join>);

impl Joins {
    /// Adds a row of `gc_join`.
    pub(crate) fn add(&mut self, row: &JoinRow<'_>) {
        let (start_ns, duration_ns) = (row.start_ts_ns, row.duration_ns.map(span));
        let Some(join) = row.join_id.map(u64::from) else { return };
        if self.0.len() >= MAX_JOINS && !self.0.contains_key(&join) {
            return;
        }
        let of =
            self.0.entry(join).or_insert_with(|| Join { first_ns: start_ns, last_ns: start_ns, ..Join::default() });
        of.first_ns = of.first_ns.min(start_ns);
        let is_last = start_ns >= of.last_ns;
        of.last_ns = of.last_ns.max(start_ns);
        if row.kind == "alone" {
            add(&mut of.alone_ns, duration_ns);
            of.last_heap = if is_last { row.heap_index.map(u64::from) } else { of.last_heap };
        } else {
            of.waits += 1;
            add(&mut of.waited_ns, duration_ns);
            of.longest_ns = of.longest_ns.max(duration_ns);
        }
    }

    /// The table, in the order in which the threads came together.
    pub(crate) fn rows(&self, id: String, start_ns: i64) -> Table {
        let heads = [
            words("join", "What the threads of the heaps come together for"),
            numbers("reached", "When the last thread was there, since the collection began"),
            numbers("phase", "From the join before until the last thread was there: work of all heaps"),
            numbers("waits", "How often a thread waited for others"),
            numbers("waited", "What they waited together: heaps that had less to do"),
            numbers("longest wait", "Of one thread"),
            numbers("last heap", "Its thread came last, so that the others waited for it"),
            numbers("alone", "What only one thread did then while the others stood still"),
        ];
        let mut rows = Table::new(id, &heads);
        let mut joins: Vec<(&u64, &Join)> = self.0.iter().collect();
        joins.sort_by_key(|(number, join)| (join.last_ns, join.first_ns, **number));
        let mut before_ns = start_ns;
        for (number, join) in joins {
            let since = |from: i64| Some(join.last_ns.saturating_sub(from)).filter(|ns| *ns >= 0);
            rows.row(vec![
                Cell::text(name(*number).map_or_else(|| format!("join {number}"), str::to_owned).as_str()),
                Cell::duration(since(start_ns)),
                Cell::duration(since(before_ns)),
                Cell::count(join.waits),
                Cell::span(join.waited_ns),
                Cell::span(join.longest_ns),
                Cell::id(join.last_heap),
                Cell::span(join.alone_ns),
            ]);
            before_ns = join.last_ns.saturating_add(join.alone_ns.unwrap_or_default().min(i64::MAX as u64) as i64);
        }
        rows
    }
}
