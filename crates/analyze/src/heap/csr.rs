//! A graph in two arrays: the targets of all edges, ordered by source, and where those of each source begin.
#![allow(clippy::indexing_slicing, reason = "every index is the number of a node, checked when the edge was added")]

/// Stands for a target that is not in the graph.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A directed graph of nodes `0..n`: compressed sparse rows, 4 bytes a node and 4 bytes an edge.
#[derive(Clone, Debug, Default)]
pub struct Csr {
    /// Where the targets of each node begin; one more at the end.
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

impl Csr {
    /// A graph of `nodes` nodes with these edges. Edges whose source is no node are left out, and so are targets.
    pub fn of(nodes: u32, edges: &[(u32, u32)]) -> Csr {
        let mut counted = Counted::new(nodes);
        edges.iter().for_each(|(source, _)| counted.count(*source));
        let Some(mut filling) = counted.allocate() else { return Csr::default() };
        edges.iter().for_each(|(source, target)| filling.add(*source, *target));
        filling.finish()
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u32 {
        self.offsets.len().saturating_sub(1) as u32
    }

    /// The targets of a node, as often as there are edges.
    pub fn targets(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let (from, to) = self.span(node);
        self.targets[from as usize..to as usize].iter().copied().filter(|target| *target != NOWHERE)
    }

    /// Where the edges of a node begin and end in [`Csr::target`].
    #[inline]
    pub(super) fn span(&self, node: u32) -> (u32, u32) {
        (self.offsets[node as usize], self.offsets[node as usize + 1])
    }

    /// The target of an edge, or [`NOWHERE`].
    #[inline]
    pub(super) fn target(&self, edge: u32) -> u32 {
        self.targets[edge as usize]
    }
}

/// The first pass over the edges: how many each node has.
pub(super) struct Counted(Vec<u32>, u64);

impl Counted {
    pub fn new(nodes: u32) -> Counted {
        Counted(vec![0; nodes as usize + 1], 0)
    }

    /// An edge from a node.
    #[inline]
    pub fn count(&mut self, source: u32) {
        // The last place is kept free for the end.
        if (source as usize) < self.0.len() - 1 {
            self.0[source as usize] = self.0[source as usize].wrapping_add(1);
            self.1 += 1;
        }
    }

    /// Edges so far.
    pub fn edges(&self) -> u64 {
        self.1
    }

    /// Room for the edges; `None` when there are more than fit.
    pub fn allocate(self) -> Option<Filling> {
        let Counted(mut offsets, edges) = self;
        if edges >= u64::from(u32::MAX) {
            return None;
        }
        // Each node's place holds the end of its edges; filling from behind turns it into their beginning.
        let mut end = 0;
        for place in &mut offsets {
            end += *place;
            *place = end;
        }
        Some(Filling(Csr { offsets, targets: vec![NOWHERE; edges as usize] }))
    }
}

/// The second pass over the same edges: where each leads.
pub(super) struct Filling(Csr);

impl Filling {
    /// An edge. One that was not counted is left out.
    #[inline]
    pub fn add(&mut self, source: u32, target: u32) {
        let Csr { offsets, targets } = &mut self.0;
        let nodes = offsets.len() as u32 - 1;
        if source >= nodes {
            return;
        }
        let place = &mut offsets[source as usize];
        if let Some(edge) = place.checked_sub(1) {
            *place = edge;
            targets[edge as usize] = if target < nodes { target } else { NOWHERE };
        }
    }

    pub fn finish(self) -> Csr {
        self.0
    }
}
