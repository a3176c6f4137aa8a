//! Values of counters: EventCounters of any source, and instruments of System.Diagnostics.Metrics.

use tracequet_trace::event::plan::Node;

use crate::fact::Counter;
use crate::input::ANY;
use crate::prelude::*;

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountersAction {
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
    /// The description of an instrument.
    Instrument,
    /// The interval of the values that come.
    Interval,
}

/// Quantiles of one value, at most.
const MAX_QUANTILES: usize = 64;

/// Instruments whose tags are remembered, at most, and bytes of their texts.
const MAX_INSTRUMENTS: usize = 1 << 14;
const MAX_TEXT: usize = 4 << 20;

/// Processes whose interval is remembered, at most.
const MAX_PROCESSES: usize = 1 << 12;

/// An instrument as it is described once, before its values.
#[derive(Debug, Default)]
struct Instrument {
    scope: String,
    meter_tags: String,
    tags: String,
}

/// Instruments, and the values that wait for them.
#[derive(Debug, Default)]
pub struct Counters {
    instruments: Map<(ProcessKey, u64), Instrument>,
    text_bytes: usize,
    /// Of each process the length of the interval whose values come.
    intervals: Map<ProcessKey, i64>,
}

impl Counters {
    fn instrument(&mut self, input: &Input<'_>) {
        let Some(id) = input.fields.number("instrumentId") else { return };
        let text = |name| input.text(name).to_owned();
        let found =
            Instrument { scope: text("meterScopeHash"), meter_tags: text("meterTags"), tags: text("instrumentTags") };
        let bytes = found.scope.len() + found.meter_tags.len() + found.tags.len();
        let has_room = self.instruments.len() < MAX_INSTRUMENTS && self.text_bytes + bytes <= MAX_TEXT;
        if bytes > 0 && has_room {
            self.text_bytes += bytes;
            self.instruments.insert((input.process(), id), found);
        }
    }

    fn interval(&mut self, input: &Input<'_>) {
        let time = |name| if let Value::FileTime(time) = input.fields.get(name) { Some(*time) } else { None };
        let ticks =
            time("intervalEndTime").zip(time("intervalStartTime")).and_then(|(end, start)| end.checked_sub(start));
        let ns = ticks.and_then(|ticks| i64::try_from(ticks).ok()?.checked_mul(100)).filter(|ns| *ns > 0);
        let process = input.process();
        match ns {
            Some(ns) if self.intervals.len() < MAX_PROCESSES || self.intervals.contains_key(&process) => {
                self.intervals.insert(process, ns);
            }
            _ => drop(self.intervals.remove(&process)),
        }
    }

    fn value(&mut self, action: CountersAction, input: &Input<'_>, sink: &mut impl FactSink) {
        let text = |name: &str| input.fields.text(name).filter(|text| !text.is_empty());
        // Numbers are text, as the invariant culture writes them.
        let number = |name: &str| input.fields.text(name).and_then(|text| text.parse::<f64>().ok());
        let process = input.process();
        let id = input.fields.number("instrumentId");
        let about = id.and_then(|id| self.instruments.get(&(process, id)));
        let of =
            |part: fn(&Instrument) -> &String| about.map(|about| part(about).as_str()).filter(|text| !text.is_empty());
        let row = Counter {
            provider_name: input.text("meterName"),
            name: input.text("instrumentName"),
            unit: text("unit"),
            tags: text("tags"),
            interval_ns: self.intervals.get(&process).copied(),
            meter_version: text("meterVersion"),
            meter_scope: of(|about| &about.scope),
            meter_tags: of(|about| &about.meter_tags),
            instrument_tags: of(|about| &about.tags),
            ..input.row()
        };
        match action {
            CountersAction::Rate => {
                let row = Counter { kind: "counter", value: number("rate"), total: number("value"), ..row };
                sink.add(&with_figure(row));
            }
            // Before .NET 8 only the change was recorded.
            CountersAction::UpDown => {
                sink.add(&with_figure(Counter { kind: "up_down_counter", value: number("value"), ..row }));
            }
            CountersAction::Gauge => {
                sink.add(&with_figure(Counter { kind: "gauge", value: number("lastValue"), ..row }))
            }
            CountersAction::Histogram => {
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
            CountersAction::EventCounter | CountersAction::Instrument | CountersAction::Interval => {}
        }
    }
}

const METRICS: &str = "System.Diagnostics.Metrics";

impl Tracker for Counters {
    type Action = CountersAction;
    const EVENTS: Events<CountersAction> = &[
        (ANY, "EventCounters", CountersAction::EventCounter),
        (METRICS, "CounterRateValuePublished", CountersAction::Rate),
        (METRICS, "UpDownCounterRateValuePublished", CountersAction::UpDown),
        (METRICS, "GaugeValuePublished", CountersAction::Gauge),
        (METRICS, "HistogramValuePublished", CountersAction::Histogram),
        (METRICS, "BeginInstrumentReporting", CountersAction::Instrument),
        (METRICS, "CollectionStart", CountersAction::Interval),
    ];

