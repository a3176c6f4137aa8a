//! Call stacks as a trie: each distinct stack once, a node per frame, shared from the outermost frame inwards.
//!
//! The method of a node is known at the end only, because the rundown names methods then. Until then nodes wait as they
//! are; when there are many, in a temporary file.

use std::collections::hash_map::Entry;

use tracequet_trace::map::Set;
use tracequet_trace::reader::Stack;

use super::nodes::{Allocated, Node, Nodes};
use crate::fact::{CallsiteId, FactSink};
use crate::prelude::*;

/// Nodes remembered at once. Past it the memory starts again: later stacks get new numbers, and a stack seen before may
/// appear a second time.
const MAX_NODES: usize = 1 << 20;

/// Bits of an address within a granule: what is compiled together shares 64 bytes at its ends only.
const GRANULE: u32 = 6;

/// Granules of a range that are looked at; a method of more than 256 KB counts as seen.
const MAX_GRANULES: u64 = 1 << 12;

/// Frames of one stack: the innermost. The runtime records 100 of them, ETW about 200.
const MAX_DEPTH: usize = 1024;

/// Changes of code that are followed. Each makes all stacks that come later new ones.
const MAX_FOLLOWED: u32 = 1 << 16;

/// Ranges of addresses whose code changed, at most, until the memory starts again.
const MAX_CHANGES: usize = 1 << 14;

/// Types by call site that are remembered.
const MAX_ALLOCATED: usize = 1 << 18;

/// Numbers call stacks.
#[derive(Default)]
pub struct Callsites {
    ids: Map<(CallsiteId, u32, u64), CallsiteId>,
    /// Stack key of the reader to call site, and the place of the process that it is of; valid until the reader forgets
    /// its keys. Processes of one recording can share a key, because a V6 recording has each list of addresses once.
    by_key: Vec<(u32, CallsiteId)>,
    nodes: Nodes,
    /// Where the addresses of the nodes are, by process.
    granules: Set<(ProcessKey, u64)>,
    places: Map<ProcessKey, u32>,
    /// The places of logical call stacks, whose addresses mean something else.
    logical_places: Map<ProcessKey, u32>,
    /// The process of the last stack, and its place.
    last: Option<(ProcessKey, u32)>,
    /// Of each place what its addresses are: those of a process, and one more for each range of them whose code
    /// changed.
    spaces: Vec<Space>,
    /// Start of a range whose code changed to its end and the place of stacks since then.
    changes: BTreeMap<(ProcessKey, u64), (u64, u32)>,
    pointer_size: usize,
    /// Changes of code so far.
    followed: u32,
    /// The number of call stacks beyond the bound.
    not_followed: u64,
    /// Stacks that are deeper than the bound.
    cut: u64,
    /// What is allocated where.
    allocated: Set<Allocated>,
}

const UNKNOWN: CallsiteId = CallsiteId::MAX;

/// The meaning of the addresses of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Whose they are.
    pub process: ProcessKey,
    /// The addresses are of logical call stacks: places in code that are no return addresses, or ids of methods.
    pub is_logical: bool,
}

impl Callsites {
    /// For stacks whose addresses are `pointer_size` bytes wide.
    pub fn new(pointer_size: u8) -> Callsites {
        Callsites { pointer_size: usize::from(pointer_size), ..Callsites::default() }
    }

    /// The number of a stack of a process at a time; 0 for an empty one.
    #[inline]
    pub fn intern(&mut self, stack: &Stack<'_>, process: ProcessKey, ts_ns: i64) -> CallsiteId {
        if stack.addresses.is_empty() {
            return 0;
        }
        let usual = self.usual_place(process);
        let Some(key) = stack.key else { return self.walk(stack.addresses, process, usual, ts_ns) };
        if let Some((of, known)) = self.by_key.get(key as usize)
            && *known != UNKNOWN
            && *of == usual
        {
            return *known;
        }
        let id = self.walk(stack.addresses, process, usual, ts_ns);
        let index = key as usize;
        if index < MAX_NODES {
            if self.by_key.len() <= index {
                self.by_key.resize(index + 1, (usual, UNKNOWN));
            }
            if let Some(known) = self.by_key.get_mut(index) {
                *known = (usual, id);
            }
        }
        id
    }

    /// The number of a routine of the kernel as a call stack of one frame; 0 for none.
    pub fn of_routine(&mut self, address: u64, ts_ns: i64) -> CallsiteId {
        if address == 0 {
            return 0;
        }
        self.intern(&Stack::new(&address.to_le_bytes(), None), ProcessKey::default(), ts_ns)
    }

