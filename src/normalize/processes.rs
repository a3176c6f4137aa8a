//! Who was recorded: processes with their names, command lines and runtimes.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::fact::{Fact, FactSink, Process};
use super::tracker::Handler;
use crate::reader::{self, NOBODY, ProcessKey};
use crate::time::Clock;

/// The processes of a recording, in the order of first sight.
#[derive(Default)]
pub struct Processes {
    list: Vec<Process>,
    by_key: HashMap<ProcessKey, usize, FixedState>,
    /// Those that the recording tells of.
    told: HashMap<ProcessKey, Process, FixedState>,
}

/// A recording of a whole machine holds thousands at most; more are not told apart.
const MAX_PROCESSES: usize = 1 << 16;

impl Processes {
    fn entry(&mut self, key: ProcessKey) -> Option<&mut Process> {
        let next = self.list.len();
        let index = match self.by_key.get(&key) {
            Some(index) => *index,
            None if next >= MAX_PROCESSES => next - 1,
            None => {
                let (first_ns, last_ns) = (i64::MAX, i64::MIN);
                self.list.push(Process { process_id: key.id, first_ns, last_ns, ..Process::default() });
                self.by_key.insert(key, next);
                next
            }
        };
        self.list.get_mut(index)
    }

    /// The recording tells of a process; a row of the table comes of it when events of it follow.
    pub fn told(&mut self, process: &reader::Process, clock: &Clock) {
        if self.told.len() < MAX_PROCESSES {
            let time = |ticks: Option<i64>| ticks.and_then(|ticks| clock.since_start(ticks));
            let told = Process {
                name: process.name.clone(),
                parent_process_id: process.parent_id,
                command_line: process.command_line.clone(),
                start_ns: time(process.start_ticks),
                end_ns: time(process.end_ticks),
                exit_code: process.exit_code,
                ..Process::default()
            };
            self.told.insert(process.key(), told);
        }
    }

    /// So many events of a process, from the first to the last.
    pub fn counted(&mut self, process: ProcessKey, events: u64, first_ns: i64, last_ns: i64) {
        if process.id != NOBODY
            && let Some(process) = self.entry(process)
        {
            process.event_count += events;
            process.first_ns = process.first_ns.min(first_ns);
            process.last_ns = process.last_ns.max(last_ns);
        }
    }

    /// ProcessInfo or RuntimeInformation.
    pub fn described(&mut self, process: ProcessKey, handler: &Handler) {
        let Some(process) = self.entry(process) else { return };
        let take = |place: &mut String, name: &str| {
            if let Some(text) = handler.scalars.text(name)
                && !text.is_empty()
            {
                text.clone_into(place);
            }
        };
        take(&mut process.command_line, "CommandLine");
        take(&mut process.os, "OSInformation");
        take(&mut process.arch, "ArchInformation");
        take(&mut process.runtime_path, "RuntimeDllPath");
        let sku = handler.map("RuntimeSkuMap", handler.scalars.number("Sku"));
        process.runtime_sku = sku.or(process.runtime_sku);
    }

    /// The end of the recording.
    pub fn finish(&mut self, sink: &mut impl FactSink) {
        let mut keys: Vec<(usize, ProcessKey)> = self.by_key.drain().map(|(key, index)| (index, key)).collect();
        keys.sort_unstable_by_key(|(index, _)| *index);
        for (mut process, (_, key)) in self.list.drain(..).zip(keys) {
            if process.event_count == 0 {
                continue;
            }
            if let Some(told) = self.told.remove(&key) {
                process.name = told.name;
                process.parent_process_id = told.parent_process_id;
                (process.start_ns, process.end_ns) = (told.start_ns, told.end_ns);
                process.exit_code = told.exit_code;
                if process.command_line.is_empty() {
                    process.command_line = told.command_line;
                }
            }
            sink.fact(Fact::Process(&process));
        }
    }
}
