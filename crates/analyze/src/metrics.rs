//! Figures of a recording, such as the 99th percentile of its pauses, by the definitions of `schemas/metrics.toml`.

mod definition;
mod figures;
mod groups;
mod leaves;
mod names;
mod needs;
mod roots;
mod rows;
mod seen;
mod types;

use crate::prelude::*;
use tracequet_dataset::read::Dataset;
use tracequet_dataset::read::arrow_array::RecordBatch;

use definition::full_name;
pub use definition::{Better, Definition, Metric, Owner, definition_of, definitions};
pub use figures::Figures;
pub use names::Names;
pub use needs::Missing;
pub(crate) use needs::Needs;
pub use types::TypeNames;

/// The table that `convert` writes figures to.
pub const TABLE: &str = "metric";

/// Rows of that table, and bytes of its texts. A recording has some hundreds, with a counter for each name some
/// thousands.
const MAX_METRICS: usize = 256 << 10;
const MAX_TEXT: u64 = 64 << 20;

/// All figures of a recording: the rows of its table `metric`, or, where that was left out, what the other tables give.
/// Counts and sums of empty sets are 0 where such events were recorded. Otherwise there is no value, but the reason.
pub fn metrics(recording: &Recording<'_>) -> Result<Vec<Metric>> {
    let Ok(scan) = recording.scan::<MetricRow<'_>>() else { return computed(recording) };
    let mut stored = Stored::of(recording);
    for batch in scan.batches()? {
        stored.add(&batch?)?;
    }
    Ok(stored.found)
}

/// The metrics of recordings with these keys, in their order.
pub(crate) fn metrics_of_all(dataset: &Dataset, keys: &[&str]) -> Result<Vec<Vec<Metric>>> {
    let recordings = keys.iter().map(|key| dataset.recording(Some(key))).collect::<Result<Vec<_>>>()?;
    let mut stored: Vec<Stored<'_>> = recordings.iter().map(Stored::of).collect();
    let have = dataset.each_batch(
        TABLE,
        keys,
        |_| Ok(<MetricRow<'_> as Row>::COLUMNS.to_vec()),
        |place, batch| stored.get_mut(place).map_or(Ok(()), |stored| stored.add(batch)),
    )?;
    let figures = |((recording, stored), has_them): ((&Recording<'_>, Stored<'_>), bool)| match has_them {
        true => Ok(stored.found),
        false => computed(recording),
    };
    recordings.iter().zip(stored).zip(have).map(figures).collect()
}

/// Whether a metric was recorded: it has a value, or its events were recorded and there were none.
pub(crate) fn is_recorded(all: &[Metric], name: &str) -> bool {
    let is_known = |metric: &Metric| metric.value.is_some() || metric.missing == Some(Missing::Empty);
    all.iter().any(|metric| metric.name == name && is_known(metric))
}

row!(struct MetricRow of metric { name, key, value, missing, observation_count, worst, scope, process_id, source });

/// The figures of a recording, as the rows of its table `metric` come.
struct Stored<'r> {
    recording: Recording<'r>,
    found: Vec<Metric>,
    texts: HeldTexts<'r>,
}

impl<'r> Stored<'r> {
    fn of(recording: &Recording<'r>) -> Stored<'r> {
        let texts = HeldTexts::of(recording, TABLE).up_to(MAX_TEXT);
        Stored { recording: *recording, found: Vec::new(), texts }
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let Stored { recording, found, texts } = self;
        for row in rows_of::<MetricRow<'_>>(batch)? {
            texts.count(row.name.len() + row.key.map_or(0, str::len))?;
            found.push(Metric {
                name: full_name(row.name, row.key),
                value: row.value,
                missing: row.missing.and_then(Missing::named),
                observations: row.observation_count,
                worst: row.worst.map(|worst| texts.copy(worst)).transpose()?,
                owner: Owner::of_columns(row.scope, row.process_id),
                source: row.source.map(|source| texts.copy(source)).transpose()?,
            });
        }
        if found.len() > MAX_METRICS {
            let key = &recording.info().trace_id;
            return Err(Error::TooLarge(format!("the recording {key} has more than {MAX_METRICS} rows of {TABLE}")));
        }
        held(recording, TABLE, found.len() as u64, 256)
    }
}

/// The needs of metrics and findings as far as the recording shows them; nothing seen yet.
pub(crate) fn needs() -> Result<Needs> {
    Ok(Needs::new(definition::needs()?))
}

/// The tables that figures are made of.
pub fn tables() -> Result<Vec<&'static str>> {
    Ok(Figures::new()?.tables())
}

/// The figures of a recording by its other tables; tables that it does not have give no figures.
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
    figures.finish()
}
