//! The threads of a recording: by OS id (V1 to V5), or by an index of the file (V6).

use super::report::Reporter;
use crate::prelude::*;
use crate::reader::text::TextBudget;
use crate::reader::{Thread, ThreadIndex};

/// Threads in one recording; the last place is for all that do not fit. Each takes half a kilobyte until the end.
const MAX_THREADS: usize = 1 << 18;

/// The threads of one recording.
#[derive(Default)]
pub struct Threads {
    threads: Vec<Thread>,
    by_content: Map<Thread, ThreadIndex>,
    by_index: Map<u64, ThreadIndex>,
    /// The OS process id that the header gives.
    pub default_process: u64,
}

impl Threads {
    pub fn new(default_process: u64) -> Threads {
        Threads { default_process, ..Threads::default() }
    }

    /// The number of a thread; a new one is reported to the visitor.
    pub fn intern(
        &mut self,
        thread: Thread,
        text: &mut TextBudget,
        out: &mut Reporter<'_>,
        offset: u64,
    ) -> ThreadIndex {
        if let Some(index) = self.by_content.get(&thread) {
            return *index;
        }
        if self.threads.len() >= MAX_THREADS {
            return MAX_THREADS as u32 - 1;
        }
        if self.threads.len() == MAX_THREADS - 1 {
            let message = format!("more than {MAX_THREADS} threads; the others are shown as one without an id");
            out.problem(Problem::loss("too_many_threads", offset, message));
            return self.add(Thread { name: Some("other threads".to_owned()), ..Thread::default() }, out);
        }
        if !text.take(thread.name.as_ref().map_or(0, String::len)) {
            out.problem(text.exceeded("threads; the others have no name", offset));
            let nameless = Thread { name: None, ..thread };
            return self.by_content.get(&nameless).copied().unwrap_or_else(|| self.add(nameless, out));
        }
        self.add(thread, out)
    }

    fn add(&mut self, thread: Thread, out: &mut Reporter<'_>) -> ThreadIndex {
        let index = self.threads.len() as ThreadIndex;
        out.visitor.thread(index, &thread);
        self.threads.push(thread.clone());
        self.by_content.insert(thread, index);
        index
    }

    /// A thread by its OS id (V1 to V5: the one process of the recording).
    pub fn by_os_id(&mut self, thread_id: u64, text: &mut TextBudget, out: &mut Reporter<'_>) -> ThreadIndex {
        self.intern(Thread { process_id: self.default_process, thread_id, ..Thread::default() }, text, out, 0)
    }

    /// The OS id of a thread.
    pub fn os_id(&self, thread: ThreadIndex) -> u64 {
        self.threads.get(thread as usize).map_or(0, |t| t.thread_id)
    }

    /// A thread by its index in the file (V6). One that is not defined is reported and gets a stand-in.
    pub fn by_index(&mut self, raw: u64, text: &mut TextBudget, out: &mut Reporter<'_>, offset: u64) -> ThreadIndex {
        if let Some(index) = self.by_index.get(&raw) {
            return *index;
        }
        out.problem(Problem::error("unknown_thread", offset, format!("thread index {raw} is not defined")));
        let stand_in = Thread { name: Some(format!("index {raw}")), ..Thread::default() };
        let index = self.intern(stand_in, text, out, offset);
        self.define(raw, index);
        index
    }

    /// The thread of an index of the file, if it is defined (V6).
    pub fn defined(&self, raw: u64) -> Option<ThreadIndex> {
        self.by_index.get(&raw).copied()
    }

    /// Binds an index of the file (V6); gives what it was bound to.
    pub fn define(&mut self, raw: u64, thread: ThreadIndex) -> Option<ThreadIndex> {
        if self.by_index.len() >= MAX_THREADS && !self.by_index.contains_key(&raw) {
            return None;
        }
        self.by_index.insert(raw, thread)
    }

    /// Forgets an index of the file (V6); gives what it was bound to.
    pub fn remove(&mut self, raw: u64) -> Option<ThreadIndex> {
        self.by_index.remove(&raw)
    }

    /// Forgets all indices of the file (V6 sequence point with flag 1).
    pub fn forget_indices(&mut self) {
        self.by_index.clear();
    }
}
