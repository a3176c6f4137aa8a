//! Call stacks merged to a tree, for a flame graph, and the table of functions behind it.

use std::collections::{BTreeMap, HashMap, HashSet};

use foldhash::fast::RandomState;
use tracequet_analyze::profile::{Code, Function, Profile};
use tracequet_trace::error::Result;

use crate::html::{Cell, Rows, numbers, shown, words};
use crate::packed::Bytes;
use crate::units::{count, counted};

/// Nodes of a tree that a page has, and bytes of its data as they stand in the page.
const MAX_NODES: usize = 8000;
const MAX_PACKED: usize = 480 << 10;

/// Nodes with a smaller share of all are merged.
const MIN_SHARE: f64 = 0.0002;

/// Nodes while merging: a recording has at most as many as call sites.
const MAX_MERGED: usize = 2 << 20;

/// Rows of the table.
const MAX_ROWS: usize = 100;

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    function: u32,
    own: u64,
    total: u64,
}

/// The tree of a profile, and what its functions have.
pub(crate) struct Flame<'p> {
    functions: &'p [Function],
    nodes: Vec<Node>,
    /// Of each function what it has itself, and with what it calls; recursion counts once.
    own: HashMap<u32, u64, RandomState>,
    total: HashMap<u32, u64, RandomState>,
    all: u64,
    depth: usize,
}

/// Data for the script, and what was left out of them.
pub(crate) struct Packed {
    pub data: String,
    pub nodes: usize,
    pub of: usize,
    /// The share of the largest one that was left out.
    pub share: f64,
}

