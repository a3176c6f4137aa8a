//! The rows behind the panels of a page, so that its script shows any part of them: of a time, a thread, a route, a type, a method.
//!
//! Each kind has its rows once, as columns. All its panels are made of them: its flame graph, its table, its chart. A row is exact as
//! long as there is room for all; else rows of a part of the time, a thread, a route, a line of the table and a call stack are one.

use std::collections::hash_map::Entry;

use serde_json::json;
use tracequet_analyze::present::{cut, shown};
use tracequet_analyze::profile::{Labels, Profile, Unit, What};
use tracequet_analyze::subjects::pauses::Pauses;
use tracequet_analyze::subjects::requests::Worked;
use tracequet_dataset::error::Result;
use tracequet_trace::map::{Map, Set};

use crate::packed::{Bytes, element};
use crate::timeline::BUCKETS;

/// Rows of a kind, and bytes of them; and bytes of all kinds together.
const MAX_ROWS: usize = 60_000;
const MAX_PACKED: usize = 240 << 10;
const MAX_ALL: usize = 1 << 20;

/// Parts of the time at least.
const LEAST_PARTS: usize = 15;

/// Threads that are told apart, and pauses that the page has.
const MAX_THREADS: usize = 4096;
const MAX_PAUSES: usize = 4096;

/// The number of what has no thread, route or line, or none that is told apart.
pub(crate) const NONE: u32 = u32::MAX;

/// Of each call site of a profile its node in the flame graph, and whether it is merged into it: the last bit.
pub(crate) type Nodes = Map<u32, u32>;

/// A thread: process and id.
pub(crate) type Thread = (u64, u64);

/// The threads and routes of a page, and the bytes that are left for rows.
pub(crate) struct Selection {
    end_ns: i64,
    places: Map<Thread, u32>,
    threads: Vec<Thread>,
    known: Known,
    room: usize,
    data: String,
    /// Workers of the thread pool.
    pub workers: Set<Thread>,
}

/// What is known of requests.
#[derive(Default)]
pub(crate) struct Known {
    pub worked: Worked,
    /// The line of the route of each of its requests, in the table of routes.
    pub route_of: Vec<u32>,
    /// The names of the lines; empty of what is no route of a request that came in.
    pub routes: Vec<String>,
}

impl Selection {
    pub(crate) fn of(end_ns: i64) -> Selection {
        Selection {
            end_ns: end_ns.max(1),
            places: Map::default(),
            threads: Vec::new(),
            known: Known::default(),
            room: MAX_ALL,
            data: String::new(),
            workers: Set::default(),
        }
    }

    /// From now on rows have the route that their thread worked for.
    pub(crate) fn know(&mut self, known: Known) {
        self.known = known;
    }

    fn thread(&mut self, thread: Thread) -> u32 {
        match self.places.entry(thread) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) if self.threads.len() < MAX_THREADS => {
                self.threads.push(thread);
                *new.insert(self.threads.len() as u32 - 1)
            }
            Entry::Vacant(_) => NONE,
        }
    }

    /// The line of the route that a thread worked for at a time.
    fn route(&self, thread: Thread, ts_ns: i64) -> u32 {
        let request = self.known.worked.innermost(thread, ts_ns);
        request.and_then(|request| self.known.route_of.get(request)).copied().unwrap_or(NONE)
    }

    /// Adds the rows of a kind, and returns whether they are exact. `lines` has the line in the table of each group.
    pub(crate) fn add(&mut self, kind: &str, mut rows: Rows, lines: &[u32]) -> Result<bool> {
        let packed = rows.packed(lines, MAX_PACKED.min(self.room / 2))?;
        if let Some(packed) = &packed {
            self.room = self.room.saturating_sub(packed.len());
            self.data.push_str(&element(&format!("rows-{kind}"), packed));
        }
        Ok(packed.is_some() && rows.parts == 0)
    }

    /// The elements with all rows, and what they refer to.
    pub(crate) fn packed(self, labels: &Labels, pauses: &Pauses) -> Result<String> {
        let label = |process, thread| shown(cut(&labels.of(process, thread), 80));
        let threads = self.threads.iter().map(|thread| {
            json!([thread.0, thread.1, label(thread.0, thread.1), u8::from(self.workers.contains(thread))])
        });
        let threads: Vec<_> = threads.collect();
        let mut longest: Vec<_> = pauses.all().collect();
        longest.sort_by_key(|pause| std::cmp::Reverse(pause.duration_ns));
        longest.truncate(MAX_PAUSES);
        longest.sort_by_key(|pause| pause.start_ns);
        let pauses = longest.iter().map(|pause| json!([pause.process_id, pause.start_ns, pause.duration_ns]));
        let pauses: Vec<_> = pauses.collect();
        let all = json!({ "end": self.end_ns, "threads": threads, "routes": self.known.routes, "pauses": pauses });
        let mut bytes = Bytes::default();
        bytes.bytes(all.to_string().as_bytes());
        Ok(element("selection", &bytes.packed()?) + &self.data)
    }
}

