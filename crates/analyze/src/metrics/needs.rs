//! Whether what a figure is made of was recorded at all. Nothing that was not recorded is a zero.

use arrow_array::RecordBatch;
use serde::Deserialize;

use crate::prelude::*;

/// The tables that say it.
pub(super) const TABLES: [&str; 3] = [SESSION, KINDS, PROCESSES];
const SESSION: &str = Asked::TABLE;
const KINDS: &str = Kind::TABLE;
const PROCESSES: &str = Process::TABLE;

row!(struct Asked of session_provider { provider_name, keywords, level, arguments, event_filter, event_ids });

row!(struct Kind of event_type { provider_name, event_name, level, keywords });

row!(struct Process of process { runtime_version });

/// The events that a figure is made of: any one of them will do.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Need {
    pub(super) name: String,
    events: Vec<Wanted>,
}

/// An event that a figure is made of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Provider and name.
    of: String,
    id: Option<u64>,
    #[serde(default)]
    keywords: u64,
    #[serde(default)]
    level: u32,
    /// The first major version of the runtime that has it; 0: all.
    #[serde(default)]
    since: u32,
    /// Runtimes that are asked for it do not write it of most of what it is about: only the event itself proves
    /// anything.
    #[serde(default)]
    only_seen: bool,
    /// Only asked for with these words among the arguments of the provider. Then the event alone says nothing.
    arguments: Option<String>,
}

tracequet_trace::worded! {
    /// Why a figure has no value.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Missing {
        /// The session did not ask for such events.
        NotAsked = "not_asked": "it was not recorded",
        /// No such event is in the recording, and nothing says whether they were asked for.
        NotSeen = "not_seen": "no event of its kind is in the recording, and nothing says whether they were recorded",
        /// The events were recorded, and there is nothing to take the metric of.
        Empty = "empty": "there is nothing to take it of",
    }
    /// The word, as the table `metric` has it.
    pub fn word;
    /// Why, as the end of a sentence.
    pub fn why;
}

/// A need, as far as the recording shows it.
#[derive(Clone, Copy, Debug, Default)]
struct Shown {
    is_seen: bool,
    /// Asked for; the least version of the runtime that has what was asked for.
    asked_since: Option<u32>,
}

/// An event of a need.
#[derive(Debug)]
struct Event {
    /// Which need.
    need: usize,
    provider: &'static str,
    name: &'static str,
    wanted: &'static Wanted,
}

/// All needs, as far as a recording shows them.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    names: Vec<&'static str>,
    events: Vec<Event>,
    shown: Vec<Shown>,
    /// Whether the recording says what was asked for.
    is_session_known: bool,
    /// The oldest runtime among the processes.
    major: Option<u32>,
}

impl Needs {
    /// Nothing seen yet.
    pub(super) fn new(needs: &'static [Need]) -> Needs {
        let mut events = Vec::new();
        for (number, need) in needs.iter().enumerate() {
            events.extend(need.events.iter().map(|wanted| {
                let (provider, name) = wanted.of.split_once('/').unwrap_or((&wanted.of, ""));
                Event { need: number, provider, name, wanted }
            }));
        }
        Needs {
            names: needs.iter().map(|need| need.name.as_str()).collect(),
            events,
            shown: vec![Shown::default(); needs.len()],
            ..Needs::default()
        }
    }

    /// The tables that say it.
    pub(crate) fn tables() -> [&'static str; 3] {
        TABLES
    }

