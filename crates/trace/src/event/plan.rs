//! Decode plans: how to walk one kind of payload, compiled once per event type and pointer size.

use crate::reader::{Field, FieldType, Shown};

/// No layout needs more fields as counts of others.
pub(super) const MAX_SLOTS: usize = 8;

/// A plan by which payloads of one kind are decoded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The fields in the order of the payload.
    pub fields: Vec<PlanField>,
    /// The number of fields that are remembered as element counts of later ones.
    pub slots: usize,
    /// Other readings of the same fields, for writers whose payloads are not as they describe them. The first one that takes exactly the
    /// whole payload holds where `fields` do not.
    pub otherwise: Vec<Vec<PlanField>>,
}

/// A field of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanField {
    /// Name as the manifest or the recording has it.
    pub name: String,
    /// The way in which the field is read.
    pub node: Node,
    /// Where to remember its value as a count.
    pub slot: Option<u8>,
}

/// A way in which one value is read.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Node {
    Bool8,
    Bool32,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    /// A 4-byte pointer, shown as 64 bits. (8-byte pointers are `U64`.)
    Pointer32,
    VarInt,
    VarUInt,
    Guid,
    FileTime,
    /// A 16-bit number in network order.
    U16Be,
    /// SYSTEMTIME: eight 16-bit numbers.
    SystemTime,
    /// A security identifier, shown as `S-1-...`.
    Sid,
    /// A security identifier behind a TOKEN_USER of two pointers of this size; four zero bytes when there is none.
    TokenSid(u8),
    /// One UTF-16 code unit.
    Utf16Unit,
    /// One UTF-8 code unit.
    Utf8Unit,
    Utf16Z,
    /// A UTF-16 text as the last field of all, where writers may leave out the terminator or the whole text.
    Utf16Tail,
    /// 8-bit text up to a zero byte.
    AnsiZ,
    /// UTF-16 text with a count of units.
    Utf16Counted(Count),
    /// UTF-16 text behind a u16 count of bytes.
    Utf16Bytes,
    /// UTF-8 text with a count of bytes.
    Utf8Counted(Count),
    Bytes(Count),
    Struct(Vec<PlanField>),
    List(Count, Box<Node>),
    /// Bytes between fields of a C struct; no value.
    Padding(u8),
    /// The value before, without this many of its first bytes, as text. It takes no bytes of the payload.
    Text(Shown, u8),
}

/// Where the number of elements comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Count {
    /// A u16 before the elements.
    U16,
    /// The description.
    Fixed(u32),
    /// An earlier field.
    Slot(u8),
    /// As many whole elements as the payload has left.
    Rest,
    /// Size in bytes and position relative to the end of this field.
    RelLoc,
    /// Size in bytes and position relative to the start of the payload.
    DataLoc,
}

impl Plan {
    /// A plan for fields that the recording itself describes.
    pub fn described(fields: &[Field], provider: &str) -> Plan {
        // one-collect's strings: declared as one code unit, written as u16 length and UTF-8.
        let counted_utf8 = provider == "Universal.System";
        // `EventSource.Write` wraps all fields in one object without a name.
        let inner = match fields {
            [Field { name, kind: FieldType::Object(inner) }] if name.is_empty() => inner.as_slice(),
            _ => fields,
        };
        let compile = |narrow: bool| {
            let mut context = Described { narrow_booleans: narrow, counted_utf8, slots: 0 };
            (context.fields(inner), context)
        };
        let (mut fields, mut context) = compile(false);
        // `EventSource.Write` writes booleans of one byte while its metadata says four.
        let mut otherwise: Vec<_> = has_boolean(inner).then(|| compile(true).0).into_iter().collect();
        otherwise.extend(context.counted_before(inner, &mut fields));
        Plan { fields, slots: usize::from(context.slots), otherwise }
    }

    /// Lets text that comes last end with the payload, as events of ETW do. Source: the remarks on
    /// `TdhFormatProperty`; HTTP.sys writes its URLs so.
    pub fn with_open_end(mut self) -> Plan {
        for fields in std::iter::once(&mut self.fields).chain(&mut self.otherwise) {
            if let Some(PlanField { node: node @ Node::Utf16Z, .. }) = fields.last_mut() {
                *node = Node::Utf16Tail;
            }
        }
        self
    }
}

