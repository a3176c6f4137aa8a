//! A decoded value on its own, for code that looks at single events rather than at columns.

use super::decode::Column;
use super::plan::{Node, PlanField};
use crate::guid::Guid;
use crate::utf16;

/// One decoded value.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum Value {
    /// Absent, or not readable.
    #[default]
    Null,
    Bool(bool),
    Uint(u64),
    Int(i64),
    Float(f64),
    Guid(Guid),
    /// 100 ns units since 1601.
    FileTime(u64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    /// The values of a struct's fields, in order.
    Struct(Vec<Value>),
}

impl Value {
    /// The value as an unsigned number, if it is a number that is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Uint(v) => Some(*v),
            Value::Int(v) => u64::try_from(*v).ok(),
            Value::Bool(v) => Some(u64::from(*v)),
            _ => None,
        }
    }

    /// The value as text, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// The value as a GUID, if it is one.
    pub fn as_guid(&self) -> Option<Guid> {
        if let Value::Guid(guid) = self { Some(*guid) } else { None }
    }

    /// The elements, if it is a list.
    pub fn as_list(&self) -> &[Value] {
        if let Value::List(values) = self { values } else { &[] }
    }
}

/// A column that remembers the last value only.
#[derive(Clone, Debug, Default)]
pub struct ValueColumn {
    value: Value,
    fields: Vec<ValueColumn>,
    element: Option<Box<ValueColumn>>,
    elements: Vec<Value>,
    pending: bool,
}

impl ValueColumn {
    /// A column for the values that `node` decodes to.
    pub fn new(node: &Node) -> ValueColumn {
        let mut column = ValueColumn::default();
        match node {
            Node::Struct(fields) => column.fields = ValueColumn::for_fields(fields),
            Node::List(_, element) => column.element = Some(Box::new(ValueColumn::new(element))),
            _ => {}
        }
        column
    }

    /// The memory of the text that was the value before, empty.
    fn taken_text(&mut self) -> Vec<u8> {
        let mut text = match std::mem::replace(&mut self.value, Value::Null) {
            Value::Text(text) => text.into_bytes(),
            _ => Vec::new(),
        };
        text.clear();
        text
    }

    /// Columns for all fields of a plan or struct.
    pub fn for_fields(fields: &[PlanField]) -> Vec<ValueColumn> {
        let values = fields.iter().filter(|f| !matches!(f.node, Node::Padding(_)));
        values.map(|f| ValueColumn::new(&f.node)).collect()
    }

    /// The value decoded last.
    pub fn value(&self) -> &Value {
        &self.value
    }

    fn collect_element(&mut self) {
        if self.pending
            && let Some(element) = &mut self.element
        {
            self.elements.push(std::mem::take(&mut element.value));
        }
        self.pending = false;
    }
}

impl Column for ValueColumn {
    fn uint(&mut self, value: u64) {
        self.value = Value::Uint(value);
    }

    fn int(&mut self, value: i64) {
        self.value = Value::Int(value);
    }

    fn float(&mut self, value: f64) {
        self.value = Value::Float(value);
    }

    fn bool(&mut self, value: bool) {
        self.value = Value::Bool(value);
    }

    fn guid(&mut self, value: Guid) {
        self.value = Value::Guid(value);
    }

    fn file_time(&mut self, value: u64) -> bool {
        self.value = Value::FileTime(value);
        false
    }

    fn utf16(&mut self, bytes: &[u8]) -> bool {
        let mut out = self.taken_text();
        let replaced = utf16::push(bytes, &mut out);
        self.value = Value::Text(String::from_utf8(out).unwrap_or_default());
        replaced
    }

    fn utf16z(&mut self, bytes: &[u8]) -> Option<(usize, bool)> {
        let mut out = self.taken_text();
        let found = utf16::push_up_to_zero(bytes, &mut out)?;
        self.value = Value::Text(String::from_utf8(out).unwrap_or_default());
        Some(found)
    }

    fn utf8(&mut self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let replaced = matches!(text, std::borrow::Cow::Owned(_));
        self.value = Value::Text(text.into_owned());
        replaced
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.value = Value::Bytes(bytes.to_vec());
    }

    fn null(&mut self) {
        self.value = Value::Null;
    }

    fn fields(&mut self) -> &mut [ValueColumn] {
        &mut self.fields
    }

    fn end_struct(&mut self) {
        self.value = Value::Struct(self.fields.iter_mut().map(|c| std::mem::take(&mut c.value)).collect());
    }

    fn element(&mut self) -> &mut ValueColumn {
        self.collect_element();
        self.pending = true;
        self.element.get_or_insert_default()
    }

    fn end_list(&mut self) {
        self.collect_element();
        self.value = Value::List(std::mem::take(&mut self.elements));
    }
}
