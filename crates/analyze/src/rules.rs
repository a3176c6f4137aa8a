//! Rules about figures as people write them: `gc.pause.p99 <= 20ms`, `allocation.rate <= baseline * 1.10`.

mod amount;

use crate::prelude::*;

use serde::Deserialize;
use tracequet_trace::error::edit_distance;
use tracequet_trace::pattern::fits;

use self::amount::{Kind, Number};
use super::metrics::{Definition, definitions};

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// As it was written.
    pub text: String,
    /// The figure, or a pattern of figures with `*`.
    pub metric: String,
    /// How it is compared.
    pub compare: Compare,
    /// With what.
    pub bound: Bound,
    /// Differences from the baseline that are ignored.
    pub noise: Option<Amount>,
    /// Whether its failure is only reported.
    pub is_warning: bool,
    /// Whether a figure that is missing counts as 0.
    pub absent_is_zero: bool,
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

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    check: String,
    noise: Option<String>,
    severity: Option<String>,
    absent: Option<f64>,
    #[serde(rename = "where", default)]
    labels: BTreeMap<String, String>,
}

/// Reads the rules of a file. `place` is its name in messages.
pub fn read(place: &str, text: &str) -> Result<Vec<Rule>> {
    let wrong = |what: String| Error::Usage(format!("{place}: {what}"));
    let file: File = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
    let plain = file.rules.into_iter().map(|check| Written { check, ..Written::default() });
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
    let figures = figures(metric).map_err(of_rule)?;
    let fits = |number: &Number| figures.iter().try_for_each(|figure| number.fits(&figure.name, &figure.unit));
    let bound = self::bound(bound, &fits).map_err(of_rule)?;
    let noise = written.noise.as_deref().map(|noise| amount(noise, &fits)).transpose().map_err(of_rule)?;
    if noise.is_some() && !matches!(bound, Bound::Baseline { .. }) {
        return Err(of_rule("noise is a difference from the baseline, and the rule has no baseline".into()));
    }
    let is_warning = match written.severity.as_deref() {
        None | Some("error") => false,
        Some("warn") => true,
        Some(other) => return Err(of_rule(format!("severity \"{other}\", expected warn or error"))),
    };
    if written.absent.is_some_and(|absent| absent != 0.0) {
        return Err(of_rule("absent counts as 0 or not at all, expected absent = 0".into()));
    }
    Ok(Rule {
        metric: metric.to_owned(),
        absent_is_zero: written.absent.is_some(),
        compare,
        bound,
        noise,
        is_warning,
        labels: written.labels,
        text: text.clone(),
    })
}

/// The definitions of the figures that a rule is about. Refuses a name that no figure has, and says which is nearest.
fn figures(metric: &str) -> std::result::Result<Vec<&'static Definition>, String> {
    let (plain, key) = metric.split_once('[').map_or((metric, None), |(name, key)| (name, Some(key)));
    let all = definitions().map_err(|e| e.to_string())?;
    let found: Vec<&Definition> = all.iter().filter(|definition| matches(plain, &definition.name)).collect();
    if found.is_empty() {
        let nearest =
            all.iter().map(|d| d.name.as_str()).min_by_key(|name| edit_distance(plain, name)).unwrap_or_default();
        return Err(format!("there is no metric \"{plain}\"; the nearest is {nearest}"));
    }
    if key.is_some_and(|key| !key.ends_with(']')) {
        return Err("a bracket is not closed".into());
    }
    match found.as_slice() {
        [one] if plain == one.name && one.has_keys() && key.is_none() => {
            Err(format!("{plain} has several figures, expected {plain}[*] or one such as {plain}[NAME]"))
        }
        _ if key.is_some() && !found.iter().any(|one| one.has_keys()) => {
            Err(format!("{plain} has one figure, expected it without brackets"))
        }
        _ => Ok(found),
    }
}

/// Whether a name matches a pattern, in which `*` matches anything.
pub fn matches(pattern: &str, name: &str) -> bool {
    fits(name.as_bytes(), pattern.as_bytes(), b'*', |pattern, letter| (pattern.first() == Some(&letter)).then_some(1))
}

/// Whether the unit of a number is one of the figure.
type Fits<'f> = dyn Fn(&Number) -> std::result::Result<(), String> + 'f;

/// `20ms`, or `baseline`, `baseline * 1.10`, `baseline + 5MB`, `baseline - 5%`, `baseline * 1.1 + 5MB`. A part is one of the baseline.
fn bound(text: &str, fits: &Fits<'_>) -> std::result::Result<Bound, String> {
    let Some(rest) = text.strip_prefix("baseline") else {
        let number = Number::read(text)?;
        return fits(&number).map(|()| Bound::Number(number.value));
    };
    let wrong = || format!("\"{text}\", expected baseline, baseline * 1.10, baseline + 5MB or baseline + 5%");
    let (factor, sign, more) = match sign_in(rest) {
        Some((factor, sign, more)) => (factor, sign, Some(Number::read(more.trim())?)),
        None => (rest, 1.0, None),
    };
    let mut factor = match factor.trim().strip_prefix('*') {
        Some(factor) => {
            let parsed = factor.trim().parse().ok().filter(|factor: &f64| factor.is_finite());
            parsed.ok_or_else(|| format!("\"{}\" is not a factor, expected 1.10", factor.trim()))?
        }
        None if factor.trim().is_empty() => 1.0,
        None => return Err(wrong()),
    };
    let more = match more {
        Some(Number { value, kind: Some(Kind::Part) }) => {
            factor += sign * value;
            0.0
        }
        Some(number) => {
            fits(&number)?;
            sign * number.value
        }
        None => 0.0,
    };
    Ok(Bound::Baseline { factor, more })
}

