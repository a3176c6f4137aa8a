//! Events that tests of trackers make up, and what takes the rows.

use tracequet_trace::event::{Event, EventInfo};
use tracequet_trace::reader::{EventType, Field, FieldType, Labels, Layout, RawEvent, Thread, TypeId};

use crate::fact::{Fact, FactSink};
use crate::input::{Handler, Input, Needs, ShortRows, Traits};

/// A field of an event.
pub enum Given<'t> {
    /// 64 bits.
    Number(u64),
    /// Zero-terminated UTF-16.
    Text(&'t str),
}

/// Hands an event with these fields to a tracker.
pub fn event<A: Copy>(action: A, ts_ns: i64, fields: &[(&str, Given<'_>)], hear: impl FnOnce(&Input<'_>)) {
    let (mut described, mut payload) = (Vec::new(), Vec::new());
    for (name, given) in fields {
        let kind = match given {
            Given::Number(number) => {
                payload.extend(number.to_le_bytes());
                FieldType::U64
            }
            Given::Text(text) => {
                payload.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
                FieldType::Utf16Z
            }
        };
        described.push(Field::new(*name, kind));
    }
    let info = EventInfo::resolve(&EventType::new("Test", 1, 0, Layout::Fields(described)), 8);
    let traits = Traits { needs: Needs::Fields, is_reference: false, needs_others: false, has_callsites: false };
    let mut handler = Handler::new(action, traits, &info).unwrap();
    let (labels, thread, short) = (Labels::default(), Thread::default(), ShortRows::default());
    let raw = RawEvent::new(TypeId(0), ts_ns, &labels, &payload);
    let event = Event::new(&raw, &info, &thread, ts_ns);
    hear(&handler.read(&event, 0, &short).unwrap());
}

/// Gives each fact to a function.
pub struct Each<F>(pub F);

impl<F: FnMut(&Fact<'_>)> FactSink for Each<F> {
    fn fact(&mut self, fact: Fact<'_>) {
        (self.0)(&fact);
    }
}
