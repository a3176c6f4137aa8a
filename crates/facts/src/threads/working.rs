//! The work of each thread, by the activity ids of the events that it writes.

use std::collections::hash_map::Entry;

use tracequet_trace::event::Event;
use tracequet_trace::reader::ThreadIndex;

use super::activity_path;
use crate::fact::ThreadActivity;
use crate::prelude::*;

/// An action of no event in particular: the tracker looks at the headers of all.
#[derive(Clone, Copy, Debug)]
pub enum WorkingAction {}

/// Events of one thread with one activity id that follow each other.
#[derive(Clone, Copy, Debug)]
struct Run {
    activity_id: Guid,
    start_ts_ns: i64,
    last_ts_ns: i64,
    process_id: u64,
    thread_id: u64,
    event_count: u64,
}

/// The threads whose last event has an activity id.
#[derive(Debug, Default)]
pub struct Working {
    runs: Map<ThreadIndex, Run>,
}

impl Working {
    /// An event of any kind.
    #[inline]
    pub fn written(&mut self, event: &Event<'_>, sink: &mut impl FactSink) {
        let activity_id = event.raw.labels.activity_id;
        if (activity_id.is_none() && self.runs.is_empty()) || event.raw.capture_thread != event.raw.thread {
            return;
        }
        self.run(activity_id, event, sink);
    }

    fn run(&mut self, activity_id: Guid, event: &Event<'_>, sink: &mut impl FactSink) {
        let new = Run {
            activity_id,
            start_ts_ns: event.ts_ns,
            last_ts_ns: event.ts_ns,
            process_id: event.thread.process_id,
            thread_id: event.thread.thread_id,
            event_count: 1,
        };
        match self.runs.entry(event.raw.thread) {
            Entry::Occupied(mut known) if known.get().activity_id == activity_id => {
                let run = known.get_mut();
                run.last_ts_ns = run.last_ts_ns.max(event.ts_ns);
                run.event_count += 1;
            }
            Entry::Occupied(mut known) => {
                ended(known.get(), event.ts_ns, sink);
                if activity_id.is_none() {
                    known.remove();
                } else {
                    known.insert(new);
                }
            }
            Entry::Vacant(vacant) => {
                if !activity_id.is_none() {
                    vacant.insert(new);
                }
            }
        }
    }
}

fn ended(run: &Run, ts_ns: i64, sink: &mut impl FactSink) {
    sink.add(&ThreadActivity {
        start_ts_ns: run.start_ts_ns,
        // Where time goes back, the next event is no end.
        end_ts_ns: ts_ns.max(run.last_ts_ns),
        process_id: run.process_id,
        thread_id: run.thread_id,
        activity_id: run.activity_id,
        activity_path: activity_path::path(&run.activity_id, run.process_id).as_deref(),
        event_count: run.event_count,
    });
}

impl Tracker for Working {
    type Action = WorkingAction;
    const EVENTS: Events<WorkingAction> = &[];

    fn event(&mut self, action: WorkingAction, _: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        match action {}
    }

    fn cut(&mut self, cut: &Cut, sink: &mut impl FactSink) {
        let mut cut_off: Vec<ThreadIndex> = match cut.thread {
            Some(thread) => vec![thread],
            None => self.runs.keys().copied().collect(),
        };
        cut_off.sort_unstable();
        for run in cut_off.into_iter().filter_map(|thread| self.runs.remove(&thread)) {
            ended(&run, run.last_ts_ns.saturating_add(1), sink);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::tests::made_up::Each;
    use tracequet_trace::event::EventInfo;
    use tracequet_trace::reader::{EventType, Labels, Layout, RawEvent, Thread, TypeId};

    #[test]
    fn a_thread_works_on_an_activity_until_it_writes_another_id() {
        let info = EventInfo::resolve(&EventType::new("Test", 1, 0, Layout::Fields(Vec::new())), 8);
        let (mut working, mut found) = (Working::default(), Vec::new());
        let mut sink = Each(|fact: &Fact<'_>| {
            if let Fact::ThreadActivity(rows) = fact {
                let row = |row: &ThreadActivity<'_>| {
                    (row.thread_id, row.activity_id.0[0], row.start_ts_ns, row.end_ts_ns, row.event_count)
                };
                found.extend(rows.iter().map(row));
            }
        });
        // Time, thread, who wrote it, the id.
        let events =
            [(5, 1, 1, 0), (10, 1, 1, 7), (20, 1, 1, 7), (25, 1, 2, 0), (26, 2, 2, 8), (30, 1, 1, 9), (40, 1, 1, 0)];
        let mut write = |working: &mut Working, (ts_ns, thread, captor, id): (i64, u32, u32, u8)| {
            let mut labels = Labels::default();
            labels.activity_id = Guid([id; 16]);
            let mut about = Thread::default();
            (about.process_id, about.thread_id) = (1, u64::from(thread));
            let mut raw = RawEvent::new(TypeId(0), ts_ns, &labels, &[]);
            (raw.thread, raw.capture_thread) = (thread, captor);
            working.written(&Event::new(&raw, &info, &about, ts_ns), &mut sink);
        };
        events.into_iter().for_each(|event| write(&mut working, event));
        [(50, 1, 1, 3), (60, 2, 2, 8), (70, 1, 1, 3)].into_iter().for_each(|event| write(&mut working, event));
        working.cut(&Cut { thread: Some(1), ..Cut::lost(70) }, &mut sink);
        working.cut(&Cut::default(), &mut sink);
        assert_eq!(found, [(1, 7, 10, 30, 2), (1, 9, 30, 40, 1), (1, 3, 50, 71, 2), (2, 8, 26, 61, 2)]);
    }
}
