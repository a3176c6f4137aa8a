//! Objects in the order of their addresses.
//!
//! Objects lie in short sorted lists, one behind the other. What a collection takes out and puts back are long runs of
//! neighbours: these are copied list by list, where a search tree would look for each object by itself.

/// Objects of a list at most.
const LIST: usize = 512;

/// An address and the number of the object that lies there.
pub(super) type Row = (u64, u32);

/// At most one object at each address.
#[derive(Debug, Default)]
pub(super) struct ByAddress {
    /// None of them is empty.
    lists: Vec<Vec<Row>>,
}

impl ByAddress {
    /// All of them, in order.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.lists.iter().flatten().copied()
    }

    /// Takes out the objects at `first` and up to `last`, which is one of them.
    pub fn take(&mut self, first: u64, last: u64, into: &mut Vec<Row>) {
        let from = self.lists.partition_point(|list| list.last().is_some_and(|row| row.0 < first));
        let mut emptied = from..from;
        for (list, place) in self.lists.iter_mut().zip(0..).skip(from) {
            let begin = list.partition_point(|row| row.0 < first);
            let end = list.partition_point(|row| row.0 <= last);
            if begin >= end {
                break;
            }
            let is_behind = end < list.len();
            into.extend(list.drain(begin..end));
            if list.is_empty() {
                emptied = if emptied.is_empty() { place..place + 1 } else { emptied.start..place + 1 };
            }
            if is_behind {
                break;
            }
        }
        self.lists.drain(emptied);
    }

    /// Puts objects in, which come in the order of addresses. `each` gets the object that lies at an address, and those
    /// that come to it. It says which one lies there from then on.
    pub fn put(&mut self, rows: &[Row], mut each: impl FnMut(Option<u32>, &[Row]) -> Option<u32>) {
        if rows.is_empty() {
            return;
        }
        let mut rest = rows;
        let mut old = std::mem::take(&mut self.lists).into_iter().peekable();
        loop {
            let list = old.next().unwrap_or_default();
            // The last list takes all that comes behind it.
            let next = old.peek().and_then(|list| list.first());
            let (here, later) = match next {
                Some(next) => rest.split_at(rest.partition_point(|row| row.0 < next.0)),
                None => (rest, Default::default()),
            };
            rest = later;
            let is_last = next.is_none();
            if here.is_empty() {
                self.push(list);
            } else {
                for list in merged(&list, here, &mut each).chunks(LIST) {
                    self.push(list.to_vec());
                }
            }
            if is_last {
                return;
            }
        }
    }

    /// Adds a list behind all others. Short ones are joined.
    fn push(&mut self, list: Vec<Row>) {
        match self.lists.last_mut() {
            _ if list.is_empty() => {}
            Some(last) if last.len() + list.len() <= LIST => last.extend(list),
            _ => self.lists.push(list),
        }
    }
}

/// A list with the objects that come to its addresses.
fn merged(list: &[Row], rows: &[Row], each: &mut impl FnMut(Option<u32>, &[Row]) -> Option<u32>) -> Vec<Row> {
    let mut merged = Vec::with_capacity(list.len() + rows.len());
    let mut left = list;
    for group in rows.chunk_by(|a, b| a.0 == b.0) {
        let Some((address, _)) = group.first().copied() else { continue };
        let before = left.iter().take_while(|row| row.0 < address).count();
        let (smaller, others) = left.split_at(before);
        merged.extend_from_slice(smaller);
        let (former, others) = match others.split_first() {
            Some((row, others)) if row.0 == address => (Some(row.1), others),
            _ => (None, others),
        };
        left = others;
        merged.extend(each(former, group).map(|index| (address, index)));
    }
    merged.extend_from_slice(left);
    merged
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tests::dice::Dice;

    #[test]
    fn it_does_what_a_map_does() {
        let mut dice = Dice(11);
        let (mut lists, mut map) = (ByAddress::default(), BTreeMap::new());
        let (mut taken_rows, mut met) = (0, 0);
        for step in 0..600u32 {
            let base = dice.below(3) * 20_000;
            let mut rows: Vec<Row> = (0..dice.below(3000)).map(|n| (base + dice.below(20_000), n as u32)).collect();
            rows.sort_unstable();
            // Where objects meet, the sum of their numbers stays, or nothing.
            let keep = |former: Option<u32>, group: &[Row]| {
                let sum = group.iter().fold(former.unwrap_or(0), |sum, row| sum.wrapping_add(row.1));
                (group.len() + usize::from(former.is_some()) < 4).then_some(sum)
            };
            for group in rows.chunk_by(|a, b| a.0 == b.0) {
                let former = map.remove(&group[0].0);
                met += usize::from(former.is_some());
                map.extend(keep(former, group).map(|index| (group[0].0, index)));
            }
            lists.put(&rows, keep);
            for _ in 0..dice.below(4) {
                let first = dice.below(60_000);
                let last = match dice.below(4) {
                    0 => first,
                    1 => u64::MAX,
                    _ => first + dice.below(20_000),
                };
                let first = if step % 50 == 0 { 0 } else { first };
                let mut taken = Vec::new();
                lists.take(first, last, &mut taken);
                let expected: Vec<Row> = map.range(first..=last).map(|(address, index)| (*address, *index)).collect();
                map.retain(|address, _| !(first..=last).contains(address));
                taken_rows += taken.len();
                assert_eq!(taken, expected);
            }
            assert!(lists.rows().eq(map.iter().map(|(address, index)| (*address, *index))));
            assert!(lists.lists.iter().all(|list| !list.is_empty() && list.len() <= LIST));
        }
        assert!(taken_rows > 10_000 && met > 10_000, "{taken_rows} {met}");
    }

    #[test]
    fn short_lists_are_joined() {
        let mut lists = ByAddress::default();
        lists.put(&(0..100_000).map(|n| (n, 0)).collect::<Vec<Row>>(), |_, rows| rows.first().map(|row| row.1));
        for n in 0..99_000 {
            if n % 500 != 0 {
                lists.take(n, n, &mut Vec::new());
            }
        }
        lists.put(&[(99_999, 1)], |former, _| former);
        assert_eq!(lists.rows().count(), 198 + 1000);
        assert!(lists.lists.len() < 8, "{} lists", lists.lists.len());
    }
}
