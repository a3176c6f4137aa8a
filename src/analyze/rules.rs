//! Rules about figures as people write them: `gc.pause.p99 <= 20ms`, `allocation.rate <= baseline * 1.10`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::metrics::definitions;
use crate::error::{Error, Result};

/// One rule.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rule {
    /// As it was written.
    pub text: String,
    /// The figure, or a pattern of figures with `*`.
    pub metric: String,
    /// How it is compared.
    pub compare: Compare,
    /// With what.
    pub bound: Bound,
    /// Differences from the baseline that are none.
    pub noise: Option<Amount>,
    /// Whether its failure is only told.
    pub is_warning: bool,
    /// Only recordings with these labels.
    pub labels: BTreeMap<String, String>,
}

/// How a figure is compared with the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words say it")]
pub enum Compare {
    AtMost,
    Below,
    AtLeast,
    Above,
    Equal,
}

/// What a figure is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// A number, in the unit of the figure.
    Number(f64),
    /// The median of the baseline, times a factor, and more.
    Baseline {
        /// 1 for none.
        factor: f64,
        /// In the unit of the figure.
        more: f64,
    },
}

/// A difference: a number, or a part of the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the words say it")]
pub enum Amount {
    Number(f64),
    Part(f64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rules: Vec<String>,
    #[serde(default)]
    rule: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    check: String,
    #[serde(default)]
    noise: Option<String>,
    #[serde(default)]
    severity: Option<String>,
    #[serde(rename = "where", default)]
    labels: BTreeMap<String, String>,
}

/// Reads the rules of a file. `place` is its name in messages.
pub fn read(place: &str, text: &str) -> Result<Vec<Rule>> {
    let wrong = |what: String| Error::Usage(format!("{place}: {what}"));
    let file: File = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
    let plain =
        file.rules.into_iter().map(|check| Written { check, noise: None, severity: None, labels: BTreeMap::new() });
    let rules: Result<Vec<Rule>> = plain.chain(file.rule).map(|written| rule(written).map_err(wrong)).collect();
    let rules = rules?;
    if rules.is_empty() { Err(wrong("there is no rule in it".into())) } else { Ok(rules) }
}

fn rule(written: Written) -> std::result::Result<Rule, String> {
    let text = written.check;
    let of_rule = |what: String| format!("the rule \"{text}\": {what}");
    let operators = [
        ("<=", Compare::AtMost),
        (">=", Compare::AtLeast),
        ("==", Compare::Equal),
        ("<", Compare::Below),
        (">", Compare::Above),
    ];
    let found = operators.iter().find_map(|(sign, compare)| {
        let (metric, bound) = text.split_once(sign)?;
        Some((metric.trim(), *compare, bound.trim()))
    });
    let (metric, compare, bound) = found.ok_or_else(|| of_rule("expected <=, <, >=, > or ==".into()))?;
    known(metric).map_err(of_rule)?;
    let bound = self::bound(bound).map_err(of_rule)?;
    let noise = written.noise.as_deref().map(amount).transpose().map_err(of_rule)?;
    let is_warning = match written.severity.as_deref() {
        None | Some("error") => false,
        Some("warn") => true,
        Some(other) => return Err(of_rule(format!("severity \"{other}\", expected warn or error"))),
    };
    Ok(Rule {
        metric: metric.to_owned(),
        compare,
        bound,
        noise,
        is_warning,
        labels: written.labels,
        text: text.clone(),
    })
}

/// Refuses a name that no figure has, and says which is nearest.
fn known(metric: &str) -> std::result::Result<(), String> {
    let plain = metric.split_once('[').map_or(metric, |(name, _)| name);
    let names: Vec<&str> = definitions().map_err(|e| e.to_string())?.iter().map(|d| d.name.as_str()).collect();
    if names.iter().any(|name| matches(plain, name)) {
        return Ok(());
    }
    let nearest = names.iter().min_by_key(|name| distance(plain, name)).copied().unwrap_or_default();
    Err(format!("there is no metric {plain}; the nearest is {nearest}"))
}

/// Whether a name fits a pattern, in which `*` stands for anything.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part).and_then(|at| rest.get(at + part.len()..)) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Letters to change, add or take away to make one word of the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (place, y) in row.iter_mut().skip(1).zip(&b) {
            let up = *place;
            let best = (diagonal + usize::from(x != *y)).min(up + 1).min(left + 1);
            (diagonal, left, *place) = (up, best, best);
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

/// `20ms`, or `baseline`, `baseline * 1.10`, `baseline + 5MB`, `baseline * 1.1 + 5MB`.
fn bound(text: &str) -> std::result::Result<Bound, String> {
    let Some(rest) = text.strip_prefix("baseline") else { return number(text).map(Bound::Number) };
    let (factor, more) = match rest.split_once('+') {
        Some((factor, more)) => (factor.trim(), number(more.trim())?),
        None => (rest.trim(), 0.0),
    };
    let factor = match factor.strip_prefix('*') {
        Some(factor) => {
            let parsed = factor.trim().parse().ok().filter(|factor: &f64| factor.is_finite());
            parsed.ok_or_else(|| format!("\"{factor}\" is no factor, expected 1.10"))?
        }
        None if factor.is_empty() => 1.0,
        None => return Err(format!("\"{text}\", expected baseline, baseline * 1.10 or baseline + 5MB")),
    };
    Ok(Bound::Baseline { factor, more })
}

fn amount(text: &str) -> std::result::Result<Amount, String> {
    match text.strip_suffix('%') {
        Some(part) => {
            let part = part.trim().parse().ok().filter(|part: &f64| part.is_finite());
            part.map(|part| Amount::Part(part / 100.0)).ok_or_else(|| wrong_number(text))
        }
        None => number(text).map(Amount::Number),
    }
}

/// A number with or without a unit, in nanoseconds, bytes, or as it is.
fn number(text: &str) -> std::result::Result<f64, String> {
    let text = text.strip_suffix("/s").unwrap_or(text);
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%' || c == 'µ');
    let factor = match text.get(digits.len()..).unwrap_or_default() {
        "" | "ns" | "B" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "%" => 0.01,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        _ => return Err(wrong_number(text)),
    };
    match digits.trim().parse::<f64>() {
        Ok(number) if (number * factor).is_finite() => Ok(number * factor),
        _ => Err(wrong_number(text)),
    }
}

fn wrong_number(text: &str) -> String {
    format!("\"{text}\" is no number, expected one such as 20ms, 1.5s, 10MB, 2GiB, 5% or 1000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_are_written() {
        let text = r#"
            rules = ["gc.pause.p99 <= 20ms", "allocation.rate <= baseline * 1.10 + 1MB"]
            [[rule]]
            check = "allocation.by_type[*] < baseline"
            noise = "5%"
            severity = "warn"
            where = { scenario = "load" }
        "#;
        let rules = read("perf.toml", text).unwrap();
        assert_eq!(rules[0].bound, Bound::Number(20e6));
        assert_eq!((rules[0].metric.as_str(), rules[0].compare), ("gc.pause.p99", Compare::AtMost));
        assert_eq!(rules[1].bound, Bound::Baseline { factor: 1.1, more: 1e6 });
        assert_eq!((rules[2].noise, rules[2].is_warning), (Some(Amount::Part(0.05)), true));
        assert_eq!(rules[2].labels["scenario"], "load");
    }

    #[test]
    fn a_typo_names_the_nearest() {
        for (check, what) in [
            ("gc.pause.p95 <= 20ms", "the nearest is gc.pause.p99"),
            ("gc.count = 4", "expected <="),
            ("gc.count <= four", "is no number"),
            ("gc.count <= baseline x 2", "expected baseline"),
            ("gc.count <= baseline * nan", "is no factor"),
            ("gc.count <= baseline * 1e999", "is no factor"),
            ("gc.pause.p99 <= 1e308s", "is no number"),
        ] {
            let error = read("perf.toml", &format!("rules = ['{check}']")).unwrap_err().to_string();
            assert!(error.starts_with("perf.toml: the rule") && error.contains(what), "{error}");
        }
        assert!(read("perf.toml", "ruls = []").is_err() && read("perf.toml", "").is_err());
    }

    #[test]
    fn patterns_fit_names() {
        for (pattern, name) in [("gc.*", "gc.count"), ("a[*]", "a[System.String]"), ("*", "x"), ("a*c*e", "abcde")] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("gc.*", "jit.count"), ("a", "ab"), ("a*b", "ac")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
