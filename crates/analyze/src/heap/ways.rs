//! The ways in which objects are held: by the types of their dominators and the name of the root.
#![allow(clippy::indexing_slicing, reason = "every index is a node of the graph, or a place among its types")]

use crate::prelude::*;

use super::explain::{Explanation, explain};
use super::graph::HeapGraph;
use super::types::Retention;

/// The key by which types are compared: a heap dump (.gcdump) has not the number of type parameters of all types.
pub(crate) fn key(name: &str) -> String {
    let mut parts = name.split('`');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        let plain = part.trim_start_matches(|c: char| c.is_ascii_digit());
        // A backtick without a number is one of the name.
        if plain.len() == part.len() { out + "`" + part } else { out + plain }
    })
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn mixed(above: u64, own: u64) -> u64 {
    (above.rotate_left(5) ^ own).wrapping_mul(0x517c_c1b7_2722_0a95)
}

/// A number for the way in which each object is held: the types of its dominators from the outermost on, those of one
/// type behind each other once, behind the name of the root. Objects that no root leads to have 0.
pub(crate) fn ways(graph: &HeapGraph, retention: &Retention) -> Vec<u64> {
    let types: Vec<u64> = graph.type_names.iter().map(|name| hash(&key(name))).collect();
    // Addresses of handles are others in each recording.
    let named = graph.roots.iter().filter(|root| root.name.is_some());
    let roots: Map<u32, u64> = named.map(|root| (root.node, hash(&root.describe()))).collect();
    let mut ways = vec![0; graph.len() as usize];
    // The way and the type of the dominator, where there is one.
    retention.dominators.fold_down(None, |node, above: Option<(u64, u64)>| {
        let own = types[graph.kind(node) as usize];
        let way = match above {
            Some((way, kind)) if kind == own => way,
            Some((way, _)) => mixed(way, own),
            None => mixed(roots.get(&node).copied().unwrap_or(1), own),
        };
        ways[node as usize] = way;
        Some((way, own))
    });
    ways
}

/// Objects of a type that are held in one way.
#[derive(Clone, Debug)]
pub struct Held {
    /// The number of objects.
    pub objects: u64,
    /// Their bytes.
    pub size_bytes: u64,
    /// Bytes of them and of all that they dominate, each counted once.
    pub retained_bytes: u64,
    /// Bytes that were held so before: a median.
    pub base_bytes: f64,
    /// Why the one that retains most is alive.
    pub explanation: Explanation,
}

/// Of the ways in which objects of a type are held in a graph, the one that has most bytes more than `before` gives for
/// it.
pub fn held(graph: &HeapGraph, retention: &Retention, type_name: &str, before: impl Fn(u64) -> f64) -> Option<Held> {
    /// Objects, bytes, retained bytes, and the one that retains most.
    struct Way(u64, u64, u64, u32);
    let wanted = key(type_name);
    let of_type: Vec<bool> = graph.type_names.iter().map(|name| key(name) == wanted).collect();
    if !of_type.contains(&true) {
        return None;
    }
    let mut found: BTreeMap<u64, Way> = BTreeMap::new();
    let ways = ways(graph, retention);
    for (node, (kind, size)) in (0u32..).zip(graph.objects()) {
        if !of_type[kind as usize] {
            continue;
        }
        let Way(objects, bytes, retained, largest) = found.entry(ways[node as usize]).or_insert(Way(0, 0, 0, node));
        *objects += 1;
        *bytes = bytes.saturating_add(size);
        let of_node = retention.bytes(graph, node);
        if retention.is_outermost(node) {
            *retained = retained.saturating_add(of_node);
        }
        if of_node > retention.bytes(graph, *largest) {
            *largest = node;
        }
    }
    let grown = found.into_iter().map(|(way, found)| (found.1 as f64 - before(way), way, found));
    let (_, way, Way(objects, size_bytes, retained_bytes, node)) = grown.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let explanation = explain(graph, retention, node);
    Some(Held { objects, size_bytes, retained_bytes, base_bytes: before(way), explanation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_the_same_without_the_number_of_their_parameters() {
        assert_eq!(key("System.Collections.Generic.List`1[Order]"), key("System.Collections.Generic.List[Order]"));
        assert_eq!(key("A`12+B`2[C`1]"), "A+B[C]");
        assert_eq!((key("odd`name"), key("`"), key("")), ("odd`name".into(), "`".into(), String::new()));
    }
}
