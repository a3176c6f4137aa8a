//! The rows of bulk events (ranges, roots, nodes, edges) as packed bytes: one bounds check for all of them.

use super::decode::{Fit, ShortField};
use super::plan::{Count, Node, Plan};

/// Where the rows of one kind of bulk event lie and what they hold.
#[derive(Clone, Debug, PartialEq)]
pub struct RowLayout {
    head: usize,
    count_at: usize,
    count_width: usize,
    stride: usize,
    /// Offset and width of the wanted fields in a row.
    fields: Vec<(usize, usize)>,
}

/// The whole rows of one event.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// How many rows the event announces.
    pub announced: u64,
    layout: &'a RowLayout,
    bytes: &'a [u8],
}

impl RowLayout {
    /// The layout of the last list in `plan`, whose rows hold the fields `wanted` in that order. `None` when the plan
    /// has no such list, or rows or the fields before them vary in size.
    pub fn new(plan: &Plan, wanted: &[&str]) -> Option<RowLayout> {
        let mut head = 0;
        let mut count = None;
        for field in &plan.fields {
            if let Node::List(Count::Slot(_), element) = &field.node {
                let Node::Struct(row) = element.as_ref() else { return None };
                let (count_at, count_width) = count?;
                let mut at = 0;
                let mut places = Vec::new();
                for inner in row {
                    let width = inner.node.fixed_size()?;
                    places.push((inner.name.as_str(), at, width));
                    at += width;
                }
                let find = |name: &&str| {
                    let (_, at, width) = places.iter().find(|(n, _, _)| n == name)?;
                    Some((*at, *width))
                };
                let fields = wanted.iter().map(find).collect::<Option<Vec<_>>>()?;
                return Some(RowLayout { head, count_at, count_width, stride: at.max(1), fields });
            }
            let width = field.node.fixed_size()?;
            if field.slot.is_some() {
                count = Some((head, width));
            }
            head += width;
        }
        None
    }

    /// How a payload fits: short of rows, or with bytes behind the last one. `list` is the index of the rows' field.
    pub fn fit(&self, payload: &[u8], list: usize) -> Fit {
        let Some(rows) = self.rows(payload) else { return Fit { short: Some(ShortField(0)), ..Fit::default() } };
        if rows.is_short() {
            return Fit { short: Some(ShortField(list)), ..Fit::default() };
        }
        Fit { surplus: payload.len() - self.head - rows.bytes.len(), ..Fit::default() }
    }

    /// The rows that are whole in `payload`; `None` when not even the fields before them are.
    pub fn rows<'a>(&'a self, payload: &'a [u8]) -> Option<Rows<'a>> {
        let count = payload.get(self.count_at..self.count_at + self.count_width)?;
        let announced = unsigned(count);
        let bytes = payload.get(self.head..)?;
        let whole = (bytes.len() / self.stride) as u64;
        let len = usize::try_from(announced.min(whole)).ok()?.checked_mul(self.stride)?;
        Some(Rows { announced, layout: self, bytes: bytes.get(..len)? })
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

impl<'a> Rows<'a> {
    /// How many whole rows there are.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.layout.stride
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether rows that the event announces are missing.
    pub fn is_short(&self) -> bool {
        (self.len() as u64) < self.announced
    }

    /// The wanted fields of each row, in the order they were asked for; `N` is their number.
    #[inline]
    pub fn values<const N: usize>(self) -> impl Iterator<Item = [u64; N]> + 'a {
        let mut places = [(0usize, 0usize); N];
        for (place, field) in places.iter_mut().zip(&self.layout.fields) {
            *place = *field;
        }
        self.bytes.chunks_exact(self.layout.stride).map(move |row| {
            places.map(|(at, width)| match width {
                8 => row.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b)),
                _ => row.get(at..at + width).map_or(0, unsigned),
            })
        })
    }
}
