//! Puts the events of all processors into the order of time: one open buffer per processor, the oldest event first.
//!
//! ```text
//!  processor 0   [10 12 19] [21 22] ...        heap of the next events:  10/0  11/1  15/3
//!  processor 1   [11 13] [20 25] ...           equal times: by processor, then by place
//!  processor 3   [15 16] ...
//! ```
//! A buffer is expanded when its turn comes, so that memory does not grow with the file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::body::Body;
use super::chain::{Link, Session};
use crate::prelude::*;
use crate::source::MappedFile;

/// All buffers in memory of their own together; what does not fit is left out and reported.
const MAX_OWNED: usize = 192 << 20;
/// Bytes after which pages are given back.
const RELEASE_STEP: u64 = 2 << 20;
/// When more buffers are open, they are copied: a system that keeps files in large pages has up to 2 MB in memory for
/// each place that is read.
const MANY: usize = 8;
/// Copies after which pages are given back.
const COPIES: u64 = 8;

/// Where events and problems go.
pub trait Receiver {
    /// Events of any kind were lost, all of them later than a time. Comes behind the last event before the gap, and
    /// once more before the first one behind it: events of other processors may lie between.
    fn events_lost(&mut self, _since: i64) {}
    /// Between which times such events are missing (`i64::MAX`: to the end); comes before the events between.
    fn gap(&mut self, _since: i64, _until: i64) {}
    /// The event at a place in a body.
    fn event(&mut self, body: &Body<'_>, at: usize, ticks: i64) -> ControlFlow<()>;
    /// Something is wrong.
    fn problem(&mut self, problem: Problem);
    /// Number of bytes that are done.
    fn progress(&mut self, bytes: u64);
}

/// The buffers of one processor.
struct Cursor<'m> {
    links: std::slice::Iter<'m, Link>,
    body: Body<'m>,
    next: usize,
    /// Events in front of this buffer are lost: the time of the last one before them.
    gap: Option<i64>,
    /// The rest of the buffer could not be read.
    broken: bool,
    /// Events behind the buffer are lost.
    lossy_behind: bool,
}

/// Reads buffers that are sorted by processor and age, in the order of time. Returns how many events came after a later
/// one.
pub fn by_time(map: &MappedFile, session: &Session, links: &[Link], out: &mut impl Receiver) -> u64 {
    let mut late = 0;
    let _ = merge(map, session, links, &mut late, out);
    late
}

fn merge(
    map: &MappedFile,
    session: &Session,
    links: &[Link],
    late: &mut u64,
    out: &mut impl Receiver,
) -> ControlFlow<()> {
    let mut cursors: Vec<Cursor<'_>> = links
        .chunk_by(|a, b| (a.log, a.processor) == (b.log, b.processor))
        .map(|row| Cursor {
            links: row.iter(),
            body: Body::default(),
            next: 0,
            gap: None,
            broken: false,
            lossy_behind: false,
        })
        .collect();
    let copies = (cursors.len() > MANY).then_some(0);
    if copies.is_some() {
        map.expect_scattered_reads();
    }
    let mut pool = Pool { owned: 0, done: 0, released: 0, copies };
    let mut heap = BinaryHeap::new();
    for (index, cursor) in cursors.iter_mut().enumerate() {
        if let Some(ticks) = pool.next_buffer(cursor, map, session, out) {
            heap.push(Reverse((ticks, index)));
        }
    }
    let mut newest = i64::MIN;
    while let Some(Reverse((mut ticks, index))) = heap.pop() {
        let Some(cursor) = cursors.get_mut(index) else { continue };
        while let Some(event) = cursor.body.events.get(cursor.next).copied() {
            *late += u64::from(ticks < newest);
            newest = newest.max(ticks);
            if cursor.next == 0
                && let Some(since) = cursor.gap.take()
            {
                out.events_lost(since);
            }
            out.event(&cursor.body, event.at as usize, ticks)?;
            cursor.next += 1;
            let next = match cursor.body.events.get(cursor.next) {
                Some(event) => Some(event.ticks),
                None => pool.next_buffer(cursor, map, session, out),
            };
            let Some(next) = next else { break };
            if heap.peek().is_some_and(|Reverse(other)| *other < (next, index)) {
                heap.push(Reverse((next, index)));
                break;
            }
            ticks = next;
        }
    }
    ControlFlow::Continue(())
}