impl<'p> Flame<'p> {
    /// Merges stacks by the functions on them.
    pub(crate) fn of(profile: &'p Profile, weights: &BTreeMap<u32, u64>) -> Flame<'p> {
        let mut flame = Flame {
            functions: &profile.functions,
            nodes: vec![Node { parent: 0, function: u32::MAX, own: 0, total: 0 }],
            own: HashMap::default(),
            total: HashMap::default(),
            all: 0,
            depth: 0,
        };
        let mut children: HashMap<(u32, u32), u32, RandomState> = HashMap::default();
        let mut seen: HashSet<u32, RandomState> = HashSet::default();
        for (callsite, weight) in weights.iter().filter(|(_, weight)| **weight > 0) {
            let stack = profile.stack(*callsite);
            flame.all = flame.all.saturating_add(*weight);
            flame.depth = flame.depth.max(stack.len());
            seen.clear();
            let mut at = 0u32;
            flame.add(at, *weight, stack.is_empty());
            for (depth, function) in stack.iter().enumerate() {
                if seen.insert(*function) {
                    add_to(&mut flame.total, *function, *weight);
                }
                let is_last = depth + 1 == stack.len();
                if is_last {
                    add_to(&mut flame.own, *function, *weight);
                }
                let room = flame.nodes.len() < MAX_MERGED;
                let next = match children.get(&(at, *function)) {
                    Some(known) => *known,
                    // What has no room is the caller's.
                    None if !room => break,
                    None => {
                        let new = flame.nodes.len() as u32;
                        flame.nodes.push(Node { parent: at, function: *function, own: 0, total: 0 });
                        children.insert((at, *function), new);
                        new
                    }
                };
                at = next;
                flame.add(at, *weight, is_last);
            }
        }
        flame
    }

    fn add(&mut self, node: u32, weight: u64, is_last: bool) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.total = node.total.saturating_add(weight);
            if is_last {
                node.own = node.own.saturating_add(weight);
            }
        }
    }

    /// The sum of all weights.
    pub(crate) fn all(&self) -> u64 {
        self.all
    }

    /// Packs the largest nodes: a parent before its children, those in the order of their size.
    pub(crate) fn packed(&self) -> Result<Packed> {
        let mut most = MAX_NODES;
        loop {
            let packed = self.packed_up_to(most)?;
            if packed.data.len() <= MAX_PACKED || most < 2 {
                return Ok(packed);
            }
            most /= 2;
        }
    }

    fn packed_up_to(&self, most: usize) -> Result<Packed> {
        let by_share = ((self.all as f64 * MIN_SHARE) as u64).max(1);
        // A caller is at least as large as what it calls and stands before it, so that it is kept with it.
        let mut by_size: Vec<u32> = (1..self.nodes.len() as u32).collect();
        let total = |place: &u32| self.nodes.get(*place as usize).map_or(0, |node| node.total);
        by_size.sort_by_key(|place| (std::cmp::Reverse(total(place)), *place));
        let kept = by_size.partition_point(|place| total(place) >= by_share).min(most);
        let left_out = by_size.get(kept).map_or(0, total);
        by_size.truncate(kept);
        let mut below: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for place in by_size {
            let parent = self.nodes.get(place as usize).map_or(0, |node| node.parent);
            if let Some(children) = below.get_mut(parent as usize) {
                children.push(place);
            }
        }
        // By depth, so that the script lays a row out after the one above.
        let (mut order, mut parents, mut next) = (vec![0u32], vec![0u32], 0);
        while let Some(place) = order.get(next).copied() {
            for child in below.get(place as usize).into_iter().flatten() {
                order.push(*child);
                parents.push(next as u32);
            }
            next += 1;
        }
        let mut names: Vec<u32> = Vec::new();
        let mut name_of: HashMap<u32, u32, RandomState> = HashMap::default();
        let mut name_ids = Vec::new();
        for place in &order {
            let function = self.nodes.get(*place as usize).map_or(u32::MAX, |node| node.function);
            let id = *name_of.entry(function).or_insert_with(|| {
                names.push(function);
                (names.len() - 1) as u32
            });
            name_ids.push(id);
        }
        let mut bytes = Bytes::default();
        bytes.u32(order.len() as u32);
        bytes.u32(names.len() as u32);
        let node = |place: &u32| self.nodes.get(*place as usize);
        order.iter().for_each(|place| bytes.f64(node(place).map_or(0.0, |node| node.own as f64)));
        order.iter().for_each(|place| bytes.f64(node(place).map_or(0.0, |node| node.total as f64)));
        parents.iter().for_each(|parent| bytes.u32(*parent));
        name_ids.iter().for_each(|id| bytes.u32(*id));
        let texts: Vec<String> = names.iter().map(|function| self.label(*function)).collect();
        texts.iter().for_each(|text| bytes.u32(text.len() as u32));
        names.iter().for_each(|function| bytes.byte(self.code(*function)));
        texts.iter().for_each(|text| bytes.bytes(text.as_bytes()));
        let data = bytes.packed()?;
        let share = if self.all == 0 { 0.0 } else { left_out as f64 / self.all as f64 };
        Ok(Packed { data, nodes: order.len() - 1, of: self.nodes.len() - 1, share })
    }

    /// Name and, behind a line break, assembly or file.
    fn label(&self, function: u32) -> String {
        match self.functions.get(function as usize) {
            Some(function) => format!("{}\n{}", shown(&function.name), shown(&function.file)),
            None => "all\n".to_owned(),
        }
    }

    /// The colour of a function: own code apart from the framework's.
    fn code(&self, function: u32) -> u8 {
        let Some(function) = self.functions.get(function as usize) else { return 0 };
        match function.code {
            Code::Managed if !function.is_framework => 1,
            Code::Managed => 2,
            Code::Native => 3,
            Code::Kernel => 4,
            _ => 0,
        }
    }

    /// Functions with the largest parts, by what they have themselves.
    pub(crate) fn table(&self, id: &'static str, label: &str, show: impl Fn(u64) -> String) -> (String, String) {
        let mut order: Vec<(u32, u64)> = self.total.iter().map(|(function, total)| (*function, *total)).collect();
        let own = |function: u32| self.own.get(&function).copied().unwrap_or_default();
        let name = |function: u32| self.functions.get(function as usize).map_or("", |function| function.name.as_str());
        order.sort_by(|a, b| {
            (own(b.0), b.1).cmp(&(own(a.0), a.1)).then_with(|| name(a.0).cmp(name(b.0))).then(a.0.cmp(&b.0))
        });
        let of = order.len();
        order.truncate(MAX_ROWS);
        let mut rows = Rows::new(
            id,
            &[
                words("method or function", "As frames name it"),
                words("assembly or file", "Where it is"),
                numbers("own", "At the innermost frame"),
                numbers("own %", "The same as a share of all"),
                numbers("with calls", "Anywhere on the stack; recursion counts once"),
                numbers("with calls %", "The same as a share of all"),
            ],
        );
        let share = |value: u64| {
            let percent = if self.all == 0 { 0.0 } else { value as f64 * 100.0 / self.all as f64 };
            Cell::Number(format!("{percent:.4}"), format!("{percent:.1}"))
        };
        for (function, total) in &order {
            let file = self.functions.get(*function as usize).map(|function| function.file.as_str());
            let own = own(*function);
            rows.row(vec![
                Cell::text(Some(name(*function))),
                Cell::text(file),
                Cell::number(Some(own), &show),
                share(own),
                Cell::number(Some(*total), &show),
                share(*total),
            ]);
        }
        let note = if order.len() < of {
            format!("The {} of {} functions with the largest parts of their own.", order.len(), count(of as u64))
        } else {
            format!("All of them: {}.", counted(of as u64, "function", "functions"))
        };
        (rows.html(label), note)
    }
}

fn add_to(sums: &mut HashMap<u32, u64, RandomState>, function: u32, weight: u64) {
    let sum = sums.entry(function).or_default();
    *sum = sum.saturating_add(weight);
}