    fn event(&mut self, action: CountersAction, input: &Input<'_>, _: &mut Shared, sink: &mut impl FactSink) {
        match action {
            CountersAction::EventCounter => event_counter(input, sink),
            CountersAction::Instrument => self.instrument(input),
            CountersAction::Interval => self.interval(input),
            _ => self.value(action, input, sink),
        }
    }

    fn cut(&mut self, cut: &Cut, _: &mut impl FactSink) {
        match cut.process {
            Some(process) => drop(self.intervals.remove(&process)),
            None => self.intervals.clear(),
        }
    }
}

/// A row with what its figures are made of.
fn with_figure(row: Counter<'_>) -> Counter<'_> {
    let seconds = row.interval_ns.filter(|ns| *ns > 0).map(|ns| ns as f64 / 1e9);
    let parts = match row.kind {
        "increment" | "counter" => row.value.zip(seconds).map(|(value, seconds)| (value / seconds, seconds)),
        "mean" => row.value.map(|value| (value, row.count.map_or(1.0, |count| count as f64))),
        _ => row.value.map(|value| (value, 1.0)),
    };
    // Nothing was measured.
    let parts = parts.filter(|(_, weight)| *weight > 0.0);
    Counter { figure: parts.map(|(figure, _)| figure), weight: parts.map(|(_, weight)| weight), ..row }
}

/// An EventCounter is one structure with fields by convention.
fn event_counter(input: &Input<'_>, sink: &mut impl FactSink) {
    let Ok(plan) = input.event.info.plan(input.event.raw.payload) else { return };
    let Some(first) = plan.fields.first() else { return };
    let (Node::Struct(names), Value::Struct(values)) = (&first.node, input.fields.get(&first.name)) else { return };
    let field = |name: &str| names.iter().zip(values).find(|(known, _)| known.name == name).map(|(_, value)| value);
    let text = |name| field(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let number = |name| if let Some(Value::Float(value)) = field(name) { Some(*value) } else { None };
    let Some(name) = text("Name") else { return };
    let (kind, value) = match (number("Increment"), number("Mean")) {
        (Some(increment), _) => ("increment", Some(increment)),
        (None, mean) => ("mean", mean),
    };
    sink.add(&with_figure(Counter {
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
        ..input.row()
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::tests::made_up::{Each, Given, event as made_up};

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
        let mut counters = Counters::default();
        made_up(CountersAction::Histogram, 1, &fields, |input| {
            counters.event(CountersAction::Histogram, input, &mut Shared::default(), &mut sink)
        });
        assert_eq!(found, (0..64).map(|nth| Some(f64::from(nth))).collect::<Vec<_>>());
    }

    #[test]
    fn what_figures_are_made_of_depends_on_the_kind() {
        let of = |kind, value, count, interval_ns| {
            let row = with_figure(Counter { kind, value, count, interval_ns, ..Counter::default() });
            (row.figure, row.weight)
        };
        assert_eq!(of("mean", Some(8.0), Some(40), None), (Some(8.0), Some(40.0)));
        assert_eq!(of("mean", Some(0.0), Some(0), None), (None, None), "nothing was measured");
        assert_eq!(of("mean", Some(8.0), None, None), (Some(8.0), Some(1.0)));
        assert_eq!(of("increment", Some(50.0), None, Some(500_000_000)), (Some(100.0), Some(0.5)));
        assert_eq!(of("counter", Some(50.0), None, None), (None, None), "in how long is not known");
        assert_eq!(of("counter", None, None, Some(1)), (None, None));
        assert_eq!(of("gauge", Some(-3.0), None, Some(5)), (Some(-3.0), Some(1.0)));
    }
}
