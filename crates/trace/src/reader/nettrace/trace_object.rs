//! The header of a recording: the Trace object of V3 to V5 and the bare header of V1 and V2.
//! Source: `NetTraceFormat_v5.md`, "The First Object: The Trace Object"; V1 and V2 from files.

use nom::multi::fill;

use super::state::NettraceState;
use crate::bytes::{Parsed, i64le, u16le, u32le};
use crate::prelude::*;
use crate::reader::{NETTRACE_CONTAINER, Order, TraceInfo, Visitor};
use crate::time::{Clock, system_time_to_utc_ns};

/// `SyncTimeUTC:SYSTEMTIME SyncTimeQPC:i64 QPCFrequency:i64`, which every version begins with; and whether the
/// SYSTEMTIME is a valid date.
pub fn clock(input: &[u8]) -> Parsed<'_, (Clock, bool)> {
    let mut date = [0; 8];
    let (input, ()) = fill(u16le("SyncTimeUTC"), &mut date).parse(input)?;
    let (input, (sync_ticks, frequency)) = (i64le("SyncTimeQPC"), i64le("QPCFrequency")).parse(input)?;
    let sync_utc_ns = system_time_to_utc_ns(date);
    let clock = Clock { sync_ticks, sync_utc_ns: sync_utc_ns.unwrap_or_default(), frequency };
    Ok((input, (clock, sync_utc_ns.is_some())))
}

/// Length of the V3 to V5 header's fields in bytes.
pub const FIELDS_LEN: usize = 48;
/// Length of the V1 and V2 header's fields in bytes.
pub const FLAT_FIELDS_LEN: usize = 32;

/// The fields of the Trace object.
pub fn fields(input: &[u8], version: u32) -> Parsed<'_, TraceInfo> {
    let (rest, (clock, start_known)) = clock(input)?;
    let (rest, (pointer_size, process_id, processors, sampling)) =
        (u32le("PointerSize"), u32le("ProcessId"), u32le("NumberOfProcessors"), u32le("ExpectedCPUSamplingRate"))
            .parse(rest)?;
    let info = TraceInfo {
        container: if version == 3 { "netperf" } else { NETTRACE_CONTAINER },
        version,
        minor: 0,
        clock,
        start_known,
        pointer_size: u8::try_from(pointer_size).unwrap_or_default(),
        process_id: u64::from(process_id),
        processor_count: u64::from(processors),
        sampling_ns: u64::from(sampling),
        key_values: Vec::new(),
    };
    Ok((rest, info))
}

/// The header of V1 and V2, which knows no process and no pointer size: these versions were 64-bit only.
pub fn flat_fields(input: &[u8], version: u32) -> Parsed<'_, TraceInfo> {
    let (rest, (clock, start_known)) = clock(input)?;
    let info = TraceInfo { container: "netperf", version, clock, start_known, pointer_size: 8, ..TraceInfo::default() };
    Ok((rest, info))
}

/// Refuses a header that nothing behind it could be read with.
fn check(info: &TraceInfo, path: &Path, offset: u64) -> Result<()> {
    let refuse = |what: String, expected: &str| {
        Err(Error::Unreadable { path: path.to_owned(), offset, what, expected: expected.into() })
    };
    if info.clock.frequency <= 0 {
        return refuse(format!("clock frequency {}", info.clock.frequency), "a frequency above 0");
    }
    if !matches!(info.pointer_size, 4 | 8) {
        return refuse(format!("pointer size {}", info.pointer_size), "4 or 8");
    }
    Ok(())
}

/// Begins to read what is behind a header that lies at `offset`: hands it on, with a note when the start of the recording is not
/// known. Fails for one that nothing could be read with.
pub fn begin<'a, 'v>(
    info: &TraceInfo,
    path: &Path,
    offset: u64,
    order: Order,
    visitor: &'v mut dyn Visitor,
) -> Result<NettraceState<'a, 'v>> {
    check(info, path, offset)?;
    visitor.trace(info);
    let mut state = NettraceState::new(visitor, order, info);
    if !info.start_known {
        let message = "the header's start time is not a valid date; times of day count from 1970";
        state.problem(Problem::error("bad_start_time", offset, message));
    }
    Ok(state)
}
