//! Work that has begun and not ended.

use std::collections::VecDeque;
use std::hash::Hash;

use super::outcome::{FAILURE, Said, UNKNOWN};
use super::spans::Span;
use super::work_event::number;

use crate::fact::{Activity, FactSink};
use crate::prelude::*;

/// Pieces of work in all, and of one kind with one activity id, at most. The fields of one may have some KB.
const MAX_OPEN: usize = 1 << 14;
const MAX_ALIKE: usize = 256;
/// Ids of one piece of work. Each pair of start and stop compares all of them with all.
const MAX_IDS: usize = 16;

/// Processes that are kept when they have no work, so that the next one finds its memory.
const MAX_IDLE: usize = 64;

/// The ids among the fields of an event: names and values, as numbers that stand for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids(Vec<(u64, u64)>);

impl Ids {
    /// Adds one. Start and stop have to give it as the same type.
    pub fn add(&mut self, name: &str, value: impl Hash) {
        if self.0.len() < MAX_IDS {
            self.0.push((number(name), number(value)));
        }
    }

    /// Whether all ids that both have are the same; `None` when they have none in common.
    fn agree(&self, other: &Ids) -> Option<bool> {
        let mut common = None;
        for (name, value) in &self.0 {
            if let Some((_, theirs)) = other.0.iter().find(|(theirs, _)| theirs == name) {
                common = Some(common.unwrap_or(true) && value == theirs);
            }
        }
        common
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A number that is equal for the same ids in any order.
    fn number(&self) -> u64 {
        let numbers = self.0.iter().map(number);
        numbers.fold(0, u64::wrapping_add)
    }
}

/// A piece of work: its row, but for the text.
#[derive(Debug)]
pub struct Work {
    pub row: Activity<'static>,
    /// Number of its kind.
    pub kind: u64,
    pub fields: Option<String>,
    pub ids: Ids,
    pub span: Span,
    pub failed: bool,
    /// The outcome that the stop states.
    pub outcome: Option<Said>,
    /// Fields of the stop.
    pub end_fields: Option<String>,
}

impl Work {
    /// A row.
    fn report(&self, names: &Names, sink: &mut impl FactSink) {
        let (provider_name, name) = names.names_of(self.kind);
        let (mut row, mut said) = (self.row, self.outcome.as_ref());
        let mut end_fields = self.end_fields.as_deref();
        // Where time goes back, the stop is that of other work.
        if row.end_ts_ns.is_some_and(|end| end < row.start_ts_ns) {
            row = Activity { end_ts_ns: None, end_thread_id: 0, paired_by: None, ..row };
            (said, end_fields) = (None, None);
        }
        let result = match row.end_ts_ns {
            _ if self.failed => Some(FAILURE),
            Some(_) => Some(said.map_or(UNKNOWN, |said| said.result())),
            None => None,
        };
        sink.add(&Activity {
            provider_name,
            name,
            start_fields: self.fields.as_deref(),
            end_fields,
            outcome: if self.failed { Some("failed") } else { said.map(|said| said.text.as_str()) },
            result,
            status_code: said.and_then(|said| said.status_code()),
            w3c_trace_id: self.span.trace(),
            span_id: self.span.span(),
            parent_span_id: self.span.parent(),
            ..row
        });
    }
}

/// Providers and names of the kinds of work.
#[derive(Debug, Default)]
pub struct Names {
    of: Map<u64, (String, String)>,
    /// Pieces of work whose kind has no name, because there are too many kinds.
    unnamed: u64,
}

/// Kinds of work with a name, at most.
const MAX_NAMES: usize = 1 << 14;

/// Characters of a text that are kept.
const MAX_TEXT: usize = 1024;

/// The first characters of a text.
pub fn first_characters(text: &str) -> &str {
    text.char_indices().nth(MAX_TEXT).map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}

impl Names {
    /// A kind has a provider and a name, which `get` gives.
    pub fn add(&mut self, kind: u64, get: impl FnOnce() -> (String, String)) {
        if self.of.len() < MAX_NAMES {
            self.of.entry(kind).or_insert_with(|| {
                let (provider, name) = get();
                (first_characters(&provider).to_owned(), first_characters(&name).to_owned())
            });
        } else if !self.of.contains_key(&kind) {
            self.unnamed += 1;
        }
    }

