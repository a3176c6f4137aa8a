//! Writes numbers, sizes, durations, shares and moments for people.

use tracequet_trace::time::format_utc;

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

/// [`duration`] of a number without a sign.
pub fn span(ns: u64) -> String {
    duration(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// A moment since the start in seconds, to the microsecond: `12.345678`.
pub fn moment(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let us = ns.unsigned_abs() / 1000;
    format!("{sign}{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// A share, of which 1 is all, with three digits: `71.8 %`, `0.52 %`, `0 %`.
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        0.0 => "0 %".to_owned(),
        v if v < 0.005 => format!("{}0.01 %", if percent < 0.0 { "> -" } else { "< " }),
        _ => format!("{} %", three_digits(percent)),
    }
}

/// A number of things that need not be whole, with three digits: `0.125`, `1.33`, `21.8`, `1,234`.
pub fn real(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    match value.abs() {
        v if v.fract() == 0.0 || v >= 999.5 => format!("{sign}{}", count(v.round() as u64)),
        v if v < 0.9995 => format!("{value:.3}"),
        _ => three_digits(value),
    }
}

/// A number with three digits: `1.25`, `12.5`, `125`.
pub fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// A moment in UTC by microseconds since 1970: `2026-03-01 12:34:56`.
pub fn utc(us: i64) -> String {
    let text = format_utc(us.saturating_mul(1000));
    text.split('.').next().unwrap_or_default().replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let sizes = [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (999_499, "999 kB"), (999_500, "1.00 MB")];
        for (bytes, text) in sizes {
            assert_eq!(size(bytes), text);
        }
        assert_eq!(size(u64::MAX), "18447 PB");
        let durations = [
            (0, "0 ns"),
            (1500, "1.50 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (12_345_678_901, "12.3 s"),
            (125_000_000_000, "2 min 5 s"),
            (12_000_000_000_000, "3 h 20 min"),
            (-1_250_000, "-1.25 ms"),
        ];
        for (ns, text) in durations {
            assert_eq!(duration(ns), text);
        }
        assert_eq!([12_345_678_901, -1_500].map(moment), ["12.345678", "-0.000001"]);
        let shares = [0.0, 0.00001, -0.00001, 0.00523, 0.051, 0.7178, 0.9999, 1.0, 12.5].map(share);
        assert_eq!(shares, ["0 %", "< 0.01 %", "> -0.01 %", "0.52 %", "5.10 %", "71.8 %", "100 %", "100 %", "1250 %"]);
        let reals = [0.0, 0.125, 1.0, 1.333, 21.84, 345.6, 1234.5, -0.5].map(real);
        assert_eq!(reals, ["0", "0.125", "1", "1.33", "21.8", "346", "1,235", "-0.500"]);
    }

    #[test]
    fn moments_are_days_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_400_000_000), "2000-02-29 00:00:00");
        assert_eq!(utc(1_709_251_199_999_999), "2024-02-29 23:59:59");
        assert_eq!(utc(-1), "1969-12-31 23:59:59");
        assert!(!utc(i64::MIN).is_empty() && !utc(i64::MAX).is_empty());
    }
}
