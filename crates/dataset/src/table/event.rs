//! Payload tables: one per event, the union of its versions, header columns first.

use std::collections::HashMap;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field, Schema};
use sha2::{Digest, Sha256};
use tracequet_facts::fact::{CallsiteId, EventHeader};
use tracequet_trace::error::Result;
use tracequet_trace::event::decode::{Column, Fit, decode};
use tracequet_trace::event::plan::{Node, Plan, PlanField};
use tracequet_trace::event::rows::RowLayout;
use tracequet_trace::event::{Decoding, Event, EventInfo};
use tracequet_trace::time::Clock;

use super::batches::TableBuilder;
use super::builders::EventHeaderBuilder;
use super::columns::TextBuffer;
use super::payload::{PayloadColumn, leaves, snake_case};
use super::schema::{EVENT_HEADER, of};
use super::unique_names::UniqueNames;
use crate::table_spec::Encoding;

/// Rows and bytes after which a batch is handed on.
const BATCH_ROWS: usize = 16 << 10;
const BATCH_BYTES: usize = 2 << 20;
/// An estimate of the bytes of a row beside its payload: in the header columns, and in each column of the payload.
const HEADER_BYTES: usize = 96;
const FIELD_BYTES: usize = 4;

/// The table of one event.
pub struct EventTable {
    header: EventHeaderBuilder,
    names: Vec<String>,
    unique: UniqueNames,
    /// Columns of a name, and of the same name with a number.
    by_name: HashMap<String, Vec<usize>>,
    columns: Vec<PayloadColumn>,
    /// Columns of Parquet that the fields may become.
    max_leaves: usize,
    raw: TextBuffer,
    problem: TextBuffer,
    bytes: usize,
}

/// How events of one type go into their table: where each field's column is.
pub struct Mapping {
    /// Column of each field of the plan; `None` when they are the first columns in order.
    places: Option<Vec<usize>>,
    /// The fields that are decoded: without rows that are in another table, and without fields that have no column.
    plan: Plan,
    /// Fields behind those of the plan, for which there are no columns.
    pub(super) left_out: usize,
    rows: Option<RowLayout>,
}

/// How a payload went into its table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decoded {
    /// By its plan; how it fitted.
    Fit(Fit),
    /// Not at all.
    Raw,
}

/// All plans that an event's table has to hold: every version of the catalogue, or the recording's own.
fn plans(info: &EventInfo, pointer_size: u8) -> Vec<Plan> {
    match &info.decoding {
        Decoding::Described(plan) => vec![plan.clone()],
        Decoding::Raw(_) => Vec::new(),
        Decoding::Catalogue { .. } => {
            let versions = info.catalogue.into_iter().flat_map(|c| c.versions(info.event_type.event_id));
            let mut plans: Vec<Plan> = versions.filter_map(|v| v.plan(pointer_size).ok()).collect();
            // The newest version gives the order of columns.
            plans.reverse();
            plans
        }
    }
}

/// The plan without its rows, when these are in a separate table.
fn without_rows(mut plan: Plan, info: &EventInfo) -> Plan {
    if info.rows_only_there() {
        plan.fields.retain(|f| !matches!(f.node, Node::List(..)));
    }
    plan
}

impl EventTable {
    /// The table of an event: the union of all versions that its provider is known to have. Its fields become `max_leaves`
    /// columns of Parquet at most.
    pub fn new(info: &EventInfo, pointer_size: u8, max_leaves: usize) -> EventTable {
        let mut table = EventTable {
            header: EventHeaderBuilder::default(),
            names: Vec::new(),
            unique: UniqueNames::default(),
            by_name: HashMap::new(),
            columns: Vec::new(),
            max_leaves,
            raw: TextBuffer::default(),
            problem: TextBuffer::default(),
            bytes: 0,
        };
        for plan in plans(info, pointer_size) {
            let mut plan = without_rows(plan, info);
            table.cut(&mut plan);
            if table.leaves() < max_leaves {
                table.place(&plan, true);
            }
        }
        table
    }

