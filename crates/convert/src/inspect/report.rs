//! The result of an inspection: counts by provider, kind of event, process and thread, collections and losses.

use crate::prelude::*;
use std::collections::BTreeMap;

use tracequet_facts::ProblemSummary;
use tracequet_trace::reader::{End, Process, ProcessKey, Thread, TraceInfo};

use super::gc_list::GcList;
use super::process::ProcessInfo;

/// The content of a recording.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Inspection {
    /// The recording.
    pub path: PathBuf,
    /// The header.
    pub info: TraceInfo,
    /// The end of the reading.
    pub end: End,
    /// The process that was recorded.
    pub process: ProcessInfo,
    /// Events.
    pub events: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Time of the oldest event, nanoseconds since the recording began; `None` without events.
    pub first_ns: Option<i64>,
    /// Time of the newest event.
    pub last_ns: Option<i64>,
    /// Providers, those with most events first.
    pub providers: Vec<ProviderCount>,
    /// Kinds of events, those with most events first.
    pub event_types: Vec<EventTypeCount>,
    /// Processes, those with most events first.
    pub processes: Vec<ProcessCount>,
    /// Threads, those with most events first.
    pub threads: Vec<ThreadCount>,
    /// Collections.
    pub collections: GcList,
    /// Objects of a heap dump (.gcdump).
    pub heap: Option<HeapCount>,
    /// Losses, damage and parts that were not understood, by code.
    pub problems: Vec<ProblemSummary>,
}

/// The content of a heap dump.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HeapCount {
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// References between them.
    pub references: u64,
    /// References from outside of the heap.
    pub roots: u64,
    /// Types, those with most bytes first.
    pub types: Vec<HeapTypeCount>,
}

/// Objects of one type.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HeapTypeCount {
    /// Name.
    pub name: String,
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Events of one provider.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProviderCount {
    /// Name.
    pub name: String,
    /// Kinds of events.
    pub event_types: u64,
    /// Events.
    pub events: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
}

/// Events of one kind.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventTypeCount {
    /// Provider name.
    pub provider: String,
    /// Event id.
    pub event_id: u32,
    /// Event version.
    pub version: u32,
    /// Name: the recording's, else the catalogue's, else `event_<id>`.
    pub name: String,
    /// Opcode, when known.
    pub opcode: Option<u8>,
    /// Verbosity: 0 log always, 1 critical to 5 verbose.
    pub level: u32,
    /// Keyword mask.
    pub keywords: u64,
    /// Events.
    pub events: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Where a conversion would take the fields from.
    pub decoded_by: DecodedBy,
}

/// Where the fields of an event are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodedBy {
    /// In the recording.
    Recording,
    /// In a manifest that was given beside it.
    Manifest,
    /// In the catalogue; the version that the layout was made for, which may be below the event's.
    Catalogue(u32),
    /// Nowhere: payloads are kept raw; why.
    Raw(&'static str),
}

/// Events of one process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProcessCount {
    /// OS process id; ids are reused, so that two may have the same.
    pub process_id: u64,
    /// Name of the program; empty when not recorded.
    pub name: String,
    /// Command line; empty when not recorded.
    pub command_line: String,
    /// Threads.
    pub threads: u64,
    /// Events.
    pub events: u64,
}

/// Events of one thread.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadCount {
    /// The thread.
    pub thread: Thread,
    /// Events that are about it.
    pub events: u64,
}

impl Inspection {
    /// Whether its end mark was reached and nothing before it is damaged.
    pub fn is_complete(&self) -> bool {
        self.end.complete && !self.problems.iter().any(|p| p.severity == Severity::Error)
    }

    /// Whether anything of the recording was lost or damaged.
    pub fn has_losses(&self) -> bool {
        !self.end.complete || self.problems.iter().any(|p| p.severity > Severity::Info)
    }

    /// Nanoseconds from the oldest to the newest event.
    pub fn duration_ns(&self) -> i64 {
        self.last_ns.unwrap_or_default().saturating_sub(self.first_ns.unwrap_or_default())
    }
}

/// Counts by process what was counted by thread.
pub(super) fn processes(threads: &[ThreadCount], known: &[Process]) -> Vec<ProcessCount> {
    let mut by_key: BTreeMap<(u64, u32), ProcessCount> = BTreeMap::new();
    for thread in threads {
        let ProcessKey { id: process_id, incarnation } = thread.thread.process();
        let (name, command_line) = (String::new(), String::new());
        let fresh = ProcessCount { process_id, name, command_line, threads: 0, events: 0 };
        let process = by_key.entry((process_id, incarnation)).or_insert(fresh);
        process.threads += 1;
        process.events += thread.events;
    }
    for one in known {
        let Some(process) = by_key.get_mut(&(one.process_id, one.incarnation)) else { continue };
        process.name.clone_from(&one.name);
        process.command_line.clone_from(&one.command_line);
    }
    let mut list: Vec<ProcessCount> = by_key.into_values().collect();
    list.sort_by_key(|p| std::cmp::Reverse(p.events));
    list
}
