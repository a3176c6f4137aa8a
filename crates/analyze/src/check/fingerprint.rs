//! What makes runs comparable.

use std::collections::{BTreeMap, BTreeSet};

use tracequet_dataset::read::{Column, Recording};
use tracequet_trace::error::Result;

use super::run::Run;

/// How the runtime was started.
const FLAGS: &str = "startup flags";

/// Numbers of heaps, which DATAS changes.
const HEAPS: &str = "GC heaps";

/// The event in which a runtime says how its collector is set up.
const SETTINGS: &str = "event/Microsoft-Windows-DotNETRuntimeRundown/GCSettingsRundown";

/// Collections of which one at least reports DATAS, where that is on.
const ENOUGH_COLLECTIONS: usize = 8;

/// Tables that a fingerprint is made of.
pub const TABLES: [&str; 7] = ["trace", "process", "gc", "gc_tuning", "event_type", "session_provider", SETTINGS];

/// Container, processors, width, system, runtime, mode, heaps, limits and DATAS of the collector, the providers that were recorded,
/// and what was asked of them where `tracequet collect` recorded it.
pub(super) fn fingerprint(recording: &Recording<'_>) -> Result<BTreeMap<&'static str, String>> {
    // The columns of a table, and what a value of each is called; of several columns all together.
    type Asked = (&'static [&'static str], &'static str);
    const ASKED: [(&str, &[Asked]); 6] = [
        (
            "trace",
            &[(&["container"], "container"), (&["processor_count"], "processors"), (&["pointer_size"], "pointer size")],
        ),
        (
            "process",
            &[
                (&["os"], "system"),
                (&["arch"], "architecture"),
                (&["runtime_version"], "runtime version"),
                (&["runtime_version", "startup_flags"], FLAGS),
            ],
        ),
        ("gc", &[(&["heap_count"], HEAPS)]),
        (
            SETTINGS,
            &[
                (&["hard_limit"], "GC heap hard limit"),
                (&["bit_settings", "loh_threshold", "gen0_min_budget_config", "gen0_max_budget_config"], "GC settings"),
            ],
        ),
        ("event_type", &[(&["provider_name"], "providers")]),
        (
            "session_provider",
            &[(&["provider_name", "keywords", "level", "arguments", "event_ids"], "what was asked for")],
        ),
    ];
    let mut found = BTreeMap::new();
    // Each table is opened once: with many recordings that is most of the work.
    for (table, asked) in ASKED {
        let is_of_settings = table == SETTINGS;
        let Ok(table) = recording.table(table) else { continue };
        let mut asked = asked.to_vec();
        if is_of_settings {
            // What a recording describes itself may have other fields.
            let schema = table.scan().batches()?.schema();
            asked.retain(|(columns, _)| columns.iter().all(|name| schema.field_with_name(name).is_ok()));
        }
        let mut values: Vec<BTreeSet<String>> = vec![BTreeSet::new(); asked.len()];
        let columns: BTreeSet<&str> = asked.iter().flat_map(|(columns, _)| columns.iter().copied()).collect();
        for batch in table.scan().columns(columns).batches()? {
            let batch = batch?;
            for ((columns, name), values) in asked.iter().zip(&mut values) {
                let all =
                    columns.iter().map(|name| Ok((*name, Column::of(&batch, name)?))).collect::<Result<Vec<_>>>()?;
                for row in 0..batch.num_rows() {
                    let text =
                        |(name, column): &(&str, Column<'_>)| match column.text(row) {
                            Some(text) => (!text.is_empty()).then(|| text.to_owned()),
                            None => column.number(row).filter(|number| *number > 0 || is_of_settings).map(|number| {
                                match *name {
                                    "keywords" => format!("{number:#x}"),
                                    _ => number.to_string(),
                                }
                            }),
                        };
                    let mut words: Vec<String> = all.iter().filter_map(text).collect();
                    if *name == FLAGS && !words.is_empty() {
                        // One event has both, so that a runtime of which the version is known has these flags, and no others.
                        words = vec![words.get(1).cloned().unwrap_or_else(|| "none".to_owned())];
                    }
                    if !words.is_empty() {
                        values.insert(words.join(":"));
                    }
                }
            }
        }
        for ((_, name), values) in asked.iter().zip(values) {
            found.insert(*name, values.into_iter().collect::<Vec<_>>().join(", "));
        }
    }
    if let Some(is_on) = has_datas(recording)? {
        found.insert("DATAS", if is_on { "on" } else { "off" }.to_owned());
        if is_on {
            // It changes the number of heaps as it goes.
            found.remove(HEAPS);
        }
    }
    Ok(found)
}

/// Whether the collector adapts its heaps to the application (DATAS), which only its tuning events say; nothing where there were too
/// few collections for one.
fn has_datas(recording: &Recording<'_>) -> Result<Option<bool>> {
    if let Ok(table) = recording.table("gc_tuning") {
        for batch in table.scan().columns(["event_name"]).batches()? {
            let batch = batch?;
            let names = Column::of(&batch, "event_name")?;
            let is_of_datas = |name: &str| name.starts_with("SizeAdaptation") || name.starts_with("HeapCount");
            if (0..batch.num_rows()).any(|row| names.text(row).is_some_and(is_of_datas)) {
                return Ok(Some(true));
            }
        }
    }
    let Ok(table) = recording.table("gc") else { return Ok(None) };
    let mut collections = 0;
    for batch in table.scan().columns(["generation"]).batches()? {
        let batch = batch?;
        let generation = Column::of(&batch, "generation")?;
        // Full ones report it only when they change something.
        collections += (0..batch.num_rows()).filter(|row| generation.number(*row).is_some_and(|g| g < 2)).count();
    }
    Ok((collections >= ENOUGH_COLLECTIONS).then_some(false))
}

/// Why runs cannot be compared, if they cannot.
pub fn incomparable(new: &[Run], base: &[Run]) -> Option<String> {
    let of = |runs: &[Run], name: &str| -> BTreeSet<String> {
        runs.iter().filter_map(|run| run.fingerprint.get(name)).filter(|value| !value.is_empty()).cloned().collect()
    };
    let names: BTreeSet<&str> = new.iter().chain(base).flat_map(|run| run.fingerprint.keys().copied()).collect();
    names.into_iter().find_map(|name| {
        let (own, theirs) = (of(new, name), of(base, name));
        let differs = !own.is_empty() && !theirs.is_empty() && own != theirs;
        let list = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(" or ");
        differs.then(|| format!("not comparable: {name} was {}, now {}", list(theirs), list(own)))
    })
}
