//! Clocks: ticks of a recording to nanoseconds since its start and to UTC.

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

/// Days from 1970-01-01 to a date of the Gregorian calendar (algorithm of Howard Hinnant's `days_from_civil`).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A SYSTEMTIME (year, month, day of week, day, hour, minute, second, millisecond; all UTC) as nanoseconds since 1970.
/// The day of the week is ignored: writers get it wrong. `None` when a field is out of range.
pub fn system_time_to_utc_ns(fields: [u16; 8]) -> Option<i64> {
    let [year, month, _, day, hour, minute, second, ms] = fields.map(i64::from);
    let valid = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second)
        && (0..1000).contains(&ms);
    if !valid {
        return None;
    }
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    seconds.checked_mul(1_000_000_000)?.checked_add(ms * 1_000_000)
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
    let ms = utc_ns.div_euclid(1_000_000);
    let (days, of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1000 % 60, of_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
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
