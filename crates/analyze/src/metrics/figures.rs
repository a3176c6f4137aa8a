//! Computes figures from rows: a recording's tables are read batch by batch, in any order, and nothing is kept but
//! what the figures need.

use arrow_array::RecordBatch;
use tracequet_dataset::error::Result;
use tracequet_dataset::read::Column;

use super::definition::{Definition, Metric, Owner, Take, definitions};
use super::groups::{Groups, Texts};
use super::leaves::Leaves;
use super::needs::{self, Missing, Needs};
use super::roots::{Roots, SPANS};
use super::rows::Rows;
use super::seen::{Kept, Seen};
use super::types::TypeNames;

/// The column that says whose a row is.
const PROCESS: &str = "process_id";

/// The figures of one recording in the making.
#[derive(Debug)]
pub struct Figures {
    tables: Vec<OfTable>,
    leaves: Leaves,
    needs: Needs,
    types: TypeNames,
    roots: Roots,
    kept: Kept,
}

#[derive(Debug)]
struct OfTable {
    name: &'static str,
    is_there: bool,
    has_rows: bool,
    readings: Vec<Reading>,
}

/// The definitions that take something of the same column of the same rows.
#[derive(Debug)]
struct Reading {
    /// The definitions, with their places among all.
    takes: Vec<(usize, &'static Definition)>,
    worst: Option<&'static str>,
    /// The values that are seen; where rows of several kinds stand for the same, of each kind.
    kinds: Vec<OfKind>,
}

#[derive(Debug)]
struct OfKind {
    /// The name of the kind, where there are several.
    name: Option<&'static str>,
    has_rows: bool,
    groups: Groups,
}

/// A reading when all rows were seen.
#[derive(Debug)]
struct Counted {
    takes: Vec<(usize, &'static Definition)>,
    /// The name of the kind that counts, where there are several.
    name: Option<&'static str>,
    groups: Groups,
    /// Whether the table has rows, of other kinds alone.
    is_of_others: bool,
}

impl OfKind {
    /// One for each kind of rows.
    fn all_of(definition: &'static Definition) -> Vec<OfKind> {
        let of_kind = |name| {
            let groups = match (definition.frame, definition.by.as_slice()) {
                (Some(_), _) => Groups::Sites(Default::default()),
                (None, []) => Groups::One(Seen::default()),
                (None, by) => Groups::Texts(Texts::of(by, definition.named_by_type)),
            };
            OfKind { name, has_rows: false, groups }
        };
        match &definition.one_of {
            Some(one_of) => one_of.order.iter().map(|name| of_kind(Some(name.as_str()))).collect(),
            None => vec![of_kind(None)],
        }
    }
}

impl Reading {
    fn fits(&self, definition: &Definition) -> bool {
        self.takes.first().is_some_and(|(_, known)| {
            known.table() == definition.table()
                && (&known.only, &known.except, &known.contains)
                    == (&definition.only, &definition.except, &definition.contains)
                && (&known.by, known.frame.is_some()) == (&definition.by, definition.frame.is_some())
                && (&known.one_of, known.named_by_type) == (&definition.one_of, definition.named_by_type)
        })
    }

    /// The rows that metrics are made of: the first kind that there is.
    fn counted(self, table_has_rows: bool) -> Option<Counted> {
        let Reading { takes, mut kinds, .. } = self;
        let place = kinds.iter().position(|kind| kind.has_rows);
        let is_of_others = place.is_none() && kinds.len() > 1 && table_has_rows;
        let place = place.unwrap_or_default();
        let OfKind { name, has_rows, groups } = (place < kinds.len()).then(|| kinds.swap_remove(place))?;
        Some(Counted { takes, name: name.filter(|_| has_rows), groups, is_of_others })
    }

