//! The collections with the longest pauses, opened: their generations, heaps, marking, joins and ranges.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use foldhash::fast::RandomState;
use tracequet_dataset::error::Result;
use tracequet_dataset::read::Recording;

use crate::collections::{Collection, Collections, GENERATIONS};
use crate::html::{Cell, Rows, escaped, numbers, words};
use crate::joins::{self, Joins};
use crate::read::{add, each};
use crate::units::{counted, duration, moment, size};

/// Collections that can be opened, and heaps of each.
const MAX_OPENED: usize = 20;
const MAX_HEAPS: usize = 64;

/// Kinds of roots of a collection; the runtime has some ten.
const MAX_KINDS: usize = 32;

/// A generation of all heaps: before, after, free afterwards, come in, survived, of these pinned, budget.
type Generation = [Option<u64>; 7];

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
    ranges: [Option<u64>; 4],
    generations: [Generation; GENERATIONS],
    heaps: BTreeMap<u64, Heap>,
    /// By the kind of roots: bytes, and time on the heap that took longest.
    marks: BTreeMap<String, [Option<u64>; 2]>,
    joins: Joins,
}

impl Opened {
    fn heap(&mut self, index: Option<u64>) -> Option<&mut Heap> {
        let index = index?;
        let has_room = self.heaps.len() < MAX_HEAPS || self.heaps.contains_key(&index);
        has_room.then(|| self.heaps.entry(index).or_default())
    }
}

/// The part of the page; `None` without collections.
pub(crate) fn opened(recording: &Recording<'_>, collections: &Collections) -> Result<Option<String>> {
    let longest = collections.longest(MAX_OPENED);
    let mut found: HashMap<u32, Opened, RandomState> =
        longest.iter().map(|collection| (collection.gc_id, Opened::default())).collect();
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
        write!(
            out,
            "<details><summary>Collection {}{generation}{} <span class=\"figure\">{}</span> at {} s</summary>\n{tables}</details>\n",
            collection.gc_id,
            escaped(&kind),
            collection.longest_ns.map_or("-".to_owned(), duration),
            moment(collection.start_ns),
        )
        .ok();
    }
    let head = "<h3>The longest, opened</h3>\n<p class=\"note\">What became of each generation, what kept memory alive, the heaps, and the phases between the joins at which they wait for each other.</p>\n";
    Ok((!out.is_empty()).then(|| format!("{head}<div class=\"tree\">\n{out}</div>\n")))
}

fn read(recording: &Recording<'_>, found: &mut HashMap<u32, Opened, RandomState>) -> Result<()> {
    let key = |number: Option<u64>| number.and_then(|gc_id| u32::try_from(gc_id).ok()).unwrap_or_default();
    let ranges = ["gc_id", "surviving_range_count", "surviving_bytes", "moved_range_count", "moved_bytes"];
    each(recording, "gc", &ranges, |row| {
        if let Some(opened) = found.get_mut(&key(row.number(0))) {
            opened.ranges = [1, 2, 3, 4].map(|column| row.number(column));
        }
    })?;
    let generations = [
        "gc_id",
        "heap_index",
        "generation",
        "size_before_bytes",
        "size_after_bytes",
        "free_list_after_bytes",
        "free_object_after_bytes",
        "in_bytes",
        "pinned_survived_bytes",
        "other_survived_bytes",
        "budget_bytes",
    ];
    each(recording, "gc_heap_generation", &generations, |row| {
        let Some(opened) = found.get_mut(&key(row.number(0))) else { return };
        if let Some(heap) = opened.heap(row.number(1)) {
            add(&mut heap.after, row.number(4));
        }
        let place = row.number(2).and_then(|generation| usize::try_from(generation).ok());
        let Some(of) = place.and_then(|place| opened.generations.get_mut(place)) else { return };
        let columns: [&[usize]; 7] = [&[3], &[4], &[5, 6], &[7], &[8, 9], &[8], &[10]];
        for (sum, columns) in of.iter_mut().zip(columns) {
            columns.iter().for_each(|column| add(sum, row.number(*column)));
        }
    })?;
    each(recording, "gc_mark", &["gc_id", "heap_index", "root_kind", "promoted_bytes", "duration_ns"], |row| {
        let Some(opened) = found.get_mut(&key(row.number(0))) else { return };
        let (bytes, ns) = (row.number(3), row.number(4));
        if let Some(heap) = opened.heap(row.number(1)) {
            add(&mut heap.marked, bytes);
            add(&mut heap.marking_ns, ns);
        }
        let kind = row.word(2).unwrap_or("unknown");
        if opened.marks.len() < MAX_KINDS || opened.marks.contains_key(kind) {
            let [sum, most] = opened.marks.entry(kind.to_owned()).or_default();
            add(sum, bytes);
            *most = (*most).max(ns);
        }
    })?;
    each(recording, "gc_heap", &["gc_id", "heap_index", "compact_reason", "condemn_conditions_text"], |row| {
        if let Some(heap) = found.get_mut(&key(row.number(0))).and_then(|opened| opened.heap(row.number(1))) {
            (heap.compact_reason, heap.conditions) = (row.word(2).map(str::to_owned), row.word(3).map(str::to_owned));
        }
    })?;
    each(recording, "gc_join", &joins::COLUMNS, |row| {
        if let Some(opened) = found.get_mut(&key(row.number(0))) {
            opened.joins.add(row);
        }
    })?;
    Ok(())
}

