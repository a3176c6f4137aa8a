//! Call stacks of two sides as one tree, for the flame graph of what changed, and the table of functions behind it.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use tracequet_analyze::present::units::{count, counted};
use tracequet_analyze::present::{Amount, Cell, Table, numbers, words};
use tracequet_analyze::profile::{Function, Profile};
use tracequet_dataset::error::Result;

use crate::flame::{Kept, MAX_MERGED, MAX_NODES, MAX_PACKED, MAX_ROWS, MIN_SHARE, Names, Room, kept};
use crate::packed::Bytes;

/// The most functions that get a place of their own; the calls of others count for their callers.
const MAX_FUNCTIONS: usize = 1 << 20;

/// What the share of a node is multiplied by, so that it is compared as a whole number.
const WHOLE: f64 = 1e12;

/// Weights of the base and of the new side.
pub(crate) type Both = [u64; 2];

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    own: Both,
    total: Both,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    function: u32,
    sums: Sums,
}

/// The stacks of both sides, merged where they read the same, as `export --base` merges them.
pub(crate) struct FlameChange {
    functions: Vec<Function>,
    by_name: HashMap<String, u32, RandomState>,
    nodes: Vec<Node>,
    children: HashMap<(u32, u32), u32, RandomState>,
    of_functions: Vec<Sums>,
    /// All there is on each side.
    pub all: Both,
    /// Samples without a call stack, which are left out.
    pub without_stack: Both,
}

/// Data for the script, and what was left out of them.
pub(crate) struct PackedChange {
    pub data: String,
    pub nodes: usize,
    pub of: usize,
    /// The largest share of a side that was left out.
    pub share: f64,
}

impl FlameChange {
    /// Without any stack.
    pub(crate) fn new() -> FlameChange {
        FlameChange {
            functions: Vec::new(),
            by_name: HashMap::default(),
            nodes: vec![Node { parent: 0, function: u32::MAX, sums: Sums::default() }],
            children: HashMap::default(),
            of_functions: Vec::new(),
            all: [0; 2],
            without_stack: [0; 2],
        }
    }

