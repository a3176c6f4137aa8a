//! Finds the code at an address of a process, at a time.

use crate::prelude::*;

/// Ranges that are looked at for one address, at most: they overlap only where code follows code.
const MAX_OVERLAPS: usize = 64;

/// Memory between code that is known, and what lies there belongs to the same runtime. It reserves at least this much
/// for code at a time.
const MAX_GAP: u64 = 64 << 10;

/// Where an address lies that no code has at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// In code that had ended by then.
    Ended,
    /// Between other code, or where other code came later.
    Among,
    /// Elsewhere.
    Away,
}

/// A range of addresses and who had it when.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// From when on.
    pub from_ns: i64,
    /// Until when.
    pub until_ns: i64,
    /// An index chosen by the map's owner.
    pub index: u32,
}

impl Span {
    /// A range that belongs to `index` all the time; `None` when it is empty.
    pub fn new(start: u64, size: u64, index: usize) -> Option<Span> {
        let index = u32::try_from(index).ok()?;
        let end = start.saturating_add(size);
        (start < end).then_some(Span { start, end, from_ns: i64::MIN, until_ns: i64::MAX, index })
    }
}

/// Ranges of addresses by process.
#[derive(Debug, Default)]
pub struct CodeMap {
    processes: Map<ProcessKey, Ranges>,
}

#[derive(Debug, Default)]
struct Ranges {
    spans: Vec<Span>,
    /// The highest end of the spans up to each.
    reach: Vec<u64>,
}

impl CodeMap {
    /// The map of spans.
    pub fn new(spans: impl Iterator<Item = (ProcessKey, Span)>) -> CodeMap {
        let mut map = CodeMap::default();
        for (process, span) in spans {
            map.processes.entry(process).or_default().spans.push(span);
        }
        for Ranges { spans, reach } in map.processes.values_mut() {
            spans.sort_by_key(|span| (span.start, span.from_ns));
            let mut highest = 0;
            reach.extend(spans.iter().map(|span| {
                highest = span.end.max(highest);
                highest
            }));
        }
        map
    }

    /// The index of the code at an address at a time; of several the one that begins last.
    pub fn find(&self, process: ProcessKey, address: u64, ts_ns: i64) -> Option<usize> {
        let Ranges { spans, reach } = self.processes.get(&process)?;
        let behind = spans.partition_point(|span| span.start <= address);
        let before = spans.iter().zip(reach).take(behind).rev().take(MAX_OVERLAPS);
        let covering = before.take_while(|(_, reach)| **reach > address).map(|(span, _)| span);
        let mut covering = covering.filter(|span| span.end > address);
        let found = covering.find(|span| span.from_ns <= ts_ns && ts_ns < span.until_ns)?;
        Some(found.index as usize)
    }

    /// The code at a return address; where no code begins, that which ends there, because the address behind a call may
    /// be the end of its method.
    pub fn find_return(&self, process: ProcessKey, address: u64, ts_ns: i64) -> Option<usize> {
        let found = self.find(process, address, ts_ns);
        found.or_else(|| self.find(process, address.checked_sub(1)?, ts_ns))
    }

    /// Where an address lies that no code has at a time.
    pub fn around(&self, process: ProcessKey, address: u64, ts_ns: i64) -> Around {
        let Some(Ranges { spans, reach }) = self.processes.get(&process) else { return Around::Away };
        let behind = spans.partition_point(|span| span.start <= address);
        let before = spans.iter().zip(reach).take(behind).rev().take(MAX_OVERLAPS);
        let covering = before.take_while(|(_, reach)| **reach >= address).map(|(span, _)| span);
        // The address behind a call may be the end of its method.
        let mut covering = covering.filter(|span| span.end >= address).peekable();
        let is_covered = covering.peek().is_some();
        if covering.any(|span| span.until_ns <= ts_ns) {
            return Around::Ended;
        }
        let is_near = |gap: Option<u64>| gap.is_some_and(|gap| gap <= MAX_GAP);
        let end = behind.checked_sub(1).and_then(|last| reach.get(last));
        let next = spans.get(behind).map(|span| span.start);
        let is_between = is_near(end.and_then(|end| address.checked_sub(*end)))
            && is_near(next.and_then(|next| next.checked_sub(address)));
        if is_covered || is_between { Around::Among } else { Around::Away }
    }

