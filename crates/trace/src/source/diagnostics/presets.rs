//! Requests for a recording: providers as dotnet-trace writes them, and named sets of them (`schemas/presets.toml`).

use std::sync::LazyLock;

use diagnostics_port::{EventFilter, Provider};
use serde::Deserialize;

use crate::catalog;
use crate::error::did_you_mean;

/// The provider of the runtime.
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// The runtime's keywords where none are given: those of its own session. All keywords would force collections.
const RUNTIME_KEYWORDS: u64 = 0x14_C14F_CCBD;
/// Informational.
const DEFAULT_LEVEL: u32 = 4;
const VERBOSE: u32 = 5;

/// Names of dotnet-trace behind `--clrevents` that are not the catalogue's names of keywords.
const CLR_EVENTS: [(&str, u64); 3] = [("fusion", 0x4), ("gcheapcollect", 0x80_0000), ("managedheadcollect", 0x80_0000)];

/// A named set of providers.
#[derive(Clone, Debug, Deserialize)]
pub struct Preset {
    /// As it is typed.
    pub name: String,
    /// The purpose, in a phrase.
    pub doc: String,
    /// Percent of its requests that a loaded server still answers while this is recorded
    /// (`benches/subject_cost.py`); none of a dump, which stops the program.
    pub leaves: Option<u8>,
    /// A subject or option that costs less and answers part of the question, in Markdown.
    pub cheaper: Option<String>,
    /// Whether methods and modules are written at the end.
    pub rundown: bool,
    /// Whether events have call stacks.
    pub stacks: bool,
    /// As [`parse_providers`] reads them.
    providers: Vec<String>,
}

/// All of them.
#[derive(Debug, Deserialize)]
pub struct Presets {
    /// In the order of the file.
    #[serde(rename = "preset")]
    pub all: Vec<Preset>,
}

/// The providers and parts that are to be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Providers, each once.
    pub providers: Vec<Provider>,
    /// Whether methods and modules are written at the end.
    pub rundown: bool,
    /// Whether events have call stacks.
    pub stacks: bool,
}

impl Presets {
    /// The presets that come with this version.
    pub fn shipped() -> Result<&'static Presets, String> {
        static SHIPPED: LazyLock<Result<Presets, String>> = LazyLock::new(|| {
            serde_json::from_str(tracequet_schemas::PRESETS).map_err(|e| format!("schemas/presets.toml: {e}"))
        });
        SHIPPED.as_ref().map_err(Clone::clone)
    }

    /// The preset of a name.
    pub fn get(&self, name: &str) -> Option<&Preset> {
        self.all.iter().find(|preset| preset.name.eq_ignore_ascii_case(name))
    }
}

impl Preset {
    /// The line of `--help`: purpose, cost, and what is cheaper.
    pub fn help(&self) -> String {
        let leaves = self.leaves.map(|percent| format!("; leaves {percent} %"));
        let cheaper = self.cheaper.as_ref().map(|text| format!("; cheaper: {}", text.replace('`', "")));
        [Some(self.doc.clone()), leaves, cheaper].into_iter().flatten().collect()
    }
}

impl Wanted {
    /// Adds a preset.
    pub fn add(&mut self, preset: &Preset) -> Result<(), String> {
        self.rundown |= preset.rundown;
        self.stacks |= preset.stacks;
        for text in &preset.providers {
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

/// A provider as a person writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderText {
    /// The name of the provider, or its GUID.
    pub name: String,
    /// The keywords, when they are given.
    pub keywords: Option<u64>,
    /// Verbosity, 0 to 5; informational when it is not said.
    pub level: u32,
    /// Arguments for the provider itself; empty when there are none.
    pub arguments: String,
}

/// Reads `NAME[:KEYWORDS[:LEVEL[:KEY=VALUE;...]]],...`, as dotnet-trace does: keywords are hexadecimal with or without
/// 0x, a level is a number (above 5 verbose) or its name, a comma in an argument stands in double quotes, and `\r\n` in
/// one is an end of a line. Without a level: informational.
pub fn parse_provider_texts(text: &str) -> Result<Vec<ProviderText>, String> {
    split_unquoted(text, ',', usize::MAX)?.into_iter().map(|part| provider(part.trim())).collect()
}

/// Providers of a session of the diagnostics port. Without keywords all are meant, but for the runtime those that it
/// records by itself.
pub fn parse_providers(text: &str) -> Result<Vec<Provider>, String> {
    let mut providers = Vec::new();
    for ProviderText { name, keywords, level, arguments } in parse_provider_texts(text)? {
        let all = if name.eq_ignore_ascii_case(RUNTIME) { RUNTIME_KEYWORDS } else { u64::MAX };
        let keywords = keywords.unwrap_or(all);
        merge(&mut providers, vec![Provider { name, keywords, level, arguments, events: EventFilter::All }]);
    }
    Ok(providers)
}

fn provider(text: &str) -> Result<ProviderText, String> {
    let parts = split_unquoted(text, ':', 4)?;
    let mut parts = parts.into_iter();
    let name = parts.next().filter(|name| !name.is_empty()).ok_or("expected the name of a provider")?;
    if name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!("'{name}' is not a name of a provider"));
    }
    let keywords = match parts.next().filter(|keywords| !keywords.is_empty()) {
        None => None,
        Some(keywords) => {
            Some(hexadecimal(keywords).ok_or_else(|| format!("keywords '{keywords}': expected 0x400001"))?)
        }
    };
    let level = match parts.next().filter(|level| !level.is_empty()) {
        None => DEFAULT_LEVEL,
        Some(text) => parse_level(text)?,
    };
    let arguments = unescaped(parts.next().unwrap_or_default())?;
    Ok(ProviderText { name: name.to_owned(), keywords, level, arguments })
}

