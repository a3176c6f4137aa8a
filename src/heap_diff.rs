//! What grew between walks of the heap, for `tracequet heap --base` and `tracequet diff`.

use std::sync::Arc;

use serde_json::{Value, json};
use tracequet::analyze::diff::{HeapChange, Held, TypeChange, Walked};
use tracequet::analyze::heap::{Snapshot, Step};
use tracequet::analyze::present::Unit::{Bytes, Count};
use tracequet::analyze::present::units::{counted, moment, size};
use tracequet::analyze::present::{Amount, Answer, Cell, Column, Document, Table, clean, numbers, words};
use tracequet::report::changes::part;

use super::answer::first_rows;

/// Types that are shown without --all.
const SHOWN: usize = 25;

/// The columns of types: what people see, and what programs get.
pub const COLUMNS: [Column; 8] = [
    numbers("bytes", ""),
    numbers("%", ""),
    numbers("objects", ""),
    numbers("retained", ""),
    numbers("before", "").key("base.size_bytes"),
    numbers("now", "").key("new.size_bytes"),
    numbers("chance", "").key("chance"),
    words("type", "").key("type"),
];

/// What only programs get.
const RAW: [Column; 5] = [
    Column::raw("base.objects"),
    Column::raw("new.objects"),
    Column::raw("base.retained_bytes"),
    Column::raw("new.retained_bytes"),
    Column::raw("is_noise"),
];

/// The cells of a type.
pub fn cells(change: &TypeChange) -> [Cell; 8] {
    let (before, now) = (change.base.size_bytes, change.new.size_bytes);
    let with_sign = |value: f64, unit| Cell::from(Amount::new(value, unit).change());
    [
        with_sign(change.size_bytes(), Bytes),
        Cell::change(part(Some(before), Some(now))),
        with_sign(change.objects(), Count),
        with_sign(change.retained_bytes(), Bytes),
        Cell::number(Some(before), Bytes),
        Cell::number(Some(now), Bytes),
        Cell::chance(change.chance),
        Cell::text(&change.name),
    ]
}

fn table(change: &HeapChange) -> Table {
    let mut table = Table::new("types", &[&COLUMNS[..], &RAW].concat());
    for change in &change.types {
        let TypeChange { base, new, .. } = change;
        let raw = [
            Cell::number(Some(base.objects), Count),
            Cell::number(Some(new.objects), Count),
            Cell::number(Some(base.retained_bytes), Bytes),
            Cell::number(Some(new.retained_bytes), Bytes),
            Cell::Flag(change.is_noise(), ""),
        ];
        table.row([&cells(change)[..], &raw].concat());
    }
    table
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

/// What grew, for `tracequet heap --base`.
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
                first_rows(&mut out, table(change).first(most), "more", "more");
            }
        }
        change.holders().for_each(|held| out.note(Cell::sentence(&held)));
        out
    }

    fn rows(&self) -> Table {
        table(self.change)
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
        "types": table(change).json(),
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
