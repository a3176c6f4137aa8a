//! Who lived when: processes and threads, whose ids are reused, and the process of a thread.
//!
//! ```text
//!  P start  |---- id 40, life 0 ----| end         start |--- id 40, life 1 ---
//!  begin, end, and the lists at the start and at the end of the session (no time of their own)
//! ```
//! Source: `Process_TypeGroup1` and `Thread_TypeGroup1` of the NT kernel logger's MOF classes.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::header::{Head, NO_ID};
use super::processes;
use super::subject::{self, Subject};
use crate::bytes::utf16_string;
use crate::guid::Guid;
use crate::reader::{EtwForm, Process, Thread};

/// Bounds on what a file can make the reader remember.
const MAX_PROCESSES: usize = 1 << 14;
const MAX_THREADS: usize = 1 << 18;
/// Bytes of names and command lines; those beyond are left empty.
const MAX_TEXT: usize = 32 << 20;

/// The processes and threads that the kernel tells of.
#[derive(Default)]
pub struct Lives {
    /// Processes, in the order in which they are first spoken of.
    pub processes: Vec<Process>,
    by_process: HashMap<u32, Vec<u32>, FixedState>,
    threads: Vec<ThreadLife>,
    by_thread: HashMap<u32, Vec<u32>, FixedState>,
    /// The process of threads that no event of the kernel tells of, by the headers of their own events.
    writers: HashMap<u32, u32, FixedState>,
    text: usize,
}

#[derive(Default)]
struct ThreadLife {
    process_id: u32,
    /// When it is first heard of; the first life holds from the beginning.
    from: i64,
    start: Option<i64>,
    end: Option<i64>,
    start_address: u64,
    name: Option<String>,
}

/// Which life of a process and of a thread is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Whose {
    /// OS process id, or [`NO_ID`].
    pub process_id: u32,
    /// OS thread id, or [`NO_ID`].
    pub thread_id: u32,
    process_life: u32,
    thread_life: u32,
}

/// Of lives that begin at these times, oldest first, the one that a moment lies in.
fn life_at(lives: &[u32], ticks: i64, begin: impl Fn(u32) -> i64) -> usize {
    lives.partition_point(|index| begin(*index) <= ticks).saturating_sub(1)
}

