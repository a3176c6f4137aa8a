//! The types in which TraceLogging schemas, manifests and embedded schemas describe fields.
//! Source: `TDH_INTYPE_*` and `TDH_OUTTYPE_*` of the SDK's `tdh.h`, `TlgIn*` and `TlgOut*` of microsoft/tracelogging,
//! the event manifest schema (`eventman.xsd`) for the names.

use std::sync::Arc;

use crate::reader::{EtwForm, EtwLayout, Field, FieldType, Layout, Shown};

/// A description of a kind of event, by a recording or a manifest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// Provider name; empty when it is not given.
    pub provider: String,
    /// Event name; empty when it is not given.
    pub name: String,
    /// Message.
    pub message: Option<Arc<str>>,
    /// The fields, or why they cannot be used; `None` when they are not described.
    pub fields: Option<Result<Vec<Field>, &'static str>>,
}

impl Description {
    /// The layout of an event of this form that is described so.
    pub fn layout(&mut self, pointer_size: u8, form: EtwForm) -> Layout {
        match self.fields.take().transpose() {
            Ok(fields) => Layout::Etw(EtwLayout { pointer_size, form, fields }),
            Err(why) => Layout::Unreadable(why),
        }
    }
}

macro_rules! in_types {
    ($($name:ident = $number:pat, $manifest:literal;)*) => {
        /// The layout of the bytes of a value in the payload.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are those of the SDK")]
        pub enum InType {
            $($name,)*
        }

        impl InType {
            /// By the number in a schema (TDH and TraceLogging use the same); `None` when it is not known.
            pub fn of_number(number: u16) -> Option<InType> {
                match number {
                    $($number => Some(InType::$name),)*
                    _ => None,
                }
            }

            /// By the name in a manifest.
            pub fn of_manifest(name: &str) -> Option<InType> {
                match name {
                    $($manifest => Some(InType::$name),)*
                    "win:SizeT" => Some(InType::Pointer),
                    _ => None,
                }
            }
        }
    };
}

in_types! {
    UnicodeString = 1, "win:UnicodeString";
    AnsiString = 2, "win:AnsiString";
    Int8 = 3, "win:Int8";
    UInt8 = 4, "win:UInt8";
    Int16 = 5, "win:Int16";
    UInt16 = 6, "win:UInt16";
    Int32 = 7, "win:Int32";
    UInt32 = 8, "win:UInt32";
    Int64 = 9, "win:Int64";
    UInt64 = 10, "win:UInt64";
    Float = 11, "win:Float";
    Double = 12, "win:Double";
    Boolean = 13, "win:Boolean";
    Binary = 14, "win:Binary";
    Guid = 15, "win:GUID";
    Pointer = 16, "win:Pointer";
    FileTime = 17, "win:FILETIME";
    SystemTime = 18, "win:SYSTEMTIME";
    Sid = 19, "win:SID";
    HexInt32 = 20, "win:HexInt32";
    HexInt64 = 21, "win:HexInt64";
    CountedUnicodeString = 22 | 300, "win:CountedUnicodeString";
    CountedAnsiString = 23 | 301, "win:CountedAnsiString";
    Struct = 24, "";
    CountedBinary = 25, "win:CountedBinary";
}

/// The format in which a value is shown, as far as that decides how it is read, or gives it a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutType {
    /// A character, of a number.
    String,
    /// A boolean, of a number.
    Boolean,
    /// A port, in network order.
    Port,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address, of 16 bytes without a length.
    Ipv6,
    /// An address with a port, of either kind.
    SocketAddress,
    /// A number in hexadecimal, or one of the codes that are written so.
    Hex,
    /// Any other.
    Other,
}

impl OutType {
    /// By the number in a `TRACE_EVENT_INFO`.
    pub fn of_tdh(number: u16) -> OutType {
        match number {
            1 => OutType::String,
            13 => OutType::Boolean,
            16..=19 | 31 | 32 | 37 => OutType::Hex,
            22 => OutType::Port,
            23 => OutType::Ipv4,
            24 => OutType::Ipv6,
            25 => OutType::SocketAddress,
            _ => OutType::Other,
        }
    }

    /// By the number in a TraceLogging schema, which is not that of TDH.
    pub fn of_trace_logging(number: u8) -> OutType {
        match number {
            2 => OutType::String,
            3 => OutType::Boolean,
            4 | 14 | 15 | 37 => OutType::Hex,
            7 => OutType::Port,
            8 => OutType::Ipv4,
            9 => OutType::Ipv6,
            10 => OutType::SocketAddress,
            _ => OutType::Other,
        }
    }

    /// By the name in a manifest.
    pub fn of_manifest(name: &str) -> OutType {
        match name {
            "xs:string" => OutType::String,
            "xs:boolean" => OutType::Boolean,
            "win:HexInt8" | "win:HexInt16" | "win:HexInt32" | "win:HexInt64" => OutType::Hex,
            "win:HResult" | "win:NTSTATUS" | "win:CodePointer" => OutType::Hex,
            "win:Port" => OutType::Port,
            "win:IPv4" => OutType::Ipv4,
            "win:IPv6" => OutType::Ipv6,
            "win:SocketAddress" => OutType::SocketAddress,
            _ => OutType::Other,
        }
    }
}

/// The type of a single value; `None` when its length or its fields are elsewhere in the description.
pub fn value(in_type: InType, out_type: OutType, pointer_size: u8) -> Option<FieldType> {
    Some(shown(in_type, out_type, bare(in_type, out_type, pointer_size)?))
}

