//! Counts of a recording on its way through the layers, and reasons to end it early.

use crate::prelude::*;

use tracequet_trace::error::Error as TraceError;
use tracequet_trace::reader::{End, TraceInfo};
use tracequet_trace::source::FileIdentity;

use super::conversion::Conversion;
use crate::summary::InputSummary;

/// Events of a recording so far, and what stops it.
pub(crate) struct Course {
    /// Events, or records of callbacks, that the request asks for.
    pub(crate) events: u64,
    first_ns: i64,
    last_ns: i64,
    failure: Option<Error>,
    /// The first damage, where the request is to stop at it.
    damage: Option<Problem>,
}

impl Course {
    /// Before the first event.
    pub(crate) fn new() -> Course {
        Course { events: 0, first_ns: i64::MAX, last_ns: i64::MIN, failure: None, damage: None }
    }

    /// Counts an event.
    pub(crate) fn event(&mut self, ts_ns: i64) {
        self.events += 1;
        self.first_ns = self.first_ns.min(ts_ns);
        self.last_ns = self.last_ns.max(ts_ns);
    }

    /// Times of the oldest and the newest event, nanoseconds since the recording began; zeros without events.
    pub(crate) fn span(&self) -> (i64, i64) {
        if self.events == 0 { (0, 0) } else { (self.first_ns, self.last_ns) }
    }

    /// The fields of a recording's summary that its header, its events and its end give.
    pub(crate) fn summary(&self, path: &Path, end: &End, identity: &FileIdentity, info: TraceInfo) -> InputSummary {
        let (first_ns, last_ns) = self.span();
        InputSummary {
            path: path.to_owned(),
            identity: identity.clone(),
            info,
            complete: end.complete,
            bytes: end.bytes,
            events: self.events,
            dropped_events: end.dropped_events,
            first_ns,
            last_ns,
            ..InputSummary::default()
        }
    }

    /// Keeps the first failure.
    pub(crate) fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    /// Remembers a problem that is to be the end of the recording.
    pub(crate) fn problem(&mut self, problem: &Problem, conversion: &Conversion<'_>) {
        if self.damage.is_none() && conversion.ends_at(problem) {
            self.damage = Some(problem.clone());
        }
    }

    /// Reports how far the reader is, and checks that the dataset can still be written and is still wanted.
    pub(crate) fn progress(&mut self, position: u64, conversion: &mut Conversion<'_>) {
        (conversion.progress)(position, conversion.total, self.events);
        if let Err(e) = conversion.request.check_stop().and_then(|()| conversion.dataset.check()) {
            self.fail(e);
        }
    }

    /// Whether the reader continues.
    pub(crate) fn flow(&self) -> ControlFlow<()> {
        if self.failure.is_some() || self.damage.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// The damage that was to be the end, as the error that it is.
    pub(crate) fn damage(&mut self, path: &Path) -> Result<()> {
        match self.damage.take() {
            Some(Problem { offset, message: what, .. }) => {
                Err(TraceError::Damaged { path: path.to_owned(), offset, what }.into())
            }
            None => Ok(()),
        }
    }

    /// Why there is nothing to close: the reader gave up before it had read a header.
    pub(crate) fn no_header(&mut self) -> Error {
        self.failure().unwrap_or_else(|| Error::Internal("the recording has no header".into()))
    }

    /// The first failure, once.
    pub(crate) fn failure(&mut self) -> Option<Error> {
        self.failure.take()
    }
}
