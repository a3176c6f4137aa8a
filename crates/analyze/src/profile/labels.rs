//! Labels of threads: names of processes and threads, and ids.

use crate::prelude::*;

/// The memory of a row beside its text, in bytes.
const STORED: u64 = 24;

row!(struct Process of process { process_id, name });

row!(struct Thread of thread { process_id, thread_id, name });

/// Names of processes and threads.
#[derive(Debug)]
pub struct Labels {
    processes: Map<u64, String>,
    threads: Map<(u64, u64), String>,
}

impl Labels {
    /// Reads the names of a recording; those of a table that it lacks are not known. Fails when they do not fit into memory.
    pub fn read(recording: &Recording<'_>) -> Result<Labels> {
        let mut labels = Labels { processes: Map::default(), threads: Map::default() };
        let (mut of_processes, mut of_threads) =
            (HeldTexts::of(recording, "process"), HeldTexts::of(recording, "thread"));
        if recording.has::<Process<'_>>() {
            each_row::<Process<'_>>(recording, STORED, |row| {
                labels.processes.insert(row.process_id, of_processes.copy(row.name)?);
                Ok(())
            })?;
        }
        if recording.has::<Thread<'_>>() {
            each_row::<Thread<'_>>(recording, STORED, |row| {
                if let Some(name) = row.name.filter(|name| !name.is_empty()) {
                    labels.threads.insert((row.process_id, row.thread_id), of_threads.copy(name)?);
                }
                Ok(())
            })?;
        }
        Ok(labels)
    }

    /// The name of a thread of a process.
    pub fn thread(&self, thread: (u64, u64)) -> Option<&String> {
        self.threads.get(&thread)
    }

    /// The name of a process.
    pub fn process(&self, process_id: u64) -> Option<&str> {
        self.processes.get(&process_id).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// `name (1234)`, in a recording of several processes with the process before it.
    pub fn of(&self, process_id: u64, thread_id: u64) -> String {
        let thread = match self.threads.get(&(process_id, thread_id)) {
            Some(name) => format!("{name} ({thread_id})"),
            None => format!("Thread {thread_id}"),
        };
        if self.processes.len() <= 1 {
            return thread;
        }
        match self.process(process_id) {
            Some(name) => format!("{name} ({process_id}) / {thread}"),
            None => format!("Process {process_id} / {thread}"),
        }
    }
}
