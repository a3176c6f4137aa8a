//! Call stacks merged to a tree, for a flame graph, and the table of functions behind it. Beside the tree stands what each thread
//! has in each part of the time, so that the script draws the graph of a thread or of a time.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use tracequet_analyze::present::units::{count, counted};
use tracequet_analyze::present::{Amount, Cell, Table, cut, numbers, shown, words};
use tracequet_analyze::profile::{Code, Function, Profile, Sample};
use tracequet_dataset::error::Result;

use crate::packed::Bytes;

/// Nodes of a tree that a page has, and bytes of its data as they stand in the page.
pub(crate) const MAX_NODES: usize = 8000;
pub(crate) const MAX_PACKED: usize = 384 << 10;

/// The same of all trees of a page together, and of what they have by threads and parts of the time.
const MAX_TREES: usize = 2 << 20;
const MAX_ALL_SLICES: usize = 640 << 10;

/// Parts of the time, threads, and their sums that a page has; and bytes of the data.
const MAX_PARTS: usize = 120;
const MAX_THREADS: usize = 16;
const MAX_SLICES: usize = 60_000;
const MAX_PACKED_SLICES: usize = 160 << 10;

/// Nodes with a smaller share of all are merged.
pub(crate) const MIN_SHARE: f64 = 0.0002;

/// Nodes while merging: a recording has at most as many as call sites.
pub(crate) const MAX_MERGED: usize = 2 << 20;

/// Rows of the table.
pub(crate) const MAX_ROWS: usize = 100;

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
    /// Of each call site its node, and whether its innermost call is that node.
    nodes_of: HashMap<u32, (u32, bool), RandomState>,
}

/// Bytes that are left for the graphs of a page. A graph takes a third at most, so that there is some for each kind.
pub(crate) struct Room {
    pub trees: usize,
    slices: usize,
}

impl Default for Room {
    fn default() -> Room {
        Room { trees: MAX_TREES, slices: MAX_ALL_SLICES }
    }
}

/// Data for the script, and what was left out of them.
pub(crate) struct Packed {
    pub data: String,
    /// The same by threads and parts of the time.
    pub slices: Option<String>,
    pub nodes: usize,
    pub of: usize,
    /// The share of the largest one that was left out.
    pub share: f64,
}

