//! Columns for the payload fields of events: built from decode plans, fed by the decoder.

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::{ArrayRef, BooleanArray, ListArray, StructArray, new_null_array};
use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};
use tracequet_trace::event::decode::Column;
use tracequet_trace::event::plan::{Node, PlanField};
use tracequet_trace::guid::Guid;
use tracequet_trace::time::file_time_to_utc_us;
use tracequet_trace::utf16;

use super::columns::{Builder, OptGuid, Optional, TextBuffer};
use super::schema::{label, timestamp};
use super::unique_names::UniqueNames;
use crate::table_spec::Encoding;

/// One payload column; every value may be null. One variant per Arrow type.
#[allow(missing_docs, reason = "named as in Arrow")]
pub enum PayloadColumn {
    U8(Optional<UInt8Type>),
    U16(Optional<UInt16Type>),
    U32(Optional<UInt32Type>),
    U64(Optional<UInt64Type>),
    I8(Optional<Int8Type>),
    I16(Optional<Int16Type>),
    I32(Optional<Int32Type>),
    I64(Optional<Int64Type>),
    F32(Optional<Float32Type>),
    F64(Optional<Float64Type>),
    Bool(BooleanBufferBuilder, NullBufferBuilder),
    Time(Optional<TimestampMicrosecondType>),
    Guid(Box<OptGuid>),
    Text(TextBuffer),
    Bytes(TextBuffer),
    Struct(Vec<PayloadColumn>, Fields, NullBufferBuilder),
    List(Box<List>),
}

/// A list column: where each list ends, and the elements of all of them.
pub struct List {
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    element: PayloadColumn,
    len: i32,
    field: Arc<Field>,
}

/// Replaces the fields of an object without fields: Parquet has no struct without a column.
fn no_fields() -> Fields {
    Fields::from(vec![Field::new("empty", DataType::Boolean, true)])
}

/// Columns of Parquet that the values of a node become.
pub fn leaves(node: &Node) -> usize {
    match node {
        Node::Padding(_) => 0,
        Node::Struct(fields) => fields.iter().map(|field| leaves(&field.node)).sum::<usize>().max(1),
        Node::List(_, element) => leaves(element),
        _ => 1,
    }
}

fn nulls() -> NullBufferBuilder {
    NullBufferBuilder::new(0)
}

impl PayloadColumn {
    /// A column for the values that `node` decodes to.
    pub fn new(node: &Node) -> PayloadColumn {
        match node {
            Node::Bool8 | Node::Bool32 => PayloadColumn::Bool(BooleanBufferBuilder::new(0), nulls()),
            Node::U8 => PayloadColumn::U8(Optional::default()),
            Node::U16 | Node::U16Be => PayloadColumn::U16(Optional::default()),
            Node::U32 => PayloadColumn::U32(Optional::default()),
            Node::U64 | Node::Pointer32 | Node::VarUInt => PayloadColumn::U64(Optional::default()),
            Node::I8 => PayloadColumn::I8(Optional::default()),
            Node::I16 => PayloadColumn::I16(Optional::default()),
            Node::I32 => PayloadColumn::I32(Optional::default()),
            Node::I64 | Node::VarInt => PayloadColumn::I64(Optional::default()),
            Node::F32 => PayloadColumn::F32(Optional::default()),
            Node::F64 => PayloadColumn::F64(Optional::default()),
            Node::FileTime | Node::SystemTime => PayloadColumn::Time(Optional::default()),
            Node::Guid => PayloadColumn::Guid(Box::default()),
            Node::Utf16Z | Node::AnsiZ | Node::Utf16Unit | Node::Utf8Unit => PayloadColumn::Text(TextBuffer::default()),
            Node::Utf16Tail | Node::Sid | Node::TokenSid(_) => PayloadColumn::Text(TextBuffer::default()),
            Node::Utf16Counted(_) | Node::Utf16Bytes | Node::Utf8Counted(_) | Node::Text(..) => {
                PayloadColumn::Text(TextBuffer::default())
            }
            Node::Bytes(_) | Node::Padding(_) => PayloadColumn::Bytes(TextBuffer::default()),
            Node::Struct(fields) => {
                let (names, columns) = PayloadColumn::for_fields(fields);
                let arrow = names.iter().zip(&columns).map(|(n, c)| Field::new(n, c.data_type(), true)).collect();
                let arrow = if columns.is_empty() { no_fields() } else { arrow };
                PayloadColumn::Struct(columns, arrow, nulls())
            }
            Node::List(_, element) => {
                let element = PayloadColumn::new(element);
                let field = Arc::new(Field::new("item", element.data_type(), true));
                PayloadColumn::List(Box::new(List { offsets: vec![0], nulls: nulls(), element, len: 0, field }))
            }
        }
    }