/// The sum or difference in a text: the part before the sign, 1 or -1, and the part behind it. The signs of `* -1` and
/// `1e-3` are parts of numbers.
fn sign_in(text: &str) -> Option<(&str, f64, &str)> {
    text.char_indices().find_map(|(at, c)| {
        let sign = match c {
            '+' => 1.0,
            '-' => -1.0,
            _ => return None,
        };
        let (before, behind) = (text.get(..at)?, text.get(at + 1..)?);
        let is_operator =
            before.trim().is_empty() || before.trim_end().ends_with(|c: char| c.is_ascii_digit() || c == '.');
        is_operator.then_some((before, sign, behind))
    })
}

fn amount(text: &str, fits: &Fits<'_>) -> std::result::Result<Amount, String> {
    let number = Number::read(text)?;
    if number.value < 0.0 {
        return Err(format!("noise \"{text}\" is below zero"));
    }
    match number.kind {
        Some(Kind::Part) => Ok(Amount::Part(number.value)),
        _ => fits(&number).map(|()| Amount::Number(number.value)),
    }
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
            absent = 0
            where = { scenario = "load" }
        "#;
        let rules = read("perf.toml", text).unwrap();
        assert_eq!(rules[0].bound, Bound::Number(20e6));
        assert_eq!((rules[0].metric.as_str(), rules[0].compare), ("gc.pause.p99", Compare::AtMost));
        assert_eq!(rules[1].bound, Bound::Baseline { factor: 1.1, more: 1e6 });
        assert_eq!((rules[2].noise, rules[2].is_warning), (Some(Amount::Part(0.05)), true));
        assert_eq!(rules[2].labels["scenario"], "load");
        assert_eq!([rules[0].absent_is_zero, rules[2].absent_is_zero], [false, true]);
        let error = read("perf.toml", "[[rule]]\ncheck = 'gc.count <= 1'\nabsent = 1").unwrap_err().to_string();
        assert!(error.contains("expected absent = 0"), "{error}");
    }

    #[test]
    fn a_typo_names_the_nearest() {
        for (check, what) in [
            ("gc.pause.p95 <= 20ms", "the nearest is gc.pause.p99"),
            ("gc.count = 4", "expected <="),
            ("gc.count <= four", "is not a number"),
            ("gc.count <= baseline x 2", "expected baseline"),
            ("gc.count <= baseline * nan", "is not a factor"),
            ("gc.count <= baseline * 1e999", "is not a factor"),
            ("gc.pause.p99 <= 1e308s", "is not a number"),
            ("gc.pause.p99 <= 20MB", "gc.pause.p99 is not in that unit, expected a time such as 20ms"),
            ("gc.count <= 5ms", "expected a count such as 1000"),
            ("heap.size.max <= 10MB/s", "expected bytes such as 10MB"),
            ("gc.pause.p99 <= 20ms/s", "is not a number"),
            ("gc.pause.share <= 5MB", "expected a part such as 5%"),
            ("counter.max[*] <= 5ms", "a counter has its own"),
            ("gc.pause.* <= 20ms", "gc.pause.share is not in that unit"),
            ("gc.pause.p99 <= baseline + 5MB", "expected a time"),
            ("gc.count <= baseline + 5 %%", "is not a number"),
            ("allocation.by_type <= 1GB", "expected allocation.by_type[*]"),
            ("allocation.by_type[* <= 1GB", "a bracket is not closed"),
            ("gc.count[2] <= 1", "expected it without brackets"),
            (" <= 1", "there is no metric \"\""),
        ] {
            let error = read("perf.toml", &format!("rules = ['{check}']")).unwrap_err().to_string();
            assert!(error.starts_with("perf.toml: the rule") && error.contains(what), "{error}");
        }
        assert!(read("perf.toml", "ruls = []").is_err() && read("perf.toml", "").is_err());
    }

    #[test]
    fn bounds_are_sums_with_the_baseline() {
        let bound = |text: &str| read("perf.toml", &format!("rules = ['gc.pause.p99 <= {text}']")).unwrap()[0].bound;
        let baseline = |factor: f64, more: f64| Bound::Baseline { factor, more };
        assert_eq!(bound("baseline"), baseline(1.0, 0.0));
        assert_eq!(bound("baseline*1.5"), baseline(1.5, 0.0));
        assert_eq!(bound("baseline + 25%"), baseline(1.25, 0.0));
        assert_eq!(bound("baseline - 25%"), baseline(0.75, 0.0));
        assert_eq!(bound("baseline * 2 - 5ms"), baseline(2.0, -5e6));
        assert_eq!(bound("baseline * 1e-3+1e+3"), baseline(1e-3, 1e3));
        assert_eq!(bound("20 ms"), Bound::Number(20e6));
    }

    #[test]
    fn noise_is_a_difference_from_a_baseline() {
        let noise = |check: &str, noise: &str| {
            let text = format!("[[rule]]\ncheck = '{check}'\nnoise = '{noise}'");
            read("perf.toml", &text).map(|rules| rules[0].noise).map_err(|e| e.to_string())
        };
        assert_eq!(noise("gc.pause.p99 <= baseline", "1ms"), Ok(Some(Amount::Number(1e6))));
        for (check, amount, what) in [
            ("gc.pause.p99 <= 20ms", "1ms", "the rule has no baseline"),
            ("gc.pause.p99 <= baseline", "-1ms", "is below zero"),
            ("gc.pause.p99 <= baseline", "1MB", "expected a time"),
        ] {
            let error = noise(check, amount).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
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