    fn names_of(&self, kind: u64) -> (&str, &str) {
        self.of.get(&kind).map_or(("", ""), |(provider, name)| (provider, name))
    }
}

/// The key that start and stop have in common: process, kind of work, activity id.
pub type Key = (ProcessKey, u64, Guid);

/// The open work of a process.
#[derive(Debug, Default)]
struct OfProcess {
    open: Map<(u64, Guid), Vec<Work>>,
    /// The activity ids of open work by kind and its other ids: a stop may have lost its activity id.
    by_ids: Map<(u64, u64), Vec<Guid>>,
}

/// The open work.
#[derive(Debug, Default)]
pub struct OpenWork {
    /// A loss in one process shall not look at the work of all others.
    processes: Map<ProcessKey, OfProcess>,
    count: usize,
    dropped: u64,
    /// Work that has ended and waits, because a gap of its time may still show; with the bytes of its texts.
    ended: VecDeque<(Work, usize)>,
    ended_text: usize,
    /// Whether ended work waits.
    pub gaps_are_late: bool,
    /// The latest end of work that could not wait any longer.
    pub unsettled: Option<i64>,
    /// The names of kinds of work.
    pub names: Names,
}

/// Ended work that waits, and bytes of its texts, at most.
const MAX_ENDED: usize = 1 << 15;
const MAX_ENDED_TEXT: usize = 16 << 20;

impl OpenWork {
    /// Pieces of work whose end was not looked for any more, because too many were open, and those whose kind has no
    /// name.
    pub fn dropped(&self) -> (u64, u64) {
        (self.dropped, self.names.unnamed)
    }

    /// Work begins. Without any id its stop cannot be identified: it is reported at once.
    pub fn begin(&mut self, key: Key, work: Work, sink: &mut impl FactSink) {
        if key.2.is_none() && work.ids.is_empty() {
            return work.report(&self.names, sink);
        }
        if self.count >= MAX_OPEN {
            self.dropped += self.count as u64;
            self.forget(None, false, sink);
        }
        let process = self.processes.entry(key.0).or_default();
        let alike = process.open.entry((key.1, key.2)).or_default();
        let evicted = (alike.len() >= MAX_ALIKE).then(|| alike.remove(0));
        if !key.2.is_none() && !work.ids.is_empty() {
            process.by_ids.entry((key.1, work.ids.number())).or_default().push(key.2);
        }
        alike.push(work);
        self.count += 1;
        if let Some(evicted) = evicted {
            self.count -= 1;
            self.dropped += 1;
            process.removed(&key, &evicted);
            evicted.report(&self.names, sink);
        }
    }

    /// The place of the work that an event belongs to, with what they have in common: the youngest that no id speaks
    /// against.
    fn find(&self, key: &Key, ids: &Ids) -> Option<(usize, &'static str)> {
        let alike = self.processes.get(&key.0)?.open.get(&(key.1, key.2))?;
        let has_activity = !key.2.is_none();
        let pair = |(index, work): (usize, &Work)| match (has_activity, work.ids.agree(ids)) {
            (_, Some(false)) | (false, None) => None,
            (true, None) => Some((index, "activity_id")),
            (true, Some(true)) => Some((index, "activity_id_and_fields")),
            (false, Some(true)) => Some((index, "fields")),
        };
        alike.iter().enumerate().rev().find_map(pair)
    }

