//! Events of a payload table as they were recorded, until there is a batch of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracequet_facts::fact::{CallsiteId, EventHeader};
use tracequet_trace::error::cut;
use tracequet_trace::event::{Event, EventInfo};
use tracequet_trace::guid::Guid;
use tracequet_trace::reader::TypeId;
use tracequet_trace::time::Clock;

use super::event_layout::{EventLayout, Mapping};
use super::event_rows::{Decoded, EventRows, MAX_NAME};

/// Rows and bytes after which a batch is handed on.
const BATCH_ROWS: usize = 16 << 10;
const BATCH_BYTES: usize = 2 << 20;
/// An estimate of the bytes of a row beside its payload: in the header columns, and in each column of the payload.
const HEADER_BYTES: usize = 96;
const FIELD_BYTES: usize = 4;
/// Rows whose headers go into the columns together.
const HEADERS: usize = 256;

/// Short payloads of a kind of event that are described one by one.
pub const MAX_SHORT: usize = 100;

/// Events of one table, in the order in which they came.
#[derive(Default)]
pub(super) struct Undecoded {
    rows: Vec<Row>,
    /// The activity and the related activity of each row that has one of them.
    activities: Vec<[Guid; 2]>,
    payloads: Vec<u8>,
    labels: String,
    /// An estimate of the bytes that the rows will take as columns.
    bytes: usize,
}

/// An event. Its payload and its labels begin where those of the event before it end. Rows are copied more than all
/// else that waits to be decoded, so they are small.
struct Row {
    ts_ns: i64,
    process_id: u64,
    thread_id: u64,
    offset: u64,
    payload_len: u32,
    labels_len: usize,
    event_type: TypeId,
    processor: u32,
    callsite_id: CallsiteId,
    /// Place among the mappings of the table.
    mapping: u32,
    has_activity: bool,
    /// Whether only what is before the rows of a bulk event was kept.
    is_head: bool,
}

/// Counts of the events of one kind in a batch that do not fit their columns exactly.
#[derive(Clone, Debug)]
pub struct NotExact {
    /// The kind.
    pub event_type: TypeId,
    /// The type of the event.
    pub info: EventInfo,
    /// Events that are kept raw.
    pub raw: u64,
    /// Events with bytes behind the last field.
    pub longer: u64,
    /// Events with text that was replaced.
    pub replaced: u64,
    /// Events that end too early.
    pub shorter: u64,
    /// The first [`MAX_SHORT`] of them.
    pub first_shorter: Vec<ShortPayload>,
}

/// A payload that ends too early.
#[derive(Clone, Debug)]
pub struct ShortPayload {
    /// Where it stands in the recording.
    pub offset: u64,
    /// The bytes of the payloads.
    pub bytes: usize,
    /// The field that is not whole.
    pub field: String,
}

impl Undecoded {
    /// Adds an event, which goes into `columns` columns by the mapping with this place.
    #[inline]
    pub(super) fn push(
        &mut self,
        event: &Event<'_>,
        (place, mapping): (u32, &Mapping),
        columns: usize,
        callsite_id: CallsiteId,
    ) {
        let raw = event.raw;
        let (payload, is_head) = mapping.needed(raw.payload);
        // No format has a payload of 4 GB.
        let payload_len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let activities = [raw.labels.activity_id, raw.labels.related_activity_id];
        let has_activity = activities != [Guid::NONE; 2];
        if has_activity {
            self.activities.push(activities);
        }
        self.rows.push(Row {
            ts_ns: event.ts_ns,
            process_id: event.thread.process_id,
            thread_id: event.thread.thread_id,
            offset: raw.offset,
            payload_len,
            labels_len: raw.labels.json.len(),
            event_type: raw.event_type,
            processor: raw.processor,
            callsite_id,
            mapping: place,
            has_activity,
            is_head,
        });
        self.payloads.extend_from_slice(payload.get(..payload_len as usize).unwrap_or_default());
        self.labels.push_str(&raw.labels.json);
        self.bytes += HEADER_BYTES + columns * FIELD_BYTES + payload.len() + raw.labels.json.len();
    }

