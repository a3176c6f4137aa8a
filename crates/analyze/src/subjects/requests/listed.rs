//! Requests of HTTP, each once: of several sources that report the same ones those of one.

use tracequet_dataset::error::Result;
use tracequet_dataset::read::Recording;

use super::route::route;
use super::sources::source;
use super::work::{CLIENT, SERVER};
use super::worked::Asked;

tracequet_dataset::row! {
    /// A request as the recording has it.
    pub struct Request of activity {
        process_id,
        thread_id,
        end_thread_id,
        activity_id,
        w3c_trace_id,
        start_ts_ns,
        duration_ns,
        provider_name,
        name,
        result,
        status_code,
        start_fields,
        end_fields,
    }
}

impl Request<'_> {
    /// The method and path; empty where nothing says it.
    pub fn route(&self) -> String {
        let [start, end] = [self.start_fields, self.end_fields].map(Option::unwrap_or_default);
        route(start, end)
    }

    /// The request, on its side: 0 came in, 1 was sent by HttpClient.
    pub fn asked(&self, side: usize) -> Asked {
        let word = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        Asked {
            is_server: side == 0,
            process: self.process_id,
            thread: self.thread_id,
            is_of_thread: self.thread_id == self.end_thread_id,
            activity: word(self.activity_id),
            trace: word(self.w3c_trace_id),
            start_ns: self.start_ts_ns,
            end_ns: self.start_ts_ns.saturating_add(self.duration_ns.unwrap_or_default().max(0)),
        }
    }
}

/// The provider and name of a source of a side.
pub fn source_of(chosen: [Option<usize>; 2], side: usize) -> Option<(&'static str, &'static str)> {
    let sources = [SERVER, CLIENT];
    sources.get(side)?.get(chosen.get(side).copied().flatten()?).copied()
}

/// Calls `take` with the side of each request of the chosen sources, and the request.
pub fn each_request(
    recording: &Recording<'_>,
    chosen: [Option<usize>; 2],
    mut take: impl FnMut(usize, &Request<'_>),
) -> Result<()> {
    recording.each_recorded::<Request<'_>>(|row| {
        let place = source(row.provider_name, row.name);
        if let Some((side, _)) = place.filter(|(side, place)| chosen.get(*side) == Some(&Some(*place))) {
            take(side, &row);
        }
    })?;
    Ok(())
}
