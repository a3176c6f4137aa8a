//! A graph in two arrays: the targets of all edges, ordered by source, and where those of each source begin.
#![allow(clippy::indexing_slicing, reason = "every index is the number of a node, checked when the edge was added")]

use std::ops::Range;

use super::ranks::Ranks;

/// Stands for a target that is not in the graph.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A directed graph of nodes `0..n`: compressed sparse rows, 4 bytes an edge, and 4 bytes a node that has edges. Half
/// of the objects of a heap have none: texts, and arrays of numbers.
#[derive(Clone, Debug, Default)]
pub struct Csr {
    /// Number of nodes.
    pub nodes: u32,
    /// The nodes with edges.
    pub(super) sources: Ranks,
    /// The edges of each of [`Csr::sources`], by its place among them.
    pub(super) rows: Rows,
}

impl Csr {
    /// A graph of `nodes` nodes with these edges. Edges whose source is no node are left out, and so are targets.
    pub fn of(nodes: u32, edges: &[(u32, u32)]) -> Csr {
        let mut counted = Counted::new(nodes);
        edges.iter().for_each(|(source, _)| counted.count(*source, 1));
        let Some(mut filling) = counted.by_source() else { return Csr::default() };
        edges.iter().for_each(|(source, target)| filling.add(*source, std::iter::once(*target)));
        filling.finish()
    }

    /// The targets of a node, as often as there are edges.
    pub fn targets(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let span = self.sources.rank(node).map_or(0..0, |rank| self.rows.span(rank));
        self.rows.of(span)
    }
}

/// Lists one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    /// Where each begins; one more at the end.
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

impl Rows {
    /// The targets of a row.
    #[inline]
    pub fn targets(&self, row: u32) -> impl Iterator<Item = u32> + '_ {
        self.of(self.span(row))
    }

    #[inline]
    fn span(&self, row: u32) -> Range<usize> {
        self.offsets[row as usize] as usize..self.offsets[row as usize + 1] as usize
    }

    #[inline]
    fn of(&self, span: Range<usize>) -> impl Iterator<Item = u32> + '_ {
        self.targets[span].iter().copied().filter(|target| *target != NOWHERE)
    }
}

/// The first pass over the edges: how many each node has.
pub(super) struct Counted(Vec<u32>, u64);

impl Counted {
    pub fn new(nodes: u32) -> Counted {
        Counted(vec![0; nodes as usize + 1], 0)
    }

    /// Edges from a node.
    #[inline]
    pub fn count(&mut self, source: u32, edges: u32) {
        // The last place is kept free for the end.
        if (source as usize) < self.0.len() - 1 {
            self.0[source as usize] = self.0[source as usize].wrapping_add(edges);
            self.1 += u64::from(edges);
        }
    }

    /// Edges so far.
    pub fn edges(&self) -> u64 {
        self.1
    }

    /// Room for the edges of each node that has any; `None` when there are more than fit.
    pub fn by_source(self) -> Option<Filling> {
        let Counted(counts, edges) = self;
        if edges >= u64::from(u32::MAX) {
            return None;
        }
        let nodes = counts.len() as u32 - 1;
        let sources = Ranks::of(nodes, |node| counts[node as usize] > 0);
        // Each node's place holds the end of its edges; filling from behind turns it into their beginning.
        let mut offsets = vec![0; sources.count as usize + 1];
        let (mut row, mut end) = (0, 0);
        // A node without edges writes what the next one overwrites.
        for count in counts {
            end += count;
            offsets[row] = end;
            row += usize::from(count > 0);
        }
        Some(Filling { nodes, sources, rows: Rows { offsets, targets: vec![NOWHERE; edges as usize] } })
    }
}

/// The second pass over the same edges: where each leads.
pub(super) struct Filling {
    nodes: u32,
    sources: Ranks,
    rows: Rows,
}

impl Filling {
    /// Edges from a node, all of which are taken from the iterator. Those that were not counted are left out.
    #[inline]
    pub fn add(&mut self, source: u32, targets: impl Iterator<Item = u32>) {
        let row = (source < self.nodes).then(|| self.sources.rank(source)).flatten();
        let Some(row) = row else { return targets.for_each(drop) };
        let place = &mut self.rows.offsets[row as usize];
        for target in targets {
            if let Some(edge) = place.checked_sub(1) {
                *place = edge;
                self.rows.targets[edge as usize] = if target < self.nodes { target } else { NOWHERE };
            }
        }
    }

    pub fn finish(self) -> Csr {
        Csr { nodes: self.nodes, sources: self.sources, rows: self.rows }
    }
}