impl<'p> Flame<'p> {
    /// Merges stacks by the functions on them.
    pub(crate) fn of(profile: &'p Profile) -> Flame<'p> {
        let mut flame = Flame {
            functions: &profile.functions,
            nodes: vec![Node { parent: 0, function: u32::MAX, own: 0, total: 0 }],
            own: HashMap::default(),
            total: HashMap::default(),
            all: 0,
            nodes_of: HashMap::default(),
        };
        let mut children: HashMap<(u32, u32), u32, RandomState> = HashMap::default();
        let mut seen: HashSet<u32, RandomState> = HashSet::default();
        for (callsite, weight) in profile.by_callsite().into_iter().filter(|(_, weight)| *weight > 0) {
            let stack = profile.stack(callsite);
            flame.all = flame.all.saturating_add(weight);
            seen.clear();
            let (mut at, mut is_whole) = (0u32, true);
            flame.add(at, weight, stack.is_empty());
            for (depth, function) in stack.iter().enumerate() {
                if seen.insert(*function) {
                    add_to(&mut flame.total, *function, weight);
                }
                let is_last = depth + 1 == stack.len();
                if is_last {
                    add_to(&mut flame.own, *function, weight);
                }
                let room = flame.nodes.len() < MAX_MERGED;
                let next = match children.get(&(at, *function)) {
                    Some(known) => *known,
                    // What has no room is the caller's.
                    None if !room => {
                        is_whole = false;
                        break;
                    }
                    None => {
                        let new = flame.nodes.len() as u32;
                        flame.nodes.push(Node { parent: at, function: *function, own: 0, total: 0 });
                        children.insert((at, *function), new);
                        new
                    }
                };
                at = next;
                flame.add(at, weight, is_last);
            }
            flame.nodes_of.insert(callsite, (at, is_whole));
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
    pub(crate) fn packed(&self, profile: &Profile, room: &mut Room) -> Result<Packed> {
        let (mut most, bytes) = (MAX_NODES, MAX_PACKED.min(room.trees / 3));
        loop {
            let (mut packed, order) = self.packed_up_to(most)?;
            if packed.data.len() <= bytes || most < 2 {
                packed.slices = self.slices(profile, &order, MAX_PACKED_SLICES.min(room.slices / 3))?;
                room.trees = room.trees.saturating_sub(packed.data.len());
                room.slices = room.slices.saturating_sub(packed.slices.as_ref().map_or(0, String::len));
                return Ok(packed);
            }
            most /= 2;
        }
    }

    /// What each thread has at each node in each part of the time. The parts are longer, and more threads are one, where that is
    /// too much; `None` where it is too much even so.
    fn slices(&self, profile: &Profile, order: &[u32], bytes_at_most: usize) -> Result<Option<String>> {
        // Of each node its place in the page, and whether it is there itself, or merged into a caller.
        let mut places: Vec<(u32, bool)> = vec![(0, true); self.nodes.len()];
        for (place, node) in order.iter().enumerate().skip(1) {
            if let Some(of_node) = places.get_mut(*node as usize) {
                *of_node = (place as u32, false);
            }
        }
        for node in 1..self.nodes.len() {
            let caller =
                self.nodes.get(node).and_then(|node| places.get(node.parent as usize)).map_or(0, |(at, _)| *at);
            if let Some(of_node) = places.get_mut(node).filter(|(_, is_merged)| *is_merged) {
                of_node.0 = caller;
            }
        }
        let sums = |samples: &[Sample]| samples.iter().fold(0u64, |sum, sample| sum.saturating_add(sample.weight));
        let mut threads: Vec<(u64, usize)> =
            profile.threads.iter().enumerate().map(|(place, thread)| (sums(&thread.samples), place)).collect();
        threads.sort_by_key(|(weight, place)| (std::cmp::Reverse(*weight), *place));
        let end_ns = i128::from(profile.duration_ns.max(1));
        for (most_threads, parts) in
            [(MAX_THREADS, MAX_PARTS), (MAX_THREADS, MAX_PARTS / 2), (8, MAX_PARTS / 4), (4, MAX_PARTS / 8), (2, 4)]
        {
            // The last one stands for all others, where there are more.
            let shown = threads.len().min(most_threads);
            let row_of: HashMap<usize, usize, RandomState> =
                threads.iter().enumerate().map(|(row, (_, place))| (*place, row.min(shown - 1))).collect();
            let mut found: HashMap<(u8, u8, u32), u64, RandomState> = HashMap::default();
            for (place, thread) in profile.threads.iter().enumerate() {
                let row = row_of.get(&place).copied().unwrap_or_default() as u8;
                for sample in thread.samples.iter().filter(|sample| sample.weight > 0) {
                    let part = i128::from(sample.ts_ns.max(0)) * parts as i128 / end_ns;
                    let Some((node, is_whole)) = self.nodes_of.get(&sample.callsite) else { continue };
                    let (at, is_merged) = places.get(*node as usize).copied().unwrap_or((0, true));
                    let key = at << 1 | u32::from(is_merged || !is_whole);
                    let sum = found.entry((row, part.min(parts as i128 - 1) as u8, key)).or_default();
                    *sum = sum.saturating_add(sample.weight);
                }
                if found.len() > MAX_SLICES {
                    break;
                }
            }
            if found.len() > MAX_SLICES {
                continue;
            }
            let mut found: Vec<((u8, u8, u32), u64)> = found.into_iter().collect();
            found.sort_unstable();
            let mut labels: Vec<String> = threads
                .iter()
                .take(shown)
                .map(|(_, place)| shown_label(profile.threads.get(*place).map_or("", |thread| thread.label.as_str())))
                .collect();
            if let Some(last) = labels.last_mut().filter(|_| threads.len() > shown) {
                *last = counted((threads.len() - shown + 1) as u64, "other thread", "other threads");
            }
            let mut bytes = Bytes::default();
            bytes.u32(found.len() as u32);
            bytes.u32(labels.len() as u32);
            bytes.u32(parts as u32);
            found.iter().for_each(|((thread, ..), _)| bytes.byte(*thread));
            found.iter().for_each(|((_, part, _), _)| bytes.byte(*part));
            // Small steps pack better than the places.
            let mut before = (0, 0, 0);
            for ((thread, part, key), _) in &found {
                let from = if (*thread, *part) == (before.0, before.1) { before.2 } else { 0 };
                bytes.u32(key - from);
                before = (*thread, *part, *key);
            }
            found.iter().for_each(|(_, weight)| bytes.f64(*weight as f64));
            labels.iter().for_each(|label| bytes.u32(label.len() as u32));
            labels.iter().for_each(|label| bytes.bytes(label.as_bytes()));
            let packed = bytes.packed()?;
            if packed.len() <= bytes_at_most {
                return Ok(Some(packed));
            }
        }
        Ok(None)
    }

    fn packed_up_to(&self, most: usize) -> Result<(Packed, Vec<u32>)> {
        let by_share = ((self.all as f64 * MIN_SHARE) as u64).max(1);
        let node = |place: u32| self.nodes.get(place as usize);
        let of = |place: u32| node(place).map_or((0, 0), |node| (node.parent, node.total));
        let Kept { order, parents, left_out } = kept(self.nodes.len(), of, by_share, most);
        let names = Names::of(order.iter().map(|place| node(*place).map_or(u32::MAX, |node| node.function)));
        let mut bytes = Bytes::default();
        bytes.u32(order.len() as u32);
        bytes.u32(names.functions.len() as u32);
        order.iter().for_each(|place| bytes.f64(node(*place).map_or(0.0, |node| node.own as f64)));
        order.iter().for_each(|place| bytes.f64(node(*place).map_or(0.0, |node| node.total as f64)));
        parents.iter().for_each(|parent| bytes.u32(*parent));
        names.write(self.functions, &mut bytes);
        let data = bytes.packed()?;
        let share = if self.all == 0 { 0.0 } else { left_out as f64 / self.all as f64 };
        let packed = Packed { data, slices: None, nodes: order.len() - 1, of: self.nodes.len() - 1, share };
        Ok((packed, order))
    }

    /// Functions with the largest parts, by what they have themselves.
    pub(crate) fn table(&self, id: &str, label: &str, unit: &str) -> (String, String) {
        let mut order: Vec<(u32, u64)> = self.total.iter().map(|(function, total)| (*function, *total)).collect();
        let own = |function: u32| self.own.get(&function).copied().unwrap_or_default();
        let name = |function: u32| self.functions.get(function as usize).map_or("", |function| function.name.as_str());
        order.sort_by(|a, b| {
            (own(b.0), b.1).cmp(&(own(a.0), a.1)).then_with(|| name(a.0).cmp(name(b.0))).then(a.0.cmp(&b.0))
        });
        let of = order.len();
        order.truncate(MAX_ROWS);
        let mut rows = Table::new(
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
        let share = |value: u64| Cell::share(if self.all == 0 { 0.0 } else { value as f64 / self.all as f64 });
        for (function, total) in &order {
            let file = self.functions.get(*function as usize).map(|function| function.file.as_str());
            let own = own(*function);
            rows.row(vec![
                Cell::text(name(*function)),
                Cell::optional(file),
                Amount::in_unit(own, unit).into(),
                share(own),
                Amount::in_unit(*total, unit).into(),
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

/// The nodes of a tree that a page has.
pub(crate) struct Kept {
    /// By depth, so that the script lays a row out after the one above. The root comes first.
    pub order: Vec<u32>,
    /// Of each the place of its caller in that order.
    pub parents: Vec<u32>,
    /// The size of the largest one that is left out.
    pub left_out: u64,
}

/// The largest nodes of a tree: at most so many beside the root, and of this size at least. `of` has the caller and the size of a
/// node; a caller stands before what it calls and is at least as large, so that it is kept with it.
pub(crate) fn kept(count: usize, of: impl Fn(u32) -> (u32, u64), least: u64, most: usize) -> Kept {
    let mut by_size: Vec<u32> = (1..count as u32).collect();
    by_size.sort_by_key(|place| (std::cmp::Reverse(of(*place).1), *place));
    let end = by_size.partition_point(|place| of(*place).1 >= least).min(most);
    let left_out = by_size.get(end).map_or(0, |place| of(*place).1);
    by_size.truncate(end);
    let mut below: Vec<Vec<u32>> = vec![Vec::new(); count];
    for place in by_size {
        if let Some(children) = below.get_mut(of(place).0 as usize) {
            children.push(place);
        }
    }
    let (mut order, mut parents, mut next) = (vec![0u32], vec![0u32], 0);
    while let Some(place) = order.get(next).copied() {
        for child in below.get(place as usize).into_iter().flatten() {
            order.push(*child);
            parents.push(next as u32);
        }
        next += 1;
    }
    Kept { order, parents, left_out }
}

/// The names of nodes, each once.
pub(crate) struct Names {
    /// Functions by the place of their names.
    pub functions: Vec<u32>,
    /// Of each node the place of its name.
    of_nodes: Vec<u32>,
}

impl Names {
    /// The names of nodes with these functions.
    pub(crate) fn of(nodes: impl Iterator<Item = u32>) -> Names {
        let mut functions: Vec<u32> = Vec::new();
        let mut place_of: HashMap<u32, u32, RandomState> = HashMap::default();
        let mut place = |function: u32| {
            *place_of.entry(function).or_insert_with(|| {
                functions.push(function);
                (functions.len() - 1) as u32
            })
        };
        let of_nodes = nodes.map(&mut place).collect();
        Names { functions, of_nodes }
    }

    /// Writes the name of each node, and the names.
    pub(crate) fn write(&self, all: &[Function], bytes: &mut Bytes) {
        self.of_nodes.iter().for_each(|place| bytes.u32(*place));
        let functions = || self.functions.iter().map(|function| all.get(*function as usize));
        let texts: Vec<String> = functions().map(label).collect();
        texts.iter().for_each(|text| bytes.u32(text.len() as u32));
        functions().for_each(|function| bytes.byte(kind(function)));
        texts.iter().for_each(|text| bytes.bytes(text.as_bytes()));
    }
}

/// Name and, behind a line break, assembly or file.
fn label(function: Option<&Function>) -> String {
    match function {
        Some(function) => format!("{}\n{}", shown(&function.name), shown(&function.file)),
        None => "all\n".to_owned(),
    }
}

/// The colour of a function: own code apart from the framework's.
fn kind(function: Option<&Function>) -> u8 {
    let Some(function) = function else { return 0 };
    match function.code {
        Code::Managed if function.is_framework == Some(false) => 1,
        Code::Managed => 2,
        Code::Native => 3,
        Code::Kernel => 4,
        _ => 0,
    }
}

/// The label of a thread, without what makes it long.
fn shown_label(label: &str) -> String {
    shown(cut(label, 80))
}

fn add_to(sums: &mut HashMap<u32, u64, RandomState>, function: u32, weight: u64) {
    let sum = sums.entry(function).or_default();
    *sum = sum.saturating_add(weight);
}
