//! Facts and events to Arrow batches: the set of tables of one recording.

pub mod batches;
pub mod builders;
pub mod columns;
mod decoders;
mod event_layout;
mod event_rows;
pub mod names;
pub mod payload;
pub mod schema;
pub mod select;
mod shape;
mod signed;
mod source;
pub mod time_columns;
mod undecoded;
pub mod unique_names;
pub mod views;

use tracequet_facts::fact::{Fact, FactSink};
use tracequet_trace::event::{Decoding, Event, EventInfo};
use tracequet_trace::time::Clock;

use crate::prelude::*;
use crate::table_spec::TableSpec;
use batches::Batches;
pub use batches::ReadyBatch;
use builders::FactTables;
use decoders::{Batch, DecodedBatch, Decoders};
use event_layout::{EventLayout, Mapping};
use select::Selection;
pub use shape::Shape;
pub use source::{of_file, source_footer};
use undecoded::Undecoded;
pub use undecoded::{MAX_SHORT, NotExact, ShortPayload};

/// Bytes that all payload tables hold together before the large ones are handed on.
const PAYLOAD_BYTES: usize = 6 << 20;

/// Payload tables of one recording, at most; real ones have a few hundred kinds of events.
const MAX_EVENT_TABLES: usize = 512;

/// Columns that the fields of one kind of event become, at most. An encoder takes some 36 KB for each while it writes.
const MAX_EVENT_COLUMNS: usize = 1 << 10;

/// The limit of columns of all payload tables together. Fields beyond have no column of their own; their payloads are
/// kept raw.
const MAX_COLUMNS: usize = 16 << 10;

/// The tables of one recording.
pub struct Tables {
    facts: FactTables,
    events: Vec<EventSlot>,
    batches: Batches,
    names: names::Names,
    selection: Selection,
    clock: Clock,
    pointer_size: u8,
    shape: Shape,
    /// Of the events that wait to be decoded.
    payload_bytes: usize,
    columns_left: usize,
    decoders: Decoders,
    not_exact: Vec<NotExact>,
    /// Bytes reserved for events that have not come yet, in all tables: at most [`PAYLOAD_BYTES`].
    rooms: usize,
}

/// A payload table.
struct EventSlot {
    layout: Arc<EventLayout>,
    mappings: Arc<Vec<Arc<Mapping>>>,
    events: Undecoded,
    /// Bytes reserved for its events.
    room: usize,
    number: usize,
    /// A hash of its columns, where that is a part of its name.
    digest: Option<String>,
}

/// Where the events of one type go.
pub struct EventRoute {
    slot: usize,
    /// Place among the mappings of the table.
    mapping: u32,
    lacks_columns: bool,
}

impl Tables {
    /// The tables that `selection` wants, of a recording with this clock and pointer size.
    pub fn new(selection: Selection, clock: Clock, pointer_size: u8, shape: Shape) -> Result<Tables> {
        let mut batches = Batches::default();
        let facts = FactTables::new(&mut batches, &selection)?;
        for spec in &mut batches.specs {
            shape.apply(spec);
        }
        Ok(Tables {
            facts,
            events: Vec::new(),
            batches,
            names: names::Names::default(),
            selection,
            clock,
            pointer_size,
            shape,
            payload_bytes: 0,
            columns_left: MAX_COLUMNS,
            decoders: Decoders::new(clock),
            not_exact: Vec::new(),
            rooms: 0,
        })
    }

    /// The tables so far; payload tables are added as their events appear.
    pub fn specs(&self) -> &[TableSpec] {
        &self.batches.specs
    }

    /// Whether batches are ready to be written.
    pub fn has_ready(&self) -> bool {
        !self.batches.ready.is_empty()
    }

    /// The tables, and the batches that are ready, in order.
    pub fn take_ready(&mut self) -> (&[TableSpec], impl Iterator<Item = ReadyBatch> + '_) {
        (&self.batches.specs, self.batches.ready.drain(..))
    }

    /// The first defect that kept a batch from being made.
    pub fn take_failure(&mut self) -> Option<Error> {
        self.batches.failed.take()
    }

    /// Makes everything ready that there is, complete batch or not.
    pub fn finish(&mut self) {
        self.facts.flush(&mut self.batches);
        self.finish_events();
    }

