//! The distance of objects from the roots: a breadth-first search.
#![allow(clippy::indexing_slicing, reason = "every index is a node of the graph")]

use super::csr::{Csr, NOWHERE};

/// References from a root to each node: 1 for a root's own, 0 when no root leads to it.
pub(super) fn distances(graph: &Csr, roots: &[u32]) -> Vec<u32> {
    let mut distances = vec![0u32; graph.nodes as usize];
    search(graph, roots, |from, node| {
        let is_new = distances[node as usize] == 0;
        if is_new {
            distances[node as usize] = from.map_or(0, |from| distances[from as usize]) + 1;
        }
        Found { is_new, is_last: false }
    });
    distances
}

/// Shortest paths to some nodes. Of several roots the first one wins.
#[derive(Clone, Debug)]
pub struct Paths(Vec<u32>);

/// Stands for a node that is wanted and was not reached so far.
const WANTED: u32 = NOWHERE - 1;

impl Paths {
    /// To these nodes. What is farther from the roots than all of them is not looked at.
    pub fn of(graph: &Csr, roots: &[u32], wanted: &[u32]) -> Paths {
        // From which node each is reached first.
        let mut sources = vec![NOWHERE; graph.nodes as usize];
        // Nodes that can be on a path to one that is wanted.
        let mut new = graph.sources.words.to_vec();
        let mut left = 0u32;
        for node in wanted.iter().filter(|node| **node < graph.nodes) {
            left += u32::from(std::mem::replace(&mut sources[*node as usize], WANTED) == NOWHERE);
            new[*node as usize / 64] |= 1 << (node % 64);
        }
        search(graph, roots, |from, node| {
            let (word, bit) = (&mut new[node as usize / 64], 1 << (node % 64));
            let is_new = *word & bit != 0;
            if is_new {
                *word &= !bit;
                // A root's own is reached from itself.
                let before = std::mem::replace(&mut sources[node as usize], from.unwrap_or(node));
                left -= u32::from(before == WANTED);
            }
            Found { is_new, is_last: left == 0 }
        });
        Paths(sources)
    }

    /// The nodes of the path to `target`, one of those that were wanted, both ends included; empty when no root leads
    /// to it.
    pub fn to(&self, target: u32) -> Vec<u32> {
        let from = |node: u32| self.0.get(node as usize).copied().filter(|from| *from < WANTED);
        let mut path: Vec<u32> = from(target).map(|_| target).into_iter().collect();
        while let Some(last) = path.last()
            && let Some(next) = from(*last).filter(|next| next != last)
        {
            path.push(next);
        }
        path.reverse();
        path
    }
}

/// The fate of a node that an edge leads to.
struct Found {
    is_new: bool,
    /// The search ends here.
    is_last: bool,
}

/// Calls `visit` for the roots and for each edge from a node that is new, those that are nearer to a root first.
fn search(graph: &Csr, roots: &[u32], mut visit: impl FnMut(Option<u32>, u32) -> Found) {
    let mut queue = Vec::new();
    for &root in roots.iter().filter(|root| **root < graph.nodes) {
        let Found { is_new, is_last } = visit(None, root);
        if is_last {
            return;
        }
        // A node that leads nowhere need not wait for its turn.
        if is_new && graph.sources.has(root) {
            queue.push(root);
        }
    }
    let mut at = 0;
    while let Some(node) = queue.get(at).copied() {
        for target in graph.targets(node) {
            let Found { is_new, is_last } = visit(Some(node), target);
            if is_last {
                return;
            }
            if is_new && graph.sources.has(target) {
                queue.push(target);
            }
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_as_long_as_distances_and_follow_edges() {
        let edges = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 0), (4, 5), (6, 5), (7, 9)];
        let graph = Csr::of(8, &edges);
        for roots in [&[0][..], &[4, 6, 0], &[6, 4, 2], &[5], &[], &[7, 20]] {
            let all: Vec<u32> = (0..8).collect();
            let (paths, distances) = (Paths::of(&graph, roots, &all), distances(&graph, roots));
            for node in 0..8 {
                let path = paths.to(node);
                assert_eq!(path.len(), distances[node as usize] as usize, "{roots:?} {node}");
                for wanted in [&[node][..], &[node, node, (node + 3) % 8, 99]] {
                    assert_eq!(path, Paths::of(&graph, roots, wanted).to(node), "the rest makes no difference");
                }
                assert!(path.first().is_none_or(|first| roots.contains(first)));
                assert!(path.windows(2).all(|pair| edges.contains(&(pair[0], pair[1]))), "{path:?}");
            }
        }
        assert_eq!(Paths::of(&graph, &[6, 4], &[5]).to(5), [6, 5], "the first root wins");
        assert_eq!(Paths::of(&graph, &[0], &[99]).to(99), [0; 0]);
    }
}
