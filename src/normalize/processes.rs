//! Who was recorded: processes with their command lines and runtimes.

use super::fact::{Fact, FactSink, Process};
use super::kinds::Handler;

/// The processes of a recording, in the order of first sight.
#[derive(Default)]
pub struct Processes {
    list: Vec<Process>,
    last: usize,
    /// Of processes that the recording tells of, by id; of several with the same id the last one.
    command_lines: std::collections::HashMap<u64, String>,
}

/// A recording of a whole machine holds thousands at most; more are not told apart.
const MAX_PROCESSES: usize = 1 << 16;

impl Processes {
    fn entry(&mut self, process_id: u64, ts_ns: i64) -> Option<&mut Process> {
        if self.list.get(self.last).is_none_or(|p| p.process_id != process_id) {
            self.last = match self.list.iter().position(|p| p.process_id == process_id) {
                Some(index) => index,
                None => {
                    if self.list.len() < MAX_PROCESSES {
                        self.list.push(Process { process_id, first_ns: ts_ns, last_ns: ts_ns, ..Process::default() });
                    }
                    self.list.len() - 1
                }
            };
        }
        self.list.get_mut(self.last)
    }

    /// The recording tells of a process; a row of the table comes of it when events of it follow.
    pub fn told(&mut self, process: &crate::reader::Process) {
        if self.command_lines.len() < MAX_PROCESSES {
            let name = if process.command_line.is_empty() { &process.name } else { &process.command_line };
            self.command_lines.insert(process.process_id, name.clone());
        }
    }

    /// An event of a process.
    #[inline]
    pub fn event(&mut self, process_id: u64, ts_ns: i64) {
        if let Some(process) = self.entry(process_id, ts_ns) {
            process.event_count += 1;
            process.first_ns = process.first_ns.min(ts_ns);
            process.last_ns = process.last_ns.max(ts_ns);
        }
    }

    /// ProcessInfo or RuntimeInformation.
    pub fn described(&mut self, process_id: u64, handler: &Handler) {
        let Some(process) = self.entry(process_id, 0) else { return };
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
        for mut process in self.list.drain(..) {
            if let Some(command_line) = self.command_lines.remove(&process.process_id)
                && process.command_line.is_empty()
            {
                process.command_line = command_line;
            }
            sink.fact(Fact::Process(&process));
        }
    }
}