    /// Columns for fields, with names that are unique whatever their case.
    pub fn for_fields(fields: &[PlanField]) -> (Vec<String>, Vec<PayloadColumn>) {
        let (mut names, mut columns, mut unique) = (Vec::new(), Vec::new(), UniqueNames::default());
        for field in fields.iter().filter(|f| !matches!(f.node, Node::Padding(_))) {
            names.push(unique.add(snake_case(&field.name)));
            columns.push(PayloadColumn::new(&field.node));
        }
        (names, columns)
    }

    /// The Arrow type.
    pub fn data_type(&self) -> DataType {
        match self {
            PayloadColumn::U8(_) => DataType::UInt8,
            PayloadColumn::U16(_) => DataType::UInt16,
            PayloadColumn::U32(_) => DataType::UInt32,
            PayloadColumn::U64(_) => DataType::UInt64,
            PayloadColumn::I8(_) => DataType::Int8,
            PayloadColumn::I16(_) => DataType::Int16,
            PayloadColumn::I32(_) => DataType::Int32,
            PayloadColumn::I64(_) => DataType::Int64,
            PayloadColumn::F32(_) => DataType::Float32,
            PayloadColumn::F64(_) => DataType::Float64,
            PayloadColumn::Bool(..) => DataType::Boolean,
            PayloadColumn::Time(_) => timestamp(),
            PayloadColumn::Guid(_) => label(),
            PayloadColumn::Text(_) => DataType::Utf8,
            PayloadColumn::Bytes(_) => DataType::Binary,
            PayloadColumn::Struct(_, fields, _) => DataType::Struct(fields.clone()),
            PayloadColumn::List(list) => DataType::List(list.field.clone()),
        }
    }

    /// The encoding that fits values of this kind; nothing is known of their distribution.
    pub fn encoding(&self) -> Encoding {
        match self {
            PayloadColumn::F32(_) | PayloadColumn::F64(_) | PayloadColumn::Bytes(_) => Encoding::Plain,
            _ => Encoding::Dictionary,
        }
    }

    /// The width of a plain number, to let the widest version of a field decide; `None` for everything else.
    pub fn width(&self) -> Option<(bool, u8)> {
        Some(match self {
            PayloadColumn::U8(_) => (false, 1),
            PayloadColumn::U16(_) => (false, 2),
            PayloadColumn::U32(_) => (false, 4),
            PayloadColumn::U64(_) => (false, 8),
            PayloadColumn::I8(_) => (true, 1),
            PayloadColumn::I16(_) => (true, 2),
            PayloadColumn::I32(_) => (true, 4),
            PayloadColumn::I64(_) => (true, 8),
            _ => return None,
        })
    }

    /// Bytes of text and lists so far, roughly.
    pub fn bytes(&self) -> usize {
        match self {
            PayloadColumn::Text(text) | PayloadColumn::Bytes(text) => text.bytes(),
            PayloadColumn::Struct(columns, ..) => columns.iter().map(PayloadColumn::bytes).sum(),
            PayloadColumn::List(list) => list.len as usize * 16 + list.element.bytes(),
            _ => 0,
        }
    }

