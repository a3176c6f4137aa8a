//! The events that a tracker asks for, and how such an event and its fields reach it.
//!
//! Which tracker asks for an event is found out once per event type, not once per event.

use std::cell::Cell;

use tracequet_trace::catalog::Provider;
use tracequet_trace::event::fixed_field::FixedField;
use tracequet_trace::event::rows::{RowLayout, Rows};
use tracequet_trace::event::{Decoding, Event, EventInfo};
use tracequet_trace::reader::ProcessKey;
use tracequet_trace::time::Clock;

use super::fact::{CallsiteId, OfEvent, Place};
use super::scalars::Scalars;

/// The runtime's provider.
pub const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// The runtime's provider of events for its own makers.
pub const PRIVATE: &str = "Microsoft-Windows-DotNETRuntimePrivate";
/// The runtime's provider of what was there at the start or the end of a recording.
pub const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";

/// Every provider that is not in the catalogue.
pub const ANY: &str = "*";

/// The events that a tracker asks for: the provider as registered, the name (the catalogue's in `schemas/events`, or
/// that of the recording where the provider is not in the catalogue), and what the tracker does with it.
pub type Events<A> = &'static [(&'static str, &'static str, A)];

/// The parts of an event's payload that an action needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Header,
    /// The fields by name.
    Fields,
    /// These fields of each row, in this order.
    Rows(&'static [&'static str]),
    /// The fields before the rows by name, and these fields of each row.
    FieldsAndRows(&'static [&'static str]),
}

/// The action of a tracker for events of a type, if it asks for them.
pub fn action<A: Copy>(wanted: Events<A>, info: &EventInfo) -> Option<A> {
    let is_of_it = |provider| provider == info.provider || (provider == ANY && info.catalogue.is_none());
    let found = wanted.iter().find(|(provider, name, _)| is_of_it(*provider) && is_called(info, name));
    found.map(|(.., action)| *action)
}

/// Whether the catalogue has this name for events of a type, in any version. A recording may name an event otherwise.
fn is_called(info: &EventInfo, name: &str) -> bool {
    let mut versions = info.catalogue.iter().flat_map(|catalogue| catalogue.versions(info.event_type.event_id));
    if info.catalogue.is_some() { versions.any(|layout| layout.name == name) } else { info.name == name }
}

/// The needs of an action, whatever tracker it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// The parts of the event beside the header.
    pub needs: Needs,
    /// Whether its event says what ids and addresses mean: modules, methods, types, the process itself.
    pub is_reference: bool,
    /// Whether rows of one process follow from its events in others, too: what a thread does ends when another one
    /// runs.
    pub needs_others: bool,
    /// Whether its event has call stacks in its fields.
    pub has_callsites: bool,
}

/// The way in which the events of one type reach one tracker.
#[derive(Debug)]
pub struct Handler<R> {
    /// The tracker and its action.
    pub route: R,
    /// The traits of the action.
    pub traits: Traits,
    scalars: Scalars,
    rows: Option<RowLayout>,
    clr_instance_id: Option<FixedField>,
    index: Option<FixedField>,
    catalogue: Option<&'static Provider>,
}

impl<R: Copy> Handler<R> {
    /// `None` when events of this type cannot be decoded.
    pub fn new(route: R, traits: Traits, info: &EventInfo) -> Option<Handler<R>> {
        let plan = info.decoding.plan()?;
        let one_layout = !matches!(&info.decoding, Decoding::Catalogue { sized, .. } if !sized.is_empty());
        let (scalars, columns) = match traits.needs {
            Needs::Header => (Scalars::default(), None),
            Needs::Fields if one_layout => (Scalars::new(plan), None),
            Needs::Fields => (Scalars::by_payload(), None),
            Needs::Rows(columns) => (Scalars::default(), Some(columns)),
            Needs::FieldsAndRows(columns) => (Scalars::before_rows(plan), Some(columns)),
        };
        Some(Handler {
            route,
            traits,
            scalars,
            rows: columns.filter(|_| info.rows_in().is_some()).and_then(|columns| RowLayout::new(plan, columns)),
            clr_instance_id: FixedField::of(plan, "ClrInstanceID").filter(|_| one_layout),
            index: FixedField::of(plan, "Index").filter(|_| one_layout),
            catalogue: info.catalogue,
        })
    }

