//! Which processes of a recording are wanted.

use std::collections::HashSet;

use tracequet_trace::error::{Error as TraceError, Named};
use tracequet_trace::reader::{NO_SUBJECT, Process, ProcessKey, Thread};

/// The processes that a request names, as they are found in a recording.
#[derive(Default)]
pub struct ProcessFilter {
    /// Ids, and names as typed.
    asked: Vec<String>,
    /// Processes with a name that was asked for.
    named: HashSet<ProcessKey>,
    /// For each thread: whether its events are wanted.
    threads: Vec<bool>,
    found: bool,
}

impl ProcessFilter {
    /// For a request.
    pub fn new(asked: &[String]) -> ProcessFilter {
        ProcessFilter { asked: asked.to_vec(), ..ProcessFilter::default() }
    }

    /// The recording describes a process.
    pub fn process(&mut self, process: &Process) {
        if self.asked.iter().any(|asked| is_name(&process.name, asked)) {
            self.named.insert(process.key());
        }
    }

    /// Whether not all processes are wanted.
    pub fn is_active(&self) -> bool {
        !self.asked.is_empty()
    }

    /// A thread appears. Returns whether it is of a process that is asked for by its id or name.
    pub fn thread(&mut self, thread: &Thread) -> bool {
        if self.asked.is_empty() {
            return false;
        }
        let by_id = self.asked.iter().any(|asked| asked.parse() == Ok(thread.process_id));
        let wanted = by_id || self.named.contains(&thread.process());
        self.found |= wanted;
        // Events about the machine or its kernel, and not about a process, belong to each.
        let of_all = thread.thread_id == NO_SUBJECT && matches!(thread.process_id, 0 | NO_SUBJECT);
        self.threads.push(wanted || of_all);
        wanted
    }

    /// Whether the events about a thread are wanted.
    #[inline]
    pub fn wants(&self, thread: u32) -> bool {
        self.threads.get(thread as usize).copied().unwrap_or(self.asked.is_empty())
    }

    /// An error when nothing of what was asked for is in the recording.
    pub fn check(&self, path: &std::path::Path) -> Result<(), TraceError> {
        if self.asked.is_empty() || self.found {
            return Ok(());
        }
        let asked = self.asked.join(", ");
        let message = format!("{}: no events of process {asked}", path.display());
        Err(TraceError::NotFound { what: Named::Events, message })
    }
}

/// Names are compared as Windows does; `.exe` may be left out.
fn is_name(name: &str, asked: &str) -> bool {
    let plain = |text: &str| {
        let lower = text.to_lowercase();
        lower.strip_suffix(".exe").map_or(lower.clone(), str::to_owned)
    };
    !name.is_empty() && plain(name) == plain(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_id_is_told_apart() {
        let mut wanted = ProcessFilter::new(&["app".to_owned()]);
        let process = |name: &str, incarnation| {
            let mut process = Process::default();
            (process.process_id, process.name, process.incarnation) = (5, name.to_owned(), incarnation);
            process
        };
        wanted.process(&process("other.exe", 0));
        wanted.process(&process("App.EXE", 1));
        let thread = |process_id, process_incarnation, thread_id| {
            let mut thread = Thread::default();
            (thread.process_id, thread.process_incarnation, thread.thread_id) =
                (process_id, process_incarnation, thread_id);
            thread
        };
        for thread in [
            thread(5, 0, 1),
            thread(5, 1, 1),
            thread(6, 0, 2),
            thread(NO_SUBJECT, 0, NO_SUBJECT),
            thread(NO_SUBJECT, 0, 3),
        ] {
            wanted.thread(&thread);
        }
        assert_eq!([0, 1, 2, 3, 4].map(|thread| wanted.wants(thread)), [false, true, false, true, false]);
        assert!(ProcessFilter::new(&[]).wants(0));
        assert!(ProcessFilter::new(&["6".to_owned()]).check(std::path::Path::new("x")).is_err());
    }
}