    /// Whether there is anything in a process.
    pub fn has(&self, process: ProcessKey) -> bool {
        self.processes.contains_key(&process)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_address_and_time_decide() {
        let [one, other] = [1, 2].map(|id| ProcessKey { id, incarnation: 0 });
        let span = |start, size, from_ns, until_ns, index| Span {
            from_ns,
            until_ns,
            ..Span::new(start, size, index).unwrap()
        };
        let map = CodeMap::new(
            [
                (one, span(0x1000, 0x1000, i64::MIN, i64::MAX, 0)),
                (one, span(0x1100, 0x10, 10, 20, 1)),
                (one, span(0x1100, 0x20, 20, 30, 2)),
                (one, span(0x3000, 0x10, i64::MIN, 50, 3)),
                (other, span(0x3000, 0x10, 5, i64::MAX, 4)),
            ]
            .into_iter(),
        );
        assert_eq!(map.find(one, 0x1000, 0), Some(0));
        assert_eq!(map.find(one, 0x1FFF, 0), Some(0));
        assert_eq!(map.find(one, 0x2000, 0), None);
        assert_eq!(map.find_return(one, 0x2000, 0), Some(0));
        assert_eq!(map.find_return(one, 0x2001, 0), None);
        assert_eq!([9, 10, 19, 20, 29, 30].map(|ts| map.find(one, 0x1108, ts).unwrap()), [0, 1, 1, 2, 2, 0]);
        assert_eq!([15, 25].map(|ts| map.find(one, 0x1118, ts).unwrap()), [0, 2]);
        assert_eq!((map.find(one, 0x3000, 49), map.find(one, 0x3000, 50)), (Some(3), None));
        assert_eq!((map.find(other, 0x3000, 4), map.find(other, 0x3000, 5)), (None, Some(4)));
        assert_eq!(map.find(ProcessKey { id: 1, incarnation: 1 }, 0x1000, 0), None);
        assert!(Span::new(5, 0, 0).is_none());
    }

    #[test]
    fn what_lies_around_an_address_is_known() {
        let process = ProcessKey { id: 1, incarnation: 0 };
        let span = |start, size, from_ns, until_ns| Span { from_ns, until_ns, ..Span::new(start, size, 0).unwrap() };
        let spans = [
            span(0x10_0000, 0x100, i64::MIN, 50),
            span(0x10_1000, 0x100, 70, i64::MAX),
            span(0x10_2000, 0x100, i64::MIN, i64::MAX),
            span(0x40_0000, 0x100, i64::MIN, i64::MAX),
        ];
        let map = CodeMap::new(spans.into_iter().map(|span| (process, span)));
        let of = |address, ts_ns| map.around(process, address, ts_ns);
        assert_eq!((of(0x10_0010, 60), of(0x10_0100, 60)), (Around::Ended, Around::Ended));
        // Code came later, and between two pieces of code.
        assert_eq!(
            (of(0x10_1010, 60), of(0x10_1800, 60), of(0x10_0800, 0)),
            (Around::Among, Around::Among, Around::Among)
        );
        // Far from code on one side, behind all of it, before it, and in another process.
        for address in [0x10_2200, 0x20_0000, 0x40_0200, 0x1000, 0, u64::MAX] {
            assert_eq!(of(address, 60), Around::Away, "{address:#x}");
        }
        assert_eq!(map.around(ProcessKey { id: 2, incarnation: 0 }, 0x10_0800, 60), Around::Away);
    }
}