/// What a row is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Item {
    pub thread: Thread,
    pub ts_ns: i64,
    /// The call site that nodes of the flame graph are known by.
    pub callsite: u32,
    /// The number of its line, in the order in which lines were met.
    pub group: u32,
    /// Things that it stands for.
    pub count: u64,
    /// The amount; `None` of what did not end.
    pub amount: Option<u64>,
    /// Another amount, such as objects.
    pub more: f64,
}

/// The rows of a kind in the making.
pub(crate) struct Panel<'s> {
    selection: &'s mut Selection,
    pub profile: Option<&'s Profile>,
    rows: Rows,
}

impl<'s> Panel<'s> {
    /// `nodes` has the node of each call site of the profile.
    pub(crate) fn new(selection: &'s mut Selection, profile: Option<&'s Profile>, nodes: Nodes) -> Panel<'s> {
        let rows = Rows::new(selection.end_ns, nodes);
        Panel { selection, profile, rows }
    }

    /// Adds a row with a call site of the recording.
    pub(crate) fn add(&mut self, item: Item) {
        let callsite = self.profile.map_or(0, |profile| profile.place_of(item.callsite));
        self.rows.add(self.selection, Item { callsite, ..item });
    }

    /// Adds a row with a call site of the profile.
    pub(crate) fn add_place(&mut self, item: Item) {
        self.rows.add(self.selection, item);
    }

    /// Adds the samples of the profile.
    pub(crate) fn add_profile(&mut self, profile: &Profile) {
        // A sample of the processor stands for a time.
        let each = if profile.what == What::Cpu { profile.sampling_ns.max(1) } else { u64::MAX };
        for thread in &profile.threads {
            let id = (thread.process_id, thread.thread_id);
            for sample in &thread.samples {
                let (ts_ns, callsite, amount) = (sample.ts_ns, sample.callsite, sample.weight);
                let count = if profile.unit == Unit::Nanoseconds { (amount / each).max(1) } else { 1 };
                let item = Item { thread: id, ts_ns, callsite, count, amount: Some(amount), ..Item::default() };
                self.rows.add(self.selection, item);
            }
        }
    }

    /// All were added: returns whether the rows are exact. `lines` has the line in the table of each group.
    pub(crate) fn finish(self, kind: &str, lines: &[u32]) -> Result<bool> {
        self.selection.add(kind, self.rows, lines)
    }
}

/// Rows in the order of their columns: thread, route, group, node.
type Key = [u32; 4];

#[derive(Clone, Copy, Debug)]
struct Sum {
    count: u64,
    amount: Option<u64>,
    longest: Option<u64>,
    more: f64,
}

impl Sum {
    fn join(&mut self, other: Sum) {
        self.count = self.count.saturating_add(other.count);
        self.amount = match (self.amount, other.amount) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        self.longest = self.longest.max(other.longest);
        self.more += other.more;
    }
}

/// What rows no longer tell apart, one after the other, where there are too many even for the longest parts of the time.
const BLURS: [fn(&mut Key); 4] = [|key| key[0] = NONE, |key| key[1] = NONE, |key| key[3] = NONE, |key| key[2] = NONE];