    /// Adds the stacks of a recording to a side: 0 is the base.
    pub(crate) fn add(&mut self, profile: &Profile, side: usize) {
        let mut place_of: HashMap<u32, Option<u32>, RandomState> = HashMap::default();
        let mut seen: HashSet<u32, RandomState> = HashSet::default();
        join(&mut self.without_stack, side, profile.without_stack);
        for (callsite, weight) in profile.by_callsite().into_iter().filter(|(_, weight)| *weight > 0) {
            let stack = profile.stack(callsite);
            join(&mut self.all, side, weight);
            seen.clear();
            let mut at = 0u32;
            self.add_to(at, side, weight, stack.is_empty());
            for (depth, function) in stack.iter().enumerate() {
                let is_last = depth + 1 == stack.len();
                let place = *place_of.entry(*function).or_insert_with(|| self.place(profile, *function));
                let Some(place) = place else { break };
                if let Some(sums) = self.of_functions.get_mut(place as usize) {
                    if seen.insert(place) {
                        join(&mut sums.total, side, weight);
                    }
                    if is_last {
                        join(&mut sums.own, side, weight);
                    }
                }
                // What has no room is the caller's.
                let Some(next) = self.below(at, place) else { break };
                at = next;
                self.add_to(at, side, weight, is_last);
            }
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
        self.of_functions.push(Sums::default());
        Some(place)
    }

    fn below(&mut self, caller: u32, function: u32) -> Option<u32> {
        if let Some(known) = self.children.get(&(caller, function)) {
            return Some(*known);
        }
        let new = u32::try_from(self.nodes.len()).ok().filter(|_| self.nodes.len() < MAX_MERGED)?;
        self.nodes.push(Node { parent: caller, function, sums: Sums::default() });
        self.children.insert((caller, function), new);
        Some(new)
    }

    fn add_to(&mut self, node: u32, side: usize, weight: u64, is_last: bool) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            join(&mut node.sums.total, side, weight);
            if is_last {
                join(&mut node.sums.own, side, weight);
            }
        }
    }

    /// Packs the nodes with the largest share of one side or the other.
    pub(crate) fn packed(&self, room: &mut Room) -> Result<PackedChange> {
        let (mut most, bytes) = (MAX_NODES, MAX_PACKED.min(room.trees / 3));
        loop {
            let packed = self.packed_up_to(most)?;
            if packed.data.len() <= bytes || most < 2 {
                room.trees = room.trees.saturating_sub(packed.data.len());
                return Ok(packed);
            }
            most /= 2;
        }
    }

    fn packed_up_to(&self, most: usize) -> Result<PackedChange> {
        let node = |place: u32| self.nodes.get(place as usize);
        let share = |sums: &Sums| {
            let shares = sums.total.iter().zip(&self.all).filter(|(_, all)| **all > 0);
            shares.map(|(part, all)| *part as f64 / *all as f64).fold(0.0, f64::max)
        };
        let of = |place: u32| node(place).map_or((0, 0), |node| (node.parent, (share(&node.sums) * WHOLE) as u64));
        let Kept { order, parents, left_out } = kept(self.nodes.len(), of, (MIN_SHARE * WHOLE) as u64, most);
        let names = Names::of(order.iter().map(|place| node(*place).map_or(u32::MAX, |node| node.function)));
        let mut bytes = Bytes::default();
        bytes.u32(order.len() as u32);
        bytes.u32(names.functions.len() as u32);
        // Own and total of the base, then of the new side.
        for side in 0..2 {
            for take in [|sums: &Sums| sums.own, |sums: &Sums| sums.total] {
                for place in &order {
                    let sum = node(*place).and_then(|node| take(&node.sums).get(side).copied());
                    bytes.f64(sum.unwrap_or_default() as f64);
                }
            }
        }
        parents.iter().for_each(|parent| bytes.u32(*parent));
        names.write(&self.functions, &mut bytes);
        let (nodes, of) = (order.len() - 1, self.nodes.len() - 1);
        Ok(PackedChange { data: bytes.packed()?, nodes, of, share: left_out as f64 / WHOLE })
    }

    /// The functions that changed most, each side divided by its own number, and a note on them.
    pub(crate) fn table(
        &self,
        id: &str,
        label: &str,
        by: [f64; 2],
        amount: impl Fn(f64) -> Amount,
    ) -> (String, String) {
        let divided = |sums: Both| [sums[0] as f64 / by[0], sums[1] as f64 / by[1]];
        let change = |sums: Both| {
            let [before, now] = divided(sums);
            now - before
        };
        let mut order: Vec<(&Function, &Sums)> = self.functions.iter().zip(&self.of_functions).collect();
        let size = |sums: &Sums| (change(sums.own).abs(), change(sums.total).abs());
        order.sort_by(|(a, a_sums), (b, b_sums)| {
            let (one, other) = (size(a_sums), size(b_sums));
            other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1)).then_with(|| a.name.cmp(&b.name))
        });
        let of = order.len();
        order.truncate(MAX_ROWS);
        let heads = [
            words("method or function", "As frames name it"),
            words("assembly or file", "Where it is"),
            numbers("own change", "At the innermost frame, now less before"),
            numbers("own before", "At the innermost frame"),
            numbers("own now", "At the innermost frame"),
            numbers("with calls: change", "Anywhere on the stack, now less before; recursion counts once"),
            numbers("before", "Anywhere on the stack"),
            numbers("now", "Anywhere on the stack"),
        ];
        let mut rows = Table::new(id, &heads);
        for (function, sums) in &order {
            let mut cells = vec![Cell::text(&function.name), Cell::text(&function.file)];
            for both in [sums.own, sums.total] {
                let [before, now] = divided(both);
                let change = now - before;
                cells.extend([amount(change).change(), amount(before), amount(now)].map(Cell::from));
            }
            rows.row(cells);
        }
        let note = match order.len() < of {
            true => format!("The {} of {} functions whose own part changed most.", order.len(), count(of as u64)),
            false => format!("All of them: {}.", counted(of as u64, "function", "functions")),
        };
        (rows.html(label), note)
    }
}

/// Adds to one side.
fn join(both: &mut Both, side: usize, weight: u64) {
    if let Some(sum) = both.get_mut(side) {
        *sum = sum.saturating_add(weight);
    }
}
