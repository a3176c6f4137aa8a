//! The places of call sites in a walk of their tree, outermost frames first.

use super::nodes::Node;
use crate::fact::{CallsiteId, FrameId};

/// The place of a node in the walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The place of the node itself.
    pub first: u32,
    /// The place of the last node below it; its own when there is none.
    pub last: u32,
    /// Whether a node above it is in the same group: the method calls itself.
    pub is_recursive: bool,
}

/// The places of the nodes of a part. Their numbers begin at `base + 1`, and so do the places. `group` is the group of
/// each, from a small set of numbers.
pub fn places(nodes: &[Node], base: CallsiteId, group: &[FrameId]) -> Vec<Place> {
    let index = |parent: CallsiteId| (parent.wrapping_sub(base).wrapping_sub(1)) as usize;
    // A parent comes before its children: backwards each node knows how many are below it.
    let mut sizes = vec![1u32; nodes.len()];
    for (at, node) in nodes.iter().enumerate().rev() {
        let size = sizes.get(at).copied().unwrap_or(1);
        if let Some(parent) = sizes.get_mut(index(node.parent)).filter(|_| node.parent > base) {
            *parent = parent.saturating_add(size);
        }
    }
    // Forwards each takes the next free place below its parent.
    let mut places = vec![Place::default(); nodes.len()];
    let mut next = vec![0u32; nodes.len()];
    let mut next_root = base.wrapping_add(1);
    let mut order = vec![0u32; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        let size = sizes.get(at).copied().unwrap_or(1);
        let free = match next.get_mut(index(node.parent)) {
            Some(next) if node.parent > base => next,
            _ => &mut next_root,
        };
        let first = *free;
        *free = first.wrapping_add(size);
        if let Some(place) = places.get_mut(at) {
            *place = Place { first, last: first.wrapping_add(size - 1), is_recursive: false };
        }
        if let Some(next) = next.get_mut(at) {
            *next = first.wrapping_add(1);
        }
        if let Some(entry) = order.get_mut(index(first)) {
            *entry = at as u32;
        }
    }
    // In the order of the walk the frames above a node are those on the way.
    let groups = group.iter().copied().max().map_or(0, |highest| highest as usize + 1);
    let mut above = vec![0u32; groups];
    let mut way: Vec<usize> = Vec::new();
    for at in order.iter().map(|at| *at as usize) {
        let (Some(node), Some(group)) = (nodes.get(at), group.get(at)) else { continue };
        for left in way.drain((node.depth as usize).min(way.len())..) {
            if let Some(count) = above.get_mut(left) {
                *count -= 1;
            }
        }
        if let (Some(count), Some(place)) = (above.get_mut(*group as usize), places.get_mut(at)) {
            place.is_recursive = *count > 0;
            *count += 1;
            way.push(*group as usize);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_node_lies_between_its_places() {
        // 101 -> 102 -> 104, 101 -> 105, and another root: 103 -> 106
        let parents = [0, 101, 0, 102, 101, 103];
        let depths = [0, 1, 0, 2, 1, 1];
        let nodes: Vec<Node> =
            parents.into_iter().zip(depths).map(|(parent, depth)| Node { parent, depth, ..Node::default() }).collect();
        let found = places(&nodes, 100, &[0, 1, 0, 0, 2, 3]);
        let place = |first, last, is_recursive| Place { first, last, is_recursive };
        assert_eq!(
            found,
            [
                place(101, 104, false),
                place(102, 103, false),
                place(105, 106, false),
                place(103, 103, true),
                place(104, 104, false),
                place(106, 106, false),
            ]
        );
    }

    /// Random trees against what the words mean.
    #[test]
    fn random_trees_agree_with_their_definition() {
        let mut state = 88172645463325252u64;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for _ in 0..200 {
            let count = 1 + random(60) as u32;
            let base = random(1000) as u32;
            let mut nodes: Vec<Node> = Vec::new();
            for n in 0..count {
                let parent = if random(6) == 0 { 0 } else { random(u64::from(n) + 1) as u32 };
                let depth = if parent == 0 { 0 } else { nodes[parent as usize - 1].depth + 1 };
                nodes.push(Node { parent: if parent == 0 { 0 } else { base + parent }, depth, ..Node::default() });
            }
            let group: Vec<u32> = nodes.iter().map(|_| random(5) as u32).collect();
            let found = places(&nodes, base, &group);
            let above = |mut at: usize| {
                let mut way = Vec::new();
                while nodes[at].parent != 0 {
                    at = (nodes[at].parent - base - 1) as usize;
                    way.push(at);
                }
                way
            };
            let mut firsts: Vec<u32> = found.iter().map(|place| place.first).collect();
            firsts.sort_unstable();
            assert_eq!(firsts, (base + 1..=base + count).collect::<Vec<_>>());
            for (at, place) in found.iter().enumerate() {
                let way = above(at);
                assert_eq!(place.is_recursive, way.iter().any(|up| group[*up] == group[at]));
                for (other, of_other) in found.iter().enumerate() {
                    let is_above = other == at || way.contains(&other);
                    assert_eq!(of_other.first <= place.first && place.first <= of_other.last, is_above);
                }
            }
        }
    }
}
