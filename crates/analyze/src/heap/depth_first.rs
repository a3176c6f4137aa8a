//! Numbers the nodes of a graph in the order of a depth-first search.
//!
//! Which node is next is known only when the one before it was read, and that lies anywhere in memory: the search waits
//! for it. So it reads the edges of each node once, and looks up nothing else. What does not decide where the search
//! goes is looked up when it has ended: these reads do not wait for each other.
#![allow(
    clippy::indexing_slicing,
    reason = "every index is a node of the graph, its rank, or a number that the search gave"
)]

use super::csr::{Csr, NOWHERE};

/// The nodes with edges that roots lead to. Their numbers are those in which the search meets them; 0 is a virtual root
/// above all roots.
pub(super) struct DepthFirst {
    /// The node of each number; that of 0 means nothing.
    pub nodes: Vec<u32>,
    /// The number from which each number was found.
    pub parents: Vec<u32>,
    /// The least number from which an edge leads to each number: 0 for a root.
    pub firsts: Vec<u32>,
    /// The number of each node with edges; 0: no root leads to it.
    pub numbers: Vec<u32>,
    /// Of the edges to each number from later ones the one that was found last: a place in `later`, or [`NOWHERE`].
    last: Vec<u32>,
    later: Vec<Later>,
}

/// An edge to a number from a later one, or from itself.
struct Later {
    /// The number that it comes from.
    from: u32,
    /// The next one to the same number: a place among these, or [`NOWHERE`]. While the search goes on, the rank of the
    /// target.
    next: u32,
}

/// A node some of whose edges are on the stack.
#[derive(Clone, Copy)]
struct Open {
    number: u32,
    /// Length of the stack below these edges.
    below: u32,
}

impl DepthFirst {
    /// Searches from these roots on. Those that have no edges are left out.
    pub fn of(graph: &Csr, roots: impl Iterator<Item = u32>) -> DepthFirst {
        let sources = &graph.sources;
        let zero_first = |zero: u32| {
            let mut list = Vec::with_capacity(sources.count as usize + 1);
            list.push(zero);
            list
        };
        let mut search = Search {
            graph,
            seen: vec![0; sources.count.div_ceil(64) as usize],
            stack: Vec::new(),
            open: Vec::new(),
            ranks: zero_first(NOWHERE),
            parents: zero_first(0),
            firsts: vec![NOWHERE; sources.count as usize],
            later: Vec::new(),
        };
        for root in roots.filter_map(|root| sources.rank(root)) {
            search.visit(root, 0);
            while let Some(Open { number, below }) = search.open.last().copied() {
                if search.stack.len() == below as usize {
                    search.open.pop();
                } else if let Some(rank) = search.stack.pop() {
                    search.visit(rank, number);
                }
            }
        }
        let Search { ranks: mut nodes, parents, firsts: mut numbers, mut later, seen, stack, open, .. } = search;
        drop((seen, stack, open));
        let mut firsts = parents.clone();
        for (number, rank) in (0..).zip(&nodes).skip(1) {
            let first = std::mem::replace(&mut numbers[*rank as usize], number);
            firsts[number as usize] = first.min(parents[number as usize]);
        }
        for (node, number) in sources.iter().zip(&mut numbers) {
            match *number {
                NOWHERE => *number = 0,
                number => nodes[number as usize] = node,
            }
        }
        let mut last = vec![NOWHERE; nodes.len()];
        for (place, edge) in (0..).zip(&mut later) {
            let number = numbers[edge.next as usize];
            edge.next = std::mem::replace(&mut last[number as usize], place);
        }
        DepthFirst { nodes, parents, firsts, numbers, last, later }
    }

    /// The numbers from which edges lead to a number, of those behind it and of itself.
    #[inline]
    pub fn later(&self, number: u32) -> impl Iterator<Item = u32> + '_ {
        let edge = |place: u32| self.later.get(place as usize);
        let last = edge(self.last[number as usize]);
        std::iter::successors(last, move |last| edge(last.next)).map(|edge| edge.from)
    }
}

/// A search under way.
struct Search<'g> {
    graph: &'g Csr,
    /// A bit for each rank.
    seen: Vec<u64>,
    /// Targets that were new when the edges to them were read.
    stack: Vec<u32>,
    open: Vec<Open>,
    /// The rank of each number.
    ranks: Vec<u32>,
    parents: Vec<u32>,
    /// By rank: the least number with an edge that was put on the stack, and whose target was visited by another edge
    /// before.
    firsts: Vec<u32>,
    later: Vec<Later>,
}

impl Search<'_> {
    /// Follows an edge from a number to the node of a rank, which was new when that number was visited.
    #[inline]
    fn visit(&mut self, rank: u32, from: u32) {
        if self.has_seen(rank) {
            let first = &mut self.firsts[rank as usize];
            *first = from.min(*first);
            return;
        }
        self.seen[rank as usize / 64] |= 1 << (rank % 64);
        let (number, below) = (self.ranks.len() as u32, self.stack.len());
        self.ranks.push(rank);
        self.parents.push(from);
        // The reference that is put on the stack last is followed first. Rows have the references in reverse: that is
        // the first field, whose object often lies near.
        for target in self.graph.rows.targets(rank).filter_map(|target| self.graph.sources.rank(target)) {
            if self.has_seen(target) {
                self.later.push(Later { from: number, next: target });
            } else {
                self.stack.push(target);
            }
        }
        if self.stack.len() > below {
            self.open.push(Open { number, below: below as u32 });
        }
    }

    #[inline]
    fn has_seen(&self, rank: u32) -> bool {
        self.seen[rank as usize / 64] >> (rank % 64) & 1 == 1
    }
}
