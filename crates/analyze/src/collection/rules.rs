//! The rules: what a collection does to a generation, and what it means that no range holds an address.

use tracequet_facts::fact::NON_GC_HEAP;

use super::spans::{Span, disjoint};

/// Generation of large objects; pinned objects are the next one.
pub(crate) const LARGE: u8 = 3;

/// Stands for a generation that is not known.
pub(crate) const NO_GENERATION: u8 = u8::MAX;

/// Memory of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// 0 to 2, 3 large objects, 4 pinned objects, 5 the non-GC heap.
    pub generation: u8,
    /// First byte.
    pub start: u64,
    /// Bytes in use.
    pub length: u64,
}

/// Memory that survived a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First byte before the collection.
    pub start: u64,
    /// First byte after it; the same where it stayed.
    pub new_start: u64,
    /// Bytes.
    pub length: u64,
    /// Whether the length is only a lower bound.
    pub clamped: bool,
}

/// A kind of ranges of a collection: what the recording says of several of them alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RangeKind {
    /// Whether they are listed as moved. They may have gone to where they were.
    pub is_moved: bool,
    /// Generation before the collection, where it is known.
    pub before: Option<u8>,
    /// Generation after it.
    pub after: Option<u8>,
}

/// A collection as the recording has it.
#[derive(Clone, Debug, Default)]
pub struct Collection {
    /// The number of the collection.
    pub gc_id: u32,
    /// OS process, and which of its runtimes.
    pub runtime: (u64, u64),
    /// The runtime's own number of it; 0 when that is not known.
    pub gc_number: u32,
    /// When it began, nanoseconds since the recording began.
    pub start_ns: i64,
    /// When it ended; `None` when that was not recorded.
    pub end_ns: Option<i64>,
    /// Highest generation that it collected.
    pub generation: Option<u8>,
    /// Whether it ran in the background, which leaves generations 0 and 1 alone; `None` when that is not known.
    pub background: Option<bool>,
    /// Whether nothing of it is known to be missing.
    pub complete: bool,
    /// Memory of the generations at its start.
    pub before: Vec<Bound>,
    /// The bounds at its end.
    pub after: Vec<Bound>,
    /// The ranges that survived, in any order.
    pub ranges: Vec<Range>,
    /// Kinds of the ranges, each with the place of the first range that is of it.
    pub kinds: Vec<(RangeKind, usize)>,
}

/// An effect of a collection on a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The collection collects the generation: what is not listed is dead.
    Collects,
    /// The collection leaves the generation alone.
    Leaves,
    /// The collection collects the generation, or may, and does not list all that survived.
    Unknown(Doubt),
}

tracequet_trace::worded! {
    /// Why the fate of memory is not known.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Doubt {
        /// No bounds, or several that disagree, hold the address; or the collection does not say what it collected.
        Generation = "generation_unknown": "the generation of the address or of the collection is not known",
        /// The collection may have run in the background.
        Background = "maybe_background":
            "the collection may have run in the background, which leaves this generation alone",
        /// Something of the collection is missing.
        Incomplete = "collection_incomplete":
            "start or end of the collection is not in the recording, nor maybe some of its ranges",
        /// The collection lists no ranges.
        NoRanges = "no_ranges": "no ranges of the collection were recorded",
        /// Behind a range whose length is only a lower bound.
        Clamped = "behind_clamped_range": "behind a range of 4 GiB or more whose length is not recorded",
        /// A range says that the object moved behind the last address.
        Address = "address_unknown": "it moved behind the last address",
        /// No later collection collects the generation.
        NotCollected = "not_collected": "no later collection collected its generation",
        /// The runtime's numbers say that a collection is not in the recording.
        Missing = "collection_missing": "a collection is missing in the recording",
        /// Another object lies at the address.
        GivenAgain = "address_given_again": "another object lies at its address",
        /// The object was allocated while a collection had stopped all threads.
        During = "during_collection": "it was allocated while a collection had stopped all threads",
        /// Collections do not begin in the order of their times.
        Clock = "clock_went_back": "collections do not begin in the order of their times",
        /// The process has several runtimes.
        Runtimes = "several_runtimes": "the process has several runtimes",
    }
    /// The word in tables.
    pub fn word;
    /// The doubt in words, for a person.
    pub fn text;
}

impl Doubt {
    /// The one that a word stands for; of another word that nothing is known.
    pub(crate) fn of(word: &str) -> Doubt {
        Doubt::named(word).unwrap_or(Doubt::Generation)
    }
}

/// The statement of a collection about all memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    /// Highest generation that it collected.
    pub generation: Option<u8>,
    /// Whether it ran in the background.
    pub background: Option<bool>,
    /// Whether nothing of it is known to be missing.
    pub complete: bool,
    /// Whether it lists ranges.
    pub has_ranges: bool,
}

