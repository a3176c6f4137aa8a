//! The lifetimes of two recordings side by side.

use std::collections::BTreeMap;

use super::groups::GroupRow;
use super::names::Group;
use super::sums::Sums;

/// The fate of the allocations of a group in two recordings.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeRow {
    /// Type and method.
    pub group: Group,
    /// In the first recording; no bytes when the group is not there.
    pub base: Sums,
    /// In the second.
    pub now: Sums,
}

/// The groups of two recordings, those first whose bytes changed most: bytes that died in gen 2, LOH or POH or are alive at the end, and
/// then those allocated. Both have to be made with the same [`By`](super::By).
pub fn changes(base: Vec<GroupRow>, now: Vec<GroupRow>) -> Vec<ChangeRow> {
    let mut all: BTreeMap<Group, [Sums; 2]> = BTreeMap::new();
    for (rows, side) in [(base, 0), (now, 1)] {
        for GroupRow { group, sums } in rows {
            if let Some(of_side) = all.entry(group).or_default().get_mut(side) {
                *of_side = sums;
            }
        }
    }
    let mut rows: Vec<ChangeRow> = all.into_iter().map(|(group, [base, now])| ChangeRow { group, base, now }).collect();
    let old = |sums: &Sums| sums.died_old.saturating_add(sums.alive);
    rows.sort_by_key(|row| {
        let ChangeRow { base, now, .. } = row;
        std::cmp::Reverse((old(base).abs_diff(old(now)), base.allocated.abs_diff(now.allocated)))
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_recordings_stand_side_by_side() {
        let sums = |allocated, died_old| {
            let mut sums = Sums::default();
            (sums.allocated, sums.died_old) = (allocated, died_old);
            sums
        };
        let row = |name: &str, allocated, died_old| GroupRow {
            group: Group { type_name: name.into(), ..Group::default() },
            sums: sums(allocated, died_old),
        };
        let base = vec![row("same", 5, 1), row("less", 90, 0), row("left", 7, 7)];
        let now = vec![row("new", 40, 30), row("same", 5, 1), row("less", 10, 0)];
        let found: Vec<_> = changes(base, now)
            .into_iter()
            .map(|row| (row.group.type_name, row.base.allocated, row.now.allocated))
            .collect();
        let expected = [("new", 0, 40), ("left", 7, 0), ("less", 90, 10), ("same", 5, 5)];
        assert_eq!(found, expected.map(|(name, base, now)| (name.to_owned(), base, now)));
    }
}
