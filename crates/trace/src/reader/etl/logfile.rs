//! The first event of a file: `TRACE_LOGFILE_HEADER`, what the session was and how its clock runs.
//!
//! The header has two forms, because two pointers of the process that wrote it are in the middle.
//! Source: `evntrace.h` of the SDK; offsets and facts checked on files of Windows Vista to 11.

use nom::Parser;

use crate::bytes::{Parsed, i64le, take, u8le, u32le};
use crate::time::{Clock, FILE_TIME_UNIX_EPOCH as UNIX_EPOCH};
use crate::utf16;

/// Log mode: old buffers are overwritten.
const MODE_CIRCULAR: u32 = 0x2;
/// Log mode: all processors shared their buffers.
const MODE_NO_PER_PROCESSOR: u32 = 0x1000_0000;

/// The header of a log file.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the fields go by the names of the structure in evntrace.h")]
pub struct LogFile {
    pub buffer_size: u32,
    pub os: (u8, u8),
    pub version: (u8, u8),
    pub build: u32,
    pub processors: u32,
    pub end_time: i64,
    pub mode: u32,
    pub buffers_written: u32,
    pub pointer_size: u32,
    pub events_lost: u32,
    pub cpu_mhz: u32,
    pub boot_time: i64,
    pub frequency: i64,
    pub start_time: i64,
    pub clock_type: u32,
    pub buffers_lost: u32,
    pub logger_name: String,
    pub file_name: String,
}

impl LogFile {
    /// Reads the payload of the header event, written with pointers of `width` bytes.
    pub fn parse(payload: &[u8], width: usize) -> Parsed<'_, LogFile> {
        let session = (
            u32le("BufferSize"),
            (u8le("OsMajorVersion"), u8le("OsMinorVersion")),
            (u8le("LogMajorVersion"), u8le("LogMinorVersion")),
            u32le("ProviderVersion"),
            u32le("NumberOfProcessors"),
            i64le("EndTime"),
            take(8, "TimerResolution, MaximumFileSize"),
            u32le("LogFileMode"),
            u32le("BuffersWritten"),
            u32le("StartBuffers"),
            u32le("PointerSize"),
            u32le("EventsLost"),
            u32le("CpuSpeedInMHz"),
            take(2 * width, "LoggerName, LogFileName"),
        );
        let clock = (
            take(0xAC, "TimeZone"),
            // The 64-bit form aligns what follows to 8 bytes; both forms have 4 bytes of padding here.
            take(4, "padding"),
            i64le("BootTime"),
            i64le("PerfFreq"),
            i64le("StartTime"),
            u32le("ReservedFlags"),
            u32le("BuffersLost"),
        );
        let (input, (session, clock, logger_name, file_name)) = (session, clock, name, name).parse(payload)?;
        let (buffer_size, os, version, build, processors, end_time, _, mode, buffers_written, ..) = session;
        let (.., pointer_size, events_lost, cpu_mhz, _) = session;
        let (_, _, boot_time, frequency, start_time, clock_type, buffers_lost) = clock;
        let header = LogFile {
            buffer_size,
            os,
            version,
            build,
            processors,
            end_time,
            mode,
            buffers_written,
            pointer_size,
            events_lost,
            cpu_mhz,
            boot_time,
            frequency,
            start_time,
            clock_type,
            buffers_lost,
            logger_name,
            file_name,
        };
        Ok((input, header))
    }

    /// Whether the number of a buffer is that of the processor.
    pub fn knows_processors(&self) -> bool {
        self.mode & MODE_NO_PER_PROCESSOR == 0
    }

    /// Whether its times are those of the calendar, not of a counter.
    pub fn is_utc(&self) -> bool {
        self.clock_type == 2
    }

    /// The number of written buffers that are missing. 0 for a session that was not closed (its number is not final)
    /// and for one that overwrites old buffers.
    pub fn missing_buffers(&self, found: u64) -> u64 {
        let says = self.end_time != 0 && self.mode & MODE_CIRCULAR == 0;
        if says { u64::from(self.buffers_written).saturating_sub(found) } else { 0 }
    }

    /// The clock, and whether its frequency had to be made up. `first` is the time of the header event.
    pub fn clock(&self, first: i64) -> (Clock, bool) {
        let frequency = match self.clock_type {
            2 => 10_000_000,
            3 => i64::from(self.cpu_mhz) * 1_000_000,
            _ => self.frequency,
        };
        let made_up = frequency <= 0;
        let frequency = if made_up { 10_000_000 } else { frequency };
        (Clock { sync_ticks: first, sync_utc_ns: self.start_utc_ns().unwrap_or_default(), frequency }, made_up)
    }

    /// Start in nanoseconds since 1970; `None` when it is out of range.
    pub fn start_utc_ns(&self) -> Option<i64> {
        utc_ns(self.start_time).filter(|_| self.start_time > 0)
    }

    /// Values without a field of their own in the header of other formats.
    pub fn key_values(&self) -> Vec<(String, String)> {
        let time = |value: i64| match utc_ns(value).filter(|_| value > 0) {
            Some(ns) => crate::time::format_utc(ns),
            None => String::new(),
        };
        let clock = match self.clock_type {
            2 => "system time",
            3 => "processor cycles",
            _ => "performance counter",
        };
        let pairs = [
            ("logger_name", self.logger_name.clone()),
            ("log_file_name", self.file_name.clone()),
            ("os_version", format!("{}.{}.{}", self.os.0, self.os.1, self.build)),
            ("clock", clock.to_owned()),
            ("boot_time", time(self.boot_time)),
            ("end_time", time(self.end_time)),
            ("log_file_mode", format!("{:#x}", self.mode)),
            ("buffer_size_bytes", self.buffer_size.to_string()),
            ("buffers_written", self.buffers_written.to_string()),
            ("buffers_lost", self.buffers_lost.to_string()),
            ("events_lost", self.events_lost.to_string()),
        ];
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

fn utc_ns(file_time: i64) -> Option<i64> {
    file_time.checked_sub(UNIX_EPOCH)?.checked_mul(100)
}

/// A zero-terminated name, or what is left when there is no terminator.
fn name(input: &[u8]) -> Parsed<'_, String> {
    let end = utf16::end(input).unwrap_or(input.len() / 2 * 2);
    let text = utf16::string(input.get(..end).unwrap_or_default());
    Ok((input.get(end + 2..).unwrap_or_default(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_that_cannot_be_are_made_up() {
        let clock = |frequency, clock_type| {
            let header = LogFile { frequency, clock_type, cpu_mhz: 3000, ..LogFile::default() };
            let (clock, made_up) = header.clock(5);
            (clock.frequency, made_up)
        };
        assert_eq!(clock(0, 1), (10_000_000, true));
        assert_eq!(clock(-1, 0), (10_000_000, true));
        assert_eq!(clock(2_109_960, 1), (2_109_960, false));
        assert_eq!(clock(0, 2), (10_000_000, false));
        assert_eq!(clock(1, 3), (3_000_000_000, false));
    }

    #[test]
    fn times_out_of_range_are_none() {
        let start = |start_time| LogFile { start_time, ..LogFile::default() }.start_utc_ns();
        assert_eq!(start(UNIX_EPOCH + 1), Some(100));
        assert_eq!((start(0), start(i64::MIN), start(i64::MAX)), (None, None, None));
    }
}
