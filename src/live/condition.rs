//! `--when`: what makes a service record.

use super::super::values::size;
use super::fields::inner_fields;
use super::stop_on::{StopOn, StopWatch};
use tracequet::trace::event::value::Value;
use tracequet::trace::event::{Event, EventInfo};
use tracequet::trace::source::diagnostics::port::{EventFilter, Provider};

/// The event source of the runtime's counters.
const COUNTERS: &str = "System.Runtime";
/// Bytes of the megabyte in which the runtime counts.
const MEGABYTE: f64 = 1e6;

/// A condition that is waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// As it was typed.
    pub text: String,
    what: What,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// A pause or an exception.
    Event(StopOn),
    /// A counter of the runtime is above this: its name, the bound in its unit.
    Counter(&'static str, f64),
}

const EXPECTED: &str =
    "expected 'gc.pause > 200ms', 'cpu > 80 %', 'working set > 2GB' or 'exception System.TimeoutException'";

impl Condition {
    /// Reads it as it is typed.
    pub fn parse(text: &str) -> Result<Condition, String> {
        let text = text.trim();
        let what = if let Some(name) = text.strip_prefix("exception") {
            let name = name.strip_prefix([':', ' ']).ok_or(EXPECTED)?.trim_start();
            What::Event(StopOn::parse(&format!("exception:{name}")).map_err(|_| EXPECTED.to_owned())?)
        } else if text.starts_with("gc.pause") {
            What::Event(StopOn::parse(text).map_err(|_| EXPECTED.to_owned())?)
        } else {
            let (name, bound) = text.split_once('>').ok_or(EXPECTED)?;
            let bound = bound.trim();
            match name.trim() {
                "cpu" => {
                    let percent: f64 = bound.trim_end_matches('%').trim().parse().map_err(|_| EXPECTED.to_owned())?;
                    if !(0.0..=100.0).contains(&percent) {
                        return Err("cpu > 0 to 100 %, of all processors that the process may use".into());
                    }
                    What::Counter("cpu-usage", percent)
                }
                "working set" | "working-set" => What::Counter("working-set", size(bound)? as f64 / MEGABYTE),
                _ => return Err(EXPECTED.into()),
            }
        };
        Ok(Condition { text: text.to_owned(), what })
    }

    fn provider(&self) -> Provider {
        match &self.what {
            What::Event(stop_on) => {
                Provider { events: EventFilter::Only(stop_on.event_ids().to_vec()), ..stop_on.provider() }
            }
            What::Counter(..) => Provider {
                name: COUNTERS.into(),
                keywords: u64::MAX,
                level: 4,
                arguments: "EventCounterIntervalSec=1".into(),
                events: EventFilter::All,
            },
        }
    }
}

/// The providers that have to be recorded to see any of these.
pub fn providers(conditions: &[Condition]) -> Vec<Provider> {
    let mut all: Vec<Provider> = Vec::new();
    for provider in conditions.iter().map(Condition::provider) {
        match all.iter_mut().find(|known| known.name == provider.name) {
            Some(known) => {
                known.keywords |= provider.keywords;
                known.level = known.level.max(provider.level);
                if let (EventFilter::Only(ids), EventFilter::Only(more)) = (&mut known.events, provider.events) {
                    ids.extend(more);
                }
            }
            None => all.push(provider),
        }
    }
    all
}

/// Looks for a condition.
#[derive(Debug)]
pub enum ConditionWatch {
    /// A pause or an exception.
    Event(StopWatch),
    /// A counter.
    Counter(&'static str, f64),
}

impl ConditionWatch {
    /// Waits for `condition`.
    pub fn new(condition: &Condition) -> ConditionWatch {
        match &condition.what {
            What::Event(stop_on) => ConditionWatch::Event(StopWatch::new(stop_on.clone())),
            What::Counter(name, bound) => ConditionWatch::Counter(name, *bound),
        }
    }

    /// Whether events of this kind say something about it.
    pub fn wants(&self, info: &EventInfo) -> bool {
        match self {
            ConditionWatch::Event(watch) => watch.wants(info),
            ConditionWatch::Counter(..) => info.provider == COUNTERS && info.name == "EventCounters",
        }
    }

    /// Whether it has happened now, in words.
    pub fn event(&mut self, event: &Event<'_>) -> Option<String> {
        if !self.wants(event.info) {
            return None;
        }
        match self {
            ConditionWatch::Event(watch) => watch.event(event),
            ConditionWatch::Counter(name, bound) => above(&inner_fields(event), name, *bound),
        }
    }
}

/// The value of a counter, in words, if it is above a bound.
fn above(fields: &[(&str, Value)], name: &str, bound: f64) -> Option<String> {
    let field = |name: &str| fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    if field("Name").and_then(Value::as_str) != Some(name) {
        return None;
    }
    let Some(Value::Float(value)) = field("Mean") else { return None };
    let unit = if name == "cpu-usage" { "%" } else { "MB" };
    (*value > bound).then(|| format!("{name} of {value:.1} {unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        let what = |text: &str| Condition::parse(text).unwrap().what;
        assert_eq!(what("gc.pause > 200ms"), What::Event(StopOn::Pause(200_000_000)));
        assert_eq!(what("exception System.TimeoutException"), what("exception:System.TimeoutException"));
        assert_eq!(what("exception X"), What::Event(StopOn::Exception("X".into())));
        assert_eq!(what("cpu > 80 %"), What::Counter("cpu-usage", 80.0));
        assert_eq!(what("cpu>80"), What::Counter("cpu-usage", 80.0));
        assert_eq!(what("working set > 2000MB"), What::Counter("working-set", 2097.152));
        for wrong in [
            "", "cpu", "cpu > 101", "cpu > x", "cpu < 80", "working set > many", "exception", "exceptions", "gc.pause",
            "heap > 1GB",
        ] {
            assert!(Condition::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_several_conditions_need_is_asked_for_once() {
        let of =
            |texts: &[&str]| providers(&texts.iter().map(|text| Condition::parse(text).unwrap()).collect::<Vec<_>>());
        let all = of(&["exception A", "exception B", "gc.pause > 1s", "cpu > 1", "working set > 1G"]);
        assert_eq!(
            all.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
            [super::super::fields::RUNTIME, COUNTERS]
        );
        assert_eq!((all[0].keywords, all[0].level), (0x8001, 4));
        assert_eq!(all[0].events, EventFilter::Only(vec![80, 80, 9, 3]));
    }

    #[test]
    fn a_counter_is_above_its_bound_or_not() {
        let fields = |name: &str, value| [("Name", Value::Text(name.into())), ("Mean", Value::Float(value))];
        assert_eq!(above(&fields("cpu-usage", 80.1), "cpu-usage", 80.0).as_deref(), Some("cpu-usage of 80.1 %"));
        assert_eq!(above(&fields("cpu-usage", 80.0), "cpu-usage", 80.0), None);
        assert_eq!(above(&fields("working-set", 99.0), "cpu-usage", 80.0), None);
        assert_eq!(above(&fields("cpu-usage", f64::NAN), "cpu-usage", 80.0), None);
    }
}
