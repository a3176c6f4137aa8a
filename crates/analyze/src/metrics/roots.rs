//! Spans that are requests, though no source of requests reports them: the job of a worker, a message of a queue.
//!
//! They lie in no other span of the recording, and are no queries (the view `requests` says the same). That is known at the end only: the
//! span around one may come behind it.

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};

use crate::prelude::*;
use crate::subjects::requests::{Kind, hashed, query_text};

/// The source that they count as, among those of a definition.
pub(super) const SPANS: &str = "(spans)";

/// Spans that are remembered. Of more, those within others are taken as known.
const MOST_SPANS: usize = 1 << 20;

row!(struct Span of activity {
    process_id, provider_name, name, w3c_trace_id, span_id, parent_span_id, start_ts_ns, duration_ns, result,
    start_fields, end_fields
});

/// A span that may be a request.
#[derive(Debug)]
struct Candidate {
    /// The span that it lies in; 0 of none.
    parent: u64,
    process_id: u64,
    start_ns: i64,
    duration_ns: Option<i64>,
    result: Option<&'static str>,
}

/// The spans of a recording.
#[derive(Debug, Default)]
pub(super) struct Roots {
    spans: Set<u64>,
    candidates: Vec<Candidate>,
}

impl Roots {
    pub(super) const TABLE: &str = <Span<'_> as Row>::TABLE;

    pub(super) fn columns(table: &str) -> &'static [&'static str] {
        if table == Roots::TABLE { <Span<'_> as Row>::COLUMNS } else { &[] }
    }

    /// Sees rows of a table.
    pub(super) fn add(&mut self, table: &str, batch: &RecordBatch) -> Result<()> {
        if table == Roots::TABLE {
            rows_of::<Span<'_>>(batch)?.for_each(|row| self.see(&row));
        }
        Ok(())
    }

    fn see(&mut self, row: &Span<'_>) {
        let (Some(trace), Some(span)) = (row.w3c_trace_id, row.span_id) else { return };
        let key = |span: &str| hashed((row.process_id, trace, span));
        if self.spans.len() < MOST_SPANS {
            self.spans.insert(key(span));
        }
        let fields = [row.start_fields, row.end_fields].map(Option::unwrap_or_default);
        let is_query = query_text(fields[0], fields[1]).is_some();
        if self.candidates.len() >= MOST_SPANS
            || !matches!(Kind::of(row.provider_name, row.name, is_query), Kind::Other | Kind::Frame)
        {
            return;
        }
        self.candidates.push(Candidate {
            parent: row.parent_span_id.map_or(0, key),
            process_id: row.process_id,
            start_ns: row.start_ts_ns,
            duration_ns: row.duration_ns,
            result: row.result.and_then(|result| RESULTS.iter().copied().find(|known| *known == result)),
        });
    }

    /// The requests as rows of `activity`, with [`SPANS`] as their provider. `None` without a request.
    pub(super) fn rows(self) -> Result<Option<RecordBatch>> {
        let Roots { spans, candidates } = self;
        let roots: Vec<Candidate> = candidates.into_iter().filter(|span| !spans.contains(&span.parent)).collect();
        let all = |array: ArrayRef| array;
        let columns = [
            ("process_id", all(Arc::new(roots.iter().map(|span| Some(span.process_id)).collect::<UInt64Array>()))),
            ("provider_name", all(Arc::new(roots.iter().map(|_| Some(SPANS)).collect::<StringArray>()))),
            ("name", all(Arc::new(roots.iter().map(|_| None::<&str>).collect::<StringArray>()))),
            ("start_ts_ns", all(Arc::new(roots.iter().map(|span| Some(span.start_ns)).collect::<Int64Array>()))),
            ("duration_ns", all(Arc::new(roots.iter().map(|span| span.duration_ns).collect::<Int64Array>()))),
            ("result", all(Arc::new(roots.iter().map(|span| span.result).collect::<StringArray>()))),
        ];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)));
        let batch = batch.map_err(|error| Error::Internal(error.to_string()))?;
        Ok(Some(batch).filter(|batch| batch.num_rows() > 0))
    }
}

/// Words of `activity.result`.
const RESULTS: [&str; 3] = ["success", "failure", "unknown"];
