//! Labels of the events of one region: activity ids (V1 to V5) and label lists (V6).

use super::event_types::Overrides;
use super::report::Reporter;
use crate::prelude::*;
use crate::reader::Labels;

/// Label lists between two sequence points.
const MAX_LABELS: usize = 1 << 20;
/// Bytes of JSON in the label lists between two sequence points.
const MAX_TEXT: usize = 16 << 20;

/// Names and values of one list, repeated in a row for each event that refers to it.
const MAX_JSON: usize = 8 << 10;

static NO_LABELS: Labels = Labels { activity_id: Guid::NONE, related_activity_id: Guid::NONE, json: String::new() };

/// The labels that events of the region refer to by number; 0 means no labels.
#[derive(Default)]
pub struct RegionLabels {
    /// Entry `n` is number `n + 1`.
    labels: Vec<Labels>,
    text: usize,
    by_list_id: Map<u32, (u32, Overrides)>,
}

impl RegionLabels {
    /// The labels with a number that was given before.
    #[inline]
    pub fn get(&self, number: u32) -> &Labels {
        let index = (number as usize).wrapping_sub(1);
        self.labels.get(index).unwrap_or(&NO_LABELS)
    }

    /// Remembers labels for the events of this region; gives their number.
    pub fn add(&mut self, mut labels: Labels, out: &mut Reporter<'_>, offset: u64) -> u32 {
        if labels.json.len() > MAX_JSON {
            let message = "a label list of more than 8 KB; events lose its names and values";
            out.problem(Problem::loss("long_labels", offset, message));
            labels.json = String::new();
        }
        if labels == NO_LABELS {
            return 0;
        }
        if self.labels.last() != Some(&labels) {
            if self.labels.len() >= MAX_LABELS - 1 || self.text + labels.json.len() > MAX_TEXT {
                too_many(out, offset);
                return 0;
            }
            self.text += labels.json.len();
            self.labels.push(labels);
        }
        self.labels.len() as u32
    }

    /// Binds the id of a label list (V6).
    pub fn define(&mut self, id: u32, labels: Labels, overrides: Overrides, out: &mut Reporter<'_>, offset: u64) {
        if self.by_list_id.len() < MAX_LABELS || self.by_list_id.contains_key(&id) {
            let number = self.add(labels, out, offset);
            self.by_list_id.insert(id, (number, overrides));
        } else {
            too_many(out, offset);
        }
    }

    /// The labels of a list and what they override (V6). One that is not defined is reported.
    pub fn by_list_id(&mut self, id: u32, out: &mut Reporter<'_>, offset: u64) -> (u32, Overrides) {
        match self.by_list_id.get(&id) {
            Some(found) => *found,
            None if id == 0 => (0, Overrides::default()),
            None => {
                out.problem(Problem::error("unknown_label_list", offset, format!("label list {id} is not defined")));
                (0, Overrides::default())
            }
        }
    }

    /// Whether enough labels wait that the events which refer to them should be delivered.
    pub fn are_many(&self) -> bool {
        self.labels.len() >= MAX_LABELS / 8
    }

    /// Forgets the ids of label lists; what events refer to stays.
    pub fn forget_ids(&mut self) {
        self.by_list_id.clear();
    }

    /// Forgets the labels: no event refers to any of them.
    pub fn clear(&mut self) {
        self.labels.clear();
        self.text = 0;
    }
}

fn too_many(out: &mut Reporter<'_>, offset: u64) {
    let message = "more label lists than fit into memory between two sequence points; events lose theirs";
    out.problem(Problem::loss("too_many_labels", offset, message));
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::reader::RawEvent;
    use crate::reader::Visitor;

    #[derive(Default)]
    struct Reported(Vec<&'static str>);

    impl Visitor for Reported {
        fn event(&mut self, _: &RawEvent<'_>) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }

        fn problem(&mut self, problem: Problem) {
            self.0.push(problem.code);
        }
    }

    /// A list of a megabyte, to which each event refers with a byte.
    #[test]
    fn a_long_list_does_not_stand_in_every_row() {
        let (mut reported, mut region) = (Reported::default(), RegionLabels::default());
        let mut out = Reporter::new(&mut reported);
        let labels = |length: usize| Labels {
            activity_id: Guid([1; 16]),
            related_activity_id: Guid::NONE,
            json: "x".repeat(length),
        };
        for (id, length) in [(1, MAX_JSON), (2, 1 << 20)] {
            region.define(id, labels(length), Overrides::default(), &mut out, 7);
        }
        let mut length = |id: u32, out: &mut Reporter<'_>| {
            let (number, _) = region.by_list_id(id, out, 9);
            let found = region.get(number);
            (found.activity_id, found.json.len())
        };
        assert_eq!(length(1, &mut out), (Guid([1; 16]), MAX_JSON));
        assert_eq!(length(2, &mut out), (Guid([1; 16]), 0));
        out.finish();
        assert_eq!(reported.0, ["long_labels"]);
    }

    #[test]
    fn label_lists_and_their_text_have_a_bound() {
        let (mut reported, mut region) = (Reported::default(), RegionLabels::default());
        let mut out = Reporter::new(&mut reported);
        let named = |name: &str| Labels { json: name.to_owned(), ..NO_LABELS.clone() };
        region.text = (16 << 20) - 1;
        assert_eq!((region.add(named("a"), &mut out, 1), region.add(named("b"), &mut out, 2)), (1, 0), "16 MB of text");

        let mut region = RegionLabels::default();
        region.labels.resize((1 << 20) - 2, NO_LABELS.clone());
        assert_eq!((region.add(named("a"), &mut out, 3), region.add(named("b"), &mut out, 4)), ((1 << 20) - 1, 0));

        let mut region = RegionLabels::default();
        region.by_list_id.extend((1..1 << 20).map(|id| (id, (0, Overrides::default()))));
        for id in [1 << 20, (1 << 20) + 1] {
            region.define(id, named("a"), Overrides::default(), &mut out, 5);
        }
        assert_eq!(region.by_list_id.len(), 1 << 20);
        out.finish();
        assert_eq!(reported.0, ["too_many_labels"; 3]);
    }
}
