//! The fields of single events by name, for the trackers that look at few events each.

use tracequet_trace::event::Event;
use tracequet_trace::event::decode::decode;
use tracequet_trace::event::plan::{Node, Plan};
use tracequet_trace::event::value::{Value, ValueColumn};

/// Decoded fields of the event at hand; reused from event to event of one kind.
#[derive(Debug, Default)]
pub struct Scalars {
    names: Vec<String>,
    columns: Vec<ValueColumn>,
    /// The size of a payload decides on its fields.
    by_payload: bool,
}

const NULL: &Value = &Value::Null;

impl Scalars {
    /// For events decoded by `plan`.
    pub fn new(plan: &Plan) -> Scalars {
        let fields = plan.fields.iter().filter(|f| !matches!(f.node, Node::Padding(_)));
        let names = fields.map(|f| f.name.clone()).collect();
        Scalars { names, columns: ValueColumn::for_fields(&plan.fields), by_payload: false }
    }

    /// For events of which several layouts have the same version.
    pub fn by_payload() -> Scalars {
        Scalars { by_payload: true, ..Scalars::default() }
    }

    /// The scalars of the fields before the first list only.
    pub fn before_rows(plan: &Plan) -> Scalars {
        let rows = plan.fields.iter().position(|f| matches!(f.node, Node::List(..)));
        let fields = plan.fields.iter().take(rows.unwrap_or(usize::MAX)).cloned().collect();
        Scalars::new(&Plan { fields, ..Plan::default() })
    }

    /// Whether there is no field to look at.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && !self.by_payload
    }

    /// Decodes an event. Fields that it does not have, or not whole, are null.
    pub fn read(&mut self, event: &Event<'_>) {
        match event.info.plan(event.raw.payload) {
            Ok(plan) => {
                if self.by_payload {
                    *self = Scalars { by_payload: true, ..Scalars::new(plan) };
                }
                let _fit = decode(plan, event.raw.payload, &mut self.columns);
            }
            Err(_) => self.columns.clear(),
        }
    }

    /// A field by its name.
    pub fn get(&self, name: &str) -> &Value {
        let index = self.names.iter().position(|n| n == name);
        index.and_then(|i| self.columns.get(i)).map_or(NULL, ValueColumn::value)
    }

    /// All fields with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.names.iter().map(String::as_str).zip(self.columns.iter().map(ValueColumn::value))
    }

    /// A number by its name.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name).as_u64()
    }

    /// A number by its name, narrowed; `None` when it is missing or does not fit.
    pub fn small<T: TryFrom<u64>>(&self, name: &str) -> Option<T> {
        self.number(name).and_then(|v| T::try_from(v).ok())
    }

    /// A floating-point number by its name.
    pub fn float(&self, name: &str) -> Option<f64> {
        if let Value::Float(value) = self.get(name) { Some(*value) } else { None }
    }

    /// A text by its name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).as_str()
    }
}
