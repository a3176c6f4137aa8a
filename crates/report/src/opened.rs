//! The collections with the longest pauses, opened: their generations, heaps, marking, joins and ranges.

use std::collections::BTreeMap;

use tracequet_analyze::present::units::{duration, moment};
use tracequet_analyze::subjects::heap::{Bytes, GENERATIONS, HeapGeneration, Mark};

use crate::collections::{Collection, Collections};
use crate::joins::{JoinRow, Joins};
use crate::prelude::*;
use crate::read::span;

/// Collections that can be opened, and heaps of each.
const MAX_OPENED: usize = 20;
const MAX_HEAPS: usize = 64;

/// Kinds of roots of a collection; the runtime has some ten.
const MAX_KINDS: usize = 32;

tracequet_dataset::row! {
    struct Ranges of gc { gc_id, surviving_range_count, surviving_bytes, moved_range_count, moved_bytes }
}

tracequet_dataset::row! {
    struct HeapRow of gc_heap { gc_id, heap_index, compact_reason, condemn_conditions_text }
}

#[derive(Debug, Default)]
struct Heap {
    after: Option<u64>,
    marked: Option<u64>,
    marking_ns: Option<u64>,
    compact_reason: Option<String>,
    conditions: Option<String>,
}

#[derive(Debug, Default)]
struct Opened {
    /// Number and bytes of ranges that stayed, and of those that were moved.
    ranges: [u64; 4],
    generations: [Option<Bytes>; GENERATIONS],
    heaps: BTreeMap<u32, Heap>,
    /// By the kind of roots: bytes, and time on the heap that took longest.
    marks: BTreeMap<String, [Option<u64>; 2]>,
    joins: Joins,
}

impl Opened {
    fn heap(&mut self, index: u32) -> Option<&mut Heap> {
        let has_room = self.heaps.len() < MAX_HEAPS || self.heaps.contains_key(&index);
        has_room.then(|| self.heaps.entry(index).or_default())
    }
}

/// The part of the page; `None` without collections.
pub(crate) fn opened(recording: &Recording<'_>, collections: &Collections) -> Result<Option<String>> {
    let longest = collections.longest(MAX_OPENED);
    let mut found: Map<u32, Opened> = longest.iter().map(|collection| (collection.gc_id, Opened::default())).collect();
    read(recording, &mut found)?;
    let mut out = String::new();
    for collection in &longest {
        let Some(opened) = found.get(&collection.gc_id) else { continue };
        let tables = tables(collection, opened);
        if tables.is_empty() {
            continue;
        }
        let generation =
            collection.generation.map_or(String::new(), |generation| format!(" of generation {generation}"));
        let kind = collection.kind.as_deref().map_or(String::new(), |kind| format!(", {kind}"));
        out += &format!(
            "<details><summary>Collection {}{generation}{} <span class=\"figure\">{}</span> at {} s</summary>\n{tables}</details>\n",
            collection.gc_id,
            escaped(&kind),
            collection.longest_ns.map_or("-".to_owned(), duration),
            moment(collection.start_ns),
        );
    }
    let head = "<h3>The longest, opened</h3>\n<p class=\"note\">What became of each generation, what kept memory alive, the heaps, and the phases between the joins at which they wait for each other.</p>\n";
    Ok((!out.is_empty()).then(|| format!("{head}<div class=\"tree\">\n{out}</div>\n")))
}

fn read(recording: &Recording<'_>, found: &mut Map<u32, Opened>) -> Result<()> {
    recording.each_recorded::<Ranges<'_>>(|row| {
        if let Some(opened) = found.get_mut(&row.gc_id) {
            opened.ranges = [row.surviving_range_count, row.surviving_bytes, row.moved_range_count, row.moved_bytes];
        }
    })?;
    recording.each_recorded::<HeapGeneration<'_>>(|row| {
        let Some(opened) = found.get_mut(&row.gc_id) else { return };
        if let Some(heap) = opened.heap(row.heap_index) {
            add(&mut heap.after, Some(row.size_after_bytes));
        }
        if let Some(of) = opened.generations.get_mut(usize::from(row.generation)) {
            of.get_or_insert_default().add(&row);
        }
    })?;
    recording.each_recorded::<Mark<'_>>(|row| {
        let Some(opened) = found.get_mut(&row.gc_id) else { return };
        let (bytes, ns) = (Some(row.promoted_bytes), row.duration_ns.map(span));
        if let Some(heap) = opened.heap(row.heap_index) {
            add(&mut heap.marked, bytes);
            add(&mut heap.marking_ns, ns);
        }
        let kind = word(Some(row.root_kind)).unwrap_or("unknown");
        if opened.marks.len() < MAX_KINDS || opened.marks.contains_key(kind) {
            let [sum, most] = opened.marks.entry(kind.to_owned()).or_default();
            add(sum, bytes);
            *most = (*most).max(ns);
        }
    })?;
    recording.each_recorded::<HeapRow<'_>>(|row| {
        if let Some(heap) = found.get_mut(&row.gc_id).and_then(|opened| opened.heap(row.heap_index)) {
            let owned = |text| word(text).map(str::to_owned);
            (heap.compact_reason, heap.conditions) =
                (owned(row.compact_reason), owned(Some(row.condemn_conditions_text)));
        }
    })?;
    recording.each_recorded::<JoinRow<'_>>(|row| {
        if let Some(opened) = found.get_mut(&row.gc_id) {
            opened.joins.add(&row);
        }
    })?;
    Ok(())
}

