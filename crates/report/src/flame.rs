//! Call stacks merged to a tree, for a flame graph, and the table of functions behind it.

use tracequet_analyze::present::{Amount, Cell, numbers, table, words};
use tracequet_analyze::profile::{Function, Profile};
use tracequet_dataset::error::Result;
use tracequet_trace::map::Map;

use crate::document::rows_note;
use crate::selection::Nodes;
use crate::tree::{Packed, Room, Sums, Tree};

/// Rows of the table.
const MAX_ROWS: usize = 100;

/// The tree of a profile.
pub(crate) struct Flame<'p> {
    functions: &'p [Function],
    tree: Tree<1>,
    /// Of each call site its node, and whether its innermost call is that node.
    nodes_of: Map<u32, (u32, bool)>,
}

impl<'p> Flame<'p> {
    /// Merges stacks by the functions on them.
    pub(crate) fn of(profile: &'p Profile) -> Flame<'p> {
        let (mut tree, mut nodes_of) = (Tree::default(), Map::default());
        for (callsite, weight) in profile.by_callsite().into_iter().filter(|(_, weight)| *weight > 0) {
            let stack: Vec<Option<u32>> = profile.stack(callsite).into_iter().map(Some).collect();
            nodes_of.insert(callsite, tree.add(0, weight, &stack));
        }
        Flame { functions: &profile.functions, tree, nodes_of }
    }

    /// The sum of all weights.
    pub(crate) fn all(&self) -> u64 {
        self.tree.all[0]
    }

    /// Packs the largest nodes, with the place that each call site has among them.
    pub(crate) fn packed(&self, room: &mut Room) -> Result<(Packed, Nodes)> {
        let packed = self.tree.packed(self.functions, room)?;
        // Of each node its place in the page, and whether it is there itself, or merged into a caller.
        let mut places: Vec<(u32, bool)> = vec![(0, true); self.tree.len()];
        for (place, node) in packed.order.iter().enumerate().skip(1) {
            if let Some(of_node) = places.get_mut(*node as usize) {
                *of_node = (place as u32, false);
            }
        }
        for node in 1..self.tree.len() {
            let caller = self.tree.parent(node).and_then(|caller| places.get(caller as usize)).map_or(0, |(at, _)| *at);
            if let Some(of_node) = places.get_mut(node).filter(|(_, is_merged)| *is_merged) {
                of_node.0 = caller;
            }
        }
        let nodes = self.nodes_of.iter().map(|(callsite, (node, is_whole))| {
            let (at, is_merged) = places.get(*node as usize).copied().unwrap_or((0, true));
            (*callsite, at << 1 | u32::from(is_merged || !is_whole))
        });
        Ok((packed, nodes.collect()))
    }

    /// Functions with the largest parts, by what they have themselves.
    pub(crate) fn table(&self, id: &str, label: &str, unit: &str) -> (String, String) {
        let name = |function: u32| self.functions.get(function as usize).map_or("", |function| function.name.as_str());
        let sums = self.tree.functions.iter();
        let mut order: Vec<(u32, [u64; 2])> = sums.map(|(of, Sums { own, total })| (*of, [own[0], total[0]])).collect();
        order
            .sort_by(|(a, a_sums), (b, b_sums)| b_sums.cmp(a_sums).then_with(|| name(*a).cmp(name(*b))).then(a.cmp(b)));
        let of = order.len();
        order.truncate(MAX_ROWS);
        let all = self.all();
        let share = |value: u64| Cell::share(if all == 0 { 0.0 } else { value as f64 / all as f64 });
        let rows = table!(id, &order, |(function, [own, total])| {
            let file = self.functions.get(*function as usize).map(|function| function.file.as_str());
        } {
            words("method or function", "As frames name it") => Cell::text(name(*function)),
            words("assembly or file", "Where it is") => Cell::optional(file),
            numbers("own", "At the innermost frame") => Amount::in_unit(*own, unit).into(),
            numbers("own %", "The same as a share of all") => share(*own),
            numbers("with calls", "Anywhere on the stack; recursion counts once") =>
                Amount::in_unit(*total, unit).into(),
            numbers("with calls %", "The same as a share of all") => share(*total),
        });
        let note = rows_note(order.len(), of, ["function", "functions"], "the largest parts of their own");
        (rows.html(label), note)
    }
}
