//! Numbers with units in rules: `20ms`, `10MB`, `5%`.

/// The thing that a number counts, by the unit that was written behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Time,
    Bytes,
    BytesPerSecond,
    Part,
}

/// A number as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number {
    /// In nanoseconds, bytes, or as it is; 1 for `100%`.
    pub value: f64,
    /// `None` without a unit: then it is in the unit of the figure.
    pub kind: Option<Kind>,
}

impl Number {
    /// Reads a number with or without a unit.
    pub(super) fn read(text: &str) -> Result<Number, String> {
        let (plain, is_rate) = text.strip_suffix("/s").map_or((text, false), |plain| (plain.trim_end(), true));
        let digits = plain.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%' || c == 'µ');
        let (factor, kind) = match plain.get(digits.len()..).unwrap_or_default() {
            "" => (1.0, None),
            "ns" => (1.0, Some(Kind::Time)),
            "us" | "µs" => (1e3, Some(Kind::Time)),
            "ms" => (1e6, Some(Kind::Time)),
            "s" => (1e9, Some(Kind::Time)),
            "min" => (60e9, Some(Kind::Time)),
            "%" => (0.01, Some(Kind::Part)),
            "B" => (1.0, Some(Kind::Bytes)),
            "kB" | "KB" => (1e3, Some(Kind::Bytes)),
            "MB" => (1e6, Some(Kind::Bytes)),
            "GB" => (1e9, Some(Kind::Bytes)),
            "TB" => (1e12, Some(Kind::Bytes)),
            "KiB" => (1024.0, Some(Kind::Bytes)),
            "MiB" => (1_048_576.0, Some(Kind::Bytes)),
            "GiB" => (1_073_741_824.0, Some(Kind::Bytes)),
            "TiB" => (1_099_511_627_776.0, Some(Kind::Bytes)),
            _ => return Err(wrong(text)),
        };
        let kind = match (kind, is_rate) {
            (kind, false) => kind,
            (Some(Kind::Bytes), true) => Some(Kind::BytesPerSecond),
            (_, true) => return Err(wrong(text)),
        };
        match digits.trim().parse::<f64>() {
            Ok(number) if (number * factor).is_finite() => Ok(Number { value: number * factor, kind }),
            _ => Err(wrong(text)),
        }
    }

    /// Refuses a number whose unit does not fit a figure in `unit`, the unit of its definition.
    pub(super) fn fits(&self, metric: &str, unit: &str) -> Result<(), String> {
        let (is_right, expected) = match unit {
            "ns" => (self.kind == Some(Kind::Time), "a time such as 20ms"),
            "bytes" => (self.kind == Some(Kind::Bytes), "bytes such as 10MB"),
            "bytes/s" => (matches!(self.kind, Some(Kind::Bytes | Kind::BytesPerSecond)), "a rate such as 10MB/s"),
            "share" => (self.kind == Some(Kind::Part), "a part such as 5%"),
            "count" => (false, "a count such as 1000"),
            _ => (false, "a number without a unit, since a counter has its own"),
        };
        if is_right || self.kind.is_none() {
            Ok(())
        } else {
            Err(format!("{metric} is not in that unit, expected {expected}"))
        }
    }
}

fn wrong(text: &str) -> String {
    format!("\"{text}\" is not a number, expected one such as 20ms, 1.5s, 10MB, 2GiB, 5% or 1000")
}
