//! Dominators of a graph with several roots, by SEMI-NCA (Georgiadis, Tarjan and Werneck, "Finding dominators in practice",
//! 2006), without recursion.
//!
//! Nodes that have edges get the numbers in which a depth-first search meets them; 0 is a virtual root above all roots. A node's
//! dominator always has a smaller number than the node, so that sums over the tree are one loop from behind. Nodes without edges,
//! half of a heap, dominate nothing: theirs is the nearest common dominator of what refers to them, found when all others are.
//! Most nodes are referred to once, by the node that the search found them from, and need no more than that.
#![allow(
    clippy::indexing_slicing,
    reason = "every index is a number that the depth-first search gave, or a node of the graph"
)]

use super::csr::{Csr, NOWHERE};
use super::ranks::Ranks;

/// The dominator tree of a graph.
#[derive(Clone, Debug)]
pub struct Dominators {
    count: u32,
    /// The nodes with edges.
    sources: Ranks,
    /// The node of each number; that of 0 means nothing.
    nodes: Vec<u32>,
    /// The number of each node with edges; 0: no root leads to it.
    numbers: Vec<u32>,
    /// The number of the dominator of each number; that of 0 is 0.
    dominators: Vec<u32>,
    /// The number of the dominator of each node without edges; [`NOWHERE`]: no root leads to it.
    leaves: Vec<u32>,
}

/// What the depth-first search found.
struct Search {
    nodes: Vec<u32>,
    numbers: Vec<u32>,
    /// The number from which each number was found.
    parents: Vec<u32>,
    /// The first edge to each number that is not the one it was found by: a place in `others`.
    first_others: Vec<u32>,
    others: Vec<Other>,
    /// The number from which each node without edges was found first; [`NOWHERE`]: no root leads to it, 0: it has a root.
    leaves: Vec<u32>,
    /// Further edges to nodes without edges: the node's place in `leaves`, and the number that the edge comes from.
    to_leaves: Vec<(u32, u32)>,
}

/// An edge to a number that another edge found before.
struct Other {
    /// The number that it comes from.
    from: u32,
    /// The next one to the same number: a place among these, or [`NOWHERE`].
    next: u32,
}

impl Dominators {
    /// Finds the dominators of all nodes that these roots lead to. A graph and its roots may be damaged in any way: what is
    /// no node is left out.
    pub fn of(graph: &Csr, roots: &[u32]) -> Dominators {
        let sources = graph.sources();
        let search = depth_first(graph, roots);
        let mut is_root = vec![false; search.nodes.len()];
        for root in roots.iter().filter(|root| **root < graph.nodes()) {
            if let Some(rank) = sources.rank(*root) {
                is_root[search.numbers[rank as usize] as usize] = true;
            }
        }
        let Search { nodes, numbers, parents, first_others, others, mut leaves, to_leaves } = search;
        let tree = semi_nca(first_others, others, &is_root, parents);
        for (leaf, from) in to_leaves {
            let above = &mut leaves[leaf as usize];
            *above = tree.common(*above, from);
        }
        Dominators {
            count: graph.nodes(),
            sources: sources.clone(),
            nodes,
            numbers,
            dominators: tree.dominators,
            leaves,
        }
    }

    /// Nodes that a root leads to.
    pub fn reachable(&self) -> u32 {
        let leaves = self.leaves.iter().filter(|leaf| **leaf != NOWHERE).count();
        self.nodes.len() as u32 - 1 + leaves as u32
    }

    /// Whether a root leads to a node.
    pub fn is_reachable(&self, node: u32) -> bool {
        match self.sources.rank(node) {
            Some(rank) => self.numbers[rank as usize] != 0,
            None => self.above(node) != NOWHERE,
        }
    }

    /// The node that dominates this one most closely: `None` for a node that no single node does, and for one that no root
    /// leads to.
    pub fn dominator(&self, node: u32) -> Option<u32> {
        match self.above(node) {
            0 | NOWHERE => None,
            number => Some(self.nodes[number as usize]),
        }
    }

    /// The number of a node that has edges and that a root leads to: one of `1..numbers`.
    #[inline]
    pub(super) fn number(&self, node: u32) -> Option<u32> {
        self.sources.rank(node).map(|rank| self.numbers[rank as usize]).filter(|number| *number != 0)
    }

