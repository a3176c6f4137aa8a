//! Whom a kernel event is about. Its header names the thread that wrote it, or none at all (PERFINFO); the process and
//! the thread that it speaks of stand in its payload.
//!
//! Source: the MOF classes of the NT kernel logger; `TraceEvent` replaces the ids of the header in the same way.

use super::header::{Head, NO_ID};
use crate::guid::Guid;

/// Groups of kernel events.
const EVENT_TRACE: u8 = 0x00;
const DISK_IO: u8 = 0x01;
const PAGE_FAULT: u8 = 0x02;
const PROCESS: u8 = 0x03;
pub const THREAD: u8 = 0x05;
const TCP_IP: u8 = 0x06;
const UDP_IP: u8 = 0x08;
const SYSTEM_CONFIG: u8 = 0x0B;
const PERF_INFO: u8 = 0x0F;
const IMAGE: u8 = 0x14;
/// b3e675d7-2554-4f18-830b-2762732560de and 9b79ee91-b5fd-41c0-a243-4248e266e9d0: what the merge step adds about images and
/// about the machine. Their headers say nothing.
const IMAGE_ID: Guid =
    Guid([0xD7, 0x75, 0xE6, 0xB3, 0x54, 0x25, 0x18, 0x4F, 0x83, 0x0B, 0x27, 0x62, 0x73, 0x25, 0x60, 0xDE]);
const VOLUME_MAPPING: Guid =
    Guid([0x91, 0xEE, 0x79, 0x9B, 0xFD, 0xB5, 0xC0, 0x41, 0xA2, 0x43, 0x42, 0x48, 0xE2, 0x66, 0xE9, 0xD0]);
/// Stacks that are events of their own.
pub const STACK_WALK: u8 = 0x18;

/// Ids of the process and the thread that an event is about; [`NO_ID`] where it is about none in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Process; [`NO_ID`] also when only the thread is said.
    pub process_id: u32,
    /// Thread.
    pub thread_id: u32,
}

/// Of an event that no layout here holds for: what its header says.
pub fn of(head: &Head, payload: &[u8]) -> Subject {
    let writer = Subject { process_id: head.process_id, thread_id: head.thread_id };
    let is_merged = [IMAGE_ID, VOLUME_MAPPING].map(Some).contains(&head.guid);
    if !head.is_kernel && !is_merged {
        return writer;
    }
    let pointer = usize::from(head.pointer_size);
    let word = |at: usize| payload.get(at..).and_then(|b| b.first_chunk()).map(|b| u32::from_le_bytes(*b));
    let thread = |at: usize| word(at).map(|thread_id| Subject { process_id: NO_ID, thread_id });
    let both = |at: usize| Some(Subject { process_id: word(at)?, thread_id: word(at + 4)? });
    // The thread of the header stays when it is one of the process that is spoken of.
    let process = |at: usize| {
        let process_id = word(at)?;
        let thread_id = if process_id == head.process_id { head.thread_id } else { NO_ID };
        Some(Subject { process_id, thread_id })
    };
    let machine = Subject { process_id: NO_ID, thread_id: NO_ID };
    let said = match (head.group, head.opcode) {
        (_, 0) if head.guid == Some(IMAGE_ID) => process(2 * pointer),
        (_, 36 | 37) if head.guid == Some(IMAGE_ID) => process(pointer),
        _ if is_merged => Some(machine),
        (EVENT_TRACE | SYSTEM_CONFIG, _) => Some(machine),
        (PROCESS, 1..=4 | 39) if head.version >= 1 => process(pointer),
        (PROCESS, 32 | 33) if head.version >= 2 => process(0),
        (PROCESS, 10) | (IMAGE, 2..=4) if head.version >= 1 => process(2 * pointer),
        (THREAD, 1..=4 | 72) => both(0),
        // The thread that runs from here on.
        (THREAD, 36) => thread(0),
        (PERF_INFO, 46) => thread(pointer),
        (PAGE_FAULT, 32) => thread(16 + 2 * pointer),
        (DISK_IO, 10 | 11) if head.version >= 3 => thread(32 + 2 * pointer),
        (DISK_IO, 12 | 13 | 15) => thread(pointer),
        (TCP_IP | UDP_IP, _) if head.version >= 1 => process(0),
        (STACK_WALK, 32 | 37 | 38) => both(8),
        _ => None,
    };
    said.unwrap_or(writer)
}
