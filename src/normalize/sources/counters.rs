//! Values of counters: EventCounters of any source, and instruments of System.Diagnostics.Metrics.

use crate::event::plan::Node;
use crate::event::value::Value;
use crate::normalize::fact::{Counter, FactSink};
use crate::normalize::tracker::{self, ANY, Hears, Input};

/// What an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A value of an EventCounter.
    EventCounter,
    /// Of a counter that only grows.
    Rate,
    /// Of a counter that goes up and down.
    UpDown,
    /// Of a gauge.
    Gauge,
    /// Quantiles of a histogram.
    Histogram,
}

/// The events.
pub const HEARS: &[Hears<Action>] = &[
    Hears { provider: ANY, events: &[("EventCounters", Action::EventCounter)] },
    Hears {
        provider: "System.Diagnostics.Metrics",
        events: &[
            ("CounterRateValuePublished", Action::Rate),
            ("UpDownCounterRateValuePublished", Action::UpDown),
            ("GaugeValuePublished", Action::Gauge),
            ("HistogramValuePublished", Action::Histogram),
        ],
    },
];

impl tracker::Action for Action {}

/// Quantiles of one value, at most.
const MAX_QUANTILES: usize = 64;

/// A value becomes a row; a histogram one for each quantile.
pub fn event(action: Action, input: &Input<'_>, sink: &mut impl FactSink) {
    if action == Action::EventCounter {
        return event_counter(input, sink);
    }
    let text = |name: &str| input.fields.text(name).filter(|text| !text.is_empty());
    // Numbers are text, as the invariant culture writes them.
    let number = |name: &str| input.fields.text(name).and_then(|text| text.parse::<f64>().ok());
    let row = Counter {
        ts_ns: input.ts_ns(),
        process_id: input.process_id(),
        provider_name: input.text("meterName"),
        name: input.text("instrumentName"),
        unit: text("unit"),
        tags: text("tags"),
        ..Counter::default()
    };
    match action {
        Action::EventCounter => {}
        Action::Rate => sink.add(&Counter { kind: "counter", value: number("rate"), total: number("value"), ..row }),
        // Before .NET 8 only the change was told.
        Action::UpDown => sink.add(&Counter { kind: "up_down_counter", value: number("value"), ..row }),
        Action::Gauge => sink.add(&Counter { kind: "gauge", value: number("lastValue"), ..row }),
        Action::Histogram => {
            let count = input.fields.get("count").as_u64();
            let row = Counter { kind: "histogram", count, total: input.float("sum"), ..row };
            let quantiles = input.text("quantiles").split(';').filter_map(|pair| {
                let (quantile, value) = pair.split_once('=')?;
                Some((quantile.trim().parse().ok()?, value.trim().parse().ok()?))
            });
            let rows: Vec<Counter<'_>> = quantiles
                .take(MAX_QUANTILES)
                .map(|(quantile, value)| Counter { quantile: Some(quantile), value: Some(value), ..row })
                .collect();
            if rows.is_empty() { sink.add(&row) } else { sink.add(rows.as_slice()) }
        }
    }
}

/// An EventCounter is one structure with fields by convention.
fn event_counter(input: &Input<'_>, sink: &mut impl FactSink) {
    let Ok(plan) = input.event.info.plan(input.event.raw.payload) else { return };
    let Some(first) = plan.fields.first() else { return };
    let (Node::Struct(names), Value::Struct(values)) = (&first.node, input.fields.get(&first.name)) else { return };
    let field = |name: &str| names.iter().zip(values).find(|(known, _)| known.name == name).map(|(_, value)| value);
    let text = |name| field(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let number = |name| match field(name) {
        Some(Value::Float(value)) => Some(*value),
        _ => None,
    };
    let Some(name) = text("Name") else { return };
    let (kind, value) = match (number("Increment"), number("Mean")) {
        (Some(increment), _) => ("increment", Some(increment)),
        (None, mean) => ("mean", mean),
    };
    sink.add(&Counter {
        ts_ns: input.ts_ns(),
        process_id: input.process_id(),
        provider_name: &input.event.info.provider,
        name,
        display_name: text("DisplayName"),
        unit: text("DisplayUnits"),
        kind,
        value,
        count: field("Count").and_then(Value::as_u64),
        // Of no measurement an EventCounter says that the least is infinite, and the greatest less than anything.
        min: number("Min").filter(|least| least.is_finite()),
        max: number("Max").filter(|greatest| greatest.is_finite()),
        standard_deviation: number("StandardDeviation"),
        interval_ns: number("IntervalSec").map(|seconds| (seconds * 1e9) as i64),
        tags: text("Metadata"),
        ..Counter::default()
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalize::fact::Fact;
    use crate::normalize::made_up::{Each, Given, event as made_up};

    #[test]
    fn quantiles_of_a_value_have_a_bound() {
        let mut found = Vec::new();
        let mut sink = Each(|fact: &Fact<'_>| {
            if let Fact::Counter(rows) = fact {
                found.extend(rows.iter().map(|row| row.value));
            }
        });
        let quantiles: String = (0..100).map(|nth| format!("0.{nth}={nth};")).collect();
        let fields = [("instrumentName", Given::Text("wait")), ("quantiles", Given::Text(&quantiles))];
        made_up(Action::Histogram, 1, &fields, |input| event(Action::Histogram, input, &mut sink));
        assert_eq!(found, (0..64).map(|nth| Some(f64::from(nth))).collect::<Vec<_>>());
    }
}
