//! The rows of a payload table while a batch of them is made of events.

use arrow_array::ArrayRef;
use tracequet_facts::fact::EventHeader;
use tracequet_trace::error::cut;
use tracequet_trace::event::decode::{Column, Fit, decode};
use tracequet_trace::event::plan::{Node, Plan};
use tracequet_trace::time::Clock;

use super::batches::TableBuilder;
use super::builders::EventHeaderBuilder;
use super::columns::TextBuffer;
use super::event_layout::{EventLayout, Mapping};
use super::payload::PayloadColumn;

/// Bytes of a field's name in a message.
pub(super) const MAX_NAME: usize = 256;

/// The columns of a payload table, which are filled with a batch.
pub(super) struct EventRows {
    header: EventHeaderBuilder,
    columns: Vec<PayloadColumn>,
    raw: TextBuffer,
    problem: TextBuffer,
    /// Rows with a payload. The headers of a chunk of events are added before their payloads.
    payloads: usize,
}

/// The way in which a payload went into its table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Decoded {
    /// By its plan; how it fitted.
    Fit(Fit),
    /// Not at all.
    Raw,
}

impl EventRows {
    /// Without rows.
    pub(super) fn new(layout: &EventLayout) -> EventRows {
        EventRows {
            header: EventHeaderBuilder::default(),
            columns: layout.new_columns(),
            raw: TextBuffer::default(),
            problem: TextBuffer::default(),
            payloads: 0,
        }
    }

    /// Adds the headers of events, whose payloads are added one by one.
    pub(super) fn headers(&mut self, rows: &[EventHeader<'_>], clock: &Clock) {
        self.header.extend(rows, clock);
    }

    /// Adds the payload of the next event; of one whose rows are in another table, and all there, only what is before
    /// them (`is_head`).
    pub(super) fn payload(
        &mut self,
        layout: &EventLayout,
        mapping: &Mapping,
        payload: &[u8],
        is_head: bool,
    ) -> Decoded {
        let decoded = match mapping.info.plan(payload) {
            Ok(plan) => Decoded::Fit(self.decode(layout, plan, mapping, payload, is_head)),
            Err(why) => {
                self.columns.iter_mut().for_each(Column::null);
                self.keep_raw(why, payload);
                Decoded::Raw
            }
        };
        if let Decoded::Fit(fit) = decoded
            && !fit.is_exact()
        {
            self.keep_raw(&describe(&fit, mapping), payload);
        }
        self.payloads += 1;
        decoded
    }

    /// Keeps the payload of a row as bytes, because its columns do not hold all of it.
    #[cold]
    fn keep_raw(&mut self, problem: &str, payload: &[u8]) {
        for (column, bytes) in [(&mut self.problem, problem.as_bytes()), (&mut self.raw, payload)] {
            column.fill(self.payloads);
            column.push_with(|out| out.extend_from_slice(bytes));
        }
    }

    fn decode(&mut self, layout: &EventLayout, plan: &Plan, mapping: &Mapping, payload: &[u8], is_head: bool) -> Fit {
        // A layout chosen by the payload's size is not the one that was mapped.
        let differs = plan.fields.len() != mapping.plan.fields.len();
        let sized = differs && mapping.rows.is_none() && mapping.left_out == 0;
        let own = if sized { layout.places(plan) } else { None };
        let places = if sized { own.as_deref() } else { mapping.places.as_deref() };
        let plan = if sized { plan } else { &mapping.plan };
        let fit = match places {
            None => {
                let fields = plan.fields.iter().filter(|f| !matches!(f.node, Node::Padding(_))).count();
                let (now, later) = self.columns.split_at_mut_checked(fields).unwrap_or_default();
                let fit = decode(plan, payload, now);
                later.iter_mut().for_each(Column::null);
                fit
            }
            Some(places) => self.decode_scattered(plan, places, payload),
        };
        match &mapping.rows {
            Some(_) if is_head => Fit::default(),
            Some(rows) => rows.fit(payload, plan.fields.len()),
            None => fit,
        }
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

    /// Takes the rows out, as arrays.
    pub(super) fn finish(&mut self) -> Vec<ArrayRef> {
        let rows = std::mem::take(&mut self.payloads);
        let mut arrays = self.header.finish();
        arrays.extend(self.columns.iter_mut().map(PayloadColumn::finish));
        self.raw.fill(rows);
        self.problem.fill(rows);
        arrays.extend([self.raw.take_binary(), self.problem.take()]);
        arrays
    }
}

fn describe(fit: &Fit, mapping: &Mapping) -> String {
    if let Some(short) = fit.short {
        // In each row: a name may have megabytes.
        let name = mapping.plan.fields.get(short.0).map_or("a row".into(), |f| cut(&f.name, MAX_NAME));
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
