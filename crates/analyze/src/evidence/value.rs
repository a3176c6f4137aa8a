//! A value of a query.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// A value. Times are nanoseconds since the recording began.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Number(f64),
    Text(Rc<str>),
}

impl Value {
    pub(super) fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    /// A truth value is a number, as in a table.
    pub(super) fn flag(holds: bool) -> Value {
        Value::Number(f64::from(u8::from(holds)))
    }

    pub(super) fn number(&self) -> Option<f64> {
        if let Value::Number(number) = self { Some(*number) } else { None }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Whether a condition holds. What is not known does not.
    pub(super) fn holds(&self) -> bool {
        self.number().is_some_and(|number| number != 0.0)
    }
}

/// Numbers before texts, nothing behind both.
impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Number(a), Value::Number(b)) => a.total_cmp(b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl Value {
    fn rank(&self) -> u8 {
        match self {
            Value::Number(_) => 0,
            Value::Text(_) => 1,
            Value::Null => 2,
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Value::Number(number) => number.to_bits().hash(state),
            Value::Text(text) => text.hash(state),
            Value::Null => 0u8.hash(state),
        }
    }
}
