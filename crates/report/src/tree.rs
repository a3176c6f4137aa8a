//! Call stacks merged to a tree, for flame graphs of one side or of two.

use tracequet_analyze::present::shown;
use tracequet_analyze::present::units::{count, share};
use tracequet_analyze::profile::{Code, Function};
use tracequet_dataset::error::Result;
use tracequet_trace::map::{Map, Set};

use crate::packed::Bytes;

/// Nodes of a tree that a page has, and bytes of its data as they stand in the page.
const MAX_NODES: usize = 8000;
const MAX_PACKED: usize = 384 << 10;

/// Bytes of all trees of a page together.
const MAX_TREES: usize = 2 << 20;

/// Nodes with a smaller share of all are merged.
const MIN_SHARE: f64 = 0.0002;

/// Shares are multiplied by this, so that they are compared as whole numbers.
const WHOLE: f64 = 1e12;

/// Nodes while merging: a recording has at most as many as call sites.
const MAX_MERGED: usize = 2 << 20;

/// The weight at the innermost call, and that with all that is called, of each side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums<const SIDES: usize> {
    pub own: [u64; SIDES],
    pub total: [u64; SIDES],
}

impl<const SIDES: usize> Default for Sums<SIDES> {
    fn default() -> Sums<SIDES> {
        Sums { own: [0; SIDES], total: [0; SIDES] }
    }
}

#[derive(Clone, Copy, Debug)]
struct Node<const SIDES: usize> {
    parent: u32,
    function: u32,
    sums: Sums<SIDES>,
}

/// The stacks, merged by their functions.
pub(crate) struct Tree<const SIDES: usize> {
    nodes: Vec<Node<SIDES>>,
    children: Map<(u32, u32), u32>,
    /// The sums of each function; recursion counts once.
    pub functions: Map<u32, Sums<SIDES>>,
    /// All there is on each side.
    pub all: [u64; SIDES],
    seen: Set<u32>,
}

/// Bytes that are left for the graphs of a page. A graph takes a third at most, so that there is some for each kind.
pub(crate) struct Room {
    pub trees: usize,
}

impl Default for Room {
    fn default() -> Room {
        Room { trees: MAX_TREES }
    }
}

/// Data for the script, and what was left out of them.
pub(crate) struct Packed {
    pub data: String,
    /// The nodes in the order of the data. The root comes first.
    pub order: Vec<u32>,
    /// Nodes beside the root that are packed, and that there are.
    pub nodes: usize,
    pub of: usize,
    /// The share of the largest one that was left out.
    pub share: f64,
}

impl Packed {
    /// A sentence on the nodes that are left out, to stand behind others. `parts` names the nodes, `above` those that they are merged into, and
    /// `side` what the shares are of.
    pub(crate) fn merged(&self, [parts, above]: [&str; 2], side: &str) -> String {
        if self.nodes >= self.of {
            return String::new();
        }
        let each = match share(self.share) {
            share if share.starts_with('<') => share.replacen("< ", "less than ", 1),
            share => format!("at most {share}"),
        };
        let [nodes, of] = [self.nodes, self.of].map(|nodes| count(nodes as u64));
        format!(
            " The graph has the {nodes} largest of {of} {parts}; the others, of {each}{side} each, are merged into {above}."
        )
    }
}

/// A tree of nothing but its root.
impl<const SIDES: usize> Default for Tree<SIDES> {
    fn default() -> Tree<SIDES> {
        Tree {
            nodes: vec![Node { parent: 0, function: u32::MAX, sums: Sums::default() }],
            children: Map::default(),
            functions: Map::default(),
            all: [0; SIDES],
            seen: Set::default(),
        }
    }
}

impl<const SIDES: usize> Tree<SIDES> {
    /// The number of nodes, with the root.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The caller of a node.
    pub(crate) fn parent(&self, node: usize) -> Option<u32> {
        self.nodes.get(node).map(|node| node.parent)
    }

