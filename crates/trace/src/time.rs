//! Clocks: ticks of a recording to nanoseconds since its start and to UTC.

use chrono::{DateTime, Datelike, NaiveDate, Timelike};

/// The clock of one recording: a moment known both in ticks and in UTC, and how long a tick is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Tick count at the moment the recording began.
    pub sync_ticks: i64,
    /// The synchronized moment in nanoseconds since 1970 (UTC). EventPipe gives it to a millisecond.
    pub sync_utc_ns: i64,
    /// Ticks in one second; greater than zero.
    pub frequency: i64,
}

/// Nanoseconds from the beginning of a recording, whose moment is not known.
impl Default for Clock {
    fn default() -> Clock {
        Clock { sync_ticks: 0, sync_utc_ns: 0, frequency: 1_000_000_000 }
    }
}

impl Clock {
    /// Nanoseconds from the start of the recording to `ticks`, rounded down; `None` outside of 64 bits.
    #[inline]
    pub fn since_start(&self, ticks: i64) -> Option<i64> {
        let distance = ticks.checked_sub(self.sync_ticks);
        if self.frequency == 1_000_000_000
            && let Some(distance) = distance
        {
            return Some(distance);
        }
        let distance = i128::from(ticks) - i128::from(self.sync_ticks);
        let ns = (distance * 1_000_000_000).div_euclid(i128::from(self.frequency.max(1)));
        i64::try_from(ns).ok()
    }

    /// The ticks for which [`Clock::since_start`] and, from that, [`Clock::utc_ns`] have a value.
    pub fn range(&self) -> std::ops::RangeInclusive<i64> {
        let (frequency, sync) = (i128::from(self.frequency.max(1)), i128::from(self.sync_ticks));
        let first_at_or_above = |ns: i128| -(-ns * frequency).div_euclid(1_000_000_000) + sync;
        let clamp = |ticks: i128| i64::try_from(ticks).unwrap_or(if ticks < 0 { i64::MIN } else { i64::MAX });
        let utc = i128::from(self.sync_utc_ns);
        let (least, most) = (i128::from(i64::MIN) - utc.min(0), i128::from(i64::MAX) - utc.max(0));
        let (first, end) = (first_at_or_above(least), first_at_or_above(most + 1));
        clamp(first)..=clamp(end - 1)
    }

    /// The ticks that another clock has at the moment when this one has `ticks`, both in UTC; clamped to 64 bits.
    pub fn translate(&self, ticks: i64, other: &Clock) -> i64 {
        let own = i128::from(self.frequency.max(1));
        let ns = (i128::from(ticks) - i128::from(self.sync_ticks)) * 1_000_000_000 / own + i128::from(self.sync_utc_ns);
        let since = (ns - i128::from(other.sync_utc_ns)) * i128::from(other.frequency) / 1_000_000_000;
        let ticks = since + i128::from(other.sync_ticks);
        i64::try_from(ticks).unwrap_or(if ticks < 0 { i64::MIN } else { i64::MAX })
    }

    /// Nanoseconds since 1970 (UTC) of a moment `since_start` nanoseconds into the recording.
    #[inline]
    pub fn utc_ns(&self, since_start: i64) -> Option<i64> {
        self.sync_utc_ns.checked_add(since_start)
    }
}

/// A SYSTEMTIME (year, month, day of week, day, hour, minute, second, millisecond; all UTC) as nanoseconds since 1970.
/// The day of the week is ignored: writers get it wrong. `None` when a field is out of range.
pub fn system_time_to_utc_ns(fields: [u16; 8]) -> Option<i64> {
    let [year, month, _, day, hour, minute, second, ms] = fields.map(u32::from);
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok().filter(|year| (1..=9999).contains(year))?, month, day)?;
    // A leap second is the first one of the next minute.
    let at = date.and_hms_milli_opt(hour, minute, second.min(59), ms)?.and_utc().timestamp_millis();
    let leap = (second == 60).then_some(1000).or((second < 60).then_some(0))?;
    at.checked_add(leap)?.checked_mul(1_000_000)
}

/// 1970-01-01 in 100-nanosecond units since 1601 (FILETIME).
pub const FILE_TIME_UNIX_EPOCH: i64 = 116_444_736_000_000_000;

