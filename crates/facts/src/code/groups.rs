//! Frames of one name, which are code of one method.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;

/// Numbers of names. The names themselves are not kept: a million of them may begin with the same four thousand
/// letters.
#[derive(Debug, Default)]
pub struct Groups {
    hashers: [RandomState; 2],
    by_hash: HashMap<[u64; 2], u32>,
}

impl Groups {
    /// The number of a name.
    pub fn group_of(&mut self, name: &str) -> u32 {
        let hash = self.hashers.each_ref().map(|hasher| hasher.hash_one(name));
        let next = u32::try_from(self.by_hash.len()).unwrap_or(u32::MAX);
        *self.by_hash.entry(hash).or_insert(next)
    }

    /// Numbers begin again.
    pub fn clear(&mut self) {
        self.by_hash.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_its_number() {
        let mut groups = Groups::default();
        let names: Vec<String> = (0..50_000).map(|n| format!("{}{n}", "x".repeat(100))).collect();
        for _ in 0..2 {
            assert!(names.iter().map(|name| groups.group_of(name)).eq(0..50_000));
        }
        groups.clear();
        assert_eq!([groups.group_of("b"), groups.group_of("a"), groups.group_of("b")], [0, 1, 0]);
    }
}