/// The memory of the open buffers, and how far they have come.
struct Pool {
    owned: usize,
    done: u64,
    released: u64,
    /// The number of buffers that were copied; `None` when they are not copied.
    copies: Option<u64>,
}

impl Pool {
    /// Opens the next buffer of a processor that has events; the time of its first one.
    fn next_buffer<'m>(
        &mut self,
        cursor: &mut Cursor<'m>,
        map: &'m MappedFile,
        session: &Session,
        out: &mut impl Receiver,
    ) -> Option<i64> {
        self.owned -= cursor.body.owned();
        let since = cursor.body.events.last().map_or(i64::MIN, |event| event.ticks);
        if cursor.broken || std::mem::take(&mut cursor.lossy_behind) {
            out.events_lost(since);
        }
        for link in cursor.links.by_ref() {
            cursor.next = 0;
            cursor.lossy_behind = link.lossy_behind;
            self.done += u64::from(link.stored);
            out.progress(self.done);
            let fits = self.owned + link.valid as usize <= MAX_OWNED;
            if link.compressed && !fits {
                let message = "too many processors with large compressed buffers; a buffer was left out";
                out.problem(Problem::loss("too_many_buffers", link.offset, message));
                cursor.broken = true;
                continue;
            }
            if link.lossy || cursor.broken {
                cursor.gap = Some(since);
            }
            cursor.broken = false;
            cursor.body.load(map, link, session, self.copies.is_some() && fits, &mut |p| {
                cursor.broken = true;
                out.problem(p);
            });
            self.release(map);
            if let Some(first) = cursor.body.events.first() {
                self.owned += cursor.body.owned();
                if let Some(since) = cursor.gap {
                    out.gap(since, first.ticks);
                }
                return Some(first.ticks);
            }
        }
        if std::mem::take(&mut cursor.broken) || std::mem::take(&mut cursor.lossy_behind) {
            out.events_lost(since);
            out.gap(since, i64::MAX);
        }
        cursor.body = Body::default();
        None
    }

    /// Gives pages back when a buffer more was read. Those of open buffers come back: they are few, or copied.
    fn release(&mut self, map: &MappedFile) {
        let is_due = match &mut self.copies {
            Some(copies) => {
                *copies += 1;
                *copies % COPIES == 0
            }
            None => self.done - self.released >= RELEASE_STEP,
        };
        if is_due {
            self.released = self.done;
            map.release_all();
        }
    }
}

/// Reads buffers as they lie in the file.
pub fn by_file(map: &MappedFile, session: &Session, links: &[Link], out: &mut impl Receiver) {
    let mut body = Body::default();
    for link in links {
        body.load(map, link, session, false, &mut |p| out.problem(p));
        for place in &body.events {
            if out.event(&body, place.at as usize, place.ticks).is_break() {
                return;
            }
        }
        let done = link.offset + u64::from(link.stored);
        out.progress(done);
        map.release(link.offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Reported(Vec<&'static str>);

    impl Receiver for Reported {
        fn event(&mut self, _: &Body<'_>, _: usize, _: i64) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }

        fn problem(&mut self, problem: Problem) {
            self.0.push(problem.code);
        }

        fn progress(&mut self, _: u64) {}
    }

    #[test]
    fn expanded_buffers_have_a_bound() {
        let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/clr.etl"));
        let map = MappedFile::from_file(path, std::fs::File::open(path).unwrap()).unwrap();
        let session = Session::open(&map, &[0]).unwrap();
        let link = session.chain(&map, &mut |_| ()).links.into_iter().next().unwrap();
        let reported = |owned: usize| {
            let links = [Link { compressed: true, valid: 4096, ..link }];
            let mut cursor = Cursor {
                links: links.iter(),
                body: Body::default(),
                next: 0,
                gap: None,
                broken: false,
                lossy_behind: false,
            };
            let (mut pool, mut reported) = (Pool { owned, done: 0, released: 0, copies: None }, Reported::default());
            pool.next_buffer(&mut cursor, &map, &session, &mut reported);
            reported.0.contains(&"too_many_buffers")
        };
        // 192 MB.
        assert_eq!([(192 << 20) - 4096, (192 << 20) - 4095].map(reported), [false, true]);
    }
}
