//! Survival: how much of each generation came through its collections, where it went, and how long memory lives.

use std::collections::BTreeMap;

use tracequet_analyze::cohort::{self, CohortRow};
use tracequet_analyze::collection::{RangeKind, SpilledCollections, collects};

use crate::collections::Collections;
use crate::prelude::*;
use crate::timeline::{Line, axis, lines};

/// Collections that memory is followed through, and parts of the recording that are distinguished.
const AGES: usize = 21;
const PARTS: usize = 3;

/// Ranges up to which memory is followed where no table has it.
const MAX_RANGES: u64 = 300_000;

/// Names of the generations, and classes of their colours.
const GENERATIONS: [(&str, &str); 5] = [
    ("generation 0", "g0"),
    ("generation 1", "g1"),
    ("generation 2", "g2"),
    ("large objects", "lo"),
    ("pinned objects", "po"),
];

/// Ranges and bytes by generation before and after, and bytes by collection and generation: at the start, and that survived.
#[derive(Debug, Default)]
pub(crate) struct Survival {
    ways: BTreeMap<(Option<u8>, Option<u8>), (u64, u64)>,
    by_collection: Map<u32, [(u64, u64); 5]>,
}

impl Survival {
    /// Ranges that survived, all of a kind, and their bytes.
    pub(crate) fn survived(&mut self, gc_id: u32, kind: RangeKind, ranges: u64, bytes: u64) {
        if ranges == 0 {
            return;
        }
        let way = self.ways.entry((kind.before, kind.after)).or_default();
        *way = (way.0 + ranges, way.1.saturating_add(bytes));
        if let Some((_, sum)) = self.place(gc_id, kind.before) {
            *sum = sum.saturating_add(bytes);
        }
    }

    /// Memory of a generation at the start of a collection.
    pub(crate) fn before(&mut self, gc_id: u32, generation: Option<u8>, bytes: u64) {
        if let Some((sum, _)) = self.place(gc_id, generation) {
            *sum = sum.saturating_add(bytes);
        }
    }

    fn place(&mut self, gc_id: u32, generation: Option<u8>) -> Option<&mut (u64, u64)> {
        self.by_collection.entry(gc_id).or_default().get_mut(usize::from(generation?))
    }

    /// The part of the page. `None` when nothing that survived is listed. `ranges` are those of the collections, where all are there.
    pub(crate) fn html(
        &self,
        recording: &Recording<'_>,
        collections: &Collections,
        ranges: Option<&mut SpilledCollections>,
        end_ns: i64,
    ) -> Result<Option<String>> {
        if self.ways.is_empty() {
            return Ok(None);
        }
        let mut out = self.shares(collections, end_ns);
        let name = |generation: Option<u8>| match generation {
            Some(5) => Some("frozen objects"),
            Some(generation) => GENERATIONS.get(usize::from(generation)).map(|(name, _)| *name),
            None => None,
        };
        let table = table!("survival-table", &self.ways, |((before, after), (ranges, bytes))| {
            words("from", "Generation before the collection") => Cell::optional(name(*before)),
            words("to", "Generation after it") => Cell::optional(name(*after)),
            numbers("ranges", "How many") => Cell::count(*ranges),
            numbers("survived", "Their bytes, of all collections together") => Cell::size(*bytes),
        });
        out += &table.html("What survived, by generation");
        if let Some(curves) = curves(recording, collections, ranges)? {
            out += &curves;
        }
        Ok(Some(out))
    }

    /// The share of each generation that came through each collection of it.
    fn shares(&self, collections: &Collections, end_ns: i64) -> String {
        let mut by_generation: Vec<Vec<(i64, f64)>> = vec![Vec::new(); GENERATIONS.len()];
        let mut sums = [(0u64, 0u64, 0u64); 5];
        for collection in collections.all.iter().filter(|collection| collection.has_ranges) {
            let Some(bytes) = self.by_collection.get(&collection.gc_id) else { continue };
            for (generation, (before, survived)) in bytes.iter().enumerate().filter(|(_, (before, _))| *before > 0) {
                let kind = collection.kind.as_deref();
                if !collects(collection.generation, kind, collection.complete, generation as u8) {
                    continue;
                }
                if let (Some(points), Some(sum)) = (by_generation.get_mut(generation), sums.get_mut(generation)) {
                    points.push((collection.start_ns, *survived as f64 * 100.0 / *before as f64));
                    *sum = (sum.0 + 1, sum.1.saturating_add(*before), sum.2.saturating_add(*survived));
                }
            }
        }
        let mut out = String::new();
        let mut all: Vec<(Line, &str)> = Vec::new();
        for ((points, (name, class)), (times, before, survived)) in by_generation.into_iter().zip(GENERATIONS).zip(sums)
        {
            if !points.is_empty() {
                let share = share(survived as f64 / before.max(1) as f64);
                out += &format!(
                    "<li>Of {name}, {share} of the bytes survived: {} of {} in {}.</li>\n",
                    size(survived),
                    size(before),
                    counted(times, "collection", "collections")
                );
                all.push((Line { class, unit: "%".into(), points, ..Line::default() }, name));
            }
        }
        if all.is_empty() {
            return "<p class=\"note\">No collection is complete and has the bounds of generations, so that shares are not known.</p>\n".to_owned();
        }
        let legend: Vec<(&str, &str)> = all.iter().map(|(line, name)| (line.class, *name)).collect();
        let drawn: Vec<Line> = all.iter().map(|(line, _)| line.clone()).collect();
        let chart =
            lines("Survived", "of each generation, at each collection of it", end_ns, Some(100.0), &drawn, &legend);
        format!("<ul>\n{out}</ul>\n<div class=\"lanes\">\n{chart}</div>{}\n", axis(end_ns))
    }
}

