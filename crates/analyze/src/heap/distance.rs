//! How far objects are from the roots: a breadth-first search.
#![allow(clippy::indexing_slicing, reason = "every index is a node of the graph")]

use super::csr::{Csr, NOWHERE};

/// References from a root to each node: 1 for a root's own, 0 when no root leads to it.
pub(super) fn distances(graph: &Csr, roots: &[u32]) -> Vec<u32> {
    let mut distances = vec![0u32; graph.nodes() as usize];
    search(graph, roots, |from, node| {
        let is_new = distances[node as usize] == 0;
        if is_new {
            distances[node as usize] = from.map_or(0, |from| distances[from as usize]) + 1;
        }
        Found { is_new, is_last: false }
    });
    distances
}

/// From which node each is reached first, of those that are nearest to a root: shortest paths. Of several roots the first one wins.
#[derive(Clone, Debug)]
pub struct Paths(Vec<u32>);

impl Paths {
    /// To all nodes that these roots lead to; to nearer ones than `wanted` and to it where one is given.
    pub fn of(graph: &Csr, roots: &[u32], wanted: Option<u32>) -> Paths {
        let mut sources = vec![NOWHERE; graph.nodes() as usize];
        search(graph, roots, |from, node| {
            let is_new = sources[node as usize] == NOWHERE;
            if is_new {
                // A root's own is reached from itself.
                sources[node as usize] = from.unwrap_or(node);
            }
            Found { is_new, is_last: wanted == Some(node) }
        });
        Paths(sources)
    }

    /// The nodes of the path to `target`, both ends included; empty when no root leads to it.
    pub fn to(&self, target: u32) -> Vec<u32> {
        let from = |node: u32| self.0.get(node as usize).copied().filter(|from| *from != NOWHERE);
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

/// What became of a node that an edge leads to.
struct Found {
    is_new: bool,
    /// The search ends here.
    is_last: bool,
}

/// Calls `visit` for the roots and for each edge from a node that is new, those that are nearer to a root first.
fn search(graph: &Csr, roots: &[u32], mut visit: impl FnMut(Option<u32>, u32) -> Found) {
    let mut queue = Vec::new();
    for &root in roots.iter().filter(|root| **root < graph.nodes()) {
        let Found { is_new, is_last } = visit(None, root);
        if is_last {
            return;
        }
        // What leads nowhere need not wait for its turn.
        if is_new && graph.sources().has(root) {
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
            if is_new && graph.sources().has(target) {
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
            let (paths, distances) = (Paths::of(&graph, roots, None), distances(&graph, roots));
            for node in 0..8 {
                let path = paths.to(node);
                assert_eq!(path.len(), distances[node as usize] as usize, "{roots:?} {node}");
                assert_eq!(path, Paths::of(&graph, roots, Some(node)).to(node), "the rest makes no difference");
                assert!(path.first().is_none_or(|first| roots.contains(first)));
                assert!(path.windows(2).all(|pair| edges.contains(&(pair[0], pair[1]))), "{path:?}");
            }
        }
        assert_eq!(Paths::of(&graph, &[6, 4], None).to(5), [6, 5], "the first root wins");
        assert_eq!(Paths::of(&graph, &[0], None).to(99), [0; 0]);
    }
}
