//! Parses values of options: numbers, addresses, sizes, compressions, providers, names of sessions.

use std::collections::BTreeMap;
use std::time::Duration;

use tracequet::Compression;
use tracequet::Error;
use tracequet::trace::event::catalog;
use tracequet::trace::guid::Guid;
use tracequet::trace::reader::etl;
use tracequet::trace::source::live::ProviderId;

/// Longer names of sessions are cut by what starts them.
const MAX_NAME: usize = 200;

/// Reads an address.
pub fn address(text: &str) -> Result<u64, String> {
    number(text).map_err(|_| "expected an address such as 0x7f3b2c001020".into())
}

/// Reads a number, hexadecimal behind `0x`.
pub fn number(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    number.map_err(|_| "expected a number such as 0x400001".into())
}

/// Reads `NAME=VALUE`.
pub fn label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE such as branch=main")?;
    if name.is_empty() || name.contains([',', '!', '*']) || name.contains(char::is_whitespace) {
        return Err("the name of a label has no blanks, no comma, no ! and no *".into());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads `12h`, `30d` or `8w`.
pub fn age(text: &str) -> Result<Duration, String> {
    let units = [("h", 3600), ("d", 86_400), ("w", 7 * 86_400)];
    let found = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?.parse::<u64>().ok()?, seconds)));
    let seconds = found.and_then(|(number, seconds)| number.checked_mul(*seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| "expected hours, days or weeks: 12h, 30d, 8w".into())
}

/// Labels by their names. One that is given twice with different values is a usage error.
pub fn labels(given: &[(String, String)], option: &str) -> Result<BTreeMap<String, String>, Error> {
    let mut labels = BTreeMap::new();
    for (name, value) in given {
        if labels.insert(name.clone(), value.clone()).is_some() {
            let message = format!("{option} {name} is given twice, expected one value for each name");
            return Err(Error::Usage(message));
        }
    }
    Ok(labels)
}

/// Reads `zstd`, `zstd:LEVEL`, `snappy` or `none`.
pub fn compression(text: &str) -> Result<Compression, String> {
    match text.split_once(':').map_or((text, None), |(name, level)| (name, Some(level))) {
        ("zstd", None) => Ok(Compression::default()),
        ("zstd", Some(level)) => match level.parse() {
            Ok(level @ 1..=22) => Ok(Compression::Zstd(level)),
            _ => Err(format!("zstd level '{level}', expected 1 to 22")),
        },
        ("snappy", None) => Ok(Compression::Snappy),
        ("none", None) => Ok(Compression::None),
        _ => Err("expected zstd, zstd:LEVEL (1 to 22), snappy or none".into()),
    }
}

/// Reads a number of bytes: `1000`, `500k`, `20M`, `2G` (powers of 1024), with or without a B behind.
pub fn size(text: &str) -> Result<u64, String> {
    let expected = || "expected a size such as 500M or 2G".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(expected()),
    };
    let number: u64 = digits.parse().map_err(|_| expected())?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(expected)
}

/// Reads a part: `5%`, `5 %` or `0.05`.
pub fn share(text: &str) -> Result<f64, String> {
    let (digits, by) = text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |digits| (digits.trim_end(), 100.0));
    let number = digits.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    number.map(|number| number / by).ok_or_else(|| "expected a part such as 5%".into())
}

/// A GUID, a name that the catalogue knows the GUID of, or one for the system to look up.
pub fn provider_id(name: &str) -> ProviderId {
    match Guid::parse(name).or_else(|| catalog::guid_by_name(name)).or_else(|| etl::provider_guid(name)) {
        Some(guid) => ProviderId::Guid(guid),
        None => ProviderId::Name(name.to_owned()),
    }
}

/// Reads the name of a session.
pub fn session_name(text: &str) -> std::result::Result<String, String> {
    let fits = !text.is_empty() && text.encode_utf16().count() <= MAX_NAME && !text.contains(char::is_control);
    fits.then(|| text.to_owned()).ok_or_else(|| format!("expected 1 to {MAX_NAME} characters"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressions_are_named_with_an_optional_level() {
        assert_eq!(compression("zstd"), Ok(Compression::Zstd(1)));
        assert_eq!(compression("zstd:22"), Ok(Compression::Zstd(22)));
        assert_eq!(compression("snappy"), Ok(Compression::Snappy));
        assert_eq!(compression("none"), Ok(Compression::None));
        for wrong in ["zstd:", "zstd:0", "zstd:23", "zstd:-1", "snappy:1", "gzip", "", "ZSTD"] {
            assert!(compression(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        let sizes = ["1000", "1b", "500k", "20M", "2GiB", "1TB"].map(|text| size(text).unwrap());
        assert_eq!(sizes, [1000, 1, 500 << 10, 20 << 20, 2 << 30, 1 << 40]);
        for wrong in ["", "M", "0", "-1", "1.5G", "1X", "99999999T", "1 G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn parts_are_percentages_or_plain() {
        assert_eq!([share("5%"), share("12.5 %"), share("0.05")], [Ok(0.05), Ok(0.125), Ok(0.05)]);
        for wrong in ["", "%", "five", "-1%", "nan", "inf%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_that_mean_nothing_are_refused() {
        let long = "x".repeat(201);
        for wrong in ["", "a\nb", &long] {
            assert!(session_name(wrong).is_err(), "{wrong}");
        }
        assert!(session_name(&long[1..]).is_ok());
    }
}
