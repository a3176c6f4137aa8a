//! Which recordings and packs become one pack.

/// The size of a pack, and the number of threads that make one.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of all files of a pack, as they were before.
    pub bytes: u64,
    /// Recordings of a pack.
    pub recordings: usize,
    /// Threads that merge tables.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 4 << 30, recordings: 8192, threads: 2 }
    }
}

/// A recording with an entry of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Single {
    /// When it began.
    pub(super) start: String,
    pub(super) key: String,
    pub(super) bytes: u64,
}

/// A pack that there is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Known {
    pub(super) bytes: u64,
    pub(super) name: String,
    pub(super) recordings: usize,
}

/// The recordings and packs that become one pack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) singles: Vec<String>,
    pub(super) packs: Vec<String>,
    bytes: u64,
    recordings: usize,
}

/// The next pack to be made; nothing if all is well. Recordings come together in the order of their begin, so that
/// those that expire together lie together, up to the limits of a pack. The last group, which does not fill a pack,
/// takes packs with it that are not full, the smallest first, each up to twice as large as what is there already: so a
/// row is written again only when what it lies with has grown by half.
pub(super) fn next(mut singles: Vec<Single>, mut packs: Vec<Known>, limits: &Limits) -> Option<Group> {
    singles.sort();
    let mut group = Group::default();
    for single in &singles {
        let is_full = group.recordings >= limits.recordings || group.bytes.saturating_add(single.bytes) > limits.bytes;
        if is_full && group.recordings > 0 {
            break;
        }
        group.singles.push(single.key.clone());
        group.bytes = group.bytes.saturating_add(single.bytes);
        group.recordings += 1;
    }
    let is_last = group.recordings == singles.len();
    if is_last {
        packs.retain(|pack| pack.bytes < limits.bytes / 2 && pack.recordings < limits.recordings / 2);
        packs.sort();
        for pack in packs {
            let (bytes, recordings) = (group.bytes.saturating_add(pack.bytes), group.recordings + pack.recordings);
            let is_near = group.recordings == 0 || pack.bytes / 2 <= group.bytes;
            if !is_near || bytes > limits.bytes || recordings > limits.recordings {
                break;
            }
            group.packs.push(pack.name);
            (group.bytes, group.recordings) = (bytes, recordings);
        }
    }
    // One by itself would only be written again.
    (group.singles.len() + group.packs.len() > 1).then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { bytes: 1000, recordings: 10, threads: 1 };

    fn single(start: &str, key: &str, bytes: u64) -> Single {
        Single { start: start.into(), key: key.into(), bytes }
    }

    fn known(name: &str, bytes: u64, recordings: usize) -> Known {
        Known { name: name.into(), bytes, recordings }
    }

    fn names(group: Option<Group>) -> String {
        group.map_or("nothing".into(), |group| format!("{}|{}", group.singles.join(""), group.packs.join("")))
    }

    #[test]
    fn recordings_come_together_in_the_order_of_their_begin() {
        let singles = vec![single("3", "a", 400), single("1", "c", 400), single("2", "b", 400)];
        assert_eq!(names(next(singles.clone(), Vec::new(), &LIMITS)), "cb|");
        assert_eq!(names(next(singles[..1].to_vec(), Vec::new(), &LIMITS)), "nothing");
        assert_eq!(names(next(singles.clone(), Vec::new(), &Limits { recordings: 2, bytes: 9000, threads: 1 })), "cb|");
        // One that is too large for any pack is one of its own, and stays as it is.
        assert_eq!(names(next(vec![single("1", "a", 2000)], Vec::new(), &LIMITS)), "nothing");
    }

    #[test]
    fn packs_that_are_not_much_larger_are_written_again() {
        let few = vec![single("1", "a", 50), single("2", "b", 50)];
        assert_eq!(names(next(few.clone(), vec![known("P", 200, 3), known("Q", 201, 3)], &LIMITS)), "ab|PQ");
        assert_eq!(names(next(few.clone(), vec![known("P", 202, 3)], &LIMITS)), "ab|");
        assert_eq!(names(next(few, vec![known("P", 200, 5)], &LIMITS)), "ab|", "it is full");
        assert_eq!(names(next(Vec::new(), vec![known("P", 200, 3), known("Q", 300, 2)], &LIMITS)), "|PQ");
        assert_eq!(names(next(Vec::new(), vec![known("P", 100, 3), known("Q", 300, 2)], &LIMITS)), "nothing");
    }
}
