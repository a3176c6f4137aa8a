//! Dominators of a graph with several roots, by SEMI-NCA (Georgiadis, Tarjan and Werneck, "Finding dominators in
//! practice", 2006), without recursion.
//!
//! Nodes that have edges get the numbers in which a depth-first search meets them; 0 is a virtual root above all roots.
//! A node's dominator always has a smaller number than the node, so that sums over the tree are one loop from behind.
//! Nodes without edges, half of a heap, dominate nothing: theirs is the nearest common dominator of what refers to
//! them, found when all others are. Most nodes are referred to once, by the node that the search found them from, and
//! need no more than that.
#![allow(
    clippy::indexing_slicing,
    reason = "every index is a number that the depth-first search gave, or a node of the graph"
)]

use super::csr::{Csr, NOWHERE};
use super::depth_first::DepthFirst;
use super::ranks::Ranks;

/// The dominator tree of a graph.
#[derive(Clone, Debug)]
pub struct Dominators {
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

impl Dominators {
    /// Finds the dominators of all nodes that these roots lead to. A graph and its roots may be damaged in any way:
    /// what is no node is left out.
    pub fn of(graph: &Csr, roots: &[u32]) -> Dominators {
        let sources = &graph.sources;
        let roots = || roots.iter().copied().filter(|root| *root < graph.nodes);
        let mut search = DepthFirst::of(graph, roots());
        let mut leaves = vec![NOWHERE; (graph.nodes - sources.count) as usize];
        let leaf = |node: u32| (node - sources.before(node)) as usize;
        for root in roots().filter(|root| !sources.has(*root)) {
            leaves[leaf(root)] = 0;
        }
        let semi = semidominators(&mut search);
        let DepthFirst { nodes, parents, numbers, .. } = search;
        let steps = steps(&parents, &semi);
        drop((parents, semi));
        for (rank, number) in (0..).zip(&numbers).filter(|(_, number)| **number != 0) {
            for target in graph.rows.targets(rank).filter(|target| !sources.has(*target)) {
                let above = &mut leaves[leaf(target)];
                *above = match *above {
                    NOWHERE => *number,
                    above => common(&steps, above, *number),
                };
            }
        }
        let dominators = steps.into_iter().map(|step| step.dominator).collect();
        Dominators { sources: sources.clone(), nodes, numbers, dominators, leaves }
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

    /// The node that dominates this one most closely: `None` for a node that no single node does, and for one that no
    /// root leads to.
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

    /// The number of a node's dominator: 0 of one that no single node dominates, [`NOWHERE`] of one that no root leads
    /// to.
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
        let leaves = self.sources.others().zip(&self.leaves);
        leaves.filter(|(_, above)| **above != NOWHERE).map(|(node, above)| (node, *above))
    }

    /// The nodes that no root leads to: those that have edges, and then the others.
    pub(super) fn unreachable(&self) -> impl Iterator<Item = u32> + '_ {
        let inner = self.sources.iter().zip(&self.numbers).filter(|(_, number)| **number == 0).map(|(node, _)| node);
        let leaves = self.sources.others().zip(&self.leaves);
        inner.chain(leaves.filter(|(_, above)| **above == NOWHERE).map(|(node, _)| node))
    }

    /// Calls `each` for all reachable nodes, each behind the one that dominates it most closely, with what was returned
    /// for that one: `top` for a node that no single node dominates.
    pub fn fold_down<T: Copy>(&self, top: T, mut each: impl FnMut(u32, T) -> T) {
        self.fold_numbered(top, |node, _, above| each(node, above));
    }

    /// Folds with the number of each node; `None` for a node without edges.
    pub(super) fn fold_numbered<T: Copy>(&self, top: T, mut each: impl FnMut(u32, Option<u32>, T) -> T) {
        let mut made = Vec::with_capacity(self.nodes.len());
        made.push(top);
        for (number, (node, above)) in (0..).zip(self.nodes.iter().zip(&self.dominators)).skip(1) {
            made.push(each(*node, Some(number), made[*above as usize]));
        }
        for (node, above) in self.leaves() {
            each(node, None, made[above as usize]);
        }
    }
}

