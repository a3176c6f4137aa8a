//! Sorted pieces of the address space that do not overlap, each with a value.

/// A piece of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span<T> {
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
    pub value: T,
}

/// Sorts pieces; of bytes that are in several, the piece with the lowest start has them.
pub(crate) fn disjoint<T: Copy>(mut spans: Vec<Span<T>>) -> Vec<Span<T>> {
    make_disjoint(&mut spans);
    spans
}

/// [`disjoint`] in place.
pub(crate) fn make_disjoint<T: Copy>(spans: &mut Vec<Span<T>>) {
    if !spans.is_sorted_by_key(|span| span.start) {
        spans.sort_by_key(|span| span.start);
    }
    let mut end = 0;
    spans.retain_mut(|span| {
        span.start = span.start.max(end);
        end = end.max(span.end);
        span.start < span.end
    });
}

/// Joins neighbours that have the same value.
pub(crate) fn join<T: Copy + PartialEq>(spans: &mut Vec<Span<T>>) {
    spans.dedup_by(|next, last| {
        let fits = last.end == next.start && last.value == next.value;
        if fits {
            last.end = next.end;
        }
        fits
    });
}

/// A walk along sorted pieces that do not overlap. Questions about rising addresses cost one pass over the pieces
/// together.
pub(crate) struct Walk<'s, T> {
    spans: &'s [Span<T>],
}

impl<'s, T: Copy> Walk<'s, T> {
    pub fn along(spans: &'s [Span<T>]) -> Walk<'s, T> {
        Walk { spans }
    }

    /// The value at an address.
    pub fn at(&mut self, address: u64) -> Option<T> {
        while let Some((first, rest)) = self.spans.split_first()
            && first.end <= address
        {
            self.spans = rest;
        }
        self.spans.first().filter(|span| span.start <= address).map(|span| span.value)
    }

    /// Cuts `start..end` at the pieces: calls `each` with each part, and with the value of the piece that it lies in.
    pub fn cut(&mut self, start: u64, end: u64, mut each: impl FnMut(u64, u64, Option<T>)) {
        while let Some((first, rest)) = self.spans.split_first()
            && first.end <= start
        {
            self.spans = rest;
        }
        let mut at = start;
        for span in self.spans.iter().take_while(|span| span.start < end) {
            let (from, to) = (span.start.max(at), span.end.min(end));
            if at < from {
                each(at, from, None);
            }
            each(from, to, Some(span.value));
            at = to;
        }
        if at < end {
            each(at, end, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64, value: char) -> Span<char> {
        Span { start, end, value }
    }

    #[test]
    fn pieces_are_cut_where_they_meet() {
        let spans = [span(10, 20, 'a'), span(20, 25, 'b'), span(30, 40, 'c')];
        let mut walk = Walk::along(&spans);
        let mut cut = |start, end| {
            let mut parts = Vec::new();
            walk.cut(start, end, |from, to, value| parts.push((from, to, value)));
            parts
        };
        assert_eq!(cut(0, 5), [(0, 5, None)]);
        assert_eq!(cut(5, 22), [(5, 10, None), (10, 20, Some('a')), (20, 22, Some('b'))]);
        assert_eq!(cut(22, 50), [(22, 25, Some('b')), (25, 30, None), (30, 40, Some('c')), (40, 50, None)]);
        assert_eq!(cut(50, 51), [(50, 51, None)]);
    }

    #[test]
    fn each_byte_has_one_value() {
        let spans =
            disjoint(vec![span(5, 30, 'b'), span(0, 10, 'a'), span(8, 9, 'c'), span(30, 35, 'b'), span(40, 40, 'd')]);
        assert_eq!(spans, [span(0, 10, 'a'), span(10, 30, 'b'), span(30, 35, 'b')]);
        let mut joined = spans;
        join(&mut joined);
        assert_eq!(joined, [span(0, 10, 'a'), span(10, 35, 'b')]);
    }
}