impl Said {
    /// The effect of the collection on memory that no range holds, in this generation.
    pub fn effect(self, generation: Option<u8>) -> Effect {
        if generation == Some(NON_GC_HEAP) {
            return Effect::Leaves;
        }
        let (Some(collected), Some(generation)) = (self.generation, generation) else {
            return Effect::Unknown(Doubt::Generation);
        };
        let is_full = collected >= 2;
        if !is_full && generation > collected {
            return Effect::Leaves;
        }
        if is_full && generation < 2 {
            match self.background {
                Some(true) => return Effect::Leaves,
                None => return Effect::Unknown(Doubt::Background),
                Some(false) => {}
            }
        }
        match (self.complete, self.has_ranges) {
            (true, true) => Effect::Collects,
            (true, false) => Effect::Unknown(Doubt::NoRanges),
            (false, _) => Effect::Unknown(Doubt::Incomplete),
        }
    }
}

/// Whether a collection collects a generation and lists all of it that survived, by the columns `generation`, `kind`
/// and `complete` of the table `gc`: what no range of such a collection holds is dead. False where that is not known.
pub fn collects(collected: Option<u8>, kind: Option<&str>, complete: bool, generation: u8) -> bool {
    let background = Collection::is_background(kind);
    let said = Said { generation: collected, background, complete, has_ranges: true };
    said.effect((generation != NO_GENERATION).then_some(generation)) == Effect::Collects
}

/// Whether a collection leaves a generation alone, by the same columns and by whether it lists ranges: what no range of
/// it holds stays where it is, alive or not.
pub fn leaves(collected: Option<u8>, kind: Option<&str>, complete: bool, has_ranges: bool, generation: u8) -> bool {
    let said = Said { generation: collected, background: Collection::is_background(kind), complete, has_ranges };
    said.effect((generation != NO_GENERATION).then_some(generation)) == Effect::Leaves
}

impl Collection {
    /// The ranges by their kinds, in their order.
    pub fn ranges_by_kind(&self) -> impl Iterator<Item = (RangeKind, &[Range])> {
        let ends = self.kinds.iter().skip(1).map(|(_, first)| *first).chain([self.ranges.len()]);
        let kinds = self.kinds.iter().zip(ends);
        kinds.filter_map(|((kind, first), end)| Some((*kind, self.ranges.get(*first..end)?)))
    }

    /// Drops bounds and ranges. Those that come next continue them.
    pub(super) fn clear_rows(&mut self) {
        self.before.clear();
        self.after.clear();
        self.ranges.clear();
        let last = self.kinds.pop();
        self.kinds.clear();
        self.kinds.extend(last.map(|(kind, _)| (kind, 0)));
    }

    /// Of a kind of collections, whether it left generations 0 and 1 alone where it collected generation 2.
    pub(crate) fn is_background(kind: Option<&str>) -> Option<bool> {
        kind.map(|kind| kind != "blocking")
    }

    /// The effect on memory that no range holds, in this generation; [`NO_GENERATION`] for one that is not known.
    pub(crate) fn effect(&self, generation: u8) -> Effect {
        self.effect_in((generation != NO_GENERATION).then_some(generation))
    }

    /// Whether threads ran while it collected. Only what collects generation 2 does that.
    pub(crate) fn is_in_background(&self) -> Option<bool> {
        if self.generation? >= 2 { self.background } else { Some(false) }
    }

    /// Whether it is known to stop all threads until its end.
    pub(crate) fn stops_threads(&self) -> bool {
        self.is_in_background() == Some(false)
    }

    /// [`Collection::effect`] on a generation that may not be known.
    pub(crate) fn effect_in(&self, generation: Option<u8>) -> Effect {
        let Collection { background, complete, ref ranges, .. } = *self;
        let said = Said { generation: self.generation, background, complete, has_ranges: !ranges.is_empty() };
        said.effect(generation)
    }
}

/// Where a range goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The number that is added to an address, modulo 2^64.
    pub delta: u64,
    /// Whether addresses grow by that.
    pub is_up: bool,
    /// Whether the length is only a lower bound.
    pub clamped: bool,
}

impl Place {
    /// Where an address of the range goes; `None` behind the last address.
    pub fn of(self, address: u64) -> Option<u64> {
        let after = address.wrapping_add(self.delta);
        (!self.is_up || after >= address).then_some(after)
    }
}

/// A range by its place before the collection.
pub(crate) fn as_span(range: &Range) -> Span<Place> {
    let delta = range.new_start.wrapping_sub(range.start);
    let value = Place { delta, is_up: range.new_start >= range.start, clamped: range.clamped };
    Span { start: range.start, end: range.start.saturating_add(range.length), value }
}