    /// Adds a weight to a stack of functions, the outermost first. Gives the node of its innermost call, and whether that has a
    /// node of its own; `None` stands for a function without room, and what has no room counts for its caller.
    pub(crate) fn add(&mut self, side: usize, weight: u64, stack: &[Option<u32>]) -> (u32, bool) {
        join(&mut self.all, side, weight);
        self.seen.clear();
        let mut at = 0;
        self.add_to(at, side, weight, stack.is_empty());
        for (depth, function) in stack.iter().enumerate() {
            let is_last = depth + 1 == stack.len();
            let Some(function) = *function else { return (at, false) };
            let sums = self.functions.entry(function).or_default();
            if self.seen.insert(function) {
                join(&mut sums.total, side, weight);
            }
            if is_last {
                join(&mut sums.own, side, weight);
            }
            let Some(next) = self.below(at, function) else { return (at, false) };
            at = next;
            self.add_to(at, side, weight, is_last);
        }
        (at, true)
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

    /// Packs the nodes with the largest share of a side: a parent before its children, those in the order of their size.
    pub(crate) fn packed(&self, functions: &[Function], room: &mut Room) -> Result<Packed> {
        let (mut most, bytes) = (MAX_NODES, MAX_PACKED.min(room.trees / 3));
        loop {
            let packed = self.packed_up_to(most, functions)?;
            if packed.data.len() <= bytes || most < 2 {
                room.trees = room.trees.saturating_sub(packed.data.len());
                return Ok(packed);
            }
            most /= 2;
        }
    }

    fn packed_up_to(&self, most: usize, functions: &[Function]) -> Result<Packed> {
        let node = |place: u32| self.nodes.get(place as usize);
        let share = |sums: &Sums<SIDES>| {
            let shares = sums.total.iter().zip(&self.all).filter(|(_, all)| **all > 0);
            shares.map(|(part, all)| *part as f64 / *all as f64).fold(0.0, f64::max)
        };
        let of = |place: u32| node(place).map_or((0, 0), |node| (node.parent, (share(&node.sums) * WHOLE) as u64));
        // A weight is a whole number: where there are few samples, all nodes are kept.
        let least = self.all.iter().filter(|all| **all > 0).map(|all| {
            let all = *all as f64;
            (all * MIN_SHARE).floor().max(1.0) / all
        });
        let least = least.fold(1.0, f64::min);
        let Kept { order, parents, left_out } = kept(self.nodes.len(), of, (least * WHOLE) as u64, most);
        let names = Names::of(order.iter().map(|place| node(*place).map_or(u32::MAX, |node| node.function)));
        let mut bytes = Bytes::default();
        bytes.u32(order.len() as u32);
        bytes.u32(names.functions.len() as u32);
        // Own and total of the base, then of the new side.
        for side in 0..SIDES {
            for take in [|sums: &Sums<SIDES>| sums.own, |sums: &Sums<SIDES>| sums.total] {
                for place in &order {
                    let sum = node(*place).and_then(|node| take(&node.sums).get(side).copied());
                    bytes.f64(sum.unwrap_or_default() as f64);
                }
            }
        }
        parents.iter().for_each(|parent| bytes.u32(*parent));
        names.write(functions, &mut bytes);
        let (nodes, of) = (order.len() - 1, self.nodes.len() - 1);
        Ok(Packed { data: bytes.packed()?, order, nodes, of, share: left_out as f64 / WHOLE })
    }
}

/// Adds to one side.
pub(crate) fn join(sides: &mut [u64], side: usize, weight: u64) {
    if let Some(sum) = sides.get_mut(side) {
        *sum = sum.saturating_add(weight);
    }
}

/// The nodes of a tree that a page has.
struct Kept {
    /// By depth, so that the script lays a row out after the one above. The root comes first.
    order: Vec<u32>,
    /// Of each the place of its caller in that order.
    parents: Vec<u32>,
    /// The size of the largest one that is left out.
    left_out: u64,
}

/// The largest nodes of a tree: at most `most` beside the root, each of at least the size `least`. `of` has the caller and the size of a
/// node; a caller stands before what it calls and is at least as large, so that it is kept with it.
fn kept(count: usize, of: impl Fn(u32) -> (u32, u64), least: u64, most: usize) -> Kept {
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
struct Names {
    /// Functions by the place of their names.
    functions: Vec<u32>,
    /// Of each node the place of its name.
    of_nodes: Vec<u32>,
}

impl Names {
    /// The names of nodes with these functions.
    fn of(nodes: impl Iterator<Item = u32>) -> Names {
        let mut functions: Vec<u32> = Vec::new();
        let mut place_of: Map<u32, u32> = Map::default();
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
    fn write(&self, all: &[Function], bytes: &mut Bytes) {
        self.of_nodes.iter().for_each(|place| bytes.u32(*place));
        let functions = || self.functions.iter().map(|function| all.get(*function as usize));
        let texts: Vec<String> = functions().map(label).collect();
        texts.iter().for_each(|text| bytes.u32(text.len() as u32));
        functions().for_each(|function| bytes.byte(kind(function)));
        texts.iter().for_each(|text| bytes.bytes(text.as_bytes()));
    }
}

/// Name and, each behind a line break, assembly or file and the name as a person writes it, where it is another one.
fn label(function: Option<&Function>) -> String {
    match function {
        Some(function) => {
            let written = if function.written.is_empty() { "" } else { "\n" };
            format!("{}\n{}{written}{}", shown(&function.name), shown(&function.file), shown(&function.written))
        }
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