    /// Takes the work that a stop ends.
    pub fn end(&mut self, key: &Key, ids: &Ids) -> Option<Work> {
        let (key, (index, paired_by)) = match self.find(key, ids) {
            Some(found) => (*key, found),
            None => {
                let key = self.processes.get(&key.0)?.key_by_ids(key, ids)?;
                (key, (self.find(&key, ids)?.0, "fields"))
            }
        };
        let many = self.processes.len() > MAX_IDLE;
        let process = self.processes.get_mut(&key.0)?;
        let alike = process.open.get_mut(&(key.1, key.2))?;
        let mut work = alike.remove(index);
        if alike.is_empty() {
            process.open.remove(&(key.1, key.2));
        }
        self.count -= 1;
        process.removed(&key, &work);
        if many && process.open.is_empty() {
            self.processes.remove(&key.0);
        }
        work.row.paired_by = Some(paired_by);
        Some(work)
    }

    /// A row of work that has ended.
    pub fn report(&mut self, work: Work, sink: &mut impl FactSink) {
        if !self.gaps_are_late {
            return work.report(&self.names, sink);
        }
        let outcome = work.outcome.as_ref().map(|said| &said.text);
        let texts = [work.fields.as_ref(), work.end_fields.as_ref(), outcome];
        let text = texts.into_iter().flatten().map(String::len).sum();
        self.ended_text = self.ended_text.saturating_add(text);
        self.ended.push_back((work, text));
        while self.ended.len() > MAX_ENDED || self.ended_text > MAX_ENDED_TEXT {
            self.unsettled = self.unsettled.max(self.ended.front().and_then(|(work, _)| work.row.end_ts_ns));
            self.report_first(sink);
        }
    }

    /// Hands on work that ended before a time.
    pub fn release(&mut self, ended_before_ns: i64, sink: &mut impl FactSink) {
        while self.ended.front().is_some_and(|(work, _)| work.row.end_ts_ns.is_none_or(|end| end < ended_before_ns)) {
            self.report_first(sink);
        }
    }

    fn report_first(&mut self, sink: &mut impl FactSink) {
        if let Some((work, text)) = self.ended.pop_front() {
            self.ended_text -= text;
            work.report(&self.names, sink);
        }
    }

    /// The work that an event of failure belongs to.
    pub fn get(&mut self, key: &Key, ids: &Ids) -> Option<&mut Work> {
        let (index, _) = self.find(key, ids)?;
        self.processes.get_mut(&key.0)?.open.get_mut(&(key.1, key.2))?.get_mut(index)
    }

    /// Events of a process (`None`: of any) were lost (`is_lost`), or the recording ends: no stop that comes is known
    /// to belong to what is open. Work ends on any thread.
    pub fn forget(&mut self, process: Option<ProcessKey>, is_lost: bool, sink: &mut impl FactSink) {
        let lost: Vec<OfProcess> = match process {
            Some(process) => self.processes.remove(&process).into_iter().collect(),
            None => self.processes.drain().map(|(_, process)| process).collect(),
        };
        let mut taken: Vec<Work> =
            lost.into_iter().flat_map(|process| process.open).flat_map(|(_, alike)| alike).collect();
        self.count -= taken.len();
        // Equal work keeps its order. All else is distinguished, so that the hash maps' order has no effect.
        taken.sort_by(|a, b| {
            let when = |work: &Work| (work.row.start_ts_ns, work.row.thread_id);
            let which = |work: &Work| (work.row.activity_id.0, work.row.process_id, work.kind);
            let names = || self.names.names_of(a.kind).cmp(&self.names.names_of(b.kind));
            when(a).cmp(&when(b)).then_with(names).then_with(|| which(a).cmp(&which(b)))
        });
        for work in &mut taken {
            work.row.touches_gap |= is_lost;
            work.report(&self.names, sink);
        }
    }
}

impl OfProcess {
    /// A piece of work is no more open.
    fn removed(&mut self, key: &Key, work: &Work) {
        let ids = (key.1, work.ids.number());
        if let Some(activities) = self.by_ids.get_mut(&ids) {
            if let Some(index) = activities.iter().position(|activity| *activity == key.2) {
                activities.swap_remove(index);
            }
            if activities.is_empty() {
                self.by_ids.remove(&ids);
            }
        }
    }

