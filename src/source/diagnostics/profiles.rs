//! What is recorded: providers as dotnet-trace writes them, and named sets of them (`schemas/profiles.toml`).

use std::sync::LazyLock;

use diagnostics_port::{EventFilter, Provider};
use serde::Deserialize;

/// The provider of the runtime.
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// What is meant by it without keywords: what the runtime's own session records. All keywords would force collections.
const RUNTIME_KEYWORDS: u64 = 0x14_C14F_CCBD;
/// Informational.
const DEFAULT_LEVEL: u32 = 4;

/// A named set of providers.
#[derive(Clone, Debug, Deserialize)]
pub struct Profile {
    /// As it is typed.
    pub name: String,
    /// What it is for, in a phrase.
    pub doc: String,
    /// Whether methods and modules are written at the end.
    pub rundown: bool,
    /// Whether events have call stacks.
    pub stacks: bool,
    /// As [`parse_providers`] reads them.
    providers: Vec<String>,
}

/// All of them.
#[derive(Debug, Deserialize)]
pub struct Profiles {
    /// In the order of the file.
    #[serde(rename = "profile")]
    pub all: Vec<Profile>,
}

/// What is to be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Providers, each once.
    pub providers: Vec<Provider>,
    /// Whether methods and modules are written at the end.
    pub rundown: bool,
    /// Whether events have call stacks.
    pub stacks: bool,
}

impl Profiles {
    /// Those that come with this version.
    pub fn shipped() -> Result<&'static Profiles, String> {
        static SHIPPED: LazyLock<Result<Profiles, String>> = LazyLock::new(|| {
            toml::from_str(include_str!("../../../schemas/profiles.toml"))
                .map_err(|e| format!("schemas/profiles.toml: {e}"))
        });
        SHIPPED.as_ref().map_err(Clone::clone)
    }

    /// The profile of a name.
    pub fn get(&self, name: &str) -> Option<&Profile> {
        self.all.iter().find(|profile| profile.name == name)
    }
}

impl Wanted {
    /// Adds a profile.
    pub fn add(&mut self, profile: &Profile) -> Result<(), String> {
        self.rundown |= profile.rundown;
        self.stacks |= profile.stacks;
        for text in &profile.providers {
            merge(&mut self.providers, parse_providers(text)?);
        }
        Ok(())
    }
}

/// Adds providers to others: keywords are joined, the higher level wins, arguments are appended.
pub fn merge(all: &mut Vec<Provider>, more: Vec<Provider>) {
    for provider in more {
        let Some(known) = all.iter_mut().find(|known| known.name.eq_ignore_ascii_case(&provider.name)) else {
            all.push(provider);
            continue;
        };
        known.keywords |= provider.keywords;
        known.level = known.level.max(provider.level);
        if known.arguments.is_empty() {
            known.arguments = provider.arguments;
        } else if !provider.arguments.is_empty() && known.arguments != provider.arguments {
            known.arguments = format!("{};{}", known.arguments.trim_end_matches(';'), provider.arguments);
        }
    }
}

/// Reads `NAME[:KEYWORDS[:LEVEL[:KEY=VALUE;...]]],...`, as dotnet-trace does: keywords are hexadecimal with or without 0x,
/// a level is a number from 0 to 5 or its name, and a comma in an argument stands in double quotes.
///
/// Without keywords all are meant, but for the runtime those that it records by itself; without a level: informational.
pub fn parse_providers(text: &str) -> Result<Vec<Provider>, String> {
    let mut providers = Vec::new();
    for part in split_unquoted(text, ',', usize::MAX)? {
        merge(&mut providers, vec![provider(part.trim())?]);
    }
    Ok(providers)
}

fn provider(text: &str) -> Result<Provider, String> {
    let parts = split_unquoted(text, ':', 4)?;
    let mut parts = parts.into_iter();
    let name = parts.next().filter(|name| !name.is_empty()).ok_or("expected the name of a provider")?;
    if name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!("'{name}' is no name of a provider"));
    }
    let all = if name.eq_ignore_ascii_case(RUNTIME) { RUNTIME_KEYWORDS } else { u64::MAX };
    let keywords = match parts.next().filter(|keywords| !keywords.is_empty()) {
        None => all,
        Some(keywords) => hexadecimal(keywords).ok_or_else(|| format!("keywords '{keywords}': expected 0x400001"))?,
    };
    let level = match parts.next().filter(|level| !level.is_empty()) {
        None => DEFAULT_LEVEL,
        Some(text) => level(text).ok_or_else(|| format!("level '{text}': expected 0 to 5 or informational"))?,
    };
    let arguments = parts.next().unwrap_or_default().to_owned();
    Ok(Provider { name: name.to_owned(), keywords, level, arguments, events: EventFilter::All })
}