/// A number's dominator, and a long step towards the root.
#[derive(Clone, Copy)]
struct Step {
    dominator: u32,
    /// One of those that dominate it. How far the step leads depends on the depth alone.
    jump: u32,
    depth: u32,
}

/// The nearest that dominates both.
fn common(steps: &[Step], a: u32, b: u32) -> u32 {
    let step = |of: u32| steps[of as usize];
    let (mut low, mut high) = if step(a).depth > step(b).depth { (a, b) } else { (b, a) };
    let depth = step(high).depth;
    while step(low).depth > depth {
        let Step { dominator, jump, .. } = step(low);
        low = if step(jump).depth >= depth { jump } else { dominator };
    }
    while low != high {
        let (of_low, of_high) = (step(low), step(high));
        let is_same = of_low.jump == of_high.jump;
        (low, high) = if is_same { (of_low.dominator, of_high.dominator) } else { (of_low.jump, of_high.jump) };
    }
    low
}

/// The least semidominator on the shortened path above a number that is done.
#[derive(Clone, Copy)]
struct Above {
    ancestor: u32,
    least: u32,
}

/// The semidominator of each number.
fn semidominators(search: &mut DepthFirst) -> Vec<u32> {
    let mut semi = std::mem::take(&mut search.firsts);
    let mut above: Vec<Above> =
        (0..).zip(&search.parents).map(|(least, parent)| Above { ancestor: *parent, least }).collect();
    let mut path = Vec::new();
    for number in (1..semi.len() as u32).rev() {
        let mut least = semi[number as usize];
        for from in search.later(number) {
            least = least.min(least_above(from, number + 1, &mut above, &mut path));
        }
        semi[number as usize] = least;
        above[number as usize].least = least;
    }
    semi
}

/// The least semidominator on the path from `number` up to, and without, the first ancestor below `done`. All numbers
/// from `done` on have their semidominator. The path is shortened.
fn least_above(number: u32, done: u32, above: &mut [Above], path: &mut Vec<u32>) -> u32 {
    let mut last = above[number as usize];
    if last.ancestor < done {
        return last.least;
    }
    let mut at = number;
    while last.ancestor >= done {
        path.push(at);
        at = last.ancestor;
        last = above[at as usize];
    }
    while let Some(below) = path.pop() {
        let below = &mut above[below as usize];
        last.least = last.least.min(below.least);
        *below = last;
    }
    last.least
}

/// The dominator of each number, by its parent and its semidominator.
///
/// The way up the tree of dominators goes by long steps (Myers, "An applicative random-access stack", 1983): a list of
/// a million objects would cost a million steps for each object that its end refers to.
fn steps(parents: &[u32], semi: &[u32]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::with_capacity(parents.len());
    steps.push(Step { dominator: 0, jump: 0, depth: 0 });
    for (parent, semi) in parents.iter().zip(semi).skip(1) {
        let (mut dominator, mut above) = (*parent, steps[*parent as usize]);
        while dominator > *semi {
            dominator = if above.jump > *semi { above.jump } else { above.dominator };
            above = steps[dominator as usize];
        }
        let jump = steps[above.jump as usize];
        let is_joined = above.depth - jump.depth == jump.depth - steps[jump.jump as usize].depth;
        steps.push(Step { dominator, jump: if is_joined { jump.jump } else { dominator }, depth: above.depth + 1 });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::dice::Dice;

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
        let mut unreachable: Vec<u32> = found.unreachable().collect();
        unreachable.sort_unstable();
        assert!(unreachable.into_iter().eq((0..nodes).filter(|node| !all[*node as usize])), "{what}");
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
