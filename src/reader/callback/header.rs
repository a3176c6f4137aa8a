//! The header of a recording.

use super::format::{HEADER_FIXED, Header, MAGIC, MAJOR, MAX_HEADER, crc32};
use crate::bytes::{Parsed, fail, i64le, take, u8le, u16le, u32le, u64le};

/// What could be read of a header.
#[derive(Debug)]
pub struct ReadHeader {
    /// Its fields.
    pub header: Header,
    /// Minor version.
    pub minor: u16,
    /// Its length.
    pub len: usize,
    /// Whether its CRC is right.
    pub intact: bool,
}

/// Reads the header at the start of `bytes`.
pub fn header(bytes: &[u8]) -> Parsed<'_, ReadHeader> {
    let (rest, magic) = take(8, "magic")(bytes)?;
    if magic != MAGIC {
        return Err(fail(bytes.len(), "magic", "\".corprof\""));
    }
    let (rest, major) = u16le("version")(rest)?;
    if major != MAJOR {
        return Err(fail(bytes.len() - 8, "version", "1"));
    }
    let (rest, minor) = u16le("minor version")(rest)?;
    let (rest, len) = u32le("header length")(rest)?;
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if !(HEADER_FIXED..=MAX_HEADER).contains(&len) {
        return Err(fail(rest.len() + 4, "header length", "104 to 1048576"));
    }
    let (_, whole) = take(len, "header")(bytes)?;
    let (_, crc) = u32le("header CRC")(rest)?;
    let parts = (whole.get(..16).unwrap_or_default(), whole.get(20..).unwrap_or_default());
    let intact = crc32(crc32(crc32(0, parts.0), &[0; 4]), parts.1) == crc;
    let (_, header) = fields(whole.get(20..).unwrap_or_default())?;
    Ok((rest, ReadHeader { header, minor, len, intact }))
}

fn fields(input: &[u8]) -> Parsed<'_, Header> {
    let (rest, chunk_align) = u32le("chunk alignment")(input)?;
    if !chunk_align.is_power_of_two() || !(8..=1 << 20).contains(&chunk_align) {
        return Err(fail(input.len(), "chunk alignment", "a power of two from 8 to 1048576"));
    }
    let (next, pointer_size) = u8le("pointer size")(rest)?;
    if !matches!(pointer_size, 4 | 8) {
        return Err(fail(rest.len(), "pointer size", "4 or 8"));
    }
    let (rest, os) = u8le("OS")(next)?;
    let (rest, arch) = u8le("architecture")(rest)?;
    let (rest, attached) = u8le("attached")(rest)?;
    let (rest, processors) = u32le("processors")(rest)?;
    let (rest, process_id) = u64le("process id")(rest)?;
    let (rest, process_start_utc_ns) = i64le("process start")(rest)?;
    let (next, frequency) = u64le("clock frequency")(rest)?;
    if frequency == 0 || i64::try_from(frequency).is_err() {
        return Err(fail(rest.len(), "clock frequency", "1 to 2^63 - 1"));
    }
    let (rest, start_ticks) = u64le("start ticks")(next)?;
    let (mut rest, start_utc_ns) = i64le("start UTC")(rest)?;
    let mut masks = [0; 4];
    for mask in &mut masks {
        (rest, *mask) = u32le("event mask")(rest)?;
    }
    let (rest, callback_version) = u16le("callback interface")(rest)?;
    let (rest, info_version) = u16le("info interface")(rest)?;
    let (rest, policy) = u32le("policy")(rest)?;
    let (rest, clr_instance_id) = u16le("CLR instance id")(rest)?;
    let (rest, runtime_kind) = u16le("runtime kind")(rest)?;
    let (mut rest, _) = u32le("reserved")(rest)?;
    let mut texts: [String; 5] = Default::default();
    for text in &mut texts {
        let (next, len) = u32le("text length")(rest)?;
        let (next, bytes) = take(usize::try_from(len).unwrap_or(usize::MAX), "text")(next)?;
        *text = String::from_utf8_lossy(bytes).into_owned();
        rest = next;
    }
    let [asked_low, asked_high, granted_low, granted_high] = masks;
    let [clock_name, command_line, runtime_path, runtime_version, profiler] = texts;
    let header = Header {
        chunk_align,
        pointer_size,
        os,
        arch,
        attached: attached & 1 != 0,
        processors,
        process_id,
        process_start_utc_ns,
        frequency,
        start_ticks,
        start_utc_ns,
        asked: [asked_low, asked_high],
        granted: [granted_low, granted_high],
        callback_version,
        info_version,
        policy,
        clr_instance_id,
        runtime_kind,
        clock_name,
        command_line,
        runtime_path,
        runtime_version,
        profiler,
    };
    Ok((rest, header))
}