    /// Decodes all events that wait, and makes their rows ready.
    pub fn finish_events(&mut self) {
        self.flush_events(0);
        while let Some(decoded) = self.taken() {
            self.made(decoded);
        }
    }

    /// Takes the counts of events that do not fit their columns, of all that were decoded since the last call.
    pub fn take_not_exact(&mut self) -> Vec<NotExact> {
        std::mem::take(&mut self.not_exact)
    }

    /// Where events of a type go; a table is made when there is none with their layout. `None` when it is not wanted.
    pub fn route(&mut self, info: &EventInfo) -> Result<Option<EventRoute>> {
        if !self.selection.wants_event(&info.provider, &info.name) {
            return Ok(None);
        }
        let mut key = (info.provider.clone(), info.event_type.event_id, info.name.clone());
        let mut made = None;
        let mut digest = None;
        if self.shape.trace_id.is_some() && matches!(info.decoding, Decoding::Described(_)) {
            // Among several recordings a name must mean the same columns in each. Ids of such events are given out as
            // a process runs, and say nothing.
            key.1 = 0;
            let layout = EventLayout::new(info, self.pointer_size, self.columns_left.min(MAX_EVENT_COLUMNS));
            digest = Some(layout.digest());
            made = Some(layout);
        }
        for slot in self.names.tables_of(&key) {
            if let Some(found) = self.events.get_mut(slot)
                && found.digest == digest
                && let Some(mapping) = found.layout.mapping(info, found.mappings.last().map(Arc::as_ref))
            {
                return Ok(Some(found.route(slot, mapping)));
            }
        }
        if self.events.len() >= MAX_EVENT_TABLES {
            return Ok(None);
        }
        let most = self.columns_left.min(MAX_EVENT_COLUMNS);
        let layout = made.unwrap_or_else(|| EventLayout::new(info, self.pointer_size, most));
        let Some(mapping) = layout.mapping(info, None) else {
            return Err(Error::Internal(format!("{}/{}: the layout does not fit its own table", key.0, key.2)));
        };
        self.columns_left -= layout.leaves().min(self.columns_left);
        let slot = self.events.len();
        let name = self.names.add(&key, info.event_type.version, slot, digest.as_deref());
        let (schema, encodings) = layout.schema()?;
        let sorted_by = vec!["ts_ns".to_owned()];
        let mut spec = TableSpec { name, schema: Arc::new(schema), encodings, sorted_by };
        self.shape.apply(&mut spec);
        let number = self.batches.specs.len();
        let mut made = EventSlot {
            layout: Arc::new(layout),
            mappings: Arc::default(),
            events: Undecoded::default(),
            room: 0,
            number,
            digest,
        };
        let route = made.route(slot, mapping);
        self.events.push(made);
        self.batches.specs.push(spec);
        Ok(Some(route))
    }

    /// Whether events of a kind are wanted, so that having no route for them means that there are too many tables.
    pub fn wants_event(&self, info: &EventInfo) -> bool {
        self.selection.wants_event(&info.provider, &info.name)
    }

    /// Whether the events of a route have fields for which there are no columns.
    pub fn lacks_columns(&self, route: &EventRoute) -> bool {
        route.lacks_columns
    }

    /// Name of the table of a route.
    pub fn route_name(&self, route: &EventRoute) -> Option<&str> {
        let number = self.events.get(route.slot)?.number;
        self.batches.specs.get(number).map(|s| s.name.as_str())
    }

    /// Adds an event to its payload table.
    #[inline]
    pub fn event(&mut self, route: &EventRoute, event: &Event<'_>, callsite: u32) {
        let Some(slot) = self.events.get_mut(route.slot) else { return };
        let Some(mapping) = slot.mappings.get(route.mapping as usize) else { return };
        let before = slot.events.bytes();
        slot.events.push(event, (route.mapping, mapping), slot.layout.len(), callsite);
        self.payload_bytes += slot.events.bytes() - before;
        if slot.events.is_full() {
            self.flush_event(route.slot);
        } else if self.payload_bytes > PAYLOAD_BYTES {
            // The large ones: many batches of a few rows would take more than their rows do.
            let average = self.payload_bytes / self.events.len().max(1);
            self.flush_events(average);
        }
    }

