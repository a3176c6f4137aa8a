//! When threads worked for requests, by the activities that their events have.

use crate::prelude::*;

/// Times of threads that are kept.
pub(super) const MAX_TIMES: usize = 1 << 20;

/// A request that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Whether it came in.
    pub is_server: bool,
    /// OS process id.
    pub process: u64,
    /// OS thread id.
    pub thread: u64,
    /// Whether its thread also ended it.
    pub is_of_thread: bool,
    /// The activity id.
    pub activity: Option<String>,
    /// The trace of W3C Trace Context.
    pub trace: Option<String>,
    /// When it began, nanoseconds since the recording began.
    pub start_ns: i64,
    /// When it ended.
    pub end_ns: i64,
}

impl Asked {
    /// Whether a thread can be known to work for it.
    pub(super) fn is_known(&self) -> bool {
        self.activity.is_some() || self.is_of_thread
    }
}

row!(struct Stretch of thread_activity { process_id, thread_id, start_ts_ns, end_ts_ns, activity_id, activity_path });

/// Whether an activity lies in another one, or is it: ids of EventSource are paths such as `//1/34/2`.
pub(super) fn lies_in(path: &str, outer: &str) -> bool {
    outers(path).any(|known| known == outer)
}

/// The path of an activity, and those of the activities that it lies in.
fn outers(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.char_indices().filter(|(_, c)| matches!(c, '/' | '$')).map(|(at, _)| at);
    ends.chain([path.len()]).filter_map(|end| path.get(..end)).filter(|outer| !outer.is_empty())
}

/// Times that have a beginning and an end, and what each belongs to, in the order of their beginnings.
#[derive(Debug, Default)]
struct Spans {
    all: Vec<(i64, i64, usize)>,
    /// The last end of those up to each of them.
    ends: Vec<i64>,
}

impl Spans {
    fn finish(&mut self) {
        self.all.sort_unstable();
        let last = self.all.iter().scan(i64::MIN, |last, (_, to, _)| {
            *last = (*last).max(*to);
            Some(*last)
        });
        self.ends = last.collect();
    }

    /// The ones that began at a time or before it, the last first, as long as one of them may end at `after` or later.
    fn before(&self, ts_ns: i64, after: i64) -> impl Iterator<Item = (i64, i64, usize)> {
        let begun = self.all.partition_point(|(from, ..)| *from <= ts_ns);
        // Of slices: an iterator that takes the first ones of a pair of lists walks back over all that it leaves.
        let all = self.all.get(..begun).unwrap_or_default();
        let near = all.iter().zip(self.ends.get(..begun).unwrap_or_default()).rev();
        near.take_while(move |(_, end)| **end >= after).map(|(span, _)| *span)
    }
}

/// Times by process and thread.
#[derive(Debug, Default)]
struct Threads {
    of: Map<(u64, u64), Spans>,
    count: usize,
}

impl Threads {
    /// Adds a time, if there is room.
    fn add(&mut self, thread: (u64, u64), span: (i64, i64, usize)) -> bool {
        let has_room = self.count < MAX_TIMES;
        if has_room {
            self.count += 1;
            self.of.entry(thread).or_default().all.push(span);
        }
        has_room
    }

    /// The requests that a thread worked for at a moment, by their places.
    fn at(&self, thread: (u64, u64), ts_ns: i64) -> Vec<usize> {
        let (mut seen, mut found) = (Vec::new(), Vec::new());
        let Some(spans) = self.of.get(&thread) else { return found };
        for (_, to, place) in spans.before(ts_ns, ts_ns) {
            // The last time of a request that had begun says whether the thread still works for it.
            if !seen.contains(&place) {
                seen.push(place);
                found.extend((ts_ns < to).then_some(place));
            }
        }
        found.sort_unstable();
        found
    }
}

/// When threads worked for requests: for those whose times the caller sums up, and for others, so that a moment of a thread has its request.
#[derive(Debug, Default)]
pub struct Worked {
    asked: Threads,
    others: Threads,
    /// When each of the others began.
    starts: Vec<i64>,
    /// The path of the activity of each request that is asked for.
    pub(super) paths: Vec<Option<String>>,
    /// Paths of activities that lie in these, by id.
    pub(super) inner: Map<String, String>,
}

