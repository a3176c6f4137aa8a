//! Spans of W3C Trace Context that threads worked on.

use std::collections::BinaryHeap;

use crate::prelude::*;

use super::model::{Sample, ThreadSamples};

/// The table with the times in which threads worked on activities.
pub(super) const ACTIVITIES: &str = "thread_activity";

row!(struct Span of activity {
    process_id, thread_id, end_thread_id, start_ts_ns, end_ts_ns, activity_id, w3c_trace_id, span_id
});

row!(pub(super) struct Worked of thread_activity {
    process_id, thread_id, start_ts_ns, end_ts_ns, activity_id, activity_path
});

/// A thread worked on a span from `start_ns` to `end_ns`, nanoseconds since the recording began. In the order of their
/// beginnings, so that of two nested spans the inner one is the larger one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SpanTime {
    pub start_ns: i64,
    pub end_ns: i64,
    /// Index in [`SpanWork::ids`].
    pub span: u32,
}

/// Memory of a time.
const STORED: u64 = size_of::<SpanTime>() as u64;

/// Spans, and when threads worked on them.
#[derive(Debug, Default)]
pub(super) struct SpanWork {
    /// Ids of the trace and of the span.
    pub ids: Vec<(u128, u64)>,
    /// Times of each process and thread.
    pub threads: Map<(u64, u64), Vec<SpanTime>>,
}

impl SpanWork {
    /// Reads the spans that are wanted, by the ids of trace and span. A thread works on a span without an activity id from its
    /// beginning to its end, if that is on the same thread; on any other one while it works on the activity.
    pub fn read(recording: &Recording<'_>, is_wanted: impl Fn(&str, &str) -> bool) -> Result<SpanWork> {
        let mut work = SpanWork::default();
        let mut by_id = Map::<String, Vec<SpanTime>>::default();
        each_row::<Span<'_>>(recording, 0, |row| {
            let (Some(end_ns), Some(span_id)) = (row.end_ts_ns, row.span_id) else { return Ok(()) };
            let trace_id = row.w3c_trace_id.unwrap_or_default();
            if !is_wanted(trace_id, span_id) {
                return Ok(());
            }
            let span = u32::try_from(work.ids.len()).unwrap_or(u32::MAX);
            let digits = (u128::from_str_radix(trace_id, 16), u64::from_str_radix(span_id, 16));
            work.ids.push((digits.0.unwrap_or_default(), digits.1.unwrap_or_default()));
            let time = SpanTime { start_ns: row.start_ts_ns, end_ns, span };
            match row.activity_id {
                Some(activity) => by_id.entry(activity.to_owned()).or_default().push(time),
                None if row.thread_id == row.end_thread_id => work.add((row.process_id, row.thread_id), time),
                None => {}
            }
            held(recording, "activity", u64::from(span), 2 * STORED)
        })?;
        let mut found = 0;
        each_row::<Worked<'_>>(recording, 0, |row| {
            let spans = row.activity_id.and_then(|activity| by_id.get(activity));
            for span in spans.into_iter().flatten() {
                let (start_ns, end_ns) = (row.start_ts_ns.max(span.start_ns), row.end_ts_ns.min(span.end_ns));
                if start_ns < end_ns {
                    work.add((row.process_id, row.thread_id), SpanTime { start_ns, end_ns, ..*span });
                    found += 1;
                }
            }
            held(recording, ACTIVITIES, found, STORED)
        })?;
        work.threads.values_mut().for_each(|times| times.sort_unstable());
        Ok(work)
    }

    fn add(&mut self, thread: (u64, u64), time: SpanTime) {
        self.threads.entry(thread).or_default().push(time);
    }

    /// For each sample of a thread, which are in the order of time, the innermost span that the thread worked on.
    pub fn of_samples(&self, thread: &ThreadSamples) -> Vec<Option<u32>> {
        let times = self.threads.get(&(thread.process_id, thread.thread_id)).map_or(&[][..], Vec::as_slice);
        let mut next = times.iter().peekable();
        // Times that have begun. The largest one began last; smaller ones may have ended.
        let mut begun = BinaryHeap::new();
        let span_of = |sample: &Sample| {
            while let Some(time) = next.next_if(|time| time.start_ns <= sample.ts_ns) {
                begun.push(*time);
            }
            while begun.peek().is_some_and(|time| time.end_ns <= sample.ts_ns) {
                begun.pop();
            }
            begun.peek().map(|time| time.span)
        };
        thread.samples.iter().map(span_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_of_the_innermost_span() {
        let time = |start_ns, end_ns, span| SpanTime { start_ns, end_ns, span };
        let mut work = SpanWork::default();
        work.threads.insert((1, 2), vec![time(10, 100, 0), time(20, 40, 1), time(30, 60, 2), time(100, 110, 3)]);
        let samples = [5, 10, 19, 20, 35, 45, 60, 99, 100, 110].map(|ts_ns| Sample { ts_ns, callsite: 1, weight: 1 });
        let thread =
            |thread_id| ThreadSamples { process_id: 1, thread_id, label: String::new(), samples: samples.to_vec() };
        let found = [None, Some(0), Some(0), Some(1), Some(2), Some(2), Some(0), Some(0), Some(3), None];
        assert_eq!(work.of_samples(&thread(2)), found);
        assert_eq!(work.of_samples(&thread(3)), [None; 10]);
    }
}
