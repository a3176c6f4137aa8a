//! The columns of payload tables: one table per event, the union of its versions, header columns first.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Result;
use arrow_schema::{DataType, Field, Schema};
use sha2::{Digest, Sha256};
use tracequet_trace::event::plan::{Node, Plan, PlanField};
use tracequet_trace::event::rows::RowLayout;
use tracequet_trace::event::{Decoding, EventInfo};

use super::payload::{PayloadColumn, leaves, snake_case};
use super::schema::{EVENT_HEADER, of};
use super::unique_names::UniqueNames;
use crate::table_spec::Encoding;

/// The columns of the table of one event.
pub(super) struct EventLayout {
    names: Vec<String>,
    unique: UniqueNames,
    /// Columns of a name, and of the same name with a number.
    by_name: HashMap<String, Vec<usize>>,
    columns: Vec<FieldColumn>,
    /// Columns of Parquet that the fields may become.
    max_leaves: usize,
}

/// The column of a field.
struct FieldColumn {
    /// The widest node of the field among the versions.
    node: Node,
    /// The column that is made of it, without values: its Arrow type and its encoding.
    column: PayloadColumn,
}

/// The way of events of one type into their table: where each field's column is. Types of one layout share all but the
/// type.
#[derive(Clone)]
pub(super) struct Mapping {
    /// The type.
    pub(super) info: EventInfo,
    /// Column of each field of the plan; `None` when they are the first columns in order.
    pub(super) places: Option<Arc<[usize]>>,
    /// The fields that are decoded: without rows that are in another table, and without fields that have no column.
    pub(super) plan: Arc<Plan>,
    /// Fields behind those of the plan, for which there are no columns.
    pub(super) left_out: usize,
    pub(super) rows: Option<RowLayout>,
}

impl Mapping {
    /// The part of a payload that is decoded, and whether it is only the part before the rows: if all rows are in
    /// another table, these need not be kept.
    pub(super) fn needed<'p>(&self, payload: &'p [u8]) -> (&'p [u8], bool) {
        let is_sized = matches!(&self.info.decoding, Decoding::Catalogue { sized, .. } if !sized.is_empty());
        let rows = self.rows.as_ref().filter(|_| !is_sized);
        match rows.filter(|rows| rows.fit(payload, self.plan.fields.len()).is_exact()) {
            Some(rows) => (payload.get(..rows.head).unwrap_or(payload), true),
            None => (payload, false),
        }
    }
}

/// All plans that an event's table has to hold: every version of the catalogue, or the recording's own.
fn plans(info: &EventInfo, pointer_size: u8) -> Vec<Arc<Plan>> {
    match &info.decoding {
        Decoding::Described(plan) => vec![plan.clone()],
        Decoding::Raw(_) => Vec::new(),
        Decoding::Catalogue { .. } => {
            let versions = info.catalogue.into_iter().flat_map(|c| c.versions(info.event_type.event_id));
            let mut plans: Vec<Arc<Plan>> = versions.filter_map(|v| v.plan(pointer_size).ok()).collect();
            // The newest version gives the order of columns.
            plans.reverse();
            plans
        }
    }
}

/// The plan without its rows, when these are in a separate table.
fn without_rows(plan: &mut Arc<Plan>, info: &EventInfo) {
    if info.rows_only_there() {
        Arc::make_mut(plan).fields.retain(|f| !matches!(f.node, Node::List(..)));
    }
}

impl EventLayout {
    /// For an event: the union of all versions that its provider is known to have. Its fields become `max_leaves`
    /// columns of Parquet at most.
    pub(super) fn new(info: &EventInfo, pointer_size: u8, max_leaves: usize) -> EventLayout {
        let mut table = EventLayout {
            names: Vec::new(),
            unique: UniqueNames::default(),
            by_name: HashMap::new(),
            columns: Vec::new(),
            max_leaves,
        };
        for mut plan in plans(info, pointer_size) {
            without_rows(&mut plan, info);
            table.cut(&mut plan);
            if table.leaves() < max_leaves {
                table.grow(&plan);
            }
        }
        table
    }

    /// Eight digits of a hash of the names and types of the fields' columns.
    pub(super) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (name, FieldColumn { column, .. }) in self.names.iter().zip(&self.columns) {
            hash.update(format!("{name} {}\n", column.data_type()));
        }
        hash.finalize().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Columns of Parquet that the fields become.
    pub(super) fn leaves(&self) -> usize {
        self.columns.iter().map(|column| leaves(&column.node)).sum()
    }

    /// The number of columns of the fields.
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// New columns for the fields, without values.
    pub(super) fn new_columns(&self) -> Vec<PayloadColumn> {
        self.columns.iter().map(|column| PayloadColumn::new(&column.node)).collect()
    }

    /// Takes the fields off a plan that there are no columns for. Returns how many.
    fn cut(&self, plan: &mut Arc<Plan>) -> usize {
        let mut left = self.max_leaves;
        let fits = |field: &&PlanField| left.checked_sub(leaves(&field.node)).map(|rest| left = rest).is_some();
        let kept = plan.fields.iter().take_while(fits).count();
        let cut = plan.fields.len() - kept;
        if cut > 0 {
            let plan = Arc::make_mut(plan);
            plan.fields.truncate(kept);
            plan.otherwise.clear();
        }
        cut
    }

