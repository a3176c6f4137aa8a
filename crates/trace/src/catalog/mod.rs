//! The catalogue of event layouts that no recording carries itself: `schemas/events/*.toml`, every event of the CLR
//! providers in every version, those of PerfView's profiler, and the kernel events of an .etl that matter to a profile.
//!
//! Readers use it to find ids in kernel payloads, `event` to decode payloads.

pub mod syntax;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::OnceLock;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::guid::Guid;
use crate::map::Map;
use syntax::LayoutField;

struct Source {
    provider: &'static str,
    file: &'static str,
    parsed: OnceLock<Result<Provider, String>>,
}

impl Source {
    /// The text of its file.
    fn text(&self) -> &'static str {
        tracequet_schemas::EVENTS.iter().find(|(name, _)| *name == self.file).map_or("", |(_, text)| text)
    }
}

macro_rules! sources {
    ($($provider:literal => $file:literal),* $(,)?) => {
        static SOURCES: [Source; [$($provider),*].len()] = [$(Source {
            provider: $provider,
            file: $file,
            parsed: OnceLock::new(),
        }),*];
    };
}

sources! {
    "Microsoft-Windows-DotNETRuntime" => "runtime",
    "Microsoft-Windows-DotNETRuntimeRundown" => "rundown",
    "Microsoft-Windows-DotNETRuntimePrivate" => "private",
    "Microsoft-Windows-DotNETRuntimeStress" => "stress",
    "Microsoft-DotNETCore-SampleProfiler" => "sample-profiler",
    "Microsoft-DotNETCore-EventPipe" => "eventpipe",
    "Microsoft-DotNETRuntimeMonoProfiler" => "mono-profiler",
    "Microsoft-Diagnostics-DiagnosticSource" => "diagnostic-source",
    "System.Runtime.CompilerServices.AsyncProfilerEventSource" => "async-profiler",
    "System.Runtime.CompilerServices.AsyncProfilerBufferedEventSource" => "async-profiler-preview",
    "ETWClrProfiler" => "etw-clr-profiler",
    "Windows-Kernel-Process" => "kernel-process",
    "Windows-Kernel-Thread" => "kernel-thread",
    "Windows-Kernel-Image" => "kernel-image",
    "Windows-Kernel-PerfInfo" => "kernel-perfinfo",
    "Windows-Kernel-StackWalk" => "kernel-stackwalk",
    "Windows-Kernel-EventTrace" => "kernel-eventtrace",
    "Windows-Kernel-DiskIo" => "kernel-diskio",
    "Windows-Kernel-PageFault" => "kernel-pagefault",
    "Windows-Kernel-FileIo" => "kernel-fileio",
    "Windows-Kernel-Registry" => "kernel-registry",
    "Windows-Kernel-TcpIp" => "kernel-tcpip",
    "Windows-Kernel-UdpIp" => "kernel-udpip",
    "Windows-Kernel-SystemConfig" => "kernel-systemconfig",
    "Windows-Kernel-Alpc" => "kernel-alpc",
    "Windows-Kernel-Object" => "kernel-object",
    "KernelTraceControl-ImageId" => "kernel-image-id",
    "KernelTraceControl-VolumeMapping" => "kernel-volume-mapping",
}

/// All events of one provider.
#[derive(Debug, Deserialize)]
pub struct Provider {
    /// Name as registered.
    pub provider: String,
    /// GUID in text form.
    pub guid: String,
    /// Keyword names and their bits.
    #[serde(default)]
    pub keywords: BTreeMap<String, u64>,
    /// Names of the values of enumerated fields.
    #[serde(default)]
    pub maps: Map<String, ValueMap>,
    #[serde(rename = "event")]
    /// All layouts, in the order of ids and versions.
    pub events: Vec<EventLayout>,
    #[serde(skip)]
    by_id: HashMap<u32, Vec<usize>>,
}

/// Names of the values of one enumerated field.
#[derive(Debug, Deserialize)]
pub struct ValueMap {
    /// `values` or `bits`.
    pub kind: String,
    /// In the order of the values.
    #[serde(deserialize_with = "in_order")]
    values: Vec<(u64, String)>,
}

