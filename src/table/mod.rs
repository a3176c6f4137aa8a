//! Facts and events to Arrow batches: the set of tables of one recording.

pub mod columns;
pub mod event;
pub mod facts;
pub mod names;
pub mod payload;
pub mod schema;
pub mod select;
mod signed;
pub mod tables;
pub mod views;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::{Field, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::normalize::fact::{Fact, FactSink};
use crate::time::Clock;
use event::EventTable;
use schema::ColumnEncoding;
use select::Selection;
use tables::*;

/// Rows after which a batch is handed on.
const BATCH_ROWS: usize = 16 << 10;
/// Bytes that all payload tables hold together before the large ones are handed on.
const PAYLOAD_BYTES: usize = 16 << 20;

/// Payload tables of one recording, at most; real ones have a few hundred kinds of events.
const MAX_EVENT_TABLES: usize = 512;

/// What a file needs to know of its table.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Name, also the path below the dataset.
    pub name: String,
    /// Columns.
    pub schema: SchemaRef,
    /// Encoding of each column.
    pub encodings: Vec<ColumnEncoding>,
    /// Columns by which the rows of each row group are sorted.
    pub sorted_by: Vec<String>,
}

/// A batch that is ready to be written.
pub struct Ready {
    /// Number of the table: its place in [`Tables::specs`].
    pub table: usize,
    /// The rows, in the order in which they came.
    pub batch: RecordBatch,
}

/// One table.
struct Slot<T> {
    builder: T,
    number: usize,
    wanted: bool,
}

macro_rules! tables {
    ($($field:ident: $type:ty),* $(,)?) => {
        struct Fixed {
            $($field: Slot<$type>,)*
        }

        impl Fixed {
            fn new(specs: &mut Vec<Spec>, selection: &Selection) -> Result<Fixed> {
                Ok(Fixed { $($field: slot::<$type>(specs, selection)?,)* })
            }

            fn flush_all(&mut self, ready: &mut Vec<Ready>, specs: &[Spec], failed: &mut Option<Error>) {
                $(self.$field.flush(ready, specs, failed);)*
            }
        }
    };
}

tables! {
    trace: TraceTable,
    process: ProcessTable,
    thread: ThreadTable,
    module: ModuleTable,
    event_type: EventTypeTable,
    diagnostic: DiagnosticTable,
    callsite: CallsiteTable,
    gc: GcTable,
    pause: PauseTable,
    heap_stats: HeapStatsTable,
    generation_range: GenerationRangeTable,
    surviving: SurvivingRangeTable,
    moved: MovedRangeTable,
    root: RootTable,
    weak_element: WeakElementTable,
    handle: HandleTable,
    finalizable: FinalizableTable,
    heap_object: HeapObjectTable,
    heap_reference: HeapReferenceTable,
    types: TypeTable,
    method: MethodTable,
    allocation: AllocationTable,
    cpu_sample: CpuSampleTable,
}

fn slot<T: TableBuilder>(specs: &mut Vec<Spec>, selection: &Selection) -> Result<Slot<T>> {
    let schema = schema::of(T::NAME)?;
    check::<T>(schema)?;
    let wanted = selection.wants(T::NAME);
    let number = specs.len();
    if wanted {
        specs.push(Spec {
            name: T::NAME.to_owned(),
            schema: schema.arrow()?,
            encodings: schema.columns.iter().map(|c| c.encoding).collect(),
            sorted_by: schema.sorted_by.clone(),
        });
    }
    Ok(Slot { builder: T::default(), number, wanted })
}

/// Holds the code against the schema.
fn check<T: TableBuilder>(schema: &schema::TableSchema) -> Result<()> {
    let said: Vec<_> = schema.columns.iter().map(|c| (c.name.as_str(), c.kind.as_str(), c.nullable)).collect();
    let built = T::columns();
    if said == built {
        return Ok(());
    }
    let differ = said.iter().zip(&built).find(|(a, b)| a != b);
    Err(Error::Internal(format!("table {}: the schema and the code disagree: {differ:?}", T::NAME)))
}

impl<T: TableBuilder> Slot<T> {
    fn flush(&mut self, ready: &mut Vec<Ready>, specs: &[Spec], failed: &mut Option<Error>) {
        if self.builder.rows() == 0 {
            return;
        }
        let rows = self.builder.rows();
        let arrays = self.builder.finish();
        if let Some(spec) = specs.get(self.number).filter(|_| self.wanted) {
            push_batch(ready, self.number, spec, arrays, rows, failed);
        }
    }

    #[inline]
    fn flush_full(&mut self, ready: &mut Vec<Ready>, specs: &[Spec], failed: &mut Option<Error>) {
        if self.builder.rows() >= BATCH_ROWS {
            self.flush(ready, specs, failed);
        }
    }
}

