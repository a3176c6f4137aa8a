//! The rows of bulk events (ranges, roots, nodes, edges) as packed bytes: one bounds check for all of them. Most events
//! have them row by row; those of ETWClrProfiler have them column by column, each column a list of its own.

use super::decode::{Fit, ShortField};
use super::plan::{Count, Node, Plan};

/// Where the rows of one kind of bulk event lie and what they hold.
#[derive(Clone, Debug, PartialEq)]
pub struct RowLayout {
    /// Bytes before the rows.
    pub head: usize,
    count_at: usize,
    count_width: usize,
    /// Bytes of a row.
    stride: usize,
    /// Width of the last column, when rows lie column by column.
    last_column: Option<usize>,
    /// Offset and width of the wanted fields in a row.
    fields: Vec<(usize, usize)>,
}

/// The whole rows of one event.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// The number of rows that the event announces.
    pub announced: u64,
    len: usize,
    layout: &'a RowLayout,
    bytes: &'a [u8],
}

/// Names, offsets and widths of the fields of a row.
#[derive(Default)]
struct Places<'p> {
    list: Vec<(&'p str, usize, usize)>,
    size: usize,
}

impl<'p> Places<'p> {
    fn add(&mut self, name: &'p str, node: &Node) -> Option<()> {
        let width = node.fixed_size()?;
        self.list.push((name, self.size, width));
        self.size += width;
        Some(())
    }
}

impl RowLayout {
    /// The layout of the list in `plan`, or of the lists behind one count, whose rows hold the fields `wanted` in that
    /// order. `None` when the plan has no such list, or rows or the fields before them vary in size.
    pub fn new(plan: &Plan, wanted: &[&str]) -> Option<RowLayout> {
        let mut head = 0;
        let mut count = None;
        for (index, field) in plan.fields.iter().enumerate() {
            if let Node::List(Count::Slot(slot), element) = &field.node {
                let (count_at, count_width) = count?;
                let mut places = Places::default();
                let mut last_column = None;
                if let Node::Struct(row) = element.as_ref() {
                    row.iter().try_for_each(|inner| places.add(&inner.name, &inner.node))?;
                } else {
                    for column in plan.fields.get(index..).unwrap_or_default() {
                        let Node::List(Count::Slot(same), element) = &column.node else { return None };
                        if same != slot {
                            return None;
                        }
                        places.add(&column.name, element)?;
                        last_column = element.fixed_size();
                    }
                }
                let find = |name: &&str| {
                    let (_, at, width) = places.list.iter().find(|(n, _, _)| n == name)?;
                    Some((*at, *width))
                };
                let fields = wanted.iter().map(find).collect::<Option<Vec<_>>>()?;
                let stride = places.size.max(1);
                return Some(RowLayout { head, count_at, count_width, stride, last_column, fields });
            }
            let width = field.node.fixed_size()?;
            if field.slot.is_some() {
                count = Some((head, width));
            }
            head += width;
        }
        None
    }

    /// The fit of a payload: short of rows, or with bytes behind the last one. `list` is the index of the rows' field.
    pub fn fit(&self, payload: &[u8], list: usize) -> Fit {
        let Some(rows) = self.rows(payload) else { return Fit { short: Some(ShortField(0)), ..Fit::default() } };
        if rows.is_short() {
            return Fit { short: Some(ShortField(list)), ..Fit::default() };
        }
        Fit { surplus: payload.len() - self.head - rows.len * self.stride, ..Fit::default() }
    }

    /// The rows that are whole in `payload`; `None` when not even the fields before them are.
    pub fn rows<'a>(&'a self, payload: &'a [u8]) -> Option<Rows<'a>> {
        let count = payload.get(self.count_at..self.count_at + self.count_width)?;
        let announced = unsigned(count);
        let bytes = payload.get(self.head..)?;
        let fit = (bytes.len() / self.stride) as u64;
        let whole = match self.last_column {
            // A row is whole when its value in the last column is there.
            Some(width) if fit < announced => {
                let before = announced.saturating_mul((self.stride - width) as u64);
                (bytes.len() as u64).saturating_sub(before) / width.max(1) as u64
            }
            _ => fit,
        };
        let len = usize::try_from(announced.min(whole)).ok()?;
        Some(Rows { announced, len, layout: self, bytes })
    }
}