impl Worked {
    /// When threads worked for these requests, and for others. A request without an activity has the thread that began and ended it.
    pub fn read(recording: &Recording<'_>, asked: &[Asked], others: &[Asked]) -> Result<Worked> {
        let starts = others.iter().map(|request| request.start_ns).collect();
        let mut worked = Worked { starts, ..Worked::default() };
        let all = || asked.iter().chain(others).enumerate();
        // Others come behind those that are asked for.
        let (close, count) = (asked.len(), asked.len() + others.len());
        let mut paths: Vec<Option<String>> = vec![None; count];
        let mut by_id: Map<(u64, &str), Spans> = Map::default();
        for (place, request) in all() {
            let span = (request.start_ns, request.end_ns, place);
            match &request.activity {
                Some(id) => by_id.entry((request.process, id)).or_default().all.push(span),
                None if request.is_of_thread => {
                    worked.add(close, (request.process, request.thread), span);
                }
                None => {}
            }
        }
        by_id.values_mut().for_each(Spans::finish);
        // The first request of an id gets the path of the id, and then the others.
        recording.each_recorded::<Stretch<'_>>(|row| {
            let of_id = row.activity_id.and_then(|id| by_id.get(&(row.process_id, id)));
            let first = of_id.and_then(|spans| spans.all.first()).map(|(_, _, place)| *place);
            if let Some(path) = first.and_then(|first| paths.get_mut(first)).filter(|path| path.is_none()) {
                *path = row.activity_path.filter(|path| !path.is_empty()).map(str::to_owned);
            }
        })?;
        for spans in by_id.values() {
            let first = spans.all.first().and_then(|(_, _, first)| paths.get(*first)).cloned().flatten();
            for (_, _, place) in &spans.all {
                if let Some(path) = paths.get_mut(*place) {
                    path.clone_from(&first);
                }
            }
        }
        let mut by_path: Map<(u64, &str), Spans> = Map::default();
        for ((place, request), path) in all().zip(&paths) {
            if let Some(path) = path {
                let spans = by_path.entry((request.process, path)).or_default();
                spans.all.push((request.start_ns, request.end_ns, place));
            }
        }
        by_path.values_mut().for_each(Spans::finish);
        let mut places = Vec::new();
        recording.each_recorded::<Stretch<'_>>(|row| {
            let (from, to, process) = (row.start_ts_ns, row.end_ts_ns, row.process_id);
            let of_id = row.activity_id.and_then(|id| by_id.get(&(process, id)));
            let of_path =
                row.activity_path.into_iter().flat_map(outers).filter_map(|path| by_path.get(&(process, path)));
            places.clear();
            places.extend(of_id.into_iter().chain(of_path).flat_map(|spans| spans.before(to, from)));
            places.sort_unstable();
            places.dedup();
            for (start_ns, end_ns, place) in places.iter().filter(|(_, end_ns, _)| from <= *end_ns) {
                let span = (from.max(*start_ns), to.min(*end_ns), *place);
                if worked.add(close, (process, row.thread_id), span)
                    && *place < close
                    && let Some((id, path)) = row.activity_id.zip(row.activity_path)
                    && !worked.inner.contains_key(id)
                {
                    worked.inner.insert(id.to_owned(), path.to_owned());
                }
            }
        })?;
        paths.truncate(close);
        worked.paths = paths;
        [&mut worked.asked, &mut worked.others].into_iter().for_each(|of| of.of.values_mut().for_each(Spans::finish));
        Ok(worked)
    }

    /// Adds a time of one of the requests that are asked for, of which there are `close`, or of one behind them.
    fn add(&mut self, close: usize, thread: (u64, u64), (from, to, place): (i64, i64, usize)) -> bool {
        match place.checked_sub(close) {
            None => self.asked.add(thread, (from, to, place)),
            Some(other) => self.others.add(thread, (from, to, other)),
        }
    }

    /// The requests that are asked for and that a thread worked for at a moment, by their places.
    pub fn at(&self, thread: (u64, u64), ts_ns: i64) -> Vec<usize> {
        self.asked.at(thread, ts_ns)
    }

    /// Of the others that a thread worked for at a moment the one that began last, which lies in the rest of them.
    pub fn innermost(&self, thread: (u64, u64), ts_ns: i64) -> Option<usize> {
        let places = self.others.at(thread, ts_ns).into_iter();
        places.max_by_key(|place| (self.starts.get(*place).copied(), *place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_activity_lies_in_those_that_its_path_begins_with() {
        assert!(lies_in("//1/34/2", "//1/34") && lies_in("//1/34", "//1/34") && lies_in("//1/34$7", "//1/34"));
        assert!(!lies_in("//1/345", "//1/34") && !lies_in("//1", "//1/34"));
    }

    #[test]
    fn a_moment_belongs_to_the_requests_that_its_thread_works_for() {
        let mut worked = Worked { starts: vec![10, 15], ..Worked::default() };
        for (place, (from, to)) in [(0, (10, 20)), (0, (30, 40)), (1, (15, 35))] {
            // Asked for, and once more as one of the others.
            worked.add(2, (1, 7), (from, to, place));
            worked.add(2, (1, 7), (from, to, place + 2));
        }
        [&mut worked.asked, &mut worked.others].into_iter().for_each(|of| of.of.values_mut().for_each(Spans::finish));
        let at = |thread: u64, ts_ns: i64| worked.at((1, thread), ts_ns);
        assert_eq!((at(7, 9), at(7, 10), at(7, 16), at(7, 20)), (vec![], vec![0], vec![0, 1], vec![1]));
        assert_eq!((at(7, 30), at(7, 40), at(8, 16)), (vec![0, 1], vec![], vec![]));
        assert_eq!((worked.innermost((1, 7), 16), worked.innermost((1, 7), 12)), (Some(1), Some(0)));
    }
}
