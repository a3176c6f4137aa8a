//! Call stacks as a trie: each distinct stack once, a node per frame, shared from the outermost frame inwards.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::normalize::fact::{Callsite, CallsiteId, FactSink};
use crate::reader::{ProcessKey, Stack};

/// Nodes remembered at once. Past it the memory starts anew: later stacks get new numbers, and a stack seen before may
/// appear a second time.
const MAX_NODES: usize = 1 << 20;

/// Numbers call stacks.
#[derive(Default)]
pub struct Callsites {
    nodes: HashMap<(CallsiteId, u64, ProcessKey), (CallsiteId, u32), RandomState>,
    /// Stack key of the reader to call site; valid until the reader forgets its keys.
    by_key: Vec<CallsiteId>,
    next: CallsiteId,
    pointer_size: usize,
}

const UNKNOWN: CallsiteId = CallsiteId::MAX;

impl Callsites {
    /// For stacks whose addresses are `pointer_size` bytes wide.
    pub fn new(pointer_size: u8) -> Callsites {
        Callsites { pointer_size: usize::from(pointer_size), ..Callsites::default() }
    }

    /// The number of a stack of a process; 0 for an empty one.
    #[inline]
    pub fn intern(&mut self, stack: &Stack<'_>, process: ProcessKey, sink: &mut impl FactSink) -> CallsiteId {
        if stack.addresses.is_empty() {
            return 0;
        }
        let Some(key) = stack.key else { return self.walk(stack.addresses, process, sink) };
        if let Some(known) = self.by_key.get(key as usize)
            && *known != UNKNOWN
        {
            return *known;
        }
        let id = self.walk(stack.addresses, process, sink);
        let index = key as usize;
        if index < MAX_NODES {
            if self.by_key.len() <= index {
                self.by_key.resize(index + 1, UNKNOWN);
            }
            if let Some(place) = self.by_key.get_mut(index) {
                *place = id;
            }
        }
        id
    }

    /// The reader's keys are void.
    pub fn forget_keys(&mut self) {
        self.by_key.clear();
    }

    fn walk(&mut self, addresses: &[u8], process: ProcessKey, sink: &mut impl FactSink) -> CallsiteId {
        if self.nodes.len() >= MAX_NODES {
            self.nodes.clear();
            self.by_key.clear();
        }
        let width = self.pointer_size.max(4);
        let (mut parent, mut depth) = (0, 0);
        for frame in addresses.chunks_exact(width).rev() {
            let address = match frame.first_chunk::<8>() {
                Some(bytes) => u64::from_le_bytes(*bytes),
                None => frame.first_chunk::<4>().map_or(0, |b| u64::from(u32::from_le_bytes(*b))),
            };
            let next = self.next + 1;
            let (id, at) = *self.nodes.entry((parent, address, process)).or_insert_with(|| {
                let process_id = process.id;
                let node = Callsite { callsite_id: next, parent_callsite_id: parent, process_id, address, depth };
                sink.add(&node);
                (next, depth)
            });
            self.next = self.next.max(id);
            (parent, depth) = (id, at + 1);
        }
        parent
    }
}
