//! The process of a recording: command line, system, runtime.

use tracequet_trace::event::value::Value;
use tracequet_trace::event::{Event, EventInfo};

/// The process of a recording. With several processes: the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// Command line.
    pub command_line: Option<String>,
    /// Operating system, such as `Linux`.
    pub os: Option<String>,
    /// Processor architecture, such as `x64`.
    pub arch: Option<String>,
    /// Version of the runtime, such as `10.0.12.0` (3.1 calls itself 4.700).
    pub runtime_version: Option<String>,
}

/// Whether payloads of this kind describe the process.
pub(super) fn describes_process(info: &EventInfo) -> bool {
    matches!(
        (info.provider.as_str(), info.event_type.event_id),
        ("Microsoft-DotNETCore-EventPipe", 1)
            | ("Microsoft-Windows-DotNETRuntime" | "Microsoft-Windows-DotNETRuntimeRundown", 187)
    )
}

impl ProcessInfo {
    /// Takes what is not known yet from an event that describes the process.
    pub(super) fn learn(&mut self, event: &Event<'_>) {
        let Ok((fields, _)) = event.fields() else { return };
        let value = |name: &str| fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value);
        let text = |name: &str| value(name).and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned);
        let keep = |known: &mut Option<String>, new: Option<String>| *known = known.take().or(new);
        keep(&mut self.command_line, text("CommandLine"));
        keep(&mut self.os, text("OSInformation"));
        keep(&mut self.arch, text("ArchInformation"));
        let number = |name| value(name).and_then(Value::as_u64);
        let version = ["VMMajorVersion", "VMMinorVersion", "VMBuildNumber", "VMQfeNumber"].map(number);
        if let [Some(major), Some(minor), Some(build), Some(patch)] = version {
            keep(&mut self.runtime_version, Some(format!("{major}.{minor}.{build}.{patch}")));
        }
    }
}
