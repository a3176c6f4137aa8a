//! The catalogue of event layouts that no recording carries itself: `schemas/events/*.toml`, every event of the CLR
//! providers in every version, those of PerfView's profiler, and the kernel events of an .etl that matter to a profile.
//!
//! Readers use it to find ids in kernel payloads, `event` to decode payloads.

pub mod syntax;

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use serde::Deserialize;

use crate::guid::Guid;
use syntax::LayoutField;

struct Source {
    provider: &'static str,
    text: &'static str,
    parsed: OnceLock<Result<Provider, String>>,
}

macro_rules! sources {
    ($($provider:literal => $file:literal),* $(,)?) => {
        static SOURCES: [Source; [$($provider),*].len()] = [$(Source {
            provider: $provider,
            text: include_str!(concat!("../../schemas/events/", $file, ".toml")),
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
    pub maps: HashMap<String, ValueMap>,
    #[serde(rename = "event")]
    events: Vec<EventLayout>,
    #[serde(skip)]
    by_id: HashMap<u32, Vec<usize>>,
}

/// Names of the values of one enumerated field.
#[derive(Debug, Deserialize)]
pub struct ValueMap {
    /// `values` or `bits`.
    pub kind: String,
    values: BTreeMap<String, String>,
}

impl ValueMap {
    /// The name of a value.
    pub fn name(&self, value: u64) -> Option<&str> {
        self.values.get(&value.to_string()).map(String::as_str)
    }

    /// Values and their names, in the order of the values.
    pub fn entries(&self) -> Vec<(u64, &str)> {
        let parsed = self.values.iter().filter_map(|(value, name)| Some((value.parse().ok()?, name.as_str())));
        let mut entries: Vec<(u64, &str)> = parsed.collect();
        entries.sort_unstable();
        entries
    }

    /// The names of the bits of a value, joined by `|`; bits without a name as one number in hexadecimal.
    pub fn words(&self, value: u64) -> String {
        let (mut words, mut rest) = (Vec::new(), value);
        for (bit, name) in self.entries() {
            if bit.is_power_of_two() && value & bit != 0 {
                words.push(name.to_owned());
                rest &= !bit;
            }
        }
        if rest != 0 {
            words.push(format!("{rest:#x}"));
        }
        words.join("|")
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
    /// What a reader of the layout should know.
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
    /// All layouts, in the order of ids and versions.
    pub fn layouts(&self) -> &[EventLayout] {
        &self.events
    }

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
    let head = source.text.lines().find_map(|line| line.strip_prefix("guid = \""));
    Guid::parse(head?.trim_end_matches('"'))
}

/// Names of all providers in the catalogue.
pub fn provider_names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|s| s.provider)
}

fn parse(source: &Source) -> Result<Provider, String> {
    let mut provider: Provider = toml::from_str(source.text).map_err(|e| format!("{}: {e}", source.provider))?;
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
}
