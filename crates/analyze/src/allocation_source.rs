//! Which kind of samples allocations are counted by, where a recording has several that stand for the same bytes.

/// The kinds of samples, the best first, those of one rank together. The view `allocation_source` has the same order.
pub const SOURCES: [(&str, u8); 5] =
    [("object", 1), ("sampled", 2), ("object_high", 3), ("object_low", 3), ("tick", 4)];

/// The rank of a kind of samples, by the word in the column `source`; those of the lowest rank that a recording has count.
/// `None` for what stands for no bytes.
pub fn rank(source: &str) -> Option<u8> {
    SOURCES.iter().find(|(word, _)| *word == source).map(|(_, rank)| *rank)
}
