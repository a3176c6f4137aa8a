//! Rows of pairs of a start and a stop on their way out: what a gap may have touched says so.
//!
//! ```text
//!  thread 1   start X .............................      a row from here
//!  thread 2   ....... | stop X, start X: lost | ..       the gap shows at its end only,
//!  thread 3   ........................ stop X ....       behind the wrong stop
//! ```
//! So rows whose events come from several threads wait until the losses of their time are known, where a reader finds
//! those late. Rows of one thread need not wait: its own gap shows before its next event.

use std::collections::VecDeque;

use crate::fact::{Activity, Exception, Fact, FactSink, FileIo, GcJoin, GcPause, MethodCompilation, ThreadPoolWork};
use crate::fact::{Alpc, AssemblyLoad, Contention, SystemCall, ThreadTime, Wait};
use crate::gaps::Gaps;
use crate::sources::activities::is_numbered_once;

/// Rows that wait, at most: more than there are pairs between two sequence points of any known recording.
const MAX_HELD: usize = 1 << 16;

/// A row that waits.
#[derive(Clone, Copy, Debug)]
enum Held {
    Work(ThreadPoolWork),
    Pause(GcPause),
    Join(GcJoin),
}

/// The gaps that are known, and the rows that wait to learn more.
#[derive(Debug, Default)]
pub struct Pairs {
    gaps: Gaps,
    /// Whether the reader finds gaps after it has delivered later events.
    pub are_late: bool,
    held: VecDeque<Held>,
    /// The latest end of a row that could not wait any longer.
    unsettled: Option<i64>,
    /// Gaps that reach back to such rows.
    pub late_gaps: u64,
}

impl Pairs {
    /// Events of a thread of this process (`None`: of any thread) are missing between two times.
    pub fn gap(&mut self, process_id: Option<u64>, since_ns: i64, until_ns: i64) {
        self.late_gaps += u64::from(self.unsettled.is_some_and(|end| since_ns < end));
        self.gaps.add(process_id, since_ns, until_ns);
    }

    /// A row that ended then was handed on though a gap of its time may still show.
    pub fn unsettled(&mut self, end_ns: i64) {
        self.unsettled = self.unsettled.max(Some(end_ns));
    }

    /// Hands on the rows that wait and ended before a time.
    pub fn release(&mut self, ended_before_ns: i64, sink: &mut impl FactSink) {
        // Rows wait in the order of their ends.
        while self.held.front().is_some_and(|row| row.end_ns() < ended_before_ns) {
            self.release_first(sink);
        }
    }

    fn hold(&mut self, row: Held, sink: &mut impl FactSink) {
        if self.held.len() >= MAX_HELD {
            let end_ns = self.held.front().map_or(i64::MIN, Held::end_ns);
            self.unsettled(end_ns);
            self.release_first(sink);
        }
        self.held.push_back(row);
    }

    fn release_first(&mut self, sink: &mut impl FactSink) {
        match self.held.pop_front() {
            Some(Held::Work(row)) => sink.add(&self.work(row)),
            Some(Held::Pause(row)) => sink.add(&self.pause(row)),
            Some(Held::Join(row)) => sink.add(&self.join(row)),
            None => {}
        }
    }

    /// An item that may have been taken unseen: its id is given out again.
    fn work(&self, row: ThreadPoolWork) -> ThreadPoolWork {
        let end = row.start_ts_ns.unwrap_or(i64::MAX);
        if !self.gaps.touch(row.process_id, row.queue_ts_ns, end) {
            return row;
        }
        ThreadPoolWork { start_ts_ns: None, worker_thread_id: 0, touches_gap: true, ..row }
    }

    fn pause(&self, row: GcPause) -> GcPause {
        let end = row.start_ts_ns.saturating_add(row.duration_ns);
        GcPause { touches_gap: row.touches_gap || self.gaps.touch(row.process_id, row.start_ts_ns, end), ..row }
    }

    fn join(&self, row: GcJoin) -> GcJoin {
        let end = row.end_ts_ns.unwrap_or(i64::MAX);
        GcJoin { touches_gap: row.touches_gap || self.gaps.touch(row.process_id, row.start_ts_ns, end), ..row }
    }

