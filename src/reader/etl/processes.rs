//! The processes that the kernel tells of: who ran, under which name, from when to when.
//!
//! ```text
//!  P key   u32 process   u32 parent   u32 session   i32 exit status   [P page directory, from version 3]
//!  [u32 flags, from version 4]   SID   name, 8 bits   command line, UTF-16
//! ```
//! Source: `Process_TypeGroup1` of the NT kernel logger's MOF classes; checked on files of Windows Vista to 11.

use super::header::Head;
use crate::bytes::{Parsed, fail, take, u32le, utf16_string, utf16z};
use crate::reader::Process;

/// What the event says of a process, when it is one of those that do.
pub fn of_event(head: &Head, class: &crate::guid::Guid, payload: &[u8]) -> Option<Process> {
    // Begin, end, and the lists at the start and at the end of the session.
    let is_process = Some(*class) == super::header::class_of(3, 1) && matches!(head.opcode, 1..=4);
    if !is_process || !(2..=5).contains(&head.version) {
        return None;
    }
    let (_, mut process) = parse(head, payload).ok()?;
    match head.opcode {
        1 => process.start_ticks = head.ticks,
        2 => process.end_ticks = head.ticks,
        _ => {}
    }
    // Of a process that still runs the field means nothing.
    process.exit_code = process.exit_code.filter(|_| head.opcode == 2);
    Some(process)
}

fn parse<'p>(head: &Head, payload: &'p [u8]) -> Parsed<'p, Process> {
    let pointer = usize::from(head.pointer_size);
    let (rest, _) = take(pointer, "UniqueProcessKey")(payload)?;
    let (rest, process_id) = u32le("ProcessId")(rest)?;
    let (rest, parent_id) = u32le("ParentId")(rest)?;
    let (rest, _) = u32le("SessionId")(rest)?;
    let (rest, exit_code) = u32le("ExitStatus")(rest)?;
    let (rest, _) = take(if head.version >= 3 { pointer } else { 0 }, "DirectoryTableBase")(rest)?;
    let (rest, _) = take(if head.version >= 4 { 4 } else { 0 }, "Flags")(rest)?;
    let rest = sid(rest, pointer)?;
    let Some(end) = rest.iter().position(|b| *b == 0) else {
        return Err(fail(rest.len(), "ImageFileName", "a zero behind the name"));
    };
    let (name, rest) = (rest.get(..end).unwrap_or_default(), rest.get(end + 1..).unwrap_or_default());
    let (rest, command_line) = utf16z("CommandLine")(rest)?;
    let process = Process {
        process_id: process_id.into(),
        parent_id: parent_id.into(),
        name: String::from_utf8_lossy(name).into_owned(),
        command_line: utf16_string(command_line),
        exit_code: Some(exit_code.cast_signed()),
        ..Process::default()
    };
    Ok((rest, process))
}

/// What follows a security identifier: two pointers and the identifier, or four zero bytes.
fn sid(input: &[u8], pointer: usize) -> Result<&[u8], nom::Err<crate::bytes::ParseError>> {
    if let Some((&[0, 0, 0, 0], rest)) = input.split_first_chunk::<4>() {
        return Ok(rest);
    }
    let (rest, _) = take(2 * pointer, "TOKEN_USER")(input)?;
    let parts = rest.get(1).copied().unwrap_or_default();
    Ok(take(8 + 4 * usize::from(parts), "Sid")(rest)?.0)
}