/// The tables of a collection; empty when nothing of it is recorded.
fn tables(collection: &Collection, opened: &Opened) -> String {
    let gc_id = collection.gc_id;
    let mut out = String::new();
    let [stayed, stayed_bytes, moved, moved_bytes] = opened.ranges.map(Option::unwrap_or_default);
    if stayed + moved > 0 {
        let (stayed, moved) = (counted(stayed, "range", "ranges"), counted(moved, "range", "ranges"));
        writeln!(
            out,
            "<p class=\"note\">Survived in place: {stayed} of {}. Moved: {moved} of {}.</p>",
            size(stayed_bytes),
            size(moved_bytes)
        )
        .ok();
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
    let mut rows = Rows::new(format!("opened-{gc_id}-generations"), &heads);
    let names = ["0", "1", "2", "large", "pinned"];
    for (name, of) in names.iter().zip(&opened.generations).filter(|(_, of)| of.iter().any(Option::is_some)) {
        let cells = of.iter().map(|bytes| Cell::number(*bytes, size));
        rows.row([Cell::text(Some(name))].into_iter().chain(cells).collect());
    }
    out += &html(rows, &format!("Generations of collection {gc_id}"));
    let heads = [
        words("kept by", "Kind of roots"),
        numbers("bytes", "What this kind keeps alive and no kind before it did"),
        numbers("time", "Marking of this kind, on the heap that took longest"),
    ];
    let mut rows = Rows::new(format!("opened-{gc_id}-marks"), &heads);
    let mut marks: Vec<_> = opened.marks.iter().collect();
    marks.sort_by_key(|(kind, [bytes, _])| (std::cmp::Reverse(*bytes), *kind));
    for (kind, [bytes, ns]) in marks {
        let time = Cell::number(*ns, |ns| duration(ns.cast_signed()));
        rows.row(vec![Cell::text(Some(&kind.replace('_', " "))), Cell::number(*bytes, size), time]);
    }
    out += &html(rows, &format!("Marking of collection {gc_id}"));
    let heads = [
        numbers("heap", "Number of the heap"),
        numbers("after", "Size of its generations at the end"),
        numbers("marked", "Bytes that its marking kept alive"),
        numbers("marking", "Time of its marking"),
        words("compacted", "Why it was compacted"),
        words("conditions", "What had a part in the choice of the generation"),
    ];
    let mut rows = Rows::new(format!("opened-{gc_id}-heaps"), &heads);
    for (index, heap) in &opened.heaps {
        rows.row(vec![
            Cell::number(Some(*index), |n| n.to_string()),
            Cell::number(heap.after, size),
            Cell::number(heap.marked, size),
            Cell::number(heap.marking_ns, |ns| duration(ns.cast_signed())),
            Cell::text(heap.compact_reason.as_deref()),
            Cell::text(heap.conditions.as_deref().map(|text| text.replace('|', ", ")).as_deref()),
        ]);
    }
    out += &html(rows, &format!("Heaps of collection {gc_id}"));
    let rows = opened.joins.rows(format!("opened-{gc_id}-joins"), collection.start_ns);
    out += &html(rows, &format!("Phases of collection {gc_id}"));
    out
}

/// A table without the columns of which nothing is recorded; nothing when it has no rows.
fn html(mut rows: Rows, label: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    rows.without_empty();
    rows.html(label)
}
