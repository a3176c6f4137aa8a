//! The processes and threads of a recording, with when they ran. Windows reuses ids: each use is an incarnation.
//!
//! ```text
//!  start |---- id 40, incarnation 0 ----| end         start |--- id 40, incarnation 1 ---
//! ```
//! Processes and threads that ran all the time are known from the rundown events at the start and the end of the
//! session. Source: `Process_TypeGroup1` and `Thread_TypeGroup1` of the NT kernel logger's MOF classes.

use super::header::{Head, NO_ID};
use super::kernel_layouts::KernelLayouts;
use super::processes;
use super::subject::{self, Subject};
use crate::prelude::*;
use crate::reader::text::TextBudget;
use crate::reader::{EtwForm, Process, Thread};
use crate::utf16;

/// Bounds on what a file can make the reader remember.
const MAX_PROCESSES: usize = 1 << 14;
const MAX_THREADS: usize = 1 << 18;
/// The processes and threads that kernel events describe.
#[derive(Default)]
pub struct ProcessTable {
    /// Processes, in the order of their first events.
    pub processes: Vec<Process>,
    by_process: Map<u32, Vec<u32>>,
    threads: Vec<ThreadIncarnation>,
    by_thread: Map<u32, Vec<u32>>,
    /// The process of threads without kernel events, from the headers of the events that they wrote.
    writers: Map<u32, u32>,
    /// Names and command lines.
    pub texts: Texts,
    /// Descriptions of processes and of threads beyond the bounds, which are not kept.
    pub unkept: (u64, u64),
}

/// Names of processes and threads, within the budget for text.
#[derive(Default)]
pub struct Texts {
    /// The memory that is left for texts.
    pub budget: TextBudget,
    /// Names that did not fit.
    pub unkept: u64,
}

impl Texts {
    /// The text if it fits, or else nothing.
    fn kept(&mut self, text: String) -> String {
        if self.budget.take(text.len()) {
            return text;
        }
        self.unkept += 1;
        String::new()
    }
}

#[derive(Default)]
struct ThreadIncarnation {
    process_id: u32,
    /// From when on events of this thread id belong here; for the first incarnation from the beginning.
    from: i64,
    start: Option<i64>,
    end: Option<i64>,
    start_address: u64,
    name: Option<String>,
}

/// The incarnations of a process and of a thread to which an event belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// OS process id, or [`NO_ID`].
    pub process_id: u32,
    /// OS thread id, or [`NO_ID`].
    pub thread_id: u32,
    process_incarnation: u32,
    thread_incarnation: u32,
}

/// Index of the incarnation at a time; `incarnations` are sorted by their beginning.
fn incarnation_at(incarnations: &[u32], ticks: i64, begin: impl Fn(u32) -> i64) -> usize {
    incarnations.partition_point(|index| begin(*index) <= ticks).saturating_sub(1)
}

/// A pointer of 4 or 8 bytes.
fn pointer(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>()) {
        (Some(wide), _) => u64::from_le_bytes(*wide),
        (None, Some(narrow)) => u32::from_le_bytes(*narrow).into(),
        (None, None) => 0,
    }
}

impl ProcessTable {
    /// Takes note of an event, in the order of time.
    pub fn event(&mut self, head: &Head, payload: &[u8]) {
        if head.is_kernel && head.group == subject::THREAD {
            self.thread(head, payload);
        } else if head.form == EtwForm::Classic
            && let Some(guid) = &head.guid
        {
            self.process(head, guid, payload);
        } else if head.thread_id != NO_ID && head.process_id != NO_ID && self.writers.len() < MAX_THREADS {
            self.writers.entry(head.thread_id).or_insert(head.process_id);
        }
    }

    fn process(&mut self, head: &Head, class: &Guid, payload: &[u8]) {
        let Some(mut new) = processes::of_event(head, class, payload) else { return };
        let Ok(id) = u32::try_from(new.process_id) else { return };
        let incarnations = self.by_process.get(&id);
        let last = incarnations.and_then(|incarnations| incarnations.last().copied());
        let is_full = self.processes.len() >= MAX_PROCESSES;
        match last.and_then(|index| self.processes.get_mut(index as usize)) {
            // Only a start makes a new process; other events describe the one that started last.
            Some(last) if new.start_ticks.is_none() => {
                // An end from before the start is that of another process.
                let is_before = |start: i64| new.end_ticks.is_some_and(|end| end < start);
                if !last.start_ticks.is_some_and(is_before) {
                    last.end_ticks = new.end_ticks.or(last.end_ticks);
                }
                last.exit_code = new.exit_code.or(last.exit_code);
                if last.command_line.is_empty() {
                    last.command_line = self.texts.kept(new.command_line);
                }
            }
            _ if is_full => self.unkept.0 += 1,
            _ => {
                let incarnations = self.by_process.entry(id).or_default();
                new.incarnation = incarnations.len() as u32;
                new.name = self.texts.kept(new.name);
                new.command_line = self.texts.kept(new.command_line);
                incarnations.push(self.processes.len() as u32);
                self.processes.push(new);
            }
        }
    }

