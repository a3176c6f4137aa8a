//! Processes that were recorded, with their names, command lines and runtimes.

use tracequet_trace::reader::{self, NO_SUBJECT};

use super::fact::{FactSink, Process};
use super::input::{Events, Input, RUNDOWN, RUNTIME};
use crate::prelude::*;

/// A process: its row, but for the text.
#[derive(Default)]
struct Known {
    row: Process<'static>,
    name: String,
    command_line: String,
    os: String,
    arch: String,
    runtime_path: String,
    runtime_version: String,
    startup_flags: String,
}

/// The processes of a recording, in the order of first sight.
#[derive(Default)]
pub struct Processes {
    list: Vec<Known>,
    by_key: Map<ProcessKey, usize>,
    /// Processes that the recording describes.
    described: Map<ProcessKey, Known>,
}

/// A recording of a whole machine holds thousands at most; more are not distinguished.
const MAX_PROCESSES: usize = 1 << 16;

impl Processes {
    fn entry(&mut self, key: ProcessKey) -> Option<&mut Known> {
        let next = self.list.len();
        let index = match self.by_key.get(&key) {
            Some(index) => *index,
            None if next >= MAX_PROCESSES => next - 1,
            None => {
                let (first_ts_ns, last_ts_ns) = (i64::MAX, i64::MIN);
                let row = Process { process_id: key.id, first_ts_ns, last_ts_ns, ..Process::default() };
                self.list.push(Known { row, ..Known::default() });
                self.by_key.insert(key, next);
                next
            }
        };
        self.list.get_mut(index)
    }

    /// The recording describes a process; it becomes a row of the table when events of it follow.
    pub fn describe(&mut self, process: &reader::Process, clock: &Clock) {
        if self.described.len() < MAX_PROCESSES {
            let time = |ticks: Option<i64>| ticks.and_then(|ticks| clock.since_start(ticks));
            let row = Process {
                parent_process_id: process.parent_id,
                start_ts_ns: time(process.start_ticks),
                end_ts_ns: time(process.end_ticks),
                exit_code: process.exit_code.map(i64::from),
                ..Process::default()
            };
            let (name, command_line) = (process.name.clone(), process.command_line.clone());
            let described = Known { row, name, command_line, ..Known::default() };
            self.described.insert(process.key(), described);
        }
    }

    /// Counts events of a process, from the first to the last.
    pub fn counted(&mut self, process: ProcessKey, events: u64, first_ns: i64, last_ns: i64) {
        if process.id != NO_SUBJECT
            && let Some(Known { row, .. }) = self.entry(process)
        {
            row.event_count += events;
            row.first_ts_ns = row.first_ts_ns.min(first_ns);
            row.last_ts_ns = row.last_ts_ns.max(last_ns);
        }
    }
}

impl Tracker for Processes {
    type Action = ();
    const EVENTS: Events<()> = &[
        (RUNTIME, "RuntimeInformationStart", ()),
        (RUNDOWN, "RuntimeInformationDCStart", ()),
        ("Microsoft-DotNETCore-EventPipe", "ProcessInfo", ()),
    ];

    fn is_reference(_: ()) -> bool {
        true
    }

    fn event(&mut self, _: (), input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        let Some(process) = self.entry(input.process()) else { return };
        let take = |place: &mut String, name: &str| {
            let text = input.text(name);
            if !text.is_empty() {
                text.clone_into(place);
            }
        };
        take(&mut process.command_line, "CommandLine");
        take(&mut process.os, "OSInformation");
        take(&mut process.arch, "ArchInformation");
        take(&mut process.runtime_path, "RuntimeDllPath");
        let version =
            ["VMMajorVersion", "VMMinorVersion", "VMBuildNumber", "VMQfeNumber"].map(|part| input.number(part));
        if version != [0; 4] {
            process.runtime_version = version.map(|part| part.to_string()).join(".");
            process.startup_flags = input.words_of("StartupFlagsMap", "StartupFlags");
        }
        let sku = input.name_of("RuntimeSkuMap", "Sku");
        process.row.runtime_kind = sku.or(process.row.runtime_kind);
    }

    fn finish(&mut self, _: u64, sink: &mut impl FactSink) {
        let mut keys: Vec<(usize, ProcessKey)> = self.by_key.drain().map(|(key, index)| (index, key)).collect();
        keys.sort_unstable_by_key(|(index, _)| *index);
        for (mut process, (_, key)) in self.list.drain(..).zip(keys) {
            if process.row.event_count == 0 {
                continue;
            }
            if let Some(described) = self.described.remove(&key) {
                process.name = described.name;
                process.row.parent_process_id = described.row.parent_process_id;
                (process.row.start_ts_ns, process.row.end_ts_ns) = (described.row.start_ts_ns, described.row.end_ts_ns);
                process.row.exit_code = described.row.exit_code;
                if process.command_line.is_empty() {
                    process.command_line = described.command_line;
                }
            }
            let Known { row, name, command_line, os, arch, runtime_path, runtime_version, startup_flags } = &process;
            let row = Process { name, command_line, os, arch, runtime_path, ..*row };
            sink.add(&Process { runtime_version, startup_flags, ..row });
        }
    }
}