    /// The rows so far; the column is empty afterwards.
    pub fn finish(&mut self) -> ArrayRef {
        match self {
            PayloadColumn::U8(c) => Arc::new(c.take()),
            PayloadColumn::U16(c) => Arc::new(c.take()),
            PayloadColumn::U32(c) => Arc::new(c.take()),
            PayloadColumn::U64(c) => Arc::new(c.take()),
            PayloadColumn::I8(c) => Arc::new(c.take()),
            PayloadColumn::I16(c) => Arc::new(c.take()),
            PayloadColumn::I32(c) => Arc::new(c.take()),
            PayloadColumn::I64(c) => Arc::new(c.take()),
            PayloadColumn::F32(c) => Arc::new(c.take()),
            PayloadColumn::F64(c) => Arc::new(c.take()),
            PayloadColumn::Bool(values, nulls) => Arc::new(BooleanArray::new(values.finish(), nulls.finish())),
            PayloadColumn::Time(c) => Arc::new(c.take().with_timezone("UTC")),
            PayloadColumn::Guid(c) => c.finish(),
            PayloadColumn::Text(c) => c.take(),
            PayloadColumn::Bytes(c) => c.take_binary(),
            PayloadColumn::Struct(columns, fields, nulls) => {
                let len = nulls.len();
                let nulls = nulls.finish();
                let mut arrays: Vec<ArrayRef> = columns.iter_mut().map(PayloadColumn::finish).collect();
                if arrays.is_empty() {
                    arrays.extend(fields.iter().map(|field| new_null_array(field.data_type(), len)));
                }
                Arc::new(StructArray::new(fields.clone(), arrays, nulls))
            }
            PayloadColumn::List(list) => {
                let offsets = OffsetBuffer::new(std::mem::replace(&mut list.offsets, vec![0]).into());
                list.len = 0;
                Arc::new(ListArray::new(list.field.clone(), offsets, list.element.finish(), list.nulls.finish()))
            }
        }
    }
}

impl Column for PayloadColumn {
    #[inline]
    fn uint(&mut self, value: u64) {
        match self {
            PayloadColumn::U8(c) => c.append(Some(value as u8)),
            PayloadColumn::U16(c) => c.append(Some(value as u16)),
            PayloadColumn::U32(c) => c.append(Some(value as u32)),
            PayloadColumn::U64(c) => c.append(Some(value)),
            PayloadColumn::I64(c) => c.append(Some(value as i64)),
            other => other.null(),
        }
    }

    #[inline]
    fn int(&mut self, value: i64) {
        match self {
            PayloadColumn::I8(c) => c.append(Some(value as i8)),
            PayloadColumn::I16(c) => c.append(Some(value as i16)),
            PayloadColumn::I32(c) => c.append(Some(value as i32)),
            PayloadColumn::I64(c) => c.append(Some(value)),
            other => other.null(),
        }
    }

    #[inline]
    fn float(&mut self, value: f64) {
        match self {
            PayloadColumn::F32(c) => c.append(Some(value as f32)),
            PayloadColumn::F64(c) => c.append(Some(value)),
            other => other.null(),
        }
    }

    #[inline]
    fn bool(&mut self, value: bool) {
        match self {
            PayloadColumn::Bool(values, nulls) => {
                values.append(value);
                nulls.append_non_null();
            }
            other => other.null(),
        }
    }

    fn guid(&mut self, value: Guid) {
        match self {
            PayloadColumn::Guid(c) => c.push_value(value),
            other => other.null(),
        }
    }

    fn file_time(&mut self, value: u64) -> bool {
        let time = file_time_to_utc_us(value);
        match self {
            PayloadColumn::Time(c) => c.append(time),
            other => other.null(),
        }
        time.is_none()
    }

    #[inline]
    fn utf16(&mut self, bytes: &[u8]) -> bool {
        match self {
            PayloadColumn::Text(c) => c.push_with(|out| utf16::push(bytes, out)),
            other => {
                other.null();
                true
            }
        }
    }

    #[inline]
    fn utf16z(&mut self, bytes: &[u8]) -> Option<(usize, bool)> {
        match self {
            PayloadColumn::Text(c) => c.push_utf16z(bytes),
            other => Some((utf16::end(bytes)?, other.utf16(&[]))),
        }
    }

