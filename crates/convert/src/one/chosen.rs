//! The choice of a request: parts of a recording by name or by time, and whether there is anything of them.

use std::collections::BTreeSet;

use tracequet_dataset::table::select::{Selection, is_of_event};
use tracequet_trace::catalog;
use tracequet_trace::error::did_you_mean;

use crate::prelude::*;
use crate::request::{Convert, DatasetLayout};

/// Names of events and providers of a recording that are remembered for messages.
const MAX_NAMES: usize = 4 << 10;

/// Names that were typed, and what the recording has of them. Names of providers and events mean the same in whatever
/// case, as the runtime takes them.
pub(crate) struct Chosen {
    providers: Vec<(String, bool)>,
    tables: Vec<(String, bool)>,
    /// The names that the recording has.
    found: BTreeSet<String>,
    from_ns: Option<i64>,
    /// The newest event, chosen or not.
    newest_ns: Option<i64>,
    /// Whether the recording is the only one of the request: then a name of which there is nothing is a mistake.
    is_alone: bool,
}

impl Chosen {
    /// The choice of a request.
    pub fn new(request: &Convert, selection: &Selection) -> Chosen {
        let unseen = |name: &str| (name.to_owned(), false);
        Chosen {
            providers: request.providers.iter().map(|name| unseen(name)).collect(),
            tables: selection.events().map(unseen).collect(),
            found: BTreeSet::new(),
            from_ns: request.from_ns,
            newest_ns: None,
            is_alone: request.inputs.len() == 1 && !request.append && request.layout != DatasetLayout::Hive,
        }
    }

    /// Whether events of a provider are wanted.
    pub fn wants_provider(&self, provider: &str) -> bool {
        self.providers.is_empty() || self.providers.iter().any(|(name, _)| name.eq_ignore_ascii_case(provider))
    }

    /// The recording has events of this kind.
    pub fn event_type(&mut self, provider: &str, event: &str) {
        for (name, is_seen) in &mut self.providers {
            *is_seen |= name.eq_ignore_ascii_case(provider);
        }
        for (name, is_seen) in &mut self.tables {
            *is_seen |= is_of_event(name, provider, event);
        }
        if !(self.providers.is_empty() && self.tables.is_empty()) && self.found.len() < MAX_NAMES {
            self.found.insert(provider.to_owned());
            self.found.insert(format!("event/{provider}/{event}"));
        }
    }

    /// An event happened, chosen or not.
    #[inline]
    pub fn happened(&mut self, ts_ns: i64) {
        self.newest_ns = self.newest_ns.max(Some(ts_ns));
    }

    /// An error when the recording has nothing of a name that was typed for it alone, and which is not known otherwise;
    /// what is worth knowing of the others.
    pub fn check(&self, path: &Path) -> Result<Vec<Problem>> {
        let mut notes = Vec::new();
        let mut say = |is_mistake: bool, code, message: String| {
            if self.is_alone && is_mistake {
                return Err(Error::Usage(format!("{}: {message}", path.display())));
            }
            notes.push(Problem::info(code, 0, message));
            Ok(())
        };
        let is_known = |provider: &str| catalog::provider_names().any(|known| known.eq_ignore_ascii_case(provider));
        let found = |is_table: bool| {
            self.found.iter().map(String::as_str).filter(move |name| name.starts_with("event/") == is_table)
        };
        for (name, _) in self.providers.iter().filter(|(_, is_seen)| !is_seen) {
            let near = did_you_mean(name, found(false));
            let message = format!("no events of the provider {name}{near}");
            say(!is_known(name), "provider_not_recorded", message)?;
        }
        // Nothing at all happened: no name can be wrong.
        let tables = self.tables.iter().filter(|(name, is_seen)| !is_seen && name != "event" && !self.found.is_empty());
        for (name, _) in tables {
            let near = did_you_mean(name, found(true));
            let provider = name.split('/').nth(1).unwrap_or_default();
            let is_mistake = !is_known(provider) || !near.is_empty();
            say(is_mistake, "table_not_recorded", format!("no events for the table {name}{near}"))?;
        }
        if let (Some(from), Some(newest)) = (self.from_ns, self.newest_ns)
            && newest < from
        {
            let seconds = |ns: i64| ns as f64 / 1e9;
            let message =
                format!("the last event is {:.3} s after the start, before {:.3} s", seconds(newest), seconds(from));
            say(true, "nothing_in_window", message)?;
        }
        Ok(notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(request: Convert) -> Chosen {
        let selection = Selection::new(&request.tables).unwrap();
        let mut chosen = Chosen::new(&request, &selection);
        chosen.event_type("My-Source", "Started");
        chosen.happened(5_000_000_000);
        chosen
    }

    fn checked(request: &Convert) -> std::result::Result<Vec<&'static str>, String> {
        let checked = chosen(request.clone()).check(Path::new("a"));
        checked.map(|notes| notes.iter().map(|note| note.code).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_of_which_there_is_nothing_is_a_mistake_or_worth_a_word() {
        let alone = || Convert::new(["a"], "out");
        assert_eq!(checked(&alone()), Ok(vec![]));
        assert_eq!(checked(&alone().providers(["my-source"])), Ok(vec![]));
        assert_eq!(checked(&alone().tables(["event/my-source/STARTED", "gc"])), Ok(vec![]));
        assert_eq!(checked(&alone().from_ns(5_000_000_000)), Ok(vec![]));
        let mistakes = [
            (alone().providers(["My-Sorce"]), "did you mean My-Source?"),
            (alone().providers(["My-Source", "Other"]), "no events of the provider Other"),
            (alone().tables(["event/My-Source/Startd"]), "did you mean event/My-Source/Started?"),
            (alone().from_ns(5_000_000_001), "the last event is 5.000 s after the start"),
        ];
        for (request, words) in mistakes {
            let error = checked(&request).unwrap_err();
            assert!(error.contains(words), "{error}");
            // One of several recordings may have nothing of it.
            assert_eq!(checked(&request.append(true)).map(|notes| notes.len()), Ok(1));
        }
        // A provider of the catalogue is no mistake.
        let known = alone().providers(["microsoft-windows-dotnetruntime"]);
        assert_eq!(checked(&known), Ok(vec!["provider_not_recorded"]));
        let known = alone().tables(["event/Microsoft-Windows-DotNETRuntime/GCStart"]);
        assert_eq!(checked(&known), Ok(vec!["table_not_recorded"]));
    }
}