    fn takes(&self, takes: &[Take]) -> bool {
        self.takes.iter().any(|(_, definition)| takes.contains(&definition.take))
    }
}

impl Figures {
    /// Nothing seen yet.
    pub fn new() -> Result<Figures> {
        let mut tables: Vec<OfTable> = Vec::new();
        for (place, definition) in definitions()?.iter().enumerate() {
            let name = definition.table().0;
            let at = tables.iter().position(|table| table.name == name).unwrap_or_else(|| {
                tables.push(OfTable { name, is_there: false, has_rows: false, readings: Vec::new() });
                tables.len() - 1
            });
            let Some(OfTable { readings, .. }) = tables.get_mut(at) else { continue };
            let worst = definition.worst.as_deref();
            match readings.iter_mut().find(|reading| reading.fits(definition)) {
                Some(reading) => {
                    reading.takes.push((place, definition));
                    reading.worst = reading.worst.or(worst);
                }
                None => {
                    let kinds = OfKind::all_of(definition);
                    readings.push(Reading { takes: vec![(place, definition)], worst, kinds });
                }
            }
        }
        for name in Leaves::TABLES.into_iter().chain(needs::TABLES).chain([TypeNames::TABLE]) {
            tables.push(OfTable { name, is_there: false, has_rows: false, readings: Vec::new() });
        }
        let (needs, types) = (Needs::new(super::definition::needs()?), TypeNames::default());
        let (leaves, roots, kept) = (Leaves::default(), Roots::default(), Kept::default());
        Ok(Figures { tables, leaves, needs, types, roots, kept })
    }

    /// The tables that figures are made of.
    pub fn tables(&self) -> Vec<&'static str> {
        self.tables.iter().map(|table| table.name).collect()
    }

    /// The columns of a table that figures are made of.
    pub fn columns(&self, table: &str) -> Vec<&'static str> {
        let mut columns =
            [Leaves::columns(table), Needs::columns(table), TypeNames::columns(table), Roots::columns(table)].concat();
        for reading in self.tables.iter().filter(|known| known.name == table).flat_map(|known| &known.readings) {
            for (_, definition) in &reading.takes {
                columns.push(definition.table().1);
                columns.extend(definition.only.keys().chain(definition.except.keys()).map(String::as_str));
                columns.extend(definition.contains.keys().chain(&definition.by).map(String::as_str));
                columns.extend(definition.worst.as_deref());
                columns.extend(definition.weight.as_deref());
                columns.push(PROCESS);
                columns.extend(definition.frame.map(|_| "callsite_id"));
                columns.extend(definition.one_of.as_ref().map(|one_of| one_of.column.as_str()));
                columns.extend(definition.named_by_type.then_some(["process_id", "type_id"]).into_iter().flatten());
                columns.extend((definition.take == Take::Last).then_some("ts_ns"));
                columns.extend(definition.take.is_covered().then_some("start_ts_ns"));
            }
        }
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The recording has a table, with or without rows. There are no figures of tables that it does not have.
    pub fn declare(&mut self, table: &str) {
        if let Some(known) = self.tables.iter_mut().find(|known| known.name == table) {
            known.is_there = true;
        }
    }

    /// Sees rows of a table.
    pub fn add(&mut self, table: &str, batch: &RecordBatch) -> Result<()> {
        let Figures { tables, leaves, needs, types, roots, kept } = self;
        roots.add(table, batch)?;
        leaves.add(table, batch)?;
        needs.add(table, batch)?;
        types.add(table, batch)?;
        let Some(known) = tables.iter_mut().find(|known| known.name == table) else { return Ok(()) };
        known.has_rows |= batch.num_rows() > 0;
        known.readings.iter_mut().try_for_each(|reading| look(reading, batch, kept))
    }

