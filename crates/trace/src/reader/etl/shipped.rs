//! Providers of Windows without a manifest beside the recording: `schemas/manifests/*.toml` has the events
//! of those that are recorded most, `schemas/providers.txt` the names of the others.
//!
//! ```text
//!  field = name ":" inType ["(" length ")"] ["[" count "]"] ["as" outType]
//! ```
//! `length` and `count` are a number or the name of an earlier field, the types are those of manifests without `win:`.
//! A log that describes an event itself goes before this: it is of the system that was recorded.

use std::sync::OnceLock;

use serde::Deserialize;

use super::manifest::{Data, EventManifest};
use crate::guid::Guid;

/// The file of one provider.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    provider: String,
    guid: String,
    #[serde(rename = "event")]
    events: Vec<Event>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    id: u32,
    version: u16,
    /// Empty when the manifest has neither a task nor an opcode.
    #[serde(default)]
    name: String,
    /// `None` when they are not known.
    fields: Option<Vec<String>>,
}

const UNKNOWN: &str = "the fields of this event are not in the catalogue";

/// A file, read when an event of its provider comes.
struct Shipped {
    guid: Guid,
    text: &'static str,
    parsed: OnceLock<Result<EventManifest, String>>,
}

/// The manifest of a provider that ships; an error is a defect of the shipped file.
pub fn manifest(guid: Guid) -> Option<&'static Result<EventManifest, String>> {
    static ALL: OnceLock<Vec<Shipped>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let of_file = |(_, text): &(&str, &'static str)| {
            Some(Shipped { guid: Guid::parse(tracequet_schemas::guid_of(text)?)?, text, parsed: OnceLock::new() })
        };
        tracequet_schemas::MANIFESTS.iter().filter_map(of_file).collect()
    });
    let found = all.iter().find(|shipped| shipped.guid == guid)?;
    Some(found.parsed.get_or_init(|| parse(found.text)))
}

/// The name of a provider of Windows.
pub fn provider_name(guid: Guid) -> Option<&'static str> {
    let names = names();
    let at = names.binary_search_by_key(&guid.to_string(), |(known, _)| (*known).to_owned()).ok()?;
    names.get(at).map(|(_, name)| *name)
}

/// The GUID behind the name of a provider of Windows, in whatever case it is typed.
pub fn provider_guid(name: &str) -> Option<Guid> {
    names().iter().find(|(_, known)| known.eq_ignore_ascii_case(name)).and_then(|(guid, _)| Guid::parse(guid))
}

/// GUIDs as text with the names of their providers, in order.
fn names() -> &'static [(&'static str, &'static str)] {
    static NAMES: OnceLock<Vec<(&str, &str)>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let lines = tracequet_schemas::PROVIDERS.lines().filter(|line| !line.starts_with('#'));
        lines.filter_map(|line| line.split_once(' ')).collect()
    })
}

fn parse(text: &str) -> Result<EventManifest, String> {
    let file: File = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let guid = Guid::parse(&file.guid);
    let mut manifest = EventManifest::of_provider(file.provider, guid);
    for event in file.events {
        let fields = match &event.fields {
            Some(fields) => Ok(fields.iter().map(|text| field(text)).collect::<Result<Vec<Data>, String>>()?),
            None => Err(UNKNOWN),
        };
        manifest.add(event.id, event.version, event.name, None, fields);
    }
    Ok(manifest)
}

/// One field; an error quotes it.
fn field(text: &str) -> Result<Data, String> {
    let read = || {
        let (name, rest) = text.split_once(": ")?;
        let (rest, out_type) = rest.split_once(" as ").unwrap_or((rest, ""));
        let (rest, count) = bracketed(rest, '[', ']')?;
        let (in_type, length) = bracketed(rest, '(', ')')?;
        let out_type = match out_type {
            "" => String::new(),
            simple @ ("string" | "boolean") => format!("xs:{simple}"),
            other => format!("win:{other}"),
        };
        Some(Data::new(name, format!("win:{in_type}"), out_type, count, length))
    };
    read().ok_or_else(|| format!("'{text}': expected name: inType(length)[count] as outType"))
}

/// The text in brackets at the end, if there is any; `None` when they do not close.
fn bracketed(text: &str, open: char, close: char) -> Option<(&str, Option<String>)> {
    match text.split_once(open) {
        Some((before, inside)) => Some((before, Some(inside.strip_suffix(close)?.to_owned()))),
        None => Some((text, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_event_can_be_read() {
        let (mut events, mut without_fields) = (0, 0);
        for (name, text) in tracequet_schemas::MANIFESTS {
            let file: File = serde_json::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
            let guid = Guid::parse(&file.guid).unwrap();
            assert_eq!(provider_name(guid), Some(file.provider.as_str()), "{name}");
            assert!(file.events.is_sorted_by_key(|e| (e.id, e.version)), "{name} is not in order");
            let manifest = manifest(guid).unwrap().as_ref().unwrap();
            for event in &file.events {
                for pointer_size in [4, 8] {
                    let said = manifest.describe(event.id, event.version, pointer_size).unwrap();
                    let expected = event.fields.as_ref().map(Vec::len).ok_or(UNKNOWN);
                    let fields = said.fields.unwrap().map(|fields| fields.len());
                    assert_eq!(fields, expected, "{name} {} version {}", event.id, event.version);
                }
                events += 1;
                without_fields += u32::from(event.fields.is_none());
            }
            // One name is one event, so that tables have the same names in every recording.
            let mut names: Vec<_> =
                file.events.iter().filter(|e| !e.name.is_empty()).map(|e| (&e.name, e.id)).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|w| w[0].0 != w[1].0 || w[0].1 == w[1].1), "{name}: {names:?}");
        }
        assert!(events > 1700 && without_fields < 5, "{events} {without_fields}");
    }

    #[test]
    fn providers_are_found_by_guid_and_by_name() {
        let names = names();
        assert!(names.len() > 900 && names.is_sorted(), "{}", names.len());
        let guid = Guid::parse("22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716").unwrap();
        assert_eq!(provider_name(guid), Some("Microsoft-Windows-Kernel-Process"));
        assert_eq!(provider_guid("microsoft-windows-kernel-process"), Some(guid));
        assert_eq!((provider_name(Guid([7; 16])), provider_guid("Nobody")), (None, None));
        assert!(names.iter().all(|(guid, _)| Guid::parse(guid).is_some_and(|g| provider_name(g).is_some())));
    }

    #[test]
    fn fields_are_read_with_length_count_and_format() {
        let data = |text| format!("{:?}", field(text).unwrap());
        assert!(data("A: Binary(Size)").contains("length: Some(\"Size\")"));
        assert!(data("A: UInt16[3] as Port").contains("count: Some(\"3\")"));
        assert!(data("A: UInt16[3] as Port").contains("win:Port"));
        for wrong in ["A", "A: Binary(Size", "A: UInt16[3"] {
            assert!(field(wrong).is_err_and(|why| why.contains(wrong)), "{wrong}");
        }
    }
}
