//! What makes runs comparable.

use std::collections::{BTreeMap, BTreeSet};

use tracequet_dataset::read::{Column, Recording};
use tracequet_trace::error::Result;

use super::run::Run;

/// Container, processors, width, system, runtime, mode and heaps of the collector, the providers that were recorded, and what
/// was asked of them where `tracequet collect` recorded it.
pub(super) fn fingerprint(recording: &Recording<'_>) -> Result<BTreeMap<&'static str, String>> {
    // The columns of a table, and what a value of each is called; of several columns all together.
    type Asked = (&'static [&'static str], &'static str);
    const ASKED: [(&str, &[Asked]); 5] = [
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
                (&["startup_flags"], "startup flags"),
            ],
        ),
        ("gc", &[(&["heap_count"], "GC heaps")]),
        ("event_type", &[(&["provider_name"], "providers")]),
        (
            "session_provider",
            &[(&["provider_name", "keywords", "level", "arguments", "event_ids"], "what was asked for")],
        ),
    ];
    let mut found = BTreeMap::new();
    // Each table is opened once: with many recordings that is most of the work.
    for (table, asked) in ASKED {
        let Ok(table) = recording.table(table) else { continue };
        let mut values: Vec<BTreeSet<String>> = vec![BTreeSet::new(); asked.len()];
        let columns = asked.iter().flat_map(|(columns, _)| columns.iter().copied());
        for batch in table.scan().columns(columns).batches()? {
            let batch = batch?;
            for ((columns, _), values) in asked.iter().zip(&mut values) {
                let all =
                    columns.iter().map(|name| Ok((*name, Column::of(&batch, name)?))).collect::<Result<Vec<_>>>()?;
                for row in 0..batch.num_rows() {
                    let text = |(name, column): &(&str, Column<'_>)| match column.text(row) {
                        Some(text) => (!text.is_empty()).then(|| text.to_owned()),
                        None => column.number(row).filter(|number| *number > 0).map(|number| match *name {
                            "keywords" => format!("{number:#x}"),
                            _ => number.to_string(),
                        }),
                    };
                    let words: Vec<String> = all.iter().filter_map(text).collect();
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
    Ok(found)
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
