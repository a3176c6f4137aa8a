//! Call stacks merged to a tree, for a flame graph, and the table of functions behind it. Beside the tree stands what each thread
//! has in each part of the time, so that the script draws the graph of a thread or of a time.

use tracequet_analyze::present::units::counted;
use tracequet_analyze::present::{Amount, Cell, cut, numbers, shown, table, words};
use tracequet_analyze::profile::{Function, Profile, Sample};
use tracequet_dataset::error::Result;
use tracequet_trace::map::Map;

use crate::document::rows_note;
use crate::packed::Bytes;
use crate::tree::{Packed, Room, Sums, Tree};

/// Parts of the time, threads, and their sums that a page has; and bytes of the data.
const MAX_PARTS: usize = 120;
const MAX_THREADS: usize = 16;
const MAX_SLICES: usize = 60_000;
const MAX_PACKED_SLICES: usize = 160 << 10;

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

    /// Packs the largest nodes, and what they have by threads and parts of the time.
    pub(crate) fn packed(&self, profile: &Profile, room: &mut Room) -> Result<(Packed, Option<String>)> {
        let packed = self.tree.packed(self.functions, room)?;
        let slices = self.slices(profile, &packed.order, MAX_PACKED_SLICES.min(room.slices / 3))?;
        room.slices = room.slices.saturating_sub(slices.as_ref().map_or(0, String::len));
        Ok((packed, slices))
    }

    /// What each thread has at each node in each part of the time. The parts are longer, and more threads are one, where that is
    /// too much; `None` where it is too much even so.
    fn slices(&self, profile: &Profile, order: &[u32], bytes_at_most: usize) -> Result<Option<String>> {
        // Of each node its place in the page, and whether it is there itself, or merged into a caller.
        let mut places: Vec<(u32, bool)> = vec![(0, true); self.tree.len()];
        for (place, node) in order.iter().enumerate().skip(1) {
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
            let row_of: Map<usize, usize> =
                threads.iter().enumerate().map(|(row, (_, place))| (*place, row.min(shown - 1))).collect();
            let mut found: Map<(u8, u8, u32), u64> = Map::default();
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

/// The label of a thread, without what makes it long.
fn shown_label(label: &str) -> String {
    shown(cut(label, 80))
}
