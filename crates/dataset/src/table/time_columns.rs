//! Builders of columns of times and of truth values.

use std::sync::Arc;

use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray};
use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder, ScalarBuffer};

use super::columns::{Builder, Optional, emptied};

/// UTC times, pushed as nanoseconds since 1970.
#[derive(Debug, Default)]
pub struct Time(Vec<i64>);

impl Builder for Time {
    type Value<'a> = i64;

    #[inline]
    fn push(&mut self, utc_ns: i64) {
        self.0.push(utc_ns.div_euclid(1000));
    }

    fn finish(&mut self) -> ArrayRef {
        let values = ScalarBuffer::from(emptied(&mut self.0));
        Arc::new(PrimitiveArray::<TimestampMicrosecondType>::new(values, None).with_timezone("UTC"))
    }
}

/// UTC times that may be missing, pushed as nanoseconds since 1970.
#[derive(Debug, Default)]
pub struct OptTime(Optional<TimestampMicrosecondType>);

impl Builder for OptTime {
    type Value<'a> = Option<i64>;

    #[inline]
    fn push(&mut self, utc_ns: Option<i64>) {
        self.0.append(utc_ns.map(|ns| ns.div_euclid(1000)));
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.take().with_timezone("UTC"))
    }
}

/// Truth values.
#[derive(Debug)]
pub struct Bool(BooleanBufferBuilder);

impl Default for Bool {
    fn default() -> Self {
        Bool(BooleanBufferBuilder::new(0))
    }
}

impl Builder for Bool {
    type Value<'a> = bool;

    fn push(&mut self, value: bool) {
        self.0.append(value);
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(BooleanArray::new(self.0.finish(), None))
    }
}

/// Truth values that may be missing.
#[derive(Debug)]
pub struct OptBool {
    values: BooleanBufferBuilder,
    nulls: NullBufferBuilder,
}

impl Default for OptBool {
    fn default() -> Self {
        OptBool { values: BooleanBufferBuilder::new(0), nulls: NullBufferBuilder::new(0) }
    }
}

impl Builder for OptBool {
    type Value<'a> = Option<bool>;

    fn push(&mut self, value: Option<bool>) {
        self.values.append(value.unwrap_or_default());
        self.nulls.append(value.is_some());
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(BooleanArray::new(self.values.finish(), self.nulls.finish()))
    }
}