#[inline]
fn unsigned(bytes: &[u8]) -> u64 {
    match *bytes {
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a] => u64::from(a),
        _ => 0,
    }
}

/// The number of `width` bytes at a place; 0 when it is not there.
#[inline]
fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    match width {
        8 => bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b)),
        _ => bytes.get(at..at + width).map_or(0, unsigned),
    }
}

impl<'a> Rows<'a> {
    /// The number of whole rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether rows that the event announces are missing.
    pub fn is_short(&self) -> bool {
        (self.len as u64) < self.announced
    }

    /// The wanted fields of each row, in the order they were asked for; `N` is their number.
    #[inline]
    pub fn values<const N: usize>(self) -> impl Iterator<Item = [u64; N]> + 'a {
        let mut places = [(0usize, 0usize); N];
        for (place, field) in places.iter_mut().zip(&self.layout.fields) {
            *place = *field;
        }
        // One of the two is empty.
        let (rows, by_column) = match self.layout.last_column {
            None => (self.bytes.get(..self.len * self.layout.stride).unwrap_or_default(), 0),
            Some(_) => (&[][..], self.len),
        };
        let by_row = rows.chunks_exact(self.layout.stride);
        let by_row = by_row.map(move |row| places.map(|(at, width)| number(row, at, width)));
        // Where there is a row, the count fits into the payload's bytes, and so do all products.
        let announced = if by_column > 0 { self.announced as usize } else { 0 };
        let column =
            move |row: usize, (at, width): (usize, usize)| number(self.bytes, at * announced + row * width, width);
        by_row.chain((0..by_column).map(move |row| places.map(|place| column(row, place))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(fields: &[&str], wanted: &[&str]) -> Option<RowLayout> {
        let fields: Vec<_> = fields.iter().map(|f| (*f).to_owned()).collect();
        RowLayout::new(&crate::event::layout::compile(&fields, 8).unwrap(), wanted)
    }

    #[test]
    fn rows_are_read_column_by_column_where_each_column_is_a_list() {
        let fields = ["Id: u16", "Count: u32", "Bases: pointer[Count]", "Kinds: u8[Count]", "Lengths: u32[Count]"];
        let by_columns = layout(&fields, &["Lengths", "Bases"]).unwrap();
        let mut payload = vec![7, 0, 2, 0, 0, 0];
        payload.extend([0x1000u64, 0x2000].map(u64::to_le_bytes).concat());
        payload.extend([1, 2]);
        payload.extend([24u32, 32].map(u32::to_le_bytes).concat());
        let values = |payload: &[u8]| by_columns.rows(payload).unwrap().values::<2>().collect::<Vec<_>>();
        assert_eq!(values(&payload), [[24, 0x1000], [32, 0x2000]]);
        assert!(by_columns.fit(&payload, 2).is_exact());
        // Cut within the last column, before it, and with a count without rows behind it.
        assert_eq!(values(&payload[..payload.len() - 1]), [[24, 0x1000]]);
        assert!(by_columns.fit(&payload[..payload.len() - 1], 2).short.is_some());
        assert!(values(&payload[..payload.len() - 8]).is_empty());
        payload[2..6].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(values(&payload).is_empty());
        payload[2..6].copy_from_slice(&1u32.to_le_bytes());
        assert_eq!(by_columns.fit(&payload, 2).surplus, 13);
        // Lists with counts of their own are no rows.
        let two = ["A: u32", "B: u32", "X: u64[A]", "Y: u64[B]"];
        assert_eq!(layout(&two, &["X"]), None);
    }
}
