//! Rows of a query as a table for people: the title of each column, and its unit.

use super::run::Rows;
use super::value::Value;
use crate::present::{Amount, Cell, Column, Table, Unit};

/// How the values of a column are written.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    Text,
    In(Unit),
    /// Milliseconds, and seconds.
    Times(f64),
    Percent,
}

use Shown::{In, Percent, Text, Times};

const COUNT: Shown = In(Unit::Count);
const SIZE: Shown = In(Unit::Bytes);
const AT: Shown = In(Unit::Moment);
const ID: Shown = In(Unit::Id);
const MS: Shown = Times(1e6);

/// Columns of queries, their titles and what their values are.
const COLUMNS: [(&str, &str, Shown); 50] = [
    ("alive_bytes", "alive", SIZE),
    ("allocated_bytes", "allocated", SIZE),
    ("callsite_id", "call site", ID),
    ("collections", "GCs", COUNT),
    ("count", "how often", COUNT),
    ("duration_ms", "took", MS),
    ("field", "field", Text),
    ("finalization_promoted_count", "finalizable objects", COUNT),
    ("finalized", "finalized", COUNT),
    ("first_s", "first seen s", Times(1e9)),
    ("frames", "frames", COUNT),
    ("free_bytes", "free", SIZE),
    ("gc_id", "gc_id", ID),
    ("gen0_budget_bytes", "budget of gen 0", SIZE),
    ("generation", "gen", ID),
    ("handle_count", "handles", COUNT),
    ("heaps", "heaps", COUNT),
    ("how_often", "how often", COUNT),
    ("kind", "kind", Text),
    ("longest_ms", "longest", MS),
    ("mark_ms", "marking", MS),
    ("memory_load_percent", "memory load", Percent),
    ("message", "message", Text),
    ("name", "name", Text),
    ("object_bytes", "objects before", SIZE),
    ("other_bytes", "other survivors", SIZE),
    ("own_method", "own method", Text),
    ("pause_ms", "pause", MS),
    ("pauses", "pauses", COUNT),
    ("pinned_bytes", "pinned survivors", SIZE),
    ("promoted_bytes", "promoted", SIZE),
    ("queue_ts", "queued s", AT),
    ("reason", "reason", Text),
    ("root_kind", "kept by", Text),
    ("second", "second from s", AT),
    ("seen_ms", "seen for", MS),
    ("size_bytes", "size", SIZE),
    ("start_ts", "start s", AT),
    ("survived_bytes", "survived", SIZE),
    ("suspend_ms", "suspend", MS),
    ("tasks", "tasks", COUNT),
    ("thread_id", "thread", ID),
    ("total_ms", "together", MS),
    ("ts", "at s", AT),
    ("type_name", "type", Text),
    ("unloaded", "unloaded", COUNT),
    ("value", "value", COUNT),
    ("wait_ms", "waited", MS),
    ("waiting_ms", "waiting", MS),
    ("worker_count", "workers", COUNT),
];

/// The rows as a table. `None` where a column has no title.
pub(super) fn table(found: &Rows, id: &str, most: usize) -> Option<Table> {
    let known = found.names.iter().map(|name| COLUMNS.iter().find(|(column, ..)| *column == name.as_str()));
    let known: Vec<&(&str, &str, Shown)> = known.collect::<Option<_>>()?;
    let heads: Vec<Column> = known
        .iter()
        .map(|(_, title, shown)| Column { name: Some(*title), meaning: "", key: None, is_number: *shown != Text })
        .collect();
    let mut table = Table::new(id, &heads);
    for row in found.rows.iter().take(most) {
        table.row(row.iter().zip(&known).map(|(value, (.., shown))| cell(value, *shown)).collect::<Vec<_>>());
    }
    Some(table)
}

fn cell(value: &Value, shown: Shown) -> Cell {
    match value {
        Value::Null => Cell::Missing,
        Value::Text(text) => Cell::text(text),
        Value::Number(number) => {
            let is_whole = number.fract() == 0.0 && (0.0..9e15).contains(number);
            match shown {
                In(unit) if is_whole => Amount::new(*number as u64, unit).into(),
                In(unit) => Amount::new(*number, unit).into(),
                Times(by) => Amount::new(number * by, Unit::Nanoseconds).into(),
                Percent => Cell::share(number / 100.0),
                // A number where texts are expected.
                Text => Amount::new(*number, Unit::Count).into(),
            }
        }
    }
}