/// Reads `gc+exception`: what of the runtime is recorded, up to a level.
pub fn parse_clr_events(names: &str, level: Option<u32>) -> Result<Provider, String> {
    let runtime = catalog::provider(RUNTIME).ok_or("no catalogue of the runtime")?.as_ref()?;
    let of_catalogue = runtime.keywords.iter().map(|(name, bits)| (name.trim_end_matches("Keyword"), *bits));
    let all: Vec<_> = of_catalogue.chain(CLR_EVENTS).map(|(name, bits)| (name.to_lowercase(), bits)).collect();
    let mut keywords = 0;
    for name in names.split('+').map(str::trim) {
        let known = all.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let near = || did_you_mean(name, all.iter().map(|(known, _)| known.as_str()));
        keywords |= known.ok_or_else(|| format!("the runtime has no events '{name}'{}", near()))?.1;
    }
    let (arguments, events) = (String::new(), EventFilter::All);
    Ok(Provider { name: RUNTIME.into(), keywords, level: level.unwrap_or(DEFAULT_LEVEL), arguments, events })
}

/// Reads a level: a number or its name.
pub fn parse_level(text: &str) -> Result<u32, String> {
    level(text).ok_or_else(|| format!("level '{text}': expected 0 to 5 or informational"))
}

/// Arguments with their escapes read, of which a shell has no others: `\r\n` between the specifications of a filter.
fn unescaped(text: &str) -> Result<String, String> {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match rest.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(other) if !other.is_alphanumeric() => other,
            _ => return Err(format!("'{text}': expected \\r, \\n, \\t or \\\\ behind a backslash")),
        });
    }
    Ok(out)
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
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    by_name
        .map(|level| level as u32)
        .or_else(|| is_number.then(|| text.parse().map_or(VERBOSE, |level: u32| level.min(VERBOSE))))
}

/// Splits at a separator that is not in double quotes, into `limit` parts at most.
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
        for wrong in ["", ",A", "A:x", "A:+1", "A:1:-1", "A:1:loud", "A:1:4:\"", "two words", "A:0x"] {
            assert!(parse_providers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn arguments_are_written_as_for_dotnet_trace() {
        let text = r#"D:3:9:FilterAndPayloadSpecs="L/A@Activity1Start:-x;y,z\r\nL/B@Activity1Stop:""#;
        let arguments = "FilterAndPayloadSpecs=\"L/A@Activity1Start:-x;y,z\r\nL/B@Activity1Stop:\"";
        assert_eq!(parse_providers(text).unwrap(), [provider("D", 3, 5, arguments)]);
        assert_eq!(parse_providers(r"E:1:WARNING:a=\\;b=\;").unwrap(), [provider("E", 1, 3, r"a=\;b=;")]);
        for wrong in [r"A:1:4:x=\q", r"A:1:4:x=\"] {
            assert!(parse_providers(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn events_of_the_runtime_are_named_as_for_dotnet_trace() {
        assert_eq!(parse_clr_events("gc+Exception", None).unwrap(), provider(RUNTIME, 0x8001, 4, ""));
        assert_eq!(parse_clr_events("allocationsampling", Some(5)).unwrap(), provider(RUNTIME, 0x800_0000_0000, 5, ""));
        let error = parse_clr_events("gc+exceptions", None).unwrap_err();
        assert!(error.contains("no events 'exceptions'; did you mean exception?"), "{error}");
        assert!(parse_clr_events("", None).is_err() && parse_clr_events("gc+", None).is_err());
        assert_eq!((parse_level("Verbose"), parse_level("2"), parse_level("77")), (Ok(5), Ok(2), Ok(5)));
        assert!(parse_level("loud").is_err() && parse_level("-1").is_err() && parse_level("").is_err());
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
        let presets = Presets::shipped().unwrap();
        let names: Vec<_> = presets.all.iter().map(|preset| preset.name.as_str()).collect();
        let expected = [
            "gc",
            "gc-survival",
            "allocations",
            "lifetimes",
            "cpu",
            "exceptions",
            "contention",
            "jit",
            "counters",
            "requests",
            "threadpool",
            "async",
            "database",
            "heap",
            "all",
            "dotnet-common",
            "dotnet-sampled-thread-time",
            "cpu-sampling",
            "gc-verbose",
            "gc-collect",
        ];
        assert_eq!(names, expected);
        assert!(presets.get("GC-Verbose").is_some_and(|preset| preset.name == "gc-verbose"));
        for preset in &presets.all {
            let mut wanted = Wanted::default();
            wanted.add(preset).unwrap();
            assert!(!wanted.providers.is_empty() && !preset.doc.is_empty(), "{}", preset.name);
            // Keywords that make the runtime collect and report the whole heap are only used when named.
            let forces = wanted.providers.iter().any(|p| p.name == RUNTIME && p.keywords & 0x90_0000 != 0);
            assert_eq!(forces, preset.name == "heap", "{}", preset.name);
        }
    }

    #[test]
    fn several_profiles_are_their_union() {
        let presets = Presets::shipped().unwrap();
        let mut wanted = Wanted::default();
        wanted.add(presets.get("gc").unwrap()).unwrap();
        wanted.add(presets.get("counters").unwrap()).unwrap();
        assert!(!wanted.rundown && wanted.stacks);
        wanted.add(presets.get("exceptions").unwrap()).unwrap();
        assert!(wanted.rundown);
        assert_eq!(wanted.providers[0], provider(RUNTIME, 0x8039, 4, ""));
        assert!(wanted.providers.iter().any(|p| p.arguments == "EventCounterIntervalSec=1"));
    }
}
