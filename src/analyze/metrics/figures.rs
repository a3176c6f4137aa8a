//! Rows become figures: a recording's tables are seen batch by batch, in whatever order they come, and nothing is kept but
//! what the figures need.

use arrow_array::RecordBatch;

use super::definition::{Definition, Metric, Take, definitions};
use super::groups::{Groups, Texts};
use super::leaves::Leaves;
use super::rows::Rows;
use super::seen::{Kept, Seen};
use crate::dataset::Column;
use crate::error::Result;

/// The figures of one recording in the making.
#[derive(Debug)]
pub(crate) struct Figures {
    tables: Vec<OfTable>,
    leaves: Leaves,
    kept: Kept,
}

#[derive(Debug)]
struct OfTable {
    name: &'static str,
    is_there: bool,
    readings: Vec<Reading>,
}

/// What the definitions have in common that take something of the same column of the same rows.
#[derive(Debug)]
struct Reading {
    /// The definitions, with their places among all.
    takes: Vec<(usize, &'static Definition)>,
    worst: Option<&'static str>,
    groups: Groups,
}

impl Reading {
    fn fits(&self, definition: &Definition) -> bool {
        self.takes.first().is_some_and(|(_, known)| {
            known.table() == definition.table()
                && (&known.only, &known.except, &known.contains)
                    == (&definition.only, &definition.except, &definition.contains)
                && (&known.by, known.frame.is_some()) == (&definition.by, definition.frame.is_some())
        })
    }

    fn takes(&self, takes: &[Take]) -> bool {
        self.takes.iter().any(|(_, definition)| takes.contains(&definition.take))
    }
}

impl Figures {
    /// Nothing seen yet.
    pub(crate) fn new() -> Result<Figures> {
        let mut tables: Vec<OfTable> = Vec::new();
        for (place, definition) in definitions()?.iter().enumerate() {
            let name = definition.table().0;
            let at = tables.iter().position(|table| table.name == name).unwrap_or_else(|| {
                tables.push(OfTable { name, is_there: false, readings: Vec::new() });
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
                    let groups = match (definition.frame, definition.by.as_slice()) {
                        (Some(_), _) => Groups::Sites(Default::default()),
                        (None, []) => Groups::One(Seen::default()),
                        (None, by) => Groups::Texts(Texts::of(by)),
                    };
                    readings.push(Reading { takes: vec![(place, definition)], worst, groups });
                }
            }
        }
        for name in Leaves::TABLES {
            tables.push(OfTable { name, is_there: false, readings: Vec::new() });
        }
        Ok(Figures { tables, leaves: Leaves::default(), kept: Kept::default() })
    }

    /// The tables that figures are made of.
    pub(crate) fn tables(&self) -> Vec<&'static str> {
        self.tables.iter().map(|table| table.name).collect()
    }

    /// The columns of a table that figures are made of.
    pub(crate) fn columns(&self, table: &str) -> Vec<&'static str> {
        let mut columns = Leaves::columns(table).to_vec();
        for reading in self.tables.iter().filter(|known| known.name == table).flat_map(|known| &known.readings) {
            for (_, definition) in &reading.takes {
                columns.push(definition.table().1);
                columns.extend(definition.only.keys().chain(definition.except.keys()).map(String::as_str));
                columns.extend(definition.contains.keys().chain(&definition.by).map(String::as_str));
                columns.extend(definition.worst.as_deref());
                columns.extend(definition.frame.map(|_| "callsite_id"));
                columns.extend((definition.take == Take::Last).then_some("ts_ns"));
            }
        }
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The recording has a table, with or without rows. Figures of tables that it does not have are none.
    pub(crate) fn declare(&mut self, table: &str) {
        if let Some(known) = self.tables.iter_mut().find(|known| known.name == table) {
            known.is_there = true;
        }
    }

    /// Sees rows of a table.
    pub(crate) fn add(&mut self, table: &str, batch: &RecordBatch) -> Result<()> {
        let Figures { tables, leaves, kept } = self;
        leaves.add(table, batch)?;
        let Some(known) = tables.iter_mut().find(|known| known.name == table) else { return Ok(()) };
        known.readings.iter_mut().try_for_each(|reading| look(reading, batch, kept))
    }

    /// The figures, in the order of the definitions.
    pub(crate) fn finish(self) -> Vec<Metric> {
        let Figures { tables, leaves, .. } = self;
        let is_there = |name: &str| tables.iter().any(|table| table.name == name && table.is_there);
        let has_leaves = Leaves::TABLES.iter().all(|name| is_there(name));
        let duration_ns = tables.iter().flat_map(|table| &table.readings).find_map(|reading| {
            let is_duration = reading.takes.iter().any(|(_, definition)| definition.name == "recording.duration");
            reading.groups.one().filter(|_| is_duration).and_then(|seen| seen.figure(Take::Max, 0.0))
        });
        let mut found = Vec::new();
        for reading in tables.into_iter().filter(|table| table.is_there).flat_map(|table| table.readings) {
            for (place, definition) in reading.takes {
                let figures = match definition.frame {
                    Some(_) if !has_leaves => Vec::new(),
                    Some(of) => reading.groups.of_frames(definition, &leaves, of),
                    None => reading.groups.figures(definition, duration_ns.unwrap_or_default()),
                };
                found.extend(figures.into_iter().map(|metric| (place, metric)));
            }
        }
        found.sort_by_key(|(place, _)| *place);
        found.into_iter().map(|(_, metric)| metric).collect()
    }
}

fn look(reading: &mut Reading, batch: &RecordBatch, kept: &mut Kept) -> Result<()> {
    let Some((_, definition)) = reading.takes.first() else { return Ok(()) };
    let values = Column::of(batch, definition.table().1)?;
    let rows = Rows::of(batch, definition)?;
    let column = |name: Option<&'static str>| name.map(|name| Column::of(batch, name)).transpose();
    let worst = column(reading.worst)?;
    let times = column(reading.takes(&[Take::Last]).then_some("ts_ns"))?;
    let keeps = reading.takes(&[Take::P50, Take::P99]);
    let is_text = reading.takes(&[Take::Failed]);
    let see = |seen: &mut Seen, row: usize, kept: &mut Kept| {
        if is_text {
            return seen.outcome(values.text(row));
        }
        let Some(value) = values.real(row) else { return seen.nothing() };
        let place = worst.and_then(|worst| worst.number(row));
        seen.add(value, place);
        if keeps {
            seen.keep(value, kept);
        }
        if let Some(ts_ns) = times.and_then(|times| times.number(row)) {
            seen.at(ts_ns as i64, value);
        }
    };
    match &mut reading.groups {
        Groups::One(seen) => rows.all().for_each(|row| see(seen, row, kept)),
        Groups::Texts(texts) => {
            let by: Vec<Column<'_>> = definition.by.iter().map(|by| Column::of(batch, by)).collect::<Result<_>>()?;
            for row in rows.all() {
                if let Some(seen) = texts.of_row(&by, row) {
                    see(seen, row, kept);
                }
            }
        }
        Groups::Sites(sites) => {
            let site = Column::of(batch, "callsite_id")?;
            for row in rows.all() {
                let site = site.number(row).and_then(|site| u32::try_from(site).ok()).filter(|site| *site > 0);
                if let (Some(site), Some(value)) = (site, values.real(row)) {
                    sites.add(site, value);
                }
            }
        }
    }
    Ok(())
}