/// 100-nanosecond units since 1601 (FILETIME) as microseconds since 1970; `None` outside of the calendar's years
/// 1 to 9999.
pub fn file_time_to_utc_us(file_time: u64) -> Option<i64> {
    const LAST: u64 = 2_650_467_743_999_999_999;
    if file_time > LAST {
        return None;
    }
    i64::try_from((i128::from(file_time) - i128::from(FILE_TIME_UNIX_EPOCH)).div_euclid(10)).ok()
}

/// Nanoseconds since 1970 as `2026-11-20T18:12:29.912Z` (milliseconds, as good as EventPipe's start time is).
pub fn format_utc(utc_ns: i64) -> String {
    let at = DateTime::from_timestamp_nanos(utc_ns);
    let (date, time, ms) = (at.date_naive(), at.time(), at.timestamp_subsec_millis());
    let (year, month, day) = (date.year(), date.month(), date.day());
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{ms:03}Z", time.hour(), time.minute(), time.second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_a_clock_is_where_its_times_have_64_bits() {
        for frequency in [1, 3, 10_000_000, 1_000_000_000, 3_000_000_000, i64::MAX] {
            for sync_ticks in [0, -5, i64::MIN, i64::MAX, 1 << 40] {
                for sync_utc_ns in [0, -1_000_000_000, 9_000_000_000_000_000_000] {
                    let clock = Clock { sync_ticks, sync_utc_ns, frequency };
                    let utc = |ticks| clock.since_start(ticks).and_then(|ns| clock.utc_ns(ns));
                    let range = clock.range();
                    for ticks in [*range.start(), *range.end()] {
                        assert!(utc(ticks).is_some(), "{clock:?} {ticks}");
                    }
                    if let Some(before) = range.start().checked_sub(1) {
                        assert_eq!(utc(before), None, "{clock:?} {before}");
                    }
                    if let Some(behind) = range.end().checked_add(1) {
                        assert_eq!(utc(behind), None, "{clock:?} {behind}");
                    }
                }
            }
        }
    }

    #[test]
    fn start_times_are_read_and_printed() {
        let ns = system_time_to_utc_ns([2026, 11, 5, 20, 18, 12, 29, 912]).unwrap();
        assert_eq!(ns, 1_795_198_349_912_000_000);
        assert_eq!(format_utc(ns), "2026-11-20T18:12:29.912Z");
        assert_eq!(format_utc(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(format_utc(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(system_time_to_utc_ns([2026, 13, 0, 5, 20, 18, 12, 912]), None);
        assert_eq!(system_time_to_utc_ns([0; 8]), None);
        assert_eq!(system_time_to_utc_ns([2026, 2, 0, 30, 20, 18, 12, 912]), None);
        let leap = system_time_to_utc_ns([2016, 12, 0, 31, 23, 59, 60, 500]);
        assert_eq!(leap.map(format_utc).as_deref(), Some("2017-01-01T00:00:00.500Z"));
        assert_eq!(format_utc(i64::MIN), "1677-09-21T00:12:43.145Z");
    }

    #[test]
    fn ticks_round_down_on_both_sides_of_the_start() {
        let clock = Clock { sync_ticks: 1000, sync_utc_ns: 0, frequency: 3 };
        assert_eq!(clock.since_start(1001), Some(333_333_333));
        assert_eq!(clock.since_start(999), Some(-333_333_334));
        let clock = Clock { sync_ticks: 0, sync_utc_ns: 0, frequency: 1 };
        assert_eq!(clock.since_start(i64::MAX), None);
        let clock = Clock { sync_ticks: i64::MIN, sync_utc_ns: 0, frequency: 1_000_000_000 };
        assert_eq!(clock.since_start(i64::MAX), None);
    }

    #[test]
    fn file_times_outside_the_calendar_are_none() {
        assert_eq!(file_time_to_utc_us(116_444_736_000_000_000), Some(0));
        assert_eq!(file_time_to_utc_us(0), Some(-11_644_473_600_000_000));
        assert!(file_time_to_utc_us(2_650_467_743_999_999_999).is_some());
        assert_eq!(file_time_to_utc_us(u64::MAX), None);
    }
}
