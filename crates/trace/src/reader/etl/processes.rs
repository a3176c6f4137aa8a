//! The processes that kernel events describe: name, command line, parent, start and end.
//!
//! Source: the layouts of the class Process in the catalogue.

use super::header::{self, Head};
use super::kernel_layouts::KernelLayouts;
use crate::guid::Guid;
use crate::reader::Process;
use crate::utf16;

/// Opcodes of the class Process.
const START: u8 = 1;
const END: u8 = 2;
/// The lists at the start and the end of the session.
const RUNDOWN_START: u8 = 3;
const RUNDOWN_END: u8 = 4;
/// In the lists: a process that has ended, but to which another one has a handle.
const DEFUNCT: u8 = 39;

/// The process that an event of this class describes; `None` when it is another event, or its payload is not whole.
pub fn of_event(head: &Head, class: &Guid, payload: &[u8]) -> Option<Process> {
    let describes = matches!(head.opcode, START | END | RUNDOWN_START | RUNDOWN_END | DEFUNCT);
    if !describes || Some(*class) != header::class_of(0x03, START) {
        return None;
    }
    let layout = KernelLayouts::get().of_class(*class, head.opcode, head.version)?;
    let (mut process, mut is_whole) = (Process::default(), false);
    for (name, bytes) in layout.fields(payload, head.pointer_size) {
        let word = || bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        match name {
            "ProcessId" => process.process_id = word().into(),
            "ParentId" => process.parent_id = word().into(),
            // Of a process that still runs the field means nothing.
            "ExitStatus" if matches!(head.opcode, END | DEFUNCT) => process.exit_code = Some(word().cast_signed()),
            "ImageFileName" => process.name = String::from_utf8_lossy(bytes).into_owned(),
            "CommandLine" => {
                process.command_line = utf16::string(bytes);
                is_whole = true;
            }
            _ => {}
        }
    }
    match head.opcode {
        START => process.start_ticks = head.ticks,
        END => process.end_ticks = head.ticks,
        _ => {}
    }
    is_whole.then_some(process)
}