/// The tables of a collection; empty when nothing of it is recorded.
fn tables(collection: &Collection, opened: &Opened) -> String {
    let gc_id = collection.gc_id;
    let mut out = String::new();
    let [stayed, stayed_bytes, moved, moved_bytes] = opened.ranges;
    if stayed + moved > 0 {
        let (stayed, moved) = (counted(stayed, "range", "ranges"), counted(moved, "range", "ranges"));
        out += &format!(
            "<p class=\"note\">Survived in place: {stayed} of {}. Moved: {moved} of {}.</p>\n",
            size(stayed_bytes),
            size(moved_bytes)
        );
    }
    let heads = [
        words("generation", "0, 1, 2, large objects, pinned objects; of all heaps together"),
        numbers("before", "Size at the start, with what is free in it"),
        numbers("after", "Size at the end, with what is free in it"),
        numbers("free", "What is free in it at the end"),
        numbers("came in", "From the younger generation"),
        numbers("survived", "Bytes of objects that survived"),
        numbers("pinned", "Of these, bytes of pinned objects"),
        numbers("budget", "Bytes that may be allocated until its next collection is due"),
    ];
    let mut rows = Table::new(format!("opened-{gc_id}-generations"), &heads);
    let names = ["0", "1", "2", "large", "pinned"];
    for (name, of) in names.iter().zip(&opened.generations) {
        let Some(Bytes { before, after, free_after, came_in, survived, pinned, budget, .. }) = of else { continue };
        let bytes = [before, after, free_after, came_in, survived, pinned, budget];
        let cells = bytes.into_iter().map(|bytes| Cell::size(*bytes));
        rows.row([Cell::text(name)].into_iter().chain(cells).collect::<Vec<_>>());
    }
    out += &html(rows, &format!("Generations of collection {gc_id}"));
    let mut marks: Vec<_> = opened.marks.iter().collect();
    marks.sort_by_key(|(kind, [bytes, _])| (std::cmp::Reverse(*bytes), *kind));
    let rows = table!(format!("opened-{gc_id}-marks"), marks, |(kind, [bytes, ns])| {
        let time = Cell::span(*ns);
    } {
        words("kept by", "Kind of roots") => Cell::text(&kind.replace('_', " ")),
        numbers("bytes", "What this kind keeps alive and no kind before it did") => Cell::size(*bytes),
        numbers("time", "Marking of this kind, on the heap that took longest") => time,
    });
    out += &html(rows, &format!("Marking of collection {gc_id}"));
    let rows = table!(format!("opened-{gc_id}-heaps"), &opened.heaps, |(index, heap)| {
        numbers("heap", "Number of the heap") => Cell::id(u64::from(*index)),
        numbers("after", "Size of its generations at the end") => Cell::size(heap.after),
        numbers("marked", "Bytes that its marking kept alive") => Cell::size(heap.marked),
        numbers("marking", "Time of its marking") => Cell::span(heap.marking_ns),
        words("compacted", "Why it was compacted") => Cell::optional(heap.compact_reason.as_deref()),
        words("conditions", "What had a part in the choice of the generation") =>
            Cell::optional(heap.conditions.as_deref().map(|text| text.replace('|', ", ")).as_deref()),
    });
    out += &html(rows, &format!("Heaps of collection {gc_id}"));
    let rows = opened.joins.rows(format!("opened-{gc_id}-joins"), collection.start_ns);
    out += &html(rows, &format!("Phases of collection {gc_id}"));
    out
}

/// A table without the columns of which nothing is recorded; nothing when it has no rows.
fn html(mut rows: Table, label: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    rows.without_empty();
    rows.html(label)
}
