//! Some nodes among all, numbered by themselves.
#![allow(clippy::indexing_slicing, reason = "every index is a word of the set")]

/// A set of nodes, a bit each, in which a node's place among those of the set is found at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranks {
    nodes: u32,
    /// A bit for each node.
    pub words: Vec<u64>,
    /// Nodes of the set before each word.
    before: Vec<u32>,
    /// The number of nodes in the set.
    pub count: u32,
}

/// The places of the bits that are set.
fn ones(words: impl Iterator<Item = u64>) -> impl Iterator<Item = u32> {
    (0u32..).zip(words).flat_map(|(at, mut rest)| {
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros())?;
            rest &= rest - 1;
            Some(at * 64 + bit)
        })
    })
}

impl Ranks {
    /// The nodes of `0..nodes` that this says.
    pub fn of(nodes: u32, mut has: impl FnMut(u32) -> bool) -> Ranks {
        let mut words = vec![0u64; nodes.div_ceil(64) as usize];
        for node in 0..nodes {
            words[node as usize / 64] |= u64::from(has(node)) << (node % 64);
        }
        let mut count = 0;
        let before = words
            .iter()
            .map(|word| {
                let before = count;
                count += word.count_ones();
                before
            })
            .collect();
        Ranks { nodes, words, before, count }
    }

    /// The nodes of the set in their order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        ones(self.words.iter().copied())
    }

    /// The nodes that are not in the set in their order.
    pub fn others(&self) -> impl Iterator<Item = u32> + '_ {
        ones(self.words.iter().map(|word| !word)).take((self.nodes - self.count) as usize)
    }

    /// Whether a node is in the set.
    #[inline]
    pub fn has(&self, node: u32) -> bool {
        self.words[node as usize / 64] >> (node % 64) & 1 == 1
    }

    /// The number of nodes of the set before this one.
    #[inline]
    pub fn before(&self, node: u32) -> u32 {
        let (word, bit) = (node as usize / 64, node % 64);
        self.before[word] + (self.words[word] & ((1 << bit) - 1)).count_ones()
    }

    /// The place of a node in the set; `None` when it is not in it.
    #[inline]
    pub fn rank(&self, node: u32) -> Option<u32> {
        self.has(node).then(|| self.before(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_counting() {
        for nodes in [0, 1, 63, 64, 65, 1000] {
            let has = |node: u32| node.is_multiple_of(3) || node % 64 == 63;
            let (ranks, mut count) = (Ranks::of(nodes, has), 0);
            for node in 0..nodes {
                assert_eq!((ranks.has(node), ranks.before(node)), (has(node), count));
                assert_eq!(ranks.rank(node), has(node).then_some(count));
                count += u32::from(has(node));
            }
            assert_eq!(ranks.count, count);
            assert!(ranks.iter().eq((0..nodes).filter(|node| has(*node))));
            assert!(ranks.others().eq((0..nodes).filter(|node| !has(*node))));
        }
    }
}