    /// The columns of the fields of a plan, in their order; `None` when one has no column.
    pub(super) fn places(&self, plan: &Plan) -> Option<Vec<usize>> {
        let mut placed = vec![false; self.columns.len()];
        let mut places = Vec::new();
        for field in plan.fields.iter().filter(|f| !matches!(f.node, Node::Padding(_))) {
            places.push(self.place(&column_name(field), &PayloadColumn::new(&field.node), &mut placed)?);
        }
        Some(places)
    }

    /// Gives each field of a plan a column that has none.
    fn grow(&mut self, plan: &Plan) {
        let mut placed = vec![false; self.columns.len()];
        for field in plan.fields.iter().filter(|f| !matches!(f.node, Node::Padding(_))) {
            let name = column_name(field);
            let fresh = FieldColumn { node: field.node.clone(), column: PayloadColumn::new(&field.node) };
            match self.place(&name, &fresh.column, &mut placed).and_then(|index| self.columns.get_mut(index)) {
                Some(known) if fresh.column.width() > known.column.width() => *known = fresh,
                Some(_) => {}
                None => {
                    self.add_column(name, fresh);
                    placed.push(true);
                }
            }
        }
    }

    /// The column that a field goes into: the same name in one plan twice is two columns; in two versions it is one, if
    /// the types agree. `placed` says which columns have a field already.
    fn place(&self, name: &str, fresh: &PayloadColumn, placed: &mut [bool]) -> Option<usize> {
        let mut known = self.by_name.get(name).into_iter().flatten().copied();
        let found = known.find(|index| {
            placed.get(*index) == Some(&false)
                && self.columns.get(*index).is_some_and(|known| agree(&known.column, fresh))
        })?;
        *placed.get_mut(found)? = true;
        Some(found)
    }

    fn add_column(&mut self, name: String, column: FieldColumn) {
        let name = self.unique.add(name);
        // `value_2` is also found by those who look for `value`.
        let base = name.rsplit_once('_').filter(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        for name in [Some(name.as_str()), base.map(|(base, _)| base)].into_iter().flatten() {
            self.by_name.entry(name.to_owned()).or_default().push(self.columns.len());
        }
        self.names.push(name);
        self.columns.push(column);
    }

    /// The mapping of a type of events into the table; `None` when their layout is another one. `last` is what was
    /// found out for the type before it.
    pub(super) fn mapping(&self, info: &EventInfo, last: Option<&Mapping>) -> Option<Mapping> {
        let mut plan = info.decoding.plan().cloned().unwrap_or_default();
        let is_same = |last: &&Mapping| last.info.decoding.plan().is_some_and(|known| Arc::ptr_eq(known, &plan));
        if let Some(last) = last.filter(is_same) {
            return Some(Mapping { info: info.clone(), ..last.clone() });
        }
        let rows = if info.rows_only_there() { RowLayout::new(&plan, &[]) } else { None };
        if rows.is_some() {
            without_rows(&mut plan, info);
        }
        let left_out = self.cut(&mut plan);
        let places = self.places(&plan)?;
        if matches!(info.decoding, Decoding::Described(_)) && places.len() != self.columns.len() {
            return None;
        }
        let in_order = places.iter().copied().eq(0..places.len());
        let info = info.clone();
        let places = (!in_order).then(|| places.into());
        Some(Mapping { info, places, plan, left_out, rows })
    }

    /// The columns of the file and their encodings.
    pub(super) fn schema(&self) -> Result<(Schema, Vec<Encoding>)> {
        let header = of(EVENT_HEADER)?;
        let mut fields: Vec<Field> = header.arrow()?.fields().iter().map(|f| f.as_ref().clone()).collect();
        let mut encodings: Vec<Encoding> = header.columns.iter().map(|c| c.encoding).collect();
        for (name, FieldColumn { column, .. }) in self.names.iter().zip(&self.columns) {
            fields.push(Field::new(name, column.data_type(), true));
            encodings.push(column.encoding());
        }
        fields.push(Field::new("raw_payload", DataType::Binary, true));
        fields.push(Field::new("decode_problem", DataType::Utf8, true));
        encodings.extend([Encoding::Plain, Encoding::Dictionary]);
        Ok((Schema::new(fields), encodings))
    }
}

/// The name of a field's column, if no other has it.
fn column_name(field: &PlanField) -> String {
    let plain = snake_case(&field.name);
    let header = of(EVENT_HEADER).map_or(&[][..], |header| &header.columns);
    let taken = header.iter().any(|c| c.name == plain) || plain == "raw_payload" || plain == "decode_problem";
    if taken { format!("payload_{plain}") } else { plain }
}

/// Whether values of both kinds fit one column.
fn agree(a: &PayloadColumn, b: &PayloadColumn) -> bool {
    match (a.width(), b.width()) {
        (Some((signed, _)), Some((other, _))) => signed == other,
        _ => a.data_type() == b.data_type(),
    }
}