fn has_boolean(fields: &[Field]) -> bool {
    fields.iter().any(|f| match &f.kind {
        FieldType::Bool32 => true,
        FieldType::Object(inner) => has_boolean(inner),
        FieldType::Array(element) | FieldType::FixedArray(element, _) | FieldType::Counted(element, _) => {
            **element == FieldType::Bool32
        }
        _ => false,
    })
}

struct Described {
    narrow_booleans: bool,
    counted_utf8: bool,
    slots: u8,
}

impl Described {
    /// The fields of one structure; those that others count their elements by get a slot.
    fn fields(&mut self, fields: &[Field]) -> Vec<PlanField> {
        let mut out: Vec<PlanField> = Vec::with_capacity(fields.len());
        for field in fields {
            let node = self.node(&field.kind, &mut out);
            out.push(PlanField { name: field.name.clone(), node, slot: None });
            if let FieldType::Shown(value, shown) = &field.kind {
                // The count before the bytes is no part of an address.
                let skip = if matches!(**value, FieldType::Array(_)) { 2 } else { 0 };
                out.push(PlanField {
                    name: format!("{}_text", field.name),
                    node: Node::Text(*shown, skip),
                    slot: None,
                });
            }
        }
        out
    }

    /// The fields with arrays that have no count of their own but that of the field before, as profilers write events that they define
    /// themselves (Visual Studio's allocation profiler). Without such an array nothing.
    fn counted_before(&mut self, described: &[Field], fields: &mut [PlanField]) -> Option<Vec<PlanField>> {
        let mut counted = Vec::new();
        for (index, field) in described.iter().enumerate() {
            let before = index.checked_sub(1);
            if let (FieldType::Array(element), Some(before)) = (&field.kind, before)
                && let count = self.slot(fields, before)
                && count != Count::Slot(u8::MAX)
            {
                counted.push((index, self.list(count, element, fields)));
            }
        }
        let mut out = fields.to_vec();
        let is_any = !counted.is_empty();
        for (index, node) in counted {
            let mut of_values = out.iter_mut().filter(|field| !matches!(field.node, Node::Text(..)));
            of_values.nth(index)?.node = node;
        }
        is_any.then_some(out)
    }

    /// The slot of an earlier field. Without one (no such field, or no slot left) the value counts as cut off.
    fn slot(&mut self, before: &mut [PlanField], index: usize) -> Count {
        let number = |n: &Node| matches!(n, Node::U8 | Node::U16 | Node::U32 | Node::U64 | Node::Pointer32);
        let signed = |n: &Node| matches!(n, Node::I8 | Node::I16 | Node::I32 | Node::I64);
        let mut fields = before.iter_mut().filter(|f| !matches!(f.node, Node::Text(..)));
        let found = fields.nth(index).filter(|f| number(&f.node) || signed(&f.node));
        let Some(field) = found else { return Count::Slot(u8::MAX) };
        if field.slot.is_none() && usize::from(self.slots) < MAX_SLOTS {
            field.slot = Some(self.slots);
            self.slots += 1;
        }
        field.slot.map_or(Count::Slot(u8::MAX), Count::Slot)
    }

    fn node(&mut self, kind: &FieldType, before: &mut [PlanField]) -> Node {
        match kind {
            FieldType::Bool32 if self.narrow_booleans => Node::Bool8,
            FieldType::Bool32 => Node::Bool32,
            FieldType::Bool8 => Node::Bool8,
            FieldType::Utf16Unit => Node::Utf16Unit,
            FieldType::Utf8Unit if self.counted_utf8 => Node::Utf8Counted(Count::U16),
            FieldType::Utf8Unit => Node::Utf8Unit,
            FieldType::I8 => Node::I8,
            FieldType::U8 => Node::U8,
            FieldType::I16 => Node::I16,
            FieldType::U16 => Node::U16,
            FieldType::I32 => Node::I32,
            FieldType::U32 => Node::U32,
            FieldType::I64 => Node::I64,
            FieldType::U64 => Node::U64,
            FieldType::F32 => Node::F32,
            FieldType::F64 => Node::F64,
            FieldType::DateTime => Node::FileTime,
            FieldType::Guid => Node::Guid,
            FieldType::Utf16Z => Node::Utf16Z,
            FieldType::VarInt => Node::VarInt,
            FieldType::VarUInt => Node::VarUInt,
            FieldType::Object(fields) => Node::Struct(self.fields(fields)),
            FieldType::Array(element) => self.list(Count::U16, element, before),
            FieldType::FixedArray(element, count) => self.list(Count::Fixed(u32::from(*count)), element, before),
            FieldType::Counted(element, index) => {
                let count = self.slot(before, *index);
                self.list(count, element, before)
            }
            FieldType::RelLoc(element) => self.list(Count::RelLoc, element, before),
            FieldType::DataLoc(element) => self.list(Count::DataLoc, element, before),
            FieldType::Pointer32 => Node::Pointer32,
            FieldType::U16Be => Node::U16Be,
            FieldType::AnsiZ => Node::AnsiZ,
            FieldType::SystemTime => Node::SystemTime,
            FieldType::Sid => Node::Sid,
            FieldType::Utf16Bytes => Node::Utf16Bytes,
            // Of elements of a list there is no text.
            FieldType::Shown(value, _) => self.node(value, before),
        }
    }