/// The rows of a kind.
pub(crate) struct Rows {
    end_ns: i64,
    nodes: Nodes,
    exact: Vec<(i64, Key, Sum)>,
    /// Parts of the time, where rows are not exact.
    parts: usize,
    /// How many of [`BLURS`] apply.
    blur: usize,
    sums: Map<(u32, Key), Sum>,
}

impl Rows {
    pub(crate) fn new(end_ns: i64, nodes: Nodes) -> Rows {
        Rows { end_ns: end_ns.max(1), nodes, exact: Vec::new(), parts: 0, blur: 0, sums: Map::default() }
    }

    /// Rows that are never exact.
    pub(crate) fn by_parts(end_ns: i64, nodes: Nodes) -> Rows {
        Rows { parts: BUCKETS, ..Rows::new(end_ns, nodes) }
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, selection: &mut Selection, item: Item) {
        let route = selection.route(item.thread, item.ts_ns);
        self.add_of(selection, item, route);
    }

    /// Adds a row whose route is known.
    pub(crate) fn add_of(&mut self, selection: &mut Selection, item: Item, route: u32) {
        let node = self.nodes.get(&item.callsite).copied().unwrap_or(NONE);
        let key = [selection.thread(item.thread), route, item.group, node];
        let sum = Sum { count: item.count, amount: item.amount, longest: item.amount, more: item.more };
        let ts_ns = item.ts_ns.clamp(0, self.end_ns - 1);
        if self.parts > 0 {
            self.join(self.part(ts_ns), key, sum);
        } else {
            self.exact.push((ts_ns, key, sum));
        }
        if self.exact.len().max(self.sums.len()) > MAX_ROWS {
            self.coarser();
        }
    }

    fn part(&self, ts_ns: i64) -> u32 {
        (i128::from(ts_ns) * self.parts as i128 / i128::from(self.end_ns)) as u32
    }

    fn join(&mut self, part: u32, mut key: Key, sum: Sum) {
        BLURS.iter().take(self.blur).for_each(|blur| blur(&mut key));
        match self.sums.entry((part, key)) {
            Entry::Occupied(mut known) => known.get_mut().join(sum),
            Entry::Vacant(new) => {
                new.insert(sum);
            }
        }
    }

    /// From exact rows to sums of parts of the time, to parts twice as long, and to rows that tell less apart. Returns whether there is less now.
    fn coarser(&mut self) -> bool {
        if self.parts == 0 {
            self.parts = BUCKETS;
            for (ts_ns, key, sum) in std::mem::take(&mut self.exact) {
                self.join(self.part(ts_ns), key, sum);
            }
            return true;
        }
        let is_halved = self.parts > LEAST_PARTS;
        if is_halved {
            self.parts /= 2;
        } else if self.blur < BLURS.len() {
            self.blur += 1;
        } else {
            return false;
        }
        for ((part, key), sum) in std::mem::take(&mut self.sums) {
            self.join(if is_halved { part / 2 } else { part }, key, sum);
        }
        true
    }

    /// Packs the rows as columns, each with its line in the table, into at most `bytes_at_most` bytes. `None` when there are no rows.
    fn packed(&mut self, lines: &[u32], bytes_at_most: usize) -> Result<Option<String>> {
        let line = |group: u32| lines.get(group as usize).copied().unwrap_or(NONE);
        for (_, key, _) in &mut self.exact {
            key[2] = line(key[2]);
        }
        for ((part, mut key), sum) in std::mem::take(&mut self.sums) {
            key[2] = line(key[2]);
            self.join(part, key, sum);
        }
        if self.exact.is_empty() && self.sums.is_empty() {
            return Ok(None);
        }
        loop {
            let packed = self.columns().packed()?;
            if packed.len() <= bytes_at_most || !self.coarser() {
                return Ok(Some(packed).filter(|packed| packed.len() <= bytes_at_most));
            }
        }
    }