    /// The figures, in the order of the definitions.
    pub fn finish(self) -> Result<Vec<Metric>> {
        let Figures { mut tables, leaves, needs, types, roots, mut kept } = self;
        if let Some(spans) = roots.rows()? {
            let readings = tables.iter_mut().flat_map(|table| &mut table.readings);
            let of_spans =
                readings.filter(|reading| reading.takes.iter().any(|(_, of)| of.first_of.iter().any(|of| of == SPANS)));
            of_spans.into_iter().try_for_each(|reading| look(reading, &spans, &mut kept))?;
        }
        let is_there = |name: &str| tables.iter().any(|table| table.name == name && table.is_there);
        let has_leaves = Leaves::TABLES.iter().all(|name| is_there(name));
        let duration_ns = tables.iter().flat_map(|table| &table.readings).find_map(|reading| {
            let is_duration = reading.takes.iter().any(|(_, definition)| definition.name == "recording.duration");
            let seen = reading.kinds.first().and_then(|kind| kind.groups.one());
            seen.filter(|_| is_duration).and_then(|seen| seen.figure(Take::Max, false, 0.0))
        });
        let mut found = Vec::new();
        let there = tables.into_iter().filter(|table| table.is_there);
        let readings = there.flat_map(|table| table.readings.into_iter().map(move |reading| (reading, table.has_rows)));
        for counted in readings.filter_map(|(reading, has_rows)| reading.counted(has_rows)) {
            let Counted { takes, name, mut groups, is_of_others } = counted;
            groups.name(&types);
            for (place, definition) in takes {
                let mut figures = match definition.frame {
                    Some(_) if !has_leaves => continue,
                    Some(of) => groups.of_frames(definition, &leaves, of),
                    None => groups.figures(definition, duration_ns.unwrap_or_default()),
                };
                // Of no rows there is a figure only where they would have been recorded.
                let missing = needs.missing(definition.needs.as_deref());
                // Rows of other kinds do not show how many there would be of the kinds that count.
                let missing = missing.or(is_of_others.then_some(Missing::NotSeen));
                let has_rows = groups.has_rows(definition);
                if !has_rows && missing.is_some() {
                    figures.clear();
                }
                if figures.is_empty() {
                    let missing = missing.filter(|_| !has_rows || definition.needs.is_some());
                    figures.push(Metric::without_value(definition, missing.unwrap_or(Missing::Empty)));
                }
                let of_kind = |metric: Metric| match name {
                    Some(name) => Metric { source: Some(name.to_owned()), ..metric },
                    None => metric,
                };
                found.extend(figures.into_iter().map(|metric| (place, of_kind(metric))));
            }
        }
        // A metric of the whole recording belongs to no single process where there are several.
        if found.iter().any(|(_, metric)| metric.owner == Owner::Machine) {
            let unsaid =
                found.iter_mut().filter(|(_, metric)| metric.owner == Owner::Unknown && metric.value.is_some());
            unsaid.for_each(|(_, metric)| metric.owner = Owner::Machine);
        }
        found.sort_by_key(|(place, _)| *place);
        Ok(found.into_iter().map(|(_, metric)| metric).collect())
    }
}

fn look(reading: &mut Reading, batch: &RecordBatch, kept: &mut Kept) -> Result<()> {
    let Some((_, definition)) = reading.takes.first() else { return Ok(()) };
    let values = Column::of(batch, definition.table().1)?;
    let rows = Rows::of(batch, definition)?;
    let column = |name: Option<&'static str>| name.map(|name| Column::of(batch, name)).transpose();
    let worst = column(reading.worst)?;
    let times = column(reading.takes(&[Take::Last]).then_some("ts_ns"))?;
    let starts = column(reading.takes(&[Take::Covered, Take::CoveredShare]).then_some("start_ts_ns"))?;
    let keeps = reading.takes(&[Take::P50, Take::P99]);
    let is_text = reading.takes(&[Take::Failed, Take::Failures]);
    let weight = reading.takes.iter().find_map(|(_, definition)| definition.weight.as_deref());
    let weights = column(weight)?;
    let processes = Processes::of(batch)?;
    let see = |seen: &mut Seen, row: usize, kept: &mut Kept| {
        seen.owner.see(processes.at(row));
        if is_text {
            return seen.result(values.text(row));
        }
        let Some(value) = values.real(row) else { return seen.nothing() };
        let place = worst.and_then(|worst| worst.number(row));
        seen.add(value, place);
        if keeps {
            seen.keep(value, kept);
        }
        if let Some(weights) = weights {
            seen.weigh(value, weights.real(row).unwrap_or_default());
        }
        if let Some(ts_ns) = times.and_then(|times| times.number(row)) {
            seen.at(ts_ns as i64, value);
        }
        if let Some(start_ns) = starts.and_then(|starts| starts.number(row)) {
            seen.span(processes.at(row), start_ns.cast_signed(), value as i64);
        }
    };
    let one_of = definition.one_of.as_ref();
    let kind = one_of.map(|one_of| Column::of(batch, &one_of.column)).transpose()?;
    // Of each row the place of its kind. Most rows have the word of the one before.
    let places: Option<Vec<Option<usize>>> = one_of.zip(kind).map(|(one_of, kind)| {
        let (mut last, mut place) = (None, None);
        let places = (0..batch.num_rows()).map(|row| {
            let word = kind.text(row);
            if word != last {
                (last, place) = (word, word.and_then(|word| one_of.place(word)));
            }
            place
        });
        places.collect()
    });
    for (place, OfKind { has_rows, groups, .. }) in reading.kinds.iter_mut().enumerate() {
        let is_of_kind = |row: &usize| match &places {
            Some(places) => places.get(*row).copied().flatten() == Some(place),
            None => true,
        };
        let rows = rows.all().filter(is_of_kind).inspect(|_| *has_rows = true);
        match groups {
            Groups::One(seen) => rows.for_each(|row| see(seen, row, kept)),
            Groups::Texts(texts) => {
                let by: Vec<Column<'_>> =
                    definition.by.iter().map(|by| Column::of(batch, by)).collect::<Result<_>>()?;
                let ids = match definition.named_by_type {
                    true => Some([Column::of(batch, "process_id")?, Column::of(batch, "type_id")?]),
                    false => None,
                };
                for row in rows {
                    if let Some(seen) = texts.of_row(&by, ids, row) {
                        see(seen, row, kept);
                    }
                }
            }
            Groups::Sites(sites) => {
                let site = Column::of(batch, "callsite_id")?;
                for row in rows {
                    let site = site.number(row).and_then(|site| u32::try_from(site).ok()).filter(|site| *site > 0);
                    if let (Some(site), Some(value)) = (site, values.real(row)) {
                        sites.add(site, value, processes.at(row));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Whose the rows of a batch are: mostly of one process, which is found out once.
struct Processes<'b> {
    column: Column<'b>,
    only: Option<u64>,
}

impl<'b> Processes<'b> {
    fn of(batch: &'b RecordBatch) -> Result<Processes<'b>> {
        let column = Column::of(batch, PROCESS)?;
        let only = column.u64s().and_then(|all| {
            let first = *all.first()?;
            all.iter().all(|id| *id == first).then_some(first)
        });
        Ok(Processes { column, only })
    }

    #[inline]
    fn at(&self, row: usize) -> u64 {
        self.only.or_else(|| self.column.number(row)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, StringArray, UInt8Array, UInt64Array};

    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    }

    /// Source, bytes, id and name of the type.
    type Allocation<'a> = (&'a str, Option<u64>, u64, Option<&'a str>);

    fn allocations(rows: &[Allocation<'_>]) -> RecordBatch {
        let bytes: UInt64Array = rows.iter().map(|row| row.1).collect();
        let ids: UInt64Array = rows.iter().map(|row| Some(row.2)).collect();
        let names: StringArray = rows.iter().map(|row| row.3).collect();
        let sources: StringArray = rows.iter().map(|row| Some(row.0)).collect();
        let process: UInt64Array = rows.iter().map(|_| Some(1)).collect();
        batch(vec![
            ("allocation_bytes", Arc::new(bytes)),
            ("source", Arc::new(sources)),
            ("type_name", Arc::new(names)),
            ("type_id", Arc::new(ids)),
            ("process_id", Arc::new(process)),
        ])
    }

    /// Name, value and source.
    type Figure = (String, Option<f64>, Option<String>);

    fn figures(rows: &[&[Allocation<'_>]]) -> Vec<Figure> {
        let mut figures = Figures::new().unwrap();
        ["allocation", "type"].iter().for_each(|table| figures.declare(table));
        let (first, rest) = rows.split_first().unwrap();
        figures.add("allocation", &allocations(first)).unwrap();
        let types = batch(vec![
            ("process_id", Arc::new(UInt64Array::from(vec![1, 1, 2]))),
            ("type_id", Arc::new(UInt64Array::from(vec![7, 8, 9]))),
            ("name", Arc::new(StringArray::from(vec!["Seven", "Eight", "Nine"]))),
            ("element_type", Arc::new(UInt8Array::from(vec![0x12, 0x0e, 0]))),
        ]);
        figures.add("type", &types).unwrap();
        rest.iter().for_each(|rows| figures.add("allocation", &allocations(rows)).unwrap());
        let found = figures.finish().unwrap().into_iter().filter(|metric| metric.name.starts_with("allocation."));
        // Without a duration there is no rate.
        let found = found.filter(|metric| metric.name != "allocation.rate");
        found.map(|metric| (metric.name, metric.value, metric.source)).collect()
    }

    fn expected(source: &str, figures: &[(&str, f64)]) -> Vec<Figure> {
        let figure =
            |(name, value): &(&str, f64)| (format!("allocation.{name}"), Some(*value), Some(source.to_owned()));
        figures.iter().map(figure).collect()
    }

    /// Ticks and samples by type stand for the same bytes: one of them counts.
    #[test]
    fn allocations_are_counted_by_one_kind_of_samples() {
        let ticks: &[_] = &[("tick", Some(100), 7, Some("Seven")), ("tick", Some(100), 8, Some("Eight"))];
        let by_type: &[_] = &[
            ("object_high", Some(90), 7, None),
            ("object_low", Some(30), 8, None),
            ("object_high", Some(40), 9, None),
        ];
        let found = expected(
            "object_high, object_low",
            &[("bytes", 160.0), ("by_type[Seven]", 90.0), ("by_type[(unknown)]", 40.0), ("by_type[Eight]", 30.0)],
        );
        assert_eq!(figures(&[ticks, by_type]), found);
        assert_eq!(figures(&[by_type, ticks]), found);
        let found = expected("tick", &[("bytes", 200.0), ("by_type[Eight]", 100.0), ("by_type[Seven]", 100.0)]);
        assert_eq!(figures(&[ticks]), found);
        // The name in the row and the one by its id are one type.
        let sampled: &[_] = &[("sampled", Some(5), 7, None), ("sampled", Some(6), 1, Some("Seven"))];
        assert_eq!(
            figures(&[ticks, sampled, by_type]),
            expected("sampled", &[("bytes", 11.0), ("by_type[Seven]", 11.0)])
        );
        // Objects that were only counted have no bytes.
        let none = |name: &str| (format!("allocation.{name}"), None, None);
        assert_eq!(figures(&[&[("generation_0", None, 7, None)]]), [none("bytes"), none("by_type")]);
    }

    #[test]
    fn what_was_seen_of_parts_is_joined() {
        let mut kept = Kept::default();
        let seen = |values: &[f64], kept: &mut Kept| {
            let mut seen = Seen::default();
            for (place, value) in values.iter().enumerate() {
                seen.add(*value, Some(place as u64));
                seen.keep(*value, kept);
                seen.at(place as i64, *value);
            }
            seen
        };
        let (mut part, rest) = (seen(&[1.0, 9.0, 2.0], &mut kept), seen(&[4.0, 8.0, 3.0, 7.0], &mut kept));
        part.join(rest);
        for (take, value) in
            [(Take::Count, 7.0), (Take::Sum, 34.0), (Take::Max, 9.0), (Take::Last, 7.0), (Take::P50, 4.0)]
        {
            assert_eq!(part.figure(take, false, 1.0), Some(value), "{take:?}");
        }
        assert_eq!(part.place(), Some(1));
    }
}