    fn utf8(&mut self, bytes: &[u8]) -> bool {
        match self {
            PayloadColumn::Text(c) => {
                let text = String::from_utf8_lossy(bytes);
                c.push_with(|out| out.extend_from_slice(text.as_bytes()));
                matches!(text, std::borrow::Cow::Owned(_))
            }
            other => {
                other.null();
                true
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        match self {
            PayloadColumn::Bytes(c) => c.push_with(|out| out.extend_from_slice(bytes)),
            other => other.null(),
        }
    }

    fn null(&mut self) {
        match self {
            PayloadColumn::U8(c) => c.append(None),
            PayloadColumn::U16(c) => c.append(None),
            PayloadColumn::U32(c) => c.append(None),
            PayloadColumn::U64(c) => c.append(None),
            PayloadColumn::I8(c) => c.append(None),
            PayloadColumn::I16(c) => c.append(None),
            PayloadColumn::I32(c) => c.append(None),
            PayloadColumn::I64(c) => c.append(None),
            PayloadColumn::F32(c) => c.append(None),
            PayloadColumn::F64(c) => c.append(None),
            PayloadColumn::Bool(values, nulls) => {
                values.append(false);
                nulls.append_null();
            }
            PayloadColumn::Time(c) => c.append(None),
            PayloadColumn::Guid(c) => c.push_null(),
            PayloadColumn::Text(c) | PayloadColumn::Bytes(c) => c.push_null(),
            PayloadColumn::Struct(columns, _, nulls) => {
                columns.iter_mut().for_each(PayloadColumn::null);
                nulls.append_null();
            }
            PayloadColumn::List(list) => {
                list.offsets.push(list.len);
                list.nulls.append_null();
            }
        }
    }

    fn fields(&mut self) -> &mut [PayloadColumn] {
        if let PayloadColumn::Struct(columns, ..) = self { columns } else { &mut [] }
    }

    fn end_struct(&mut self) {
        if let PayloadColumn::Struct(_, _, nulls) = self {
            nulls.append_non_null();
        }
    }

    #[inline]
    fn element(&mut self) -> &mut PayloadColumn {
        match self {
            PayloadColumn::List(list) => {
                list.len = list.len.saturating_add(1);
                &mut list.element
            }
            other => other,
        }
    }

    fn end_list(&mut self) {
        if let PayloadColumn::List(list) = self {
            list.offsets.push(list.len);
            list.nulls.append_non_null();
        }
    }
}

/// `ClrInstanceID` to `clr_instance_id`, `ILOffsets` to `il_offsets`, an empty name to `value`.
pub fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 4);
    for (index, c) in chars.iter().enumerate() {
        if !c.is_alphanumeric() {
            if !out.ends_with('_') && !out.is_empty() {
                out.push('_');
            }
            continue;
        }
        let before = index.checked_sub(1).and_then(|i| chars.get(i)).copied().unwrap_or('_');
        let after_is_lower = chars.get(index + 1).is_some_and(|n| n.is_lowercase());
        let word_begins = c.is_uppercase()
            && (before.is_lowercase() || before.is_numeric() || (before.is_uppercase() && after_is_lower));
        if word_begins && !out.ends_with('_') && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    let out = out.trim_end_matches('_');
    if out.is_empty() { "value".to_owned() } else { out.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_snake_case() {
        for (from, to) in [
            ("ClrInstanceID", "clr_instance_id"),
            ("ILOffsets", "il_offsets"),
            ("GCRootID", "gc_root_id"),
            ("TotalPromotedSize0", "total_promoted_size0"),
            ("AllocationAmount64", "allocation_amount64"),
            ("Gen0ReductionCount", "gen0_reduction_count"),
            ("already_snake", "already_snake"),
            ("ключ", "ключ"),
            ("", "value"),
            ("a b-c", "a_b_c"),
        ] {
            assert_eq!(snake_case(from), to);
        }
    }
}