    /// Takes note of a start (1), an end (2), a rundown (3, 4) or a new name (72) of a thread.
    fn thread(&mut self, head: &Head, payload: &[u8]) {
        if !matches!(head.opcode, 1..=4 | 72) {
            return;
        }
        let Some(layout) = KernelLayouts::get().of_kernel(head) else { return };
        let Subject { process_id, thread_id } = subject::subject_of(head, payload);
        let (mut name, mut start_address) = (None, 0);
        for (field, bytes) in layout.fields(payload, head.pointer_size) {
            match field {
                "Win32StartAddress" => start_address = pointer(bytes),
                "ThreadName" if !bytes.is_empty() => name = Some(utf16::string(bytes)),
                _ => {}
            }
        }
        let last = self.by_thread.get(&thread_id).and_then(|incarnations| incarnations.last().copied());
        let end = head.ticks.filter(|_| head.opcode == 2);
        let is_full = self.threads.len() >= MAX_THREADS;
        match last.and_then(|index| self.threads.get_mut(index as usize)) {
            Some(last) if head.opcode != 1 && (last.process_id == process_id && last.end.is_none()) => {
                last.end = end.filter(|end| last.start.is_none_or(|start| start <= *end));
                if let Some(name) = name {
                    self.texts.budget.give_back(last.name.as_ref().map_or(0, String::len));
                    last.name = Some(self.texts.kept(name)).filter(|name| !name.is_empty());
                }
                last.start_address = if last.start_address == 0 { start_address } else { last.start_address };
            }
            _ if is_full => self.unkept.1 += 1,
            _ => {
                let name = name.map(|name| self.texts.kept(name)).filter(|name| !name.is_empty());
                let incarnations = self.by_thread.entry(thread_id).or_default();
                let start = head.ticks.filter(|_| head.opcode == 1);
                let from = if incarnations.is_empty() && start.is_none() { None } else { head.ticks };
                // Incarnations are looked up by their beginnings, and time may go back.
                let before = incarnations.last().and_then(|index| self.threads.get(*index as usize));
                let from = from.unwrap_or(i64::MIN).max(before.map_or(i64::MIN, |before| before.from));
                incarnations.push(self.threads.len() as u32);
                self.threads.push(ThreadIncarnation { process_id, from, start, end, start_address, name });
            }
        }
    }

    /// The process and thread of an event, with their incarnations.
    pub fn owner_of(&self, subject: Subject, ticks: i64) -> Owner {
        let Subject { mut process_id, thread_id } = subject;
        let mut thread_incarnation = 0;
        if thread_id != NO_ID
            && let Some(incarnations) = self.by_thread.get(&thread_id)
        {
            thread_incarnation =
                incarnation_at(incarnations, ticks, |i| self.threads.get(i as usize).map_or(i64::MIN, |t| t.from));
            if process_id == NO_ID
                && let Some(incarnation) =
                    incarnations.get(thread_incarnation).and_then(|i| self.threads.get(*i as usize))
            {
                process_id = incarnation.process_id;
            }
        }
        if process_id == NO_ID && thread_id != NO_ID {
            // Thread 0 is what a processor runs when there is nothing to do, a thread of process 0.
            let known = if thread_id == 0 { Some(0) } else { self.writers.get(&thread_id).copied() };
            process_id = known.unwrap_or(NO_ID);
        }
        let process_incarnation = match self.by_process.get(&process_id) {
            Some(incarnations) if incarnations.len() > 1 => incarnation_at(incarnations, ticks, |i| {
                self.processes.get(i as usize).and_then(|p| p.start_ticks).unwrap_or(i64::MIN)
            }),
            _ => 0,
        };
        let (process_incarnation, thread_incarnation) = (process_incarnation as u32, thread_incarnation as u32);
        Owner { process_id, thread_id, process_incarnation, thread_incarnation }
    }

    /// The name and the process of a thread, as far as they are known.
    pub fn describe(&self, owner: Owner) -> Thread {
        let incarnations = self.by_thread.get(&owner.thread_id);
        let index = incarnations.and_then(|incarnations| incarnations.get(owner.thread_incarnation as usize));
        let known = index.and_then(|i| self.threads.get(*i as usize));
        let elsewhere = known.is_some_and(|t| t.process_id != owner.process_id);
        let known = known.filter(|_| !elsewhere);
        Thread {
            process_id: owner.process_id.into(),
            process_incarnation: owner.process_incarnation,
            thread_id: owner.thread_id.into(),
            name: known.and_then(|t| t.name.clone()),
            start_ticks: known.and_then(|t| t.start),
            end_ticks: known.and_then(|t| t.end),
            start_address: known.map_or(0, |t| t.start_address),
            is_attached: elsewhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::header;
    use super::*;

    /// Thread 7 begins in a process.
    fn start(table: &mut ProcessTable, ticks: i64, process_id: u32) {
        let mut payload = [process_id, 7].map(u32::to_le_bytes).concat();
        payload.resize(72, 0);
        let mut event = vec![3, 0, 2, 0xC0, 0x20 + 72, 0, 1, subject::THREAD];
        event.extend([0; 8]);
        event.extend(ticks.to_le_bytes());
        event.extend([0; 8]);
        event.extend(&payload);
        table.event(&header::parse(&event).unwrap(), &payload);
    }

    #[test]
    fn incarnations_of_a_thread_are_sorted_where_time_goes_back() {
        let mut table = ProcessTable::default();
        for (ticks, process_id) in [(100, 1), (300, 2), (250, 3), (260, 4), (270, 5)] {
            start(&mut table, ticks, process_id);
        }
        assert_eq!(table.threads.iter().map(|thread| thread.from).collect::<Vec<_>>(), [100, 300, 300, 300, 300]);
        let owner = |ticks| table.owner_of(Subject { process_id: NO_ID, thread_id: 7 }, ticks).process_id;
        assert_eq!([50, 275, 299, 300].map(owner), [1, 1, 1, 5]);
    }
}
