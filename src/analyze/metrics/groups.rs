//! Figures of which there is one for each type, method, counter and so on.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::definition::{Definition, Metric, OfFrame, UNKNOWN};
use super::leaves::Leaves;
use super::seen::Seen;
use crate::dataset::Column;

/// Texts that have figures, and the bytes of all of them, for each reading of a table. Rows of others are left out.
const MOST_TEXTS: usize = 1 << 16;
const MOST_BYTES: usize = 8 << 20;
/// Call sites that are told apart. Samples at others are left out.
const MOST_SITES: usize = 1 << 20;

/// What is seen, for all rows or for each value of something.
#[derive(Debug)]
pub(super) enum Groups {
    One(Seen),
    Texts(Texts),
    Sites(Sites),
}

/// What is seen of each text.
#[derive(Debug, Default)]
pub(super) struct Texts {
    joined: bool,
    places: HashMap<Arc<str>, usize, RandomState>,
    all: Vec<(Arc<str>, Seen)>,
    bytes: usize,
    last: usize,
    text: String,
}

/// Rows and sum of each call site.
#[derive(Debug, Default)]
pub(super) struct Sites {
    all: HashMap<u32, (u64, f64), RandomState>,
}

impl Texts {
    /// By the values of these columns.
    pub(super) fn of(by: &[String]) -> Texts {
        Texts { joined: by.len() > 1, ..Texts::default() }
    }

    /// What is seen of the text of a row; `None` when there are too many.
    pub(super) fn of_row(&mut self, by: &[Column<'_>], row: usize) -> Option<&mut Seen> {
        if self.joined {
            let mut text = std::mem::take(&mut self.text);
            text.clear();
            for (n, part) in by.iter().filter_map(|column| column.text(row)).enumerate() {
                text.push_str(if n > 0 { "/" } else { "" });
                text.push_str(part);
            }
            let place = self.place(&text);
            self.text = text;
            return self.all.get_mut(place?).map(|(_, seen)| seen);
        }
        let place = self.place(by.first().and_then(|column| column.text(row)).unwrap_or_default());
        self.all.get_mut(place?).map(|(_, seen)| seen)
    }

    fn place(&mut self, text: &str) -> Option<usize> {
        let text = if text.is_empty() { UNKNOWN } else { text };
        // The same text often stands in one row after the other.
        if self.all.get(self.last).is_some_and(|(known, _)| **known == *text) {
            return Some(self.last);
        }
        if let Some(place) = self.places.get(text) {
            self.last = *place;
            return Some(*place);
        }
        if self.all.len() >= MOST_TEXTS || self.bytes + text.len() > MOST_BYTES {
            return None;
        }
        self.bytes += text.len();
        let text: Arc<str> = text.into();
        self.last = self.all.len();
        self.places.insert(text.clone(), self.last);
        self.all.push((text, Seen::default()));
        Some(self.last)
    }
}

impl Sites {
    pub(super) fn add(&mut self, site: u32, value: f64) {
        if let Some((rows, sum)) = self.all.get_mut(&site) {
            (*rows, *sum) = (*rows + 1, *sum + value);
        } else if self.all.len() < MOST_SITES {
            self.all.insert(site, (1, value));
        }
    }
}

impl Groups {
    /// What is seen of all rows, where they are not told apart.
    pub(super) fn one(&self) -> Option<&Seen> {
        match self {
            Groups::One(seen) => Some(seen),
            _ => None,
        }
    }

    /// The figures of a definition.
    pub(super) fn figures(&self, definition: &Definition, duration_ns: f64) -> Vec<Metric> {
        let figure = |key: Option<&str>, seen: &Seen| {
            let value = seen.figure(definition.take, duration_ns)?;
            let worst = definition.worst.as_deref().zip(seen.place());
            let worst = worst.map(|(column, number)| format!("{column} = {number}"));
            Some(Metric { worst, ..Metric::new(definition, key, value, seen.observations) })
        };
        match self {
            Groups::One(seen) => figure(None, seen).into_iter().collect(),
            Groups::Texts(texts) => {
                let all = texts.all.iter().filter_map(|(text, seen)| figure(Some(text), seen)).collect();
                largest(definition, all)
            }
            Groups::Sites(_) => Vec::new(),
        }
    }

    /// The figures of a definition by frames: sums.
    pub(super) fn of_frames(&self, definition: &Definition, leaves: &Leaves, of: OfFrame) -> Vec<Metric> {
        let Groups::Sites(sites) = self else { return Vec::new() };
        let mut by_text: HashMap<&str, (u64, f64)> = HashMap::new();
        for (site, (rows, sum)) in &sites.all {
            if let Some(text) = leaves.text(*site, of) {
                let (all_rows, all) = by_text.entry(text).or_default();
                (*all_rows, *all) = (*all_rows + rows, *all + sum);
            }
        }
        let all = by_text.into_iter().map(|(text, (rows, sum))| Metric::new(definition, Some(text), sum, rows));
        largest(definition, all.collect())
    }
}

fn largest(definition: &Definition, mut all: Vec<Metric>) -> Vec<Metric> {
    all.sort_by(|a, b| b.value.total_cmp(&a.value).then_with(|| a.name.cmp(&b.name)));
    all.truncate(definition.most);
    all
}
