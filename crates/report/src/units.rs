//! Formats numbers, sizes, durations and moments for people.

/// `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 event`, `2 events`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// Bytes with three digits: `531 MB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS.get(unit).unwrap_or(&"PB"))
}

/// Nanoseconds with three digits: `850 ns`, `1.25 ms`, `12.3 s`, `2 min 5 s`, `3 h 20 min`.
pub fn duration(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    if ns < 1000 {
        return format!("{sign}{ns} ns");
    }
    let seconds = ns / 1_000_000_000;
    if seconds >= 3600 {
        return format!("{sign}{} h {} min", seconds / 3600, seconds / 60 % 60);
    }
    if seconds >= 100 {
        return format!("{sign}{} min {} s", seconds / 60, seconds % 60);
    }
    let value = ns as f64;
    let (value, unit) = match ns {
        0..999_500 => (value / 1e3, "µs"),
        999_500..999_500_000 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    };
    format!("{sign}{} {unit}", three_digits(value))
}

/// The same of a number without a sign.
pub(crate) fn span(ns: u64) -> String {
    duration(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// A moment since the start in seconds, to the microsecond: `12.345678`.
pub fn moment(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let us = ns.unsigned_abs() / 1000;
    format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000)
}

fn three_digits(value: f64) -> String {
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A moment in UTC by microseconds since 1970: `2026-03-01 12:34:56`.
pub fn utc(us: i64) -> String {
    let seconds = us.div_euclid(1_000_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days of eras of 400 years that begin in March, as Howard Hinnant's civil_from_days counts them.
    let days = days.saturating_add(719_468);
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// A figure in its unit, as `stats` shows it: `ns`, `bytes`, `bytes/s`, `share`, `count` or a plain number.
pub fn figure(unit: &str, value: f64) -> String {
    match unit {
        "ns" => duration(value as i64),
        "bytes" => size(value as u64),
        "bytes/s" => format!("{}/s", size(value as u64)),
        "share" => format!("{:.2} %", value * 100.0),
        "count" if value.fract() == 0.0 => count(value as u64),
        "count/s" => format!("{value:.1}/s"),
        _ => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_days_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_400_000_000), "2000-02-29 00:00:00");
        assert_eq!(utc(1_709_251_199_999_999), "2024-02-29 23:59:59");
        assert_eq!(utc(-1), "1969-12-31 23:59:59");
        assert!(!utc(i64::MIN).is_empty() && !utc(i64::MAX).is_empty());
    }
}