    /// The columns of a table that say it.
    pub(crate) fn columns(table: &str) -> &'static [&'static str] {
        match table {
            SESSION => Asked::COLUMNS,
            KINDS => Kind::COLUMNS,
            PROCESSES => Process::COLUMNS,
            _ => &[],
        }
    }

    /// Sees rows of a table.
    pub(crate) fn add(&mut self, table: &str, batch: &RecordBatch) -> Result<()> {
        match table {
            SESSION => self.asked(batch),
            KINDS => self.seen(batch),
            PROCESSES => self.process(batch),
            _ => Ok(()),
        }
    }

    fn asked(&mut self, batch: &RecordBatch) -> Result<()> {
        for row in rows_of::<Asked<'_>>(batch)? {
            self.is_session_known = true;
            let arguments = row.arguments.unwrap_or_default();
            let ids = row.event_ids.unwrap_or_default();
            let ids: Vec<u64> = ids.split(',').filter_map(|id| id.trim().parse().ok()).collect();
            for event in &self.events {
                let is_let_through = match row.event_filter {
                    "only" => ids.iter().any(|id| event.wanted.id == Some(*id)),
                    "except" => !ids.iter().any(|id| event.wanted.id == Some(*id)),
                    _ => true,
                };
                let is_asked = !event.wanted.only_seen
                    && event.provider.eq_ignore_ascii_case(row.provider_name)
                    && (event.wanted.keywords == 0 || event.wanted.keywords & row.keywords != 0)
                    && row.level >= event.wanted.level
                    && event
                        .wanted
                        .arguments
                        .as_deref()
                        .is_none_or(|part| arguments.is_empty() || arguments.contains(part))
                    && is_let_through;
                if let Some(shown) = self.shown.get_mut(event.need).filter(|_| is_asked) {
                    let least = shown.asked_since.map_or(event.wanted.since, |known| known.min(event.wanted.since));
                    shown.asked_since = Some(least);
                }
            }
        }
        Ok(())
    }

    fn seen(&mut self, batch: &RecordBatch) -> Result<()> {
        for row in rows_of::<Kind<'_>>(batch)? {
            let (provider, name, keywords) = (row.provider_name, row.event_name, row.keywords);
            for event in
                self.events.iter().filter(|event| event.provider == provider && event.wanted.arguments.is_none())
            {
                // All of its keywords are ones that bring the event, too: whichever of them was asked for.
                let comes_with_it = keywords != 0
                    && keywords & !event.wanted.keywords == 0
                    && row.level >= event.wanted.level
                    && event.wanted.since == 0
                    && !event.wanted.only_seen;
                if let Some(shown) = self.shown.get_mut(event.need).filter(|_| event.name == name || comes_with_it) {
                    shown.is_seen = true;
                }
            }
        }
        Ok(())
    }

    fn process(&mut self, batch: &RecordBatch) -> Result<()> {
        for row in rows_of::<Process<'_>>(batch)? {
            let major = row.runtime_version.split('.').next().and_then(|major| major.parse().ok());
            self.major = match (self.major, major) {
                (Some(known), Some(major)) => Some(known.min(major)),
                (known, major) => known.or(major),
            };
        }
        Ok(())
    }

    /// Why nothing says that there was nothing, for a need; `None` where its events were recorded.
    pub(crate) fn missing(&self, need: Option<&str>) -> Option<Missing> {
        let place = self.names.iter().position(|name| Some(*name) == need);
        let Some(Shown { is_seen, asked_since }) = place.and_then(|place| self.shown.get(place)) else {
            return Some(Missing::NotSeen);
        };
        match (is_seen, asked_since) {
            (true, _) => None,
            (false, Some(0)) => None,
            (false, Some(since)) if self.major.is_some_and(|major| major >= *since) => None,
            (false, Some(_)) => Some(Missing::NotSeen),
            (false, None) if self.is_session_known => Some(Missing::NotAsked),
            (false, None) => Some(Missing::NotSeen),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, StringArray, UInt32Array, UInt64Array};

    use super::super::definition::{definitions, needs};
    use super::*;

    const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    }

    fn session(provider: &str, keywords: u64, level: u32, filter: &str, ids: Option<&str>) -> RecordBatch {
        batch(vec![
            ("provider_name", Arc::new(StringArray::from(vec![provider]))),
            ("keywords", Arc::new(UInt64Array::from(vec![keywords]))),
            ("level", Arc::new(UInt32Array::from(vec![level]))),
            ("arguments", Arc::new(StringArray::from(vec![None::<&str>]))),
            ("event_filter", Arc::new(StringArray::from(vec![filter]))),
            ("event_ids", Arc::new(StringArray::from(vec![ids]))),
        ])
    }

    fn kind(provider: &str, name: &str, keywords: u64, level: u32) -> RecordBatch {
        batch(vec![
            ("provider_name", Arc::new(StringArray::from(vec![provider]))),
            ("event_name", Arc::new(StringArray::from(vec![name]))),
            ("level", Arc::new(UInt32Array::from(vec![level]))),
            ("keywords", Arc::new(UInt64Array::from(vec![keywords]))),
        ])
    }

    fn version(text: &str) -> RecordBatch {
        batch(vec![("runtime_version", Arc::new(StringArray::from(vec![text])))])
    }

    fn after(tables: &[(&str, &RecordBatch)]) -> Needs {
        let mut found = Needs::new(needs().unwrap());
        tables.iter().for_each(|(table, batch)| found.add(table, batch).unwrap());
        found
    }

    #[test]
    fn every_need_is_known() {
        let all = after(&[]);
        for definition in definitions().unwrap() {
            let known = definition.needs.as_deref().is_none_or(|need| all.names.contains(&need));
            assert!(known, "{}", definition.name);
        }
        assert!(all.events.len() > 20);
    }

    /// Id, keywords and level are those of the newest version in the catalogue of events.
    #[test]
    fn events_are_those_of_the_catalogue() {
        let mut compared = 0;
        for event in &after(&[]).events {
            let Some(provider) = tracequet_trace::catalog::provider(event.provider) else { continue };
            let layouts = &provider.as_ref().unwrap().events;
            let newest = layouts.iter().rfind(|layout| layout.name == event.name).expect(event.name);
            let own = (event.wanted.id, event.wanted.keywords, event.wanted.level);
            assert_eq!(own, (Some(u64::from(newest.id)), newest.keywords, newest.level), "{}", event.name);
            compared += 1;
        }
        assert!(compared > 15, "{compared}");
    }

    #[test]
    fn what_was_asked_for_was_recorded_whether_there_was_any_or_not() {
        let gc = session(RUNTIME, 1, 4, "all", None);
        let found = after(&[(SESSION, &gc)]);
        assert_eq!(found.missing(Some("collections")), None);
        assert_eq!(found.missing(Some("pauses")), None);
        for need in ["allocations", "exceptions", "contentions", "adjustments", "samples"] {
            assert_eq!(found.missing(Some(need)), Some(Missing::NotAsked), "{need}");
        }
        // Ticks are verbose.
        let verbose = session(RUNTIME, 1, 5, "all", None);
        assert_eq!(after(&[(SESSION, &verbose)]).missing(Some("allocations")), None);
        // 80 is ExceptionThrown.
        for (filter, ids, expected) in [
            ("only", "1,80", None),
            ("only", "1", Some(Missing::NotAsked)),
            ("except", "80", Some(Missing::NotAsked)),
            ("except", "1,2", None),
        ] {
            let exceptions = session(RUNTIME, 0x8000, 2, filter, Some(ids));
            assert_eq!(after(&[(SESSION, &exceptions)]).missing(Some("exceptions")), expected, "{filter} {ids}");
        }
    }

    /// The managed pool, which every runtime since .NET 6 has, reports its work by another provider.
    #[test]
    fn threads_that_were_asked_for_are_no_work_items() {
        let threads = session(RUNTIME, 0x1_0000, 5, "all", None);
        let of_ten = version("10.0.1");
        let found = after(&[(PROCESSES, &of_ten), (SESSION, &threads)]);
        assert_eq!(found.missing(Some("adjustments")), None);
        assert_eq!(found.missing(Some("work_items")), Some(Missing::NotAsked));
        let items = session("System.Diagnostics.Eventing.FrameworkEventSource", 2, 5, "all", None);
        assert_eq!(after(&[(PROCESSES, &of_ten), (SESSION, &items)]).missing(Some("work_items")), None);
    }

    #[test]
    fn an_old_runtime_does_not_have_what_it_was_asked_for() {
        let waits = session(RUNTIME, 0x400_0000_0000, 5, "all", None);
        for (text, expected) in [("10.0.1", None), ("8.0.5", Some(Missing::NotSeen)), ("", Some(Missing::NotSeen))] {
            let found = after(&[(PROCESSES, &version(text)), (SESSION, &waits)]);
            assert_eq!(found.missing(Some("waits")), expected, "{text}");
        }
    }

    #[test]
    fn elsewhere_events_of_the_kind_are_the_evidence() {
        let none = after(&[]);
        assert_eq!(none.missing(Some("exceptions")), Some(Missing::NotSeen));
        assert_eq!(none.missing(None), Some(Missing::NotSeen));
        let catches = kind(RUNTIME, "ExceptionCatchStart", 0x8000, 4);
        let found = after(&[(KINDS, &catches)]);
        assert_eq!(found.missing(Some("exceptions")), None, "another event that the keyword brings");
        assert_eq!(found.missing(Some("contentions")), Some(Missing::NotSeen));
        // Either of two keywords brings it: it does not prove the one that is asked about.
        let queued = kind(RUNTIME, "ThreadPoolEnqueue", 0x8001_0000, 5);
        assert_eq!(after(&[(KINDS, &queued)]).missing(Some("workers")), Some(Missing::NotSeen));
        // A collection of a lower level does not prove the verbose events.
        let started = kind(RUNTIME, "GCStart", 1, 4);
        let found = after(&[(KINDS, &started)]);
        assert_eq!(found.missing(Some("collections")), None);
        assert_eq!(found.missing(Some("allocations")), Some(Missing::NotSeen));
        let other = kind("Some-Source", "GCStart", 1, 4);
        assert_eq!(after(&[(KINDS, &other)]).missing(Some("collections")), Some(Missing::NotSeen));
    }
}
