//! Counters as lines over time, and a table of them.

use std::collections::BTreeMap;

use tracequet_analyze::present::{Unit, cut};

use crate::prelude::*;
use crate::timeline::Line;

/// Counters that are kept and that are drawn, and values of all together.
const MAX_COUNTERS: usize = 400;
const MAX_DRAWN: usize = 24;
const MAX_VALUES: usize = 1 << 20;

tracequet_dataset::row! {
    struct Value of counter { ts_ns, process_id, provider_name, name, unit, quantile, figure, value, tags }
}

/// The part. `None` without counters.
pub(crate) fn counters(recording: &Recording<'_>, end_ns: i64) -> Result<Option<String>> {
    let mut found: BTreeMap<(String, String, String), Vec<(i64, f64)>> = BTreeMap::new();
    let (mut held, mut left_out) = (0usize, 0u64);
    recording.each_recorded::<Value<'_>>(|row| {
        let Some(value) = row.figure.or(row.value).filter(|value| value.is_finite()) else { return };
        let mut name = cut(row.name, 200).to_owned();
        if let Some(quantile) = row.quantile {
            name += &format!(" ({} %)", quantile * 100.0);
        }
        if let Some(tags) = word(row.tags) {
            name += &format!(" {{{}}}", cut(tags, 200));
        }
        let provider = format!("{}\0{}", cut(row.provider_name, 200), row.process_id);
        let key = (provider, name, cut(row.unit.unwrap_or_default(), 40).to_owned());
        if held >= MAX_VALUES || found.len() >= MAX_COUNTERS && !found.contains_key(&key) {
            left_out += 1;
            return;
        }
        held += 1;
        found.entry(key).or_default().push((row.ts_ns, value));
    })?;
    if found.is_empty() {
        return Ok(None);
    }
    let number =
        |value: f64, unit: &str| Cell::number(Some(value), Unit::Count).shown_as(Cell::words(in_unit(value, unit).0));
    let mut charts = String::new();
    let mut drawn = 0;
    let table = table!("counters-table", &mut found, |((provider, name, unit), points)| {
        points.sort_by_key(|(ts_ns, _)| *ts_ns);
        let values = || points.iter().map(|(_, value)| *value);
        let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        let mean = values().sum::<f64>() / points.len() as f64;
        let provider = provider.split('\0').next().unwrap_or_default();
        // A line that never changes says nothing.
        if most > least && drawn < MAX_DRAWN {
            drawn += 1;
            let ((low, _), (high, after)) = (in_unit(least, unit), in_unit(most, unit));
            let words = format!("{low} to {high}{after}");
            let line = Line { name: name.clone(), words, class: "c0", points: points.clone(), ..Line::default() };
            charts += &line.lane(end_ns);
        }
    } {
        words("counter", "Its name") => Cell::text(name),
        words("source", "EventSource or meter") => Cell::text(provider),
        words("unit", "Of its values") => Cell::text(unit),
        numbers("values", "How many are recorded") => Cell::count(points.len() as u64),
        numbers("least", "The least of them") => number(least, unit),
        numbers("mean", "Their mean") => number(mean, unit),
        numbers("most", "The greatest of them") => number(most, unit),
        numbers("last", "The last one") => points.last().map_or(Cell::Missing, |(_, value)| number(*value, unit)),
    });
    let mut words = format!(
        "{}; those that change are drawn over the time of the timeline, {MAX_DRAWN} at most.",
        counted(found.len() as u64, "counter", "counters")
    );
    if left_out > 0 {
        words += &format!(" {} more values are beyond what a page reads.", count(left_out));
    }
    if !charts.is_empty() {
        charts = format!("<div class=\"lanes small\">\n{charts}</div>\n");
    }
    let table = table.html("Counters");
    Ok(Some(format!("{}{charts}<details><summary>All as a table</summary>\n{table}</details>\n", note(&words))))
}

/// A value, and the unit that stands behind it: bytes have theirs with them.
fn in_unit(value: f64, unit: &str) -> (String, String) {
    match unit {
        "B" | "By" | "bytes" if (1000.0..1e18).contains(&value) => (size(value as u64), String::new()),
        "B" | "By" | "bytes" => (format!("{} B", shown(value)), String::new()),
        "" => (shown(value), String::new()),
        unit => (shown(value), format!(" {unit}")),
    }
}

/// A value with four digits.
fn shown(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 || value.fract() == 0.0 => {
            format!("{}{}", if value < 0.0 { "-" } else { "" }, count(size.round() as u64))
        }
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}
