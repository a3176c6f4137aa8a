//! Names that stay different from each other when case is ignored.

use std::collections::{HashMap, HashSet};

/// The names that were given so far.
#[derive(Debug, Default)]
pub struct UniqueNames {
    /// In lower case.
    taken: HashSet<String>,
    /// For a name that was asked for more than once: the number that may be free next.
    next: HashMap<String, u32>,
}

impl UniqueNames {
    /// The name, or the name with the first number from 2 that makes it differ from all before it.
    pub fn add(&mut self, name: String) -> String {
        let lower = name.to_lowercase();
        if self.taken.insert(lower.clone()) {
            return name;
        }
        let next = self.next.entry(lower.clone()).or_insert(2);
        loop {
            let number = *next;
            *next += 1;
            if self.taken.insert(format!("{lower}_{number}")) {
                return format!("{name}_{number}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_number_is_taken() {
        let mut names = UniqueNames::default();
        for (asked, given) in
            [("a", "a"), ("a_2", "a_2"), ("a", "a_3"), ("a_3", "a_3_2"), ("A", "A_4"), ("b", "b"), ("a", "a_5")]
        {
            assert_eq!(names.add(asked.to_owned()), given);
        }
    }

    /// A search from 2 on for each name takes minutes.
    #[test]
    fn a_hundred_thousand_equal_names_take_no_time() {
        let mut names = UniqueNames::default();
        let last = (0..100_000).map(|_| names.add("same".into())).last();
        assert_eq!(last.as_deref(), Some("same_100000"));
    }
}
