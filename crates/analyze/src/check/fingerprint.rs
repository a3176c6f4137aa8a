//! What makes runs comparable.

use std::collections::{BTreeMap, BTreeSet};

use tracequet_dataset::error::Result;
use tracequet_dataset::read::arrow_array::RecordBatch;
use tracequet_dataset::read::{Column, Dataset, Table};

use super::run::Run;

/// How the runtime was started.
const FLAGS: &str = "startup flags";

/// Numbers of heaps, which DATAS changes.
const HEAPS: &str = "GC heaps";

/// The event in which a runtime says how its collector is set up.
const SETTINGS: &str = "event/Microsoft-Windows-DotNETRuntimeRundown/GCSettingsRundown";

/// What the control groups of the process allow it.
const LIMITS: &str = "limits of the container";

/// How the collector is set up.
const GC_SETTINGS: &str = "GC settings";

/// Bits of the settings of the collector, in words: `GCSettingsFlags` of the layouts.
const SETTING_BITS: [(u64, &str); 4] =
    [(2, "large pages"), (4, "frozen segments"), (8, "hard limit by configuration"), (16, "threads without affinity")];

/// Collections of which one at least reports DATAS, where that is on.
const ENOUGH_COLLECTIONS: usize = 8;

/// Tables that a fingerprint is made of.
pub const TABLES: [&str; 7] = ["trace", "process", "gc", "gc_tuning", "event_type", "session_provider", SETTINGS];

/// The columns of a table, and what a value of each is called; of several columns all together.
type Asked = (&'static [&'static str], &'static str);

const ASKED: [(&str, &[Asked]); 6] = [
    (
        "trace",
        &[
            (&["container"], "format"),
            (&["processor_count"], "processors"),
            (&["cgroup_known", "memory_limit_bytes", "cpu_limit_millicores"], LIMITS),
            (&["pointer_size"], "pointer size"),
        ],
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
            (&["bit_settings", "loh_threshold", "gen0_min_budget_config", "gen0_max_budget_config"], GC_SETTINGS),
        ],
    ),
    ("event_type", &[(&["provider_name"], "providers")]),
    ("session_provider", &[(&["provider_name", "keywords", "level", "arguments", "event_ids"], "what was asked for")]),
];

/// What makes the recordings with these keys comparable, in their order: format, processors, limits of the container, width, system, runtime,
/// mode, heaps, limits and DATAS of the collector, the providers that were recorded, and what `tracequet collect` asked of them.
pub(super) fn fingerprints(dataset: &Dataset, keys: &[&str]) -> Result<Vec<BTreeMap<&'static str, String>>> {
    let mut found: Vec<BTreeMap<&'static str, String>> = vec![BTreeMap::new(); keys.len()];
    for (table, asked) in ASKED {
        let mut values: Vec<Vec<BTreeSet<String>>> = vec![vec![BTreeSet::new(); asked.len()]; keys.len()];
        let have = dataset.each_batch(
            table,
            keys,
            |found| columns(found, asked),
            |place, batch| values.get_mut(place).map_or(Ok(()), |values| add(table, asked, batch, values)),
        )?;
        for ((found, values), _) in found.iter_mut().zip(values).zip(have).filter(|(_, has_it)| *has_it) {
            for ((_, name), values) in asked.iter().zip(values) {
                found.insert(*name, values.into_iter().collect::<Vec<_>>().join(", "));
            }
        }
    }
    for (found, is_on) in found.iter_mut().zip(datas(dataset, keys)?) {
        let Some(is_on) = is_on else { continue };
        found.insert("DATAS", if is_on { "on" } else { "off" }.to_owned());
        if is_on {
            // It changes the number of heaps as it goes.
            found.remove(HEAPS);
        }
    }
    Ok(found)
}

/// The columns that are asked for. What a recording describes itself may have other fields.
fn columns(table: &Table, asked: &[Asked]) -> Result<Vec<&'static str>> {
    let all: BTreeSet<&str> = asked.iter().flat_map(|(columns, _)| columns.iter().copied()).collect();
    let mut all: Vec<&str> = all.into_iter().collect();
    if table.name() == SETTINGS {
        let schema = table.scan().batches()?.schema();
        all.retain(|name| schema.field_with_name(name).is_ok());
    }
    Ok(all)
}

