//! What was logged in requests, as the view `request_log` has it.

use super::worked::Asked;
use crate::prelude::*;
use crate::present::cut;

/// Messages that are kept, and bytes of a message.
const MAX_LOGGED: usize = 1 << 13;
const MAX_MESSAGE: usize = 1000;

row!(struct Log of log {
    process_id, thread_id, ts_ns, level, category, message, exception_type, activity_id, w3c_trace_id
});

/// A message of a request.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The place of the request among those that were asked for.
    pub request: usize,
    /// When it was logged, nanoseconds since the recording began.
    pub ts_ns: i64,
    /// OS thread id.
    pub thread_id: u64,
    /// The level, such as `warning`.
    pub level: String,
    /// The category: the name of the logger.
    pub category: String,
    /// The message, with the type of its exception.
    pub message: String,
}

/// The messages of requests, in the order of logging: those with the trace of the request that were logged while it ran; where the request
/// or the message has no trace, those with its activity id.
pub fn logged(recording: &Recording<'_>, asked: &[Asked]) -> Result<Vec<Logged>> {
    let mut by_key: Map<(u64, &str), Vec<usize>> = Map::default();
    for (place, request) in asked.iter().enumerate().filter(|(_, request)| request.is_server) {
        for key in [&request.trace, &request.activity].into_iter().flatten() {
            by_key.entry((request.process, key)).or_default().push(place);
        }
    }
    let mut found = Vec::new();
    recording.each_recorded::<Log<'_>>(|row| {
        let keys = [row.w3c_trace_id, row.activity_id].into_iter().flatten();
        let mut places: Vec<usize> =
            keys.filter_map(|key| by_key.get(&(row.process_id, key))).flatten().copied().collect();
        places.sort_unstable();
        places.dedup();
        let is_its = |place: &usize| {
            asked.get(*place).is_some_and(|request| {
                let is = |own: &Option<String>, key: Option<&str>| own.is_some() && own.as_deref() == key;
                let has_no_trace = request.trace.is_none() || row.w3c_trace_id.is_none();
                let is_of_activity = has_no_trace && is(&request.activity, row.activity_id);
                let is_during = (request.start_ns..=request.end_ns).contains(&row.ts_ns);
                is_during && (is(&request.trace, row.w3c_trace_id) || is_of_activity)
            })
        };
        for request in places.into_iter().filter(is_its) {
            if found.len() < MAX_LOGGED {
                let message = row.message.unwrap_or_default();
                let message = match row.exception_type.filter(|exception| !exception.is_empty()) {
                    Some(exception) => format!("{} ({exception})", cut(message, MAX_MESSAGE)),
                    None => cut(message, MAX_MESSAGE).to_owned(),
                };
                found.push(Logged {
                    request,
                    ts_ns: row.ts_ns,
                    thread_id: row.thread_id,
                    level: row.level.unwrap_or_default().to_owned(),
                    category: cut(row.category, MAX_MESSAGE).to_owned(),
                    message,
                });
            }
        }
    })?;
    Ok(found)
}
