//! The process and thread that a kernel event is about. Its header names the thread that wrote it, or none (PERFINFO);
//! the process and thread that it describes are in its payload.
//!
//! Source: the layouts of the catalogue; `TraceEvent` replaces the ids of the header in the same way.

use super::header::{Head, NO_ID};
use super::kernel_layouts::{IMAGE_ID, KernelLayouts};
use crate::guid::Guid;

/// Groups of kernel events.
const EVENT_TRACE: u8 = 0x00;
const TCP_IP: u8 = 0x06;
const UDP_IP: u8 = 0x08;
const SYSTEM_CONFIG: u8 = 0x0B;
/// Threads.
pub const THREAD: u8 = 0x05;
/// Samples, interrupts and system calls.
pub const PERF_INFO: u8 = 0x0F;
/// A system call begins, and ends.
const SYSTEM_CALLS: [u8; 2] = [51, 52];
/// Stacks that are events of their own.
pub const STACK_WALK: u8 = 0x18;
/// The provider of what the merge step adds about the machine.
const VOLUME_MAPPING: Guid = Guid::constant("9b79ee91-b5fd-41c0-a243-4248e266e9d0");

/// Schemas that the merge step adds; opcode 32 is one `TRACE_EVENT_INFO`.
pub const EVENT_INFO: Guid = Guid::constant("bbccf6c1-6cd1-48c4-80ff-839482e37671");
/// Groups and opcodes of lists. The thread that begins or ends the session writes them while it is attached to each
/// process in turn, so that its id says nothing of the process.
const PROCESS: u8 = 0x03;
const IMAGE: u8 = 0x14;
const LISTS: [(u8, u8); 6] = [(PROCESS, 3), (PROCESS, 4), (PROCESS, 33), (PROCESS, 39), (IMAGE, 3), (IMAGE, 4)];

/// Whether the merge step added the event. It was no event of the session.
pub fn is_added_by_merge(head: &Head) -> bool {
    !head.is_kernel && matches!(head.guid, Some(IMAGE_ID | VOLUME_MAPPING | EVENT_INFO))
}

/// Whether the event is about the thread that runs on its processor, which it does not name.
pub fn is_of_running_thread(head: &Head) -> bool {
    head.is_kernel && head.group == PERF_INFO && SYSTEM_CALLS.contains(&head.opcode)
}

/// Ids of the process and the thread that an event is about; [`NO_ID`] where it is about none in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Process; [`NO_ID`] also when only the thread is known.
    pub process_id: u32,
    /// Thread.
    pub thread_id: u32,
}

/// The subject of an event: by its layout, or else the ids of its header.
pub fn subject_of(head: &Head, payload: &[u8]) -> Subject {
    let writer = Subject { process_id: head.process_id, thread_id: head.thread_id };
    let machine = Subject { process_id: NO_ID, thread_id: NO_ID };
    let layouts = KernelLayouts::get();
    let layout = match head.guid {
        _ if head.is_kernel => match head.group {
            EVENT_TRACE | SYSTEM_CONFIG => return machine,
            _ => layouts.of_kernel(head),
        },
        Some(IMAGE_ID) => layouts.of_class(IMAGE_ID, head.opcode, head.version),
        Some(VOLUME_MAPPING) => return machine,
        _ => return writer,
    };
    let Some(layout) = layout else {
        return match head.group {
            // All of these begin with the process, also those that are not in the catalogue.
            TCP_IP | UDP_IP if head.is_kernel && head.version >= 1 => of_process(head, payload, 0).unwrap_or(writer),
            _ if head.is_kernel => writer,
            _ => machine,
        };
    };
    let offsets = layout.offsets(head.pointer_size);
    let subject = match (offsets.process_id, offsets.thread_id) {
        (Some(process), Some(thread)) => both(payload, process, thread),
        (Some(process), None) => of_process(head, payload, process),
        (None, Some(thread)) => word(payload, thread).map(|thread_id| Subject { process_id: NO_ID, thread_id }),
        (None, None) if head.is_kernel => None,
        (None, None) => Some(machine),
    };
    subject.unwrap_or(writer)
}

fn both(payload: &[u8], process: u16, thread: u16) -> Option<Subject> {
    Some(Subject { process_id: word(payload, process)?, thread_id: word(payload, thread)? })
}

/// The thread of the header stays when it belongs to the process that the event is about.
fn of_process(head: &Head, payload: &[u8], process: u16) -> Option<Subject> {
    let process_id = word(payload, process)?;
    let is_list = is_added_by_merge(head) || LISTS.contains(&(head.group, head.opcode));
    let thread_id = if process_id == head.process_id && !is_list { head.thread_id } else { NO_ID };
    Some(Subject { process_id, thread_id })
}

fn word(payload: &[u8], at: u16) -> Option<u32> {
    payload.get(usize::from(at)..).and_then(|rest| rest.first_chunk()).map(|bytes| u32::from_le_bytes(*bytes))
}