/// Adds what a batch of a table says.
fn add(table: &str, asked: &[Asked], batch: &RecordBatch, values: &mut [BTreeSet<String>]) -> Result<()> {
    let is_of_settings = table == SETTINGS;
    let is_there = |name: &&str| batch.schema_ref().field_with_name(name).is_ok();
    for ((columns, name), values) in asked.iter().zip(values) {
        if is_of_settings && !columns.iter().all(is_there) {
            continue;
        }
        let all = columns.iter().map(|name| Ok((*name, Column::of(batch, name)?))).collect::<Result<Vec<_>>>()?;
        let mut last = String::new();
        for row in 0..batch.num_rows() {
            let text = |(name, column): &(&str, Column<'_>)| match column.text(row) {
                Some(text) => (!text.is_empty()).then(|| text.to_owned()),
                None => column.number(row).filter(|number| *number > 0 || is_of_settings).map(|number| match *name {
                    "keywords" => format!("{number:#x}"),
                    "hard_limit" if number == 0 => "none".to_owned(),
                    "memory_limit_bytes" | "hard_limit" => format!("{number} bytes"),
                    "cpu_limit_millicores" => format!("{number} millicores"),
                    _ => number.to_string(),
                }),
            };
            // Most rows say what the one before says.
            if let [(_, column)] = all.as_slice()
                && row > 0
                && column.text(row).is_some_and(|text| text == last)
            {
                continue;
            }
            let mut words: Vec<String> = all.iter().filter_map(text).collect();
            if *name == LIMITS && !words.is_empty() {
                words.remove(0);
                words = vec![if words.is_empty() { "none".to_owned() } else { words.join(" and ") }];
            }
            if *name == GC_SETTINGS && !words.is_empty() {
                let number = |(_, column): &(&str, Column<'_>)| column.number(row).unwrap_or_default();
                words = vec![settings_in_words(&all.iter().map(number).collect::<Vec<_>>())];
            }
            if *name == FLAGS && !words.is_empty() {
                // One event has both, so that a runtime of which the version is known has these flags, and no others.
                words = vec![words.get(1).cloned().unwrap_or_else(|| "none".to_owned())];
            }
            if !words.is_empty() {
                last = words.join(":");
                if !values.contains(&last) {
                    values.insert(last.clone());
                }
            }
        }
    }
    Ok(())
}

/// Bits, least size of an object of the LOH, and bounds of the budget of gen 0, in words.
fn settings_in_words(settings: &[u64]) -> String {
    let setting = |place: usize| settings.get(place).copied().unwrap_or_default();
    let bits = setting(0);
    let mut words = vec![if bits & 1 == 0 { "not concurrent" } else { "concurrent" }.to_owned()];
    words.extend(SETTING_BITS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, word)| (*word).to_owned()));
    let unknown = SETTING_BITS.iter().fold(bits & !1, |bits, (bit, _)| bits & !bit);
    let sizes = [("LOH from", setting(1)), ("gen 0 budget from", setting(2)), ("gen 0 budget to", setting(3))];
    words.extend((unknown != 0).then(|| format!("bits {unknown:#x}")));
    words.extend(sizes.iter().filter(|(_, size)| *size != 0).map(|(word, size)| format!("{word} {size} bytes")));
    words.join(", ")
}

/// Whether the collector adapts its heaps to the application (DATAS), which only its tuning events say; nothing where there were too
/// few collections for one.
fn datas(dataset: &Dataset, keys: &[&str]) -> Result<Vec<Option<bool>>> {
    let mut is_on = vec![false; keys.len()];
    let of_tuning = |_: &Table| Ok(vec!["event_name"]);
    dataset.each_batch("gc_tuning", keys, of_tuning, |place, batch| {
        let names = Column::of(batch, "event_name")?;
        let is_of_datas = |name: &str| name.starts_with("SizeAdaptation") || name.starts_with("HeapCount");
        if (0..batch.num_rows()).any(|row| names.text(row).is_some_and(is_of_datas)) {
            is_on.iter_mut().skip(place).take(1).for_each(|is_on| *is_on = true);
        }
        Ok(())
    })?;
    let mut collections = vec![0; keys.len()];
    let of_gc = |_: &Table| Ok(vec!["generation"]);
    dataset.each_batch("gc", keys, of_gc, |place, batch| {
        let generation = Column::of(batch, "generation")?;
        // Full ones report it only when they change something.
        let ephemeral = (0..batch.num_rows()).filter(|row| generation.number(*row).is_some_and(|g| g < 2)).count();
        collections.iter_mut().skip(place).take(1).for_each(|collections| *collections += ephemeral);
        Ok(())
    })?;
    let of_one = |(is_on, collections): (bool, usize)| match is_on {
        true => Some(true),
        false => (collections >= ENOUGH_COLLECTIONS).then_some(false),
    };
    Ok(is_on.into_iter().zip(collections).map(of_one).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_collector_are_words() {
        let words = settings_in_words(&[21, 85_000, 0, 0]);
        assert_eq!(words, "concurrent, frozen segments, threads without affinity, LOH from 85000 bytes");
        let words = settings_in_words(&[10 | 64, 100_000, 1 << 20, 1 << 25]);
        let expected = "not concurrent, large pages, hard limit by configuration, bits 0x40, LOH from 100000 bytes, \
                        gen 0 budget from 1048576 bytes, gen 0 budget to 33554432 bytes";
        assert_eq!(words, expected);
    }
}