/// Names by their values, which are text, as keys are.
fn in_order<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(u64, String)>, D::Error> {
    let read = BTreeMap::<String, String>::deserialize(from)?;
    let parsed = read.into_iter().map(|(value, name)| Ok((value.parse::<u64>().map_err(Error::custom)?, name)));
    let mut values = parsed.collect::<Result<Vec<_>, D::Error>>()?;
    values.sort_unstable();
    Ok(values)
}

impl ValueMap {
    /// The name of a value.
    pub fn name(&self, value: u64) -> Option<&str> {
        // Most maps have all values from 0 on, each at its own place.
        let at_its_place = usize::try_from(value).ok().and_then(|index| self.values.get(index));
        let (_, name) = match at_its_place {
            Some(found) if found.0 == value => found,
            _ => self.values.get(self.values.binary_search_by_key(&value, |(known, _)| *known).ok()?)?,
        };
        Some(name)
    }

    /// Values and their names, in the order of the values.
    pub fn entries(&self) -> impl Iterator<Item = (u64, &str)> {
        self.values.iter().map(|(value, name)| (*value, name.as_str()))
    }

    /// The names of the bits of a value, joined by `|`; bits without a name as one number in hexadecimal.
    pub fn words(&self, value: u64) -> String {
        let (mut words, mut rest) = (String::new(), value);
        for (bit, name) in self.entries().filter(|(bit, _)| bit.is_power_of_two() && value & bit != 0) {
            words.push_str(if words.is_empty() { "" } else { "|" });
            words.push_str(name);
            rest &= !bit;
        }
        if rest != 0 {
            let bar = if words.is_empty() { "" } else { "|" };
            write!(words, "{bar}{rest:#x}").ok();
        }
        words
    }
}

/// One version of one event.
#[derive(Debug, Deserialize)]
pub struct EventLayout {
    /// Event id.
    pub id: u32,
    /// Event version.
    pub version: u32,
    /// Name without the version, the name of its table.
    pub name: String,
    /// Name in the manifest, when it differs.
    pub symbol: Option<String>,
    /// Opcode.
    #[serde(default)]
    pub opcode: u8,
    /// Level.
    #[serde(default)]
    pub level: u32,
    /// Keyword mask.
    #[serde(default)]
    pub keywords: u64,
    /// Sizes in bytes (32-bit, 64-bit process) of payloads that have this layout, where the version does not decide.
    #[serde(default)]
    pub payload_sizes: Vec<usize>,
    /// The table that the rows of the event's list go to, for bulk events. Rows of an event without it are read only
    /// into its own table.
    pub rows_in: Option<String>,
    /// Whether the event's own table has the rows, too: `rows_in` holds only some of their fields.
    #[serde(default)]
    pub rows_kept: bool,
    /// A remark for readers of the layout.
    pub note: Option<String>,
    /// The fields in the language of [`syntax`].
    pub fields: Vec<String>,
}

impl EventLayout {
    /// The fields; an error is a defect of the shipped file.
    pub fn parsed_fields(&self) -> Result<Vec<LayoutField<'_>>, String> {
        self.fields.iter().map(|text| syntax::parse_field(text)).collect()
    }
}

impl Provider {
    /// All versions of an event, in order.
    pub fn versions(&self, id: u32) -> impl Iterator<Item = &EventLayout> {
        self.by_id.get(&id).into_iter().flatten().filter_map(|i| self.events.get(*i))
    }

    /// The table that the rows of an event go to, in any of its versions, and whether its own table has them, too.
    pub fn rows_in(&self, id: u32) -> Option<(&str, bool)> {
        self.versions(id).find_map(|layout| Some((layout.rows_in.as_deref()?, layout.rows_kept)))
    }

    /// The layouts of a version that hold for payloads of certain sizes.
    pub fn sized_layouts(&self, id: u32, version: u32) -> impl Iterator<Item = &EventLayout> {
        self.versions(id).filter(move |e| e.version == version && !e.payload_sizes.is_empty())
    }

    /// The layout for a version: the same, or else the highest below it, since versions append. Layouts for certain
    /// payload sizes are left out.
    pub fn layout(&self, id: u32, version: u32) -> Option<&EventLayout> {
        self.versions(id).filter(|e| e.version <= version && e.payload_sizes.is_empty()).last()
    }
}