fn push_batch(
    ready: &mut Vec<Ready>,
    table: usize,
    spec: &Spec,
    mut arrays: Vec<ArrayRef>,
    rows: usize,
    failed: &mut Option<Error>,
) {
    if arrays.len() + 1 == spec.schema.fields().len() {
        // The first column names the recording in a dataset of several.
        let name = spec.schema.fields().first().and_then(|f| f.metadata().get("value")).cloned().unwrap_or_default();
        let keys = arrow_array::Int32Array::from(vec![0; rows]);
        let words = Arc::new(StringArray::from(vec![name]));
        match arrow_array::DictionaryArray::try_new(keys, words) {
            Ok(array) => arrays.insert(0, Arc::new(array)),
            Err(e) => *failed = Some(Error::Internal(e.to_string())),
        }
    }
    for (array, field) in arrays.iter_mut().zip(spec.schema.fields()) {
        if array.data_type() != field.data_type() {
            *array = signed::array(array);
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    match RecordBatch::try_new_with_options(spec.schema.clone(), arrays, &options) {
        Ok(batch) => ready.push(Ready { table, batch }),
        Err(e) => *failed = Some(Error::Internal(format!("table {}: {e}", spec.name))),
    }
}

/// The tables of one recording.
pub struct Tables {
    specs: Vec<Spec>,
    fixed: Fixed,
    events: Vec<EventSlot>,
    names: names::Names,
    selection: Selection,
    clock: Clock,
    pointer_size: u8,
    shape: Shape,
    payload_bytes: usize,
    /// Batches that are ready to be written, in order.
    pub ready: Vec<Ready>,
    failed: Option<Error>,
}

struct EventSlot {
    table: EventTable,
    number: usize,
}

/// Where the events of one type go.
pub struct EventRoute {
    slot: usize,
    mapping: event::Mapping,
}

impl Tables {
    /// The tables that `selection` wants, of a recording with this clock and pointer size.
    pub fn new(selection: Selection, clock: Clock, pointer_size: u8, shape: Shape) -> Result<Tables> {
        let mut specs = Vec::new();
        let fixed = Fixed::new(&mut specs, &selection)?;
        for spec in &mut specs {
            shape.apply(spec);
        }
        Ok(Tables {
            specs,
            fixed,
            events: Vec::new(),
            names: names::Names::default(),
            selection,
            clock,
            pointer_size,
            shape,
            payload_bytes: 0,
            ready: Vec::new(),
            failed: None,
        })
    }

    /// The tables so far; payload tables are added as their events appear.
    pub fn specs(&self) -> &[Spec] {
        &self.specs
    }

    /// Where events of a type go; a table is made when there is none with their layout. `None` when it is not wanted.
    pub fn route(&mut self, info: &crate::event::EventInfo) -> Result<Option<EventRoute>> {
        if !self.selection.wants_event(&info.provider, &info.name) {
            return Ok(None);
        }
        let key = (info.provider.clone(), info.event_type.event_id, info.name.clone());
        for slot in self.names.tables_of(&key) {
            if let Some(found) = self.events.get_mut(slot)
                && let Some(mapping) = found.table.mapping(info)
            {
                return Ok(Some(EventRoute { slot, mapping }));
            }
        }
        if self.events.len() >= MAX_EVENT_TABLES {
            return Ok(None);
        }
        let mut table = EventTable::new(info, self.pointer_size);
        let Some(mapping) = table.mapping(info) else {
            return Err(Error::Internal(format!("{}/{}: the layout does not fit its own table", key.0, key.2)));
        };
        let slot = self.events.len();
        let name = self.names.add(&key, info.event_type.version, slot);
        let (schema, encodings) = table.schema()?;
        let sorted_by = vec!["ts_ns".to_owned()];
        let mut spec = Spec { name, schema: Arc::new(schema), encodings, sorted_by };
        self.shape.apply(&mut spec);
        self.events.push(EventSlot { table, number: self.specs.len() });
        self.specs.push(spec);
        Ok(Some(EventRoute { slot, mapping }))
    }

    /// Whether events of a kind are wanted, so that having no route for them means that there are too many tables.
    pub fn wants_event(&self, info: &crate::event::EventInfo) -> bool {
        self.selection.wants_event(&info.provider, &info.name)
    }

    /// Name of the table of a route.
    pub fn route_name(&self, route: &EventRoute) -> Option<&str> {
        let number = self.events.get(route.slot)?.number;
        self.specs.get(number).map(|s| s.name.as_str())
    }

    /// Adds an event to its payload table.
    pub fn event(&mut self, route: &EventRoute, event: &crate::event::Event<'_>, callsite: u32) -> event::Decoded {
        let Some(slot) = self.events.get_mut(route.slot) else { return event::Decoded::Raw };
        let before = slot.table.size().1;
        let utc_ns = facts::utc_ns(&self.clock, event.ts_ns);
        let decoded = slot.table.push(event, &route.mapping, utc_ns, callsite);
        self.payload_bytes += slot.table.size().1 - before;
        if slot.table.is_full() {
            flush_event(slot, &self.specs, &mut self.ready, &mut self.failed, &mut self.payload_bytes);
        } else if self.payload_bytes > PAYLOAD_BYTES {
            // The large ones: many batches of a few rows would take more than their rows do.
            let average = self.payload_bytes / self.events.len().max(1);
            self.flush_events(average);
        }
        decoded
    }

    /// Hands on the payload tables of at least so many bytes.
    fn flush_events(&mut self, least: usize) {
        for slot in self.events.iter_mut().filter(|slot| slot.table.size().1 >= least) {
            flush_event(slot, &self.specs, &mut self.ready, &mut self.failed, &mut self.payload_bytes);
        }
    }

    /// Adds the row of a thread.
    pub fn thread(&mut self, thread: &facts::ThreadCounts) {
        self.fixed.thread.builder.push(thread, &self.clock);
    }

    /// Adds the row of the recording.
    pub fn trace(&mut self, info: &crate::reader::TraceInfo, totals: &facts::TraceTotals) {
        self.fixed.trace.builder.push(info, totals);
    }

    /// The builder of `event_type`.
    pub fn event_types(&mut self) -> &mut EventTypeTable {
        &mut self.fixed.event_type.builder
    }

    /// Makes everything that is left ready.
    pub fn finish(&mut self) {
        self.fixed.flush_all(&mut self.ready, &self.specs, &mut self.failed);
        self.flush_events(0);
    }

    /// The first defect that kept a batch from being made.
    pub fn take_failure(&mut self) -> Option<Error> {
        self.failed.take()
    }
}

/// What a dataset asks of all of its tables alike.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Key of the recording, for a first column `trace_id`.
    pub trace_id: Option<String>,
    /// Whether unsigned 64-bit columns are written as signed ones with the same bits.
    pub signed: bool,
}

impl Shape {
    fn apply(&self, spec: &mut Spec) {
        if self.signed {
            spec.schema = Arc::new(Schema::new(spec.schema.fields().iter().map(signed::field).collect::<Vec<_>>()));
        }
        with_trace_id(spec, self.trace_id.as_deref());
    }
}

fn with_trace_id(spec: &mut Spec, trace_id: Option<&str>) {
    let Some(trace_id) = trace_id else { return };
    let metadata = std::collections::HashMap::from([("value".to_owned(), trace_id.to_owned())]);
    let field = Field::new("trace_id", schema::label(), false).with_metadata(metadata);
    let mut fields = vec![Arc::new(field)];
    fields.extend(spec.schema.fields().iter().cloned());
    spec.schema = Arc::new(Schema::new(fields));
    spec.encodings.insert(0, ColumnEncoding::Dictionary);
}

fn flush_event(
    slot: &mut EventSlot,
    specs: &[Spec],
    ready: &mut Vec<Ready>,
    failed: &mut Option<Error>,
    payload_bytes: &mut usize,
) {
    let (rows, bytes) = slot.table.size();
    if rows == 0 {
        return;
    }
    *payload_bytes = payload_bytes.saturating_sub(bytes);
    let arrays = slot.table.finish();
    if let Some(spec) = specs.get(slot.number) {
        push_batch(ready, slot.number, spec, arrays, rows, failed);
    }
}

impl FactSink for Tables {
    fn fact(&mut self, fact: Fact<'_>) {
        let Tables { fixed, specs, ready, failed, clock, .. } = self;
        macro_rules! to {
            ($slot:ident, $($argument:expr),*) => {{
                fixed.$slot.builder.push($($argument),*);
                fixed.$slot.flush_full(ready, specs, failed);
            }};
        }
        macro_rules! ranges {
            ($slot:ident, $gc_id:expr, $rows:expr) => {{
                let slot = &mut fixed.$slot;
                if slot.wanted {
                    slot.builder.extend($gc_id, $rows);
                    slot.flush_full(ready, specs, failed);
                }
            }};
        }
        match fact {
            Fact::Collection(c) => to!(gc, c, clock),
            Fact::Pause(p) => to!(pause, p, clock),
            Fact::GenerationRanges(id, rows) => {
                for row in rows {
                    to!(generation_range, id, row);
                }
            }
            Fact::SurvivingRanges(id, rows) => ranges!(surviving, id, rows),
            Fact::MovedRanges(id, rows) => ranges!(moved, id, rows),
            Fact::HeapStats(id, stats) => {
                for row in stats {
                    to!(heap_stats, id, row);
                }
            }
            Fact::Root(id, r) => to!(root, id, r),
            Fact::WeakElement(id, e) => to!(weak_element, id, e),
            Fact::HeapObject(id, o) => to!(heap_object, id, o),
            Fact::HeapReference(id, r) => to!(heap_reference, id, r),
            Fact::Handle(h) => to!(handle, h, clock),
            Fact::Finalizable(f) => to!(finalizable, f, clock),
            Fact::Type(t) => to!(types, t),
            Fact::Method(m) => to!(method, m),
            Fact::Allocation(a) => to!(allocation, a, clock),
            Fact::Callsite(c) => to!(callsite, c),
            Fact::CpuSample(s) => to!(cpu_sample, s, clock),
            Fact::Process(p) => to!(process, p),
            Fact::Module(m) => to!(module, m),
            Fact::Problem(p) => to!(diagnostic, p),
        }
    }
}