    /// One more than the largest number.
    pub(super) fn numbers(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// The node of a number from 1 on.
    #[inline]
    pub(super) fn node(&self, number: u32) -> u32 {
        self.nodes[number as usize]
    }

    /// The number of a node's dominator: 0 of one that no single node dominates, [`NOWHERE`] of one that no root leads to.
    #[inline]
    fn above(&self, node: u32) -> u32 {
        match self.sources.rank(node) {
            Some(rank) => match self.numbers[rank as usize] {
                0 => NOWHERE,
                number => self.dominators[number as usize],
            },
            None => self.leaves[(node - self.sources.before(node)) as usize],
        }
    }

    /// The number of the dominator of a number from 1 on: 0 of one that no single node dominates.
    #[inline]
    pub(super) fn above_number(&self, number: u32) -> u32 {
        self.dominators[number as usize]
    }

    /// The nodes without edges that a root leads to, in their order, with the numbers of their dominators.
    pub(super) fn leaves(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let leaves = (0..self.count).filter(|node| !self.sources.has(*node)).zip(&self.leaves);
        leaves.filter(|(_, above)| **above != NOWHERE).map(|(node, above)| (node, *above))
    }

    /// Calls `each` for all reachable nodes, each behind the one that dominates it most closely, with what was returned for that
    /// one: `top` for a node that no single node dominates.
    pub fn fold_down<T: Copy>(&self, top: T, mut each: impl FnMut(u32, T) -> T) {
        let mut made = Vec::with_capacity(self.nodes.len());
        made.push(top);
        for (node, above) in self.nodes.iter().zip(&self.dominators).skip(1) {
            made.push(each(*node, made[*above as usize]));
        }
        for (node, above) in self.leaves() {
            each(node, made[above as usize]);
        }
    }
}

/// Numbers all nodes with edges that the roots lead to, in the order in which they are met. Each edge is looked at once, because its
/// target lies anywhere in memory: most edges find a node, and only the others are kept.
fn depth_first(graph: &Csr, roots: &[u32]) -> Search {
    let (sources, rows) = (graph.sources(), graph.rows());
    let zero_first = |zero: u32| {
        let mut list = Vec::with_capacity(sources.count() as usize + 1);
        list.push(zero);
        list
    };
    let mut found = Search {
        nodes: zero_first(NOWHERE),
        numbers: vec![0; sources.count() as usize],
        parents: zero_first(0),
        first_others: zero_first(NOWHERE),
        others: Vec::new(),
        leaves: vec![NOWHERE; (graph.nodes() - sources.count()) as usize],
        to_leaves: Vec::new(),
    };
    let leaf = |node: u32| (node - sources.before(node)) as usize;
    let roots = || roots.iter().copied().filter(|root| *root < graph.nodes());
    for root in roots().filter(|root| !sources.has(*root)) {
        found.leaves[leaf(root)] = 0;
    }
    // The edge to follow next, by number.
    let mut edges = zero_first(0);
    let visit = |node: u32, rank: u32, parent: u32, found: &mut Search, edges: &mut Vec<u32>| {
        let number = found.nodes.len() as u32;
        found.numbers[rank as usize] = number;
        found.nodes.push(node);
        found.parents.push(parent);
        found.first_others.push(NOWHERE);
        let (edge, end) = rows.span(rank);
        edges.push(edge);
        (number, end)
    };
    for root in roots() {
        let Some(rank) = sources.rank(root).filter(|rank| found.numbers[*rank as usize] == 0) else { continue };
        let (mut at, mut end) = visit(root, rank, 0, &mut found, &mut edges);
        while at != 0 {
            let edge = edges[at as usize];
            if edge == end {
                at = found.parents[at as usize];
                end = match at {
                    0 => 0,
                    at => sources.rank(found.nodes[at as usize]).map_or(0, |rank| rows.span(rank).1),
                };
                continue;
            }
            edges[at as usize] += 1;
            let target = rows.target(edge);
            if target == NOWHERE {
                continue;
            }
            let Some(rank) = sources.rank(target) else {
                let leaf = leaf(target);
                match found.leaves[leaf] {
                    NOWHERE => found.leaves[leaf] = at,
                    // Nothing is nearer than a root of its own, or the object that all came from so far.
                    above if above == 0 || above == at => {}
                    _ => found.to_leaves.push((leaf as u32, at)),
                }
                continue;
            };
            match found.numbers[rank as usize] {
                0 => (at, end) = visit(target, rank, at, &mut found, &mut edges),
                number => {
                    let next = std::mem::replace(&mut found.first_others[number as usize], found.others.len() as u32);
                    found.others.push(Other { from: at, next });
                }
            }
        }
    }
    found
}

/// The dominators of the numbers, and long steps towards the root.
struct Tree {
    dominators: Vec<u32>,
    depths: Vec<u32>,
    jumps: Vec<u32>,
}

impl Tree {
    /// The nearest that dominates both.
    fn common(&self, a: u32, b: u32) -> u32 {
        let depth = |of: u32| self.depths[of as usize];
        let (mut low, mut high) = if depth(a) > depth(b) { (a, b) } else { (b, a) };
        while depth(low) > depth(high) {
            let jump = self.jumps[low as usize];
            low = if depth(jump) >= depth(high) { jump } else { self.dominators[low as usize] };
        }
        // How far a step leads depends on the depth alone.
        while low != high {
            let step =
                if self.jumps[low as usize] == self.jumps[high as usize] { &self.dominators } else { &self.jumps };
            (low, high) = (step[low as usize], step[high as usize]);
        }
        low
    }
}

/// The dominator of each number. `parents` is the tree of the search, the others are the edges that are not in it.
fn semi_nca(first_others: Vec<u32>, others: Vec<Other>, is_root: &[bool], parents: Vec<u32>) -> Tree {
    let count = parents.len();
    let mut dominators = parents.clone();
    // The tree of those that are done already, with shortened paths.
    let mut ancestors = parents;
    // Semidominators, and the least of them on the shortened path of each.
    let mut semi: Vec<u32> = (0..count as u32).collect();
    let mut least = semi.clone();
    let mut path = Vec::new();
    for number in (1..count as u32).rev() {
        let mut found = if is_root[number as usize] { 0 } else { dominators[number as usize] };
        let mut place = first_others[number as usize];
        while place != NOWHERE && found != 0 {
            let Other { from, next } = others[place as usize];
            found = found.min(least_above(from, number + 1, &mut ancestors, &mut least, &mut path));
            place = next;
        }
        semi[number as usize] = found;
        least[number as usize] = found;
    }
    drop((first_others, others));
    // The way up the tree of dominators goes by long steps (Myers, "An applicative random-access stack", 1983): a list of a
    // million objects would cost a million steps for each object that its end refers to.
    let (mut depths, mut jumps) = (ancestors, least);
    (depths[0], jumps[0]) = (0, 0);
    for number in 1..count {
        let mut dominator = dominators[number];
        while dominator > semi[number] {
            let jump = jumps[dominator as usize];
            dominator = if jump > semi[number] { jump } else { dominators[dominator as usize] };
        }
        dominators[number] = dominator;
        let jump = jumps[dominator as usize];
        let depth = |of: u32| depths[of as usize];
        let is_joined = depth(dominator) - depth(jump) == depth(jump) - depth(jumps[jump as usize]);
        jumps[number] = if is_joined { jumps[jump as usize] } else { dominator };
        depths[number] = depths[dominator as usize] + 1;
    }
    Tree { dominators, depths, jumps }
}

/// The least semidominator on the path from `number` up to, and without, the first ancestor below `done`. All numbers from
/// `done` on have their semidominator. The path is shortened.
fn least_above(number: u32, done: u32, ancestors: &mut [u32], least: &mut [u32], path: &mut Vec<u32>) -> u32 {
    let mut at = number;
    while ancestors[at as usize] >= done {
        path.push(at);
        at = ancestors[at as usize];
    }
    while let Some(below) = path.pop() {
        least[below as usize] = least[below as usize].min(least[at as usize]);
        ancestors[below as usize] = ancestors[at as usize];
        at = below;
    }
    least[number as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    /// The nodes that the roots lead to when one is taken away.
    fn reached(nodes: u32, edges: &[(u32, u32)], roots: &[u32], without: Option<u32>) -> Vec<bool> {
        let mut seen = vec![false; nodes as usize];
        let mut open: Vec<u32> = roots.to_vec();
        while let Some(node) = open.pop() {
            if Some(node) == without || node >= nodes || std::mem::replace(&mut seen[node as usize], true) {
                continue;
            }
            open.extend(edges.iter().filter(|(source, _)| *source == node).map(|(_, target)| *target));
        }
        seen
    }

    /// Compares with the definition: a node dominates those that no root leads to without it.
    fn check(nodes: u32, edges: &[(u32, u32)], roots: &[u32]) {
        let what = format!("{nodes} nodes, {edges:?}, roots {roots:?}");
        let found = Dominators::of(&Csr::of(nodes, edges), roots);
        let all = reached(nodes, edges, roots, None);
        let without: Vec<_> = (0..nodes).map(|node| reached(nodes, edges, roots, Some(node))).collect();
        for node in 0..nodes {
            assert_eq!(found.is_reachable(node), all[node as usize], "{node}: {what}");
            // The dominators of a node, by the tree and by taking each other node away.
            let chain: Vec<u32> = std::iter::successors(found.dominator(node), |node| found.dominator(*node)).collect();
            let mut by_tree = chain.clone();
            by_tree.sort_unstable();
            let is_reachable = all[node as usize];
            let dominates = |other: &u32| is_reachable && *other != node && !without[*other as usize][node as usize];
            let by_definition: Vec<u32> = (0..nodes).filter(dominates).collect();
            assert_eq!(by_tree, by_definition, "{node}: {what}");
        }
        let mut seen = vec![false; nodes as usize];
        found.fold_down(None, |node, above| {
            assert!(!std::mem::replace(&mut seen[node as usize], true), "{what}");
            assert_eq!(above, found.dominator(node), "{what}");
            Some(node)
        });
        assert_eq!(seen, all, "{what}");
    }

    #[test]
    fn dominators_are_those_of_the_definition() {
        let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
        let mut below = |limit: u32| dice.below(limit.into()) as u32;
        for round in 0..6000 {
            let nodes = 1 + below(if round % 20 == 0 { 60 } else { 14 });
            // From trees to tangles, with loops, double edges and targets that are no nodes.
            let density = 1 + below(4);
            let edges = below(1 + nodes * density);
            let edges: Vec<_> = (0..edges).map(|_| (below(nodes), below(nodes + nodes / 8 + 1))).collect();
            let roots: Vec<_> = (0..1 + below(3)).map(|_| below(nodes + 1)).collect();
            check(nodes, &edges, &roots);
        }
    }

    #[test]
    fn depth_is_no_limit() {
        const MANY: u32 = 1_000_000;
        let chain: Vec<_> = (1..MANY).map(|node| (node - 1, node)).collect();
        let found = Dominators::of(&Csr::of(MANY, &chain), &[0]);
        assert_eq!((found.reachable(), found.dominator(MANY - 1)), (MANY, Some(MANY - 2)));
        // A ladder: each step is reached from both ends, so that paths are shortened again and again.
        let ladder: Vec<_> = chain.iter().copied().chain((1..MANY).map(|node| (MANY - 1, node - 1))).collect();
        let found = Dominators::of(&Csr::of(MANY, &ladder), &[0, MANY - 1]);
        assert!((0..MANY).all(|node| found.dominator(node).is_none()));
    }

    #[test]
    fn what_the_end_of_a_long_list_refers_to_takes_no_time() {
        // A list, at the end of which an array refers to objects with roots of their own.
        const MANY: u32 = 200_000;
        let list = (1..MANY).map(|node| (node - 1, node));
        let edges: Vec<_> = list.chain((MANY..2 * MANY).map(|node| (MANY - 1, node))).collect();
        let roots: Vec<u32> = std::iter::once(0).chain(MANY..2 * MANY).collect();
        let found = Dominators::of(&Csr::of(2 * MANY, &edges), &roots);
        assert!((MANY..2 * MANY).all(|node| found.dominator(node).is_none()));
        assert_eq!(found.dominator(MANY - 1), Some(MANY - 2));
    }

    #[test]
    fn an_empty_graph_has_none() {
        for roots in [&[][..], &[0, 7]] {
            let found = Dominators::of(&Csr::of(0, &[]), roots);
            assert_eq!((found.reachable(), found.leaves().count()), (0, 0));
        }
    }
}