/// Reads `NAME:ID,ID,...`: a provider, and ids of its events.
pub fn parse_event_ids(text: &str) -> Result<(String, Vec<u32>), String> {
    let expected =
        || format!("'{text}': expected a provider and ids of its events: Microsoft-Windows-DotNETRuntime:1,2");
    let (name, ids) = text.rsplit_once(':').filter(|(name, _)| !name.is_empty()).ok_or_else(expected)?;
    let ids = ids.split(',').map(|id| id.trim().parse::<u32>().map_err(|_| expected()));
    Ok((name.to_owned(), ids.collect::<Result<_, _>>()?))
}

fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
    // from_str_radix would take a sign.
    digits.starts_with(|c: char| c.is_ascii_hexdigit()).then(|| u64::from_str_radix(digits, 16).ok())?
}

fn level(text: &str) -> Option<u32> {
    let names = ["logalways", "critical", "error", "warning", "informational", "verbose"];
    let by_name = names.iter().position(|name| name.eq_ignore_ascii_case(text));
    by_name.map(|level| level as u32).or_else(|| text.parse().ok().filter(|level| *level <= 5))
}

/// Splits at a separator that is not in double quotes, into so many parts at most.
fn split_unquoted(text: &str, separator: char, limit: usize) -> Result<Vec<&str>, String> {
    let (mut parts, mut start, mut quoted) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        if c == '"' {
            quoted = !quoted;
        } else if c == separator && !quoted && parts.len() + 1 < limit {
            parts.push(text.get(start..at).unwrap_or_default());
            start = at + c.len_utf8();
        }
    }
    if quoted {
        return Err(format!("'{text}': a quote without its end"));
    }
    parts.push(text.get(start..).unwrap_or_default());
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(name: &str, keywords: u64, level: u32, arguments: &str) -> Provider {
        Provider { name: name.into(), keywords, level, arguments: arguments.into(), events: EventFilter::All }
    }

    #[test]
    fn providers_are_written_as_for_dotnet_trace() {
        let text = r#"A,B:10,C:0x10:Warning:K=1;P="x,y:z",Microsoft-Windows-DotNETRuntime,D::5,E:1:verbose"#;
        let expected = [
            provider("A", u64::MAX, 4, ""),
            provider("B", 0x10, 4, ""),
            provider("C", 0x10, 3, r#"K=1;P="x,y:z""#),
            provider(RUNTIME, RUNTIME_KEYWORDS, 4, ""),
            provider("D", u64::MAX, 5, ""),
            provider("E", 1, 5, ""),
        ];
        assert_eq!(parse_providers(text).unwrap(), expected);
        for wrong in ["", ",A", "A:x", "A:+1", "A:1:6", "A:1:-1", "A:1:loud", "A:1:4:\"", "two words", "A:0x"] {
            assert!(parse_providers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_same_provider_twice_is_the_union() {
        let providers = parse_providers("A:1:4:X=1,a:2:5:Y=2,A:4:0:X=1").unwrap();
        assert_eq!(providers, [provider("A", 7, 5, "X=1;Y=2;X=1")]);
    }

    #[test]
    fn events_are_chosen_by_ids() {
        assert_eq!(parse_event_ids("A-B:1, 80").unwrap(), ("A-B".into(), vec![1, 80]));
        for wrong in ["", "A", ":1", "A:", "A:x", "A:1,", "A:-1", "A:4294967296"] {
            assert!(parse_event_ids(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_profile_names_providers_that_can_be_read() {
        let profiles = Profiles::shipped().unwrap();
        let names: Vec<_> = profiles.all.iter().map(|profile| profile.name.as_str()).collect();
        let expected = [
            "gc",
            "gc-survival",
            "allocations",
            "cpu",
            "exceptions",
            "contention",
            "jit",
            "counters",
            "requests",
            "heap",
            "all",
        ];
        assert_eq!(names, expected);
        for profile in &profiles.all {
            let mut wanted = Wanted::default();
            wanted.add(profile).unwrap();
            assert!(!wanted.providers.is_empty() && !profile.doc.is_empty(), "{}", profile.name);
            // What makes the runtime collect and tell the whole heap is asked for by name only.
            let forces = wanted.providers.iter().any(|p| p.name == RUNTIME && p.keywords & 0x90_0000 != 0);
            assert_eq!(forces, profile.name == "heap", "{}", profile.name);
        }
    }

    #[test]
    fn several_profiles_are_their_union() {
        let profiles = Profiles::shipped().unwrap();
        let mut wanted = Wanted::default();
        wanted.add(profiles.get("gc").unwrap()).unwrap();
        wanted.add(profiles.get("counters").unwrap()).unwrap();
        assert!(!wanted.rundown && wanted.stacks);
        wanted.add(profiles.get("exceptions").unwrap()).unwrap();
        assert!(wanted.rundown);
        assert_eq!(wanted.providers[0], provider(RUNTIME, 0x8039, 4, ""));
        assert!(wanted.providers.iter().any(|p| p.arguments == "EventCounterIntervalSec=1"));
    }
}