    /// Work that may have ended unseen, so that the stop is that of later work. What has a number of its own is not
    /// mistaken.
    fn activity<'a>(&self, row: &Activity<'a>) -> Activity<'a> {
        let end = row.end_ts_ns.unwrap_or(i64::MAX);
        if !self.gaps.touch(row.process_id, row.start_ts_ns, end) {
            return *row;
        }
        if is_numbered_once(row) {
            return Activity { touches_gap: true, ..*row };
        }
        let row = Activity { end_ts_ns: None, end_thread_id: 0, paired_by: None, ..*row };
        Activity { outcome: None, end_fields: None, touches_gap: true, ..row }
    }

    /// An operation whose packet may have been used again unseen.
    fn file_io<'a>(&self, row: &FileIo<'a>) -> FileIo<'a> {
        if !self.gaps.touch(row.process_id, row.start_ts_ns, row.end_ts_ns.unwrap_or(i64::MAX)) {
            return *row;
        }
        FileIo { end_ts_ns: None, status: None, result: 0, touches_gap: true, ..*row }
    }

    /// A call whose thread may have made another one unseen.
    fn system_call(&self, row: &SystemCall) -> SystemCall {
        if !self.touch_any(row.start_ts_ns, row.end_ts_ns) {
            return *row;
        }
        SystemCall { end_ts_ns: None, status: None, touches_gap: true, ..*row }
    }

    /// A message whose number may have been used again unseen, or a wait whose thread waits for something else.
    fn alpc<'a>(&self, row: &Alpc<'a>) -> Alpc<'a> {
        if !self.touch_any(row.start_ts_ns, row.end_ts_ns) {
            return *row;
        }
        let row = Alpc { end_ts_ns: None, receiver_process_id: None, receiver_thread_id: None, ..*row };
        Alpc { status: None, touches_gap: true, ..row }
    }

    /// Whether events of any thread are missing between a start and its end, if that is known.
    fn touch_any(&self, start_ns: i64, end_ns: Option<i64>) -> bool {
        self.gaps.touch_any(start_ns, end_ns.unwrap_or(i64::MAX))
    }
}

impl Held {
    fn end_ns(&self) -> i64 {
        match self {
            Held::Work(row) => row.start_ts_ns.unwrap_or(row.queue_ts_ns),
            Held::Pause(row) => row.start_ts_ns.saturating_add(row.duration_ns),
            Held::Join(row) => row.end_ts_ns.unwrap_or(row.start_ts_ns),
        }
    }
}

/// A sink that marks rows of pairs, and lets them wait.
pub struct Marking<'s, S> {
    /// The gaps that are known.
    pub pairs: &'s mut Pairs,
    /// Where rows go.
    pub sink: &'s mut S,
}

impl<S: FactSink> FactSink for Marking<'_, S> {
    #[inline]
    fn fact(&mut self, fact: Fact<'_>) {
        match fact {
            Fact::ThreadPoolWork(rows) if self.pairs.are_late => {
                rows.iter().for_each(|row| self.pairs.hold(Held::Work(*row), self.sink));
            }
            Fact::GcPause(rows) if self.pairs.are_late => {
                rows.iter().for_each(|row| self.pairs.hold(Held::Pause(*row), self.sink));
            }
            Fact::GcJoin(rows) if self.pairs.are_late => {
                rows.iter().for_each(|row| self.pairs.hold(Held::Join(*row), self.sink));
            }
            fact if self.pairs.gaps.is_empty() => self.sink.fact(fact),
            fact => self.mark(fact),
        }
    }
}

impl<S: FactSink> Marking<'_, S> {
    #[cold]
    fn mark(&mut self, fact: Fact<'_>) {
        let Marking { pairs, sink } = self;
        match fact {
            Fact::Activity(rows) => rows.iter().for_each(|row| sink.add(&pairs.activity(row))),
            Fact::ThreadPoolWork(rows) => rows.iter().for_each(|row| sink.add(&pairs.work(*row))),
            Fact::SystemCall(rows) => rows.iter().for_each(|row| sink.add(&pairs.system_call(row))),
            Fact::Alpc(rows) => rows.iter().for_each(|row| sink.add(&pairs.alpc(row))),
            Fact::FileIo(rows) => rows.iter().for_each(|row| sink.add(&pairs.file_io(row))),
            Fact::GcPause(rows) => rows.iter().for_each(|row| sink.add(&pairs.pause(*row))),
            Fact::GcJoin(rows) => rows.iter().for_each(|row| sink.add(&pairs.join(*row))),
            Fact::Exception(rows) => rows.iter().for_each(|row| {
                let touches_gap = row.touches_gap || pairs.touch_any(row.ts_ns, row.end_ts_ns);
                sink.add(&Exception { touches_gap, ..*row });
            }),
            Fact::Contention(rows) => rows.iter().for_each(|row| {
                let touches_gap = row.touches_gap || pairs.touch_any(row.start_ts_ns, row.end_ts_ns);
                sink.add(&Contention { touches_gap, ..*row });
            }),
            Fact::Wait(rows) => rows.iter().for_each(|row| {
                let touches_gap = row.touches_gap || pairs.touch_any(row.start_ts_ns, row.end_ts_ns);
                sink.add(&Wait { touches_gap, ..*row });
            }),
            Fact::MethodCompilation(rows) => rows.iter().for_each(|row| {
                let touches_gap = row.touches_gap || pairs.touch_any(row.start_ts_ns, row.end_ts_ns);
                sink.add(&MethodCompilation { touches_gap, ..*row });
            }),
            Fact::AssemblyLoad(rows) => rows.iter().for_each(|row| {
                let touches_gap = row.touches_gap || pairs.touch_any(row.start_ts_ns, row.end_ts_ns);
                sink.add(&AssemblyLoad { touches_gap, ..*row });
            }),
            Fact::ThreadTime(rows) => rows.iter().for_each(|row| {
                let touches_gap = pairs.touch_any(row.start_ts_ns, Some(row.end_ts_ns));
                sink.add(&ThreadTime { touches_gap, complete: row.complete && !touches_gap, ..*row });
            }),
            fact => sink.fact(fact),
        }
    }
}