    /// Hands on the payload tables of at least this many bytes.
    fn flush_events(&mut self, least: usize) {
        for slot in 0..self.events.len() {
            if self.events.get(slot).is_some_and(|slot| slot.events.bytes() >= least) {
                self.flush_event(slot);
            }
        }
    }

    /// Hands on the events of a payload table.
    fn flush_event(&mut self, number: usize) {
        let Some(slot) = self.events.get_mut(number).filter(|slot| slot.events.len() > 0) else { return };
        self.payload_bytes = self.payload_bytes.saturating_sub(slot.events.bytes());
        // A table that fills a batch will fill the next one: with room for it, its rows are not copied as it grows.
        self.rooms -= slot.room;
        slot.room = if self.rooms + slot.events.bytes() > PAYLOAD_BYTES { 0 } else { slot.events.bytes() };
        self.rooms += slot.room;
        let next = if slot.room == 0 { Undecoded::default() } else { slot.events.successor() };
        let batch = Batch {
            slot: number,
            layout: slot.layout.clone(),
            mappings: slot.mappings.clone(),
            events: std::mem::replace(&mut slot.events, next),
        };
        self.decoders.decode(batch);
        while self.decoders.is_full() {
            let Some(decoded) = self.taken() else { break };
            self.made(decoded);
        }
    }

    /// Waits for the next decoded batch.
    fn taken(&mut self) -> Option<DecodedBatch> {
        self.decoders.take().unwrap_or_else(|error| {
            self.batches.failed = Some(error);
            None
        })
    }

    /// Makes the rows of a decoded batch ready.
    fn made(&mut self, decoded: DecodedBatch) {
        self.not_exact.extend(decoded.not_exact);
        if let Some(slot) = self.events.get(decoded.slot) {
            self.batches.push(slot.number, decoded.arrays, decoded.row_count);
        }
    }
}

impl EventSlot {
    fn route(&mut self, slot: usize, mapping: Mapping) -> EventRoute {
        let mappings = Arc::make_mut(&mut self.mappings);
        let lacks_columns = mapping.left_out > 0;
        mappings.push(Arc::new(mapping));
        EventRoute { slot, mapping: mappings.len() as u32 - 1, lacks_columns }
    }
}

impl FactSink for Tables {
    #[inline]
    fn fact(&mut self, fact: Fact<'_>) {
        self.facts.add(fact, &self.clock, &mut self.batches);
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;

    use super::*;
    use tracequet_facts::fact::{AssemblyLoad, Exception, ManagedModule, Process, Type};

    /// Bytes of the batches that became ready, in the order in which they did.
    fn ready(tables: &mut Tables) -> Vec<usize> {
        let (_, ready) = tables.take_ready();
        let bytes = |batch: ReadyBatch| batch.rows.columns().iter().map(Array::get_buffer_memory_size).sum();
        ready.map(bytes).collect()
    }

    #[test]
    fn rows_with_long_text_do_not_wait_for_a_whole_batch() {
        let clock = Clock { sync_ticks: 0, sync_utc_ns: 0, frequency: 1 };
        let selection = Selection::new(&[]).unwrap();
        let mut tables = Tables::new(selection, clock, 8, Shape { trace_id: None, signed: false }).unwrap();
        let (long, mut written) = ("x".repeat(15_000), Vec::new());
        for _ in 0..1_000 {
            tables.add(&AssemblyLoad { name: &long, path: &long, ..AssemblyLoad::default() });
            written.extend(ready(&mut tables));
        }
        // 30 MB of text.
        assert_eq!(written.len(), 7);
        assert!(written.iter().all(|bytes| (4 << 20..5 << 20).contains(bytes)), "{written:?}");
        tables.finish();
        ready(&mut tables);

        // 3.9 MB in each of some tables: of all together they are too much.
        written.clear();
        for _ in 0..260 {
            tables.add(&AssemblyLoad { load_context: &long, ..AssemblyLoad::default() });
            tables.add(&ManagedModule { path: &long, ..ManagedModule::default() });
            tables.add(&Exception { message: &long, ..Exception::default() });
            tables.add(&Exception { message: "short", ..Exception::default() });
            tables.add(&Type { name: &long, ..Type::default() });
            tables.add(&Process { command_line: &long, ..Process::default() });
            written.extend(ready(&mut tables));
        }
        assert_eq!(written.len(), 5, "{written:?}");
    }
}