tracequet_dataset::row! {
    struct Cohort of gc_cohort { born_gc_id, gc_id, alive_bytes, unknown_bytes }
}

tracequet_dataset::row! {
    struct RangeCounts of gc { surviving_range_count, moved_range_count }
}

/// How much of what was allocated before a collection is alive after each later one: for the whole recording, and for thirds of it.
fn curves(
    recording: &Recording<'_>,
    collections: &Collections,
    kept: Option<&mut SpilledCollections>,
) -> Result<Option<String>> {
    let places: Map<u32, usize> = collections.all.iter().map(|c| c.gc_id).zip(0..).collect();
    let mut cohorts: Vec<Vec<Option<u64>>> = vec![Vec::new(); collections.all.len()];
    let mut add = |born: u32, gc: u32, alive: u64, unknown: u64| {
        let place = |gc: u32| places.get(&gc).copied();
        let (Some(from), Some(to)) = (place(born), place(gc)) else { return };
        let Some(age) = to.checked_sub(from).filter(|age| *age < AGES) else { return };
        if let Some(ages) = cohorts.get_mut(from) {
            if ages.len() <= age {
                ages.resize(age + 1, Some(0));
            }
            if let Some(sum) = ages.get_mut(age) {
                // Where something is not known, the cohort says nothing from there on.
                *sum = sum.filter(|_| unknown == 0).map(|sum| sum.saturating_add(alive));
            }
        }
    };
    let mut rows = 0u64;
    recording.each_recorded::<Cohort<'_>>(|row| {
        rows += 1;
        add(row.born_gc_id, row.gc_id, row.alive_bytes, row.unknown_bytes);
    })?;
    if rows == 0 {
        let mut ranges = 0u64;
        recording.each_recorded::<RangeCounts<'_>>(|row| {
            ranges = ranges.saturating_add(row.surviving_range_count).saturating_add(row.moved_range_count);
        })?;
        let Some(kept) = kept else { return Ok(None) };
        if ranges > MAX_RANGES {
            return Ok(Some(format!(
                "<p class=\"note\">How long memory lives is not in the page: {} are too many to follow here. <code>tracequet convert IN --cohorts</code> makes a dataset that has it.</p>\n",
                counted(ranges, "range", "ranges")
            )));
        }
        cohort::cohorts_of(kept, |rows: &[CohortRow]| {
            for row in rows {
                add(row.born_gc_id, row.gc_id, row.alive_bytes, row.unknown_bytes);
            }
        })?;
    }
    let last = collections.all.len();
    // Of a cohort that is gone there are no rows: nothing of it is alive until the end of the recording.
    for (place, ages) in cohorts.iter_mut().enumerate().filter(|(_, ages)| !ages.is_empty()) {
        ages.resize((last - place).min(AGES), Some(0));
    }
    let mut sums = vec![[(0u64, 0u64); AGES]; PARTS + 1];
    for (place, ages) in cohorts.iter().enumerate() {
        let Some(Some(born)) = ages.first().copied().filter(|born| born.is_some_and(|bytes| bytes > 0)) else {
            continue;
        };
        let part = 1 + place * PARTS / last.max(1);
        for of in [0, part] {
            for (age, alive) in ages.iter().enumerate() {
                let Some(alive) = alive else { break };
                if let Some(sum) = sums.get_mut(of).and_then(|sums| sums.get_mut(age)) {
                    *sum = (sum.0.saturating_add(born), sum.1.saturating_add(*alive));
                }
            }
        }
    }
    let whole = sums.first().map_or(0, |sums| sums.iter().filter(|(born, _)| *born > 0).count());
    if whole < 2 {
        return Ok(None);
    }
    let names = [("all", "c0"), ("first third", "g1"), ("second third", "g0"), ("last third", "lo")];
    let percent = |(born, alive): (u64, u64)| (born > 0).then(|| alive as f64 * 100.0 / born as f64);
    let drawn: Vec<Line> = sums
        .iter()
        .zip(names)
        .map(|(sums, (_, class))| {
            let points = sums.iter().enumerate().filter_map(|(age, sum)| Some((age as i64, percent(*sum)?))).collect();
            Line { class, unit: "%".into(), points, ..Line::default() }
        })
        .collect();
    let legend: Vec<(&str, &str)> = names.iter().map(|(name, class)| (*class, *name)).collect();
    let words = format!("of the bytes that came through their first collection, alive after up to {} more", whole - 1);
    let chart = lines("How long memory lives", &words, whole as i64 - 1, Some(100.0), &drawn, &legend);
    let mut heads = vec![numbers("collections later", "After the first one that they survived")];
    heads.extend(names.iter().map(|(name, _)| {
        numbers(name, "Per cent of the bytes that are alive, of those born in this part of the recording")
    }));
    let mut table = Table::new("cohorts-table", &heads);
    for age in 0..whole {
        let mut cells = vec![Cell::id(age as u64)];
        cells.extend(
            sums.iter()
                .map(|sums| Cell::share(sums.get(age).copied().and_then(percent).map(|percent| percent / 100.0))),
        );
        table.row(cells);
    }
    let chart = chart.replace("class=\"plot\"", "class=\"plot fixed\"");
    Ok(Some(format!(
        "<div class=\"lanes\">\n{chart}</div>\n<details><summary>How long memory lives, as a table</summary>\n{}</details>\n",
        table.html("How long memory lives")
    )))
}