/// The catalogue of a provider by its registered name (exact), or `None`. The error is a defect of the shipped file.
pub fn provider(name: &str) -> Option<&'static Result<Provider, String>> {
    let source = SOURCES.iter().find(|s| s.provider == name)?;
    Some(source.parsed.get_or_init(|| parse(source)))
}

/// The registered name behind a provider GUID (V1 recordings name providers by GUID).
pub fn name_by_guid(guid: Guid) -> Option<&'static str> {
    SOURCES.iter().find(|s| guid_of(s) == Some(guid)).map(|s| s.provider)
}

/// The GUID behind a registered name, in whatever case it is typed.
pub fn guid_by_name(name: &str) -> Option<Guid> {
    SOURCES.iter().find(|s| s.provider.eq_ignore_ascii_case(name)).and_then(guid_of)
}

fn guid_of(source: &Source) -> Option<Guid> {
    Guid::parse(tracequet_schemas::guid_of(source.text())?)
}

/// Names of all providers in the catalogue.
pub fn provider_names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|s| s.provider)
}

fn parse(source: &Source) -> Result<Provider, String> {
    let mut provider: Provider =
        serde_json::from_str(source.text()).map_err(|e| format!("{}: {e}", source.provider))?;
    for (index, event) in provider.events.iter().enumerate() {
        provider.by_id.entry(event.id).or_default().push(index);
    }
    Ok(provider)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_can_be_read() {
        let mut events = 0;
        for name in provider_names() {
            let provider = provider(name).unwrap().as_ref().unwrap();
            assert_eq!(provider.provider, name);
            assert_eq!(name_by_guid(Guid::parse(&provider.guid).unwrap()), Some(name));
            assert_eq!(guid_by_name(&name.to_uppercase()), Guid::parse(&provider.guid));
            assert!(provider.events.is_sorted_by_key(|e| (e.id, e.version)), "{name} is not in order");
            for event in &provider.events {
                for field in event.parsed_fields().expect("a layout that can be read") {
                    let known = field.map.is_none_or(|map| provider.maps.contains_key(map));
                    assert!(known, "{name} {}: {field:?}", event.id);
                }
                events += 1;
            }
        }
        assert!(events > 517, "{events}");
    }

    #[test]
    fn a_newer_version_is_read_by_the_highest_known_one() {
        let runtime = provider("Microsoft-Windows-DotNETRuntime").unwrap().as_ref().unwrap();
        assert_eq!(runtime.layout(1, 9).map(|e| e.version), Some(2));
        assert_eq!(runtime.layout(1, 1).map(|e| e.fields.len()), Some(5));
        assert!(runtime.layout(9999, 0).is_none());
        assert_eq!(runtime.maps["GCReasonMap"].name(0x11), Some("InducedAggressive"));
    }

    #[test]
    fn every_value_of_a_map_has_its_name_and_no_other_has_one() {
        let mut sparse = 0;
        for provider in provider_names().map(|name| provider(name).unwrap().as_ref().unwrap()) {
            for map in provider.maps.values() {
                let entries: BTreeMap<u64, &str> = map.entries().collect();
                assert!(map.entries().map(|(value, _)| value).eq(entries.keys().copied()), "in order, each once");
                sparse += u32::from(entries.keys().copied().ne(0..entries.len() as u64));
                let beside = entries.keys().flat_map(|value| [value.wrapping_sub(1), *value, value.wrapping_add(1)]);
                for value in beside.chain([0, u64::MAX]) {
                    assert_eq!(map.name(value), entries.get(&value).copied(), "{value}");
                }
            }
        }
        assert!(sparse > 10, "{sparse}");
    }

    #[test]
    fn bits_are_named_and_the_rest_is_a_number() {
        let values = vec![(1, "one".to_owned()), (3, "both".to_owned()), (4, "four".to_owned())];
        let map = ValueMap { kind: "bits".into(), values };
        assert_eq!([0, 1, 5, 2, 7].map(|value| map.words(value)), ["", "one", "one|four", "0x2", "one|four|0x2"]);
    }
}