    fn columns(&self) -> Bytes {
        let mut rows: Vec<(i64, Key, Sum)> = self.exact.clone();
        rows.extend(self.sums.iter().map(|((part, key), sum)| (i64::from(*part), *key, *sum)));
        rows.sort_by_key(|(at, key, sum)| (*at, *key, sum.amount, sum.count));
        let has_more = rows.iter().any(|(.., sum)| sum.more != 0.0);
        let mut bytes = Bytes::default();
        for head in [rows.len(), self.parts, self.blur, usize::from(has_more)] {
            bytes.u32(head as u32);
        }
        let amount = |amount: Option<u64>| amount.map_or(f64::NAN, |amount| amount as f64);
        // Steps from row to row pack better than times.
        let steps = rows.iter().scan(0, |before, (at, ..)| Some(at - std::mem::replace(before, *at)));
        let steps: Vec<u64> = steps.map(i64::cast_unsigned).collect();
        steps.iter().for_each(|step| bytes.u32(*step as u32));
        steps.iter().for_each(|step| bytes.u32((*step >> 32) as u32));
        rows.iter().for_each(|(_, [thread, ..], _)| bytes.u16((*thread).min(u16::MAX.into()) as u16));
        rows.iter().for_each(|(_, [_, route, ..], _)| bytes.byte((*route).min(u8::MAX.into()) as u8));
        rows.iter().for_each(|(_, [_, _, line, _], _)| bytes.byte((*line).min(u8::MAX.into()) as u8));
        rows.iter().for_each(|(_, [.., node], _)| bytes.u32(*node));
        rows.iter().for_each(|(.., sum)| bytes.u32(u32::try_from(sum.count).unwrap_or(u32::MAX)));
        rows.iter().for_each(|(.., sum)| bytes.f64(amount(sum.amount)));
        if self.parts > 0 {
            rows.iter().for_each(|(.., sum)| bytes.f64(amount(sum.longest)));
        }
        if has_more {
            rows.iter().for_each(|(.., sum)| bytes.f64(sum.more));
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a thousand threads in a long time, `count` of each.
    fn rows(count: u64) -> (Selection, Rows) {
        let mut selection = Selection::of(1_000_000);
        let mut rows = Rows::new(1_000_000, Map::default());
        for n in 0..count * 1000 {
            let thread = (1, n % 1000);
            let ts_ns = (n * 7919 % 1_000_000) as i64;
            let amount = (n % 3 > 0).then_some(n);
            rows.add(
                &mut selection,
                Item { thread, ts_ns, group: (n % 200) as u32, count: 1, amount, ..Item::default() },
            );
        }
        (selection, rows)
    }

    fn sums<'r>(sums: impl Iterator<Item = &'r Sum>) -> (u64, u64, Option<u64>) {
        sums.fold((0, 0, None), |(count, amount, longest), sum| {
            (count + sum.count, amount + sum.amount.unwrap_or_default(), sum.longest.max(longest))
        })
    }

    #[test]
    fn rows_are_exact_as_long_as_there_is_room_and_sums_stay() {
        for (count, parts, blur) in [(10, 0, 0), (61, 120, 0), (1000, 60, 0)] {
            let (_, mut rows) = rows(count);
            assert_eq!(rows.parts == 0, parts == 0, "{count}: {}", rows.parts);
            let all = count * 1000;
            let expected = (all, (0..all).filter(|n| n % 3 > 0).sum(), (0..all).filter(|n| n % 3 > 0).max());
            let of = |rows: &Rows| sums(rows.exact.iter().map(|(.., sum)| sum).chain(rows.sums.values()));
            assert_eq!(of(&rows), expected);
            assert!(rows.exact.len() + rows.sums.len() <= MAX_ROWS && rows.blur >= blur);
            while rows.coarser() {
                assert_eq!(of(&rows), expected, "{} {}", rows.parts, rows.blur);
            }
            assert_eq!(rows.sums.len(), LEAST_PARTS);
        }
    }

    #[test]
    fn what_has_no_room_at_all_is_left_out() {
        let (mut selection, mut exact) = rows(2);
        assert!(exact.packed(&[], 100).unwrap().is_none());
        assert!(selection.add("kind", rows(2).1, &[0, 1]).unwrap(), "exact");
        assert!(selection.data.contains("id=\"rows-kind\"") && selection.room < MAX_ALL);
        assert!(Rows::by_parts(5, Nodes::default()).packed(&[], 100).unwrap().is_none(), "nothing was added");
    }
}