    /// Eight digits of a hash of the names and types of the fields' columns.
    pub fn layout(&self) -> String {
        let mut hash = Sha256::new();
        for (name, column) in self.names.iter().zip(&self.columns) {
            hash.update(format!("{name} {}\n", column.data_type()));
        }
        hash.finalize().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Columns of Parquet that the fields become.
    pub fn leaves(&self) -> usize {
        self.columns.iter().map(PayloadColumn::leaves).sum()
    }

    /// Takes the fields off a plan that there are no columns for. Returns how many.
    fn cut(&self, plan: &mut Plan) -> usize {
        let mut left = self.max_leaves;
        let fits = |field: &&PlanField| left.checked_sub(leaves(&field.node)).map(|rest| left = rest).is_some();
        let kept = plan.fields.iter().take_while(fits).count();
        let cut = plan.fields.len() - kept;
        if cut > 0 {
            plan.fields.truncate(kept);
            plan.narrow_booleans = None;
        }
        cut
    }

    /// Columns of the fields of a plan; fields that have none get one when `grow` is set.
    fn place(&mut self, plan: &Plan, grow: bool) -> Option<Vec<usize>> {
        let mut places = Vec::new();
        let mut placed = vec![false; self.columns.len()];
        let header = of(EVENT_HEADER).map_or(&[][..], |header| &header.columns);
        for field in plan.fields.iter().filter(|f| !matches!(f.node, Node::Padding(_))) {
            let plain = snake_case(&field.name);
            let taken = header.iter().any(|c| c.name == plain) || plain == "raw_payload" || plain == "decode_problem";
            let base = if taken { format!("payload_{plain}") } else { plain };
            let fresh = PayloadColumn::new(&field.node);
            // The same name in one plan twice is two columns; in two versions it is one, if the types agree.
            let mut known = self.by_name.get(&base).into_iter().flatten().copied();
            let found = known.find(|index| {
                placed.get(*index) == Some(&false) && self.columns.get(*index).is_some_and(|c| agree(c, &fresh))
            });
            let index = match found {
                Some(index) => {
                    if grow
                        && let Some(column) = self.columns.get_mut(index)
                        && fresh.width() > column.width()
                    {
                        *column = fresh;
                    }
                    index
                }
                None if grow => {
                    self.add_column(base, fresh);
                    placed.push(true);
                    self.columns.len() - 1
                }
                None => return None,
            };
            if let Some(mark) = placed.get_mut(index) {
                *mark = true;
            }
            places.push(index);
        }
        Some(places)
    }

    fn add_column(&mut self, name: String, column: PayloadColumn) {
        let name = self.unique.add(name);
        // `value_2` is also found by those who look for `value`.
        let base = name.rsplit_once('_').filter(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        for name in [Some(name.as_str()), base.map(|(base, _)| base)].into_iter().flatten() {
            self.by_name.entry(name.to_owned()).or_default().push(self.columns.len());
        }
        self.names.push(name);
        self.columns.push(column);
    }

    /// How events of a type go into this table; `None` when their layout is another one.
    pub fn mapping(&mut self, info: &EventInfo) -> Option<Mapping> {
        let plan = match &info.decoding {
            Decoding::Described(plan) | Decoding::Catalogue { plan, .. } => plan.clone(),
            Decoding::Raw(_) => Plan::default(),
        };
        let rows = if info.rows_only_there() { RowLayout::new(&plan, &[]) } else { None };
        let mut plan = if rows.is_some() { without_rows(plan, info) } else { plan };
        let left_out = self.cut(&mut plan);
        let places = self.place(&plan, false)?;
        if matches!(info.decoding, Decoding::Described(_)) && places.len() != self.columns.len() {
            return None;
        }
        let in_order = places.iter().copied().eq(0..places.len());
        Some(Mapping { places: (!in_order).then_some(places), plan, left_out, rows })
    }

    /// The columns of the file and their encodings.
    pub fn schema(&self) -> Result<(Schema, Vec<Encoding>)> {
        let header = of(EVENT_HEADER)?;
        let mut fields: Vec<Field> = header.arrow()?.fields().iter().map(|f| f.as_ref().clone()).collect();
        let mut encodings: Vec<Encoding> = header.columns.iter().map(|c| c.encoding).collect();
        for (name, column) in self.names.iter().zip(&self.columns) {
            fields.push(Field::new(name, column.data_type(), true));
            encodings.push(column.encoding());
        }
        fields.push(Field::new("raw_payload", DataType::Binary, true));
        fields.push(Field::new("decode_problem", DataType::Utf8, true));
        encodings.extend([Encoding::Plain, Encoding::Dictionary]);
        Ok((Schema::new(fields), encodings))
    }

    /// Adds an event.
    pub fn push(&mut self, event: &Event<'_>, mapping: &Mapping, clock: &Clock, callsite: CallsiteId) -> Decoded {
        let raw = event.raw;
        let row = EventHeader {
            ts_ns: event.ts_ns,
            process_id: event.thread.process_id,
            thread_id: event.thread.thread_id,
            processor: (raw.processor != u32::MAX).then_some(raw.processor),
            event_version: event.info.event_type.version,
            activity_id: raw.labels.activity_id,
            related_activity_id: raw.labels.related_activity_id,
            callsite_id: callsite,
            labels: (!raw.labels.json.is_empty()).then_some(&raw.labels.json),
        };
        self.header.extend(std::slice::from_ref(&row), clock);
        self.bytes += HEADER_BYTES + self.columns.len() * FIELD_BYTES + raw.payload.len();

        let decoded = match event.info.plan(raw.payload) {
            Ok(plan) => Decoded::Fit(self.decode(plan, mapping, raw.payload)),
            Err(why) => {
                self.columns.iter_mut().for_each(Column::null);
                self.keep_raw(why, raw.payload);
                Decoded::Raw
            }
        };
        if let Decoded::Fit(fit) = decoded
            && !fit.is_exact()
        {
            self.keep_raw(&describe(&fit, mapping), raw.payload);
        }
        decoded
    }

    /// The last row has a payload that is not all in its columns.
    #[cold]
    fn keep_raw(&mut self, problem: &str, payload: &[u8]) {
        let before = self.header.rows() - 1;
        for (column, bytes) in [(&mut self.problem, problem.as_bytes()), (&mut self.raw, payload)] {
            column.fill(before);
            column.push_with(|out| out.extend_from_slice(bytes));
        }
    }

    fn decode(&mut self, plan: &Plan, mapping: &Mapping, payload: &[u8]) -> Fit {
        // A layout chosen by the payload's size is not the one that was mapped.
        let differs = plan.fields.len() != mapping.plan.fields.len();
        let sized = differs && mapping.rows.is_none() && mapping.left_out == 0;
        let places = if sized { self.place(plan, false) } else { mapping.places.clone() };
        let plan = if sized { plan } else { &mapping.plan };
        let fit = match &places {
            None => {
                let fields = plan.fields.iter().filter(|f| !matches!(f.node, Node::Padding(_))).count();
                let (now, later) = self.columns.split_at_mut_checked(fields).unwrap_or_default();
                let fit = decode(plan, payload, now);
                later.iter_mut().for_each(Column::null);
                fit
            }
            Some(places) => self.decode_scattered(plan, places, payload),
        };
        mapping.rows.as_ref().map_or(fit, |rows| rows.fit(payload, plan.fields.len()))
    }

    /// Decodes into columns that are not the first ones in order: they are lent out and put back.
    fn decode_scattered(&mut self, plan: &Plan, places: &[usize], payload: &[u8]) -> Fit {
        let mut lent = Vec::with_capacity(places.len());
        for place in places {
            let stand_in = PayloadColumn::Bytes(TextBuffer::default());
            lent.extend(self.columns.get_mut(*place).map(|c| std::mem::replace(c, stand_in)));
        }
        let fit = decode(plan, payload, &mut lent);
        let mut filled = vec![false; self.columns.len()];
        for (place, column) in places.iter().zip(lent) {
            if let (Some(back), Some(mark)) = (self.columns.get_mut(*place), filled.get_mut(*place)) {
                *back = column;
                *mark = true;
            }
        }
        let rest = self.columns.iter_mut().zip(&filled).filter(|(_, filled)| !**filled);
        rest.for_each(|(column, _)| column.null());
        fit
    }

    /// Whether the batch is large enough to be handed on.
    pub fn is_full(&self) -> bool {
        self.header.rows() >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    /// Rows and bytes so far.
    pub fn size(&self) -> (usize, usize) {
        (self.header.rows(), self.bytes)
    }

    /// The rows so far; the table is empty afterwards.
    pub fn finish(&mut self) -> Vec<ArrayRef> {
        self.bytes = 0;
        let rows = self.header.rows();
        let mut arrays = self.header.finish();
        arrays.extend(self.columns.iter_mut().map(PayloadColumn::finish));
        self.raw.fill(rows);
        self.problem.fill(rows);
        arrays.extend([self.raw.take_binary(), self.problem.take()]);
        arrays
    }
}

/// Whether values of both kinds fit one column.
fn agree(a: &PayloadColumn, b: &PayloadColumn) -> bool {
    match (a.width(), b.width()) {
        (Some((signed, _)), Some((other, _))) => signed == other,
        _ => a.data_type() == b.data_type(),
    }
}

fn describe(fit: &Fit, mapping: &Mapping) -> String {
    if let Some(short) = fit.short {
        let name = mapping.plan.fields.get(short.0).map_or("a row", |f| f.name.as_str());
        return format!("the payload ends inside or before {name}");
    }
    if mapping.left_out > 0 {
        return format!("the table has no columns for the last {} fields", mapping.left_out);
    }
    if fit.surplus > 0 {
        return "bytes behind the last known field".into();
    }
    "text that is not valid Unicode was replaced".into()
}