    /// Whether the batch is large enough to be handed on.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    /// Rows so far.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// An estimate of the bytes that the rows will take as columns.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Decodes the events into `rows`. Returns, for each kind, the counts of events that do not fit their columns.
    pub(super) fn decode(
        &self,
        rows: &mut EventRows,
        layout: &EventLayout,
        mappings: &[Arc<Mapping>],
        clock: &Clock,
    ) -> Vec<NotExact> {
        let mut not_exact: BTreeMap<u32, NotExact> = BTreeMap::new();
        let (mut payloads, mut labels) = (self.payloads.as_slice(), self.labels.as_str());
        let mut activities = self.activities.iter();
        let mut headers: Vec<EventHeader<'_>> = Vec::with_capacity(HEADERS.min(self.rows.len()));
        for chunk in self.rows.chunks(HEADERS) {
            headers.clear();
            for row in chunk {
                let Some(mapping) = mappings.get(row.mapping as usize) else { continue };
                let (own, rest) = labels.split_at_checked(row.labels_len).unwrap_or_default();
                labels = rest;
                let recorded = if row.has_activity { activities.next() } else { None };
                let [activity_id, related_activity_id] = recorded.copied().unwrap_or_default();
                headers.push(EventHeader {
                    ts_ns: row.ts_ns,
                    process_id: row.process_id,
                    thread_id: row.thread_id,
                    processor: (row.processor != u32::MAX).then_some(row.processor),
                    event_version: mapping.info.event_type.version,
                    activity_id,
                    related_activity_id,
                    callsite_id: row.callsite_id,
                    labels: (!own.is_empty()).then_some(own),
                });
            }
            rows.headers(&headers, clock);
            for row in chunk {
                let Some(mapping) = mappings.get(row.mapping as usize) else { continue };
                let (payload, rest) = payloads.split_at_checked(row.payload_len as usize).unwrap_or_default();
                payloads = rest;
                let decoded = rows.payload(layout, mapping, payload, row.is_head);
                if !matches!(decoded, Decoded::Fit(fit) if fit.is_exact()) {
                    let known = not_exact.entry(row.event_type.0).or_insert_with(|| NotExact::none(row, mapping));
                    known.add(decoded, row, payload);
                }
            }
        }
        not_exact.into_values().collect()
    }

    /// An empty batch with room for an eighth more than this one has: the next events of its table are about as many.
    pub(super) fn successor(&self) -> Undecoded {
        let room = |len: usize| len + len / 8;
        Undecoded {
            rows: Vec::with_capacity(room(self.rows.len())),
            activities: Vec::with_capacity(room(self.activities.len())),
            // A single payload may be larger than all others.
            payloads: Vec::with_capacity(room(self.payloads.len()).min(BATCH_BYTES)),
            labels: String::with_capacity(room(self.labels.len()).min(BATCH_BYTES)),
            bytes: 0,
        }
    }
}

impl NotExact {
    fn none(row: &Row, mapping: &Mapping) -> NotExact {
        NotExact {
            event_type: row.event_type,
            info: mapping.info.clone(),
            raw: 0,
            longer: 0,
            replaced: 0,
            shorter: 0,
            first_shorter: Vec::new(),
        }
    }

    #[cold]
    fn add(&mut self, decoded: Decoded, row: &Row, payload: &[u8]) {
        let Decoded::Fit(fit) = decoded else {
            self.raw += 1;
            return;
        };
        self.longer += u64::from(fit.surplus > 0);
        self.replaced += u64::from(fit.replaced);
        let Some(short) = fit.short else { return };
        self.shorter += 1;
        if self.first_shorter.len() < MAX_SHORT {
            let fields = self.info.plan(payload).map(|plan| plan.fields.as_slice()).unwrap_or_default();
            let field = fields.get(short.0).map_or("its rows".into(), |field| cut(&field.name, MAX_NAME)).into_owned();
            self.first_shorter.push(ShortPayload { offset: row.offset, bytes: payload.len(), field });
        }
    }
}
