//! How far objects are from the roots: a breadth-first search.
#![allow(clippy::indexing_slicing, reason = "every index is a node of the graph")]

use super::csr::Csr;

/// References from a root to each node: 1 for a root's own, 0 when no root leads to it.
pub(super) fn distances(graph: &Csr, roots: &[u32]) -> Vec<u32> {
    search(graph, roots, None, |_, _| {})
}

/// The nodes of a shortest path from a root to `target`, both included; empty when no root leads to it. Of several roots the
/// first in `roots` wins.
pub(super) fn shortest_path(graph: &Csr, roots: &[u32], target: u32) -> Vec<u32> {
    let mut sources = vec![0u32; graph.nodes() as usize];
    let distances = search(graph, roots, Some(target), |source, node| sources[node as usize] = source);
    let Some(length) = distances.get(target as usize).filter(|distance| **distance > 0) else { return Vec::new() };
    let mut path = vec![target];
    for _ in 1..*length {
        let last = path[path.len() - 1];
        path.push(sources[last as usize]);
    }
    path.reverse();
    path
}

/// Calls `found` for each node that is found from another one, up to the one that is looked for.
fn search(graph: &Csr, roots: &[u32], wanted: Option<u32>, mut found: impl FnMut(u32, u32)) -> Vec<u32> {
    let count = graph.nodes();
    let mut distances = vec![0u32; count as usize];
    let mut queue = Vec::new();
    for &root in roots.iter().filter(|root| **root < count) {
        if distances[root as usize] == 0 {
            distances[root as usize] = 1;
            queue.push(root);
        }
    }
    let mut at = 0;
    let is_found = |distances: &[u32]| {
        wanted.and_then(|wanted| distances.get(wanted as usize)).is_some_and(|distance| *distance > 0)
    };
    while at < queue.len() && !is_found(&distances) {
        let node = queue[at];
        for target in graph.targets(node) {
            if distances[target as usize] == 0 {
                distances[target as usize] = distances[node as usize] + 1;
                found(node, target);
                queue.push(target);
            }
        }
        at += 1;
    }
    distances
}
