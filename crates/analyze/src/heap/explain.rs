//! Why an object is alive: a shortest path from a root, and the dominators, which every path leads through.

use std::sync::Arc;

use super::distance::Paths;
use super::graph::HeapGraph;
use super::roots::Root;
use super::types::Retention;

/// An object on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The node in the graph.
    pub node: u32,
    /// The address.
    pub address: u64,
    /// Name of its type.
    pub type_name: Arc<str>,
    /// The size in bytes.
    pub size_bytes: u64,
    /// Bytes of it and of all that it dominates.
    pub retained_bytes: u64,
}

/// Why an object is alive.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The object.
    pub object: Step,
    /// Objects that it dominates, and itself.
    pub retained_objects: u32,
    /// The root at the beginning of `shortest`; `None` when no root leads to the object.
    pub root: Option<Root>,
    /// A path of fewest references from that root to the object, both included.
    pub shortest: Vec<Step>,
    /// The objects that every path from any root leads through, the outermost first, and the object itself. With only
    /// itself it is held in several ways that have no object in common.
    pub dominators: Vec<Step>,
}

impl Explanation {
    /// The root and the types on the shortest path, as `static field Cache.items > List[Order] > Order`: of a long path
    /// as many types of its beginning and of its end. `None` when no root leads to the object.
    pub fn path(&self, ends: usize) -> Option<String> {
        let mut steps = vec![self.root.as_ref()?.describe()];
        let left_out = match self.shortest.len() {
            long if long > 2 * ends + 1 => ends..long - ends,
            _ => 0..0,
        };
        for (at, step) in self.shortest.iter().enumerate() {
            if at == left_out.start && !left_out.is_empty() {
                steps.push(format!("... {} more ...", left_out.len()));
            }
            if !left_out.contains(&at) {
                steps.push(step.type_name.to_string());
            }
        }
        Some(steps.join(" > "))
    }
}

/// Says why an object of the graph is alive.
pub fn explain(graph: &HeapGraph, retention: &Retention, node: u32) -> Explanation {
    let paths = Paths::of(&graph.references, &graph.root_nodes(), &[node]);
    explain_by(graph, retention, &paths, node)
}

/// Explains one of several objects, by the paths to all of them.
pub fn explain_by(graph: &HeapGraph, retention: &Retention, paths: &Paths, node: u32) -> Explanation {
    let step = |node: u32| Step {
        node,
        address: graph.address(node),
        type_name: graph.type_names.get(graph.kind(node) as usize).cloned().unwrap_or_default(),
        size_bytes: graph.size(node),
        retained_bytes: retention.bytes(graph, node),
    };
    let shortest = paths.to(node);
    let root = shortest.first().and_then(|first| graph.roots.iter().find(|root| root.node == *first)).cloned();
    let above = |node: &u32| retention.dominators.dominator(*node);
    let mut dominators: Vec<Step> = std::iter::successors(Some(node), above).map(step).collect();
    dominators.reverse();
    let shortest = shortest.into_iter().map(step).collect();
    Explanation { object: step(node), retained_objects: retention.count(node), root, shortest, dominators }
}