    /// The number of a logical call stack of a process, the innermost frame first: methods that wait for each other. 0
    /// for an empty one.
    pub fn intern_logical(&mut self, frames: &[u64], process: ProcessKey, ts_ns: i64) -> CallsiteId {
        if frames.is_empty() {
            return 0;
        }
        let place = match self.logical_places.get(&process) {
            Some(place) => *place,
            None => {
                let place = self.new_place(Space { process, is_logical: true });
                self.logical_places.insert(process, place);
                place
            }
        };
        self.make_room();
        self.cut += u64::from(frames.len() > MAX_DEPTH);
        let (mut parent, mut depth) = (0, 0);
        for address in frames.iter().take(MAX_DEPTH).rev() {
            parent = self.child(parent, place, *address, (process, ts_ns), depth);
            depth += 1;
        }
        parent
    }

    /// The reader's keys are void.
    pub fn forget_keys(&mut self) {
        self.by_key.clear();
    }

    /// Code appears in a range of addresses or goes away: the same addresses mean something else from now on.
    pub fn code_changed(&mut self, process: ProcessKey, start: u64, size: u64) {
        let end = start.saturating_add(size);
        // Where no stack has been there is nothing to be mistaken for.
        if start >= end || !self.places.contains_key(&process) {
            return;
        }
        let (first, last) = (start >> GRANULE, (end - 1) >> GRANULE);
        if last - first < MAX_GRANULES && !(first..=last).any(|granule| self.granules.contains(&(process, granule))) {
            return;
        }
        if self.followed >= MAX_FOLLOWED {
            self.not_followed += 1;
            return;
        }
        self.followed += 1;
        self.by_key.clear();
        if self.changes.len() >= MAX_CHANGES {
            self.start_anew();
            return;
        }
        // The parts of older ranges on either side of the new one stay theirs.
        if let Some((&key, &(old_end, place))) = self.changes.range(..(process, start)).next_back()
            && key.0 == process
            && old_end > start
        {
            self.changes.insert(key, (start, place));
            if old_end > end {
                self.changes.insert((process, end), (old_end, place));
            }
        }
        while let Some((&key, &(old_end, place))) = self.changes.range((process, start)..(process, end)).next() {
            self.changes.remove(&key);
            if old_end > end {
                self.changes.insert((process, end), (old_end, place));
            }
        }
        let place = self.new_place(Space { process, is_logical: false });
        self.changes.insert((process, start), (end, place));
    }

    /// The place of a process where no code changed.
    #[inline]
    fn usual_place(&mut self, process: ProcessKey) -> u32 {
        if let Some((last, place)) = self.last
            && last == process
        {
            return place;
        }
        let place = match self.places.get(&process) {
            Some(place) => *place,
            None => {
                let place = self.new_place(Space { process, is_logical: false });
                self.places.insert(process, place);
                place
            }
        };
        self.last = Some((process, place));
        place
    }

    fn new_place(&mut self, space: Space) -> u32 {
        self.spaces.push(space);
        u32::try_from(self.spaces.len() - 1).unwrap_or(u32::MAX)
    }

    /// Forgets what was seen; numbers continue.
    fn start_anew(&mut self) {
        self.ids.clear();
        self.by_key.clear();
        self.changes.clear();
        self.granules.clear();
        self.nodes.end_part();
    }

    /// The place of an address: that of its process, or of the range that changed.
    #[inline]
    fn place(&self, process: ProcessKey, usual: u32, address: u64) -> u32 {
        if self.changes.is_empty() {
            return usual;
        }
        match self.changes.range(..=(process, address)).next_back() {
            Some((key, (end, place))) if key.0 == process && address < *end => *place,
            _ => usual,
        }
    }

    /// A walk begins with room for its nodes.
    fn make_room(&mut self) {
        if self.nodes.len() >= MAX_NODES {
            self.start_anew();
        }
    }

    /// The node of an address below another one.
    #[inline]
    fn child(
        &mut self,
        parent: CallsiteId,
        place: u32,
        address: u64,
        (process, first_ns): (ProcessKey, i64),
        depth: u32,
    ) -> CallsiteId {
        match self.ids.entry((parent, place, address)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(free) => {
                self.granules.insert((process, address >> GRANULE));
                *free.insert(self.nodes.push(Node { parent, place, address, first_ns, depth }))
            }
        }
    }

    fn walk(&mut self, addresses: &[u8], process: ProcessKey, usual: u32, ts_ns: i64) -> CallsiteId {
        self.make_room();
        let width = self.pointer_size.max(4);
        let (mut parent, mut depth) = (0, 0);
        let frames = addresses.chunks_exact(width);
        self.cut += u64::from(frames.len() > MAX_DEPTH);
        for frame in frames.take(MAX_DEPTH).rev() {
            let address = match frame.first_chunk::<8>() {
                Some(bytes) => u64::from_le_bytes(*bytes),
                None => frame.first_chunk::<4>().map_or(0, |b| u64::from(u32::from_le_bytes(*b))),
            };
            let place = self.place(process, usual, address);
            parent = self.child(parent, place, address, (process, ts_ns), depth);
            depth += 1;
        }
        parent
    }