/// A type with the text that it is meant to be shown as, if any. Addresses are numbers in all tables.
pub fn shown(in_type: InType, out_type: OutType, kind: FieldType) -> FieldType {
    let shown = match (in_type, out_type) {
        (InType::UInt32, OutType::Ipv4) => Shown::Ipv4,
        (InType::Binary | InType::CountedBinary, OutType::Ipv6) => Shown::Ipv6,
        (InType::Binary | InType::CountedBinary, OutType::SocketAddress) => Shown::SocketAddress,
        (InType::HexInt32 | InType::HexInt64, _) => Shown::Hex,
        (
            InType::Int8
            | InType::UInt8
            | InType::Int16
            | InType::UInt16
            | InType::Int32
            | InType::UInt32
            | InType::Int64
            | InType::UInt64,
            OutType::Hex,
        ) => Shown::Hex,
        _ => return kind,
    };
    FieldType::Shown(Box::new(kind), shown)
}

fn bare(in_type: InType, out_type: OutType, pointer_size: u8) -> Option<FieldType> {
    Some(match (in_type, out_type) {
        (InType::UnicodeString, _) => FieldType::Utf16Z,
        (InType::AnsiString, _) => FieldType::AnsiZ,
        (InType::Int8, _) => FieldType::I8,
        (InType::UInt8, OutType::String) => FieldType::Utf8Unit,
        (InType::UInt8, OutType::Boolean) => FieldType::Bool8,
        (InType::UInt8, _) => FieldType::U8,
        (InType::Int16, _) => FieldType::I16,
        (InType::UInt16, OutType::String) => FieldType::Utf16Unit,
        (InType::UInt16, OutType::Port) => FieldType::U16Be,
        (InType::UInt16, _) => FieldType::U16,
        (InType::Int32, _) => FieldType::I32,
        (InType::UInt32 | InType::HexInt32, _) => FieldType::U32,
        (InType::Int64, _) => FieldType::I64,
        (InType::UInt64 | InType::HexInt64, _) => FieldType::U64,
        (InType::Float, _) => FieldType::F32,
        (InType::Double, _) => FieldType::F64,
        (InType::Boolean, _) => FieldType::Bool32,
        (InType::Guid, _) => FieldType::Guid,
        (InType::Pointer, _) if pointer_size == 4 => FieldType::Pointer32,
        (InType::Pointer, _) => FieldType::U64,
        (InType::FileTime, _) => FieldType::DateTime,
        (InType::SystemTime, _) => FieldType::SystemTime,
        (InType::Sid, _) => FieldType::Sid,
        (InType::CountedUnicodeString, _) => FieldType::Utf16Bytes,
        (InType::CountedAnsiString, _) => FieldType::Array(Box::new(FieldType::Utf8Unit)),
        (InType::CountedBinary, _) => FieldType::Array(Box::new(FieldType::U8)),
        (InType::Binary, OutType::Ipv6) => FieldType::FixedArray(Box::new(FieldType::U8), 16),
        (InType::Binary | InType::Struct, _) => return None,
    })
}

/// The unit that the length of a value counts, for types that may have one.
pub fn unit(in_type: InType) -> Option<FieldType> {
    match in_type {
        InType::UnicodeString => Some(FieldType::Utf16Unit),
        InType::AnsiString => Some(FieldType::Utf8Unit),
        InType::Binary => Some(FieldType::U8),
        _ => None,
    }
}

/// A named field.
pub fn field(name: impl Into<String>, kind: FieldType) -> Field {
    Field { name: name.into(), kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_type_has_one_meaning_in_every_description() {
        assert_eq!(InType::of_manifest("win:UInt16"), InType::of_number(6));
        assert_eq!(InType::of_manifest("win:SizeT"), InType::of_number(16));
        assert_eq!((InType::of_number(0), InType::of_manifest("win:Flout")), (None, None));
        for port in [OutType::of_tdh(22), OutType::of_trace_logging(7), OutType::of_manifest("win:Port")] {
            assert_eq!(value(InType::UInt16, port, 8), Some(FieldType::U16Be));
        }
        // 7 is a port in TraceLogging, but xs:int in TDH.
        assert_eq!(value(InType::UInt16, OutType::of_tdh(7), 8), Some(FieldType::U16));
        assert_eq!(value(InType::UInt8, OutType::of_tdh(13), 8), Some(FieldType::Bool8));
        assert_eq!(value(InType::Pointer, OutType::Other, 4), Some(FieldType::Pointer32));
        assert_eq!(value(InType::Binary, OutType::Other, 8), None);
        for address in [OutType::of_tdh(23), OutType::of_trace_logging(8), OutType::of_manifest("win:IPv4")] {
            let expected = FieldType::Shown(Box::new(FieldType::U32), Shown::Ipv4);
            assert_eq!(value(InType::UInt32, address, 8), Some(expected));
            assert_eq!(value(InType::Int64, address, 8), Some(FieldType::I64), "no address");
        }
        for code in [OutType::of_tdh(32), OutType::of_trace_logging(15), OutType::of_manifest("win:HResult")] {
            let expected = FieldType::Shown(Box::new(FieldType::I32), Shown::Hex);
            assert_eq!(value(InType::Int32, code, 8), Some(expected));
        }
    }
}
