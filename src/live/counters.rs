//! Shows counters during a recording: a table on a terminal, plain lines elsewhere.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};

use tracequet::trace::event::value::Value;
use tracequet::trace::event::{Event, EventInfo};

use super::super::text::{clean, moment};
use super::fields::inner_fields;

/// Counters that are shown at most.
const MAX_SHOWN: usize = 200;
/// The table is drawn again when this much time of events has passed: values come in a burst once a second.
const REFRESH_NS: i64 = 500_000_000;

struct Counter {
    label: String,
    unit: String,
    value: f64,
}

/// Shows counters.
pub struct CounterTable {
    counters: BTreeMap<(String, String), Counter>,
    /// Lines that are on the terminal.
    drawn: usize,
    is_terminal: bool,
    to_stderr: bool,
    shown_ns: i64,
}

impl CounterTable {
    /// On standard output, or on standard error when that is for a result.
    pub fn new(to_stderr: bool) -> CounterTable {
        let is_terminal = if to_stderr { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
        CounterTable { counters: BTreeMap::new(), drawn: 0, is_terminal, to_stderr, shown_ns: i64::MIN }
    }

    /// Whether events of this kind are counters.
    pub fn wants(&self, info: &EventInfo) -> bool {
        info.name == "EventCounters"
    }

    /// Takes a value in.
    pub fn event(&mut self, event: &Event<'_>) {
        let Some((name, counter)) = counter(&inner_fields(event)) else { return };
        let provider = event.info.provider.clone();
        if self.is_terminal {
            if event.ts_ns.saturating_sub(self.shown_ns) >= REFRESH_NS {
                self.shown_ns = event.ts_ns;
                self.draw();
            }
        } else {
            let (value, unit) = (number(counter.value), clean(&counter.unit));
            let space = if unit.is_empty() { "" } else { " " };
            self.print(&format!(
                "{} {} {} {value}{space}{unit}\n",
                moment(event.ts_ns),
                clean(&provider),
                clean(&name)
            ));
        }
        if self.counters.len() < MAX_SHOWN || self.counters.contains_key(&(provider.clone(), name.clone())) {
            self.counters.insert((provider, name), counter);
        }
    }

    /// Draws the last values.
    pub fn finish(&mut self) {
        if self.is_terminal {
            self.draw();
        }
    }

    fn draw(&mut self) {
        let text = table(&self.counters);
        let lines = text.lines().count();
        // Up to where the table begins, and everything below away.
        let back = if self.drawn > 0 { format!("\x1b[{}A\x1b[J", self.drawn) } else { String::new() };
        self.drawn = lines;
        self.print(&format!("{back}{text}"));
    }

    /// A reader that has gone is no reason to end the recording.
    fn print(&self, text: &str) {
        if self.to_stderr {
            std::io::stderr().lock().write_all(text.as_bytes()).ok();
        } else {
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
        }
    }
}

fn table(counters: &BTreeMap<(String, String), Counter>) -> String {
    let mut text = String::new();
    let mut last = None;
    for ((provider, _), counter) in counters {
        if last != Some(provider) {
            text.push_str(&format!("[{}]\n", clean(provider)));
            last = Some(provider);
        }
        let label = match counter.unit.as_str() {
            "" => clean(&counter.label),
            unit => format!("{} ({})", clean(&counter.label), clean(unit)),
        };
        text.push_str(&format!("    {label:<58} {:>16}\n", number(counter.value)));
    }
    text
}

/// The name and the value of a counter: what was counted in the interval, or the mean of what was measured in it.
fn counter(fields: &[(&str, Value)]) -> Option<(String, Counter)> {
    let field = |name: &str| fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    let text = |name| field(name).and_then(Value::as_str).unwrap_or_default();
    let name = text("Name");
    let value = match (field("Increment"), field("Mean")) {
        (Some(Value::Float(value)), _) | (None, Some(Value::Float(value))) => *value,
        _ => return None,
    };
    let label = if text("DisplayName").is_empty() { name } else { text("DisplayName") };
    let mut unit = text("DisplayUnits").to_owned();
    if field("Increment").is_some() {
        unit.push_str(if unit.is_empty() { "per interval" } else { " per interval" });
    }
    Some((name.to_owned(), Counter { label: label.to_owned(), unit, value }))
}

/// Whole numbers with spaces between thousands, others with three digits behind the point.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        let digits = super::super::text::count(value.abs() as u64);
        return if value < 0.0 { format!("-{digits}") } else { digits };
    }
    format!("{value:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'n>(value: &'n str, units: &str) -> Vec<(&'n str, Value)> {
        vec![
            ("Name", Value::Text("cpu-usage".into())),
            ("DisplayName", Value::Text("CPU Usage".into())),
            ("Count", Value::Int(1)),
            (value, Value::Float(12.5)),
            ("DisplayUnits", Value::Text(units.into())),
        ]
    }

    #[test]
    fn counters_are_rates_or_means() {
        let (name, mean) = counter(&fields("Mean", "%")).unwrap();
        assert_eq!(
            (name.as_str(), mean.label.as_str(), mean.unit.as_str(), mean.value),
            ("cpu-usage", "CPU Usage", "%", 12.5)
        );
        let (_, rate) = counter(&fields("Increment", "B")).unwrap();
        assert_eq!(rate.unit, "B per interval");
        assert!(counter(&fields("Max", "%")).is_none());
    }

    #[test]
    fn the_table_has_a_head_for_each_provider() {
        let mut counters = BTreeMap::new();
        for (provider, value) in [("System.Runtime", 1234567.0), ("A", 0.25)] {
            let counter = Counter { label: "Size".into(), unit: "MB".into(), value };
            counters.insert((provider.to_owned(), "size".to_owned()), counter);
        }
        let text = table(&counters);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[2]), ("[A]", "[System.Runtime]"));
        assert!(lines[1].starts_with("    Size (MB) ") && lines[1].ends_with(" 0.250"), "{text}");
        assert_eq!(
            lines[3].split_whitespace().skip(2).collect::<String>(),
            super::super::super::text::count(1234567).replace(' ', "")
        );
    }
}
