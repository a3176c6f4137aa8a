//! Fields of single events by name.

use tracequet::trace::event::Event;
use tracequet::trace::event::plan::Node;
use tracequet::trace::event::value::Value;

/// The provider of the runtime.
pub const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

fn field(event: &Event<'_>, name: &str) -> Option<Value> {
    let (fields, _) = event.fields().ok()?;
    fields.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// A field that is a number.
pub fn field_number(event: &Event<'_>, name: &str) -> Option<u64> {
    field(event, name)?.as_u64()
}

/// A field that is text.
pub fn field_text(event: &Event<'_>, name: &str) -> Option<String> {
    field(event, name)?.as_str().map(str::to_owned)
}

/// The fields of the first field, which is a structure: that is how EventCounters are written.
pub fn inner_fields<'e>(event: &'e Event<'_>) -> Vec<(&'e str, Value)> {
    let Ok(plan) = event.info.plan(event.raw.payload) else { return Vec::new() };
    let (Some(first), Ok((values, _))) = (plan.fields.first(), event.fields()) else { return Vec::new() };
    match (&first.node, values.into_iter().next()) {
        (Node::Struct(fields), Some((_, Value::Struct(values)))) => {
            fields.iter().map(|field| field.name.as_str()).zip(values).collect()
        }
        _ => Vec::new(),
    }
}
