//! Call stacks of two sides as one tree, for the flame graph of what changed, and the table of functions behind it.

use tracequet_analyze::present::{Amount, Cell, numbers, table, words};
use tracequet_analyze::profile::{Function, Profile};
use tracequet_dataset::error::Result;
use tracequet_trace::map::Map;

use crate::document::rows_note;
use crate::tree::{Packed, Room, Sums, Tree, join};

/// Rows of the table.
const MAX_ROWS: usize = 100;

/// The most functions that get a place of their own; the calls of others count for their callers.
const MAX_FUNCTIONS: usize = 1 << 20;

/// The stacks of both sides, merged where they read the same, as `export --base` merges them.
#[derive(Default)]
pub(crate) struct FlameChange {
    functions: Vec<Function>,
    by_name: Map<String, u32>,
    pub tree: Tree<2>,
    /// Samples without a call stack, which are left out.
    pub without_stack: [u64; 2],
}

impl FlameChange {
    /// Adds the stacks of a recording to a side: 0 is the base.
    pub(crate) fn add(&mut self, profile: &Profile, side: usize) {
        let mut place_of: Map<u32, Option<u32>> = Map::default();
        join(&mut self.without_stack, side, profile.without_stack);
        for (callsite, weight) in profile.by_callsite().into_iter().filter(|(_, weight)| *weight > 0) {
            let mut place = |function: u32| *place_of.entry(function).or_insert_with(|| self.place(profile, function));
            let stack: Vec<Option<u32>> = profile.stack(callsite).into_iter().map(&mut place).collect();
            self.tree.add(side, weight, &stack);
        }
    }

    /// The function of this name; `None` where there is no room for another.
    fn place(&mut self, profile: &Profile, function: u32) -> Option<u32> {
        let function = profile.functions.get(function as usize)?;
        if let Some(known) = self.by_name.get(&function.name) {
            return Some(*known);
        }
        let place = u32::try_from(self.functions.len()).ok().filter(|_| self.functions.len() < MAX_FUNCTIONS)?;
        self.by_name.insert(function.name.clone(), place);
        self.functions.push(function.clone());
        Some(place)
    }

    /// Packs the nodes with the largest share of one side or the other.
    pub(crate) fn packed(&self, room: &mut Room) -> Result<Packed> {
        self.tree.packed(&self.functions, room)
    }

    /// The functions that changed most, each side divided by its own number, and a note on them.
    pub(crate) fn table(
        &self,
        id: &str,
        label: &str,
        by: [f64; 2],
        amount: impl Fn(f64) -> Amount,
    ) -> (String, String) {
        let divided = |sums: [u64; 2]| [sums[0] as f64 / by[0], sums[1] as f64 / by[1]];
        let change = |sums: [u64; 2]| {
            let [before, now] = divided(sums);
            now - before
        };
        let sums = self.tree.functions.iter();
        let mut order: Vec<(&Function, &Sums<2>)> =
            sums.filter_map(|(function, sums)| Some((self.functions.get(*function as usize)?, sums))).collect();
        let size = |sums: &Sums<2>| (change(sums.own).abs(), change(sums.total).abs());
        order.sort_by(|(a, a_sums), (b, b_sums)| {
            let (one, other) = (size(a_sums), size(b_sums));
            other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1)).then_with(|| a.name.cmp(&b.name))
        });
        let of = order.len();
        order.truncate(MAX_ROWS);
        let rows = table!(id, &order, |(function, sums)| {
            let cells = |both| {
                let [before, now] = divided(both);
                [amount(now - before).change(), amount(before), amount(now)].map(Cell::from)
            };
            let ([own, own_before, own_now], [all, all_before, all_now]) = (cells(sums.own), cells(sums.total));
        } {
            words("method or function", "As frames name it") => Cell::text(&function.name),
            words("assembly or file", "Where it is") => Cell::text(&function.file),
            numbers("own change", "At the innermost frame, now less before") => own,
            numbers("own before", "At the innermost frame") => own_before,
            numbers("own now", "At the innermost frame") => own_now,
            numbers("with calls: change", "Anywhere on the stack, now less before; recursion counts once") => all,
            numbers("before", "Anywhere on the stack") => all_before,
            numbers("now", "Anywhere on the stack") => all_now,
        });
        let note = rows_note(order.len(), of, ["function", "functions"], "the largest changes of their own part");
        (rows.html(label), note)
    }
}
