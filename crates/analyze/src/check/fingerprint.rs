//! Fingerprints: properties that make runs comparable.

use crate::prelude::*;
use std::borrow::Borrow;
use std::collections::BTreeSet;

use tracequet_dataset::read::arrow_array::RecordBatch;
use tracequet_dataset::read::{Column, Dataset, Table};

use super::run::Run;

/// The flags with which the runtime was started.
const FLAGS: &str = "startup flags";

/// Numbers of heaps, which DATAS changes.
const HEAPS: &str = "GC heaps";

/// The event in which a runtime says how its collector is set up.
const SETTINGS: &str = "event/Microsoft-Windows-DotNETRuntimeRundown/GCSettingsRundown";

/// The limits of the control groups of the process.
const LIMITS: &str = "limits of the container";

/// The settings of the collector, and the fields that have them.
const GC_SETTINGS: &str = "GC settings";
const OF_SETTINGS: [&str; 4] = ["bit_settings", "loh_threshold", "gen0_min_budget_config", "gen0_max_budget_config"];

/// The most that the heap may have.
const HARD_LIMIT: &str = "hard_limit";

/// Bits of the settings of the collector, in words: `GCSettingsFlags` of the layouts.
const SETTING_BITS: [(u64, &str); 4] =
    [(2, "large pages"), (4, "frozen segments"), (8, "hard limit by configuration"), (16, "threads without affinity")];

/// Collections of which one at least reports DATAS, where that is on.
const ENOUGH_COLLECTIONS: usize = 8;

/// Tables that a fingerprint is made of.
pub const TABLES: [&str; 7] = ["trace", "process", "gc", "gc_tuning", "event_type", "session_provider", SETTINGS];

row!(struct Trace of trace {
    container, processor_count, cgroup_known, memory_limit_bytes, cpu_limit_millicores, pointer_size
});

row!(struct Process of process { os, arch, runtime_version, startup_flags });

row!(struct Gc of gc { heap_count, generation });

row!(struct EventType of event_type { provider_name });

row!(struct Wanted of session_provider { provider_name, keywords, level, arguments, event_ids });

row!(struct Tuning of gc_tuning { event_name });

/// The properties of a recording: the values of each name.
#[derive(Default)]
struct Said {
    values: BTreeMap<&'static str, BTreeSet<String>>,
    /// Whether the collector adapts its heaps to the application (DATAS), which only its tuning events say.
    is_adapting: bool,
    /// Collections of generations 0 and 1: full ones report DATAS only when they change something.
    collections: usize,
}

impl Said {
    fn say(&mut self, name: &'static str, value: &str) {
        let values = self.values.entry(name).or_default();
        // Most rows say what others say.
        if !value.is_empty() && !values.contains(value) {
            values.insert(value.to_owned());
        }
    }

    fn number(&mut self, name: &'static str, number: u64) {
        if number > 0 {
            self.say(name, &number.to_string());
        }
    }

    fn of_trace(&mut self, row: &Trace<'_>) {
        self.say("format", row.container);
        self.number("processors", row.processor_count);
        self.number("pointer size", row.pointer_size.into());
        if row.cgroup_known {
            let limits = [(row.memory_limit_bytes, "bytes"), (row.cpu_limit_millicores, "millicores")];
            let limits: Vec<String> = limits
                .iter()
                .filter_map(|(limit, unit)| Some(format!("{} {unit}", limit.filter(|limit| *limit > 0)?)))
                .collect();
            self.say(LIMITS, if limits.is_empty() { "none".to_owned() } else { limits.join(" and ") }.as_str());
        }
    }

    fn of_process(&mut self, row: &Process<'_>) {
        self.say("system", row.os);
        self.say("architecture", row.arch);
        self.say("runtime version", row.runtime_version);
        if !row.runtime_version.is_empty() {
            // One event has both, so that a runtime of which the version is known has these flags, and no others.
            self.say(FLAGS, if row.startup_flags.is_empty() { "none" } else { row.startup_flags });
        }
    }

    fn of_gc(&mut self, row: &Gc<'_>) {
        self.number(HEAPS, row.heap_count.into());
        self.collections += usize::from(row.generation.is_some_and(|generation| generation < 2));
    }

    fn of_wanted(&mut self, row: &Wanted<'_>) {
        let number = |number: u64, shown: String| if number > 0 { shown } else { String::new() };
        let words = [
            row.provider_name.to_owned(),
            number(row.keywords, format!("{:#x}", row.keywords)),
            number(row.level.into(), row.level.to_string()),
            row.arguments.unwrap_or_default().to_owned(),
            row.event_ids.unwrap_or_default().to_owned(),
        ];
        let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
        self.say("what was asked for", &words.join(":"));
    }

