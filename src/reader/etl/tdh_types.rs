//! The types in which TraceLogging schemas, manifests and embedded schemas describe fields, in one place.
//! Source: `TDH_INTYPE_*` and `TDH_OUTTYPE_*` of the SDK's `tdh.h`, `TlgIn*` of microsoft/tracelogging.

use crate::reader::{Field, FieldType};

/// What a recording says of a kind of event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// Provider name; empty when it is not said.
    pub provider: String,
    /// Event name; empty when it is not said.
    pub name: String,
    /// Message.
    pub message: Option<String>,
    /// The fields; `None` when they are not described.
    pub fields: Option<Vec<Field>>,
    /// Why the fields cannot be used.
    pub unreadable: Option<&'static str>,
}

/// The type of a single value; `None` for numbers that stand for none, and for those whose length comes from elsewhere.
pub fn value(in_type: u16, out_type: u16, pointer_size: u8) -> Option<FieldType> {
    Some(match (in_type, out_type) {
        (1, _) => FieldType::Utf16Z,
        (2, _) => FieldType::AnsiZ,
        (3, _) => FieldType::I8,
        (4, 2) => FieldType::Utf8Unit,
        (4, 3) => FieldType::Bool8,
        (4, _) => FieldType::U8,
        (5, _) => FieldType::I16,
        (6, 2) => FieldType::Utf16Unit,
        (6, 7) => FieldType::U16Be,
        (6, _) => FieldType::U16,
        (7, _) => FieldType::I32,
        (8 | 20, _) => FieldType::U32,
        (9, _) => FieldType::I64,
        (10 | 21, _) => FieldType::U64,
        (11, _) => FieldType::F32,
        (12, _) => FieldType::F64,
        (13, _) => FieldType::Bool32,
        (15, _) => FieldType::Guid,
        (16, _) => pointer(pointer_size),
        (17, _) => FieldType::DateTime,
        (18, _) => FieldType::SystemTime,
        (19, _) => FieldType::Sid,
        _ => return None,
    })
}

/// A pointer, or a size, of the process that wrote the event.
pub fn pointer(pointer_size: u8) -> FieldType {
    if pointer_size == 4 { FieldType::Pointer32 } else { FieldType::U64 }
}

/// A named field.
pub fn field(name: impl Into<String>, kind: FieldType) -> Field {
    Field { name: name.into(), kind }
}
