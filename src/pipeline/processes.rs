//! Which processes of a recording are wanted.

use crate::error::Error;
use crate::reader::{Process, Thread};

/// The processes that a request names, as they are found in a recording.
#[derive(Default)]
pub struct Wanted {
    /// Ids, and names as typed.
    asked: Vec<String>,
    known: Vec<Process>,
    /// For each thread: whether its events are wanted.
    threads: Vec<Choice>,
    found: bool,
}

enum Choice {
    Always,
    Never,
    /// While one of these runs (ids are reused).
    During(Vec<usize>),
}

impl Wanted {
    /// For a request.
    pub fn new(asked: &[String]) -> Wanted {
        Wanted { asked: asked.to_vec(), ..Wanted::default() }
    }

    /// The recording tells of a process.
    pub fn process(&mut self, process: &Process) {
        if !self.asked.is_empty() {
            self.known.push(process.clone());
        }
    }

    /// A thread appears.
    pub fn thread(&mut self, thread: &Thread) {
        if self.asked.is_empty() {
            return;
        }
        let id = thread.process_id;
        let by_id = self.asked.iter().any(|asked| asked.parse() == Ok(id));
        let named = |p: &Process| p.process_id == id && self.asked.iter().any(|asked| is_name(&p.name, asked));
        let lives: Vec<usize> = self.known.iter().enumerate().filter(|(_, p)| named(p)).map(|(i, _)| i).collect();
        let choice = match (by_id, lives.is_empty()) {
            (true, _) => Choice::Always,
            (false, true) => Choice::Never,
            (false, false) => Choice::During(lives),
        };
        self.found |= !matches!(choice, Choice::Never);
        self.threads.push(choice);
    }

    /// Whether an event is wanted.
    #[inline]
    pub fn wants(&self, thread: u32, ticks: i64) -> bool {
        match self.threads.get(thread as usize) {
            None => self.asked.is_empty(),
            Some(Choice::Always) => true,
            Some(Choice::Never) => false,
            Some(Choice::During(lives)) => lives.iter().any(|i| self.known.get(*i).is_some_and(|p| p.runs_at(ticks))),
        }
    }

    /// An error when nothing of what was asked for is in the recording.
    pub fn check(&self, path: &std::path::Path) -> Result<(), Error> {
        if self.asked.is_empty() || self.found {
            return Ok(());
        }
        let asked = self.asked.join(", ");
        let message =
            format!("{}: no events of process {asked}; tracequet inspect lists the processes", path.display());
        Err(Error::Usage(message))
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
    fn a_reused_id_is_told_apart_by_time() {
        let mut wanted = Wanted::new(&["app".to_owned()]);
        let process = |name: &str, start_ticks, end_ticks| Process {
            process_id: 5,
            name: name.to_owned(),
            start_ticks,
            end_ticks,
            ..Process::default()
        };
        wanted.process(&process("other.exe", None, Some(10)));
        wanted.process(&process("App.EXE", Some(20), None));
        wanted.thread(&Thread { process_id: 5, ..Thread::default() });
        wanted.thread(&Thread { process_id: 6, ..Thread::default() });
        assert_eq!([5, 20, 99].map(|ticks| wanted.wants(0, ticks)), [false, true, true]);
        assert!(!wanted.wants(1, 20));
        assert!(Wanted::new(&[]).wants(0, 0));
        assert!(Wanted::new(&["6".to_owned()]).check(std::path::Path::new("x")).is_err());
    }
}