    /// Takes the collector's settings: an event that recordings describe themselves, and not always with all of its
    /// fields.
    fn of_settings(&mut self, batch: &RecordBatch) -> Result<()> {
        let column = |name: &&str| batch.schema_ref().field_with_name(name).is_ok().then(|| Column::of(batch, name));
        let limits = column(&HARD_LIMIT).transpose()?;
        let settings = OF_SETTINGS.iter().map_while(column).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            match limits.as_ref().and_then(|limit| limit.number(row)) {
                Some(0) => self.say("GC heap hard limit", "none"),
                Some(limit) => self.say("GC heap hard limit", &format!("{limit} bytes")),
                None => {}
            }
            let numbers: Vec<u64> = settings.iter().map(|column| column.number(row).unwrap_or_default()).collect();
            if numbers.len() == OF_SETTINGS.len() {
                self.say(GC_SETTINGS, &settings_in_words(&numbers));
            }
        }
        Ok(())
    }

    fn fingerprint(mut self) -> BTreeMap<&'static str, String> {
        // There may be too few collections for one that reports it.
        if self.is_adapting || self.collections >= ENOUGH_COLLECTIONS {
            self.say("DATAS", if self.is_adapting { "on" } else { "off" });
        }
        if self.is_adapting {
            // An adapting collector changes the number of heaps as it goes.
            self.values.remove(HEAPS);
        }
        let joined = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(", ");
        self.values.into_iter().map(|(name, values)| (name, joined(values))).collect()
    }
}

/// The fingerprints of the recordings with these keys, in their order: format, processors, limits of the container,
/// width, system, runtime, mode, heaps, limits and DATAS of the collector, the providers that were recorded, and what
/// `tracequet collect` asked of them.
pub(super) fn fingerprints(dataset: &Dataset, keys: &[&str]) -> Result<Vec<BTreeMap<&'static str, String>>> {
    let mut all: Vec<Said> = keys.iter().map(|_| Said::default()).collect();
    rows::<Trace<'_>>(dataset, keys, &mut all, |said, row| said.of_trace(&row))?;
    rows::<Process<'_>>(dataset, keys, &mut all, |said, row| said.of_process(&row))?;
    rows::<Gc<'_>>(dataset, keys, &mut all, |said, row| said.of_gc(&row))?;
    rows::<EventType<'_>>(dataset, keys, &mut all, |said, row| said.say("providers", row.provider_name))?;
    rows::<Wanted<'_>>(dataset, keys, &mut all, |said, row| said.of_wanted(&row))?;
    rows::<Tuning<'_>>(dataset, keys, &mut all, |said, row| {
        said.is_adapting |= row.event_name.starts_with("SizeAdaptation") || row.event_name.starts_with("HeapCount");
    })?;
    let fields = |table: &Table| {
        let schema = table.scan().batches()?.schema();
        let fields = std::iter::once(HARD_LIMIT).chain(OF_SETTINGS);
        Ok(fields.filter(|name| schema.field_with_name(name).is_ok()).collect())
    };
    dataset.each_batch(SETTINGS, keys, fields, |place, batch| {
        all.get_mut(place).map_or(Ok(()), |said| said.of_settings(batch))
    })?;
    Ok(all.into_iter().map(Said::fingerprint).collect())
}

/// Reads a table of all recordings.
fn rows<R: Row>(
    dataset: &Dataset,
    keys: &[&str],
    all: &mut [Said],
    mut take: impl FnMut(&mut Said, R::Of<'_>),
) -> Result<()> {
    let columns = |_: &Table| Ok(R::COLUMNS.to_vec());
    dataset.each_batch(R::TABLE, keys, columns, |place, batch| {
        let Some(said) = all.get_mut(place) else { return Ok(()) };
        rows_of::<R>(batch)?.for_each(|row| take(said, row));
        Ok(())
    })?;
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

/// Why runs cannot be compared, if they cannot.
pub fn incomparable<R: Borrow<Run>>(new: &[R], base: &[R]) -> Option<String> {
    let of = |runs: &[R], name: &str| -> BTreeSet<String> {
        runs.iter()
            .map(R::borrow)
            .filter_map(|run| run.fingerprint.get(name))
            .filter(|value| !value.is_empty())
            .cloned()
            .collect()
    };
    let names: BTreeSet<&str> =
        new.iter().chain(base).map(R::borrow).flat_map(|run| run.fingerprint.keys().copied()).collect();
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