    /// The event with its fields, for the tracker. `None` when not even the fields before its rows are there. Rows that
    /// the event announces and does not hold are counted in `short`.
    #[inline]
    pub fn read<'a>(
        &'a mut self,
        event: &'a Event<'a>,
        callsite_id: CallsiteId,
        short: &ShortRows,
    ) -> Option<Input<'a>> {
        if !self.scalars.is_empty() {
            self.scalars.read(event);
        }
        let rows = if let Some(layout) = &self.rows { Some(short.rows(layout, event)?) } else { None };
        let payload = event.raw.payload;
        let clr_instance_id = match &self.clr_instance_id {
            Some(field) => field.read(payload).unwrap_or_default(),
            None => self.scalars.number("ClrInstanceID").unwrap_or_default(),
        };
        Some(Input {
            event,
            callsite_id,
            fields: &self.scalars,
            rows,
            clr_instance_id: clr_instance_id as u16,
            index: self.index.and_then(|field| field.read(payload)).unwrap_or_default(),
            catalogue: self.catalogue,
        })
    }
}

/// One event on its way to a tracker.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The event.
    pub event: &'a Event<'a>,
    /// The call stack.
    pub callsite_id: CallsiteId,
    /// The fields, as far as the action needs them.
    pub fields: &'a Scalars,
    /// The rows, as far as the action needs them.
    pub rows: Option<Rows<'a>>,
    /// Which runtime of the process wrote it.
    pub clr_instance_id: u16,
    /// Number of a bulk event within its walk of the heap.
    pub index: u64,
    catalogue: Option<&'static Provider>,
}

impl<'a> Input<'a> {
    /// The process that the event is about.
    pub fn process(&self) -> ProcessKey {
        self.event.thread.process()
    }

    /// OS id of the process that the event is about.
    pub fn process_id(&self) -> u64 {
        self.event.thread.process_id
    }

    /// OS id of the thread that the event is about.
    pub fn thread_id(&self) -> u64 {
        self.event.thread.thread_id
    }

    /// The thread that wrote the event, by its number in the recording.
    pub fn capture_thread(&self) -> u32 {
        self.event.raw.capture_thread
    }

    /// Nanoseconds since the recording began.
    pub fn ts_ns(&self) -> i64 {
        self.event.ts_ns
    }

    /// A row with the time, the process, the thread and the call stack of the event.
    #[inline]
    pub fn row<R: OfEvent>(&self) -> R {
        let (ts_ns, callsite_id) = (self.ts_ns(), self.callsite_id);
        R::of_event(Place { ts_ns, process_id: self.process_id(), thread_id: self.thread_id(), callsite_id })
    }

    /// Byte offset in the recording.
    pub fn offset(&self) -> u64 {
        self.event.raw.offset
    }

    /// When an operation began whose end this event is: by `InitialTime`, ticks of the session's clock. `None` where that is
    /// later than the event, or more than `most_ns` before the recording.
    pub fn began(&self, clock: Option<&Clock>, most_ns: i64) -> Option<i64> {
        let ticks = i64::try_from(self.fields.number("InitialTime")?).ok()?;
        clock?.since_start(ticks).filter(|start| (-most_ns..=self.ts_ns()).contains(start))
    }

    /// A field that is a number; 0 when it is missing.
    pub fn number(&self, name: &str) -> u64 {
        self.fields.number(name).unwrap_or_default()
    }

    /// A field that is text; empty when it is missing.
    pub fn text(&self, name: &str) -> &'a str {
        self.fields.text(name).unwrap_or_default()
    }

    /// A field that is a floating-point number.
    pub fn float(&self, name: &str) -> Option<f64> {
        self.fields.float(name)
    }

    /// The name that one of the provider's maps gives to the value of a field.
    pub fn name_of(&self, map: &str, field: &str) -> Option<&'static str> {
        self.name_in(map, self.fields.number(field)?)
    }

    /// The name that one of the provider's maps gives to a value.
    pub fn name_in(&self, map: &str, value: u64) -> Option<&'static str> {
        self.catalogue?.maps.get(map)?.name(value)
    }

    /// The names that one of the provider's maps gives to the bits of a field, joined by `|`.
    pub fn words_of(&self, map: &str, field: &str) -> String {
        let map = self.catalogue.and_then(|catalogue| catalogue.maps.get(map));
        map.zip(self.fields.number(field)).map_or_else(String::new, |(map, value)| map.words(value))
    }
}

/// Rows of bulk events that their payloads announce and do not hold.
#[derive(Debug, Default)]
pub struct ShortRows {
    count: Cell<u64>,
    last_offset: Cell<u64>,
}

impl ShortRows {
    #[inline]
    fn rows<'a>(&self, layout: &'a RowLayout, event: &Event<'a>) -> Option<Rows<'a>> {
        let rows = layout.rows(event.raw.payload);
        let missing = rows.map_or(1, |rows| rows.announced - rows.len() as u64);
        if missing > 0 {
            self.count.set(self.count.get().saturating_add(missing));
            self.last_offset.set(event.raw.offset);
        }
        rows
    }

    /// The number of missing rows, and the offset of the last event that lacks some.
    pub fn total(&self) -> (u64, u64) {
        (self.count.get(), self.last_offset.get())
    }
}