/// Bounds in the order of addresses; of several that hold a byte, the one that begins first.
pub(crate) fn bounds(bounds: &[Bound]) -> Vec<Span<u8>> {
    let span = |bound: &Bound| Span {
        start: bound.start,
        end: bound.start.saturating_add(bound.length),
        value: bound.generation,
    };
    disjoint(bounds.iter().map(span).collect())
}

/// Bounds in the order of addresses. Where several hold a byte and disagree, its generation is not known.
pub(crate) fn agreed(bounds: &[Bound]) -> Vec<Span<Option<u8>>> {
    // Where bounds begin and end: the generation, and how many more of it there are.
    let mut edges: Vec<(u64, u8, i32)> = Vec::with_capacity(2 * bounds.len());
    for bound in bounds.iter().filter(|bound| bound.length > 0) {
        edges.push((bound.start, bound.generation, 1));
        edges.push((bound.start.saturating_add(bound.length), bound.generation, -1));
    }
    edges.sort_unstable();
    let mut open: std::collections::BTreeMap<u8, i32> = std::collections::BTreeMap::new();
    let mut found: Vec<Span<Option<u8>>> = Vec::with_capacity(bounds.len());
    let mut from = 0;
    for (at, generation, more) in edges {
        if from < at && !open.is_empty() {
            let only = (open.len() == 1).then(|| open.keys().next().copied()).flatten();
            match found.last_mut().filter(|last| last.end == from && last.value == only) {
                Some(last) => last.end = at,
                None => found.push(Span { start: from, end: at, value: only }),
            }
        }
        from = at;
        let count = open.entry(generation).or_default();
        *count += more;
        if *count == 0 {
            open.remove(&generation);
        }
    }
    found
}

/// The memory behind the known part of ranges of 4 GiB and more: up to the next range, or to the end of the generation.
pub(crate) fn shadows(before: &[Span<u8>], ranges: &[Span<Place>]) -> Vec<Span<()>> {
    let mut found = Vec::new();
    for (range, index) in ranges.iter().zip(1..).filter(|(range, _)| range.value.clamped) {
        let place = before.partition_point(|bound| bound.end <= range.start);
        // A range lies within one part of the heap.
        let limit = before.get(place).map_or(u64::MAX, |bound| match bound.start <= range.start {
            true => bound.end,
            false => bound.start,
        });
        let end = ranges.get(index).map_or(limit, |next| next.start.min(limit));
        if range.end < end {
            found.push(Span { start: range.end, end, value: () });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(generation: u8, start: u64, length: u64) -> Bound {
        Bound { generation, start, length }
    }

    #[test]
    fn only_condemned_generations_of_whole_collections_are_collected() {
        let of = |collected, kind, complete| {
            (0..=6).filter(|generation| collects(collected, kind, complete, *generation)).collect::<Vec<u8>>()
        };
        assert_eq!(of(Some(1), Some("foreground"), true), [0, 1]);
        assert_eq!(of(Some(2), Some("blocking"), true), [0, 1, 2, 3, 4, 6]);
        assert_eq!(of(Some(2), Some("background"), true), [2, 3, 4, 6]);
        assert_eq!(of(Some(2), None, true), [2, 3, 4, 6]);
        assert_eq!((of(Some(2), Some("blocking"), false), of(None, Some("blocking"), true)), (vec![], vec![]));
    }

    #[test]
    fn where_bounds_disagree_the_generation_is_not_known() {
        let all = [bound(2, 10, 30), bound(0, 20, 10), bound(2, 35, 15), bound(1, 60, 10), bound(4, 0, 0)];
        let span = |start, end, value| Span { start, end, value };
        let expected = [span(10, 20, Some(2)), span(20, 30, None), span(30, 50, Some(2)), span(60, 70, Some(1))];
        assert_eq!(agreed(&all), expected);
        assert_eq!(agreed(&[bound(0, 5, u64::MAX), bound(0, 7, 2)]), [span(5, u64::MAX, Some(0))]);
    }

    #[test]
    fn a_range_that_ends_behind_the_last_address_leads_nowhere_there() {
        let range = Range { start: 10, new_start: u64::MAX - 4, length: 20, clamped: false };
        let place = as_span(&range).value;
        assert_eq!((place.of(10), place.of(14), place.of(15)), (Some(u64::MAX - 4), Some(u64::MAX), None));
        let down = as_span(&Range { start: 10, new_start: 0, length: 20, clamped: false }).value;
        assert_eq!((down.of(10), down.of(29)), (Some(0), Some(19)));
    }
}
