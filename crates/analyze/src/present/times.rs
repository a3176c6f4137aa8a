//! Parses times since the start of a recording: `12.5`, `12.5s`, `300ms`, `1m30s`, `00:01:30`.

const EXPECTED: &str =
    "expected seconds (12.5) or numbers with units h, m, s, ms, us, ns (1m30s, 300ms), or hh:mm:ss, or dd:hh:mm:ss";

/// Reads a time in nanoseconds. Fractions are exact; what is finer than a nanosecond is refused, with a text that says what is expected.
pub fn parse(text: &str) -> Result<i64, String> {
    if text.contains(':') {
        return clock(text);
    }
    let mut rest = text;
    let mut total: i128 = 0;
    let mut finest = i128::MAX;
    while !rest.is_empty() {
        let (number, behind) = split(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, behind) = split(behind, char::is_alphabetic);
        let unit_ns = match unit {
            // Seconds need no unit when they stand alone.
            "" if behind.is_empty() && rest.len() == text.len() => 1_000_000_000,
            "h" => 3_600_000_000_000,
            "m" => 60_000_000_000,
            "s" => 1_000_000_000,
            "ms" => 1_000_000,
            "us" | "µs" => 1_000,
            "ns" => 1,
            _ => return Err(EXPECTED.into()),
        };
        if unit_ns >= finest {
            return Err("units go from large to small, each at most once".into());
        }
        finest = unit_ns;
        let (ns, exact) = scaled(number, unit_ns).ok_or(EXPECTED)?;
        if !exact {
            return Err("finer than a nanosecond".into());
        }
        total = total.checked_add(ns).ok_or("too long")?;
        rest = behind;
    }
    if finest == i128::MAX {
        return Err(EXPECTED.into());
    }
    i64::try_from(total).map_err(|_| "longer than 292 years".into())
}

/// `hh:mm:ss` and `dd:hh:mm:ss`, as dotnet-trace takes them. Two numbers alone would be hours and minutes to it, and
/// minutes and seconds to most people.
fn clock(text: &str) -> Result<i64, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let (days, hours, minutes, seconds) = match parts[..] {
        [hours, minutes, seconds] => ("0", hours, minutes, seconds),
        [days, hours, minutes, seconds] => (days, hours, minutes, seconds),
        _ => return Err(EXPECTED.into()),
    };
    let below = |text: &str, limit: i128| {
        let number = Some(text).filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
        number.and_then(|text| text.parse::<i128>().ok()).filter(|number| *number < limit).ok_or(EXPECTED)
    };
    let whole = ((below(days, 1 << 40)? * 24 + below(hours, 24)?) * 60 + below(minutes, 60)?) * 60;
    below(seconds.split('.').next().unwrap_or_default(), 60)?;
    let (ns, is_exact) = scaled(seconds, 1_000_000_000).ok_or(EXPECTED)?;
    if !is_exact {
        return Err("finer than a nanosecond".into());
    }
    i64::try_from(whole * 1_000_000_000 + ns).map_err(|_| "longer than 292 years".into())
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// A decimal number times `unit`, and whether nothing was cut off.
fn scaled(number: &str, unit: i128) -> Option<(i128, bool)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i128>().ok() };
    let fraction = fraction.trim_end_matches('0');
    let scale = 10i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = digits(fraction)?.checked_mul(unit)?;
    let total = digits(whole)?.checked_mul(unit)?.checked_add(part / scale)?;
    Some((total, part % scale == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_need_no_unit_and_fractions_are_exact() {
        for (text, ns) in [
            ("0", 0),
            ("12", 12_000_000_000),
            ("12.5", 12_500_000_000),
            ("12.5s", 12_500_000_000),
            (".5", 500_000_000),
            ("5.", 5_000_000_000),
            ("0.000000001", 1),
            ("300ms", 300_000_000),
            ("1.5ms", 1_500_000),
            ("250us", 250_000),
            ("7ns", 7),
            ("1m30s", 90_000_000_000),
            ("1.5m", 90_000_000_000),
            ("1h2m3s4ms", 3_723_004_000_000),
            ("00:00:05", 5_000_000_000),
            ("01:02:03.5", 3_723_500_000_000),
            ("00:00:01:30", 90_000_000_000),
            ("2:03:04:05", 183_845_000_000_000),
            ("0.10000000000000000000", 100_000_000),
            ("9223372036.854775807", i64::MAX),
        ] {
            assert_eq!(parse(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let wrong = [
            "",
            " ",
            ".",
            "s",
            "-1",
            "+1",
            "1 s",
            "1,5",
            "1e3",
            "1.2.3",
            "10x",
            "1m30",
            "30s1m",
            "1s1s",
            "0.5ns",
            "1S",
            "9223372036.854775808",
            "999999999999999999999999999999999999999999999",
            "1m-30s",
            "١",
            "05:30",
            "0:0:60",
            "24:00:00",
            "0:60:00",
            "::",
            "1:2:3:4:5",
            "-1:00:00",
            "00:00:5s",
            "00:00:0.0000000001",
            "99999999999:00:00:00",
        ];
        for text in wrong {
            assert!(parse(text).is_err(), "{text}: {:?}", parse(text));
        }
    }
}