    fn list(&mut self, count: Count, element: &FieldType, before: &mut [PlanField]) -> Node {
        match element {
            FieldType::Utf16Unit => Node::Utf16Counted(count),
            FieldType::Utf8Unit => Node::Utf8Counted(count),
            FieldType::U8 => Node::Bytes(count),
            FieldType::Shown(element, _) => self.list(count, element, before),
            _ => Node::List(count, Box::new(self.node(element, before))),
        }
    }
}

impl Node {
    /// Bytes of a value, when every value has the same number.
    pub fn fixed_size(&self) -> Option<usize> {
        Some(match self {
            Node::Bool8 | Node::U8 | Node::I8 | Node::Utf8Unit => 1,
            Node::U16 | Node::I16 | Node::Utf16Unit | Node::U16Be => 2,
            Node::Bool32 | Node::U32 | Node::I32 | Node::F32 | Node::Pointer32 => 4,
            Node::U64 | Node::I64 | Node::F64 | Node::FileTime => 8,
            Node::Guid | Node::SystemTime => 16,
            Node::Padding(bytes) => usize::from(*bytes),
            Node::Text(..) => 0,
            Node::Struct(fields) => fields.iter().try_fold(0usize, |sum, f| sum.checked_add(f.node.fixed_size()?))?,
            Node::List(Count::Fixed(count), element) => element.fixed_size()?.checked_mul(*count as usize)?,
            Node::Utf16Counted(Count::Fixed(count)) => (*count as usize).checked_mul(2)?,
            Node::Utf8Counted(Count::Fixed(count)) | Node::Bytes(Count::Fixed(count)) => *count as usize,
            Node::List(Count::RelLoc | Count::DataLoc, _)
            | Node::Utf16Counted(Count::RelLoc | Count::DataLoc)
            | Node::Utf8Counted(Count::RelLoc | Count::DataLoc)
            | Node::Bytes(Count::RelLoc | Count::DataLoc) => 4,
            _ => return None,
        })
    }

    /// The number of strings of a value that is nothing but strings which end in a zero unit.
    pub fn strings(&self) -> Option<usize> {
        match self {
            Node::Utf16Z => Some(1),
            Node::Struct(fields) => {
                fields.iter().all(|field| matches!(field.node, Node::Utf16Z)).then_some(fields.len())
            }
            _ => None,
        }
    }

    /// Whether a value of this kind refers to bytes elsewhere in the payload, which may not be there.
    pub fn has_locations(&self) -> bool {
        match self {
            Node::List(count, element) => matches!(count, Count::RelLoc | Count::DataLoc) || element.has_locations(),
            Node::Utf16Counted(count) | Node::Utf8Counted(count) | Node::Bytes(count) => {
                matches!(count, Count::RelLoc | Count::DataLoc)
            }
            Node::Struct(fields) => fields.iter().any(|field| field.node.has_locations()),
            _ => false,
        }
    }

    /// The least number of bytes that a value takes.
    pub fn min_size(&self) -> usize {
        match self {
            Node::Utf16Z | Node::Utf16Counted(Count::U16) | Node::Utf8Counted(Count::U16) | Node::Bytes(Count::U16) => {
                2
            }
            Node::List(Count::U16, _) | Node::Utf16Bytes => 2,
            Node::Sid => 8,
            Node::TokenSid(_) => 4,
            Node::VarInt | Node::VarUInt | Node::AnsiZ => 1,
            Node::Struct(fields) => fields.iter().fold(0, |sum, f| sum.saturating_add(f.node.min_size())),
            other => other.fixed_size().unwrap_or(0),
        }
    }
}
