//! Figures of a recording, such as the 99th percentile of its pauses, by the definitions of `schemas/metrics.toml`.

mod definition;
mod figures;
mod groups;
mod leaves;
mod rows;
mod seen;

use super::{HeldTexts, held};
use crate::dataset::{Column, Recording};
use crate::error::Result;
use definition::full_name;
pub use definition::{Better, Definition, Metric, definition_of, definitions};
pub(crate) use figures::Figures;

/// The table that `convert` writes figures to.
pub const TABLE: &str = "metric";

/// All figures of a recording: the rows of its table `metric`, or, where that was left out, what the other tables give.
/// Counts and sums of nothing are 0; whether the events were recorded at all is not told by them.
pub fn metrics(recording: &Recording<'_>) -> Result<Vec<Metric>> {
    if recording.table(TABLE).is_ok() { stored(recording) } else { computed(recording) }
}

fn stored(recording: &Recording<'_>) -> Result<Vec<Metric>> {
    let (mut found, mut texts) = (Vec::new(), HeldTexts::of(recording, TABLE));
    let columns = ["name", "key", "value", "observation_count", "worst"];
    for batch in recording.table(TABLE)?.scan().columns(columns).batches()? {
        let batch = batch?;
        let column = |name| Column::of(&batch, name);
        let (name, key, value) = (column("name")?, column("key")?, column("value")?);
        let (observations, worst) = (column("observation_count")?, column("worst")?);
        for row in 0..batch.num_rows() {
            let (name, key) = (name.text(row).unwrap_or_default(), key.text(row));
            texts.count(name.len() + key.map_or(0, str::len))?;
            found.push(Metric {
                name: full_name(name, key),
                value: value.real(row).unwrap_or_default(),
                observations: observations.number(row).unwrap_or_default(),
                worst: worst.text(row).map(|worst| texts.copy(worst)).transpose()?,
            });
        }
        held(recording, TABLE, found.len() as u64, 256)?;
    }
    Ok(found)
}

/// The tables that figures are made of.
pub fn tables() -> Result<Vec<&'static str>> {
    Ok(Figures::new()?.tables())
}

/// The figures of a recording by its other tables; of those that it does not have there are none.
pub fn computed(recording: &Recording<'_>) -> Result<Vec<Metric>> {
    let mut figures = Figures::new()?;
    for table in figures.tables() {
        if let Ok(found) = recording.table(table) {
            figures.declare(table);
            for batch in found.scan().columns(figures.columns(table)).batches()? {
                figures.add(table, &batch?)?;
            }
        }
    }
    Ok(figures.finish())
}