    /// Where the work of a stop without an activity id is open, if its other ids name exactly one.
    fn key_by_ids(&self, key: &Key, ids: &Ids) -> Option<Key> {
        let is_asked = key.2.is_none() && !ids.is_empty();
        match is_asked.then(|| self.by_ids.get(&(key.1, ids.number())))??.as_slice() {
            [activity] => Some((key.0, key.1, *activity)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;

    /// Start, end, and what they had in common.
    #[derive(Default)]
    struct Reported(Vec<(i64, bool, Option<&'static str>)>);

    impl FactSink for Reported {
        fn fact(&mut self, fact: Fact<'_>) {
            if let Fact::Activity(rows) = fact {
                self.0.extend(rows.iter().map(|row| (row.start_ts_ns, row.end_ts_ns.is_some(), row.paired_by)));
            }
        }
    }

    fn ids(pairs: &[(&str, &str)]) -> Ids {
        let mut ids = Ids::default();
        pairs.iter().for_each(|(name, value)| ids.add(name, value));
        ids
    }

    fn work(start_ts_ns: i64, ids: Ids) -> Work {
        let row = Activity { start_ts_ns, ..Activity::default() };
        let span = Span::default();
        Work { row, kind: 1, fields: None, ids, span, failed: false, outcome: None, end_fields: None }
    }

    fn key(process: u64, activity: u8) -> Key {
        (ProcessKey { id: process, incarnation: 0 }, 1, Guid([activity; 16]))
    }

    /// Pieces of work, and entries of the maps.
    fn sizes(open: &OpenWork) -> (usize, usize, usize) {
        let sum = |size: fn(&OfProcess) -> usize| open.processes.values().map(size).sum();
        (open.count, sum(|process| process.by_ids.len()), sum(|process| process.open.len()))
    }

    #[test]
    fn work_with_one_activity_id_is_told_apart_by_its_other_ids_and_by_time() {
        let (mut open, mut reported) = (OpenWork::default(), Reported::default());
        // Requests of one connection share its activity id: one after the other, and at the same time.
        for (start, request) in [(1, "a"), (2, "b")] {
            open.begin(key(1, 9), work(start, ids(&[("connectionId", "c"), ("requestId", request)])), &mut reported);
        }
        let ended = open.end(&key(1, 9), &ids(&[("requestId", "a"), ("connectionId", "c")])).unwrap();
        assert_eq!((ended.row.start_ts_ns, ended.row.paired_by), (1, Some("activity_id_and_fields")));
        assert!(open.end(&key(1, 9), &ids(&[("requestId", "a")])).is_none(), "it has ended");
        assert!(open.end(&key(2, 9), &ids(&[("requestId", "b")])).is_none(), "another process");
        // A stop without other ids is that of the youngest.
        let ended = open.end(&key(1, 9), &Ids::default()).unwrap();
        assert_eq!((ended.row.start_ts_ns, ended.row.paired_by), (2, Some("activity_id")));
        assert!(open.end(&key(1, 9), &Ids::default()).is_none());
        assert_eq!(sizes(&open), (0, 0, 0));
    }

    #[test]
    fn a_stop_without_an_activity_id_needs_an_id_of_its_own() {
        let (mut open, mut reported) = (OpenWork::default(), Reported::default());
        let id = || ids(&[("id", "5")]);
        open.begin(key(1, 9), work(1, id()), &mut reported);
        let ended = open.end(&key(1, 0), &id()).unwrap();
        assert_eq!((ended.row.start_ts_ns, ended.row.paired_by), (1, Some("fields")));
        // Two pieces of work with that id are open: nothing says which one ends.
        open.begin(key(1, 8), work(2, id()), &mut reported);
        open.begin(key(1, 7), work(3, id()), &mut reported);
        assert!(open.end(&key(1, 0), &id()).is_none());
        // Without any id no stop can be found, and the start is reported at once.
        open.begin(key(1, 0), work(4, Ids::default()), &mut reported);
        assert_eq!(reported.0, [(4, false, None)]);
        assert!(open.end(&key(1, 0), &Ids::default()).is_none());
        // Nothing is joined across a gap of the process.
        open.forget(Some(key(2, 0).0), true, &mut reported);
        assert_eq!(reported.0.len(), 1);
        open.forget(Some(key(1, 0).0), true, &mut reported);
        assert_eq!(reported.0[1..], [(2, false, None), (3, false, None)]);
        assert!(open.end(&key(1, 8), &id()).is_none() && sizes(&open) == (0, 0, 0));
    }

    #[test]
    fn many_ids_take_no_time() {
        let many: Vec<(String, String)> = (0..100_000).map(|n| (format!("{n}id"), n.to_string())).collect();
        let all = || {
            let mut ids = Ids::default();
            many.iter().for_each(|(name, value)| ids.add(name, value));
            ids
        };
        let (mut open, mut reported) = (OpenWork::default(), Reported::default());
        open.begin(key(1, 9), work(1, all()), &mut reported);
        let ended = open.end(&key(1, 9), &all()).expect("the same ids");
        assert_eq!((ended.ids.0.len(), ended.row.paired_by), (MAX_IDS, Some("activity_id_and_fields")));
        open.names.add(1, || ("x".repeat(1 << 20), "y".repeat(1 << 20)));
        assert!(open.names.names_of(1).0.len() + open.names.names_of(1).1.len() <= 2 * MAX_TEXT);
    }

    /// Whatever order the hash maps have.
    #[test]
    fn work_that_began_at_the_same_time_is_told_in_the_same_order() {
        let order = || {
            let (mut open, mut reported) = (OpenWork::default(), Vec::new());
            for activity in (1..60).rev() {
                let mut work = work(5, Ids::default());
                work.row.activity_id = key(1, activity).2;
                open.begin(key(1, activity), work, &mut Reported::default());
            }
            open.forget(None, false, &mut ActivityIds(&mut reported));
            reported
        };
        let expected: Vec<_> = (1..60).map(|activity| key(1, activity).2).collect();
        assert_eq!(order(), expected);
    }

    struct ActivityIds<'t>(&'t mut Vec<Guid>);

    impl FactSink for ActivityIds<'_> {
        fn fact(&mut self, fact: Fact<'_>) {
            if let Fact::Activity(rows) = fact {
                self.0.extend(rows.iter().map(|row| row.activity_id));
            }
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut open, mut reported) = (OpenWork::default(), Reported::default());
        for start in 0..MAX_ALIKE as i64 + 10 {
            open.begin(key(1, 9), work(start, ids(&[("id", &start.to_string())])), &mut reported);
        }
        assert_eq!((reported.0.len(), sizes(&open), open.dropped()), (10, (MAX_ALIKE, MAX_ALIKE, 1), (10, 0)));
        for start in 0..MAX_OPEN as i64 {
            open.begin((key(1, 9).0, start as u64 + 10, key(1, 9).2), work(start, Ids::default()), &mut reported);
        }
        assert!(open.count <= MAX_OPEN && open.dropped() == (reported.0.len() as u64, 0), "{:?}", open.dropped());
        for process in 0..1000 {
            open.begin(key(process, 9), work(1, Ids::default()), &mut reported);
            assert!(open.end(&key(process, 9), &Ids::default()).is_some());
        }
        assert!(open.processes.len() <= MAX_IDLE + 1, "{}", open.processes.len());
    }
}