    /// Reports what exceeded the bounds.
    pub fn report(&self, position: u64, sink: &mut impl FactSink) {
        let deep = "call stacks are deeper than the 1,024 frames that are kept: their outermost are missing";
        let changed = "changes of code are more than are followed: frames at their addresses may have older names";
        for (code, message, count) in
            [("deep_stacks", deep, self.cut), ("code_changes_not_followed", changed, self.not_followed)]
        {
            sink.problems(Problem::loss(code, position, message), count);
        }
    }

    /// A type of a process is allocated at a call site.
    pub fn allocates(&mut self, allocated: Allocated) {
        if allocated.0 != 0 && self.allocated.len() < MAX_ALLOCATED {
            self.allocated.insert(allocated);
        }
    }

    /// The nodes, what the addresses of each of their places are, and what is allocated where, by the number of the call site.
    pub fn finish(self) -> (Nodes, Vec<Space>, Vec<Allocated>) {
        let mut allocated: Vec<Allocated> = self.allocated.into_iter().collect();
        allocated.sort_unstable();
        (self.nodes, self.spaces, allocated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(addresses: &[u64]) -> Vec<u8> {
        addresses.iter().flat_map(|address| address.to_le_bytes()).collect()
    }

    #[derive(Default)]
    struct Reported(Vec<(&'static str, u64)>);

    impl FactSink for Reported {
        fn fact(&mut self, _: crate::fact::Fact<'_>) {}

        fn problem(&mut self, problem: &Problem) {
            self.0.push((problem.code, problem.count));
        }
    }

    #[test]
    fn deep_stacks_and_changes_without_end_are_bounded() {
        let process = ProcessKey { id: 7, incarnation: 0 };
        let mut callsites = Callsites::new(8);
        let deep = bytes(&(0..2000).map(|n| 0x10_0000 + 64 * n).collect::<Vec<_>>());
        callsites.intern(&Stack::new(&deep, Some(3)), process, 1);
        assert_eq!(callsites.nodes.len(), MAX_DEPTH);
        // The innermost frame stays.
        assert!(callsites.granules.contains(&(process, 0x10_0000 >> GRANULE)));
        let stack = bytes(&[0x10_0000]);
        for turn in 0..i64::from(MAX_FOLLOWED) + 10 {
            callsites.code_changed(process, 0x10_0000, 1);
            callsites.intern(&Stack::new(&stack, Some(4)), process, turn);
        }
        assert!(callsites.nodes.len() <= MAX_DEPTH + MAX_FOLLOWED as usize + 1, "{}", callsites.nodes.len());
        let mut reported = Reported::default();
        callsites.report(0, &mut reported);
        assert_eq!(reported.0, [("deep_stacks", 1), ("code_changes_not_followed", 10)]);
    }

    #[test]
    fn processes_that_share_a_key_have_their_own_stacks() {
        let [one, other] = [7, 8].map(|id| ProcessKey { id, incarnation: 0 });
        let mut callsites = Callsites::new(8);
        let stack = bytes(&[0x1010, 0x2020]);
        let stack = Stack::new(&stack, Some(3));
        let ids = [one, other, one, other].map(|process| callsites.intern(&stack, process, 1));
        assert_eq!(ids, [2, 4, 2, 4]);
        let (mut nodes, places, _) = callsites.finish();
        let part = nodes.next_part().expect("no file").expect("a part");
        let processes: Vec<_> = part.iter().map(|node| places[node.place as usize].process.id).collect();
        assert_eq!(processes, [7, 7, 8, 8]);
    }

    #[test]
    fn a_stack_through_code_that_changed_is_another_one() {
        let process = ProcessKey { id: 7, incarnation: 0 };
        let mut callsites = Callsites::new(8);
        let stack = bytes(&[0x1010, 0x2020]);
        let intern = |callsites: &mut Callsites, ts_ns| callsites.intern(&Stack::new(&stack, Some(3)), process, ts_ns);
        let first = intern(&mut callsites, 1);
        assert_eq!(intern(&mut callsites, 2), first);
        callsites.code_changed(process, 0x5000, 0x100);
        assert_eq!(intern(&mut callsites, 3), first, "it is not on this stack");
        callsites.code_changed(process, 0x1000, 0x100);
        let second = intern(&mut callsites, 4);
        assert_ne!(second, first);
        assert_eq!(intern(&mut callsites, 5), second);
        // A part of the range changes again; the rest stays what it was.
        callsites.code_changed(process, 0x1080, 0x10);
        assert_eq!(intern(&mut callsites, 6), second);
        callsites.code_changed(process, 0x1000, 0x20);
        assert_ne!(intern(&mut callsites, 7), second);
        callsites.code_changed(ProcessKey { id: 8, incarnation: 0 }, 0x1000, 0x100);
        let (mut nodes, places, _) = callsites.finish();
        let part = nodes.next_part().expect("no file").expect("a part");
        // The outermost frame is shared, the innermost one is there three times.
        assert_eq!(
            part.iter().map(|node| (node.parent, node.first_ns)).collect::<Vec<_>>(),
            [(0, 1), (1, 1), (1, 4), (1, 7)]
        );
        assert!(places.iter().all(|place| *place == Space { process, is_logical: false }));
    }
}
