//! The header of a recording.

use nom::Parser;
use nom::multi::fill;

use super::parse::expect;
use crate::bytes::{Parsed, i64le, inner, take, u8le, u16le, u32le, u64le};
use corprof::{HEADER_FIXED, Header, MAGIC, MAJOR, MAX_HEADER, crc32};

/// The readable part of a header.
#[derive(Debug)]
pub struct ReadHeader {
    /// The fields.
    pub header: Header,
    /// Minor version.
    pub minor: u16,
    /// The length in bytes.
    pub len: usize,
    /// Whether its CRC is right.
    pub intact: bool,
}

/// Why a header cannot be used.
#[derive(Debug)]
pub struct HeaderError {
    /// Byte offset of the field.
    pub offset: u64,
    /// The name of the field.
    pub field: &'static str,
    /// The value that was expected there.
    pub expected: &'static str,
}

/// The fields before the others: the length of the header, and its CRC.
struct Frame {
    minor: u16,
    len: usize,
    crc: u32,
}

/// Bytes of a [`Frame`].
const FRAME: usize = 20;

fn frame(input: &[u8]) -> Parsed<'_, Frame> {
    let (rest, (_, _, minor, len, crc)) = (
        expect(take(MAGIC.len(), "magic"), "magic", "\".corprof\"", |magic| *magic == MAGIC),
        expect(u16le("version"), "version", "1", |major| *major == MAJOR),
        u16le("minor version"),
        expect(u32le("header length"), "header length", "104 to 1048576", |len| {
            (HEADER_FIXED..=MAX_HEADER).contains(&(*len as usize))
        }),
        u32le("header CRC"),
    )
        .parse(input)?;
    Ok((rest, Frame { minor, len: len as usize, crc }))
}

fn text(input: &[u8]) -> Parsed<'_, String> {
    let (rest, len) = u32le("text length")(input)?;
    let (rest, bytes) = take(len as usize, "text")(rest)?;
    Ok((rest, String::from_utf8_lossy(bytes).into_owned()))
}

/// The fields behind the frame.
fn fields(input: &[u8]) -> Parsed<'_, Header> {
    const ALIGNMENT: &str = "a power of two from 8 to 1048576";
    let (rest, (chunk_align, pointer_size, os, arch, attached, processors)) = (
        expect(u32le("chunk alignment"), "chunk alignment", ALIGNMENT, |align| {
            align.is_power_of_two() && (8..=1 << 20).contains(align)
        }),
        expect(u8le("pointer size"), "pointer size", "4 or 8", |size| matches!(size, 4 | 8)),
        u8le("OS"),
        u8le("architecture"),
        u8le("attached"),
        u32le("processors"),
    )
        .parse(input)?;
    let (rest, (process_id, process_start_utc_ns, frequency, start_ticks, start_utc_ns)) = (
        u64le("process id"),
        i64le("process start"),
        expect(u64le("clock frequency"), "clock frequency", "1 to 2^63 - 1", |frequency| {
            *frequency > 0 && i64::try_from(*frequency).is_ok()
        }),
        u64le("start ticks"),
        i64le("start UTC"),
    )
        .parse(rest)?;
    let (mut asked, mut granted) = ([0; 2], [0; 2]);
    let (rest, (_, _, callback_version, info_version, policy, clr_instance_id, runtime_kind, _)) = (
        fill(u32le("event mask asked for"), &mut asked),
        fill(u32le("event mask granted"), &mut granted),
        u16le("callback interface"),
        u16le("info interface"),
        u32le("policy"),
        u16le("CLR instance id"),
        u16le("runtime kind"),
        u32le("reserved"),
    )
        .parse(rest)?;
    let (rest, (clock_name, command_line, runtime_path, runtime_version, profiler)) =
        (text, text, text, text, text).parse(rest)?;
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
        asked,
        granted,
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

/// Reads the header at the start of `bytes`.
pub fn header(bytes: &[u8]) -> Result<ReadHeader, HeaderError> {
    // The offset of a field follows from what was left of the bytes that its parser began with.
    let failed = |start: usize, len: usize| {
        move |error| {
            let error = inner(error);
            HeaderError { offset: error.offset(start as u64, len), field: error.field(), expected: error.expected() }
        }
    };
    let (_, Frame { minor, len, crc }) = frame(bytes).map_err(failed(0, bytes.len()))?;
    let (_, whole) = take(len, "header")(bytes).map_err(failed(0, bytes.len()))?;
    let behind = whole.get(FRAME..).unwrap_or_default();
    let before = whole.get(..FRAME - 4).unwrap_or_default();
    let intact = crc32(crc32(crc32(0, before), &[0; 4]), behind) == crc;
    let (_, header) = fields(behind).map_err(failed(FRAME, behind.len()))?;
    Ok(ReadHeader { header, minor, len, intact })
}
