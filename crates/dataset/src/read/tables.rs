//! The columns of all tables but the payload tables as types, made from `schemas/tables/*.toml`.
//!
//! [`row!`](crate::row) makes the structs of rows from them.

use arrow_array::types::{Float64Type, Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type};

use super::cells::{Bools, Nullable, Numbers, Texts, TypedColumn, U64Lists, U64s};

include!(concat!(env!("OUT_DIR"), "/columns.rs"));