impl Lives {
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
        if self.text > MAX_TEXT {
            (new.name, new.command_line) = (String::new(), String::new());
        }
        let lives = self.by_process.get(&id);
        let last = lives.and_then(|lives| lives.last().copied());
        let is_full = self.processes.len() >= MAX_PROCESSES;
        match last.and_then(|index| self.processes.get_mut(index as usize)) {
            // A beginning is a new process, everything else is of the one that began last.
            Some(last) if new.start_ticks.is_none() => {
                last.end_ticks = new.end_ticks.or(last.end_ticks);
                last.exit_code = new.exit_code.or(last.exit_code);
                if last.command_line.is_empty() {
                    self.text += new.command_line.len();
                    last.command_line = new.command_line;
                }
            }
            _ if is_full => {}
            _ => {
                let lives = self.by_process.entry(id).or_default();
                new.life = lives.len() as u32;
                self.text += new.name.len() + new.command_line.len();
                lives.push(self.processes.len() as u32);
                self.processes.push(new);
            }
        }
    }

    /// ```text
    ///  u32 process   u32 thread   P stack base, limit, user base, user limit, affinity   P start address   P TEB
    ///  u32 tag   u8 x 4 priorities and flags   [name, UTF-16]
    /// ```
    fn thread(&mut self, head: &Head, payload: &[u8]) {
        if !matches!(head.opcode, 1..=4 | 72) || head.version < 2 {
            return;
        }
        let Subject { process_id, thread_id } = subject::of(head, payload);
        let pointer = usize::from(head.pointer_size);
        let name_at = if head.opcode == 72 { 8 } else { 16 + 7 * pointer };
        let name = payload.get(name_at..).map(|text| text.split_at(text.len() / 2 * 2).0).unwrap_or_default();
        let words = name.as_chunks::<2>().0;
        let end = words.iter().position(|w| *w == [0, 0]).unwrap_or(words.len());
        let name = name.get(..2 * end).filter(|text| !text.is_empty() && self.text <= MAX_TEXT).map(utf16_string);
        self.text += name.as_ref().map_or(0, String::len);
        let address = payload.get(8 + 5 * pointer..).unwrap_or_default();
        let start_address = match (head.opcode, pointer) {
            (72, _) => 0,
            (_, 4) => address.first_chunk().map_or(0, |b| u64::from(u32::from_le_bytes(*b))),
            _ => address.first_chunk().map_or(0, |b| u64::from_le_bytes(*b)),
        };
        let last = self.by_thread.get(&thread_id).and_then(|lives| lives.last().copied());
        let end = head.ticks.filter(|_| head.opcode == 2);
        let is_full = self.threads.len() >= MAX_THREADS;
        match last.and_then(|index| self.threads.get_mut(index as usize)) {
            Some(last) if head.opcode != 1 && (last.process_id == process_id && last.end.is_none()) => {
                last.end = end;
                last.name = name.or(last.name.take());
                last.start_address = if last.start_address == 0 { start_address } else { last.start_address };
            }
            _ if is_full => {}
            _ => {
                let lives = self.by_thread.entry(thread_id).or_default();
                let start = head.ticks.filter(|_| head.opcode == 1);
                let from = if lives.is_empty() && start.is_none() { None } else { head.ticks };
                lives.push(self.threads.len() as u32);
                let from = from.unwrap_or(i64::MIN);
                self.threads.push(ThreadLife { process_id, from, start, end, start_address, name });
            }
        }
    }

    /// The lives that an event is about.
    pub fn whose(&self, subject: Subject, ticks: i64) -> Whose {
        let Subject { mut process_id, thread_id } = subject;
        let mut thread_life = 0;
        if thread_id != NO_ID
            && let Some(lives) = self.by_thread.get(&thread_id)
        {
            thread_life = life_at(lives, ticks, |i| self.threads.get(i as usize).map_or(i64::MIN, |t| t.from));
            if process_id == NO_ID
                && let Some(life) = lives.get(thread_life).and_then(|i| self.threads.get(*i as usize))
            {
                process_id = life.process_id;
            }
        }
        if process_id == NO_ID && thread_id != NO_ID {
            // Thread 0 is what a processor runs when there is nothing to do, a thread of process 0.
            let known = if thread_id == 0 { Some(0) } else { self.writers.get(&thread_id).copied() };
            process_id = known.unwrap_or(NO_ID);
        }
        let process_life = match self.by_process.get(&process_id) {
            Some(lives) if lives.len() > 1 => life_at(lives, ticks, |i| {
                self.processes.get(i as usize).and_then(|p| p.start_ticks).unwrap_or(i64::MIN)
            }),
            _ => 0,
        };
        let (process_life, thread_life) = (process_life as u32, thread_life as u32);
        Whose { process_id, thread_id, process_life, thread_life }
    }

    /// What is known of a thread.
    pub fn describe(&self, whose: Whose) -> Thread {
        let lives = self.by_thread.get(&whose.thread_id);
        let index = lives.and_then(|lives| lives.get(whose.thread_life as usize));
        let known = index.and_then(|i| self.threads.get(*i as usize)).filter(|t| t.process_id == whose.process_id);
        Thread {
            process_id: whose.process_id.into(),
            process_life: whose.process_life,
            thread_id: whose.thread_id.into(),
            name: known.and_then(|t| t.name.clone()),
            start_ticks: known.and_then(|t| t.start),
            end_ticks: known.and_then(|t| t.end),
            start_address: known.map_or(0, |t| t.start_address),
        }
    }
}
